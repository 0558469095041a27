"""Automatic judges for the demonstration study: a real classifier, and simulated models that judge.

What they say is made by the same code as elsewhere; what they say it of is simulated.
"""

from annotation.choosing import Selection as RatersSelection
from annotation.models import Campaign
from annotation.opening import campaign_open
from annotation.services import campaign_close
from llmruns.judge_calls import answer_work
from llmruns.judge_choosing import Selection
from llmruns.judging import judging_launch
from llmruns.models import Judging, JudgingItem, ModelConfig
from reports.classifying import same_person
from reports.simulation import Simulation
from scoring.classifiers import recipes
from scoring.classifiers.applying import application_create, application_work
from scoring.classifiers.evaluating import classifier_evaluate, compared_answers, evaluation_record, judge_says
from scoring.classifiers.services import classifier_create, split_ensure
from scoring.classifiers.study_data import judged_criteria
from scoring.classifiers.training import classifier_work
from scoring.models import Classifier
from scoring.services import paper_rubric

JUDGES = ("Simulated medium", "Simulated large")  # of simulation.MODELS: how often they are right is their skill
NEXT_SAMPLE = 36  # two answers to each of the 18 tasks


def simulate_labels(simulation: Simulation, *, campaign: Campaign) -> Campaign:
    """The campaign is closed, as classifiers need it, and a smaller one waits for raters: so that they have a page.

    Nobody has judged in the second one: the labels are those of the first.
    """
    campaign_close(campaign=campaign, actor=simulation.actor)
    return campaign_open(
        study=simulation.study,
        title="Смоделированная повторная разметка",
        raters_per_answer=2,
        seed=2,
        actor=simulation.actor,
        selection=RatersSelection(sample=NEXT_SAMPLE),
    )


def simulate_classifier(simulation: Simulation) -> Classifier:
    """The baseline: trained on the simulated labels, measured, and applied to all answers, here and now."""
    study, actor = simulation.study, simulation.actor
    rubric = paper_rubric()
    split = split_ensure(study=study, rubric=rubric, same_person=same_person(study), seed=1, actor=actor)
    classifier = classifier_create(
        split=split, criteria=judged_criteria(rubric), recipe=recipes.BASELINE, actor=actor, enqueue=False
    )
    classifier_work(classifier.pk)
    classifier.refresh_from_db()
    classifier_evaluate(classifier=classifier, actor=actor)
    application_work(application_create(classifier=classifier, actor=actor, enqueue=False).pk)
    return classifier


def simulate_model_judges(simulation: Simulation, *, classifier: Classifier) -> list[Judging]:
    """Two of the simulated models judge all answers, and are measured on the classifier's test answers."""
    rubric = paper_rubric()
    answers = compared_answers(classifier.split, judged_criteria(rubric))
    judgings = []
    for label in JUDGES:
        judging = judging_launch(
            study=simulation.study,
            config=ModelConfig.objects.get(study=simulation.study, label=label),
            rubric=rubric,
            selection=Selection(instrument=simulation.instrument),
            title=f"{label}: оценка ответов",
            actor=simulation.actor,
        )
        _work_off(judging)
        judge = judging.model_judge.judge
        evaluation_record(judge=judge, answers=answers, said=judge_says(judge, answers), actor=simulation.actor)
        judgings.append(judging)
    return judgings


def _work_off(judging: Judging) -> None:
    """Here and now, as simulation.simulate_models does it; a running worker may help."""
    todo = JudgingItem.objects.filter(judging=judging, same_as=None, state=JudgingItem.State.TODO)
    while answers := list(todo.values_list("answer_id", flat=True)):
        for answer_id in answers:
            answer_work(judging_id=judging.pk, answer_id=answer_id)
