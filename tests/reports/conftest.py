"""A small study whose every number is derived here by hand.

Three stimuli of four, four and seven words (1 easy, 2 easy and shuffled, 3 medium); four criteria: g, l, o by three
raters, s by rule. Votes are written R1 R2 R3, `-` is no judgement.

    P1 1  g 111  l 111  o 111  s 1                        4
       2  g 110  l 111  o 001  s 1                        1 + 1 + 0 + 1 = 3
       3  declined                                        0 by the refusal rule
          S = 7/3, norm 7/12
    P2 1  g 001  l 110  o 10-  s 0 (three words)          0 + 1 + (tie, adjudicated 1) + 0 = 2
       2  all 1                                           4
       3  g 111  l 1--  o 111  s 1                        l is a single vote: undecided, 3 to 4
          no S; bounds 9/3 and 10/3
    M  run 1:  1  all 1: 4     2  all 1: 4                3  no valid reply: 0           S = 8/3
       run 2:  1  o 000: 3     2  all 1: 4                3  all 1: 4                    S = 11/3
       run 3:  1  two of three raters: not an attempt: 0  2  l 000: 3   3  all 1: 4      S = 7/3
"""

from dataclasses import dataclass, field

import pytest
from django.utils import timezone

from annotation.models import Rater
from corpus.models import Answer, Instrument, Respondent, Sitting
from corpus.services import instrument_freeze
from llmruns.models import Call, Experiment, ModelConfig, Prompt, Run
from scoring.models import Judge, Round, Rubric
from scoring.services import Verdict, judgements_record, paper_rubric
from studies.models import Role, User
from studies.services import membership_set
from tests.conftest import Cast

SECOND = "мышь бежит от кошки"
RIGHT = {1: "Кошка сидит на столе.", 2: SECOND, 3: "Дети, которые играли во дворе, были счастливы."}
ALL = {"grammatical": "111", "logical": "111", "order": "111"}


@dataclass
class Built:
    cast: Cast
    instrument: Instrument
    rubric: Rubric
    rating: Round
    raters: list[Rater]
    config: ModelConfig | None = None
    experiment: Experiment | None = None
    answers: dict[str, Answer] = field(default_factory=dict)  # by names such as "P1/2" and "M1/3"

    def sitting(self, name: str, texts: dict, *, respondent: Respondent | None = None, ordinal: int = 1, **more):
        """A finished sitting; a text of None is declined, an Outcome is that outcome."""
        respondent = respondent or Respondent.objects.create(study=self.instrument.study, kind="human")
        stimuli = {stimulus.position: stimulus for stimulus in self.instrument.stimuli.all()}
        instrument_freeze(instrument=self.instrument, actor=None)
        values = {"state": "finished", "finished_at": timezone.now(), "source_label": "survey one"} | more
        sitting = Sitting.objects.create(
            respondent=respondent,
            instrument=self.instrument,
            ordinal=ordinal,
            order=[stimulus.pk for stimulus in stimuli.values()],
            started_at=timezone.now(),
            **values,
        )
        for position, text in texts.items():
            outcome = text if isinstance(text, Answer.Outcome) else ("declined" if text is None else "given")
            self.answers[f"{name}/{position}"] = Answer.objects.create(
                sitting=sitting,
                stimulus=stimuli[position],
                outcome=outcome,
                text=text if outcome == "given" else "",
            )
        return sitting

    def judge(self, name: str, votes: dict[str, str], not_attempt: str = "", round_: Round | None = None) -> None:
        criteria = {criterion.code: criterion for criterion in self.rubric.criteria.all()}
        for place, rater in enumerate(self.raters):
            verdicts = {}
            for code, given in votes.items():
                if given[place] == "-":
                    continue
                mark = bool(not_attempt) and not_attempt[place] == "x"
                verdicts[criteria[code]] = Verdict(float(given[place]), not_attempt=mark)
            if verdicts:
                judgements_record(
                    round_id=(round_ or self.rating).pk,
                    answer_id=self.answers[name].pk,
                    judge_id=rater.judge_id,
                    verdicts=verdicts,
                )


def make_rater(cast: Cast, number: int) -> Rater:
    user = User.objects.create_user(f"linguist{number}")
    membership_set(user=user, study=cast.study, role=Role.RATER, actor=cast.alice)
    judge = Judge.objects.create(kind=Judge.Kind.RATER)
    return Rater.objects.create(judge=judge, user=user, study=cast.study, pseudonym=f"R{number}")


@pytest.fixture
def bare(cast: Cast, instrument: Instrument) -> Built:
    """The study with its raters and an open round, and nothing answered."""
    rubric = paper_rubric()
    rating = Round.objects.create(study=cast.study, rubric=rubric, purpose=Round.Purpose.RATING)
    return Built(cast, instrument, rubric, rating, [make_rater(cast, number) for number in (1, 2, 3)])


def add_model(built: Built, label: str = "Model M", runs: int = 3) -> None:
    study = built.instrument.study
    respondent = Respondent.objects.create(study=study, kind="model")
    prompt, _ = Prompt.objects.get_or_create(study=study, slug="paper", defaults={"text": "{words}"})
    built.config = ModelConfig.objects.create(
        respondent=respondent, study=study, label=label, base_url="http://127.0.0.1:9", model="m-1"
    )
    built.experiment = Experiment.objects.create(
        study=study, instrument=built.instrument, prompt=prompt, title="First", runs_planned=runs
    )


def add_run(built: Built, ordinal: int, texts: dict, *, state: str = "finished") -> Run:
    """A run that is not finished keeps its sitting open."""
    more = {} if state == "finished" else {"state": "open", "finished_at": None}
    sitting = built.sitting(
        f"M{ordinal}",
        texts,
        respondent=built.config.respondent,
        ordinal=ordinal,
        source_label=built.config.label,
        **more,
    )
    return Run.objects.create(
        experiment=built.experiment, config=built.config, sitting=sitting, ordinal=ordinal, state=state
    )


@pytest.fixture
def built(bare: Built) -> Built:
    """The study of the module's docstring."""
    bare.sitting("P1", {1: RIGHT[1], 2: SECOND, 3: None})
    bare.judge("P1/1", ALL)
    bare.judge("P1/2", {"grammatical": "110", "logical": "111", "order": "001"})
    bare.sitting("P2", {1: "кошка сидит на", 2: SECOND, 3: RIGHT[3]})
    bare.judge("P2/1", {"grammatical": "001", "logical": "110", "order": "10-"})
    bare.judge("P2/2", ALL)
    bare.judge("P2/3", ALL | {"logical": "1--"})
    adjudication = Round.objects.create(
        study=bare.cast.study, rubric=bare.rubric, purpose=Round.Purpose.ADJUDICATION, adjudicates=bare.rating
    )
    bare.judge("P2/1", {"order": "1--"}, round_=adjudication)

    add_model(bare)
    run = add_run(bare, 1, {1: RIGHT[1], 2: SECOND, 3: Answer.Outcome.NO_VALID_REPLY})
    bare.judge("M1/1", ALL)
    bare.judge("M1/2", ALL)
    add_run(bare, 2, RIGHT)
    bare.judge("M2/1", ALL | {"order": "000"})
    bare.judge("M2/2", ALL)
    bare.judge("M2/3", ALL)
    add_run(bare, 3, {1: "я не могу ответить", 2: SECOND, 3: RIGHT[3]})
    bare.judge("M3/1", {"grammatical": "001", "logical": "000", "order": "001"}, not_attempt="xx.")
    bare.judge("M3/2", ALL | {"logical": "000"})
    bare.judge("M3/3", ALL)
    Call.objects.create(
        run=run,
        config=bare.config,
        stimulus=bare.instrument.stimuli.get(position=1),
        attempt=1,
        state="ok",
        request={"model": "m-1", "headers": {"Authorization": "Bearer sk-secret"}, "temperature": 1},
        raw_reply='{"results": "Кошка сидит на столе."}',
        http_status=200,
    )
    return bare
