"""The cursor of the busiest statements."""

from typing import Any

from django.db import connection
from django.db.backends.utils import CursorWrapper


def planned_cursor() -> CursorWrapper:
    """A cursor whose statements PostgreSQL plans once per connection. See `config.postgresql.base`."""
    wrapper: Any = connection  # of a class that Django's types do not know
    cursor: CursorWrapper = wrapper.planned_cursor()
    return cursor
