"""What each crowdsourcing platform passes in a link and expects at the end. Pure rules."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from surveys.models import Platform


@dataclass(frozen=True)
class PlatformRule:
    """The platform's own names and shapes; empty names are the researcher's to fill in."""

    person_parameter: str = ""
    visit_parameter: str = ""
    pattern: re.Pattern[str] = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._:@~+=-]{0,99}")
    lower: bool = False
    return_url: str = ""
    wants_review_file: bool = False


RULES = {
    # https://researcher-help.prolific.com: ids are 24 hexadecimal digits; the return address carries the code.
    Platform.PROLIFIC: PlatformRule(
        "PROLIFIC_PID",
        "SESSION_ID",
        re.compile(r"[0-9a-f]{24}"),
        lower=True,
        return_url="https://app.prolific.com/submissions/complete?cc={code}",
    ),
    # Toloka's assignment ids are `pool--assignment`; worker ids are 32 hexadecimal digits. Yandex Tasks kept both.
    Platform.TOLOKA: PlatformRule("worker_id", "assignment_id", wants_review_file=True),
    Platform.YANDEX: PlatformRule("worker_id", "assignment_id", wants_review_file=True),
    Platform.OTHER: PlatformRule(),
}
# From here on an id cannot be guessed, so that it alone may bring its owner back to their own answers.
UNGUESSABLE_LENGTH = 20


class ParameterMissingError(Exception):
    """The link does not say who comes: it was not opened from the platform's task."""


class ParameterRefusedError(Exception):
    """The value is no id of this platform: cut, unfilled or made up."""


def parameter_clean(platform: str, value: str) -> str:
    """The id as the platform means it: spaces around it dropped, and capitals where the platform has none.

    Raises ParameterMissingError, ParameterRefusedError.
    """
    rule = RULES[Platform(platform)]
    value = value.strip(" \t\r\n\u00a0")
    if not value:
        raise ParameterMissingError
    if rule.lower:
        value = value.lower()
    if not rule.pattern.fullmatch(value):
        raise ParameterRefusedError
    return value


def ids_read(
    platform: str, person_parameter: str, visit_parameter: str, parameters: Mapping[str, str]
) -> tuple[str, str]:
    """The person's id and the visit's. A direct link names nobody.

    The visit's may be absent, since platforms leave it out of a researcher's own trial. Raises ParameterMissingError,
    ParameterRefusedError.
    """
    if platform not in RULES:
        return "", ""
    person = parameter_clean(platform, parameters.get(person_parameter, ""))
    visit = parameters.get(visit_parameter, "").strip() if visit_parameter else ""
    return person, parameter_clean(platform, visit) if visit else ""


def may_return_by(external_id: str) -> bool:
    """Whether the platform's id, of a person or a visit, is proof enough to show the answers given under it."""
    return len(external_id) >= UNGUESSABLE_LENGTH
