"""For Label Studio's migrations on a PostgreSQL without the extensions pg_trgm and btree_gin.

Its four indexes for searching in annotations are left out. That makes its writes cheaper, not dearer.
"""

from typing import Any

from django.contrib.postgres.operations import CreateExtension
from django.db.backends.utils import CursorWrapper

execute = CursorWrapper.execute


def without_search_indexes(self: CursorWrapper, sql: Any, params: Any = None) -> Any:
    return None if "gin_trgm_ops" in str(sql) else execute(self, sql, params)


def nothing(*arguments: Any, **named: Any) -> None:
    pass


CursorWrapper.execute = without_search_indexes  # type: ignore[method-assign]
CreateExtension.database_forwards = nothing  # type: ignore[method-assign]
