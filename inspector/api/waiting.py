"""`Prefer: wait=N` (RFC 7240): hold the answer of a POST until what it brought is told, and add the messages.

The records are durable before the waiting begins, and nothing is locked while it lasts: it is a look at the database
now and then. A process lends two of its threads to it at most; whoever comes third is answered at once.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from rest_framework.request import Request
from rest_framework.response import Response

from inspector.intake.models import Delivery
from inspector.threads.selectors import has_unread_records, is_resolving, list_messages_of_delivery

from .messages import show_messages

MAX_WAITERS: Final = 2
MAX_SECONDS: Final = 30
MAX_MESSAGES: Final = 200
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.05, 0.5

_seats = threading.BoundedSemaphore(MAX_WAITERS)
_WAIT = re.compile(r'wait\s*=\s*"?(\d{1,6})"?\s*(?:;.*)?', re.IGNORECASE)


def read_wish(request: Request) -> int:
    """The seconds of `Prefer: wait`, at most 30; 0 for no such wish. The first of several holds."""
    for preference in request.headers.get("Prefer", "").split(","):
        found = _WAIT.fullmatch(preference.strip())
        if found:
            return min(int(found[1]), MAX_SECONDS)
    return 0


def grant_wish(request: Request, delivery: Delivery, response: Response) -> Response:
    """The response, with the messages of the delivery where the request asked to wait and a seat was free."""
    seconds = read_wish(request)
    if not seconds:
        return response
    with _take_seat() as has_seat:
        if not has_seat:
            return response
        is_settled = wait_until_settled(delivery, seconds=seconds)
        found = list_messages_of_delivery(delivery=delivery, limit=MAX_MESSAGES + 1)
    response.data |= {
        "is_settled": is_settled,
        "messages": list(show_messages(found[:MAX_MESSAGES]).values()),
        "has_more_messages": len(found) > MAX_MESSAGES,
    }
    response["Preference-Applied"] = f"wait={seconds}"
    return response


@contextmanager
def _take_seat() -> Iterator[bool]:
    has_seat = _seats.acquire(blocking=False)
    try:
        yield has_seat
    finally:
        if has_seat:
            _seats.release()


def wait_until_settled(delivery: Delivery, *, seconds: float) -> bool:
    """Look until every record of the delivery is read and its conversations are settled, or the time is over."""
    until, pause = time.monotonic() + seconds, FIRST_PAUSE_SECONDS
    while not _is_settled(delivery):
        left = until - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, MAX_PAUSE_SECONDS)
    return True


def _is_settled(delivery: Delivery) -> bool:
    delivery.refresh_from_db(fields=["read", "stored"])
    return (
        delivery.read >= delivery.stored
        and not has_unread_records(delivery=delivery)
        and not is_resolving(delivery=delivery)
    )


def show_waiting() -> dict[str, Any]:
    """The bounds of waiting, as GET /limits tells them."""
    return {"wait_seconds": MAX_SECONDS, "waiters": MAX_WAITERS, "waited_messages": MAX_MESSAGES}
