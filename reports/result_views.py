"""The results: tables and figures, and the way from each number to its rows."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from corpus.models import Complexity, Instrument
from reports.captions import caption, differences
from reports.choice import chosen_of, sent_of
from reports.contrast_tables import breakdown_with_bands, by_criterion, contrast_rows, contrasts, worst_stimuli
from reports.dashboard import outside_words
from reports.figure_set import FIGURES
from reports.model_facts import model_facts
from reports.selectors import (
    AnswerFilter,
    Results,
    answers_behind,
    instrument_default,
    instruments_of,
    people_outside,
    results_of,
    row_labels,
    rubric_of,
)
from reports.tables import answer_rows, overview, per_stimulus
from reports.words import CONTRAST_REASONS, REASONS, STATES
from scoring.selectors import labels_of
from scoring.services import rules_apply, rules_keep_up
from studies.access import SignedIn, unblinded_study
from studies.models import Study

PAGE_SIZE = 50
FILES = {"svg": "image/svg+xml", "png": "image/png", "pdf": "application/pdf"}


def figure_shown(results: Results, number: int) -> dict[str, Any]:
    """What the page says around a figure."""
    drawn = FIGURES[number].draw(results)
    return {
        "number": number,
        "is_empty": drawn.is_empty,
        "not_drawn": [(label, (REASONS | CONTRAST_REASONS)[reason]) for label, reason in drawn.not_drawn],
        "caption": caption(results, number),
    }


def instrument_shown(study: Study, request: HttpRequest) -> tuple[list[Instrument], Instrument | None]:
    """All of the study's instruments, and the one asked for, else that of `instrument_default`.

    Raises Http404 for an instrument that the study does not have.
    """
    known = list(instruments_of(study))
    wanted = request.GET.get("instrument")
    if wanted:
        chosen = [instrument for instrument in known if str(instrument.pk) == wanted]
        if not chosen:
            raise Http404
        return known, chosen[0]
    return known, instrument_default(known)


def current_results(study: Study, instrument: Instrument, given: Mapping[str, str], *, whole: bool = False) -> Results:
    """The results that the parameters choose, after the counting rules have seen what came in lately.

    A GET starts nothing, and this writes: the rules are a part of the reading. They are cheap, idempotent, the same for
    whoever asks, and a result without them would lack a criterion (DESIGN, section 6). After a large import the workers
    have more to do than a page waits for: then it shows what there is, with how much is missing. A file cannot say so
    and waits: `whole`.
    """
    rubric = rubric_of(instrument)
    left = 0
    if whole:
        rules_apply(study=study, rubric=rubric)
    else:
        left = rules_keep_up(study=study, rubric=rubric)
    chosen = chosen_of(given=given, study=study, instrument=instrument, rubric=rubric)
    return replace(results_of(study=study, instrument=instrument, rubric=rubric, chosen=chosen), n_uncounted=left)


@login_required
@require_safe
def results(request: SignedIn, slug: str) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    instruments, instrument = instrument_shown(study, request)
    if instrument is None:
        return render(request, "reports/results.html", {"study": study})
    if "form" in request.GET:
        return _sent(request, study, instrument)
    found = current_results(study, instrument, request.GET.dict())
    ranked, n_models = worst_stimuli(found)
    context = {
        "study": study,
        "instruments": instruments,
        "instrument": instrument,
        "results": found,
        "outside": ", ".join(outside_words(people_outside(instrument))),
        "overview": overview(found),
        "model_facts": model_facts(found),
        "breakdown": breakdown_with_bands(found),
        "per_stimulus": per_stimulus(found),
        "by_criterion": by_criterion(found),
        "contrasts": contrast_rows(found, contrasts(found)),
        "worst": ranked,
        "n_worst": n_models,
        "figures": {f"figure{number}": figure_shown(found, number) for number in FIGURES},
        "files": list(FILES),
        "chosen": found.chosen,
        "query": urlencode({"instrument": instrument.pk, **found.chosen.choice.query}),
        "differences": differences(found),
    }
    return render(request, "reports/results.html", context)


def _sent(request: SignedIn, study: Study, instrument: Instrument) -> HttpResponse:
    """To the address that stands for what the form says: it names a set of judges once, and can be passed on."""
    sent = sent_of(given=request.GET, study=study, instrument=instrument, rubric=rubric_of(instrument))
    for words in sent.told:
        messages.warning(request, words)
    query = urlencode({"instrument": instrument.pk, **sent.chosen.choice.query})
    return redirect(f"{reverse('results', args=[study.slug])}?{query}")


@login_required
@require_safe
def result_answers(request: SignedIn, slug: str) -> HttpResponse:
    """The answers behind a number, each with its labels and how they came about."""
    study = unblinded_study(request.user, slug)
    _known, instrument = instrument_shown(study, request)
    if instrument is None:
        raise Http404
    rubric = rubric_of(instrument)
    n_uncounted = rules_keep_up(study=study, rubric=rubric)  # see current_results
    groups = row_labels(instrument)
    chosen = _chosen(request, groups)
    results = chosen_of(given=request.GET.dict(), study=study, instrument=instrument, rubric=rubric)
    answers, labels = answers_behind(instrument=instrument, rubric=rubric, chosen=chosen, results=results)
    page = Paginator(answers, PAGE_SIZE).get_page(request.GET.get("page"))
    shown = list(page.object_list)
    if labels is None:
        labels = labels_of(
            instrument=instrument,
            rubric=rubric,
            answer_ids=[answer.pk for answer in shown],
            basis=results.choice.basis,
        )
    query = {key: value for key, value in request.GET.items() if key != "page"}
    context = {
        "study": study,
        "instrument": instrument,
        "page": page,
        "criteria": labels.criteria,
        "rows": answer_rows(shown, labels),
        "chosen": chosen,
        "groups": groups.items(),
        "positions": instrument.stimuli.filter(is_practice=False).values_list("position", flat=True),
        "complexities": Complexity.choices,
        "states": STATES.items(),
        "query": urlencode(query),
        "results": results,
        "n_uncounted": n_uncounted,
    }
    return render(request, "reports/result_answers.html", context)


def _chosen(request: HttpRequest, groups: dict[str, str]) -> AnswerFilter:
    """The address's choice. What it does not know is a 404: a list that silently shows all would answer wrongly."""
    given = {key: str(value) for key, value in request.GET.items() if value}
    allowed: dict[str, Any] = {
        "group": groups,
        "shuffled": {"yes", "no"},
        "complexity": Complexity.values,
        "state": STATES,
    }
    for key, values in allowed.items():
        if key in given and given[key] not in values:
            raise Http404
    stimulus = given.get("stimulus", "")
    if stimulus and not (stimulus.isascii() and stimulus.isdigit() and len(stimulus) < 5):
        raise Http404
    return AnswerFilter(
        group=given.get("group", ""),
        stimulus=int(stimulus) if stimulus else None,
        shuffled=given["shuffled"] == "yes" if "shuffled" in given else None,
        complexity=given.get("complexity", ""),
        state=given.get("state", ""),
    )
