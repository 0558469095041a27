"""The test, who took it, and what models were asked: the part of an import before anything is judged."""

from collections import defaultdict
from uuid import UUID

from corpus.models import Answer, Instrument, Respondent, Sitting
from corpus.restoring import RestoredAnswer, RestoredSitting, instrument_restore, respondents_restore, sittings_restore
from llmruns.models import ModelConfig, Prompt, Run
from llmruns.restoring import RestoredRun, experiment_restore, model_restore, prompt_restore
from reports.releases.archive import ArchiveRefusedError
from reports.releases.reading import ReadRelease, Record
from reports.releases.rows import Key, known, measured, model_row, one, question_row, stimulus_row, unique
from scoring.models import Criterion, Rubric
from scoring.restoring import accepted_forms_restore
from scoring.services import RUBRICS
from studies.models import Study, User
from surveys.restoring import RestoredResponse, survey_restore


class CorpusImport:
    """The steps find what those before them have made. Each raises ArchiveRefusedError."""

    def __init__(self, read: ReadRelease, study: Study, actor: User | None) -> None:
        self.read, self.study, self.actor = read, study, actor
        self.rubrics: dict[Key, Rubric] = {}
        self.criteria: dict[Key, Criterion] = {}
        self.instruments: dict[Key, Instrument] = {}
        self.stimuli: dict[Key, int] = {}
        self.respondents: dict[UUID, Respondent] = {}
        self.sittings: dict[Key, Sitting] = {}
        self.answers: dict[UUID, Answer] = {}
        self.prompts: dict[Key, Prompt] = {}
        self.configs: dict[str, ModelConfig] = {}

    # --- the test ---------------------------------------------------------------------------------------------------

    def make_rubrics(self) -> None:
        """A rubric is part of the product: the file may name it, and must mean the same by it."""
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

    def make_accepted_forms(self) -> None:
        forms: dict[int, list[tuple[str, str, bool]]] = defaultdict(list)
        for row in self.read["forms"]:
            place = (row["instrument"], row["instrument_version"], row["position"])
            given, form = measured(row["given"], 100, "given"), measured(row["form"], 100, "form")
            forms[one(self.stimuli, place, "stimuli")].append((given, form, row["retired"]))
        for stimulus, own in forms.items():
            accepted_forms_restore(stimulus_id=stimulus, forms=own)

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

    def make_prompts(self) -> None:
        for key, row in unique(self.read["prompts"], "prompts", "prompt", "prompt_version").items():
            self.prompts[key] = prompt_restore(
                study=self.study,
                slug=measured(row["prompt"], 60, "prompt"),
                version=row["prompt_version"],
                purpose=known(row["purpose"], Prompt.Purpose.values, "purpose"),
                text=row["text"],
            )

    def config(self, model: str, respondent: Respondent | None) -> ModelConfig:
        """The configuration of this name, made at the first call; without a respondent it only judges."""
        if model not in self.configs:
            given = model_row(one(self.models, (model,), "models"))
            owner = respondent or Respondent.objects.create(study=self.study, kind=Respondent.Kind.MODEL)
            self.configs[model] = model_restore(study=self.study, respondent=owner, given=given)
        return self.configs[model]

    def make_experiments(self) -> None:
        self.models = unique(self.read["models"], "models", "model")
        runs: dict[int, list[RestoredRun]] = defaultdict(list)
        for key, row in zip(self.sittings, self.read["sittings"], strict=True):
            if row["kind"] != Respondent.Kind.MODEL:
                continue
            respondent = self.respondents[row["respondent"]]
            config = self.config(row["model"], respondent)
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
                prompt=one(self.prompts, (row["prompt"], row["prompt_version"]), "prompts"),
                title=measured(row["title"], 200, "title"),
                runs_planned=row["runs_planned"],
                max_attempts=row["max_attempts"],
                runs=runs[number],
                actor=self.actor,
            )
