"""Access tokens that all workers share: whoever finds it expired asks for a new one, and the others wait for it.

Three doors: what this process knows (no query), a lock between its threads (so that forty of them do not each hold a
connection while they wait), and a row lock between processes, held while the token is being asked for.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from django.db import DatabaseError, InterfaceError, connection, transaction

from llmruns.models import AccessToken
from llmruns.providers.base import ConnectionFailed, Timeout
from llmruns.vault import token_seal, token_unseal

BUFFER = 60.0  # seconds before its end from which a token counts as expired
LONGEST_LIFE = 24 * 3600.0  # whatever the server says
LONGEST_WAIT = 45.0  # seconds for another's request


@dataclass(frozen=True, slots=True)
class Token:
    secret: str = field(repr=False)
    expires: float  # seconds since 1970

    def is_fresh(self) -> bool:
        return self.expires > time.time() + BUFFER


_known: dict[str, Token] = {}
_mutexes: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


def token_get(*, digest: str, fetch: Callable[[], Token]) -> str:
    """The token, from the cheapest place that has it. Raises ProviderError, that of `fetch` among them.

    No query where this process knows it, else about five.
    """
    known = _known.get(digest)
    if known is not None and known.is_fresh():
        return known.secret
    mutex = _mutexes[digest]
    if not mutex.acquire(timeout=LONGEST_WAIT):
        raise Timeout("another thread has been asking for a token for too long")
    try:
        known = _known.get(digest)
        if known is None or not known.is_fresh():
            known = _known[digest] = _shared(digest, fetch)
        return known.secret
    except (DatabaseError, InterfaceError) as error:
        raise ConnectionFailed(f"the shared token could not be read: {type(error).__name__}") from error
    finally:
        mutex.release()
        if "pool" in connection.settings_dict["OPTIONS"] and not connection.in_atomic_block:
            connection.close()  # back to the pool before the long wait for the reply


def token_forget(*, digest: str, secret: str) -> None:
    """The provider refuses this token before its time. One that came after it stays. Two queries."""
    known = _known.get(digest)
    if known is not None and known.secret == secret:
        _known.pop(digest, None)
    with transaction.atomic():
        row = AccessToken.objects.select_for_update().filter(digest=digest).first()
        if row is not None and token_unseal(bytes(row.ciphertext)) == secret:
            row.expires_at = datetime.fromtimestamp(0, UTC)
            row.save(update_fields=["expires_at"])


def _shared(digest: str, fetch: Callable[[], Token]) -> Token:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = '{LONGEST_WAIT:.0f}s'")
        AccessToken.objects.get_or_create(
            digest=digest, defaults={"ciphertext": b"", "expires_at": datetime.fromtimestamp(0, UTC)}
        )
        row = AccessToken.objects.select_for_update().get(digest=digest)
        kept = token_unseal(bytes(row.ciphertext)) if row.ciphertext else None
        if kept is not None:
            token = Token(kept, row.expires_at.timestamp())
            if token.is_fresh():
                return token
        token = fetch()
        token = Token(token.secret, min(token.expires, time.time() + LONGEST_LIFE))
        row.ciphertext = token_seal(token.secret)
        row.expires_at = datetime.fromtimestamp(token.expires, UTC)
        row.save(update_fields=["ciphertext", "expires_at"])
    return token
