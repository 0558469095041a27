"""Keys of providers are named, never stored: a configuration holds the name of an environment variable.

Only names that end in _API_KEY are accepted, so that nobody can have SECRET_KEY or DATABASE_URL sent to a server of
their own.
"""

import os
import re

KEY_VARIABLE = r"^[A-Z][A-Z0-9_]*_API_KEY$"
_NAME = re.compile(KEY_VARIABLE)


class KeyNameRefusedError(Exception):
    """The variable's name is not one that may hold a provider's key."""


class KeyMissingError(Exception):
    """The variable is not set, or is empty, in this process."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def key_name_is_allowed(name: str) -> bool:
    return name == "" or (_NAME.match(name) is not None and not name.endswith("\n"))


def key_read(name: str) -> str:
    """The key, or "" where the configuration names none. Raises KeyNameRefusedError, KeyMissingError."""
    if not key_name_is_allowed(name):
        raise KeyNameRefusedError
    if name == "":
        return ""
    key = os.environ.get(name, "").strip()
    if not key:
        raise KeyMissingError(name)
    return key
