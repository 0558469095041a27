"""Accepted forms: what a given word may be beside its own forms. The only writer of them."""

import csv
from collections import defaultdict
from datetime import datetime
from functools import cache

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.db.models.functions import Greatest
from django.utils import timezone

from corpus.builtin import FOLDER
from corpus.models import Instrument, Stimulus
from corpus.tokens import word_tokens
from scoring.lemmas import folded
from scoring.models import AcceptedForm
from scoring.vocabulary import Task
from studies.database import violates
from studies.models import Study, User
from studies.services import audit_record


class AcceptedFormError(Exception):
    """Why a form cannot be accepted: `not_given`, `not_a_word` or `known`."""


@cache
def _built_in() -> dict[tuple[str, str], tuple[tuple[str, str], ...]]:
    """The forms that come with the published study, by the text and the original of a stimulus."""
    with (FOLDER / "stimuli.csv").open(encoding="utf-8", newline="") as file:
        stimuli = {row["id"]: (row["task"], row["original"]) for row in csv.DictReader(file)}
    found: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    with (FOLDER / "accepted_forms.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found[stimuli[row["id"]]].append((row["given"], row["form"]))
    return {key: tuple(forms) for key, forms in found.items()}


def accepted_forms_ensure(*, study: Study) -> None:
    """Give the published study's stimuli, in whatever instrument they stand, the forms that come with it.

    Within the caller's transaction and lock of the study. One query where there is nothing to give.
    """
    known = Stimulus.objects.filter(instrument__study=study, is_practice=False)
    bare = [one for one in known.filter(accepted_forms__isnull=True) if (one.text, one.original) in _built_in()]
    for stimulus in bare:
        AcceptedForm.objects.bulk_create(
            AcceptedForm(stimulus=stimulus, lemma=lemma, form=form, version=version)
            for version, (lemma, form) in enumerate(_built_in()[stimulus.text, stimulus.original], start=1)
        )


@transaction.atomic
def accepted_forms_prepare(*, study: Study) -> None:
    """As `accepted_forms_ensure`, for a reader of accepted forms that has not applied the rules. Two queries."""
    Study.objects.select_for_update(no_key=True).get(pk=study.pk)
    accepted_forms_ensure(study=study)


@transaction.atomic
def accepted_form_add(*, stimulus: Stimulus, lemma: str, form: str, actor: User | None) -> AcceptedForm:
    """Raises AcceptedFormError where the stimulus does not give the word, the form is no single word, or is known."""
    given = next((word for word in word_tokens(stimulus.text) if folded(word) == folded(lemma)), None)
    if given is None:
        raise AcceptedFormError("not_given")
    words = word_tokens(form)
    if len(words) != 1 or len(words[0]) > 100:
        raise AcceptedFormError("not_a_word")
    accepted_forms_prepare(study=stimulus.instrument.study)
    last = stimulus.accepted_forms.aggregate(last=Max("version"))["last"] or 0
    try:
        with transaction.atomic():
            made = AcceptedForm.objects.create(
                stimulus=stimulus, lemma=given, form=words[0], version=last + 1, made_by=actor
            )
    except IntegrityError as error:
        if violates(error, "acceptedform_one_live"):
            raise AcceptedFormError("known") from error
        raise
    detail = {"stimulus": stimulus.position, "given": given, "form": words[0]}
    audit_record(actor=actor, study=stimulus.instrument.study, action="accepted_form.add", target=made, detail=detail)
    return made


@transaction.atomic
def accepted_form_retire(*, accepted: AcceptedForm, actor: User | None) -> None:
    """Answers are compared without it from now on. A second time does nothing."""
    accepted_forms_prepare(study=accepted.stimulus.instrument.study)
    found = AcceptedForm.objects.select_for_update(no_key=True).get(pk=accepted.pk)
    if found.retired_at is not None:
        return
    found.retired_at = timezone.now()
    found.save(update_fields=["retired_at"])
    stimulus = found.stimulus
    detail = {"stimulus": stimulus.position, "given": found.lemma, "form": found.form}
    audit_record(
        actor=actor, study=stimulus.instrument.study, action="accepted_form.retire", target=found, detail=detail
    )


def accepted_forms_changed(study: Study) -> dict[int, datetime]:
    """When the accepted forms of each stimulus that has had any last changed. One query."""
    latest = (
        AcceptedForm.objects.filter(stimulus__instrument__study=study)
        .order_by()
        .values_list("stimulus_id")
        .annotate(at=Max(Greatest("made_at", "retired_at")))
    )
    return dict(latest)


def tasks_of(study: Study, instrument: Instrument | None = None) -> dict[int, Task]:
    """The stimuli of a study, or of one instrument, as vocabulary match compares them. Two queries."""
    stimuli = Stimulus.objects.filter(instrument__study=study)
    if instrument is not None:
        stimuli = stimuli.filter(instrument=instrument)
    accepted: dict[int, list[tuple[str, str]]] = defaultdict(list)
    live = AcceptedForm.objects.filter(stimulus__in=stimuli, retired_at__isnull=True).order_by("pk")
    for stimulus, lemma, form in live.values_list("stimulus_id", "lemma", "form"):
        accepted[stimulus].append((lemma, form))
    rows = stimuli.order_by().values_list("pk", "text", "original", "instrument__language")
    return {pk: Task(text, original, language, tuple(accepted.get(pk, ()))) for pk, text, original, language in rows}
