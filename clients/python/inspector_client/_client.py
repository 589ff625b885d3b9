"""The client: sends batches one after the other, and tries again for as long as that can help."""

from __future__ import annotations

import email.utils
import http.client
import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from typing import Any

from ._batches import Batch, Message, list_messages, make_batches
from ._errors import ClientError, GaveUpError, RefusedError
from ._receipts import Receipt, read_receipt

# With these a later attempt may be answered otherwise; a 409 only where the answer says when.
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_CONFLICT = 409
_MAX_ANSWER_BYTES = 1024 * 1024
_MAX_WAIT_SECONDS = 24 * 3600.0


class Client:
    """A way to one inspector with one key. It may be shared by threads.

    Args:
        url: where the inspector is, as `https://inspector.example`.
        key: an API key with the scope `ingest`.
        channel: the namespace of ids, if it is another than the key's or the default one.
        batch_records: how many messages go into one request at most.
        batch_bytes: how many bytes, before they are packed.
        timeout_seconds: how long one attempt may be without an answer.
        give_up_after_seconds: how long a batch is tried for.
        first_pause_seconds: about how long the first pause is; each further one is twice as long.
        most_pause_seconds: how long a pause is at most, unless the inspector asks for more.

    Raises:
        ValueError: for an address that is not of HTTP.
    """

    def __init__(
        self,
        url: str,
        key: str,
        channel: str | None = None,
        *,
        batch_records: int = 500,
        batch_bytes: int = 1024 * 1024,
        timeout_seconds: float = 30.0,
        give_up_after_seconds: float = 300.0,
        first_pause_seconds: float = 0.5,
        most_pause_seconds: float = 30.0,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"{url!r} is no address: it begins with http:// or https://")
        self.url = url.rstrip("/")
        self.batch_records = batch_records
        self.batch_bytes = batch_bytes
        self._timeout_seconds = timeout_seconds
        self._give_up_after_seconds = give_up_after_seconds
        self._first_pause_seconds = first_pause_seconds
        self._most_pause_seconds = most_pause_seconds
        self._headers = {
            "Authorization": f"Bearer {key}",
            "Content-Type": "application/x-ndjson",
            "Content-Encoding": "gzip",
            "Accept": "application/json, application/problem+json",
            "User-Agent": "inspector-client",
        } | ({"X-Channel": channel} if channel else {})
        self._opener = urllib.request.build_opener(_NoRedirect)

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def send(self, messages: Iterable[Message] | Message) -> Receipt:
        """Send messages; when this returns, the inspector has them durably.

        Args:
            messages: texts, envelopes (`{"raw": text, "from": "ada", "at": "2026-11-21T09:00:00Z"}`) or CLowl objects;
                a single one will do.

        Raises:
            RefusedError: where sending again would not help.
            GaveUpError: where it was tried for too long. In both, `receipt` counts the batches taken before.
            TypeError: for a message that is neither text nor a mapping.
        """
        several = list_messages(messages)
        receipt = Receipt()
        for batch in make_batches(several, records=self.batch_records, size_bytes=self.batch_bytes):
            try:
                receipt += self.deliver(batch)
            except ClientError as error:
                error.receipt = receipt
                raise
        return receipt

    def deliver(self, batch: Batch, *, pause: Callable[[float], object] = time.sleep) -> Receipt:
        """Send one batch, again and again under the same key until it is taken.

        Args:
            batch: as `make_batch` makes it.
            pause: waits so many seconds between two attempts; what it raises ends the attempts.

        Raises:
            RefusedError: where sending again would not help.
            GaveUpError: where it was tried for too long.
        """
        started = time.monotonic()
        attempts = 0
        while True:
            attempts += 1
            receipt, reason, least_seconds = self._attempt(batch)
            if receipt is not None:
                return receipt
            ceiling = min(self._most_pause_seconds, self._first_pause_seconds * 2 ** min(attempts - 1, 30))
            # The jitter keeps many agents from coming back at the same moment.
            seconds = max(least_seconds, ceiling * random.uniform(0.5, 1.0)) + random.uniform(0.0, 0.1) * least_seconds
            spent = time.monotonic() - started
            if spent + seconds > self._give_up_after_seconds:
                raise GaveUpError(attempts, spent, reason, seconds)
            pause(seconds)

    def _attempt(self, batch: Batch) -> tuple[Receipt | None, str, float]:
        """The receipt; or None, why there is none, and how long to wait at least."""
        try:
            status, after, body = self._post(batch)
        except (OSError, http.client.HTTPException) as error:
            return None, f"{self.url} cannot be reached: {_tell(error)}", 0.0
        if status == http.client.ACCEPTED:
            receipt = read_receipt(body)
            if receipt is None:
                raise RefusedError(status, "what answered is no inspector: there is no receipt in its answer")
            return receipt, "", 0.0
        detail = _read_detail(body)
        if status in _PASSING or (status == _CONFLICT and after):
            return None, f"{status} {detail}", _read_seconds(after)
        raise RefusedError(status, detail)

    def _post(self, batch: Batch) -> tuple[int, str, bytes]:
        """The status, what Retry-After says, and the body."""
        request = urllib.request.Request(  # noqa: S310 (the address was looked at when the client was made)
            f"{self.url}/api/v1/messages",
            data=batch.body,
            headers=self._headers | {"Idempotency-Key": batch.key},
            method="POST",
        )
        try:
            with self._opener.open(request, timeout=self._timeout_seconds) as answer:
                return answer.status, "", _read_body(answer)
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, refusal.headers.get("Retry-After", ""), _read_body(refusal)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected POST would be sent again as a GET, without its messages: it is told as what it is."""

    def redirect_request(self, *args: Any, **names: Any) -> None:
        """None: the answer stands."""


def _read_body(answer: Any) -> bytes:
    """The body of an answer. One that ends before its Content-Length is no answer, whatever its status line promised:
    who gave it died meanwhile.

    Raises:
        http.client.IncompleteRead: for such a one; `read` with a bound raises it for chunks alone.
    """
    body: bytes = answer.read(_MAX_ANSWER_BYTES)
    if answer.length and len(body) < _MAX_ANSWER_BYTES:
        raise http.client.IncompleteRead(body, answer.length)
    return body


def _read_detail(body: bytes) -> str:
    """The words of a problem document, or the beginning of what was answered instead."""
    try:
        detail = json.loads(body)["detail"]
    except (ValueError, TypeError, KeyError, RecursionError):
        detail = body[:200].decode(errors="replace")
    return " ".join(str(detail).split()) or "without a word"


def _read_seconds(after: str) -> float:
    """Retry-After in seconds, as a number or a date (RFC 9110, 10.2.3); 0 where it says nothing."""
    if after.strip().isdecimal():
        return min(float(after), _MAX_WAIT_SECONDS)
    try:
        seconds = email.utils.parsedate_to_datetime(after).timestamp() - time.time()
    except (ValueError, TypeError, OverflowError):
        return 0.0
    return min(max(0.0, seconds), _MAX_WAIT_SECONDS)


def _tell(error: BaseException) -> str:
    reason = getattr(error, "reason", None) or error
    return f"{reason}" or type(error).__name__
