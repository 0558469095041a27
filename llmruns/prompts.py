"""Prompts in versions: a text that has been asked with is never changed, another one is another version."""

from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.db.models import Count, QuerySet

from corpus.models import Instrument, Stimulus
from llmruns.models import Prompt
from studies.models import Study, User
from studies.services import audit_record

WORDS, ANSWER = "{words}", "{answer}"
LONGEST = 20_000  # characters


class PromptRefusedError(Exception):
    """`reason` is one of: words ({words} is not in it), answer ({answer} is not in a judge's), long, same (the newest
    version says just this), purpose (the name is taken by prompts for something else)."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def prompt_create(
    *,
    study: Study,
    slug: str,
    text: str,
    actor: User | None,
    note: str = "",
    purpose: str = Prompt.Purpose.ANSWER,
) -> Prompt:
    """The next version of the study's prompt of this name, or its first. Raises PromptRefusedError."""
    if WORDS not in text:
        raise PromptRefusedError("words")
    if purpose == Prompt.Purpose.JUDGE and ANSWER not in text:
        raise PromptRefusedError("answer")
    if len(text) > LONGEST:
        raise PromptRefusedError("long")
    try:
        with transaction.atomic():
            Study.objects.select_for_update(no_key=True).get(pk=study.pk)
            newest = Prompt.objects.filter(study=study, slug=slug).order_by("-version").first()
            if newest is not None and newest.purpose != purpose:
                raise PromptRefusedError("purpose")
            if newest is not None and newest.text == text:
                raise PromptRefusedError("same")
            version = newest.version + 1 if newest is not None else 1
            prompt = Prompt.objects.create(
                study=study, slug=slug, version=version, text=text, note=note, purpose=purpose
            )
            audit_record(
                actor=actor, study=study, action="prompt_create", target=prompt, detail={"prompt": str(prompt)}
            )
    except IntegrityError as error:  # somebody wrote a version without this lock
        if "prompt_unique_slug_version" in str(error):
            raise PromptRefusedError("same") from error
        raise
    return prompt


def prompts_of(study: Study) -> QuerySet[Prompt]:
    """The study's prompts for answers, newest versions first, with `n_experiments`. One query."""
    return (
        Prompt.objects.filter(study=study, purpose=Prompt.Purpose.ANSWER)
        .annotate(n_experiments=Count("experiments"))
        .order_by("slug", "-version")
    )


@dataclass(frozen=True)
class Preview:
    stimulus: Stimulus
    before: str
    after: str

    @property
    def message(self) -> str:
        return f"{self.before}{self.stimulus.text}{self.after}"


def previews_of(text: str, instrument: Instrument) -> list[Preview]:
    """What is sent for each stimulus, cut where the first words stand. One query."""
    before, _, after = text.partition(WORDS)
    return [
        Preview(stimulus, before, after.replace(WORDS, stimulus.text))
        for stimulus in instrument.stimuli.filter(is_practice=False).order_by("position")
    ]
