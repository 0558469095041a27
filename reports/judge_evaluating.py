"""Model judges are measured as classifiers are: on the test answers of a split, and the figures are kept."""

from collections.abc import Iterator

from llmruns.models import ModelJudge
from reports.judging_agreement import judge_name
from scoring.classifiers.evaluating import compared_answers, evaluation_record, judge_says
from scoring.classifiers.study_data import judged_criteria
from scoring.models import Evaluation, JobState, Split
from studies.models import Study


def model_judges_evaluate(study: Study) -> Iterator[tuple[str, list[Evaluation]]]:
    """Every model judge that has judged test answers, with what was kept, on each split that a finished classifier was
    trained by; without one on the newest split. Raises ClassifierError no_labels.
    """
    splits = list(Split.objects.filter(study=study).select_related("study").order_by("pk"))
    used = [split for split in splits if split.classifiers.filter(state=JobState.FINISHED).exists()] or splits[-1:]
    judges = ModelJudge.objects.filter(config__study=study).select_related("judge", "config", "prompt", "rubric")
    for split in used:
        for one in judges.order_by("pk"):
            answers = compared_answers(split, judged_criteria(one.rubric))
            said = judge_says(one.judge, answers)
            if said:
                name = f"{judge_name(one)}, {split}"
                yield name, evaluation_record(judge=one.judge, answers=answers, said=said, actor=None)
