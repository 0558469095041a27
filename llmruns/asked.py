"""With which parameters the models of an instrument's results were asked: asked for, sent, and used, over all calls."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db.models import F
from django.db.models.fields.json import KT, KeyTransform

from corpus.models import Instrument, Sitting
from llmruns.models import Call, ModelConfig
from llmruns.parameters import NAMES, parameter_rows

SENT = sorted({name for names in NAMES.values() for name in names})


@dataclass
class ParameterUse:
    """Every value that occurred, in the order in which it first did."""

    name: str
    asked: list[Any] = field(default_factory=list)
    sent: list[Any] = field(default_factory=list)
    used: list[Any] = field(default_factory=list)
    is_default: bool = False  # in some call the provider's default held: not asked for, or not sent
    is_unknown: bool = False  # of some call nobody knows: an import that does not say
    is_refused: bool = False  # asked for and not sent, because the model does not take it


def parameters_of_instrument(instrument: Instrument) -> dict[tuple[int, int], list[ParameterUse]]:
    """By configuration and experiment, of the runs that count. One query: the requests are not read as a whole."""
    groups = (
        Call.objects.filter(run__experiment__instrument=instrument, run__sitting__standing=Sitting.Standing.COUNTED)
        .order_by()
        .annotate(**{f"sent_{name}": KeyTransform(name, "request") for name in SENT}, asked_model=KT("request__model"))
        .values(
            "config_id", "asked", "used", "asked_model", *(f"sent_{name}" for name in SENT), key=F("run__experiment_id")
        )
        .distinct()
    )
    found: dict[tuple[int, int], dict[str, ParameterUse]] = {}
    for group in groups:
        uses = found.setdefault((group["config_id"], group["key"]), {name: ParameterUse(name) for name in NAMES})
        sent = {name: group[f"sent_{name}"] for name in SENT if group[f"sent_{name}"] is not None}
        for row in parameter_rows(group["asked"], sent, group["used"]):
            if row.name not in NAMES:
                continue
            use = uses[row.name]
            # Of a live call the request is known whole; of an imported one what it does not hold is not known.
            unknown = row.name not in group["asked"] or (group["asked_model"] is None and row.sent is None)
            use.is_unknown |= unknown and row.asked is None and row.sent is None
            use.is_refused |= row.refused and not unknown
            use.is_default |= not unknown and row.sent is None
            for values, value in ((use.asked, row.asked), (use.sent, row.sent), (use.used, row.used)):
                if value is not None and value not in values:
                    values.append(value)
    return {key: _shown(uses.values()) for key, uses in found.items()}


def _shown(uses: Iterable[ParameterUse]) -> list[ParameterUse]:
    """The temperature always; the others where something is said of them."""
    return [use for use in uses if use.name == "temperature" or use.asked or use.sent or use.used]


def extra_parameters(config: ModelConfig) -> list[tuple[str, Any]]:
    """What is sent with every request as it is."""
    return sorted(config.extra_body.items())
