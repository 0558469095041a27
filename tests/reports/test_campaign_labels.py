"""Frozen labels: their versions and digests, Dawid–Skene beside them, adjudication of what is flagged."""

import csv
import io

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.urls import reverse

from annotation.adjudication import adjudication_record, case_of
from annotation.deciding import items_to_decide
from annotation.models import Campaign, LabelVersion, Rater
from annotation.places import Remark, label_withdraw
from annotation.removal import answers_remove
from annotation.services import campaign_close
from annotation.versions import chain_verify, versions_catch_up
from annotation.votes import labels_of_round
from corpus.models import Instrument, Sitting
from scoring.models import Judgement, Round
from scoring.selectors import labels_of
from tests.annotation.factories import NO, YES, give, make_campaign, make_rater, make_sitting, post
from tests.conftest import Cast

COMMENT = "сомневаюсь в порядке слов"


@pytest.fixture
def raters(cast: Cast) -> list[Rater]:
    return [make_rater(cast.study, name) for name in ("lena", "misha", "nina")]


@pytest.fixture
def closed(cast: Cast, instrument: Instrument, raters: list[Rater]) -> Campaign:
    """Three answers: a majority, a majority that is flagged and shared by a fourth answer, a tie. Closed."""
    make_sitting(instrument)
    make_sitting(instrument)
    campaign = make_campaign(cast.study, cast.alice, adjudicator=raters[2].user)
    items = list(campaign.items.order_by("position"))
    for root, other in zip(items[::2], items[1::2], strict=True):
        other.places.all().delete()
        other.same_as = root
        other.save(update_fields=["same_as"])
    for item, said in zip(items[::2], ((YES, YES), (YES, YES), (YES, NO)), strict=True):
        for rater, values in zip(raters, said, strict=False):
            flagged = item == items[2] and rater == raters[0]
            remark = Remark(is_flagged=flagged, comment=COMMENT if flagged else "")
            post(give(item, rater), rater, values, remark=remark)
    campaign_close(campaign=campaign, actor=cast.alice)
    campaign.refresh_from_db()
    return campaign


def test_flagged_answers_go_to_the_adjudicator_and_majorities_may_be_overruled(
    cast: Cast, closed: Campaign, raters: list[Rater]
) -> None:
    items = list(closed.items.order_by("position"))
    assert items_to_decide(closed) == [items[2].pk, items[4].pk]
    flagged = items[2]
    page = cast.client(raters[2].user).get(reverse("decide", args=[flagged.uuid])).content.decode()
    assert COMMENT in page
    assert not any(f"{rater.user.username}" in page.split("<main")[1] for rater in raters[:2])
    assert [criterion.code for criterion in case_of(flagged).criteria] == ["grammatical", "logical", "order"]
    decide = {"rater_id": raters[2].pk, "reason": "порядок нарушен"}
    assert adjudication_record(item_uuid=flagged.uuid, values=YES | {"order": 0.0}, **decide) == 3
    assert items_to_decide(closed) == [items[4].pk]
    labels = labels_of_round(closed)
    # The answer with the same text has the decision too, as a copy.
    for item in items[2:4]:
        assert (labels[item.pk]["order"].value, labels[item.pk]["order"].basis) == (0.0, "adjudication")
    copies = Judgement.objects.filter(round__adjudicates=closed.round, shared_from__isnull=False)
    assert set(copies.values_list("answer_id", flat=True)) == {items[3].answer_id}
    assert adjudication_record(item_uuid=flagged.uuid, values=YES, **decide) == 1
    assert copies.filter(retracted_at=None).count() == 3
    assert labels_of_round(closed)[items[3].pk]["order"].value == 1.0


def test_every_change_of_frozen_labels_adds_a_version(cast: Cast, closed: Campaign, raters: list[Rater]) -> None:
    items = list(closed.items.order_by("position"))
    first = closed.label_versions.get()
    assert first.policy["counts"] == {"answers": 6, "votes": 36, "labels": 12, "undecided": 6}
    assert chain_verify(closed) == []
    decide = {"rater_id": raters[2].pk, "reason": "так говорят"}
    adjudication_record(item_uuid=items[4].uuid, values=YES, **decide)
    adjudication_record(item_uuid=items[4].uuid, values=YES, **decide)  # the same again: nothing changed
    adjudication_record(item_uuid=items[4].uuid, values=NO, **decide)
    label_withdraw(place_id=items[0].places.get(rater=raters[0]).pk, actor=cast.alice, reason="ошибка")
    sitting = items[1].answer.sitting
    sitting.standing = Sitting.Standing.EXCLUDED
    sitting.save(update_fields=["standing"])
    versions_catch_up(campaign=closed)
    assert versions_catch_up(campaign=closed) is None
    sitting.standing = Sitting.Standing.COUNTED
    sitting.save(update_fields=["standing"])
    versions_catch_up(campaign=closed)
    answers_remove(answer_ids=[items[2].answer_id])
    kinds = list(closed.label_versions.order_by("version").values_list("change__kind", flat=True))
    assert kinds == [None, "decision", "decision", "label_withdrawn", "standing", "standing", "answer_withdrawn"]
    assert chain_verify(closed) == []
    assert not any("ошибка" in str(one.change) or "говорят" in str(one.change) for one in LabelVersion.objects.all())
    call_command("labels_verify", study="ours")


@pytest.mark.parametrize("harm", ["value", "retract", "change", "decision"])
def test_a_chain_that_was_tampered_with_does_not_hold(
    cast: Cast, closed: Campaign, raters: list[Rater], harm: str
) -> None:
    item = closed.items.order_by("position")[4]
    adjudication_record(item_uuid=item.uuid, values=YES, rater_id=raters[2].pk, reason="так")
    votes = Judgement.objects.filter(round=closed.round)
    if harm == "value":
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute("ALTER TABLE scoring_judgement DISABLE TRIGGER USER")
            cursor.execute("UPDATE scoring_judgement SET value = 1 - value WHERE id = %s", [votes.first().pk])
            cursor.execute("ALTER TABLE scoring_judgement ENABLE TRIGGER USER")
    elif harm == "retract":
        votes.filter(pk=votes.first().pk).update(retracted_at=closed.closed_at)
    elif harm == "change":
        closed.label_versions.filter(version=2).update(change={"kind": "decision"})
    else:
        Judgement.objects.filter(round__adjudicates=closed.round).update(retracted_at=closed.closed_at)
    assert chain_verify(closed)
    with pytest.raises(CommandError):
        call_command("labels_verify")


def test_the_page_its_files_and_who_may_see_them(cast: Cast, closed: Campaign, raters: list[Rater]) -> None:
    client = cast.client(cast.alice)
    page, wide = (
        reverse("campaign_labels", args=["ours", closed.pk]),
        reverse("label_file", args=["ours", closed.pk, "wide"]),
    )
    assert closed.label_versions.get().sha256 in client.get(page).content.decode()
    assert "and it holds" in client.get(page, {"verify": "1"}).content.decode()
    text = b"".join(client.get(wide).streaming_content).decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["order"] for row in rows] == ["1", "1", "1", "1", "", ""]
    assert {row["order_votes"] for row in rows} == {"2"}
    assert client.get(reverse("label_file", args=["ours", closed.pk, "long"])).status_code == 200
    assert client.get(reverse("label_file", args=["ours", closed.pk, "other"])).status_code == 404
    for address in (page, wide):
        assert cast.client(cast.bob).get(address).status_code == 404
        assert cast.client(raters[0].user).get(address).status_code == 404
    assert cast.client(raters[0].user).post(page, {"do": "freeze"}).status_code == 404


def test_imported_rounds_make_labels(cast: Cast, instrument: Instrument, raters: list[Rater]) -> None:
    sitting = make_sitting(instrument)
    rubric = make_campaign(cast.study, cast.alice).round.rubric
    imported = Round.objects.create(study=cast.study, rubric=rubric, purpose=Round.Purpose.IMPORTED)
    criterion = rubric.criteria.get(code="order")
    answer = sitting.answers.order_by("pk").first()
    for rater in raters[:2]:
        Judgement.objects.create(round=imported, answer=answer, criterion=criterion, judge=rater.judge, value=1.0)
    (found,) = [one for one in labels_of(instrument=instrument, rubric=rubric).answers if one.pk == answer.pk]
    assert (found.labels[2].value, found.labels[2].basis, found.labels[2].votes) == (1.0, "majority", 2)


def test_versions_are_short_and_say_which_answer(cast: Cast, closed: Campaign, raters: list[Rater]) -> None:
    item = closed.items.order_by("position")[4]
    adjudication_record(item_uuid=item.uuid, values=YES, rater_id=raters[2].pk, reason="так говорят")
    address = reverse("campaign_labels", args=["ours", closed.pk])
    page = cast.client(cast.alice).get(address).content.decode()
    answer = str(item.answer.blind_id)
    assert f'?item={item.pk}" title="{answer}"><code>{answer[:8]}</code></a>' in page
    for one in closed.label_versions.all():
        whole = one.sha256
        assert f'<summary title="{whole}"><code>{whole[:12]}</code></summary><code class="text-break">{whole}<' in page
    answers_remove(answer_ids=[item.answer_id])
    page = cast.client(cast.alice).get(address).content.decode()
    assert f"?item={item.pk}" not in page
