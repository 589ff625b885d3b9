"""The payload field: what its prefix says it is, and the layers found inside it.

Specification: 0.4.0 Payload Encoding. The prefix decides what a payload is. Every text that is unwrapped becomes a
layer of the record, so that a sentence can point into it; what cannot be unwrapped stays visible as written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

from .._english import quote
from .._json import JsonError, Rules, load, load_whole, skip_space
from .._record import Layer, Note, NoteKind, Span
from . import notes as kinds
from .packing import Room, Unpacked, decode_base64, unpack
from .tables import PREFIXES

RULES = Rules(max_depth=64)
# JSON that a wire writes openly ends where it closes, also where it is too deep to be told.
_OPEN_RULES = Rules(max_depth=200)
_PREFIX = re.compile(r"([A-Za-z][A-Za-z0-9_-]{0,15}):")
_TAG_BYTES = 16
NONCE_BYTES = 12


class Layers:
    """The inner texts of a record, numbered as they are found; `room` is what they may still unpack to."""

    def __init__(self, first: int = 1) -> None:
        self._first = first
        self.found: list[Layer] = []
        self.room = Room()

    def add(self, kind: Literal["base64", "zlib", "plaintext"], text: str, of: Span) -> int:
        """Keep a text as a layer; its id."""
        number = self._first + len(self.found)
        self.found.append(Layer(id=number, kind=kind, text=text, of=of))
        return number


@dataclass(slots=True)
class Payload:
    """A payload as read.

    Attributes:
        kind: text, json, zlib, raw, encrypted, or unknown for a prefix outside the table.
        start, end: the span of what follows `$`, prefix included, on the layer `of`.
        body: where the prefix ends.
        content: the value, None where it could not be read or is sealed.
        text: the innermost text that was unwrapped, and `layer`, where it stands.
        is_json: whether `text` is valid JSON to be told by its members.
        hidden: the bytes that are no text, as hex.
        is_kept: whether writing the content anew would not give these characters back.
        nonce, sealed: of an encrypted payload, as bytes; `parts` are their spans.
    """

    kind: str
    start: int
    end: int
    body: int
    written: str
    of: int = 0
    content: Any = None
    text: str | None = None
    layer: int = 0
    is_json: bool = False
    hidden: str | None = None
    is_kept: bool = False
    nonce: bytes | None = None
    sealed: bytes | None = None
    parts: tuple[tuple[int, int], ...] = ()
    notes: list[Note] = field(default_factory=list)

    @property
    def span(self) -> Span:
        """Where its characters stand."""
        return (self.of, self.start, self.end)

    def note(self, kind: NoteKind, text: str, start: int | None = None) -> None:
        """Note something about the body of this payload."""
        self.notes.append(kind.note(text, (self.of, self.body if start is None else start, self.end)))

    @property
    def size_bytes(self) -> int | None:
        """Of an encrypted payload, the size of the ciphertext without its tag."""
        return None if self.sealed is None else max(len(self.sealed) - _TAG_BYTES, 0)


def may_pack(wire: str) -> bool:
    """Whether a text may hold a payload; without its sigil it holds none."""
    return "$" in wire


def find_json_end(text: str, start: int, end: int) -> int | None:
    """Where a JSON object or array that begins at `start` ends, or None if none does before `end`."""
    try:
        stop = load(text, start, _OPEN_RULES).end
    except JsonError:
        return None
    return stop if stop <= end else None


def read_payload(written: str, start: int, layers: Layers, *, of: int = 0) -> Payload:
    """Read the characters after `$`, which begin at `start` of the layer `of`."""
    found = _PREFIX.match(written)
    letter = found[1] if found else ""
    kind = PREFIXES[letter][0] if letter in PREFIXES else "unknown"
    payload = Payload(kind, start, start + len(written), start + (found.end() if found else 0), written, of)
    body = written[found.end() :] if found else written
    if kind == "unknown":
        payload.is_kept = True
        payload.note(kinds.UNKNOWN_PREFIX, f"the prefix {quote(letter)} is not in the table", start)
    elif kind == "raw":
        payload.content, payload.text, payload.layer = body, body, of
        payload.note(kinds.PLAINTEXT, "the payload is plaintext, meant for debugging only")
        payload.note(kinds.BOUNDARY, "raw text is taken to the end of its statement; where it ends is uncertain")
    elif kind == "encrypted":
        _read_sealed(payload, body)
    else:
        read_body(payload, body, layers)
    return payload


def read_body(payload: Payload, body: str, layers: Layers) -> None:
    """Unwrap the Base64 of a text, JSON or compressed payload."""
    data, odd = decode_base64(body)
    if data is None:
        payload.is_kept = True
        if payload.kind == "json" and body[:1] in ("{", "["):
            _read_json(payload, body, payload.of, payload.body, is_bare=True)
        else:
            payload.note(kinds.NOT_BASE64, "it is not Base64: shown as written")
        return
    if odd:
        payload.note(kinds.ODD_BASE64, f"Base64 with {' and '.join(odd)}")
    if payload.kind == "zlib":
        _read_packed(payload, data, layers)
        return
    text = read_text(payload, data)
    if text is None:
        return
    layer = layers.add("base64", text, (payload.of, payload.body, payload.end))
    if payload.kind == "json":
        _read_json(payload, text, layer, 0)
    else:
        payload.content, payload.text, payload.layer = text, text, layer


def read_text(payload: Payload, data: bytes) -> str | None:
    """The UTF-8 text of these bytes; otherwise they are kept as hex, with a note, and None is returned."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        payload.hidden = data.hex()
        payload.is_kept = True
        size = "1 byte is" if len(data) == 1 else f"{len(data)} bytes are"
        payload.note(kinds.NOT_TEXT, f"its {size} not UTF-8 text: shown as hex")
        return None


def _read_json(payload: Payload, text: str, layer: int, start: int, *, is_bare: bool = False) -> None:
    payload.content, payload.text, payload.layer = text, text, layer
    try:
        loaded = load_whole(text, RULES)
    except JsonError as fault:
        payload.is_kept = True
        if fault.kind == "depth":
            payload.note(kinds.TOO_DEEP, f"the JSON nests deeper than {RULES.max_depth} levels: kept as text")
        elif is_bare:
            payload.content, payload.text = None, None
            payload.note(kinds.NOT_BASE64, "it is not Base64: shown as written")
        else:
            payload.note(kinds.NOT_JSON, f"the text is not JSON ({fault.said}): shown as text")
        return
    payload.content, payload.is_json = loaded.data, True
    if is_bare:
        payload.note(kinds.BARE_JSON, "the JSON is written openly, where Base64 is required")
    if loaded.repeated:
        payload.is_kept = True
        keys = ", ".join(map(quote, loaded.repeated))
        payload.note(kinds.DUPLICATE_KEY, f"given twice: {keys}; the last stands in the content")
    if loaded.has_exact_numbers:
        payload.is_kept = True
        payload.note(kinds.NUMBER_RANGE, "a number is kept as text, with all its digits")


def _read_packed(payload: Payload, data: bytes, layers: Layers) -> None:
    payload.is_kept = True
    result = unpack(data, layers.room)
    if result.data is None:
        kind = kinds.TOO_LARGE if "more than" in result.problem else kinds.NOT_ZLIB
        payload.note(kind, f"the compressed data is not unpacked: {result.problem}")
        return
    _note_container(payload, result)
    text = read_text(payload, result.data)
    if text is None:
        return
    payload.layer = layers.add("zlib", text, (payload.of, payload.body, payload.end))
    payload.content = payload.text = text
    if text.startswith("z:"):
        _read_nested(payload, text, layers)
    _see_json(payload)


def _note_container(payload: Payload, result: Unpacked) -> None:
    if result.container != "zlib":
        payload.note(kinds.OTHER_CONTAINER, f"the container is {result.container}, not zlib")
    if result.trailing_bytes:
        payload.note(kinds.TRAILING_DATA, f"{result.trailing_bytes} bytes follow the compressed data: not read")


def _read_nested(payload: Payload, text: str, layers: Layers) -> None:
    data, _ = decode_base64(text[2:])
    result = unpack(data, layers.room) if data is not None else Unpacked(None, "it is not Base64")
    try:
        inner = result.data.decode("utf-8") if result.data is not None else None
    except UnicodeDecodeError:
        inner = None
    if inner is None:
        payload.note(kinds.NOT_ZLIB, f"the payload inside is not unpacked: {result.problem or 'it is not UTF-8 text'}")
        return
    payload.layer = layers.add("zlib", inner, (payload.layer, 2, len(text)))
    payload.content = payload.text = inner
    if inner.startswith("z:"):
        payload.note(kinds.NESTED_LIMIT, "a further compressed payload inside is not opened")


def _see_json(payload: Payload) -> None:
    """Compressed text may be JSON, which the prefix does not say: it is told as JSON, and stays text."""
    text = payload.text or ""
    if not text.startswith(("{", "["), skip_space(text)):
        return
    try:
        load_whole(text, RULES)
    except JsonError:
        return
    payload.is_json = True
    payload.note(kinds.INNER_JSON, "the compressed text is JSON, which the prefix $z: does not say")


def _read_sealed(payload: Payload, body: str) -> None:
    payload.is_kept = True
    first, colon, second = body.partition(":")
    nonce, odd = decode_base64(first)
    sealed, odder = decode_base64(second)
    middle = payload.body + len(first)
    if colon:
        payload.parts = ((payload.body, middle), (middle + 1, payload.end))
    if colon and first and nonce is not None:
        payload.nonce = nonce
        if len(nonce) != NONCE_BYTES:
            text = f"the nonce has {len(nonce)} bytes, not {NONCE_BYTES}"
            payload.notes.append(kinds.NONCE_SIZE.note(text, (payload.of, payload.body, middle)))
    if payload.nonce is None or sealed is None or not second:
        payload.note(kinds.SEALED_UNREAD, "it is not nonce and ciphertext in Base64, joined by a colon")
        return
    payload.sealed = sealed
    if odd or odder:
        payload.note(kinds.ODD_BASE64, f"Base64 with {' and '.join(dict.fromkeys((*odd, *odder)))}")
    if len(sealed) < _TAG_BYTES:
        text = f"{len(sealed)} bytes are shorter than the tag of {_TAG_BYTES}"
        payload.notes.append(kinds.SEALED_SHORT.note(text, (payload.of, middle + 1, payload.end)))
