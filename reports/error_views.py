"""The page of errors with the given words, its files, and the accepted forms of a stimulus."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from corpus.models import Instrument, Stimulus
from corpus.tokens import word_tokens
from reports.choice import Chosen, chosen_of
from reports.csvfile import stream
from reports.errors import OF_ANSWERS, OF_WORDS, Errors, Tally, Word, errors_of
from reports.export_views import file_name
from reports.result_views import instrument_shown
from reports.selectors import PEOPLE, rubric_of
from reports.words import ERROR_WORDS, FORM_FAULTS
from scoring.accepted import AcceptedFormError, accepted_form_add, accepted_form_retire, accepted_forms_prepare
from scoring.lemmas import RUSSIAN
from scoring.models import AcceptedForm
from studies.access import SignedIn, unblinded_study
from studies.models import Study

SHOWN = 60
ERROR_COLUMNS = (
    "study",
    "simulated",
    "group",
    "position",
    "n_answers",
    "n_matching",
    *(f"n_{kind}" for kind in OF_ANSWERS),
    *(name for kind in OF_WORDS for name in (f"n_{kind}_missed", f"n_{kind}_used")),
)
ERROR_WORD_COLUMNS = (
    "study",
    "simulated",
    "group",
    "position",
    "kind",
    "given",
    "used",
    "needed",
    "n_answers",
    "example",
)


@dataclass(frozen=True, slots=True)
class Count:
    n: int
    of: int

    @property
    def percent(self) -> float | None:
        return 100 * self.n / self.of if self.of else None


@dataclass(frozen=True, slots=True)
class Line:
    label: str
    href: str
    position: int | None
    answers: int
    counts: list[Count]


@dataclass(frozen=True, slots=True)
class _Asked:
    study: Study
    instruments: list[Instrument]
    instrument: Instrument
    chosen: Chosen
    errors: Errors


def _asked(request: SignedIn, slug: str) -> _Asked:
    """Raises Http404 where there is no instrument, or no such choice."""
    study = unblinded_study(request.user, slug)
    instruments, instrument = instrument_shown(study, request)
    if instrument is None:
        raise Http404
    accepted_forms_prepare(study=study)  # those that come with the published study: see result_views.current_results
    rubric = rubric_of(instrument)
    chosen = chosen_of(given=request.GET.dict(), study=study, instrument=instrument, rubric=rubric)
    return _Asked(study, instruments, instrument, chosen, errors_of(instrument, chosen))


@login_required
@require_safe
def errors(request: SignedIn, slug: str) -> HttpResponse:
    asked = _asked(request, slug)
    found, instrument = asked.errors, asked.instrument
    group = request.GET.get("group") or PEOPLE
    if group not in found.groups:
        raise Http404
    stimulus = _stimulus(request, found)
    kinds = [*OF_ANSWERS, *(OF_WORDS if instrument.language == RUSSIAN else ())]
    query = {"instrument": instrument.pk, **asked.chosen.choice.query}
    words = found.words.get((group, stimulus.pk), []) if stimulus else []
    context = {
        "study": asked.study,
        "instruments": asked.instruments,
        "instrument": instrument,
        "chosen": asked.chosen,
        "group": group,
        "group_label": found.groups[group],
        "groups": found.groups.items(),
        "kinds": [ERROR_WORDS[kind] for kind in kinds],
        "is_russian": instrument.language == RUSSIAN,
        "lines": [
            _line(label, query | {"group": key}, None, found.total(key), kinds) for key, label in found.groups.items()
        ],
        "stimuli": [
            _line(
                one.text,
                query | {"group": group, "stimulus": one.position},
                one.position,
                found.tally(group, one.pk),
                kinds,
            )
            for one in found.stimuli
        ],
        "stimulus": stimulus,
        "words": [(ERROR_WORDS[word.kind], word) for word in words[:SHOWN]],
        "n_more": max(0, len(words) - SHOWN),
        "forms": _forms(stimulus),
        "given": dict.fromkeys(word_tokens(stimulus.text)) if stimulus else [],
        "query": urlencode(query),
        "here": urlencode(query | {"group": group} | ({"stimulus": stimulus.position} if stimulus else {})),
    }
    return render(request, "reports/errors.html", context)


def _stimulus(request: HttpRequest, found: Errors) -> Stimulus | None:
    wanted = request.GET.get("stimulus")
    if not wanted:
        return None
    chosen = next((one for one in found.stimuli if str(one.position) == wanted), None)
    if chosen is None:
        raise Http404
    return chosen


def _line(label: str, query: dict[str, Any], position: int | None, tally: Tally, kinds: Sequence[Any]) -> Line:
    counts = [Count(tally.matching, tally.answers), *(Count(tally.n[kind], tally.of(kind)) for kind in kinds)]
    return Line(label, f"?{urlencode(query)}", position, tally.answers, counts)


def _forms(stimulus: Stimulus | None) -> list[AcceptedForm]:
    return list(stimulus.accepted_forms.filter(retired_at__isnull=True).order_by("pk")) if stimulus else []


@login_required
@require_safe
def errors_csv(request: SignedIn, slug: str) -> StreamingHttpResponse:
    asked = _asked(request, slug)
    return _file(request, asked.study, "errors", ERROR_COLUMNS, _rows(asked, in_words=_for_excel(request)))


@login_required
@require_safe
def error_words_csv(request: SignedIn, slug: str) -> StreamingHttpResponse:
    asked = _asked(request, slug)
    rows = _word_rows(asked, in_words=_for_excel(request))
    return _file(request, asked.study, "error_words", ERROR_WORD_COLUMNS, rows)


def _for_excel(request: HttpRequest) -> bool:
    return request.GET.get("for") == "excel"


def _groups(asked: _Asked, *, in_words: bool) -> list[tuple[str, str]]:
    """Keys and names; for programs, people are called the same in every language."""
    return [(key, PEOPLE if key == PEOPLE and not in_words else label) for key, label in asked.errors.groups.items()]


def _rows(asked: _Asked, *, in_words: bool) -> Iterator[list[Any]]:
    found, is_russian = asked.errors, asked.instrument.language == RUSSIAN
    for key, label in _groups(asked, in_words=in_words):
        for stimulus in found.stimuli:
            tally = found.tally(key, stimulus.pk)
            changes = [(tally.n[kind], tally.used[kind]) if is_russian else (None, None) for kind in OF_WORDS]
            yield [
                asked.study.slug,
                asked.study.simulated,
                label,
                stimulus.position,
                tally.answers,
                tally.matching,
                *(tally.n[kind] for kind in OF_ANSWERS),
                *(number for pair in changes for number in pair),
            ]


def _word_rows(asked: _Asked, *, in_words: bool) -> Iterator[list[Any]]:
    found = asked.errors
    for key, label in _groups(asked, in_words=in_words):
        for stimulus in found.stimuli:
            for word in found.words.get((key, stimulus.pk), []):
                yield [asked.study.slug, asked.study.simulated, label, stimulus.position, *_cells(word)]


def _cells(word: Word) -> list[Any]:
    return [word.kind, word.given or None, word.used or None, word.needed or None, word.n, word.examples[0]]


def _file(
    request: HttpRequest, study: Study, name: str, columns: Sequence[str], rows: Iterator[list[Any]]
) -> StreamingHttpResponse:
    for_excel = _for_excel(request)
    pieces = stream(columns, rows, for_excel=for_excel, decimal_comma=get_language() == "ru")
    response = StreamingHttpResponse(pieces, content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{file_name(study, name, for_excel)}.csv"'
    return response


@login_required
@require_POST
def accepted_add(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    stimulus = get_object_or_404(Stimulus, pk=pk, instrument__study=study, is_practice=False)
    try:
        made = accepted_form_add(
            stimulus=stimulus,
            lemma=request.POST.get("given", ""),
            form=request.POST.get("form", ""),
            actor=request.user,
        )
    except AcceptedFormError as error:
        messages.error(request, FORM_FAULTS[str(error)])
    else:
        messages.success(
            request, _("“%(form)s” now stands for “%(given)s”.") % {"form": made.form, "given": made.lemma}
        )
    return HttpResponseRedirect(_back(study, stimulus))


@login_required
@require_POST
def accepted_retire(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    found = get_object_or_404(AcceptedForm, pk=pk, stimulus__instrument__study=study)
    accepted_form_retire(accepted=found, actor=request.user)
    messages.success(
        request, _("“%(form)s” does not stand for “%(given)s” any more.") % {"form": found.form, "given": found.lemma}
    )
    return HttpResponseRedirect(_back(study, found.stimulus))


def _back(study: Study, stimulus: Stimulus) -> str:
    query = urlencode({"instrument": stimulus.instrument_id, "stimulus": stimulus.position})
    return f"{reverse('errors', args=[study.slug])}?{query}#forms"
