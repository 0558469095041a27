"""The hand-computed study of tests/reports serves the labels too."""

from tests.reports.conftest import bare, built  # noqa: F401
