"""What is in a release, as several of its tables look it up: read once, in the snapshot of whoever makes it."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from django.db.models import QuerySet

from annotation.models import Campaign, Rater
from corpus.models import Answer, Instrument, Respondent
from llmruns.models import ModelConfig, ModelJudge, Run
from reports.releases.policy import Policy
from reports.releases.selection import Alias, published
from reports.selectors import rubric_of
from scoring.models import Classifier, Judge, Judgement, Round, Rubric
from studies.models import Study
from surveys.models import Participant

CHUNK = 2_000
PURPOSES = (
    Round.Purpose.RATING,
    Round.Purpose.IMPORTED,
    Round.Purpose.ADJUDICATION,
    Round.Purpose.REPEAT,
    Round.Purpose.AUTOMATIC,
)
"""Training and gold tell how raters were tested, not what the answers are."""


@dataclass(frozen=True, slots=True)
class SittingFacts:
    pk: int
    respondent: UUID  # the alias
    kind: str
    instrument: Instrument
    ordinal: int
    state: str
    order: list[int]
    respondent_id: int
    run_id: int  # 0 of people


class Facts:
    """Each property is a query or two, made when it is first asked for."""

    def __init__(self, study: Study, policy: Policy, salt: UUID) -> None:
        self.study, self.policy, self.alias = study, policy, Alias(salt)

    @cached_property
    def sittings(self) -> list[SittingFacts]:
        """People by the number that stands in the files, which is random; then models' runs as they were made."""
        rows = published(self.study).select_related("respondent", "run")
        found = [
            SittingFacts(
                pk=one.pk,
                respondent=self.alias.of(one.respondent.public_id),
                kind=one.respondent.kind,
                instrument=self.instruments_by_pk[one.instrument_id],
                ordinal=one.ordinal,
                state=one.state,
                order=one.order,
                respondent_id=one.respondent_id,
                run_id=one.run.pk if one.respondent.kind == Respondent.Kind.MODEL else 0,
            )
            for one in rows
        ]
        return sorted(found, key=lambda one: (one.run_id, one.respondent, one.instrument.pk, one.ordinal))

    @cached_property
    def people(self) -> set[int]:
        return {one.respondent_id for one in self.sittings if one.kind == Respondent.Kind.HUMAN}

    @cached_property
    def instruments_by_pk(self) -> dict[int, Instrument]:
        return {one.pk: one for one in Instrument.objects.filter(study=self.study)}

    @cached_property
    def instruments(self) -> list[Instrument]:
        """Those that somebody released has taken."""
        taken = {one.instrument.pk for one in self.sittings}
        return [one for pk, one in sorted(self.instruments_by_pk.items()) if pk in taken]

    @cached_property
    def positions(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for instrument in self.instruments:
            found |= dict(instrument.stimuli.values_list("pk", "position"))
        return found

    @cached_property
    def rubrics(self) -> dict[int, Rubric]:
        """What each instrument's answers are judged by."""
        return {one.pk: rubric_of(one) for one in self.instruments}

    @cached_property
    def runs(self) -> dict[int, Run]:
        """By sitting, in the order in which they were made."""
        found = Run.objects.filter(sitting__in=[one.pk for one in self.sittings]).select_related("experiment", "config")
        return {one.sitting_id: one for one in found.order_by("pk")}

    @cached_property
    def experiments(self) -> dict[int, int]:
        """Numbers of this release by the database's."""
        known = sorted({run.experiment_id for run in self.runs.values()})
        return {pk: number for number, pk in enumerate(known, start=1)}

    @cached_property
    def configs(self) -> list[ModelConfig]:
        used = {run.config_id for run in self.runs.values()} | {one.config_id for one in self.model_judges.values()}
        return list(ModelConfig.objects.filter(pk__in=used).order_by("pk"))

    @cached_property
    def surveys_of(self) -> dict[int, int]:
        """The survey of each released person."""
        rows = Participant.objects.filter(respondent__in=self.people).values_list("respondent", "survey")
        return dict(rows)

    @cached_property
    def persons(self) -> dict[int, UUID]:
        """Released respondents whom their platform calls by one name: whoever divides people has to know of them."""
        known: dict[str, list[int]] = defaultdict(list)
        rows = Participant.objects.filter(respondent__in=self.people).exclude(external_id="")
        for respondent, external_id in rows.values_list("respondent", "external_id"):
            known[external_id].append(respondent)
        several = {name: own for name, own in known.items() if len(own) > 1}
        return {respondent: self.alias.of_person(name) for name, own in several.items() for respondent in own}

    @cached_property
    def surveys(self) -> dict[int, int]:
        return {pk: number for number, pk in enumerate(sorted(set(self.surveys_of.values())), start=1)}

    @cached_property
    def blind(self) -> dict[UUID, UUID]:
        """The released answers: the alias by the number of the database."""
        rows = self.answers.values_list("blind_id", flat=True)
        return {known: self.alias.of(known) for known in rows.iterator(chunk_size=CHUNK)}

    @cached_property
    def answers(self) -> QuerySet[Answer]:
        return Answer.objects.filter(sitting__in=[one.pk for one in self.sittings], stimulus__is_practice=False)

    @cached_property
    def rounds(self) -> dict[int, Round]:
        """Those with a live judgement of a released answer, by the database's number."""
        judged = Judgement.objects.filter(answer__in=self.answers.values("pk"), retracted_at__isnull=True)
        found = Round.objects.filter(pk__in=judged.values("round"), purpose__in=PURPOSES).select_related("rubric")
        return {one.pk: one for one in found.order_by("pk")}

    @cached_property
    def round_numbers(self) -> dict[int, int]:
        return {pk: number for number, pk in enumerate(self.rounds, start=1)}

    @cached_property
    def campaigns(self) -> dict[int, Campaign]:
        """By their rating round, and by their round of repeats."""
        found: dict[int, Campaign] = {}
        for campaign in Campaign.objects.filter(study=self.study):
            found[campaign.round_id] = campaign
            if campaign.repeat_round_id:
                found[campaign.repeat_round_id] = campaign
        return found

    @cached_property
    def judging(self) -> list[Judge]:
        """Whoever has a live judgement of a released answer."""
        judged = Judgement.objects.filter(round__in=self.rounds, answer__in=self.answers.values("pk"))
        used = judged.filter(retracted_at__isnull=True).values("judge")
        return list(Judge.objects.filter(pk__in=used).select_related("rule").order_by("pk"))

    @cached_property
    def model_judges(self) -> dict[int, ModelJudge]:
        found = ModelJudge.objects.filter(judge__in=self.judging).select_related("config", "prompt")
        return {one.judge_id: one for one in found.order_by("pk")}

    @cached_property
    def classifiers(self) -> dict[int, Classifier]:
        found = Classifier.objects.filter(judge__in=self.judging).select_related("split").prefetch_related("criteria")
        return {one.judge_id: one for one in found.order_by("pk")}

    @cached_property
    def splits(self) -> dict[int, int]:
        """Those by which the classifiers were trained."""
        known = sorted({one.split_id for one in self.classifiers.values()})
        return {pk: number for number, pk in enumerate(known, start=1)}

    @cached_property
    def judges(self) -> dict[int, str]:
        """Raters by pseudonym, rules by their code, whoever else by kind and a number of this release."""
        names = dict(Rater.objects.filter(study=self.study).values_list("judge", "pseudonym"))
        counts: Counter[str] = Counter()
        for judge in self.judging:
            if judge.kind == Judge.Kind.RULE:
                names[judge.pk] = judge.rule.code
            elif judge.pk not in names:
                counts[judge.kind] += 1
                names[judge.pk] = f"{judge.kind}-{counts[judge.kind]}"
        return names
