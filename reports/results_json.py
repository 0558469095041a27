"""The results page's table as JSON. What is undefined is null, with the code of the reason beside it."""

from typing import Any

from rest_framework import serializers

from corpus.models import Complexity, Respondent
from reports.captions import differences
from reports.panel import Member
from reports.selectors import Results, Row, people_outside
from scoring.formula import Bounds, Group, MeanInterval, ModelScore, PeopleScore, Score, StimulusMean
from studies.api import StudyRowSerializer

REASON = "code of the reason why there is none: see docs/api.md"


class ScoreValueSerializer(serializers.Serializer):
    score = serializers.FloatField(allow_null=True, help_text="points per stimulus")
    score_norm = serializers.FloatField(allow_null=True, help_text="points over the number of criteria, 0 to 1")
    reason = serializers.CharField(allow_null=True, help_text=REASON)


class RangeSerializer(serializers.Serializer):
    low = serializers.FloatField(help_text="points per stimulus")
    high = serializers.FloatField()
    low_norm = serializers.FloatField(help_text="0 to 1")
    high_norm = serializers.FloatField()


class IntervalSerializer(serializers.Serializer):
    low = serializers.FloatField(allow_null=True, help_text="points per stimulus")
    high = serializers.FloatField(allow_null=True)
    low_norm = serializers.FloatField(allow_null=True, help_text="0 to 1")
    high_norm = serializers.FloatField(allow_null=True)
    level = serializers.FloatField(allow_null=True, help_text="0.95")
    n_respondents = serializers.IntegerField()
    reason = serializers.CharField(allow_null=True, help_text=REASON)


class CutSerializer(serializers.Serializer):
    factor = serializers.ChoiceField(["all", "shuffled", "complexity"])
    level = serializers.CharField(help_text="yes, no, easy, medium, hard; empty for all stimuli")
    n_stimuli = serializers.IntegerField()
    n_scored = serializers.IntegerField(help_text="sittings or complete runs with a score: the mean is over these")
    mean = ScoreValueSerializer()
    interval = IntervalSerializer(allow_null=True, help_text="people only: bootstrap interval of their mean")
    sd_over_runs = ScoreValueSerializer(allow_null=True, help_text="models only: deviation over runs, ddof 1")
    majority = ScoreValueSerializer(allow_null=True, help_text="models only: the paper's majority over planned runs")
    bounds = RangeSerializer(
        allow_null=True, help_text="where the figure of all finished sittings lies whatever undecided labels come to"
    )


class StimulusResultSerializer(ScoreValueSerializer):
    position = serializers.IntegerField(help_text="number of the stimulus")
    complexity = serializers.ChoiceField(Complexity.choices)
    shuffled = serializers.BooleanField()
    n_scored = serializers.IntegerField(help_text="answers with a score")
    n_undecided = serializers.IntegerField(help_text="answers without one")


class ResultRowSerializer(serializers.Serializer):
    group = serializers.CharField(help_text="people, or the model")
    kind = serializers.ChoiceField(Respondent.Kind.choices)
    experiment_id = serializers.IntegerField(allow_null=True, help_text="null for people")
    experiment = serializers.CharField(allow_null=True)
    imported = serializers.BooleanField(
        allow_null=True, help_text="the replies were recorded elsewhere; null for people"
    )
    n_sittings = serializers.IntegerField(help_text="finished ones")
    n_unfinished = serializers.IntegerField()
    n_answers = serializers.IntegerField(help_text="of finished sittings, and so the three next")
    n_undecided = serializers.IntegerField()
    n_refusals = serializers.IntegerField()
    n_no_valid_reply = serializers.IntegerField()
    cuts = CutSerializer(many=True, help_text="all stimuli first, then by shuffled, then by complexity")
    stimuli = StimulusResultSerializer(many=True)


class AutomaticJudgeSerializer(serializers.Serializer):
    id = serializers.IntegerField(source="pk", help_text="its number in `basis`")
    name = serializers.CharField()
    criteria = serializers.SerializerMethodField(help_text="codes of those that it has judged")

    def get_criteria(self, row: Member) -> list[str]:
        return [criterion.code for criterion in row.criteria]


class ResultsSerializer(StudyRowSerializer):
    instrument = serializers.SlugField()
    instrument_version = serializers.IntegerField()
    basis = serializers.CharField(help_text="whose labels are used: rater_labels, or judges and their numbers")
    judges = AutomaticJudgeSerializer(many=True, help_text="automatic judges that a basis can be made of")
    people = serializers.CharField(help_text="which people: all, test (the test side of a split) or from:NAME")
    criteria = serializers.ListField(child=serializers.CharField(), help_text="codes of those in the score")
    n_pilot = serializers.IntegerField(help_text="sittings of people that only tried it out: in no row")
    n_excluded = serializers.IntegerField(help_text="sittings of people left out by a rule: in no row")
    n_withdrawn = serializers.IntegerField(help_text="sittings taken back by their participants: in no row")
    rows = ResultRowSerializer(many=True, help_text="people first")
    differences = serializers.ListField(
        child=serializers.CharField(), help_text="from the paper, in the language of Accept-Language"
    )


def results_document(results: Results) -> dict[str, Any]:
    """One query: who is in no row."""
    criteria = [criterion.code for criterion in results.criteria]
    outside = people_outside(results.instrument)
    return {
        "instrument": results.instrument.slug,
        "instrument_version": results.instrument.version,
        "basis": "rater_labels" if results.chosen.choice.basis.is_raters else results.chosen.choice.basis.key,
        "judges": results.chosen.judges,
        "people": results.chosen.choice.people,
        "criteria": criteria,
        **{f"n_{standing}": outside.get(standing, 0) for standing in ("pilot", "excluded", "withdrawn")},
        "rows": [_row(results, row) for row in results.rows],
        "differences": differences(results),
    }


def _row(results: Results, row: Row) -> dict[str, Any]:
    scale = len(results.criteria)
    return {
        "group": "people" if row.is_people else row.label,
        "kind": Respondent.Kind.HUMAN if row.is_people else Respondent.Kind.MODEL,
        "experiment_id": None if row.is_people else int(row.key.rpartition("-")[2]),
        "experiment": None if row.is_people else row.experiment,
        "imported": row.imported,
        "n_sittings": row.n_sittings,
        "n_unfinished": row.n_unfinished,
        "n_answers": row.tally.n_answers,
        "n_undecided": row.tally.n_undecided,
        "n_refusals": row.tally.n_refusals,
        "n_no_valid_reply": row.tally.n_no_reply,
        "cuts": [_cut(cut, score, scale) for cut, score in zip(results.groups, row.scores, strict=True)],
        "stimuli": [
            {
                "position": stimulus.position,
                "complexity": stimulus.complexity,
                "shuffled": stimulus.shuffled,
                **_stimulus(row.stimuli[stimulus.pk]),
            }
            for stimulus in results.stimuli
        ],
    }


def _cut(cut: Group, score: PeopleScore | ModelScore, scale: int) -> dict[str, Any]:
    of_people = isinstance(score, PeopleScore)
    return {
        "factor": cut.factor,
        "level": cut.value,
        "n_stimuli": len(cut.stimuli),
        "n_scored": score.n_scored,
        "mean": _score(score.mean),
        "interval": _interval(score.interval, score.n_respondents, scale) if isinstance(score, PeopleScore) else None,
        "sd_over_runs": None if of_people else _score(score.sd),
        "majority": _score(score.majority) if isinstance(score, ModelScore) else None,
        "bounds": _range(score.bounds, scale) if score.bounds else None,
    }


def _stimulus(mean: StimulusMean) -> dict[str, Any]:
    return {**_score(mean.score), "n_scored": mean.n, "n_undecided": mean.n_undecided}


def _score(score: Score) -> dict[str, Any]:
    return {"score": score.value, "score_norm": score.norm, "reason": score.reason or None}


def _range(found: Bounds | MeanInterval, scale: int) -> dict[str, float]:
    return {
        "low": found.low,
        "high": found.high,
        "low_norm": found.low / scale,
        "high_norm": found.high / scale,
    }


def _interval(found: MeanInterval | None, n_respondents: int, scale: int) -> dict[str, Any]:
    if found is None:
        none = dict.fromkeys(("low", "high", "low_norm", "high_norm", "level"))
        return {**none, "n_respondents": n_respondents, "reason": "too_few"}
    return {**_range(found, scale), "level": found.level, "n_respondents": n_respondents, "reason": None}
