"""What recorded replies become: the answers, attempts, calls and runs that they would have been if asked here."""

from decimal import Decimal

import pytest
from django.utils import timezone

from corpus.models import Answer, Instrument, Sitting
from llmruns.accounts import accounts_of
from llmruns.models import Call, Experiment, ModelConfig, Prompt, ReplyImport, Run, RunStimulus
from llmruns.replay import NotSetAsideError, Target, replies_count_again, replies_set_aside
from llmruns.services import (
    ExperimentRefusedError,
    NotResumableError,
    ReplayedModelError,
    experiment_launch,
    experiment_resume,
    model_try,
    prompt_ensure,
    work_recover,
)
from studies.models import AuditEntry
from tests.conftest import Cast
from tests.llmruns.conftest import ONE
from tests.llmruns.replay.conftest import RIGHT, Replay, experiment_of, good, notes, problems, record, whole

pytestmark = pytest.mark.django_db


def answers(experiment: Experiment) -> dict[tuple[int, int], tuple[str, str]]:
    found = Answer.objects.filter(sitting__run__experiment=experiment).select_related("stimulus", "sitting__run")
    return {(one.sitting.run.ordinal, one.stimulus.position): (one.outcome, one.text) for one in found}


def test_replies_become_an_experiment_that_is_marked(replay: Replay, cast: Cast) -> None:
    report = replay(whole(1) + whole(2))
    experiment = experiment_of(report)
    assert experiment.imported and experiment.state == "finished" and experiment.runs_planned == 2
    assert experiment.title == "replies" and experiment.launched_by == cast.alice
    assert answers(experiment) == {(run, n): ("given", RIGHT[n]) for run in (1, 2) for n in (1, 2, 3)}
    runs = list(experiment.runs.order_by("ordinal"))
    assert [(run.state, run.sitting.state, run.sitting.ordinal) for run in runs] == [
        ("finished", "finished", 1),
        ("finished", "finished", 2),
    ]
    config = ModelConfig.objects.get()
    assert (config.label, config.provider, config.base_url, config.model) == ("GPT-0", "replayed", "", "GPT-0")
    assert config.temperature is None, "nobody says with which temperature it was asked"
    assert {call.attempt for call in Call.objects.all()} == {1} and Call.objects.count() == 6
    entry = AuditEntry.objects.get(action="replies_import")
    assert entry.detail["answers"] == 6 and entry.detail["sha256"] == report.made.sha256


def test_a_dry_run_says_it_all_and_stores_nothing(replay: Replay) -> None:
    report = replay(whole(1) + whole(2)[:2], dry_run=True)
    assert report.plan.counts | {} == {
        "records": 5,
        "models": 1,
        "runs": 2,
        "incomplete": 1,
        "answers": 5,
        "no_valid_reply": 0,
        "replies": 5,
        "failures": 0,
        "final_only": 0,
        "surplus": 0,
    }
    assert [one.detail for one in report.notes if one.code == "run_incomplete"] == ["GPT-0, 2: 3"]
    assert not Experiment.objects.exists() and not ModelConfig.objects.exists() and not Sitting.objects.exists()
    assert not Prompt.objects.exists() and not AuditEntry.objects.filter(action="replies_import").exists()


def test_the_stimulus_is_found_by_its_number_or_by_its_words(replay: Replay) -> None:
    by_words = record(1, position=None, stimulus="  Кошка СИДЕТЬ на  стол . ")
    both = record(2, stimulus=". мышь бежать от кошка")
    assert answers(experiment_of(replay([by_words, both, record(3)])))[1, 1] == ("given", RIGHT[1])


# --- attempts ----------------------------------------------------------------------------------------------------


def test_a_bad_reply_costs_an_attempt_and_the_first_valid_one_decides(replay: Replay) -> None:
    lines = [
        record(1, attempt=3, raw_reply=good("третья")),
        record(1, attempt=1, raw_reply="Вот ваше предложение: кошка"),
        record(1, attempt=2, raw_reply=good("вторая")),
        record(2, attempt=1, raw_reply='{"results": "мышь', finish_reason="length"),
        record(2, attempt=2, raw_reply=good("ответ"), finish_reason="stop"),
        record(3, refusal="I cannot help", raw_reply=None, attempt=1),
        record(3, attempt=2),
    ]
    report = replay(lines)
    experiment = experiment_of(report)
    assert answers(experiment)[1, 1] == ("given", "вторая") and answers(experiment)[1, 2] == ("given", "ответ")
    calls = Call.objects.filter(stimulus__position=1).order_by("pk")
    assert [(call.attempt, call.state, call.kind) for call in calls] == [
        (None, "surplus", ""),
        (1, "bad_reply", "format"),
        (2, "ok", ""),
    ]
    kinds = Call.objects.filter(state="bad_reply").order_by("pk").values_list("stimulus__position", "kind")
    assert list(kinds) == [(1, "format"), (2, "truncated"), (3, "refused")]
    assert RunStimulus.objects.get(stimulus__position=1).attempts == 2
    assert "surplus" in notes(report) and report.plan.counts["surplus"] == 1
    account = accounts_of(experiment).total
    assert (account.first, account.first_valid) == (3, 0)


@pytest.mark.parametrize(
    ("bad", "most", "outcome"), [(10, 10, "no_valid_reply"), (9, 10, ""), (3, 3, "no_valid_reply")]
)
def test_as_many_bad_replies_as_there_are_attempts_are_no_valid_reply(
    replay: Replay, bad: int, most: int, outcome: str
) -> None:
    lines = [record(1, attempt=n, raw_reply="нет") for n in range(1, bad + 1)] + [record(2), record(3)]
    report = replay(lines, target=Target(max_attempts=most))
    run = Run.objects.get()
    assert experiment_of(report).max_attempts == most
    if outcome:
        assert answers(run.experiment)[1, 1] == (outcome, "") and run.state == "finished"
    else:
        assert (1, 1) not in answers(run.experiment)
        assert (run.state, run.problem, run.sitting.state) == ("incomplete", "attempts_left", "stopped")


def test_a_valid_reply_after_the_last_attempt_is_kept_and_decides_nothing(replay: Replay) -> None:
    lines = [record(1, attempt=n, raw_reply="нет") for n in range(1, 11)] + [record(1, attempt=11)]
    report = replay([*lines, record(2), record(3)])
    assert answers(experiment_of(report))[1, 1] == ("no_valid_reply", "")
    last = Call.objects.get(state="surplus")
    assert last.attempt is None and last.raw_reply == good(RIGHT[1]) and "surplus" in notes(report)


def test_replies_without_numbers_come_in_the_order_of_the_file(replay: Replay) -> None:
    report = replay([record(1, raw_reply="нет"), record(2), record(3), record(1)])
    assert [call.attempt for call in Call.objects.filter(stimulus__position=1).order_by("pk")] == [1, 2]
    assert "unnumbered" in notes(report)


def test_a_gap_in_the_numbers_is_said_and_stays(replay: Replay) -> None:
    report = replay([record(1, attempt=3), record(2), record(3)])
    assert "gaps" in notes(report) and RunStimulus.objects.get(stimulus__position=1).attempts == 3
    assert accounts_of(experiment_of(report)).total.first == 2, "the first attempt of the first stimulus is not known"


def test_a_technical_failure_costs_no_attempt(replay: Replay) -> None:
    failed = record(1, raw_reply=None, state="failed", kind="rate_limited", http_status=429)
    only = record(2, raw_reply=None, state="failed", kind="quota")
    report = replay([failed, record(1), only, record(3)])
    run = Run.objects.get()
    assert (run.state, run.problem) == ("incomplete", "quota"), "a stimulus with nothing but failures has no answer"
    assert list(Call.objects.filter(state="failed").values_list("kind", "attempt").order_by("pk")) == [
        ("rate_limited", None),
        ("quota", None),
    ]
    assert RunStimulus.objects.get(stimulus__position=2).state == "given_up"
    assert report.plan.counts["failures"] == 2


def test_a_reply_without_a_word_is_an_answer_and_one_too_long_is_none(replay: Replay) -> None:
    report = replay([record(1, raw_reply=good("")), record(2, raw_reply=good("а" * 2001)), record(3)])
    assert answers(experiment_of(report)) == {(1, 1): ("given", ""), (1, 3): ("given", RIGHT[3])}
    assert Call.objects.get(stimulus__position=2).kind == "too_long"


# --- final answers -----------------------------------------------------------------------------------------------


def test_a_final_answer_is_marked_and_has_no_attempts(replay: Replay) -> None:
    lines = [
        record(1, raw_reply=None, final_answer="кошка сидит"),
        record(2, raw_reply=None, outcome="no_valid_reply"),
        record(3),
    ]
    report = replay(lines)
    assert answers(experiment_of(report)) == {
        (1, 1): ("given", "кошка сидит"),
        (1, 2): ("no_valid_reply", ""),
        (1, 3): ("given", RIGHT[3]),
    }
    assert Call.objects.count() == 1, "of a final answer there is no call"
    marks = dict(RunStimulus.objects.values_list("stimulus__position", "problem"))
    assert marks == {1: "final_answer_only", 2: "final_answer_only", 3: ""}
    assert RunStimulus.objects.get(stimulus__position=1).attempts == 0 and "final_only" in notes(report)


# --- what is kept of a call --------------------------------------------------------------------------------------


def test_everything_that_is_said_of_a_call_is_kept(replay: Replay) -> None:
    more = {
        "model_requested": "gpt-0-0314",
        "model_reported": "gpt-0-0314-x",
        "parameters_asked": {"temperature": 0.7, "top_p": None},
        "parameters_used": {"temperature": 1},
        "request": {"model": "gpt-0-0314", "temperature": 0.7, "max_tokens": 100},
        "response": {"id": "x"},
        "finish_reason": "stop",
        "http_status": 200,
        "input_tokens": 10,
        "cached_tokens": 2,
        "output_tokens": 5.0,  # as pandas writes it
        "reasoning_tokens": 3,
        "cost": "0.00123",
        "currency": "USD",
        "sent_at": "2023-05-01T10:00:00+03:00",
        "ended_at": "2023-05-01T10:00:02+03:00",
    }
    report = replay(whole(**more))
    call = Call.objects.get(stimulus__position=1)
    assert (
        call.asked == more["parameters_asked"] and call.used == {"temperature": 1} and call.request == more["request"]
    )
    assert (call.input_tokens, call.cached_tokens, call.output_tokens, call.reasoning_tokens) == (10, 2, 5, 3)
    assert (call.cost, call.currency, call.finish_reason) == (Decimal("0.00123"), "USD", "stop")
    assert call.sent_at.isoformat() == "2023-05-01T07:00:00+00:00" and call.response == {"id": "x"}
    assert (call.config.model, call.config.temperature, call.config.top_p) == ("gpt-0-0314", 0.7, None)
    sitting = Sitting.objects.get()
    assert (sitting.started_at, sitting.finished_at) == (call.sent_at, call.ended_at), "and not the import's time"
    assert accounts_of(experiment_of(report)).total.money["USD"].known == Decimal("0.00369")


def test_what_the_file_does_not_say_is_unknown_and_not_now(replay: Replay) -> None:
    replay([*whole()[:2], record(3, cost_at_most=2, currency="RUB")])
    call = Call.objects.get(stimulus__position=1)
    assert (call.sent_at, call.cost, call.asked, call.request, call.http_status) == (None, None, {}, {}, None)
    assert Call.objects.get(stimulus__position=3).reserved == 2


def test_nul_and_half_characters_in_a_reply_are_kept_as_text_and_judged_as_a_live_reply_is(replay: Replay) -> None:
    nul, half = '{"results": "кош\x00ка"}', '{"results": "кош\ud800ка"}'
    with_nul = record(1, raw_reply=nul)
    lines = [
        b'{"model": "GPT-0", "run": 1, "position": 2, "raw_reply": "{\\"results\\": \\"\\ud800\\"}", "attempt": 1}',
        record(2, attempt=2),
        record(3, response={"text": "\x00"}),
    ]
    report = replay([with_nul, *lines])
    assert half not in answers(experiment_of(report)).values()
    call = Call.objects.get(stimulus__position=1)
    assert (call.state, call.kind, call.escaped) == ("bad_reply", "format", True) and "\\u0000" in call.raw_reply
    call = Call.objects.get(stimulus__position=3)
    assert call.response is None and "\\u0000" in call.raw_body and call.escaped


# --- the prompt --------------------------------------------------------------------------------------------------


def asked_with(prompt: str, position: int, text: str) -> dict[str, object]:
    messages = [{"role": "user", "content": prompt.replace("{words}", text)}]
    return record(position, request={"model": "m", "messages": messages})


TEXTS = {1: ONE, 2: ". мышь бежать от кошка", 3: "дети , который играть во двор , быть счастливый"}


def test_the_prompt_is_read_from_the_requests(replay: Replay, cast: Cast) -> None:
    paper = prompt_ensure(study=cast.study)
    experiment = experiment_of(replay([asked_with(paper.text, n, text) for n, text in TEXTS.items()]))
    assert experiment.prompt == paper, "the study has it already"
    other = "Составьте предложение: {words}"
    report = replay([asked_with(other, n, text) | {"model": "B"} for n, text in TEXTS.items()])
    prompt = experiment_of(report).prompt
    assert (prompt.slug, prompt.text, prompt.note) == ("imported", other, "replies.jsonl") and "prompt_new" in notes(
        report
    )


def test_a_prompt_that_nobody_knows_says_so_and_one_can_be_chosen(replay: Replay, cast: Cast) -> None:
    report = replay(whole())
    assert experiment_of(report).prompt.slug == "unknown" and "prompt_unknown" in notes(report)
    chosen = prompt_ensure(study=cast.study)
    report = replay(whole(model="B"), target=Target(prompt=chosen))
    assert experiment_of(report).prompt == chosen and "prompt_unknown" not in notes(report)
    again = replay(whole(model="C"))
    assert experiment_of(again).prompt.version == 1, "one unknown prompt is as unknown as another"


def test_two_prompts_in_one_file_are_refused(replay: Replay) -> None:
    report = replay([asked_with("А {words}", 1, ONE), asked_with("Б {words}", 2, TEXTS[2]), record(3)])
    assert problems(report) == [("prompts_differ", 2)]


# --- names and parameters ----------------------------------------------------------------------------------------


def test_a_name_that_is_taken_gets_a_new_one_and_a_later_file_of_the_same_model_joins_it(
    replay: Replay, config: ModelConfig
) -> None:
    asked = {"parameters_asked": {"temperature": 1}}
    report = replay(whole(model="Test model", **asked))
    assert report.labels == {"Test model": "Test model (imported)"} and "label_taken" in notes(report)
    assert experiment_of(report).runs.get().config != config, "a live configuration is another respondent"
    later = replay(whole(2, model="Test model", **asked))
    run = experiment_of(later).runs.get()
    assert run.config.label == "Test model (imported)" and (run.ordinal, run.sitting.ordinal) == (2, 2)
    other = replay(whole(model="Test model", parameters_asked={"temperature": 0}))
    assert other.labels == {"Test model": "Test model (imported 2)"}, "another temperature is another respondent"


def test_one_name_for_two_settings_is_refused(replay: Replay) -> None:
    lines = [record(1, parameters_asked={"temperature": 1}), record(2, parameters_asked={"temperature": 0}), record(3)]
    assert problems(replay(lines)) == [("parameters_differ", 2)]
    lines = [record(1, model_requested="a"), record(2, model_requested="b"), record(3)]
    assert problems(replay(lines)) == [("model_differs", 2)]


# --- once, and never sent ----------------------------------------------------------------------------------------


def test_the_same_records_come_in_once_however_their_lines_are_written(replay: Replay) -> None:
    replay(whole())
    turned = [dict(reversed(list(one.items()))) for one in whole()]
    report = replay(turned)
    assert problems(report) == [("already", 0)] and report.already == ReplyImport.objects.get()
    assert Experiment.objects.count() == 1


def test_what_was_put_aside_counts_nowhere_and_may_come_again(replay: Replay, cast: Cast) -> None:
    made = replay(whole()).made
    assert replies_set_aside(made=made, reason=" wrong file ", actor=cast.alice) == 1
    sitting = Sitting.objects.get()
    assert (sitting.standing, sitting.standing_reason) == ("excluded", "wrong file")
    with pytest.raises(NotSetAsideError):
        replies_set_aside(made=made, reason="again", actor=cast.alice)
    assert replay(whole(), dry_run=True).problems == []
    assert replies_count_again(made=made, actor=cast.alice) == 1
    assert Sitting.objects.get().standing == "counted"
    actions = AuditEntry.objects.filter(action__in=["replies_set_aside", "replies_count_again"])
    assert actions.count() == 2


def test_an_import_does_not_count_again_beside_the_one_that_replaced_it(replay: Replay, cast: Cast) -> None:
    made = replay(whole()).made
    with pytest.raises(NotSetAsideError, match="no_reason"):
        replies_set_aside(made=made, reason="  ", actor=cast.alice)
    replies_set_aside(made=made, reason="wrong title", actor=cast.alice)
    replay(whole())
    with pytest.raises(NotSetAsideError, match="came_again"):
        replies_count_again(made=made, actor=cast.alice)
    assert Sitting.objects.filter(standing="excluded").count() == 1


def test_nothing_is_ever_sent_for_an_import(replay: Replay, cast: Cast, instrument: Instrument) -> None:
    experiment = experiment_of(replay(whole()[:2]))  # incomplete: a live one could be resumed
    config = ModelConfig.objects.get()
    with pytest.raises(NotResumableError):
        experiment_resume(experiment=experiment, actor=cast.alice)
    with pytest.raises(ReplayedModelError):
        model_try(config=config, actor=cast.alice)
    with pytest.raises(ExperimentRefusedError, match="replayed"):
        experiment_launch(
            study=cast.study,
            instrument=instrument,
            prompt=prompt_ensure(study=cast.study),
            configs=[config],
            actor=cast.alice,
        )
    RunStimulus.objects.update(due_at=timezone.now())
    assert work_recover(everything=True) == 0 and Call.objects.count() == 2
