"""What happens to an imported campaign after the import: as to any other that is closed."""

import json
from collections.abc import Callable

from annotation.import_report import ImportReport
from annotation.importers.plan import Source
from annotation.models import Campaign, Item, Place, Rater
from annotation.quality import quality_of
from annotation.selectors import raters_progress
from annotation.services import adjudicator_set, rater_deactivate
from annotation.versions import chain_verify
from annotation.votes import campaign_agreement, labels_of_round
from corpus.models import Answer, Instrument
from reports.withdrawal import Way, participant_withdraw
from scoring.models import Judgement
from surveys.services import survey_create
from tests.annotation.factories import make_rater
from tests.annotation.importing.conftest import YES_NO, ls, ls_annotation, ls_task, table
from tests.conftest import Cast
from tests.surveys.people import make_person

Run = Callable[..., ImportReport]


def test_what_is_undecided_is_decided_by_an_adjudicator(cast: Cast, answers: list[Answer], run: Run) -> None:
    first, second = answers[0].blind_id, answers[3].blind_id
    run(
        table(
            (first, "лена", "да", "да", "да"),
            (first, "миша", "нет", "да", "да"),
            (second, "лена", "да", "да", "да"),
            (second, "миша", "да", "да", "да"),
        )
    )
    campaign = Campaign.objects.get()
    adjudicator_set(campaign=campaign, user=cast.rita, actor=cast.alice)
    rita = cast.client(cast.rita)
    address = rita.get(f"/rate/c/{campaign.pk}/decide/")["Location"]
    page = rita.get(address).content.decode()
    assert "кошка сидит на столе" in page and "лена" not in page and "миша" not in page
    response = rita.post(address, {"c-grammatical": "1", "reason": "так говорят", "version": "0"})
    assert response.status_code == 302, response.content.decode()
    item = Item.objects.get(answer=answers[0])
    label = labels_of_round(campaign)[item.pk]["grammatical"]
    assert (label.value, label.basis) == (1, "adjudication")
    assert chain_verify(campaign) == [] and campaign.label_versions.count() == 2


def test_of_an_import_the_raters_are_those_of_its_files(cast: Cast, answers: list[Answer], run: Run) -> None:
    make_rater(cast.study, "lena")
    run(table((answers[0].blind_id, "миша", "да", "да", "да")), title="First")
    run(table((answers[0].blind_id, "нина", "да", "да", "да")), title="Second")
    first, second = Campaign.objects.order_by("pk")
    assert [(row.name, row.done) for row in raters_progress(first)] == [("миша", 1)]
    assert [(row.name, row.done) for row in raters_progress(second)] == [("нина", 1)]
    page = cast.client(cast.alice).get(f"/studies/ours/campaigns/{first.pk}/").content.decode()
    assert "миша" in page and "/studies/ours/raters/" not in page, "who has no account has no work to end"


def test_a_rater_who_goes_leaves_the_votes(cast: Cast, answers: list[Answer], run: Run) -> None:
    """One who is known only by an imported name can be deactivated like any other."""
    run(table(*((one.blind_id, who, "да", "нет", "да") for one in answers for who in ("лена", "миша"))))
    campaign = Campaign.objects.get()
    before = labels_of_round(campaign), campaign_agreement(campaign)
    rater_deactivate(rater=Rater.objects.get(imported_name="лена"), actor=cast.alice)
    assert (labels_of_round(campaign), campaign_agreement(campaign)) == before


def test_how_raters_of_another_tool_worked(cast: Cast, answers: list[Answer], run: Run) -> None:
    """Their pace and order are those of the file; without times there is none, and no time of the import instead."""
    tasks = [
        ls_task(
            {"answer": str(one.blind_id)},
            ls_annotation(
                number,
                7,
                {"grammatical": ["да"]},
                lead_time=float(number),
                updated_at=f"2024-05-0{number}T10:00:00Z",
            ),
        )
        for number, one in enumerate(answers, start=1)
    ]
    run(ls(*tasks), settings={"key": "answer", "criteria": {"grammatical": YES_NO}})
    run(table(*((one.blind_id, "миша", "да", "нет", "да") for one in answers)), title="Undated")
    dated, undated = (quality_of(campaign).raters[0] for campaign in Campaign.objects.order_by("pk"))
    assert (dated.pace.median, dated.seconds, dated.done) == (3.5, 21, 6)
    assert [part.first.day for part in dated.parts] == [1, 3, 4, 5, 6]
    assert dated.active_at is not None and dated.active_at.isoformat().startswith("2024-05-06")
    assert (undated.standing, undated.done, undated.active_at, undated.parts) == ("imported", 6, None, [])
    for campaign in Campaign.objects.all():
        assert cast.client(cast.alice).get(f"/studies/ours/campaigns/{campaign.pk}/quality/").status_code == 200


def test_a_withdrawal_takes_the_text_and_what_raters_wrote_of_it(cast: Cast, instrument: Instrument, run: Run) -> None:
    survey = survey_create(
        instrument=instrument, title="S", contact="c@example.org", consent_text="Yes.", actor=cast.alice
    )
    gone, stays = (make_person(survey) for _ in range(2))
    lines = [
        {"answer": str(one.blind_id), "label": ["да"], "Comments": [f"сказано: {one.text}"]}
        for one in Answer.objects.order_by("pk")
    ]
    data = "\n".join(json.dumps(line) for line in lines).encode()
    run(Source("лена.jsonl", data), settings={"key": "answer", "labels": {"да": ["grammatical", 1]}})
    participant_withdraw(participant_id=gone.pk, way=Way.RECEIPT)
    of_gone = {"item__answer__sitting__respondent": gone.respondent_id}
    assert set(Place.objects.filter(**of_gone).values_list("comment", "item__display_text")) == {("", "")}
    of_other = {"item__answer__sitting__respondent": stays.respondent_id}
    assert all(
        text.startswith("сказано") for text in Place.objects.filter(**of_other).values_list("comment", flat=True)
    )
    assert Judgement.objects.count() == 6, "what is judged stays judged, a value without a text"
    assert len(labels_of_round(Campaign.objects.get())) == 3 and chain_verify(Campaign.objects.get()) == []
    again = [line for line in lines if line["answer"] in {str(one) for one in _ids(gone.respondent_id)}]
    source = Source("миша.jsonl", "\n".join(json.dumps(line) for line in again).encode())
    report = run(source, settings={"key": "answer", "labels": {"да": ["grammatical", 1]}}, title="Again")
    assert report.imported is None and [one.reason for one in report.skipped] == ["withdrawn"] * 3


def _ids(respondent: int) -> list[object]:
    return list(Answer.objects.filter(sitting__respondent=respondent).values_list("blind_id", flat=True))
