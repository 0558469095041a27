"""A person takes it all back. The only place that knows every layer which holds their words.

See docs/decisions/0007-withdrawal.md. What comes to hold a text of a participant gets a step in `STEPS`; the walk in
tests/reports/test_withdrawal.py looks for the text in every column of the database.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date

from django.db import transaction
from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

from annotation.import_drafts import judgement_drafts_discard
from annotation.removal import answers_remove, remarks_blank
from corpus.display import display_text
from corpus.models import Answer, AnswerRevision, Sitting
from corpus.quoting import Quoted
from corpus.services import sitting_withdraw, standing_reasons_blank
from llmruns.removal import judged_answers_remove
from reports.models import ReleaseMember
from reports.releases.services import releases_recall
from scoring.classifiers.services import classifiers_flag_withdrawn
from scoring.services import reasons_blank
from studies.models import Study, User
from studies.services import audit_quotations_blank, audit_record
from surveys.import_drafts import drafts_discard
from surveys.models import Participant, PracticeAnswer, QuestionResponse
from surveys.receipts import receipt_digest
from surveys.rights import participant_blank, quotations_blank


class Way(TextChoices):
    """How the wish reached us."""

    RECEIPT = "receipt", _("by the receipt code")
    OWN_LINK = "own_link", _("by the participant's own link")
    REQUEST = "request", _("at their request, by a researcher")


@dataclass(frozen=True)
class Withdrawal:
    """What is being taken back: gathered before anything is blanked, since afterwards nobody knows the texts."""

    study: Study
    participant: Participant
    sitting_ids: list[int]
    answer_ids: list[int]
    quoted: Quoted
    ids: set[str]
    how: str
    actor: User | None
    counts: dict[str, int] = field(default_factory=dict)


Step = Callable[[Withdrawal], int]


def _sittings(found: Withdrawal) -> int:
    for pk in found.sitting_ids:
        sitting_withdraw(sitting_id=pk, reason=found.how, actor=found.actor)
    return len(found.sitting_ids)


def _campaigns(found: Withdrawal) -> int:
    return answers_remove(answer_ids=found.answer_ids)


def _judge_calls(found: Withdrawal) -> int:
    return judged_answers_remove(answer_ids=found.answer_ids)


def _notes(found: Withdrawal) -> int:
    blank = found.quoted.out_of
    return (
        reasons_blank(study=found.study, answer_ids=found.answer_ids, blank=blank)
        + standing_reasons_blank(study=found.study, blank=blank)
        + remarks_blank(study=found.study, blank=blank)
        + audit_quotations_blank(study=found.study, blank=found.quoted.out_of_json)
    )


def _participant(found: Withdrawal) -> int:
    quotations_blank(study=found.study, participant=found.participant, ids=found.ids, blank=found.quoted.out_of_json)
    return int(participant_blank(participant=found.participant))


def _classifiers(found: Withdrawal) -> int:
    return classifiers_flag_withdrawn(respondent_id=found.participant.respondent_id)


def _drafts(found: Withdrawal) -> int:
    return drafts_discard(study=found.study) + judgement_drafts_discard(study=found.study)


def _releases(found: Withdrawal) -> int:
    return releases_recall(respondent_id=found.participant.respondent_id, blank=found.quoted.out_of, study=found.study)


# In this order; each returns how many rows it changed, for the log. Whoever brings a table that holds what a
# participant wrote adds its step here.
STEPS: tuple[tuple[str, Step], ...] = (
    ("sittings", _sittings),
    ("campaign_answers", _campaigns),
    ("judge_calls", _judge_calls),
    ("classifiers", _classifiers),
    ("notes", _notes),
    ("participant", _participant),
    ("import_drafts", _drafts),
    ("releases", _releases),
)


@transaction.atomic
def participant_withdraw(*, participant_id: int, way: str, reason: str = "", actor: User | None = None) -> bool:
    """Blank everything that holds this person's words and take their sittings out of every count.

    All or nothing. False: it had been done before, and nothing changed. `reason` is a researcher's, of a written
    request. The study is locked first, as by whoever opens a campaign, so that no text is copied meanwhile; then the
    participant, the campaigns, the places.
    """
    study_id = Participant.objects.values_list("respondent__study", flat=True).get(pk=participant_id)
    study = Study.objects.select_for_update(no_key=True).get(pk=study_id)
    participant = (
        Participant.objects.select_for_update(of=("self",), no_key=True)
        .select_related("survey__instrument")
        .get(pk=participant_id)
    )
    if participant.withdrawn_at is not None:
        return False
    found = _gathered(study, participant, way, actor)
    for name, step in STEPS:
        found.counts[name] = step(found)
    detail = {"way": str(way), **found.counts} | ({"reason": found.quoted.out_of(reason)} if reason else {})
    audit_record(actor=actor, study=study, action="participant_withdraw", target=participant, detail=detail)
    return True


def _gathered(study: Study, participant: Participant, way: str, actor: User | None) -> Withdrawal:
    sittings = (
        Sitting.objects.select_for_update(no_key=True).filter(respondent=participant.respondent_id).order_by("pk")
    )
    sitting_ids = list(sittings.values_list("pk", flat=True))
    answers = Answer.objects.filter(sitting__in=sitting_ids)
    texts = set(answers.values_list("text", flat=True))
    texts |= set(AnswerRevision.objects.filter(answer__in=answers).values_list("text", flat=True))
    texts |= set(PracticeAnswer.objects.filter(participant=participant).values_list("text", flat=True))
    for value, earlier in QuestionResponse.objects.filter(participant=participant).values_list("value", "earlier"):
        texts |= {one for one in [value, *(past.get("value") for past in earlier)] if isinstance(one, str)}
    lower_case = participant.survey.instrument.lower_case
    shown = {display_text(text, lower_case=lower_case) for text in texts}
    ids = {participant.external_id, participant.visit_id} - {""}
    return Withdrawal(
        study=study,
        participant=participant,
        sitting_ids=sitting_ids,
        answer_ids=list(answers.values_list("pk", flat=True)),
        quoted=Quoted(texts | shown, ids),
        ids=ids,
        how=str(way),
        actor=actor,
    )


# --- what the pages ask before ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Held:
    """What a person is shown of their own part: enough to recognise it, and nothing that they said."""

    participant: Participant
    day: date
    answers: int
    withdrawn: bool
    published: bool  # a release with their answers is, or was, given out


def held_by_receipt(code: str) -> Held | None:
    """The participation that a receipt code belongs to. Three queries, one for what can be no code's."""
    digest = receipt_digest(code)
    found = (
        digest and Participant.objects.filter(receipt_digest=digest).select_related("survey__instrument__study").first()
    )
    return held_by(found) if found else None


def held_by(participant: Participant) -> Held:
    """Two queries."""
    answers = Answer.objects.filter(sitting__respondent=participant.respondent_id, stimulus__is_practice=False)
    return Held(
        participant=participant,
        day=participant.created_at.date(),
        answers=answers.count(),
        withdrawn=participant.withdrawn_at is not None,
        published=ReleaseMember.objects.filter(respondent=participant.respondent_id).exists(),
    )
