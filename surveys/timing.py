"""What a task page measured of itself: read from the form, where anything may stand."""

import json
from dataclasses import dataclass
from typing import Any

MAX_MS = 2_000_000_000  # 23 days, and fits the column
MAX_PASTES = 32_000
DEVICES = ("phone", "tablet", "desktop")


@dataclass(frozen=True)
class Timing:
    """Times in ms by the browser's monotonic clock since the first paint, reloads added up. None: not measured."""

    duration_ms: int | None = None
    first_key_ms: int | None = None
    away_ms: int | None = None
    pastes: int | None = None
    pasted_characters: int | None = None
    translated: bool | None = None
    device: str = ""

    def columns(self) -> list[int | bool | str | None]:
        """In the order of `surveys.services.EXPOSURE_END`."""
        return [
            self.duration_ms,
            self.first_key_ms,
            self.away_ms,
            self.pastes,
            self.pasted_characters,
            self.translated,
            self.device,
        ]


def timing_read(text: str) -> Timing:
    """The timing of the form's JSON. What is absent, odd or out of range stays unknown: it never costs an answer."""
    try:
        sent = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return Timing()
    if not isinstance(sent, dict):
        return Timing()
    translated, device = sent.get("translated"), sent.get("device")
    return Timing(
        duration_ms=_whole(sent.get("duration"), MAX_MS),
        first_key_ms=_whole(sent.get("first_key"), MAX_MS),
        away_ms=_whole(sent.get("away"), MAX_MS),
        pastes=_whole(sent.get("pastes"), MAX_PASTES),
        pasted_characters=_whole(sent.get("pasted"), MAX_MS),
        translated=translated if isinstance(translated, bool) else None,
        device=device if device in DEVICES else "",
    )


def _whole(value: Any, maximum: int) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value <= maximum else None
