"""What can go wrong with sending, each with what had been taken before."""

from __future__ import annotations

from ._receipts import Receipt


class ClientError(Exception):
    """Sending did not come to its end.

    Attributes:
        receipt: the sum of the batches of the same call that were taken before.
    """

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.receipt = Receipt()


class RefusedError(ClientError):
    """The inspector said no, and would say so again: the key, the channel or the request is wrong.

    Attributes:
        status: the HTTP status.
        detail: the inspector's own words.
    """

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"the inspector refused: {status} {detail}")
        self.status = status
        self.detail = detail


class GaveUpError(ClientError):
    """The inspector could not be reached, or was too busy, for as long as the client may try.

    Attributes:
        attempts: how often it was tried.
        reason: what went wrong the last time.
        wait_seconds: how long it would have been before the next attempt.
    """

    def __init__(self, attempts: int, seconds: float, reason: str, wait_seconds: float) -> None:
        tries = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        super().__init__(f"gave up after {tries} in {seconds:.0f} seconds: {reason}")
        self.attempts = attempts
        self.reason = reason
        self.wait_seconds = wait_seconds


class SpoolFullError(ClientError):
    """As much waits on the disk as may: nothing of the call was written.

    Attributes:
        waiting_bytes: how much waits.
    """

    def __init__(self, waiting_bytes: int) -> None:
        super().__init__(f"the spool is full: {waiting_bytes:,} bytes wait in it")
        self.waiting_bytes = waiting_bytes
