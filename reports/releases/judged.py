"""How it was judged: rounds, judgements, campaigns and decisions, what of an import comes after the judges."""

from collections import Counter

from annotation.models import Campaign
from annotation.restoring import RestoredCampaign, campaign_restore, decisions_restore
from corpus.models import Answer
from reports.releases.archive import ArchiveRefusedError
from reports.releases.judges import JudgesImport
from reports.releases.reading import ReadRelease, Record
from reports.releases.rows import known, one, unique
from scoring.models import Judge, Round
from scoring.restoring import RestoredJudgement, judgements_restore, round_restore, rounds_close
from studies.models import Study, User

OF_RATERS = (Round.Purpose.RATING, Round.Purpose.IMPORTED, Round.Purpose.ADJUDICATION, Round.Purpose.REPEAT)


class JudgedImport(JudgesImport):
    """What a rule counted is counted here anew."""

    def __init__(self, read: ReadRelease, study: Study, actor: User | None) -> None:
        super().__init__(read, study, actor)
        self.told_rounds: dict[int, Record] = {}
        self.rounds: dict[int, Round] = {}
        self.campaigns: dict[int, Campaign] = {}
        self.items: dict[int, set[int]] = {}
        self.decisions: list[Record] = []
        self.n_judgements = 0
        self.left_aside: Counter[str] = Counter()  # rows that have no place here, by what they are

    def make_rounds(self) -> None:
        rows = {key[0]: row for key, row in sorted(unique(self.read["rounds"], "rounds", "round").items())}
        # An adjudication names its round: it comes after all others.
        for number, row in sorted(rows.items(), key=lambda told: told[1]["purpose"] == Round.Purpose.ADJUDICATION):
            purpose = known(row["purpose"], (*OF_RATERS, Round.Purpose.AUTOMATIC), "purpose")
            judge = self.judges.get(row["judge"] or "")
            if purpose == Round.Purpose.AUTOMATIC and judge is None:
                continue
            parent = None
            if purpose == Round.Purpose.ADJUDICATION:
                parent = self.rounds.get(row["belongs_to"] or 0)
                if parent is None or parent.purpose != Round.Purpose.IMPORTED:
                    raise ArchiveRefusedError("reference", f"rounds: {number}")
            self.told_rounds[number] = row
            self.rounds[number] = round_restore(
                study=self.study,
                rubric=one(self.rubrics, (row["rubric"], row["rubric_version"]), "criteria"),
                purpose=purpose,
                guideline_version=row["guideline_version"],
                adjudicates=parent,
                judge=judge if purpose == Round.Purpose.AUTOMATIC else None,
            )

    def make_judgements(self) -> None:
        """All but those of adjudications, which come when the labels before them are frozen."""
        rows = unique(self.read["judgements"], "judgements", "round", "answer", "criterion", "judge")
        judged: list[Record] = []
        for row in rows.values():
            kind = known(row["judge_kind"], Judge.Kind.values, "judge_kind")
            if row["judge"] in self.judges:
                told = one(self.told_rounds, row["round"], "rounds")
                if told["judge"] not in (None, row["judge"]):  # an automatic round is of one judge
                    raise ArchiveRefusedError("reference", f"rounds: {row['round']}, {row['judge']}"[:200])
                (self.decisions if self.is_adjudication(row["round"]) else judged).append(row)
            elif kind == Judge.Kind.CLASSIFIER:
                self.left_aside["judgements_classifier"] += 1
            elif kind != Judge.Kind.RULE:
                raise ArchiveRefusedError("reference", f"judges: {row['judge']}"[:200])
        self.n_judgements = judgements_restore(map(self.judgement, judged))
        rounds_close([round_ for number, round_ in self.rounds.items() if not self.is_adjudication(number)])

    def is_adjudication(self, number: int) -> bool:
        return self.rounds[number].purpose == Round.Purpose.ADJUDICATION

    def judgement(self, row: Record) -> RestoredJudgement:
        """Raises ArchiveRefusedError."""
        told, shared = self.told_rounds[row["round"]], row["shared_from"]
        criterion = (told["rubric"], told["rubric_version"], row["criterion"])
        return RestoredJudgement(
            round_id=self.rounds[row["round"]].pk,
            answer_id=one(self.answers, row["answer"], "answers").pk,
            criterion=one(self.criteria, criterion, "criteria"),
            judge_id=self.judges[row["judge"]].pk,
            value=row["value"],
            not_attempt=row["not_attempt"],
            confidence=row["confidence"],
            shared_from_answer=one(self.answers, shared, "answers").pk if shared else None,
            order=row["order"],
        )

    def make_campaigns(self) -> None:
        loaded = Answer.objects.filter(pk__in=[answer.pk for answer in self.answers.values()])
        answers = {answer.pk: answer for answer in loaded.select_related("stimulus__instrument")}
        for number, row in self.told_rounds.items():
            round_ = self.rounds[number]
            if round_.purpose != Round.Purpose.IMPORTED:
                continue
            codes = row["criteria"] if isinstance(row["criteria"], list) else []
            rubric = (row["rubric"], row["rubric_version"])
            repeats = [
                self.rounds[other]
                for other, told in self.told_rounds.items()
                if told["purpose"] == Round.Purpose.REPEAT and told["belongs_to"] == number
            ]
            given = RestoredCampaign(
                round=round_,
                title=f"round {number}",
                criteria=[one(self.criteria, (*rubric, code), "criteria") for code in codes],
                raters_per_answer=max(1, row["raters_per_answer"] or 1),
                identical=row["identical"] if row["identical"] in ("once", "separately") else "separately",
                repeat_round=repeats[0] if repeats else None,
            )
            self.campaigns[number] = campaign_restore(study=self.study, given=given, answers=answers, actor=self.actor)

    def make_decisions(self) -> None:
        """Each as a version of the labels that were frozen before it. Raises ArchiveRefusedError."""
        for row in self.decisions:
            items = self.judged_in(self.told_rounds[row["round"]]["belongs_to"])
            if one(self.answers, row["answer"], "answers").pk not in items:
                raise ArchiveRefusedError("reference", f"judgements: {row['round']}, {row['answer']}")
        self.n_judgements += judgements_restore(map(self.judgement, self.decisions))
        for campaign in self.campaigns.values():
            decisions_restore(campaign=campaign, actor=self.actor)

    def judged_in(self, number: int) -> set[int]:
        """The answers of a round of rating."""
        if number not in self.items:
            self.items[number] = set(self.campaigns[number].items.values_list("answer", flat=True))
        return self.items[number]
