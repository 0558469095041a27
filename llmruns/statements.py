"""The statements of a call's way, each sent once: what a claim reads and writes, what a record reads and writes.

They say what the rules elsewhere say (pricing.price_at, limits.configs_under; tests compare), in a form that Django
need not put together for every call: that was two thirds of what a call cost. Locks are taken in the order of the
`FOR` clauses: PostgreSQL locks the rows of one joined row in that order.
"""

from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from itertools import islice
from typing import Any

from llmruns.models import Call, Credential, Experiment, ModelConfig, Price, Run, RunStimulus
from llmruns.rows import assigned_values, assignments, columns, insert_statement, insert_values, instance, width
from studies.database import planned_cursor

# The price and the limit under which a configuration is asked; {0} stands before its columns.
_PRICE = """
  (SELECT * FROM llmruns_price
   WHERE (study_id = {0}study_id OR study_id IS NULL) AND provider = {0}provider AND model = {0}model
     AND valid_from <= %(day)s ORDER BY study_id NULLS LAST, valid_from DESC LIMIT 1)"""
_LIMIT_ID = """
  (SELECT id FROM llmruns_providerlimit
   WHERE study_id = {0}study_id AND provider = {0}provider AND base_url IN ('', {0}base_url)
   ORDER BY base_url = '' LIMIT 1)"""
_TERMS = f"""
SELECT (SELECT id FROM {_PRICE} price), {_LIMIT_ID} FROM llmruns_modelconfig c WHERE c.id = %(config)s
""".replace("{0}", "c.")  # noqa: S608 - our own names

_TO_ASK = f"""
SELECT i.state, i.due_at, r.state, e.state, e.id, e.cap IS NOT NULL, e.currency, p.text, s.text, l.id,
  {columns(ModelConfig, "c")}, {columns(Credential, "k")}, {columns(Price, "price")}
FROM llmruns_runstimulus i
JOIN llmruns_run r ON r.id = i.run_id
JOIN llmruns_experiment e ON e.id = r.experiment_id
JOIN llmruns_prompt p ON p.id = e.prompt_id
JOIN corpus_stimulus s ON s.id = i.stimulus_id
JOIN llmruns_modelconfig c ON c.id = r.config_id
LEFT JOIN llmruns_credential k ON k.id = c.credential_id
LEFT JOIN LATERAL {_PRICE} price ON true
LEFT JOIN LATERAL {_LIMIT_ID} l ON true
WHERE i.run_id = %(run)s AND i.stimulus_id = %(stimulus)s
FOR UPDATE OF i
""".replace("{0}", "c.")  # noqa: S608 - our own names


def terms_of(config: ModelConfig, day: date) -> tuple[int | None, int | None]:
    """The ids of the price and of the limit that hold for a configuration. One query."""
    with planned_cursor() as cursor:
        cursor.execute(_TERMS, {"config": config.pk, "day": day})
        price_id, limit_id = cursor.fetchone()
    return price_id, limit_id


@dataclass(frozen=True, slots=True)
class ToAsk:
    """A stimulus of a run, its row locked, and all that a call to it is made of."""

    state: str
    due_at: datetime
    run_state: str
    experiment_state: str
    experiment_id: int
    is_capped: bool
    currency: str
    prompt: str
    words: str
    limit_id: int | None
    config: ModelConfig  # with its credential
    price: Price | None


_HEAD = 10


def stimulus_lock(*, run_id: int, stimulus_id: int, day: date) -> ToAsk | None:
    """Lock what is to be asked and read all about it. One query."""
    with planned_cursor() as cursor:
        cursor.execute(_TO_ASK, {"run": run_id, "stimulus": stimulus_id, "day": day})
        row = cursor.fetchone()
    if row is None:
        return None
    values = iter(row)
    head: list[Any] = list(islice(values, _HEAD))
    config = instance(ModelConfig, list(islice(values, width(ModelConfig))))
    credential = list(islice(values, width(Credential)))
    if config.credential_id is not None:
        config.credential = instance(Credential, credential)
    price = list(values)
    return ToAsk(*head, *[config, None if price[0] is None else instance(Price, price)])


# Of what is due under a limit, the one that has been due longest and that nobody else is taking at this moment.
_UNDER = f"""
JOIN llmruns_providerlimit l ON l.id = %(limit)s AND l.study_id = c.study_id AND l.provider = c.provider
WHERE i.state = 'todo' AND i.due_at <= %(now)s AND l.id = {_LIMIT_ID}""".replace("{0}", "c.")
_STIMULUS_NEXT = f"""
SELECT i.run_id, i.stimulus_id FROM llmruns_runstimulus i
JOIN llmruns_run r ON r.id = i.run_id
JOIN llmruns_experiment e ON e.id = r.experiment_id
JOIN corpus_sitting s ON s.id = r.sitting_id
JOIN llmruns_modelconfig c ON c.id = r.config_id
{_UNDER} AND r.state IN ('pending', 'running') AND e.state = 'running' AND s.state = 'open'
  AND NOT EXISTS (
    SELECT FROM llmruns_call f WHERE f.run_id = i.run_id AND f.stimulus_id = i.stimulus_id AND f.state = 'in_flight')
ORDER BY i.due_at, i.id LIMIT 1 FOR UPDATE OF i SKIP LOCKED
"""  # noqa: S608 - our own names
_JUDGEMENT_NEXT = f"""
SELECT i.judging_id, i.answer_id FROM llmruns_judgingitem i
JOIN llmruns_judging j ON j.id = i.judging_id
JOIN llmruns_modeljudge m ON m.id = j.model_judge_id
JOIN llmruns_modelconfig c ON c.id = m.config_id
{_UNDER} AND i.same_as_id IS NULL AND j.state = 'running'
  AND NOT EXISTS (
    SELECT FROM llmruns_call f
    WHERE f.judging_id = i.judging_id AND f.answer_id = i.answer_id AND f.state = 'in_flight')
ORDER BY i.due_at, i.id LIMIT 1 FOR UPDATE OF i SKIP LOCKED
"""  # noqa: S608 - our own names


def stimulus_next(*, limit_id: int, now: datetime) -> tuple[int, int] | None:
    """Lock a (run, stimulus) that is due under the limit, as sending.due_stimuli has it. One query."""
    return _next(_STIMULUS_NEXT, limit_id, now)


def judgement_next(*, limit_id: int, now: datetime) -> tuple[int, int] | None:
    """Lock a (judging, answer) that is due under the limit, as sending.due_judgements has it. One query."""
    return _next(_JUDGEMENT_NEXT, limit_id, now)


def _next(statement: str, limit_id: int, now: datetime) -> tuple[int, int] | None:
    with planned_cursor() as cursor:
        cursor.execute(statement, {"limit": limit_id, "now": now})
        row = cursor.fetchone()
    return None if row is None else (row[0], row[1])


def call_insert(call: Call) -> None:
    """`call` gets its number. One query. Raises IntegrityError where another one is in flight."""
    with planned_cursor() as cursor:
        cursor.execute(insert_statement(Call), insert_values(call))
        call.pk = cursor.fetchone()[0]


# Of what is read for a record, the columns that it needs; a call's text may be long.
_CALL = ("id", "run", "stimulus", "state", "reserved", "price")
_EXPERIMENT = ("id", "cap", "max_attempts", "deadline")
_SENT = f"""
SELECT {columns(Call, "c", _CALL)}, {columns(Run, "r")}, {columns(Experiment, "e", _EXPERIMENT)},
  {columns(RunStimulus, "i")}, {columns(Price, "p")}
FROM llmruns_call c
JOIN llmruns_run r ON r.id = c.run_id
JOIN llmruns_experiment e ON e.id = r.experiment_id
JOIN llmruns_runstimulus i ON i.run_id = c.run_id AND i.stimulus_id = c.stimulus_id
LEFT JOIN llmruns_price p ON p.id = c.price_id
WHERE c.id = %(call)s
FOR NO KEY UPDATE OF r FOR UPDATE OF i FOR NO KEY UPDATE OF c
"""  # noqa: S608 - our own names


def call_lock(call_id: int) -> tuple[Call, Run, RunStimulus]:
    """Lock the run, what was asked and the call; read them with the price and what the experiment was launched with.

    One query. Of the experiment only columns are read that never change: its row is not locked.
    """
    with planned_cursor() as cursor:
        cursor.execute(_SENT, {"call": call_id})
        values = iter(cursor.fetchone())
    call = instance(Call, list(islice(values, len(_CALL))), _CALL)
    run = instance(Run, list(islice(values, width(Run))))
    run.experiment = instance(Experiment, list(islice(values, len(_EXPERIMENT))), _EXPERIMENT)
    item = instance(RunStimulus, list(islice(values, width(RunStimulus))))
    item.run = run
    call.price = None if call.price_id is None else instance(Price, list(values))
    return call, run, item


_ITEM = ("attempts", "failures", "failing_since", "problem", "state", "due_at")


@cache
def _write(names: tuple[str, ...]) -> str:
    return f"""
WITH call AS (UPDATE llmruns_call SET {assignments(Call, names, "call_")} WHERE id = %(call)s),
  item AS (UPDATE llmruns_runstimulus SET {assignments(RunStimulus, _ITEM, "item_")} WHERE id = %(item)s)
SELECT EXISTS (SELECT FROM llmruns_runstimulus WHERE run_id = %(run)s AND state = 'todo' AND id <> %(item)s)
"""  # noqa: S608 - our own names


def call_write(call_id: int, values: dict[str, Any], item: RunStimulus) -> bool:
    """Write the call's columns and what was asked. Returns whether anything else of the run is to be asked.

    One query. The caller holds the run's lock, so that of two last calls one sees the other.
    """
    parameters = assigned_values(Call, values, "call_")
    parameters |= assigned_values(RunStimulus, {name: getattr(item, name) for name in _ITEM}, "item_")
    parameters |= {"call": call_id, "item": item.pk, "run": item.run_id}
    with planned_cursor() as cursor:
        cursor.execute(_write(tuple(values)), parameters)
        return bool(cursor.fetchone()[0])
