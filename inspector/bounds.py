"""The bounds of what comes and goes: a request's body, before anything is parsed, so that nobody fills a disk by a
form; an answer, and what is told of a message in it: two mebibytes, whatever a record holds; the bytes of a download,
all, one range, or none where they are known already, as RFC 9110 (sections 13 and 14) has it; and the processor time of
an answer.

An address that takes more says so itself (`takes_large_bodies`): it asks who sends before it reads, and has limits of
its own. Everywhere else a body has one length, declared, of at most a mebibyte.

In an answer long texts become their beginnings and long lists their first items, and `cut` names each place with how
much it has in all. What is whole has addresses of its own: the bytes of a record (`/records/{id}/raw`) and the fields
of a message (`/messages/{id}/fields`). Values of the codecs are taken apart here, node by node, so that what is left
out costs nothing. The rows of a page (`results`) are never left out, for the cursor goes on behind them.

Work ends when whoever asked for it goes: the statement that runs for nobody is cancelled, no other begins, and what is
computed ends too. Whatever goes through many rows, messages or fields for an answer asks at each (`check_effort`)
whether to go on. One step is bounded by the bytes that it may read. Outside of a request, as in a worker, nothing is
bounded here. A thread that waits for PostgreSQL does not see that its own line was closed. So one thread of each
process looks at the lines of the requests under way. What only reads is ended; what writes goes on to its end, for its
sender may have gone because all was said. What is computed between two statements ends where it asks.
"""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
from django.core.signals import request_finished, request_started
from django.db import OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.utils.cache import get_conditional_response

from dialects import to_shallow_json

EVERY_SECONDS: Final = 0.5
CANCEL_SECONDS: Final = 5.0
READING: Final = frozenset({"GET", "HEAD"})


class GoneError(OperationalError):
    """Whoever sent the request that is answered has gone."""

    def __str__(self) -> str:
        return "the client of this request has gone"


@dataclass(slots=True)
class _Visit:
    """A request under way: the line that it came by, and the connections that its thread asks databases by."""

    line: socket.socket
    databases: Sequence[BaseDatabaseWrapper]
    is_gone: bool = False
    is_over: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def execute(self, execute: Callable[..., Any], *statement: Any) -> Any:
        """Run a statement unless nobody waits for it any more, as a wrapper of Django's does."""
        if self.is_gone:
            raise GoneError
        return execute(*statement)

    def end_if_gone(self) -> None:
        """Cancel the statement under way where the line was closed."""
        with self.lock:  # Whoever ends the visit waits meanwhile, so that no statement of another one is cancelled.
            self.is_gone = self.is_gone or (not self.is_over and _is_closed(self.line))
            if self.is_over or not self.is_gone:
                return
            for database in self.databases:
                line: psycopg.Connection[Any] | None = database.connection
                if line is not None and line.pgconn.transaction_status == psycopg.pq.TransactionStatus.ACTIVE:
                    with suppress(psycopg.Error):  # The next look tries again.
                        line.cancel_safe(timeout=CANCEL_SECONDS)


# By thread: each answers one request at a time.
_visits: Final[dict[int, _Visit]] = {}
_is_busy: Final = threading.Event()
_watcher: Final = threading.Lock()


def end_work_of_the_gone() -> None:
    """Watch the requests of this process; call once, where a server whose threads each answer one request begins."""
    request_started.connect(_begin_visit)
    request_finished.connect(_end_visit)


def has_gone() -> bool:
    """Whether whoever sent the request that this thread answers has gone."""
    visit = _visits.get(threading.get_ident())
    return visit is not None and visit.is_gone


def _begin_visit(environ: dict[str, Any] | None = None, **_: Any) -> None:
    _end_visit()
    line = (environ or {}).get("gunicorn.socket")
    if environ is None or line is None or environ["REQUEST_METHOD"] not in READING:
        return
    if _watcher.acquire(blocking=False):  # The first request of a process; it is given back by nobody.
        threading.Thread(target=_watch, name="leaving", daemon=True).start()
    visit = _Visit(line, connections.all())
    for database in visit.databases:
        database.execute_wrappers.append(visit.execute)
    _visits[threading.get_ident()] = visit
    _is_busy.set()


def _end_visit(**_: Any) -> None:
    visit = _visits.pop(threading.get_ident(), None)
    if visit is None:
        return
    with visit.lock:
        visit.is_over = True
    for database in visit.databases:
        database.execute_wrappers.remove(visit.execute)
        if visit.is_gone:
            database.close()  # A late word of cancelling must not meet what is asked by it next.


def _watch() -> None:
    while True:
        _is_busy.wait()
        time.sleep(EVERY_SECONDS)
        for visit in list(_visits.values()):
            visit.end_if_gone()
        _is_busy.clear()
        if _visits:
            _is_busy.set()


def _is_closed(line: socket.socket) -> bool:
    try:
        return not line.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except (BlockingIOError, ValueError):  # It is silent; or it is encrypted, and says nothing of itself.
        return False
    except OSError:
        return True


MAX_SECONDS: Final = 10.0

# The processor time of this thread at which the answer under way has had its share.
_end: ContextVar[float | None] = ContextVar("effort", default=None)


class SpentError(Exception):
    """The answer takes more of the processor than one answer may."""

    def __str__(self) -> str:
        return f"this takes more than {MAX_SECONDS:.0f} seconds of the processor: ask for less of it at once"


@contextmanager
def bound_effort() -> Iterator[None]:
    """Give what is computed within its share of the processor."""
    token = _end.set(time.thread_time() + MAX_SECONDS)
    try:
        yield
    finally:
        _end.reset(token)


class EffortMiddleware:
    """Bounds every request that only reads; what writes goes on to its end, and what is streamed is no part of it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request."""
        with bound_effort() if request.method in READING else nullcontext():
            return self.get_response(request)


def check_effort() -> None:
    """Go on with the answer under way, or end it.

    Raises:
        SpentError: where it has had its share of the processor.
        GoneError: where whoever asked has gone.
    """
    end = _end.get()
    if end is None:
        return
    if has_gone():
        raise GoneError
    if time.thread_time() > end:
        raise SpentError


MAX_BYTES: Final = 1024 * 1024
_MARK: Final = "takes_large_bodies"


def takes_large_bodies(view: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a view that reads its bodies itself, after it has asked who sends them."""
    vars(view)[_MARK] = True
    return view


class BodyBoundsMiddleware:
    """Refuses a body that is too long, or of unknown length, before any of it is read."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request. An address that does not exist takes no body at all."""
        return self._get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: object, names: object
    ) -> HttpResponseBase | None:
        """413 for what is longer than anybody needs, before the search for a CSRF token would read it."""
        if getattr(getattr(view, "cls", view), _MARK, False) or not _is_beyond(request):
            return None
        return refuse_length(request)


def refuse_length(request: HttpRequest) -> HttpResponse:
    """The page that says what is too long; the rest of the body is not waited for."""
    stop_reading(request)
    return render(request, "413.html", status=413)


def find_declared_length(request: HttpRequest) -> int:
    """The length that a request declares for its body, in bytes; 0 where it declares none."""
    declared = request.headers.get("Content-Length") or "0"
    return int(declared) if declared.isascii() and declared.isdigit() else 0


def stop_reading(request: HttpRequest) -> None:
    """Take nothing more from the sender: what is still under way is left on the line, and the line is closed."""
    line = request.META.get("gunicorn.socket")
    if line is not None:
        with suppress(OSError):  # The other side may have closed it.
            line.shutdown(socket.SHUT_RD)


def _is_beyond(request: HttpRequest) -> bool:
    is_chunked = "chunked" in request.headers.get("Transfer-Encoding", "").lower()
    return is_chunked or find_declared_length(request) > MAX_BYTES


MAX_ANSWER_BYTES: Final = 2 * 1024 * 1024

# A number or a name weighs about so much, with what stands around it; each character of a text six
# bytes, one beyond the first 65,536 twelve.
NODE_BYTES: Final = 12
MAX_CUTS: Final = 100
# No object of a declared shape has more members.
MIN_MEMBERS: Final = 100
ROWS: Final = "results"
_PLAIN: Final = frozenset({type(None), int, float, bool})

# How the description tells of it, wherever it may stand.
CUTS: Final[dict[str, Any]] = {
    "type": "array",
    "description": "the places where something was left out, of an answer or a message over two mebibytes",
    "items": {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "total": {"type": "integer", "description": "how much there is in all"},
            "unit": {"type": "string", "enum": ["characters", "items", "members", "bytes"]},
        },
        "required": ["path", "total", "unit"],
        "additionalProperties": False,
    },
}


@dataclass(frozen=True, slots=True)
class Measure:
    """How long a text, a list and the whole may be."""

    characters: int
    items: int


# An answer is tried in the first; one that is too heavy in the next. The last holds for every page of rows.
MEASURES: Final = (Measure(1_000_000, 1_000_000), Measure(65_536, 5_000), Measure(4_096, 500), Measure(120, 8))


class OverBudgetError(Exception):
    """In this measure the answer is too heavy."""


@dataclass(slots=True)
class _Fitting:
    measure: Measure
    most: int
    is_last: bool
    weight: int = 0
    cuts: list[dict[str, Any]] = field(default_factory=list)

    def fit(self, value: Any, path: str) -> Any:
        """The value as JSON types, within the measure.

        Raises:
            OverBudgetError: as soon as the whole weighs too much.
        """
        self._spend(NODE_BYTES)
        if type(value) in _PLAIN:
            return value
        if isinstance(value, str):
            return self._fit_text(value, path)
        if isinstance(value, Mapping):
            return self._fit_mapping(value, path)
        if isinstance(value, (list, tuple)):
            return self._fit_list(value, path)
        shallow = to_shallow_json(value) if hasattr(value, "given") or isinstance(value, bytes) else value
        return self._fit_mapping(shallow, path) if isinstance(shallow, Mapping) else shallow

    def _fit_text(self, text: str, path: str) -> str:
        kept = text
        if len(text) > self.measure.characters:
            kept = text[: self.measure.characters]
            self._note(path, len(text), "characters")
        self._spend(len(kept) if kept.isascii() else 3 * len(kept.encode("utf-16-le", "surrogatepass")))
        return kept

    def _fit_mapping(self, value: Mapping[Any, Any], path: str) -> dict[str, Any]:
        check_effort()
        shown = {}
        for number, (name, inner) in enumerate(value.items()):
            if number == max(self.measure.items, MIN_MEMBERS):
                self._note(path, len(value), "members")
                break
            self._spend(len(str(name)))
            shown[str(name)] = self.fit(inner, f"{path}.{name}" if path else str(name))
        return shown

    def _fit_list(self, value: list[Any] | tuple[Any, ...], path: str) -> list[Any]:
        shown: list[Any] = []
        for number, inner in enumerate(value):
            if path != ROWS and (number == self.measure.items or self._is_full(path)):
                self._note(path, len(value), "items")
                break
            shown.append(self.fit(inner, f"{path}[{number}]"))
        return shown

    def _is_full(self, path: str) -> bool:
        """Whether the last measure is used up, outside of the rows of a page."""
        return self.is_last and self.weight > self.most and not path.startswith(ROWS)

    def _spend(self, weight: int) -> None:
        self.weight += weight
        if self.weight > self.most and not self.is_last:
            raise OverBudgetError

    def _note(self, path: str, total: int, unit: str) -> None:
        if len(self.cuts) < MAX_CUTS:
            self.cuts.append({"path": path[:200], "total": total, "unit": unit})


def fit_answer(data: Any, most: int = MAX_ANSWER_BYTES) -> Any:
    """The answer in JSON types and within the budget of so many bytes; with `cut` where something was left out.

    `cut` is a list of {path, total, unit}: where, how much there is in all, and of what; the first hundred places.
    """
    for measure in MEASURES:
        fitting = _Fitting(measure, most, is_last=measure is MEASURES[-1])
        try:
            shown = fitting.fit(data, "")
        except OverBudgetError:
            continue
        if fitting.cuts and isinstance(shown, dict):
            shown["cut"] = [*shown.get("cut", []), *fitting.cuts]
        return shown
    raise AssertionError("the last measure takes every answer")


BYTES: Final = "application/octet-stream"
# Several ranges at once are not offered: the whole is sent, as the standard allows.
_RANGE: Final = re.compile(r"bytes=(?:([0-9]{1,1000})-([0-9]{1,1000})?|-([0-9]{1,1000}))", re.ASCII | re.IGNORECASE)


class RangeError(Exception):
    """A range that holds no byte; `size` is how many there are."""

    def __init__(self, size: int) -> None:
        super().__init__(f"the range holds no byte: there are {size:,}, counted from 0")
        self.size = size


def answer_bytes(
    request: HttpRequest, pieces: Iterable[bytes], *, name: str, size: int, digest: str
) -> HttpResponseBase:
    """Bytes as an attachment of no type, so that nothing in them runs: all of them, or the range that is asked for.

    304 where `If-None-Match` names them, 412 where `If-Match` does not.

    Args:
        pieces: the bytes, one after the other.
        size: how many these are.
        digest: the SHA-256 of what they are of, in hex: what is asked for `If-Range` of another one is sent whole.

    Raises:
        RangeError: where the range begins behind the end.
    """
    tag = f'"{digest}-{size}"'
    headers = {"ETag": tag, "Cache-Control": "no-store, private"}
    instead = get_conditional_response(request, etag=tag)
    if instead is not None:
        for header, value in headers.items():
            instead[header] = value
        return instead
    asked = _find_range(request, tag, size)
    start, end = asked or (0, size)
    status = 206 if asked else 200
    response = StreamingHttpResponse(_cut(pieces, start, end), content_type=BYTES, status=status, headers=headers)
    if asked:
        response["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    response["Content-Length"] = str(end - start)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    response["Accept-Ranges"] = "bytes"
    return response


def refuse_range(error: RangeError) -> HttpResponse:
    """416, with how many bytes there are."""
    response = HttpResponse(f"{error}\n", content_type="text/plain; charset=utf-8", status=416)
    response["Content-Range"] = f"bytes */{error.size}"
    return response


def _find_range(request: HttpRequest, tag: str, size: int) -> tuple[int, int] | None:
    """The first byte and the one after the last; None for all, also where the range is none that is understood."""
    asked = _RANGE.fullmatch(request.headers.get("Range", "").strip())
    if asked is None or request.method != "GET" or request.headers.get("If-Range", tag) != tag:
        return None
    first, last, tail = asked.groups()
    if tail is not None:
        start, end = max(0, size - int(tail)), size
    else:
        start, end = int(first), min(size, int(last) + 1) if last else size
        if last and int(last) < start:
            return None
    if start >= end:
        raise RangeError(size)
    return start, end


def _cut(pieces: Iterable[bytes], start: int, end: int) -> Iterator[bytes]:
    at = 0
    # Where nothing is sent, nothing is read either.
    for piece in pieces if start < end else ():
        if at >= end:
            return
        part = piece[max(0, start - at) : end - at]
        at += len(piece)
        if part:
            yield part
