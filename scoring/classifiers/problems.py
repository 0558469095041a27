"""What can go wrong with a classifier, in words that say what to do. A row keeps the code and the details."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

MESSAGES = {
    "too_few_labels": _(
        "Criterion %(criterion)s has %(found)s labelled texts to learn from; %(needed)s are needed. Close a campaign, "
        "or choose other criteria."
    ),
    "one_class": _(
        "All labels to learn from of criterion %(criterion)s are %(value)s. A classifier can only learn to tell apart "
        "what differs."
    ),
    "no_labels": _("There are no labels of closed campaigns to learn from or to compare with."),
    "torch_missing": _(
        "This recipe needs PyTorch, which is not installed here. Install it with make ml, or choose the recipe "
        "baseline."
    ),
    "base_missing": _(
        "The base model %(base)s is not here. Put its folder into %(folder)s, or name the hub to fetch it from in "
        "HF_ENDPOINT (https://huggingface.co or a mirror)."
    ),
    "base_unreachable": _(
        "The base model %(base)s could not be fetched from %(endpoint)s: %(error)s. Try again later, or put its "
        "folder into %(folder)s."
    ),
    "base_name": _("%(base)s is neither a folder nor a name such as ai-forever/ruBert-base."),
    "base_wrong_kind": _(
        "%(base)s cannot be used: %(error)s. A classifier is made of an encoder such as BERT or RoBERTa "
        "with its tokenizer."
    ),
    "base_corrupt": _("The files of the base model %(base)s cannot be read: %(error)s. Fetch or copy them again."),
    "weights_missing": _(
        "The weights of this classifier are not in %(folder)s. Bring that folder back from a copy, or train it again."
    ),
    "weights_corrupt": _(
        "The weights of this classifier are damaged: %(error)s. Bring them back from a copy, or train it again."
    ),
    "disk_full": _("The disk is full: %(folder)s could not be written. Make room and start again."),
    "database_full": _("The disk of the database is full. Make room and start again."),
    "folder_unwritable": _("%(folder)s cannot be written: %(error)s."),
    "diverged": _("The training went wrong: the loss is no number any more. Try a smaller learning rate."),
    "file_unreadable": _("%(file)s cannot be used: %(error)s."),
    "not_finished": _("This classifier has not finished its training."),
    "imported": _(
        "This classifier came with a release: its judgements are here, its weights are not. It cannot judge further "
        "answers."
    ),
    "round_closed": _("The classifier's round is closed: it takes no more judgements."),
    "worker_died": _(
        "The worker died %(times)s times in a row soon after it had begun, perhaps for want of memory. Free some "
        "memory, or choose a smaller base model, and start it again."
    ),
    "out_of_memory": _(
        "The memory was not enough. Free some memory, or choose a smaller base model, and start it again."
    ),
    "unforeseen": _("Something that was not foreseen stopped it (%(error)s). The worker's log has the detail."),
}


class ClassifierError(Exception):
    """`code` is one of MESSAGES; `detail` fills its words. Its text is in the language that is active now."""

    def __init__(self, code: str, **detail: Any) -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail

    def __str__(self) -> str:
        return problem_text(self.code, self.detail)


class StoppedError(Exception):
    """Somebody has cancelled the work, or another worker has taken it over: nothing more is to be written."""


def problem_text(code: str, detail: Mapping[str, Any]) -> str:
    """The sentence for a reader; empty where there is no problem."""
    if not code:
        return ""
    try:
        return gettext(str(MESSAGES[code])) % detail if code in MESSAGES else code
    except KeyError:  # an older row lacks a detail that the words have now
        return code
