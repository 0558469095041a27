"""The parameters of a call in three columns: asked for, sent, and what the provider says it used."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from llmruns.models import ModelConfig
from llmruns.storing import is_storable_json

# Under which names a parameter stands in requests and replies.
NAMES = {
    "temperature": ("temperature",),
    "top_p": ("top_p",),
    "max_output_tokens": ("max_completion_tokens", "max_tokens"),
}
# A configuration's extra body holds what has no field of its own. `seed`: repeats with one seed are one reply.
OWN_FIELDS = {"model", "messages", "temperature", "top_p", "max_tokens", "max_completion_tokens", "max_output_tokens"}
NEVER = {"stream", "n", "seed"}
SECRETS = {"authorization", "api_key", "api-key", "x-api-key", "headers", "extra_headers"}
LONGEST_EXTRA_BODY = 10_000  # characters


@dataclass(frozen=True)
class ParameterRow:
    name: str
    asked: Any  # None: the provider's default
    sent: Any  # None: not sent, the provider's default
    used: Any  # None: the provider does not say

    @property
    def refused(self) -> bool:
        """Asked for and not sent, because the model does not take it."""
        return self.asked is not None and self.sent is None

    @property
    def added(self) -> bool:
        """Sent although not asked for: the provider requires it."""
        return self.asked is None and self.sent is not None


def parameter_rows(asked: Mapping[str, Any], request: Any, used: Mapping[str, Any]) -> list[ParameterRow]:
    body = request if isinstance(request, dict) else {}
    rows = [ParameterRow(name, asked.get(name), _first(body, NAMES[name]), _first(used, NAMES[name])) for name in NAMES]
    known = {"model", "messages", *(name for names in NAMES.values() for name in names)}
    rows += [ParameterRow(name, value, value, used.get(name)) for name, value in body.items() if name not in known]
    shown = {row.name for row in rows} | known
    return rows + [ParameterRow(name, None, None, value) for name, value in used.items() if name not in shown]


def parameter_columns(asked: Mapping[str, Any], request: Any, used: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that a configuration has fields for, each in three columns: temperature_asked, _sent, _used, …"""
    own = [row for row in parameter_rows(asked, request, used) if row.name in NAMES]
    return {
        f"{row.name}_{what}": value
        for row in own
        for what, value in (("asked", row.asked), ("sent", row.sent), ("used", row.used))
    }


PARAMETER_COLUMNS = tuple(f"{name}_{what}" for name in NAMES for what in ("asked", "sent", "used"))


def refused_parameters(config: ModelConfig) -> list[str]:
    """What the configuration asks for and the model does not take: the provider's default is used instead."""
    if config.accepts is None:
        return []
    return [name for name in NAMES if getattr(config, name) is not None and name not in config.accepts]


def extra_body_problem(extra_body: Any) -> str:
    """Why this cannot be sent with each request: form, own_field, never, secret, long; "" where it can."""
    if not isinstance(extra_body, dict) or not is_storable_json(extra_body):
        return "form"
    names = {str(name).lower() for name in extra_body}
    if names & OWN_FIELDS:
        return "own_field"
    if names & NEVER:
        return "never"
    if names & SECRETS:
        return "secret"
    return "long" if len(str(extra_body)) > LONGEST_EXTRA_BODY else ""


def _first(values: Mapping[str, Any], names: Collection[str]) -> Any:
    return next((values[name] for name in names if values.get(name) is not None), None)
