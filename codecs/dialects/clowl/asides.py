"""What a message carries beside its sentence: ids, version, time, unknown keys; and the gloss, code by code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from .._english import say_instant
from .._record import MASK, Message
from .columns import find_extra
from .details import is_text
from .parts import Piece
from .positions import Path
from .tables import STATES
from .telling import PLACES, Words, is_long_hash, is_long_text, say_key, say_value
from .tokens import is_secret
from .tree import explain

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# (column, words before its value, where it may stand)
_IDS: tuple[tuple[str, str, tuple[Path, ...]], ...] = (
    ("message_id", "message ", (("mid",),)),
    ("conversation_id", "in conversation ", (("cid",),)),
    ("trace_id", "in trace ", (("tid",), ("trace", "trace_id"), ("trace", "tid"))),
    ("task_id", "for task ", (("task_id",),)),
    ("parent_task_id", "part of task ", (("trace", "parent_task_id"),)),
)
# Acts that answer something.
_ANSWERS = frozenset({"ACK", "PROG", "DONE", "ERR"})
# Attributes that are said elsewhere, or in words of their own.
_SAID = frozenset({"clowl", "cl", "profile", "extra", "repeated", "comment", "body"})


def say_beside(message: Message, piece: Piece) -> Iterator[Words]:
    """One short phrase for each thing that the sentence does not say."""
    if piece.kind != "object":
        return
    data, attributes = piece.data, message.attributes
    if "profile" in attributes:
        yield f"in the form of {attributes['profile']}", ()
    for key in ("clowl", "cl"):
        if attributes.get(key) is not None:
            yield f"CLowl version {_say_bare(attributes[key])}", (key,)
        elif key in attributes:
            yield "it names no version of CLowl", (key,)
    for column, before, paths in _IDS:
        value = getattr(message, column)
        if value is not None:
            yield f"{before}{value}", next((path for path in paths if _has(data, path)), None)
    if piece.profile == "coordination" and message.status is not None:
        meaning = STATES.get(message.status)
        yield f"state {message.status}" + (f" ({meaning})" if meaning else ""), ("state",)
    yield from _say_in_full(message, piece)
    yield from _say_time(message, data)
    yield from _say_spelling(message, data)
    for key, value in attributes.items():
        if key in _SAID or (key == "ctx" and is_text(value)) or (key == "ts" and value is not None):
            continue
        if key == "det" and value is not False:
            if value is not True:
                yield f"det is {say_value(value)}", ("det",)
            continue
        words = "it is marked as not deterministic (det false)" if key == "det" else f"{key} is {say_value(value)}"
        yield words, tuple(key.split("."))
    for path, value in find_extra(data, piece.profile or "0.2"):
        yield f"{'.'.join(say_key(str(step)) for step in path)} is {say_value(value)}", path
    for written, values in attributes.get("repeated", {}).items():
        earlier = ", then ".join(say_value(value) for value in values)
        yield f"{written} stood before as {earlier}", ()
    if message.native_act in _ANSWERS and message.parent_id is None:
        yield "which message it answers is not said", None
    if message.native_act == "ERR" and message.topic == "error" and message.task_id is None:
        yield "which task failed is not said", None
    if "comment" in attributes:
        yield f"a comment beside it says {say_value(attributes['comment'])}", None


def _say_in_full(message: Message, piece: Piece) -> Iterator[Words]:
    """The hashes and texts that the sentence tells by their beginnings."""
    path = PLACES[piece.profile or "0.2"].context
    for reference in message.references:
        if reference.hash is not None and is_long_hash(reference.hash):
            own = (*path, "hash")
            yield f"the whole SHA-256 is {reference.hash}", own if _has(piece.data, own) else path
        if reference.inline is not None and is_long_text(reference.inline):
            yield f"the whole text given as context is {say_value(reference.inline)}", (*path, "inline")


def _say_bare(value: Any) -> str:
    return value if is_text(value) and value else say_value(value)


def _has(data: Any, path: Path) -> bool:
    for step in path:
        if not isinstance(data, Mapping) or step not in data:
            return False
        data = data[step]
    return True


def _say_time(message: Message, data: Mapping[str, Any]) -> Iterator[Words]:
    ts = data.get("ts")
    if ts is None:
        return
    if type(ts) is int and message.sent_at is not None:
        yield f"sent {say_instant(_EPOCH + timedelta(seconds=ts))}", ("ts",)
    else:
        yield f"its time is given as {say_value(ts)}", ("ts",)


def _say_spelling(message: Message, data: Mapping[str, Any]) -> Iterator[Words]:
    holder: Mapping[str, Any] = data
    path: Path = ("p",)
    if isinstance(data.get("semantic"), dict) and "p" not in data:
        holder, path = data["semantic"], ("semantic", "p")
    act = holder.get("p")
    if is_text(act) and message.native_act is not None and act != message.native_act:
        yield f"the act is written {say_value(act)}", path


def say_gloss(piece: Piece) -> list[Words]:
    """Every key with its value in wire order, codes with what they mean."""
    if piece.kind != "object":
        return []
    profile = piece.profile or "0.2"
    told: list[Words] = []
    for path, code, value in _walk(piece.data):
        if path[0] == "auth" and value is not None and is_secret(path, profile):
            shown = MASK
        else:
            shown = value if type(value) is str and value and len(path) == 1 else say_value(value)
            meaning = explain(code, value) if path[-1] in _CODED else None
            if meaning:
                shown += f" ({meaning})"
        told.append((f" · {code} {shown}" if told else f"{code} {shown}", path))
    return told


_OPENED = frozenset({"body", "ctx", "trace", "routing", "auth", "semantic"})
_DETAILS = frozenset({"body.d", "data", "semantic.data"})
# Keys whose values are codes or times, and so have a meaning.
_CODED = frozenset({"p", "ts", "to", "code", "delegation_mode", "state"})


def _walk(data: Mapping[str, Any], base: Path = (), before: str = "") -> Iterator[tuple[Path, str, Any]]:
    for key, value in data.items():
        path, code = (*base, key), before + key
        if value and isinstance(value, dict) and (code in _DETAILS or (not base and key in _OPENED)):
            yield from _walk(value, path, f"{code}.")
        else:
            yield path, code, value
