"""Automatic judges of known accuracy and a classifier that was really trained, in the study with known truth.

What the comparison of judges shows is taken from its file, as a browser gets it. What is expected is counted here in
plain Python from what was simulated and from the judgements as they are stored: none of the product's formulas.
"""

import csv
import io
import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.db import connection
from django.urls import reverse

from corpus.simulation import truth_of, variants
from corpus.tokens import word_tokens
from llmruns.judging import model_judge_ensure
from llmruns.models import ModelConfig, Prompt
from scoring.classifiers import recipes
from scoring.classifiers.applying import application_create, application_work
from scoring.classifiers.services import classifier_create, split_ensure
from scoring.classifiers.training import classifier_work
from scoring.models import Judgement, Round, Split, SplitSide
from scoring.services import automatic_round_create, paper_rubric, round_close
from tests.reports.test_known_truth import ACCURACY, CODES, JUDGE_ACCURACY, World, world

__all__ = ["world"]  # a fixture

MODEL_ACCURACY = 0.7
Said = dict[tuple, list[int]]  # by (who, sitting, position), in the order of CODES


@dataclass
class Compared:
    world: World
    split: Split
    judges: dict[str, int]  # classifier (of known accuracy), model (likewise), baseline (trained): id of the judge
    tested: list[tuple]  # keys of the answers of the test side, refusals among them
    rows: list[dict[str, str]]  # of judges.csv

    def is_refusal(self, key: tuple) -> bool:
        return len(word_tokens(self.world.texts[key])) < 4

    def said(self, name: str) -> Said:
        """What is stored; a refusal is not judged and is 0 by rule."""
        stored: dict[int, dict[str, int]] = {}
        for row in Judgement.objects.filter(judge=self.judges[name], retracted_at=None).select_related("criterion"):
            stored.setdefault(row.answer_id, {})[row.criterion.code] = int(row.value)
        return {
            key: [0, 0, 0] if self.is_refusal(key) else [stored[self.world.answers[key].pk][code] for code in CODES]
            for key in self.tested
        }

    def shown(self, name: str, figure: str, **given: str) -> dict[str, str]:
        wanted = {"judge_id": str(self.judges[name]), "figure": figure, **given}
        (found,) = (row for row in self.rows if all(row[key] == value for key, value in wanted.items()))
        return found


@pytest.fixture
def compared(world: World, cast, settings, tmp_path: Path) -> Compared:
    """108 people, 75 of whom train; a baseline that learned from them, a model judge that is right 70 times in 100."""
    settings.CLASSIFIERS_DIR, settings.ML_THREADS = tmp_path / "classifiers", 1
    study, rubric = cast.study, paper_rubric()
    round_close(round_id=Round.objects.get(study=study, purpose="rating").pk)
    _analyse()
    split = split_ensure(study=study, rubric=rubric, same_person=[], seed=2, actor=None)
    judges = {"classifier": world.judge, "model": _model(world), "baseline": _baseline(split)}
    sides = dict(SplitSide.objects.filter(split=split).values_list("respondent", "trains"))
    assert (len(sides), sum(sides.values())) == (108, 75)
    people = [key for key in world.answers if isinstance(key[0], int)]
    tested = [key for key in people if sides[world.answers[key].sitting.respondent_id] is False]
    assert len(tested) == 33 * 18
    response = cast.client(cast.alice).get(reverse("judge_comparison_csv", args=["ours"]))
    text = b"".join(response.streaming_content).decode().removeprefix("\ufeff")
    return Compared(world, split, judges, tested, list(csv.DictReader(io.StringIO(text))))


def _analyse() -> None:
    """A database that runs does so by itself; in a test's transaction it takes 13,000 rows for none, and minutes."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE scoring_judgement, corpus_answer, corpus_sitting, corpus_respondent")


def _model(world: World) -> int:
    rng, rubric, study = random.Random(70), paper_rubric(), world.instrument.study
    prompt = Prompt.objects.create(study=study, slug="judge", purpose="judge", text="{words} {answer}")
    judge = model_judge_ensure(config=ModelConfig.objects.first(), prompt=prompt, rubric=rubric).judge
    round_ = automatic_round_create(study=study, rubric=rubric, judge=judge)
    criteria = {criterion.code: criterion for criterion in rubric.criteria.all()}
    rows = []
    for key, text in world.texts.items():
        if isinstance(key[0], int) and len(word_tokens(text)) >= 4:
            one = world.stimuli[key[2]]
            truth = vars(truth_of(text, variants(one.text, one.original)))
            for code in CODES:
                value = truth[code] if rng.random() < MODEL_ACCURACY else 1 - truth[code]
                rows.append(
                    Judgement(
                        round=round_, judge=judge, answer=world.answers[key], criterion=criteria[code], value=value
                    )
                )
    Judgement.objects.bulk_create(rows, batch_size=5_000)
    return judge.pk


def _baseline(split: Split) -> int:
    criteria = list(paper_rubric().criteria.filter(kind="judged"))
    made = classifier_create(split=split, criteria=criteria, recipe=recipes.BASELINE, actor=None, enqueue=False)
    assert classifier_work(made.pk)
    made.refresh_from_db()
    assert application_work(application_create(classifier=made, actor=None, enqueue=False).pk)
    return made.judge_id


# --- the formulas, written down once more ---------------------------------------------------------------------------


def f1_and_mcc(truth: Sequence[int], said: Sequence[int]) -> dict[str, float]:
    """By counting hits, misses and false alarms of the two classes."""
    pairs = list(zip(truth, said, strict=True))
    count = {(a, b): pairs.count((a, b)) for a in (0, 1) for b in (0, 1)}
    each, share = {}, {}
    for own in (0, 1):
        other = 1 - own
        each[own] = 2 * count[own, own] / (2 * count[own, own] + count[other, own] + count[own, other])
        share[own] = (count[own, 0] + count[own, 1]) / len(pairs)
    tp, tn, fp, fn = count[1, 1], count[0, 0], count[0, 1], count[1, 0]
    return {
        "f1_micro": (tp + tn) / len(pairs),
        "f1_macro": (each[0] + each[1]) / 2,
        "f1_weighted": each[0] * share[0] + each[1] * share[1],
        "mcc": (tp * tn - fp * fn) / math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)),
    }


def pearson(one: Sequence[float], other: Sequence[float]) -> float:
    first, second = statistics.fmean(one), statistics.fmean(other)
    together = math.fsum((a - first) * (b - second) for a, b in zip(one, other, strict=True))
    apart = math.fsum((a - first) ** 2 for a in one) * math.fsum((b - second) ** 2 for b in other)
    return together / math.sqrt(apart)


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    return pearson(ranks(one), ranks(other))


def ranks(values: Sequence[float]) -> list[float]:
    """From 1; equal values share the mean of their places. Rounded first: 7/18 by two ways is one value."""
    rounded = [round(value, 9) for value in values]
    order = sorted(rounded)
    place = {value: order.index(value) + (order.count(value) + 1) / 2 for value in set(rounded)}
    return [place[value] for value in rounded]


def test_every_figure_of_every_judge_is_what_was_simulated(compared: Compared) -> None:
    _f1_and_mcc(compared)
    _known_accuracy(compared)
    _correlations(compared)
    _baseline_beats_the_constant(compared)


def _f1_and_mcc(compared: Compared) -> None:
    asked = [key for key in compared.tested if not compared.is_refusal(key)]
    assert 400 < len(asked) < len(compared.tested)
    for name in compared.judges:
        said = compared.said(name)
        for place, code in enumerate(CODES):
            truth = [compared.world.labels(key)[place] for key in asked]
            expected = f1_and_mcc(truth, [said[key][place] for key in asked])
            for figure, value in expected.items():
                shown = compared.shown(name, figure, criterion=code)
                assert float(shown["value"]) == pytest.approx(value, abs=1e-12), (name, code, figure)
                assert float(shown["low"]) < value < float(shown["high"])
                assert (shown["n"], shown["n_respondents"]) == (str(len(asked)), "33")


def _known_accuracy(compared: Compared) -> None:
    """A majority of three is right where two or three are; a judge agrees where both are right or both are wrong."""
    a, b, c = ACCURACY
    raters = a * b * c + a * b * (1 - c) + a * (1 - b) * c + (1 - a) * b * c
    for name, right in (("classifier", JUDGE_ACCURACY), ("model", MODEL_ACCURACY)):
        expected = right * raters + (1 - right) * (1 - raters)
        for code in CODES:  # n is above 400: three standard errors are below 0.07
            assert float(compared.shown(name, "f1_micro", criterion=code)["value"]) == pytest.approx(expected, abs=0.07)
    for code in CODES:
        macro = [float(compared.shown(name, "f1_macro", criterion=code)["value"]) for name in ("classifier", "model")]
        assert macro[0] > macro[1]


VARIANTS = {
    "all": (True, True),
    "no_refusals": (False, True),
    "judged": (True, False),
    "judged_no_refusals": (False, False),
}
"""Whether refusals are among the answers, and the sequence point in the score."""


def _correlations(compared: Compared) -> None:
    """Per answer and per respondent, by Pearson and by Spearman, with and without refusals and the sequence point."""
    world = compared.world
    for name in compared.judges:
        said = compared.said(name)
        seen = set()
        for variant, (with_refusals, with_sequence) in VARIANTS.items():
            keys = [key for key in compared.tested if with_refusals or not compared.is_refusal(key)]
            points = {key: with_sequence and world.points(key) - sum(world.labels(key)) for key in keys}
            automatic = {key: sum(said[key]) + points[key] for key in keys}
            raters = {key: sum(world.labels(key)) + points[key] for key in keys}
            people = sorted({key[0] for key in keys})
            by_person = [
                [statistics.fmean(score[key] for key in keys if key[0] == who) for who in people]
                for score in (automatic, raters)
            ]
            both = {"answer": [list(automatic.values()), list(raters.values())], "respondent": by_person}
            for unit, scores in both.items():
                for figure, formula in (("pearson", pearson), ("spearman", spearman)):
                    shown = compared.shown(name, figure, unit=unit, variant=variant)
                    expected = formula(*scores)
                    assert float(shown["value"]) == pytest.approx(expected, abs=1e-9), (name, variant, unit, figure)
                    assert float(shown["low"]) < expected < float(shown["high"])
                    assert (shown["n"], shown["n_respondents"]) == (str(len(scores[0])), "33")
                    seen.add(round(expected, 9))
        assert len(seen) == 16  # no two of these are the same number by another name


def _baseline_beats_the_constant(compared: Compared) -> None:
    """It was measured on people whom it did not learn from."""
    trains = set(SplitSide.objects.filter(split=compared.split, trains=True).values_list("respondent", flat=True))
    assert not trains & {compared.world.answers[key].sitting.respondent_id for key in compared.tested}
    macro = [float(compared.shown("baseline", "f1_macro", criterion=code)["value"]) for code in CODES]
    constant = [
        float(row["value"])
        for row in compared.rows
        if row["judge"] == "majority class" and row["figure"] == "f1_macro" and row["criterion"] in CODES
    ]
    assert len(constant) == 3 and all(own > nothing for own, nothing in zip(macro, constant, strict=True))
