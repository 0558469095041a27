"""A study whose people have answered and whose raters' round is closed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils import timezone

from corpus.importing import read_stimuli
from corpus.models import Answer, Instrument, Respondent, Sitting
from corpus.services import instrument_create, instrument_freeze
from scoring.classifiers.services import split_ensure
from scoring.models import Criterion, Judge, Judgement, Round, Rubric, Split
from scoring.services import paper_rubric, round_close
from studies.models import Study
from tests.conftest import Cast
from tests.scoring.classifiers.tiny import base_make, sentences

STIMULI = """id,task,original,complexity,shuffled
1,кошка спать дома,кошка спала дома.,easy,false
2,"мышь бежать в сад",мышь бежала в саду.,easy,true
3,собака есть у река,собака ела у реки.,medium,false
4,девочка спать в сад,девочка спала в саду.,hard,true
"""


@pytest.fixture(scope="session")
def tiny_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return base_make(tmp_path_factory.mktemp("bases") / "tiny--bert")


@pytest.fixture
def folder(settings: object, tmp_path: Path) -> Iterator[Path]:
    """Where classifiers lie, for this test alone."""
    settings.CLASSIFIERS_DIR = tmp_path / "classifiers"  # type: ignore[attr-defined]
    settings.ML_THREADS = 1  # type: ignore[attr-defined]
    yield tmp_path / "classifiers"


@pytest.fixture
def test_of_four(cast: Cast) -> Instrument:
    return instrument_create(
        study=cast.study,
        slug="four",
        title="Four",
        language="ru",
        instruction="Составьте предложение.",
        stimuli=read_stimuli(STIMULI.encode()),
        actor=cast.alice,
        refusal_below=2,
    )


def people_answer(
    instrument: Instrument,
    n: int,
    *,
    seed: int = 1,
    kind: str = "human",
    standing: str = "counted",
    round_: Round | None = None,
) -> list[Answer]:
    """Finished sittings with sentences whose labels are known; two raters say so where there is a round."""
    instrument_freeze(instrument=instrument, actor=None)
    stimuli = list(instrument.stimuli.all())
    made = sentences(n * len(stimuli), seed=seed)
    respondents = Respondent.objects.bulk_create(Respondent(study=instrument.study, kind=kind) for _ in range(n))
    sittings = Sitting.objects.bulk_create(
        Sitting(
            respondent=respondent,
            instrument=instrument,
            order=[stimulus.pk for stimulus in stimuli],
            state="finished",
            standing=standing,
            source_label="survey",
            started_at=timezone.now(),
            finished_at=timezone.now(),
        )
        for respondent in respondents
    )
    answers = Answer.objects.bulk_create(
        Answer(sitting=sitting, stimulus=stimulus, outcome="given", text=made[row * len(stimuli) + place][0])
        for row, sitting in enumerate(sittings)
        for place, stimulus in enumerate(stimuli)
    )
    if round_ is not None:
        rate(round_, {answer: values for answer, (_text, *values) in zip(answers, made, strict=True)})
    return answers


def rate(round_: Round, values: dict[Answer, list[int]]) -> None:
    """Two raters agree: grammatical, logical, and order always right."""
    criteria = {criterion.code: criterion for criterion in round_.rubric.criteria.all()}
    judges = [Judge.objects.create(kind=Judge.Kind.RATER) for _ in range(2)]
    Judgement.objects.bulk_create(
        Judgement(round=round_, answer=answer, criterion=criteria[code], judge=judge, value=float(value))
        for answer, given in values.items()
        for code, value in zip(("grammatical", "logical", "order"), (*given, 1), strict=True)
        for judge in judges
    )


@pytest.fixture
def rubric(db: None) -> Rubric:
    return paper_rubric()


@pytest.fixture
def rating(cast: Cast, rubric: Rubric) -> Round:
    return Round.objects.create(study=cast.study, rubric=rubric, purpose=Round.Purpose.RATING)


@pytest.fixture
def rated(test_of_four: Instrument, rating: Round) -> list[Answer]:
    """Thirty people, 120 answers, rated; the round is closed."""
    answers = people_answer(test_of_four, 30, round_=rating)
    round_close(round_id=rating.pk)
    return answers


@pytest.fixture
def learned(rubric: Rubric) -> list[Criterion]:
    """The two criteria that vary."""
    return list(rubric.criteria.filter(code__in=["grammatical", "logical"]))


@pytest.fixture
def divided(cast: Cast, rubric: Rubric, rated: list[Answer]) -> Split:
    return make_split(cast.study, rubric)


def make_split(study: Study, rubric: Rubric, *, seed: int = 1, same: tuple = ()) -> Split:
    return split_ensure(study=study, rubric=rubric, same_person=same, seed=seed, actor=None)
