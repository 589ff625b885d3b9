"""Base64 and zlib, as generously as the rulings allow and never past their bounds.

Specification: 0.4.0 Payload Encoding, which names neither alphabet, padding nor container.
"""

from __future__ import annotations

import binascii
import re
import zlib
from base64 import b64decode, b64encode
from typing import NamedTuple

MAX_UNPACKED_BYTES = 1 << 20
MAX_RATIO = 200
# All compressed payloads of one record together.
MAX_RECORD_BYTES = 4 << 20

_ALPHABET = re.compile(r"[A-Za-z0-9+/]*\Z")
_URL_SAFE = str.maketrans("-_", "+/")
_BREAKS = re.compile(r"[ \t]*[\r\n]+[ \t]*")


class Unpacked(NamedTuple):
    """The bytes, or why there are none; the container they were in, and how many bytes followed it."""

    data: bytes | None
    problem: str = ""
    container: str = "zlib"
    trailing_bytes: int = 0


class Room:
    """How many bytes the compressed payloads of one record may still unpack to."""

    def __init__(self, size_bytes: int = MAX_RECORD_BYTES) -> None:
        self.left_bytes = size_bytes


def decode_base64(text: str) -> tuple[bytes | None, tuple[str, ...]]:
    """The bytes of a Base64 text, or None, and what is odd about its spelling, in words."""
    try:
        data = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        data = None
    if data is not None and b64encode(data).decode("ascii") == text:
        return data, ()
    odd: list[str] = []
    plain = text.strip()
    if "\n" in plain or "\r" in plain:
        plain = _BREAKS.sub("", plain)
        odd.append("line breaks inside")
    if "-" in plain or "_" in plain:
        plain = plain.translate(_URL_SAFE)
        odd.append("the URL-safe alphabet")
    body = plain.rstrip("=")
    if not _ALPHABET.match(body) or len(body) % 4 == 1:
        return None, ()
    padding = "=" * (-len(body) % 4)
    if plain != body + padding:
        odd.append("padding missing" if len(plain) < len(body + padding) else "too much padding")
    data = b64decode(body + padding)
    if b64encode(data).decode("ascii") != body + padding:
        odd.append("unused bits that are not zero")
    return data, tuple(odd)


def encode_base64(data: bytes) -> str:
    """The standard alphabet with padding, in one line."""
    return b64encode(data).decode("ascii")


def unpack(data: bytes, room: Room) -> Unpacked:
    """Decompress zlib, gzip or raw deflate, to at most 1 MiB, 200 times the input, and the room that is left."""
    limit = min(MAX_UNPACKED_BYTES, MAX_RATIO * len(data), room.left_bytes)
    problem = "it is neither zlib, gzip nor raw deflate"
    for window, container in ((47, "gzip" if data[:2] == b"\x1f\x8b" else "zlib"), (-15, "raw deflate")):
        stream = zlib.decompressobj(window)
        try:
            unpacked = stream.decompress(data, limit + 1)
        except zlib.error:
            continue
        room.left_bytes = max(room.left_bytes - len(unpacked), 0)
        if len(unpacked) > limit:
            return Unpacked(None, f"it unpacks to more than {limit} bytes", container)
        if stream.eof:
            return Unpacked(unpacked, "", container, len(stream.unused_data))
        if window > 0:
            problem = "it is cut short"
    return Unpacked(None, problem)


def pack(text: str) -> bytes:
    """The text compressed in a zlib container."""
    return zlib.compress(text.encode(), 9)
