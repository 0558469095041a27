"""A campaign is opened: its answers, their order, its checks and its places are fixed, and all of it at once.

Locks as in `annotation.services`: the study first, so that two who press at once open one after the other.
"""

import json
import uuid
from datetime import datetime

from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from annotation.choosing import EVERYTHING, Selection
from annotation.errors import (
    CampaignClosedError,
    DeadlinePassedError,
    NothingToRateError,
    SelectionChangedError,
    TitleTakenError,
)
from annotation.layout import PLAIN, Layout, Plan, laid_out
from annotation.models import Campaign, Purpose, Rater, Reference
from annotation.services import adjudicator_set_within, guideline_ensure, rater_blind, rater_ensure, study_lock
from corpus.display import display_text
from scoring.models import Round, Rubric
from scoring.services import RUBRICS
from studies.database import violates
from studies.models import Membership, Role, Study, User
from studies.services import audit_record


@transaction.atomic
def campaign_open(
    *,
    study: Study,
    title: str,
    raters_per_answer: int,
    seed: int,
    actor: User,
    selection: Selection = EVERYTHING,
    plan: Plan = PLAIN,
    adjudicator: User | None = None,
    seen: str | None = None,
) -> Campaign:
    """Fix the answers and make their places: `raters_per_answer` for each that is judged, so there can never be more.

    What is in: `annotation.choosing`; in which order: `annotation.layout`, a shuffle by `seed` within stimuli, so a
    rater sees the answers to one stimulus together, people's and models' mixed. Of answers with the same display text
    to one stimulus the first in this order is judged for all, unless each is to be judged by itself. `seen` is the
    digest of what the researcher was shown. Takes seconds for 20,000 answers.

    Raises NothingToRateError, SelectionChangedError, TooManyPlacesError, RepeatsTooFarError, CriterionUnknownError,
    GuidelineUnknownError, DeadlinePassedError, TitleTakenError, JudgesSilentError, NotAMemberError (of the
    adjudicator).
    """
    if plan.deadline is not None and plan.deadline <= timezone.now():
        raise DeadlinePassedError
    study = study_lock(study.pk)
    if Campaign.objects.filter(study=study, title=title, state=Campaign.State.OPEN).exists():
        raise TitleTakenError
    layout = laid_out(study, selection, plan, seed=seed, raters_per_answer=raters_per_answer)
    if not layout.order:
        raise NothingToRateError
    digest = layout.digest()
    if seen is not None and seen != digest:
        raise SelectionChangedError(len(layout.order))
    judged_by = RUBRICS[plan.rubric]()
    campaign = _campaign_create(
        study=study,
        title=title,
        raters_per_answer=raters_per_answer,
        seed=seed,
        plan=plan,
        selection=selection,
        rounds=_rounds_create(study, judged_by, layout),
        layout=layout,
        digest=digest,
    )
    campaign.criteria.set(judged_by.criteria.filter(code__in=layout.codes))
    _items_create(campaign, layout)
    _raters_blind(study, actor)
    if adjudicator is not None:
        adjudicator_set_within(campaign, adjudicator, actor)
    audit_record(
        actor=actor,
        study=study,
        action="campaign_open",
        target=campaign,
        detail={
            "answers": len(layout.order),
            "items": layout.n_items,
            "raters_per_answer": raters_per_answer,
            "seed": seed,
            "with_refusals": selection.with_refusals,
            "only_new": selection.only_new,
            "rubric": judged_by.slug,
            "instrument": selection.instrument.pk if selection.instrument else None,
            "identical": plan.identical,
            "guideline": campaign.round.guideline_version,
            "sha256": digest,
        },
    )
    return campaign


@transaction.atomic
def campaign_deadline_set(*, campaign: Campaign, deadline: datetime | None, actor: User) -> None:
    """Move the day until which raters are asked to finish, or take it away. Nothing else of a campaign can be changed.

    Raises CampaignClosedError, DeadlinePassedError.
    """
    locked = Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)
    if locked.state != Campaign.State.OPEN:
        raise CampaignClosedError
    if locked.deadline == deadline:
        return
    if deadline is not None and deadline <= timezone.now():
        raise DeadlinePassedError
    before, locked.deadline = locked.deadline, deadline
    locked.save(update_fields=["deadline"])
    audit_record(
        actor=actor,
        study=campaign.study,
        action="campaign_deadline_set",
        target=locked,
        detail={"from": before and before.isoformat(), "to": deadline and deadline.isoformat()},
    )


def _rounds_create(study: Study, rubric: Rubric, layout: Layout) -> dict[str, Round]:
    """By the names of the campaign's fields. What raters do beside rating has a round of its own if there is any."""
    version = layout.guideline if layout.has_guideline else guideline_ensure(study, rubric).version
    wanted = {
        "round": (Round.Purpose.RATING, True),
        "training_round": (Round.Purpose.TRAINING, layout.n_references(Reference.Purpose.TRAINING) > 0),
        "gold_round": (Round.Purpose.GOLD, layout.n_references(Reference.Purpose.GOLD) > 0),
        "repeat_round": (Round.Purpose.REPEAT, bool(layout.repeated)),
    }
    return {
        name: Round.objects.create(study=study, rubric=rubric, purpose=purpose, guideline_version=version)
        for name, (purpose, is_needed) in wanted.items()
        if is_needed
    }


def _campaign_create(
    *,
    study: Study,
    title: str,
    raters_per_answer: int,
    seed: int,
    plan: Plan,
    selection: Selection,
    rounds: dict[str, Round],
    layout: Layout,
    digest: str,
) -> Campaign:
    numbers = {
        "found": layout.found.found,
        "answers": len(layout.order),
        "left_out_references": len(layout.found.references),
        "training": layout.n_references(Reference.Purpose.TRAINING),
        "gold": layout.n_references(Reference.Purpose.GOLD),
        "repeats": len(layout.repeated),
    }
    asked = {"asked": selection.as_json(), "plan": plan.as_json(), "numbers": numbers, "sha256": digest}
    try:
        with transaction.atomic():  # whoever opens holds the study; the constraint stands behind that lock
            return Campaign.objects.create(
                study=study,
                title=title,
                raters_per_answer=raters_per_answer,
                identical=plan.identical,
                seed=seed,
                with_refusals=selection.with_refusals,
                selection=asked,
                deadline=plan.deadline,
                repeat_distance=plan.repeat_distance if "repeat_round" in rounds else 0,
                gold_every=plan.gold_every if "gold_round" in rounds else 0,
                n_items=layout.n_items,
                n_places=layout.n_items * raters_per_answer,
                **rounds,
            )
    except IntegrityError as error:
        if violates(error, "campaign_one_open_per_title"):
            raise TitleTakenError from error
        raise


# --- items and places: written by COPY, since there may be tens of thousands --------------------------------------

IDS = "SELECT nextval(pg_get_serial_sequence('annotation_item', 'id')) FROM generate_series(1, %s) ORDER BY 1"
ITEMS = """
COPY annotation_item (id, uuid, campaign_id, answer_id, purpose, position, stimulus_text, display_text, language,
    is_refusal, same_as_id, is_repeated, expected, expected_not_attempt, explanation) FROM STDIN
"""
PLACES = """
INSERT INTO annotation_place (uuid, item_id, campaign_id, purpose, number, state, version, is_flagged, comment)
SELECT gen_random_uuid(), item.id, item.campaign_id, 'rating', number, 'free', 0, false, ''
FROM annotation_item AS item CROSS JOIN generate_series(1, %s) AS number
WHERE item.campaign_id = %s AND item.purpose = 'rating' AND item.same_as_id IS NULL ORDER BY item.id, number
"""


def _items_create(campaign: Campaign, layout: Layout) -> None:
    """Ids ascend with the position: the queue goes by them. References stand behind what is rated."""
    order, roots = layout.order, layout.roots
    with connection.cursor() as cursor:
        cursor.execute(IDS, [len(order) + len(layout.references)])
        ids = [pk for (pk,) in cursor.fetchall()]
        with cursor.copy(ITEMS) as copy:
            for number, candidate in enumerate(order):
                root = roots[number]
                copy.write_row(
                    (
                        ids[number],
                        uuid.uuid4(),
                        campaign.pk,
                        candidate.answer_id,
                        Purpose.RATING.value,
                        number + 1,
                        candidate.stimulus_text,
                        candidate.display_text,
                        candidate.language,
                        candidate.is_refusal,
                        None if root == number else ids[root],
                        number in layout.repeated,
                        None,
                        False,
                        "",
                    )
                )
            for number, reference in enumerate(layout.references, start=len(order)):
                copy.write_row((ids[number], uuid.uuid4(), campaign.pk, *_reference_row(reference, number + 1)))
        cursor.execute(PLACES, [campaign.raters_per_answer, campaign.pk])


def _reference_row(reference: Reference, position: int) -> tuple[object, ...]:
    made_for = reference.answer.stimulus.instrument
    return (
        reference.answer_id,
        reference.purpose,
        position,
        reference.answer.stimulus.text,
        display_text(reference.answer.text, lower_case=made_for.lower_case),
        made_for.language,
        False,
        None,
        False,
        json.dumps(reference.expected),
        reference.not_attempt,
        reference.explanation,
    )


def _raters_blind(study: Study, actor: User) -> None:
    """Members in this role become raters; whoever may rate is blinded from now on."""
    for member in Membership.objects.filter(study=study, role=Role.RATER, is_active=True).select_related("user"):
        rater_ensure(user=member.user, study=study, actor=actor)
    for rater in Rater.objects.filter(study=study, is_active=True).select_related("user"):
        rater_blind(rater)
