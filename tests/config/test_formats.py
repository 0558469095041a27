"""Dates are written in one way in each language, on every page."""

import re
from datetime import datetime
from pathlib import Path

import pytest
from django.template import Context, Template
from django.utils import timezone, translation

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
# Seconds are said where one waits for them; T is the zone.
NAMED = {"DATE_FORMAT", "DATETIME_FORMAT", "SHORT_DATE_FORMAT", "SHORT_DATETIME_FORMAT", "TIME_FORMAT", "T", "H:i:s"}


def test_no_page_has_a_format_of_its_own() -> None:
    used = re.compile(r"""\|(?:date|time)(?::["']([^"']*)["'])?""")
    found = [(page.name, name) for page in sorted(TEMPLATES.rglob("*.html")) for name in used.findall(page.read_text())]
    assert len(found) > 30
    assert [(page, name) for page, name in found if name not in NAMED] == []


@pytest.mark.parametrize(
    ("language", "long", "short"),
    [
        ("en", "2 March 2026, 15:05", "2 Mar 2026, 15:05"),
        ("ru", "2 марта 2026 г., 15:05", "02.03.2026, 15:05"),
    ],
)
def test_both_languages_write_days_before_months_and_24_hours(language: str, long: str, short: str) -> None:
    moment = datetime(2026, 3, 2, 15, 5, tzinfo=timezone.get_current_timezone())
    for name, expected in (("DATETIME_FORMAT", long), ("SHORT_DATETIME_FORMAT", short)):
        template = Template(f'{{{{ moment|date:"{name}" }}}}')
        with translation.override(language):
            assert template.render(Context({"moment": moment})) == expected
