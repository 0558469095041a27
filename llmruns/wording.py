"""What went wrong, in words: for people who launch models, in their language."""

import re

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

# kind -> what it means
KINDS: dict[str, Promise] = {
    "format": _("the reply is not in the required format"),
    "truncated": _("the reply was cut off at the limit of output tokens"),
    "empty": _("the reply is empty"),
    "refused": _("the model refused"),
    "filtered": _("the provider's content filter stopped it"),
    "too_long": _("the answer is longer than any answer may be"),
    "rate_limited": _("the provider asks to wait: too many requests"),
    "timeout": _("no reply in time"),
    "server_error": _("the provider's server failed"),
    "connection": _("the server could not be reached or broke off"),
    "not_a_model": _("what answered is not a model: the reply is no chat completion"),
    "too_large": _("the reply is larger than 5 MB and was not read to its end"),
    "quota": _("the provider's quota is used up"),
    "authentication": _("the provider does not accept the key"),
    "bad_request": _("the provider refuses the request"),
    "unknown_model": _("the provider knows no such model or address"),
    "redirect": _("the server points to another host; nothing was sent there"),
    "private_address": _("the address lies in a private network, which this installation does not allow"),
    "key_missing": _("the key is not there: its variable is not set, or the stored key is retired or unreadable"),
    "unexpected": _("Luria could not send the request or read the reply"),
    "lost": _("the worker died while waiting for the reply"),
    "late": _("its reply came after it had been given up; it is kept and answers nothing"),
    "cancelled": _("cancelled"),
    "person": _("paused by a researcher"),
    "cap": _("the next call might pass the cap; nothing was sent"),
    "unbounded": _("there is a cap, and the most that the next call can cost cannot be told; nothing was sent"),
    "not_in_file": _("the imported file holds no reply"),
    "attempts_left": _("the imported file ends before a valid reply, and before the last attempt"),
    "final_answer_only": _("only the final answer was recorded: how many attempts it took is not known"),
}

# kind -> what to do when a run stands still because of it
REMEDIES: dict[str, Promise] = {
    "quota": _("Top up the account or raise its limit, then resume."),
    "authentication": _("Check the key in the environment and restart the workers, then resume."),
    "key_missing": _(
        "Set the variable for the web server and the workers and restart them, then resume. A stored key that is gone "
        "does not come back: add a model with another one."
    ),
    "bad_request": _("Look at the last call: the provider says there what it does not accept. Then resume."),
    "unknown_model": _("Check the model's name and the base address. A configuration is not edited: add a right one."),
    "redirect": _("Use the address to which the server points, if you trust it, in a new configuration."),
    "not_a_model": _("Check the base address: it usually ends in /v1."),
    "too_large": _(
        "No reply that is asked for here is so long. Its beginning stands in the last call: where it is a model's, the "
        "model does not stop by itself, and a configuration with a maximum of output tokens stops it; where it is a "
        "page or a file, the base address leads to something else. A configuration is not edited: add a right one."
    ),
    "unexpected": _("Look at the configuration and at the worker's log. If nothing is wrong there, report it."),
    "private_address": _("Use a public address, or let whoever runs this installation allow private ones."),
}
# Why a stored key cannot be used
CREDENTIAL_PROBLEMS: dict[str, Promise] = {
    "retired": _("it has been retired"),
    "closed": _("this installation has no key to read it with (LURIA_CREDENTIAL_KEYS)"),
    "lost": _("it was stored under a key that this installation no longer has (LURIA_CREDENTIAL_KEYS)"),
    "foreign": _("it belongs to another study or provider"),
}
PAUSED_REMEDIES: dict[str, Promise] = {
    "person": _("Resume when you like: only what has no answer is asked."),
    "cap": _("Raise the cap, then resume; or cancel."),
    "unbounded": _("See to a price in the cap's currency for every model, then resume."),
}
# The same, of a judging: there the answers are there already.
JUDGING_REMEDIES: dict[str, Promise] = {
    "person": _("Resume when you like: only what has no judgement yet is asked."),
    "cap": _("Raise the cap, then resume; or cancel."),
    "unbounded": _("See to a price in the cap's currency, then resume."),
}
JUDGING_WAIT = _("Resume when the provider works again: only what has no judgement yet is asked.")
WAIT_AND_RESUME = _("Resume when the provider works again: only what has no answer is asked.")


def kind_words(kind: str) -> str:
    """Unknown kinds are shown as they are."""
    return str(KINDS.get(kind, kind))


def remedy(kind: str) -> str:
    return str(REMEDIES.get(kind) or PAUSED_REMEDIES.get(kind, WAIT_AND_RESUME))


def judging_remedy(kind: str) -> str:
    return str(REMEDIES.get(kind) or JUDGING_REMEDIES.get(kind, JUDGING_WAIT))


_SNAPSHOT = re.compile(r"([-@:](\d{4}-\d{2}-\d{2}|\d{2}-\d{2}|\d{8}|\d{6}|\d{4}|\d{3})|:\d+(\.\d+)+)$")
# Yandex: gpt://folder/model/branch. Without a branch it is the latest; a fine-tuned one carries @suffix.
_YANDEX = re.compile(r"^(?:gpt://[^/]+/)?(?P<name>[^/]+?)(?:/(?P<branch>latest|rc|deprecated)(?P<own>@.+)?)?$")
_YANDEX_VERSION = re.compile(r"^(yandexgpt)-\d+(?:\.\d+)*|-pro$")


def model_difference(requested: str, reported: str) -> str:
    """How the model that answered relates to the one asked for: "same", "snapshot", "different" or "unstated".

    A dated or numbered snapshot of the model asked for (gpt-4o-2024-08-06 for gpt-4o, or for gpt-4o-latest;
    GigaChat-2-Max:2.0.28.2 for GigaChat-2-Max; yandexgpt-5.1 for yandexgpt/rc) is that model, in the version of the
    day, and worth showing but no alarm. A vendor's prefix (openai/gpt-4o), a route's suffix (:free), a Yandex folder
    and letter case are no difference. An undated name for a dated request is one: the snapshot asked for is not
    confirmed. So is another branch of Yandex's.
    """
    if not reported.strip():
        return "unstated"
    if _is_yandex(requested):
        return _yandex_difference(requested.strip().lower(), reported.strip().lower())
    asked, got = _bare(requested), _bare(reported)
    if asked == got:
        return "same"
    undated = _SNAPSHOT.sub("", got)
    if undated != got and undated == asked.removesuffix("-latest"):
        return "snapshot"
    return "different"


def _is_yandex(name: str) -> bool:
    name = name.strip().lower()
    return name.startswith("gpt://") or re.search(r"^[^/]+/(latest|rc|deprecated)(@|$)", name) is not None


def _yandex_difference(requested: str, reported: str) -> str:
    asked, got = _YANDEX.match(requested), _YANDEX.match(reported)
    if asked is None or got is None:
        return "same" if requested == reported else "different"
    if asked["own"] != got["own"]:
        return "different"
    if asked["name"] == got["name"]:  # where no branch is named, nothing contradicts the one asked for
        is_same = got["branch"] in (None, asked["branch"] or "latest")
        return "same" if is_same else "different"
    unversioned = _YANDEX_VERSION.sub(r"\1", got["name"])
    return "snapshot" if unversioned == asked["name"] and got["name"] != unversioned else "different"


def _bare(name: str) -> str:
    name = name.strip().lower().rpartition("/")[2]
    return re.sub(r":(free|nitro|floor|latest)$", "", name)
