"""What the object mapper does not give by itself."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db import IntegrityError, connection
from django.db.backends.utils import CursorWrapper
from django.db.models import Model, QuerySet

Row = TypeVar("Row", bound=Model)


def locked(rows: QuerySet[Row], pk: int, *, no_key: bool = False) -> Row:
    """The row, locked, with what it points to as it is after the wait. Two queries.

    In one statement with the lock, the joined rows would be those from before the wait: PostgreSQL looks again at the
    locked row alone. Raises the model's DoesNotExist.
    """
    rows.model._base_manager.select_for_update(no_key=no_key).values_list("pk").filter(pk=pk).first()
    return rows.get(pk=pk)


def violates(error: IntegrityError, constraint: str) -> bool:
    """Whether this named constraint, or a trigger that gives its name, refused the statement."""
    diagnosis = getattr(error.__cause__, "diag", None)
    return diagnosis is not None and diagnosis.constraint_name == constraint


def parsed(value: Any) -> Any:
    """A jsonb value of a plain cursor: Django leaves it as text for its own fields to read."""
    return json.loads(value) if isinstance(value, str) else value


def planned_cursor() -> CursorWrapper:
    """A cursor whose statements PostgreSQL plans once per connection. See `config.postgresql.base`."""
    wrapper: Any = connection  # of a class that Django's types do not know
    cursor: CursorWrapper = wrapper.planned_cursor()
    return cursor


@contextmanager
def joined_at_once() -> Iterator[None]:
    """Within a transaction: tables are joined as wholes, never a row of one at a time.

    Right after many rows came in, PostgreSQL's statistics do not know of them; it then takes a table for empty and
    reads it once for each row of another, for minutes.
    """
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_nestloop = off")
    yield
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_nestloop = on")
