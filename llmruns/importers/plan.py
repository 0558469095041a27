"""What a file of recorded replies comes to: which run answered what, by the rules that live calls are judged by."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from llmruns.importers.records import PARAMETERS, Line, Problem
from llmruns.replies import classify_reply

GIVEN, NO_VALID_REPLY = "given", "no_valid_reply"
MISSING, UNFINISHED, ONLY_FINAL = "not_in_file", "attempts_left", "final_answer_only"
ONCE = ("model_requested", "parameters_asked")  # what all records of one model agree on
FAILURES = ("failed", "lost", "in_flight")
REPLY_STATES = ("ok", "bad_reply", "surplus")
WORDS = "{words}"
LOG_CALLS = 300  # of a log that are kept to tell whether it is this study's own


@dataclass(frozen=True, slots=True)
class Item:
    """A stimulus of the instrument."""

    position: int
    text: str
    is_practice: bool = False


@dataclass(slots=True)
class Entry:
    """What a line says of one stimulus in one run; its bodies are read again when they are stored."""

    line: int
    attempt: int | None = None
    # Of a reply: its answer, or the kind of its failure. Of a technical failure: its kind.
    answer: str | None = None
    kind: str = ""
    state: str = "ok"  # as it will stand in the log of calls
    is_final: bool = False  # only the final answer is known
    outcome: str = GIVEN


@dataclass(slots=True)
class Settled:
    """What became of a stimulus in a run. `outcome` "": no answer, `problem` says why."""

    outcome: str = ""
    text: str = ""
    attempts: int = 0
    failures: int = 0
    problem: str = ""


@dataclass(slots=True)
class PlannedRun:
    model: str
    ordinal: int
    stimuli: dict[int, Settled] = field(default_factory=dict)  # by position, all that are not practice

    @property
    def missing(self) -> list[int]:
        return [position for position, settled in self.stimuli.items() if not settled.outcome]


@dataclass(slots=True)
class PlannedModel:
    label: str
    first_line: int
    requested: str = ""
    asked: dict[str, Any] | None = None  # None: no record says


@dataclass
class Plan:
    problems: list[Problem] = field(default_factory=list)  # nothing is stored while there is one
    notes: list[Problem] = field(default_factory=list)  # line 0: of the file as a whole
    models: dict[str, PlannedModel] = field(default_factory=dict)
    runs: dict[tuple[str, int], PlannedRun] = field(default_factory=dict)
    entries: dict[int, tuple[str, int, int, Entry]] = field(default_factory=dict)  # by line: model, run, position
    records: int = 0
    digest: str = ""
    max_attempts: int = 10
    runs_planned: int = 1
    template: str = ""  # the prompt, as the requests have it; "" where they do not tell
    # Of a log of calls, the first ones by their number there: model, position, run and reply.
    log_calls: dict[int, tuple[str, int, int, str]] = field(default_factory=dict)
    passed_over: Counter[str] = field(default_factory=Counter)

    @property
    def counts(self) -> dict[str, int]:
        settled = [one for run in self.runs.values() for one in run.stimuli.values()]
        return {
            "records": self.records,
            "models": len(self.models),
            "runs": len(self.runs),
            "incomplete": sum(bool(run.missing) for run in self.runs.values()),
            "answers": sum(one.outcome == GIVEN for one in settled),
            "no_valid_reply": sum(one.outcome == NO_VALID_REPLY for one in settled),
            "replies": sum(entry.state in REPLY_STATES and not entry.is_final for *_, entry in self.entries.values()),
            "failures": sum(entry.state in FAILURES for *_, entry in self.entries.values()),
            "final_only": sum(entry.is_final for *_, entry in self.entries.values()),
            "surplus": sum(entry.state == "surplus" for *_, entry in self.entries.values()),
        }


def plan_replies(
    lines: Iterable[Line],
    *,
    items: Sequence[Item],
    instrument: tuple[str, int],
    max_attempts: int | None = None,
    longest_answer: int = 2_000,
) -> Plan:
    """Sort the records by model, run and stimulus and let each reply be judged as a live one is.

    `instrument` is slug and version. `max_attempts`: after so many bad replies there is no valid one; None: as the file
    says, else ten. `longest_answer` in characters.
    """
    return _Planning(items, instrument, longest_answer).plan(lines, max_attempts)


class _Planning:
    def __init__(self, items: Sequence[Item], instrument: tuple[str, int], longest_answer: int) -> None:
        self.items = {item.position: item for item in items}
        self.by_text = _by_text(items)
        self.instrument = instrument
        self.longest_answer = longest_answer
        self.found = Plan()
        self.entries: dict[tuple[str, int, int], list[Entry]] = {}
        self.templates: dict[str, int] = {}
        self.unread_prompts = 0
        self.unknown: dict[str, tuple[int, int]] = {}  # field: first line, how many
        self.said: dict[str, Counter[int]] = {"max_attempts": Counter(), "runs_planned": Counter()}
        self.experiments: set[int] = set()  # that a log of calls is of
        self.strange = 0  # records of a stimulus or an instrument that is not this one

    def plan(self, lines: Iterable[Line], max_attempts: int | None) -> Plan:
        found, digest = self.found, hashlib.sha256()
        for line in lines:
            found.records += 1
            digest.update(line.digest)
            self._take(line)
        found.digest = digest.hexdigest()
        said = self.said["max_attempts"]
        found.max_attempts = max_attempts or (max(said) if said else 10)
        for (model, run, position), entries in self.entries.items():
            settled = self._settle(entries)
            found.runs.setdefault((model, run), PlannedRun(model, run)).stimuli[position] = settled
            for entry in entries:
                found.entries[entry.line] = (model, run, position, entry)
        self._complete()
        self._notes()
        if len(self.experiments) > 1:  # the runs of one bear the numbers of the other's: everything would collide
            found.problems = [Problem("several_experiments", 0, ", ".join(map(str, sorted(self.experiments)[:20])))]
        elif not found.records:
            found.problems.insert(0, Problem("empty", 1))
        elif self.strange == found.records:
            found.problems.insert(0, Problem("wrong_instrument", 1, f"{self.instrument[0]}:{self.instrument[1]}"))
        found.problems.sort(key=lambda problem: problem.line)
        return found

    # --- one record ---------------------------------------------------------------------------------------------

    def _wrong(self, line: Line, code: str, detail: str = "") -> None:
        line.problems.append(Problem(code, line.number, detail))

    def _take(self, line: Line) -> None:
        values = line.values
        if line.is_log and values.get("purpose") != "answer":
            self.found.passed_over[values.get("purpose") or ""] += 1
            return
        for name in line.unknown:
            first, number = self.unknown.get(name, (line.number, 0))
            self.unknown[name] = (first, number + 1)
        if values:
            place = self._place(line)
            entry = self._entry(line)
            if not line.problems and place is not None and entry is not None:
                self._model(line, place[0])
                self._prompt(line, place[2])
                self.entries.setdefault(place, []).append(entry)
                if line.call and values["raw_reply"] and len(self.found.log_calls) < LOG_CALLS:
                    model, run, position = place
                    self.found.log_calls[line.call] = (model, position, run, values["raw_reply"])
        self.found.problems += line.problems

    def _place(self, line: Line) -> tuple[str, int, int] | None:
        values = line.values
        for name in ("model", "run"):
            if not str(values[name] or "").strip() and not any(
                problem.detail.startswith(name) for problem in line.problems
            ):
                self._wrong(line, "missing", name)
        for name, own in zip(("instrument", "instrument_version"), self.instrument, strict=True):
            if values[name] is not None and values[name] != own:
                self._wrong(line, "other_instrument", f"{name} {values[name]}")
                self.strange += 1
                return None
        position = self._position(line)
        if position is None or line.problems:
            return None
        for name, counter in self.said.items():
            if values[name] is not None:
                counter[values[name]] += 1
        if values["experiment_id"] is not None:
            self.experiments.add(values["experiment_id"])
        return (values["model"].strip(), values["run"], position)

    def _position(self, line: Line) -> int | None:
        """By number, by text, or by both, which then have to agree."""
        number, text = line.values["position"], line.values["stimulus"]
        if number is None and text is None:
            if not line.problems:
                self._wrong(line, "missing", "position, stimulus")
            return None
        by_text = self.by_text.get(_folded(text)) if text is not None else None
        if text is not None and not by_text:
            self._strange(line, "unknown_stimulus", text[:200])
            return None
        if number is not None:
            item = self.items.get(number)
            if item is None:
                self._strange(line, "unknown_stimulus", str(number))
                return None
            if by_text and item not in by_text:
                self._strange(line, "other_stimulus", f"{number}: {item.text[:200]}")
                return None
        else:
            assert by_text  # noqa: S101 - one of the two is there
            if len(by_text) > 1:
                self._wrong(line, "ambiguous_stimulus", ", ".join(str(one.position) for one in by_text))
                return None
            item = by_text[0]
        if item.is_practice:
            self._wrong(line, "practice", str(item.position))
            return None
        return item.position

    def _strange(self, line: Line, code: str, detail: str) -> None:
        self.strange += 1
        self._wrong(line, code, detail)

    def _entry(self, line: Line) -> Entry | None:
        """The verdict on what the line records: a reply, a technical failure, or an answer without its reply."""
        values, state = line.values, line.values["state"] or ""
        is_final = values["final_answer"] is not None or values["outcome"] is not None
        if is_final and values["raw_reply"] is not None:
            self._wrong(line, "reply_and_final")
            return None
        if is_final:
            return self._final(line)
        if state in FAILURES:
            if values["attempt"] is not None:
                self._wrong(line, "failure_with_attempt", str(values["attempt"]))
            kind = values["kind"] or ("lost" if state != "failed" else "unexpected")
            return Entry(line.number, None, kind=kind, state="failed" if state == "failed" else "lost")
        if state and state not in REPLY_STATES:
            self._wrong(line, "unknown_state", state)
            return None
        if values["raw_reply"] is None and not values["refusal"]:
            self._wrong(line, "missing", "raw_reply")
            return None
        return self._reply(line)

    def _reply(self, line: Line) -> Entry:
        values = line.values
        # The log writes what the model said in refusing into `detail`.
        refusal = values["refusal"] or (values["detail"] if line.is_log and values["kind"] == "refused" else None)
        verdict = classify_reply(values["raw_reply"], values["finish_reason"], refusal)
        answer: str | None = verdict.answer
        kind: str = verdict.error or ""
        if answer is not None and len(answer) > self.longest_answer:
            answer, kind = None, "too_long"
        if answer is not None and values["escaped"] and values["state"] == "bad_reply":
            answer, kind = None, values["kind"] or "format"  # judged before its NUL was written as text
        if values["state"] == "surplus":  # it was so where the log comes from
            return Entry(line.number, None, answer, kind, "surplus")
        return Entry(line.number, values["attempt"], answer, kind, "bad_reply" if kind else "ok")

    def _final(self, line: Line) -> Entry | None:
        values = line.values
        outcome, text = values["outcome"] or GIVEN, values["final_answer"]
        if outcome not in (GIVEN, NO_VALID_REPLY) or (outcome == GIVEN) != (text is not None):
            self._wrong(line, "outcome_unclear", f"{GIVEN}, {NO_VALID_REPLY}")
            return None
        if text is not None and len(text) > self.longest_answer:
            self._wrong(line, "too_long", f"final_answer: {self.longest_answer}")
            return None
        spoken = ("attempt", "cost", "input_tokens", "output_tokens", "finish_reason", "request", "response")
        lost = [name for name in spoken if values[name] not in (None, "")]
        if lost:
            self._wrong(line, "final_with_call", ", ".join(lost))
            return None
        return Entry(line.number, None, text, is_final=True, outcome=outcome)

    def _model(self, line: Line, label: str) -> None:
        """What is said of a model has to be the same in all its records: two settings are two models."""
        model = self.found.models.setdefault(label, PlannedModel(label, line.number))
        requested, asked = line.values["model_requested"], line.values["parameters_asked"]
        if requested:
            if model.requested and model.requested != requested:
                self._wrong(line, "model_differs", f"{requested} ≠ {model.requested}")
            model.requested = model.requested or requested
        if asked is not None:
            asked = {name: asked.get(name) for name in PARAMETERS if name in asked}
            for name, value in asked.items():
                if not _is_parameter(name, value):
                    self._wrong(line, "wrong_type", f"parameters_asked.{name}: number")
                    return
            if model.asked is not None and model.asked != asked:
                self._wrong(line, "parameters_differ", f"{asked} ≠ {model.asked}")
            model.asked = asked if model.asked is None else model.asked

    def _prompt(self, line: Line, position: int) -> None:
        """The prompt, from the request: its one message with the stimulus taken out."""
        request = line.values["request"]
        if not request:
            return
        template = template_of(request, self.items[position].text)
        if template is None:
            self.unread_prompts += 1
            return
        self.templates.setdefault(template, line.number)
        if len(self.templates) > 1 and self.templates[template] == line.number:
            self._wrong(line, "prompts_differ")

    # --- one stimulus of one run --------------------------------------------------------------------------------

    def _settle(self, entries: list[Entry]) -> Settled:
        """Which reply decides. Marks the others as what they are and gives every decided one its number."""
        problems, most = self.found.problems, self.found.max_attempts
        final = [entry for entry in entries if entry.is_final]
        if final:
            for entry in entries:
                if entry is not final[0]:
                    problems.append(Problem("second_final", entry.line, str(final[0].line)))
            return Settled(final[0].outcome, final[0].answer or "", problem=ONLY_FINAL)
        settled = Settled(failures=sum(entry.state in FAILURES for entry in entries))
        for reply in self._numbered([entry for entry in entries if entry.state in ("ok", "bad_reply")]):
            if settled.outcome or reply.attempt is None or reply.attempt > most:
                reply.state, reply.attempt = "surplus", None
                continue
            settled.attempts = reply.attempt
            if reply.answer is not None:
                settled.outcome, settled.text = GIVEN, reply.answer
            elif reply.attempt >= most:
                settled.outcome = NO_VALID_REPLY
        if not settled.outcome:
            kinds = [entry.kind for entry in entries if entry.state in FAILURES]
            settled.problem = kinds[-1] if kinds else UNFINISHED
        return settled

    def _numbered(self, replies: list[Entry]) -> list[Entry]:
        """In the order of their attempts; where none has a number, in the order of the file."""
        if all(reply.attempt is None for reply in replies):
            if len(replies) > 1:
                self.found.passed_over["unnumbered"] += 1
            for number, reply in enumerate(replies, start=1):
                reply.attempt = number
            return replies
        by_number: dict[int, Entry] = {}
        for reply in replies:
            if reply.attempt is None:
                self.found.problems.append(Problem("attempt_missing", reply.line))
            elif reply.attempt in by_number:
                detail = f"{reply.attempt}; {by_number[reply.attempt].line}"
                self.found.problems.append(Problem("duplicate_attempt", reply.line, detail))
            else:
                by_number[reply.attempt] = reply
        ordered = [by_number[number] for number in sorted(by_number)]
        if ordered and ordered[-1].attempt != len(ordered):
            self.found.passed_over["gaps"] += 1
        return ordered

    # --- the whole ----------------------------------------------------------------------------------------------

    def _complete(self) -> None:
        """Every run has every stimulus; those of which the file says nothing have no answer."""
        found = self.found
        wanted = sorted(item.position for item in self.items.values() if not item.is_practice)
        for run in found.runs.values():
            run.stimuli = {position: run.stimuli.get(position, Settled(problem=MISSING)) for position in wanted}
        found.runs = dict(sorted(found.runs.items()))
        ordinals = [run.ordinal for run in found.runs.values()]
        found.runs_planned = max([*ordinals, *self.said["runs_planned"]], default=1)
        if len(self.templates) == 1:
            (found.template,) = self.templates

    def _notes(self) -> None:
        found, counts = self.found, self.found.counts
        for run in found.runs.values():
            if run.missing:
                found.notes.append(
                    Problem("run_incomplete", 0, f"{run.model}, {run.ordinal}: {', '.join(map(str, run.missing))}")
                )
        runs = Counter(run.model for run in found.runs.values())
        few = [f"{model}: {number}" for model, number in runs.items() if number < found.runs_planned]
        if few:
            found.notes.append(Problem("fewer_runs", 0, f"{found.runs_planned}; {', '.join(few)}"))
        for name, (first, number) in sorted(self.unknown.items()):
            found.notes.append(Problem("unknown_field", first, f"{name[:100]}; {number}"))
        for code, number in [
            ("surplus", counts["surplus"]),
            ("final_only", counts["final_only"]),
            ("unnumbered", found.passed_over.pop("unnumbered", 0)),
            ("gaps", found.passed_over.pop("gaps", 0)),
            ("prompt_unread", self.unread_prompts),
            ("not_answers", sum(found.passed_over.values())),
        ]:
            if number:
                found.notes.append(Problem(code, 0, str(number)))
        silent = [model.label for model in found.models.values() if model.asked is None]
        if silent:
            found.notes.append(Problem("parameters_unknown", 0, ", ".join(silent)))


def template_of(request: Mapping[str, Any], stimulus: str) -> str | None:
    """The one message of a request with {words} for the stimulus; None where it is built otherwise."""
    messages = request.get("messages")
    if not isinstance(messages, list) or len(messages) != 1 or not isinstance(messages[0], dict):
        return None
    content = messages[0].get("content")
    if not isinstance(content, str) or not stimulus or stimulus not in content or WORDS in content:
        return None
    return content.replace(stimulus, WORDS)


def _is_parameter(name: str, value: Any) -> bool:
    """Whether a configuration can hold it; None is the provider's default."""
    if value is None:
        return True
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**31:
        return False
    return name != "max_output_tokens" or value == int(value)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _by_text(items: Sequence[Item]) -> dict[str, list[Item]]:
    found: dict[str, list[Item]] = {}
    for item in items:
        found.setdefault(_folded(item.text), []).append(item)
    return found
