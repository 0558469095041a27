"""A study made again from a release: all of it or nothing, and only if it comes to the labels that the release states.

The order is that of the layers: the test, who took it, what models were asked, how it was judged. At the end labels and
scores are counted here and compared with those in the file, so that a dataset whose rows were changed by a hand that
also wrote new digests is refused where the change matters.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, BinaryIO
from uuid import UUID

from django.db import IntegrityError, transaction

from annotation.models import Campaign, Rater
from annotation.restoring import RestoredCampaign, campaign_restore, decisions_restore, raters_restore
from corpus.models import Answer, Instrument, Respondent, Sitting
from corpus.restoring import (
    RestoredAnswer,
    RestoredSitting,
    SittingUnrestorableError,
    instrument_restore,
    respondents_restore,
    sittings_restore,
)
from corpus.services import InstrumentIncompleteError
from llmruns.models import ModelConfig, Prompt, Run
from llmruns.restoring import RestoredRun, experiment_restore, model_restore, prompt_restore
from reports.models import ReleaseImport
from reports.releases.archive import ArchiveRefusedError
from reports.releases.reading import ReadRelease, Record, release_read
from reports.releases.rows import Key, known, measured, model_row, one, question_row, stimulus_row, unique
from reports.releases.verifying import labels_verify, scores_verify
from scoring.models import Criterion, Judge, Round, Rubric
from scoring.restoring import (
    RestoredJudgement,
    SharingUnknownError,
    judgements_restore,
    round_restore,
    rounds_close,
)
from scoring.services import RUBRICS, ValueOutsideScaleError, rules_apply
from studies.models import Study, User
from studies.services import audit_record, study_create
from surveys.restoring import RestoredResponse, survey_restore


class StudyTakenError(Exception):
    """A study with this address is there; the import can be given another one."""


class DryRunOver(Exception):  # noqa: N818  # no error: it undoes what a dry run has stored
    pass


@dataclass
class Imported:
    """What an import has done, or would do."""

    manifest: dict[str, Any]
    counts: dict[str, int] = field(default_factory=dict)
    left_aside: dict[str, int] = field(default_factory=dict)  # rows that have no place here, by what they are
    study: Study | None = None  # None after a dry run
    already: ReleaseImport | None = None


def release_import(
    *, stream: BinaryIO, name: str, slug: str = "", actor: User | None, dry_run: bool = False
) -> Imported:
    """Make a study of the release, once in an installation; or (`dry_run`) do all of it and take it back.

    `slug` is the new study's address, the release's own where it is empty. Raises ArchiveRefusedError, StudyTakenError.
    """
    read = release_read(stream)
    done = Imported(read.manifest)
    try:
        with transaction.atomic():
            done.already = _already(read)
            if done.already is None:
                done.study = _Import(read, done, actor).run(slug or read.manifest["study"]["slug"], name)
            if dry_run:
                raise DryRunOver
    except DryRunOver:
        done.study = None
    except IntegrityError as error:  # a rule of the database that no check here has named
        if "study_unique_slug" in str(error):
            raise StudyTakenError from error
        if "releaseimport_once" in str(error):
            raise StudyTakenError from error
        raise ArchiveRefusedError("rule", str(error).partition("\n")[0][:200]) from error
    return done


def _already(read: ReadRelease) -> ReleaseImport | None:
    same = ReleaseImport.objects.filter(content_sha256=read.content_sha256)
    return same.select_related("study").first()


class _Import:
    """One import, within one transaction: each step finds what those before it have made."""

    def __init__(self, read: ReadRelease, done: Imported, actor: User | None) -> None:
        self.read, self.done, self.actor = read, done, actor
        self.instruments: dict[Key, Instrument] = {}
        self.stimuli: dict[Key, int] = {}
        self.criteria: dict[Key, Criterion] = {}
        self.respondents: dict[UUID, Respondent] = {}
        self.sittings: dict[Key, Sitting] = {}
        self.answers: dict[UUID, Answer] = {}
        self.rounds: dict[int, Round] = {}
        self.raters: dict[str, Rater] = {}
        self.campaigns: dict[int, Campaign] = {}
        self.items: dict[int, set[int]] = {}
        self.decisions: list[Record] = []
        self.n_judgements = 0

    def run(self, slug: str, name: str) -> Study:
        """Raises ArchiveRefusedError."""
        told = self.read.manifest["study"]
        title = measured(told["title"], 200, "title")
        self.study = study_create(slug=slug, title=title, actor=self.actor, simulated=told["simulated"])
        steps: tuple[Callable[[], None], ...] = (
            self.make_rubrics,
            self.make_instruments,
            self.make_respondents,
            self.make_sittings,
            self.make_surveys,
            self.make_experiments,
            self.make_rounds,
            self.make_judgements,
            self.make_campaigns,
            self.make_decisions,
        )
        try:
            for step in steps:
                step()
            for rubric in {one.rubric for one in self.rounds.values()} | set(self.rubrics.values()):
                rules_apply(study=self.study, rubric=rubric)
        except SittingUnrestorableError as error:
            raise ArchiveRefusedError("sitting", f"{error.code}: {error.detail}") from error
        except InstrumentIncompleteError as error:
            raise ArchiveRefusedError("instrument", str(error)[:200]) from error
        except ValueOutsideScaleError as error:
            raise ArchiveRefusedError("scale", str(error)) from error
        except SharingUnknownError as error:
            raise ArchiveRefusedError("sharing") from error
        labels_verify(self.study, self.read, self.answers)
        scores_verify(self.study, self.read, self.sittings)
        self.record(name)
        return self.study

    def record(self, name: str) -> None:
        tables = self.read.tables
        self.done.counts = {
            "people": sum(row.kind == Respondent.Kind.HUMAN for row in self.respondents.values()),
            "models": len(tables["models"]),
            "sittings": len(self.sittings),
            "answers": len(self.answers),
            "judgements": self.n_judgements,
            "labels": len(tables["labels"]),
        }
        if self.read.manifest["policy"].get("timings"):
            self.done.left_aside["timings"] = sum(row["duration_ms"] is not None for row in tables["answers"])
        made = ReleaseImport.objects.create(
            study=self.study,
            content_sha256=self.read.content_sha256,
            file={"name": name[:200], "bytes": self.read.size, "sha256": self.read.sha256},
            manifest=self.read.manifest,
            counts=self.done.counts | {"left_aside": self.done.left_aside},
            made_by=self.actor,
        )
        detail = {"content_sha256": made.content_sha256, **self.done.counts}
        audit_record(actor=self.actor, study=self.study, action="release_import", target=made, detail=detail)

    # --- the test ---------------------------------------------------------------------------------------------------

    def make_rubrics(self) -> None:
        """A rubric is part of the product: the file may name it, and must mean the same by it."""
        self.rubrics: dict[Key, Rubric] = {}
        rows: dict[Key, list[Record]] = defaultdict(list)
        for row in self.read["criteria"]:
            rows[row["rubric"], row["rubric_version"]].append(row)
        for (slug, version), told in rows.items():
            if slug not in RUBRICS or RUBRICS[slug]().version != version:
                raise ArchiveRefusedError("rubric", f"{slug} v{version}"[:100])
            rubric = RUBRICS[slug]()
            here = {one.code: (one.kind, one.scale, one.in_score) for one in rubric.criteria.all()}
            if here != {row["criterion"]: (row["criterion_kind"], row["scale"], row["in_score"]) for row in told}:
                raise ArchiveRefusedError("rubric", f"{slug} v{version}")
            self.rubrics[slug, version] = rubric
            self.criteria |= {(slug, version, one.code): one for one in rubric.criteria.all()}

    def make_instruments(self) -> None:
        stimuli = unique(self.read["stimuli"], "stimuli", "instrument", "instrument_version", "position")
        rows: dict[Key, list[Record]] = defaultdict(list)
        for key, row in stimuli.items():
            rows[key[:2]].append(row)
        for key, row in unique(self.read["instruments"], "instruments", "instrument", "instrument_version").items():
            one(self.rubrics, (row["rubric"], row["rubric_version"]), "criteria")
            instrument = instrument_restore(
                study=self.study,
                slug=measured(row["instrument"], 60, "instrument"),
                version=row["instrument_version"],
                title=measured(row["title"], 200, "title"),
                language=measured(row["language"], 10, "language"),
                instruction=row["instruction"],
                refusal_below=row["refusal_below"],
                lower_case=row["lower_case"],
                stimuli=[stimulus_row(told) for told in rows[key]],
                actor=self.actor,
            )
            self.instruments[key] = instrument
            self.stimuli |= {(*key, position): pk for pk, position in instrument.stimuli.values_list("pk", "position")}

    # --- who took it ------------------------------------------------------------------------------------------------

    def make_respondents(self) -> None:
        kinds: dict[UUID, str] = {}
        for row in self.read["sittings"]:
            kind = known(row["kind"], Respondent.Kind.values, "kind")
            if kinds.setdefault(row["respondent"], kind) != kind:
                raise ArchiveRefusedError("value", f"kind: {row['respondent']}")
        for kind in Respondent.Kind.values:
            told = [one for one, its in kinds.items() if its == kind]
            self.respondents |= respondents_restore(study=self.study, kind=kind, known_as=told)

    def make_sittings(self) -> None:
        names = ("respondent", "instrument", "instrument_version", "sitting")
        answers: dict[Key, list[RestoredAnswer]] = defaultdict(list)
        for key, row in unique(self.read["answers"], "answers", "answer").items():
            place = (row["instrument"], row["instrument_version"], row["position"])
            stimulus = one(self.stimuli, place, "stimuli")
            text = row["text"] or ""
            answers[tuple(row[name] for name in names)].append(RestoredAnswer(key[0], stimulus, row["outcome"], text))
        told = unique(self.read["sittings"], "sittings", *names)
        for key in answers:
            one(told, key, "sittings")
        given = [self.sitting(key, row, answers[key]) for key, row in told.items()]
        sittings, self.answers = sittings_restore(given)
        self.sittings = dict(zip(told, sittings, strict=True))

    def sitting(self, key: Key, row: Record, answers: list[RestoredAnswer]) -> RestoredSitting:
        is_model = row["kind"] == Respondent.Kind.MODEL
        if not isinstance(row["order"], list) or is_model is (row["model"] is None):
            raise ArchiveRefusedError("value", f"sittings: {row['respondent']}")
        return RestoredSitting(
            respondent=self.respondents[row["respondent"]],
            instrument=one(self.instruments, key[1:3], "instruments"),
            ordinal=row["sitting"],
            state=known(row["sitting_state"], Sitting.State.values, "sitting_state"),
            source_label=measured(row["model"], 100, "model") if is_model else f"survey {row['survey']}",
            order=[one(self.stimuli, (*key[1:3], position), "stimuli") for position in row["order"]],
            answers=answers,
        )

    def make_surveys(self) -> None:
        """A survey for each of the release; people of a survey took one instrument."""
        people: dict[int, dict[UUID, Instrument]] = defaultdict(dict)
        persons = {row["respondent"]: str(row["person"]) for row in self.read["sittings"] if row["person"]}
        for key, row in zip(self.sittings, self.read["sittings"], strict=True):
            if row["kind"] == Respondent.Kind.HUMAN:
                if row["survey"] is None:
                    raise ArchiveRefusedError("value", f"survey: {row['respondent']}")
                people[row["survey"]][row["respondent"]] = self.instruments[key[1:3]]
        questions: dict[int, list[Record]] = defaultdict(list)
        for key, row in unique(self.read["questions"], "questions", "survey", "question").items():
            questions[key[0]].append(row)
        responses: dict[int, list[RestoredResponse]] = defaultdict(list)
        for key, row in unique(self.read["responses"], "responses", "survey", "question", "respondent").items():
            if row["respondent"] not in people[key[0]] or all(q["question"] != key[1] for q in questions[key[0]]):
                raise ArchiveRefusedError("reference", f"responses: {key[1]}, {key[2]}"[:200])
            person = self.respondents[row["respondent"]]
            responses[key[0]].append(RestoredResponse(person, key[1], row["response"]))
        statement = (
            f"Release {self.read.manifest['version']} of the study “{self.study.title}” states that these participants "
            f"agreed to the publication of their answers (sha256 {self.read.content_sha256})."
        )
        for number, members in sorted(people.items()):
            survey_restore(
                instrument=next(iter(members.values())),
                title=f"survey {number}",
                statement=statement,
                people={self.respondents[one]: persons.get(one, "") for one in members},
                questions=[question_row(row) for row in questions[number]],
                responses=responses[number],
                actor=self.actor,
            )

    # --- what models were asked -------------------------------------------------------------------------------------

    def make_experiments(self) -> None:
        models = unique(self.read["models"], "models", "model")
        prompts: dict[Key, Prompt] = {}
        for key, row in unique(self.read["prompts"], "prompts", "prompt", "prompt_version").items():
            slug = measured(row["prompt"], 60, "prompt")
            prompts[key] = prompt_restore(study=self.study, slug=slug, version=row["prompt_version"], text=row["text"])
        configs: dict[str, ModelConfig] = {}
        runs: dict[int, list[RestoredRun]] = defaultdict(list)
        for key, row in zip(self.sittings, self.read["sittings"], strict=True):
            if row["kind"] != Respondent.Kind.MODEL:
                continue
            respondent = self.respondents[row["respondent"]]
            config = configs.get(row["model"])
            if config is None:
                given = one(models, (row["model"],), "models")
                config = configs[row["model"]] = model_restore(
                    study=self.study, respondent=respondent, given=model_row(given)
                )
            if config.respondent_id != respondent.pk or row["run"] is None:
                raise ArchiveRefusedError("value", f"sittings: {row['respondent']}")
            state = known(row["run_state"], Run.State.values, "run_state")
            runs[row["experiment"]].append(RestoredRun(config, self.sittings[key], row["run"], state))
        told = unique(self.read["experiments"], "experiments", "experiment")
        for number in runs:
            one(told, (number,), "experiments")
        for (number,), row in sorted(told.items()):
            experiment_restore(
                study=self.study,
                instrument=one(self.instruments, (row["instrument"], row["instrument_version"]), "instruments"),
                prompt=one(prompts, (row["prompt"], row["prompt_version"]), "prompts"),
                title=measured(row["title"], 200, "title"),
                runs_planned=row["runs_planned"],
                max_attempts=row["max_attempts"],
                runs=runs[number],
                actor=self.actor,
            )

    # --- how it was judged ------------------------------------------------------------------------------------------

    def make_rounds(self) -> None:
        """Those of raters. What was counted by a rule is counted here again; for other judges there is no place yet."""
        rows = unique(self.read["rounds"], "rounds", "round")
        told = {key[0]: row for key, row in sorted(rows.items())}
        self.told_rounds = {n: row for n, row in told.items() if row["purpose"] != Round.Purpose.AUTOMATIC}
        allowed = (Round.Purpose.RATING, Round.Purpose.IMPORTED, Round.Purpose.ADJUDICATION, Round.Purpose.REPEAT)
        adjudications_last = sorted(
            self.told_rounds.items(), key=lambda told: told[1]["purpose"] == Round.Purpose.ADJUDICATION
        )
        for number, row in adjudications_last:
            purpose = known(row["purpose"], allowed, "purpose")
            parent = None
            if purpose == Round.Purpose.ADJUDICATION:
                parent = self.rounds.get(row["belongs_to"] or 0)
                if parent is None or parent.purpose != Round.Purpose.IMPORTED:
                    raise ArchiveRefusedError("reference", f"rounds: {number}")
            self.rounds[number] = round_restore(
                study=self.study,
                rubric=one(self.rubrics, (row["rubric"], row["rubric_version"]), "criteria"),
                purpose=purpose,
                guideline_version=row["guideline_version"],
                adjudicates=parent,
            )

    def make_judgements(self) -> None:
        """Those of raters in rounds but adjudications, which come when the labels before them are frozen."""
        rows = unique(self.read["judgements"], "judgements", "round", "answer", "criterion", "judge")
        kept = []
        for row in rows.values():
            kind = known(row["judge_kind"], Judge.Kind.values, "judge_kind")
            if kind == Judge.Kind.RATER:
                one(self.told_rounds, row["round"], "rounds")
                kept.append(row)
            elif kind != Judge.Kind.RULE:
                name = f"judgements_{kind}"
                self.done.left_aside[name] = self.done.left_aside.get(name, 0) + 1
        names = sorted({measured(row["judge"], 20, "judge") for row in kept}, key=lambda name: (len(name), name))
        self.raters = raters_restore(study=self.study, pseudonyms=names)
        self.decisions = [row for row in kept if self.is_adjudication(row["round"])]
        judged = [row for row in kept if not self.is_adjudication(row["round"])]
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
            judge_id=self.raters[row["judge"]].judge_id,
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
