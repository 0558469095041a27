"""Who judged: raters by pseudonym, models by their prompt, classifiers, which have done their work elsewhere."""

import hashlib
import re
from collections import defaultdict

from annotation.models import Rater
from annotation.restoring import raters_restore
from corpus.models import Respondent
from llmruns.restoring import model_judge_restore
from reports.releases.archive import ArchiveRefusedError
from reports.releases.making import CorpusImport
from reports.releases.reading import ReadRelease, Record
from reports.releases.rows import Key, known, measured, one, unique
from scoring.models import Classifier, Judge, Split
from scoring.restoring import RestoredClassifier, classifier_restore, split_restore
from studies.models import Study, User

MOST = 2**31 - 1  # of a count or a seed
_SHA256 = re.compile(r"[0-9a-f]{64}")
SIDES = {"train": True, "test": False}


class JudgesImport(CorpusImport):
    """Each step raises ArchiveRefusedError."""

    def __init__(self, read: ReadRelease, study: Study, actor: User | None) -> None:
        super().__init__(read, study, actor)
        self.judges: dict[str, Judge] = {}  # by their name in the release
        self.raters: dict[str, Rater] = {}
        self.splits: dict[int, Split] = {}
        self.classifiers: dict[str, Classifier] = {}

    def make_splits(self) -> None:
        told = unique(self.read["splits"], "splits", "split")
        sides: dict[int, dict[int, bool]] = defaultdict(dict)
        for (number, person), row in unique(self.read["sides"], "sides", "split", "respondent").items():
            one(told, (number,), "splits")
            respondent = one(self.respondents, person, "sittings")
            if respondent.kind != Respondent.Kind.HUMAN:
                raise ArchiveRefusedError("value", f"sides: {person}")
            sides[number][respondent.pk] = SIDES[known(row["side"], SIDES, "side")]
        for (number,), row in sorted(told.items()):
            if not 0 < row["fraction"] < 1:
                raise ArchiveRefusedError("value", f"fraction: {row['fraction']}")
            known_as = hashlib.sha256(f"{self.read.content_sha256} {number}".encode()).hexdigest()
            self.splits[number] = split_restore(
                study=self.study,
                seed=_counted(row["seed"], "seed"),
                fraction=row["fraction"],
                known_as=known_as,
                sides=sides[number],
            )

    def make_judges(self) -> None:
        """In the order of the release, so that they stand in lists as they stood there."""
        told = unique(self.read["judges"], "judges", "judge")
        kinds = {key[0]: known(row["judge_kind"], Judge.Kind.values, "judge_kind") for key, row in told.items()}
        names = [measured(name, 20, "judge") for name, kind in kinds.items() if kind == Judge.Kind.RATER]
        names.sort(key=lambda name: (len(name), name))
        self.raters = raters_restore(study=self.study, pseudonyms=names)
        self.judges = {name: rater.judge for name, rater in self.raters.items()}
        rubrics = {row["judge"]: (row["rubric"], row["rubric_version"]) for row in self.read["rounds"] if row["judge"]}
        for (name,), row in told.items():
            if kinds[name] == Judge.Kind.MODEL:
                self.judges[name] = self.model_judge(row, one(rubrics, name, "rounds"))
            elif kinds[name] == Judge.Kind.CLASSIFIER and row["recipe"] is not None:
                self.classifiers[name] = self.classifier(row, one(rubrics, name, "rounds"))
                self.judges[name] = self.classifiers[name].judge

    def model_judge(self, row: Record, rubric: Key) -> Judge:
        made = model_judge_restore(
            config=self.config(row["model"] or "", None),
            prompt=one(self.prompts, (row["prompt"], row["prompt_version"]), "prompts"),
            rubric=one(self.rubrics, rubric, "criteria"),
        )
        return made.judge

    def classifier(self, row: Record, rubric: Key) -> Classifier:
        codes, parameters, where = row["criteria"], row["parameters"], f"judges: {row['judge']}"[:60]
        if not isinstance(codes, list) or not codes or len(set(map(str, codes))) < len(codes):
            raise ArchiveRefusedError("value", f"{where}, criteria")
        if not isinstance(parameters, dict) or type(parameters.get("seed")) is not int:
            raise ArchiveRefusedError("value", f"{where}, parameters")
        given = RestoredClassifier(
            title=measured(row["title"] or "", 200, "title"),
            recipe=known(row["recipe"], Classifier.Recipe.values, "recipe"),
            base_model=measured(row["base_model"] or "", 300, "base_model"),
            criteria=[one(self.criteria, (*rubric, str(code)), "criteria") for code in codes],
            parameters=parameters | {"held_out": self.held_out(row, where)},
            n_train=_counted(row["n_train"], f"{where}, n_train"),
            data_hash=_digest(row["data_sha256"], f"{where}, data_sha256") if row["data_sha256"] else "",
            weights_hash=_digest(row["weights_sha256"], f"{where}, weights_sha256"),
            trained_on=row["trained_on"],
        )
        return classifier_restore(split=one(self.splits, row["split"], "splits"), given=given, actor=self.actor)

    def held_out(self, row: Record, where: str) -> list[int]:
        told = row["held_out"]
        if not isinstance(told, list) or not all(isinstance(place, list) and len(place) == 3 for place in told):
            raise ArchiveRefusedError("value", f"{where}, held_out")
        return sorted(one(self.stimuli, tuple(place), "stimuli") for place in told)


def _counted(value: int | None, where: str) -> int:
    if value is None or not 0 <= value <= MOST:
        raise ArchiveRefusedError("value", f"{where}: {value}")
    return value


def _digest(value: str | None, where: str) -> str:
    if value is None or not _SHA256.fullmatch(value):
        raise ArchiveRefusedError("value", f"{where}: {str(value)[:40]}")
    return value
