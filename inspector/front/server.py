"""The front's server: a connection carries one request, waits for nobody but itself, and is bounded in every way."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Final

from .requests import (
    MAX_BYTES,
    PIECE_BYTES,
    BadHeadError,
    BrokenError,
    FullError,
    Head,
    Kept,
    Pace,
    Room,
    SlowError,
    read_head,
    read_lines,
    read_pieces,
    wants_problem,
)

logger = logging.getLogger(__name__)

# So much of a long body is taken before its key or session is asked for.
TRUSTED_BYTES: Final = 64 * 1024
ANSWER_BUFFER_BYTES: Final = 1024 * 1024
READER_SECONDS: Final = 60.0
LINGER_SECONDS: Final = 2.0
# What a connection too many asks for, and not longer: its answer has a form by that.
CROWD_SECONDS: Final = 1.0
# After so long it is looked whether who closed one side of the line still listens on the other.
SIGN_SECONDS: Final = 0.5
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
RESTART_SECONDS: Final = 60.0
# Whoever stops us kills us after ten.
ENDING_SECONDS: Final = 8.0
GONE = (ConnectionError, asyncio.IncompleteReadError)


class RefusedError(Exception):
    """The front answers by itself, with this status and sentence."""

    def __init__(self, status: HTTPStatus, sentence: str, *, retry_after: int = 0) -> None:
        super().__init__(sentence)
        self.status = status
        self.retry_after = retry_after


class AnsweredError(Exception):
    """The posting processes refused the sender before the body was taken in; `answer` is theirs."""

    def __init__(self, answer: bytes) -> None:
        super().__init__()
        self.answer = answer


@dataclass(kw_only=True)
class Front:
    """Takes requests in and hands them to the sockets of `pages` and `posting`.

    Attributes:
        pages: the socket of the processes that answer all but posting.
        posting: the socket of those that take bodies in.
        room: how many bytes of bodies may be kept at a time.
        body_bytes: how long a delivery may be; an upload has its form around it.
        pace: how slow a body may be.
        head_s: how long a head may take.
        most: connections at a time.
        max_each: connections of one address at a time.
    """

    pages: Path
    posting: Path
    room: Room
    body_bytes: int = 2 * 1024**3
    pace: Pace = field(default_factory=Pace)
    head_s: float = 10.0
    most: int = 2000
    max_each: int = 600
    _open: Counter[str] = field(default_factory=Counter)
    _handed_on: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
        address = str((writer.get_extra_info("peername") or [""])[0])
        self._open[address] += 1
        seen = bytearray()
        try:
            await self._check_crowd(address, reader, seen)
            head = await self._read_head(address, reader, seen)
            await self._answer(head, address, reader, writer)
        except RefusedError as refusal:
            await _say(writer, _write_refusal(refusal, is_problem=wants_problem(bytes(seen))))
        except AnsweredError as refusal:
            await _say(writer, refusal.answer)
        except (*GONE, TimeoutError):
            pass  # Whoever asked has gone, or does not read the answer: nobody is left to tell.
        except Exception:
            logger.exception("a connection failed")
        finally:
            self._open -= Counter({address: 1})
            await _close(reader, writer)

    async def finish(self) -> None:
        """Wait until what was handed on is answered, for eight seconds at most. What still comes in is broken off."""
        if self._handed_on:
            await asyncio.wait(self._handed_on, timeout=ENDING_SECONDS)

    async def _check_crowd(self, address: str, reader: asyncio.StreamReader, seen: bytearray) -> None:
        if self._open.total() <= self.most and self._open[address] <= self.max_each:
            return
        with contextlib.suppress(TimeoutError, BadHeadError):
            async with asyncio.timeout(CROWD_SECONDS):
                await read_lines(reader, seen)
        raise RefusedError(HTTPStatus.TOO_MANY_REQUESTS, "too many connections are open", retry_after=5)

    async def _read_head(self, address: str, reader: asyncio.StreamReader, seen: bytearray) -> Head:
        try:
            async with asyncio.timeout(self.head_s):
                await read_lines(reader, seen)
            return read_head(bytes(seen))
        except TimeoutError:
            raise RefusedError(HTTPStatus.REQUEST_TIMEOUT, "the head of the request came too slowly") from None
        except BadHeadError as error:
            logger.info("a request of %s was refused: %s", address, error)
            raise RefusedError(error.status, str(error)) from error

    async def _answer(
        self, head: Head, address: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if head.path == b"/healthz" and head.method in (b"GET", b"HEAD"):
            writer.write(_write_answer(HTTPStatus.OK, {"status": "ok"}, has_body=head.method == b"GET"))
            return
        self._check_length(head, head.length or 0)
        if head.awaits_word and (head.is_chunked or head.length):
            if head.is_long:
                await self._ask(head, address)
            writer.write(CONTINUE)
        body = Kept(self.room)
        try:
            failure = await self._take_body(head, address, reader, body)
            if failure and not head.is_long:
                is_slow = isinstance(failure, SlowError)
                raise RefusedError(
                    HTTPStatus.REQUEST_TIMEOUT if is_slow else HTTPStatus.BAD_REQUEST,
                    "the body came too slowly" if is_slow else "the body broke off",
                )
            if task := asyncio.current_task():
                self._handed_on.add(task)
                task.add_done_callback(self._handed_on.discard)
            await self._hand_on(head, address, body, failure, reader, writer)
        finally:
            body.close()

    def _check_length(self, head: Head, size: int) -> None:
        if size > (self.body_bytes + MAX_BYTES if head.is_long else MAX_BYTES):
            most = self.body_bytes if head.is_long else MAX_BYTES
            sentence = f"a body has at most {most} bytes here: send it in pieces"
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, sentence)

    async def _take_body(
        self, head: Head, address: str, reader: asyncio.StreamReader, body: Kept
    ) -> BrokenError | None:
        """Keep the body as it comes; why it ended too early, or None."""
        is_known = False
        try:
            async for piece in read_pieces(head, reader, self.pace):
                self._check_length(head, body.size + len(piece))
                if head.is_long and not is_known and body.size + len(piece) > TRUSTED_BYTES:
                    await self._ask(head, address)
                    is_known = True
                body.add(piece)
        except BrokenError as failure:
            return failure
        except FullError:
            raise RefusedError(
                HTTPStatus.SERVICE_UNAVAILABLE, "too much is being sent at once: send this again", retry_after=30
            ) from None
        return None

    async def _ask(self, head: Head, address: str) -> None:
        """Ask the posting processes whether they would take this body of this sender.

        Raises:
            AnsweredError: when they would not.
        """
        with await self._connect(self.posting) as line:
            await _send(line, head.write(address, body="asked"))
            answer = b"".join([piece async for piece in _receive(line)])
        if not answer.startswith(b"HTTP/1.1 204 "):
            raise AnsweredError(answer)

    async def _hand_on(
        self,
        head: Head,
        address: str,
        body: Kept,
        failure: BrokenError | None,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        line = await self._connect(self.posting if head.is_for_posting else self.pages)
        begun = asyncio.Event()
        gone = asyncio.create_task(_wait_until_gone(head, reader, writer, begun, has_ended=failure is not None))
        relay = asyncio.create_task(_relay(head, address, body, failure, line, writer, begun))
        try:
            await asyncio.wait({gone, relay}, return_when=asyncio.FIRST_COMPLETED)
            if relay.done():
                await relay
        finally:
            for task in (gone, relay):
                task.cancel()
            await asyncio.gather(gone, relay, return_exceptions=True)
            line.close()

    async def _connect(self, path: Path) -> socket.socket:
        """A line to one of the sockets; while its processes are started again, whoever asks waits."""
        loop = asyncio.get_running_loop()
        until = loop.time() + RESTART_SECONDS
        while True:
            line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            line.setblocking(False)
            try:
                await loop.sock_connect(line, str(path))
            except OSError as error:
                line.close()
                if loop.time() > until:
                    raise RefusedError(
                        HTTPStatus.SERVICE_UNAVAILABLE, "the server is being started: try again", retry_after=5
                    ) from error
                await asyncio.sleep(0.1)
            else:
                return line


async def _send(line: socket.socket, data: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(line, data)


async def _receive(line: socket.socket) -> AsyncIterator[bytes]:
    """What is answered, to its end: also by a process that closed the line without reading all that it was sent.

    A stream of asyncio would throw the answer away when sending fails.
    """
    with contextlib.suppress(ConnectionError):
        while piece := await asyncio.get_running_loop().sock_recv(line, PIECE_BYTES):
            yield piece


async def _relay(
    head: Head,
    address: str,
    body: Kept,
    failure: BrokenError | None,
    line: socket.socket,
    writer: asyncio.StreamWriter,
    begun: asyncio.Event,
) -> None:
    """Send the request on, and its answer back, which sets `begun`; what answers is done with its work as soon as the
    buffer holds it.
    """
    said = {"body": "slow"} if isinstance(failure, SlowError) else {}
    with contextlib.suppress(ConnectionError):  # It may have answered without reading all of the body.
        await _send(line, head.write(address, **said))
        for piece in body.read():
            await _send(line, b"%x\r\n%b\r\n" % (len(piece), piece) if head.is_chunked else piece)
        if head.is_chunked and not failure:
            await _send(line, b"0\r\n\r\n")
        if failure:
            line.shutdown(socket.SHUT_WR)
    body.close()
    writer.transport.set_write_buffer_limits(high=ANSWER_BUFFER_BYTES)
    async for piece in _receive(line):
        begun.set()
        writer.write(piece)
        async with asyncio.timeout(READER_SECONDS):
            await writer.drain()
    if not begun.is_set():
        raise RefusedError(HTTPStatus.BAD_GATEWAY, "the server broke off: send this again")


async def _wait_until_gone(
    head: Head,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    begun: asyncio.Event,
    *,
    has_ended: bool,
) -> None:
    """Return when the client has gone; one that had ended its body early is waited for without end.

    One that closed its side may still listen, as `nc -N` does, and nothing tells it from one that has gone but
    writing to it. So it is sent "100 Continue" where its answer does not come at once. A client of HTTP/1.1 throws that
    away (RFC 9110, section 15.2); the system of one that has gone resets the line. HTTP/1.0 has no such word:
    a client that closes there and is not answered at once counts as gone.
    """
    if has_ended:
        await asyncio.Event().wait()
    try:
        while await reader.read(PIECE_BYTES):
            pass  # One request a connection: what is sent behind it counts for nothing.
    except ConnectionError:
        return
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(SIGN_SECONDS):
            await begun.wait()
    if not begun.is_set():
        if not head.knows_word:
            return
        writer.write(CONTINUE)
    while not _is_reset(writer):
        await asyncio.sleep(SIGN_SECONDS)


def _is_reset(writer: asyncio.StreamWriter) -> bool:
    try:
        return bool(writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
    except OSError:  # A write failed, and the line is closed.
        return True


def _write_refusal(refusal: RefusedError, *, is_problem: bool) -> bytes:
    problem = {"type": "about:blank", "title": refusal.status.phrase, "status": refusal.status, "detail": str(refusal)}
    return _write_answer(refusal.status, problem if is_problem else str(refusal), retry_after=refusal.retry_after)


def _write_answer(
    status: HTTPStatus, said: dict[str, object] | str, *, has_body: bool = True, retry_after: int = 0
) -> bytes:
    is_text = isinstance(said, str)
    body = (said + "\n" if isinstance(said, str) else json.dumps(said)).encode()
    kind = (
        "text/plain; charset=utf-8" if is_text else "application/json" if status < 400 else "application/problem+json"
    )
    lines = [f"HTTP/1.1 {status.value} {status.phrase}", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    lines += ["Cache-Control: no-store", "X-Content-Type-Options: nosniff", "Connection: close"]
    lines += [f"Retry-After: {retry_after}"] if retry_after else []
    return "\r\n".join([*lines, "", ""]).encode() + (body if has_body else b"")


async def _say(writer: asyncio.StreamWriter, answer: bytes) -> None:
    with contextlib.suppress(*GONE, TimeoutError):
        writer.write(answer)
        async with asyncio.timeout(READER_SECONDS):
            await writer.drain()


async def _close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """End the line so that the answer arrives: what is still being sent is thrown away for a moment, then refused."""
    with contextlib.suppress(*GONE, TimeoutError, OSError, RuntimeError):
        async with asyncio.timeout(READER_SECONDS):
            writer.transport.set_write_buffer_limits(high=0)
            await writer.drain()
        writer.write_eof()
        async with asyncio.timeout(LINGER_SECONDS):
            while await reader.read(PIECE_BYTES):
                pass
    writer.transport.abort()
