"""What an import of recorded replies says, in sentences. The codes are those of `--json` and docs/replaying.md."""

from django.utils.translation import gettext_lazy

from llmruns.importers.records import Problem

# Nothing is imported while there is one of these.
PROBLEMS = {
    "already": gettext_lazy("these replies are here already; put that import aside first if it was wrong"),
    "ambiguous_stimulus": gettext_lazy("several stimuli have these words; say which by its number"),
    "attempt_missing": gettext_lazy("other replies to this stimulus in this run are numbered, this one is not"),
    "duplicate_attempt": gettext_lazy("this attempt is there already (attempt; line)"),
    "empty": gettext_lazy("the file holds no record"),
    "failure_with_attempt": gettext_lazy("a technical failure is no attempt: leave its number out"),
    "final_with_call": gettext_lazy(
        "a final answer without its reply has no attempt, tokens or cost: give the reply, or leave these out"
    ),
    "instrument_incomplete": gettext_lazy("the instrument is not complete, so nobody can take it yet"),
    "line_too_long": gettext_lazy("the line is longer than a record may be (MB)"),
    "missing": gettext_lazy("a field is missing"),
    "model_differs": gettext_lazy("one name stands for two models; give them two names"),
    "no_currency": gettext_lazy("an amount needs its currency"),
    "no_time_zone": gettext_lazy("the time has no time zone: write +00:00 or Z behind it"),
    "not_an_object": gettext_lazy("the line is JSON, but no object in braces"),
    "not_json": gettext_lazy("the line is no JSON: every line holds one whole object (character: what stands there)"),
    "not_utf8": gettext_lazy("the line is not UTF-8 (byte)"),
    "nul_in_line": gettext_lazy("the line holds a NUL byte"),
    "other_instrument": gettext_lazy("the record belongs to another instrument"),
    "other_stimulus": gettext_lazy("number and words do not belong together; the stimulus of this number is another"),
    "out_of_range": gettext_lazy("a number is too small or too large"),
    "outcome_unclear": gettext_lazy("a final answer is a text, or the outcome no_valid_reply without one"),
    "own_log": gettext_lazy("this is the study's own log of calls: imported, every answer would be here twice"),
    "parameters_differ": gettext_lazy("one name stands for two settings of a model; give them two names"),
    "practice": gettext_lazy("this is a practice stimulus, which models do not answer"),
    "prompts_differ": gettext_lazy("the request has another prompt than those before: an experiment has one"),
    "reply_and_final": gettext_lazy("a record holds a reply or a final answer, not both"),
    "second_final": gettext_lazy("there is another record of this stimulus in this run beside a final answer (line)"),
    "several_experiments": gettext_lazy("the log holds several experiments; take each in a file of its own (numbers)"),
    "too_deep": gettext_lazy("the values are nested too deeply"),
    "too_large": gettext_lazy("the file is larger than an import may be (MB); send it in parts, whole models in each"),
    "too_long": gettext_lazy("a text is too long (characters)"),
    "unknown_currency": gettext_lazy("this currency is not known"),
    "unknown_state": gettext_lazy("no call has this state"),
    "unknown_stimulus": gettext_lazy("the instrument has no such stimulus"),
    "unstorable": gettext_lazy("the text holds NUL or half a character (a lone surrogate)"),
    "wrong_instrument": gettext_lazy("not one record belongs to this instrument; was another one meant?"),
    "wrong_type": gettext_lazy("the field holds something else than it should"),
}

# What is to be known before the import.
NOTES = {
    "fewer_runs": gettext_lazy(
        "a model has fewer runs than planned, so it has no majority over runs (planned; model and runs)"
    ),
    "final_only": gettext_lazy(
        "final answers without their replies: nobody can say how many attempts they took; marked so"
    ),
    "gaps": gettext_lazy("stimuli whose attempts are not numbered without a gap; the numbers stay as they are"),
    "label_taken": gettext_lazy("the study has another model of this name, so this one gets a new name"),
    "not_answers": gettext_lazy("records of trials and of judges' calls; they are passed over"),
    "parameters_unknown": gettext_lazy("the file does not say with which parameters these models were asked"),
    "prompt_new": gettext_lazy("the prompt in the requests is new to the study; it is added to its prompts"),
    "prompt_other": gettext_lazy("the requests in the file have another prompt than the one that you chose"),
    "prompt_unknown": gettext_lazy("the file does not say with which prompt the models were asked"),
    "prompt_unread": gettext_lazy(
        "requests that are not one message with the words of their stimulus: no prompt is read from them; is it the "
        "right instrument?"
    ),
    "run_incomplete": gettext_lazy("a run lacks answers, so it has no score (model, run: stimuli)"),
    "surplus": gettext_lazy(
        "replies after the one that decided, or after the last attempt; they are kept in the log and decide nothing"
    ),
    "unknown_field": gettext_lazy("a field that means nothing here (field; how often)"),
    "unnumbered": gettext_lazy("stimuli with several replies that are not numbered: their order in the file is taken"),
}


def problem_text(problem: Problem) -> str:
    words = str(PROBLEMS.get(problem.code) or NOTES.get(problem.code) or problem.code)
    return f"{words}: {problem.detail}" if problem.detail else words
