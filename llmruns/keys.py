"""Keys of the environment: a configuration holds the name of a variable. Stored keys are in credentials.py.

Only names that end in _API_KEY are accepted, so that nobody can have SECRET_KEY or DATABASE_URL sent to a server of
their own.
"""

import os
import re
from typing import Any

KEY_VARIABLE = r"^[A-Z][A-Z0-9_]*_API_KEY$"
_NAME = re.compile(KEY_VARIABLE)
_KEY = re.compile(r"[ -~]+")  # what a header can hold: another key would be shown in the error that it causes


class KeyNameRefusedError(Exception):
    """The variable's name is not one that may hold a provider's key."""


class KeyMissingError(Exception):
    """The variable is not set in this process, is empty, or holds what no header can."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def key_name_is_allowed(name: str) -> bool:
    return name == "" or (_NAME.match(name) is not None and not name.endswith("\n"))


def key_is_sendable(key: str) -> bool:
    return _KEY.fullmatch(key) is not None


def key_read(name: str) -> str:
    """The key, or "" where the configuration names none. Raises KeyNameRefusedError, KeyMissingError."""
    if not key_name_is_allowed(name):
        raise KeyNameRefusedError
    if name == "":
        return ""
    key = os.environ.get(name, "").strip()
    if not key_is_sendable(key):
        raise KeyMissingError(name)
    return key


SECRET_NAMES = {"authorization", "api_key", "api-key", "x-api-key", "headers", "extra_headers"}


def without_secrets(value: Any) -> Any:
    """A request as it may be shown: whatever could carry a key is left out, should it ever have been stored."""
    if isinstance(value, dict):
        return {name: without_secrets(own) for name, own in value.items() if str(name).lower() not in SECRET_NAMES}
    return [without_secrets(own) for own in value] if isinstance(value, list) else value
