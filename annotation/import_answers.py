"""Which answer a record of another tool judges. What is not found, or fits several, is named and never guessed."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from annotation.importers.plan import AnswerKey
from corpus.display import display_text
from corpus.models import Answer, Instrument, Sitting
from corpus.tables.table import folded
from studies.models import Study

RespondentsNamed = Callable[[Study, Collection[str]], Mapping[str, set[int]]]
"""Of names that platforms gave to respondents: folded name to respondents. What knows them is a layer beside this
one, so it is handed in."""


class Known(NamedTuple):
    pk: int
    blind_id: UUID
    respondent_id: int
    public_id: UUID
    stimulus_id: int
    position: int
    stimulus_text: str
    is_practice: bool
    instrument_id: int
    standing: str
    sitting_state: str
    outcome: str
    text: str


@dataclass(frozen=True, slots=True)
class Found:
    """The answer, or why there is none: a code of `import_words.REASONS`."""

    answer: Known | None = None
    reason: str = ""


class Answers:
    """Every answer of the study, practice and withdrawn ones among them, so that it can be said what a key means.

    Two queries, and one of `named`.
    """

    def __init__(
        self, study: Study, keys: Collection[AnswerKey], mapping: Mapping[str, str], named: RespondentsNamed | None
    ) -> None:
        self.mapping = {folded(key): value for key, value in mapping.items()}
        self.lower_case = dict(Instrument.objects.filter(study=study).values_list("pk", "lower_case"))
        names = {folded(key.respondent) for key in keys if key.respondent}
        self.named = named(study, names) if named and names else {}
        self.by_id: dict[UUID, Known] = {}
        self.by_respondent: dict[int, list[Known]] = defaultdict(list)
        self.by_public_id: dict[str, set[int]] = defaultdict(set)
        self.by_text: dict[str, list[Known]] = defaultdict(list)
        with_text = any(key.text and not key.key and not (key.respondent and key.stimulus) for key in keys)
        rows = Answer.objects.filter(sitting__instrument__study=study).values_list(
            "pk",
            "blind_id",
            "sitting__respondent_id",
            "sitting__respondent__public_id",
            "stimulus_id",
            "stimulus__position",
            "stimulus__text",
            "stimulus__is_practice",
            "sitting__instrument_id",
            "sitting__standing",
            "sitting__state",
            "outcome",
            "text",
        )
        for row in rows.order_by("pk").iterator(chunk_size=5_000):
            answer = Known._make(row)
            self.by_id[answer.blind_id] = answer
            if names:
                self.by_respondent[answer.respondent_id].append(answer)
                self.by_public_id[str(answer.public_id)].add(answer.respondent_id)
            if with_text and answer.outcome == Answer.Outcome.GIVEN:
                self.by_text[self._shown(answer, answer.text)].append(answer)

    def find(self, key: AnswerKey) -> Found:
        """By its id; else by respondent and stimulus; else by its text. What else the record says has to agree."""
        if key.key:
            several = self._by_key(key.key)
        elif key.respondent and key.stimulus:
            several = [one for one in self._by_respondent(key.respondent) if _asks(one, key.stimulus)]
        else:
            several = self._by_text(key.text)
            if key.stimulus:
                several = [one for one in several if _asks(one, key.stimulus)]
        if len(several) != 1:
            return Found(reason="ambiguous_answer" if several else "unknown_answer")
        reason = self._reason(several[0], key)
        return Found(reason=reason) if reason else Found(several[0])

    def _by_key(self, key: str) -> list[Known]:
        try:
            found = self.by_id.get(UUID(self.mapping.get(folded(key), key).strip()))
        except ValueError:
            return []
        return [found] if found else []

    def _by_respondent(self, name: str) -> list[Known]:
        """By the public id that Luria gave, or a platform's name. One who fits both ways is one."""
        respondents = self.by_public_id.get(folded(name), set()) | self.named.get(folded(name), set())
        return [answer for pk in sorted(respondents) for answer in self.by_respondent[pk]]

    def _by_text(self, text: str) -> list[Known]:
        shown = {display_text(text, lower_case=lower) for lower in set(self.lower_case.values())}
        found = {answer.pk: answer for one in shown for answer in self.by_text.get(one, ())}
        return [answer for answer in found.values() if self._shown(answer, text) == self._shown(answer, answer.text)]

    def _reason(self, answer: Known, key: AnswerKey) -> str:
        if answer.standing == Sitting.Standing.WITHDRAWN or answer.outcome == Answer.Outcome.WITHDRAWN:
            return "withdrawn"
        if answer.is_practice:
            return "practice_task"
        if answer.sitting_state == Sitting.State.OPEN:
            return "open_sitting"
        if answer.outcome != Answer.Outcome.GIVEN:
            return "no_text"
        if key.stimulus and not _asks(answer, key.stimulus):
            return "other_stimulus"
        if key.text and self._shown(answer, key.text) != self._shown(answer, answer.text):
            return "other_text"
        return ""

    def _shown(self, answer: Known, text: str) -> str:
        return display_text(text, lower_case=self.lower_case[answer.instrument_id])


def _asks(answer: Known, stimulus: str) -> bool:
    """Whether the answer is one to the stimulus of this position, or of these given words."""
    if stimulus.isascii() and stimulus.isdecimal():
        return answer.position == int(stimulus[:9])
    return folded(answer.stimulus_text) == folded(stimulus)
