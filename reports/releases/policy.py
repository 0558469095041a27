"""What a release holds beyond the answers and their scores: chosen when it is made, said in its data card."""

from dataclasses import asdict, dataclass
from typing import Any

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class Questionnaire(TextChoices):
    NONE = "none", _("nothing of it")
    CLOSED = "closed", _("what was chosen or counted: no texts that people wrote")
    ALL = "all", _("everything, the texts that people wrote too")


@dataclass(frozen=True)
class Policy:
    """The least is the default: more than the answers is in only where somebody asked for it."""

    timings: bool = False  # durations, first key, time away, pastes, translation, kind of device
    questionnaire: str = Questionnaire.NONE
    licence: str = ""
    authors: str = ""

    def as_json(self) -> dict[str, Any]:
        return {name: str(value) if isinstance(value, str) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, known: dict[str, Any]) -> "Policy":
        return cls(**{name: known[name] for name in cls.__dataclass_fields__ if name in known})
