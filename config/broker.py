"""Celery's Redis transport with one client for each channel.

Kombu makes a new client for every message that it takes and for every one that it acknowledges, and making one costs
more than what it then sends. Clients are safe to share between threads: what they share is the pool of connections.
"""

from typing import Any

from kombu.transport import redis

_Channel: Any = redis.Channel  # its types leave this out


class Channel(_Channel):
    _kept: Any = None

    def _create_client(self, asynchronous: bool = False) -> Any:
        if asynchronous:  # it holds a connection of its own
            return super()._create_client(asynchronous=True)
        kept = self._kept
        if kept is None or kept.connection_pool is not self.pool:  # a lost connection brings a new pool
            kept = self._kept = super()._create_client()
        return kept


class Transport(redis.Transport):
    Channel = Channel
