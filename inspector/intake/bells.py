"""Doorbells as the broker holds them, and the default's folder read so that what is no doorbell ends no worker.

Whatever else writes into a queue, or a disk that cuts a file short, can leave a message there that is none. Kombu lets
the error through, and Celery's worker ends with it. Nothing is lost by dropping such a message: the job rows are the
truth, and the sweeper finds what was not rung for.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Mapping
from queue import Empty
from typing import Any

from kombu.transport import filesystem

logger = logging.getLogger(__name__)

# What a message must say of itself before Kombu and Celery can handle it, or refuse it.
_NEEDED = {"properties": dict, "headers": dict, "body": str, "content-type": str, "content-encoding": str}
_NEEDED_OF_DELIVERY = {"exchange": str, "routing_key": str}


def is_message(payload: object) -> bool:
    """Whether something from a queue has the shape of a message, so that it can be handed on."""
    if not _has(payload, _NEEDED):
        return False
    properties = payload["properties"]  # type: ignore[index]
    if not isinstance(properties.get("delivery_tag"), str):
        return False
    if not _has(properties.get("delivery_info"), _NEEDED_OF_DELIVERY):
        return False
    try:
        body = base64.b64decode(payload["body"], validate=True)  # type: ignore[index]
    except (binascii.Error, ValueError):
        return False
    return properties.get("body_encoding") == "base64" and bool(body)


def _has(payload: object, needed: Mapping[str, type]) -> bool:
    return isinstance(payload, dict) and all(isinstance(payload.get(name), kind) for name, kind in needed.items())


def drop(error: object) -> None:
    """Say that something was dropped; never what it was, for it can be anything."""
    logger.warning("what stood in the broker's queue is no message, and is dropped: %s", type(error).__name__)


class Careful:
    """A transport that hands on nothing but messages."""

    def _deliver(self, message: object, queue: str) -> None:
        if is_message(message):
            super()._deliver(message, queue)  # type: ignore[misc]
        else:
            drop(message)


class Channel(filesystem.Channel):
    """The default's folder, in which a file may be cut short."""

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        try:
            return super()._get(queue)
        except ValueError as error:
            drop(error)
            raise Empty from error


class Transport(Careful, filesystem.Transport):  # type: ignore[misc]  # its own `_deliver` goes first
    """Doorbells in a folder."""

    Channel = Channel
