"""Django's PostgreSQL backend with two additions for the busiest pages; docs/benchmarks.md has what they bring.

Cursors that plan a statement once per connection, and a look at an idle connection that costs no round trip.
"""

import select
import time
from typing import Any

from django.db.backends.postgresql import base, operations
from django.db.backends.utils import CursorWrapper

TRUSTED_SECONDS = 5.0


class DatabaseOperations(operations.DatabaseOperations):
    def last_executed_query(self, cursor: Any, sql: Any, params: Any) -> str:
        """For the log of queries: psycopg keeps no text of a statement that was prepared before."""
        return str(super().last_executed_query(cursor, sql, params) or self.compose_sql(sql, params))


class DatabaseWrapper(base.DatabaseWrapper):
    ops_class = DatabaseOperations
    _asked_at = float("-inf")

    def planned_cursor(self) -> CursorWrapper:
        """A cursor whose statements PostgreSQL parses and plans once per connection, and not each time.

        For the few statements that run for every page of every participant. The parameters go to the server apart
        from the text, so a parameter whose type the statement does not tell needs a cast.
        """
        self.close_if_health_check_failed()
        self.ensure_connection()
        wrapper: Any = self  # Django's types leave out what its own `cursor` is made of
        cursor_class: Any = base.ServerBindingCursor
        with self.wrap_database_errors:
            cursor: CursorWrapper = wrapper._prepare_cursor(cursor_class(self.connection))
        return cursor

    def is_usable(self) -> bool:
        """Whether the connection lives: what Django asks before the first statement of each request.

        A server that has stopped, or has ended this connection, has said so on the socket, and a healthy idle one says
        nothing; so a silent socket answers without a round trip. A host that vanished without a word is silent too:
        therefore the server itself is asked when the last time was a while ago.
        """
        now = time.monotonic()
        lately, self._asked_at = now - self._asked_at < TRUSTED_SECONDS, now
        return (lately and self.connection is not None and _is_silent(self.connection)) or super().is_usable()


def _is_silent(connection: Any) -> bool:
    """Open, and with nothing to read."""
    if connection.closed:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN | select.POLLPRI)
    return not poll.poll(0)
