"""Times as forms and spreadsheets write them. What a text does not say (the zone, the order of day and month) is not
made up."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone, tzinfo

DAY_FIRST, MONTH_FIRST = "day_first", "month_first"

_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?", re.IGNORECASE)
_LOCAL = re.compile(
    r"""(?P<a>\d{1,4})(?P<sign>[./-])(?P<b>\d{1,2})(?P=sign)(?P<c>\d{1,4}),?
    (?:\s+(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,6})\d*)?)?
    (?:\s*(?P<half>AM|PM|ДП|ПП|a\.m\.|p\.m\.))?
    (?:\s*(?P<zone>[A-Za-z]{1,5})?(?P<offset>[+-]\d{1,2}(?::?\d\d)?)?)?)?""",
    re.VERBOSE | re.IGNORECASE,
)
_AFTERNOON = ("pm", "пп", "p.m.")
# Abbreviations that mean one thing only; others (EST, CST, IST …) leave the time without a zone.
_ZONES = {"utc": 0, "gmt": 0, "z": 0, "msk": 3}


def time_read(text: str, order: str | None = None) -> datetime | None:
    """The time in `text`, with its zone where the text names one, else naive. None: not a time, or ambiguous.

    `order` tells 03/05/2024 from 05/03/2024; without it only what can be read one way is read.
    """
    text = " ".join(text.split())  # also the narrow no-break space that some put before PM
    try:
        if _ISO.fullmatch(text):
            return datetime.fromisoformat(text.upper().replace(",", "."))
        found = _LOCAL.fullmatch(text)
        if not found:
            return None
        date = _date(found["a"], found["b"], found["c"], found["sign"], order)
        if date is None:
            return None
        hour = int(found["hour"] or 0)
        if found["half"]:
            if not 1 <= hour <= 12:
                return None
            hour = hour % 12 + (12 if found["half"].lower() in _AFTERNOON else 0)
        fraction = int((found["fraction"] or "").ljust(6, "0"))
        zone = _zone(found["zone"] or "", found["offset"] or "")
        return datetime(*date, hour, int(found["minute"] or 0), int(found["second"] or 0), fraction, tzinfo=zone)
    except (ValueError, OverflowError):
        return None


def date_order(texts: Iterable[str]) -> str | None:
    """What the times with slashes show together: a first number above 12 is a day, a second above 12 makes it a month.

    None: nothing shows it, or both are there.
    """
    seen = set()
    for text in texts:
        found = re.match(r"\s*(\d{1,2})[/-](\d{1,2})[/-]\d{4}", text)
        if found:
            first, second = int(found[1]), int(found[2])
            seen |= {DAY_FIRST} if first > 12 else set()
            seen |= {MONTH_FIRST} if second > 12 else set()
    return seen.pop() if len(seen) == 1 else None


def iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds" if moment.microsecond else "seconds")


def instant(moment: datetime | None, zone: tzinfo | None) -> datetime | None:
    """The moment in UTC; None where neither the text nor the person importing says the zone."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        if zone is None:
            return None
        moment = moment.replace(tzinfo=zone)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return None


def _date(a: str, b: str, c: str, sign: str, order: str | None) -> tuple[int, int, int] | None:
    if len(a) == 4:
        return int(a), int(b), int(c)
    if len(c) != 4 or len(a) > 2:
        return None
    first, second, year = int(a), int(b), int(c)
    if sign == "." or order == DAY_FIRST or first > 12:
        return year, second, first
    if order == MONTH_FIRST or second > 12 or first == second:
        return year, first, second
    return None


def _zone(name: str, offset: str) -> tzinfo | None:
    if offset and name.lower() in ("", "utc", "gmt"):
        hours, minutes = int(offset[1:3].rstrip(":")), 0
        if rest := re.sub(r"^[+-]\d{1,2}:?", "", offset) if len(offset) > 3 else "":
            minutes = int(rest)
        seconds = (hours * 60 + minutes) * (-60 if offset[0] == "-" else 60)
        return timezone(timedelta(seconds=seconds))
    if name.lower() in _ZONES and not offset:
        return timezone(timedelta(hours=_ZONES[name.lower()]))
    return None
