"""Rows of the hot path without the object mapper: what a call costs in Luria is mostly the making of its statements.

A statement is put together once per process from the models' own columns, planned once per connection
(`planned_cursor`), and its rows become instances as the object mapper would make them.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

from django.core.exceptions import FieldDoesNotExist
from django.db import connection
from django.db.models import JSONField, Model

from studies.database import parsed

Row = TypeVar("Row", bound=Model)


@cache
def columns(model: type[Model], alias: str, names: tuple[str, ...] = ()) -> str:
    """The model's columns, or those named, as a list for SELECT."""
    return ", ".join(f'{alias}."{field.column}"' for field in _fields(model, names))


def instance(model: type[Row], values: Sequence[Any], names: tuple[str, ...] = ()) -> Row:
    """A row read with `columns`; with `names` the other fields are deferred."""
    fields = _fields(model, names)
    made = (
        parsed(value) if isinstance(field, JSONField) else value for field, value in zip(fields, values, strict=True)
    )
    return model.from_db(connection.alias, [field.attname for field in fields], list(made))


@cache
def width(model: type[Model], names: tuple[str, ...] = ()) -> int:
    return len(_fields(model, names))


@cache
def insert_statement(model: type[Model]) -> str:
    fields = [field for field in _fields(model, ()) if not field.primary_key]
    names = ", ".join(f'"{field.column}"' for field in fields)
    values = ", ".join(f"%({field.attname})s" for field in fields)
    return f"INSERT INTO {model._meta.db_table} ({names}) VALUES ({values}) RETURNING id"  # noqa: S608 - our own names


def insert_values(row: Model) -> dict[str, Any]:
    fields = [field for field in _fields(type(row), ()) if not field.primary_key]
    return {field.attname: field.get_db_prep_save(field.pre_save(row, True), connection) for field in fields}


@cache
def assignments(model: type[Model], names: tuple[str, ...], prefix: str = "") -> str:
    """What stands after SET. The parameters are named as the columns, after the prefix."""
    return ", ".join(f'"{field.column}" = %({prefix}{field.attname})s' for field in _fields(model, names))


def assigned_values(model: type[Model], values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    return {
        prefix + field.attname: field.get_db_prep_save(values[field.name], connection)
        for field in _fields(model, tuple(values))
    }


@cache
def _fields(model: type[Model], names: tuple[str, ...]) -> list[Any]:
    """In the model's own order, in which `from_db` wants them."""
    found = [field for field in model._meta.concrete_fields if not names or field.name in names]
    if names and len(found) != len(names):
        raise FieldDoesNotExist(f"{model.__name__}: {names}")
    return found
