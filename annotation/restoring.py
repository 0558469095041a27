"""Raters and campaigns of a published dataset: closed, with what raters did and nothing of when."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from annotation.models import Campaign, Item, Place, Rater, Seat
from annotation.versions import decision_change, labels_freeze, version_add
from corpus.display import display_text
from corpus.models import Answer
from corpus.tokens import is_refusal
from scoring.models import Criterion, Judge, Judgement, Round
from studies.models import Study, User

BATCH = 5_000


@transaction.atomic
def raters_restore(*, study: Study, pseudonyms: Sequence[str]) -> dict[str, Rater]:
    """By the pseudonym that they have in the dataset, and keep. Who they are is not known here."""
    judges = Judge.objects.bulk_create(Judge(kind=Judge.Kind.RATER) for _ in pseudonyms)
    raters = Rater.objects.bulk_create(
        Rater(study=study, judge=judge, pseudonym=name, imported_name=name)
        for name, judge in zip(pseudonyms, judges, strict=True)
    )
    return {one.pseudonym: one for one in raters}


@dataclass(frozen=True, slots=True)
class RestoredCampaign:
    round: Round  # closed
    title: str
    criteria: Collection[Criterion]
    raters_per_answer: int
    identical: str
    repeat_round: Round | None = None


@transaction.atomic
def campaign_restore(
    *, study: Study, given: RestoredCampaign, answers: Mapping[int, Answer], actor: User | None
) -> Campaign:
    """The closed campaign of a round that has its judgements, with its labels frozen anew.

    The adjudicator's judgements come after it: `decisions_restore`. `answers` come with stimulus and instrument; every
    answer of which there is a judgement is among them. Answers that shared a judgement stand at the one it was given
    for. Some ten queries, and one insert per 5,000 rows.
    """
    judged = Judgement.objects.filter(round=given.round)
    pairs = sorted(set(judged.filter(shared_from=None).values_list("answer_id", "judge_id")))
    shared = dict(judged.exclude(shared_from=None).values_list("answer_id", "shared_from__answer_id"))
    campaign = Campaign.objects.create(
        round=given.round,
        repeat_round=given.repeat_round,
        study=study,
        title=given.title,
        state=Campaign.State.CLOSED,
        closed_at=given.round.closed_at,
        raters_per_answer=given.raters_per_answer,
        identical=given.identical,
        seed=0,
        selection={"imported": ["release"], "answers": len({pk for pk, _judge in pairs} | set(shared))},
        with_refusals=False,
    )
    campaign.criteria.set(given.criteria)
    own = {pk for pk, _judge in pairs}
    items = _items(campaign, own | set(shared), {pk: to for pk, to in shared.items() if pk not in own}, answers)
    campaign.n_items = sum(item.same_as is None for item in items.values())
    campaign.n_places = len(pairs)
    campaign.with_refusals = any(item.is_refusal for item in items.values())
    campaign.save(update_fields=["n_items", "n_places", "with_refusals"])
    _places(campaign, items, pairs)
    labels_freeze(campaign=campaign, actor=actor)
    return campaign


@transaction.atomic
def decisions_restore(*, campaign: Campaign, actor: User | None) -> int:
    """A version of the frozen labels for each decision of the adjudicator, as if made here. Returns how many.

    Its judgements are there already. A few queries for each decision.
    """
    live = Judgement.objects.filter(round__adjudicates=campaign.round_id, retracted_at__isnull=True)
    decided: dict[tuple[int, int], list[Judgement]] = defaultdict(list)
    for one in live.select_related("criterion", "shared_from").order_by("pk"):
        origin = one.shared_from.answer_id if one.shared_from else one.answer_id
        decided[origin, one.judge_id].append(one)
    items = {one.answer_id: one for one in campaign.items.select_related("answer")}
    raters = {one.judge_id: one for one in Rater.objects.filter(study=campaign.study_id)}
    for (answer, judge), judgements in decided.items():
        others = {one.answer_id for one in judgements} - {answer}
        change = decision_change(
            item=items[answer], rater=raters[judge], judgements=judgements, retracted=[], sharing=others
        )
        version_add(campaign=campaign, change=change, actor=actor)
    return len(decided)


def _items(
    campaign: Campaign, judged: Collection[int], shared: Mapping[int, int], answers: Mapping[int, Answer]
) -> dict[int, Item]:
    found: dict[int, Item] = {}
    in_order = sorted(judged, key=lambda pk: (answers[pk].stimulus.instrument_id, answers[pk].stimulus.position, pk))
    for position, pk in enumerate(in_order, start=1):
        answer = answers[pk]
        instrument = answer.stimulus.instrument
        found[pk] = Item(
            campaign=campaign,
            answer=answer,
            position=position,
            stimulus_text=answer.stimulus.text,
            display_text=display_text(answer.text, lower_case=instrument.lower_case),
            language=instrument.language,
            is_refusal=answer.outcome != Answer.Outcome.GIVEN or is_refusal(answer.text, instrument.refusal_below),
        )
    Item.objects.bulk_create([item for pk, item in found.items() if pk not in shared], batch_size=BATCH)
    for pk, origin in shared.items():
        found[pk].same_as = found[origin]
    Item.objects.bulk_create([found[pk] for pk in shared], batch_size=BATCH)
    return found


def _places(campaign: Campaign, items: Mapping[int, Item], pairs: Sequence[tuple[int, int]]) -> None:
    """A judged place for each rater at each item that they judged, and a seat with how many."""
    raters = {one.judge_id: one for one in Rater.objects.filter(study=campaign.study_id)}
    now = timezone.now()
    numbers: Counter[int] = Counter()
    done: Counter[int] = Counter()
    places = []
    for pk, judge in pairs:
        rater = raters[judge]
        numbers[pk] += 1
        done[rater.pk] += 1
        places.append(
            Place(
                item=items[pk],
                campaign=campaign,
                number=numbers[pk],
                state=Place.State.DONE,
                rater=rater,
                held_at=now,
                done_at=now,
                ordinal=done[rater.pk],
                version=1,
            )
        )
    Place.objects.bulk_create(places, batch_size=BATCH)
    seats = [Seat(campaign=campaign, rater_id=pk, done=n, revision=1) for pk, n in sorted(done.items())]
    Seat.objects.bulk_create(seats, batch_size=BATCH)
