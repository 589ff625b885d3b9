"""Doorbells in a Redis server, read so that what is no doorbell ends no worker: see `bells`."""

from __future__ import annotations

from json import JSONDecodeError
from queue import Empty
from typing import Any

from kombu.transport import redis

from .bells import Careful, drop


class Channel(redis.Channel):
    """A queue of Redis, into which others may write."""

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[misc]  # a name that the stubs leave out
        except (UnicodeDecodeError, JSONDecodeError) as error:
            drop(error)
            raise Empty from error

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        try:
            return super()._get(queue)
        except ValueError as error:
            drop(error)
            raise Empty from error


class Transport(Careful, redis.Transport):  # type: ignore[misc]  # its own `_deliver` goes first
    """Doorbells in a Redis server."""

    Channel = Channel
