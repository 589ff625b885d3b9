"""The bytes a command reads: files or standard input, gzip opened on the way, never more held than a chunk."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from .._errors import DialectsError
from .._log import Item, LogOptions, LogReader

_CHUNK_BYTES = 256 * 1024
_GZIP = b"\x1f\x8b"
# A delivery has no more (architecture, "Quarantined"): what unpacks to more is a bomb.
MAX_UNPACKED_BYTES = 2 * 1024**3


class InputError(DialectsError):
    """A file that cannot be opened, or that breaks off.

    Attributes:
        name: the file's name, `-` for standard input.
        is_usage: whether the caller named something that is not there, as against bytes that are wrong.
    """

    def __init__(self, name: str, reason: str, *, is_usage: bool) -> None:
        super().__init__(f"{name}: {reason}")
        self.name = name
        self.is_usage = is_usage


def read_items(name: str, *, prefixes: bool = True) -> Iterator[list[Item]]:
    """The items of the log of that name, in the batches in which they come.

    Raises:
        InputError: where the file cannot be opened, and after all whole records where it breaks off.
    """
    hint = name.removesuffix(".gz")
    reader = LogReader(LogOptions(name=None if name == "-" else hint, prefixes=prefixes))
    fault = None
    try:
        for chunk in _open_chunks(name):
            yield reader.feed(chunk)
    except InputError as error:
        if error.is_usage:
            raise
        fault = error
    yield reader.close()
    if fault is None and reader.ending is not None:
        fault = InputError(name, reader.ending.reason, is_usage=False)
    if fault is not None:
        raise fault


def _open_chunks(name: str) -> Iterator[bytes]:
    if name == "-":
        yield from _unpack(name, _chunks(sys.stdin.buffer))
        return
    try:
        with Path(name).open("rb") as stream:
            yield from _unpack(name, _chunks(stream))
    except OSError as error:
        raise InputError(name, error.strerror or str(error), is_usage=True) from error


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    # `read1` gives what is there, so that a pipe is shown as it fills.
    read = getattr(stream, "read1", stream.read)
    while chunk := read(_CHUNK_BYTES):
        yield chunk


def _unpack(name: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
    head = b""
    for chunk in chunks:
        head += chunk
        if len(head) >= len(_GZIP):
            break
    if not head.startswith(_GZIP):
        yield head
        yield from chunks
        return
    yield from _inflate(name, head, chunks)


def _inflate(name: str, head: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Every member of a gzip stream, a bounded piece at a time."""
    member, packed, total = zlib.decompressobj(wbits=31), head, 0
    while packed or (packed := next(chunks, b"")):
        if member.eof:
            # Zeros may pad the end of an archive.
            packed = packed.lstrip(b"\0")
            if not packed:
                continue
            member = zlib.decompressobj(wbits=31)
        try:
            plain = member.decompress(packed, _CHUNK_BYTES)
        except zlib.error as error:
            raise InputError(name, f"not a sound gzip stream ({error})", is_usage=False) from error
        packed = member.unused_data if member.eof else member.unconsumed_tail
        total += len(plain)
        if total > MAX_UNPACKED_BYTES:
            raise InputError(name, f"unpacks to more than {MAX_UNPACKED_BYTES} bytes", is_usage=False)
        yield plain
    # What zlib still holds comes out without more input.
    while not member.eof and (plain := member.decompress(b"", _CHUNK_BYTES)):
        yield plain
    if not member.eof:
        raise InputError(name, "the gzip stream breaks off", is_usage=False)
