"""What a message carries beside its sentence: ids, version, time, unknown keys; the gloss, code by code; and the line
that clowl 0.2.0 prints for it. A message is told when somebody listens: all of this is made on demand.

Most messages of a log are read, checked and stored before anyone looks at one, and the places of its words need a pass
over its text. So `tell` only ties a message to its piece of the record; what depends on nothing else is worked out when
it is first asked for, and kept.

The line is that of clowl 0.2.0 byte for byte, wherever that library neither invents nor fails. It invents a time where
`ts` is missing or zero, a mode where a delegation has none, and "authenticated" where a token is merely carried; it
joins the letters of a text it takes for a list. It fails on many wrong types. In those cases the line here has the same
form and says only what the wire says (spec: `CLowlMessage.to_human`, clowl 0.2.0).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import islice
from typing import Any, Final, Self

from .._english import join_words, quote, say_instant, say_name
from .._json import Path, write
from .._record import MASK, Message, Segment, Span
from .columns import find_extra
from .parts import Piece, is_secret, take_whole
from .reading import explain
from .schema import is_text
from .sentences import say_plain, tell
from .tables import ACTS, STATES
from .telling import PLACES, Words, is_long_hash, is_long_text, say_key, say_pair, say_value


class _NotToldError(Exception):
    """The reference would invent something here."""


# What the reference raises on values of a wrong type or out of range.
_FAILURES = (TypeError, ValueError, AttributeError, KeyError, OverflowError, OSError, _NotToldError)


def write_reference_line(message: Message, piece: Piece) -> str | None:
    """The reference's line for the object of a message; None for a part that is no object."""
    if piece.kind != "object":
        return None
    # The reference rounds a number that no float holds, or makes it infinite; here it keeps its digits.
    if piece.loaded is not None and piece.loaded.has_exact_numbers:
        return _write_honestly(message, piece)
    try:
        return _write(piece.data)
    except _FAILURES:
        return _write_honestly(message, piece)


def _write(data: Mapping[str, Any]) -> str:
    act, sender, receivers, _ = data["p"], data["from"], data["to"], data["cid"]
    body = data.get("body", {})
    topic, details = body.get("t", ""), body.get("d", {}) or {}
    instant = data.get("ts")
    if not instant or data.get("auth"):
        raise _NotToldError
    moment = datetime.fromtimestamp(instant, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    trace, parent = data.get("tid"), data.get("pid")
    to = "[" + ", ".join(receivers) + "]" if isinstance(receivers, list) else receivers
    shown = _NAMES.get(act, act)
    summary = _SUMMARIES.get(act, _summarise)(topic, details)
    context = _summarise_context(data["ctx"]) if data.get("ctx") else ""
    return (
        f"[{moment}] "
        + (f"[{trace}] " if trace else "")
        + f"{sender} → {to}: {shown} {summary}{context}"
        + (" [deterministic]" if data.get("det", False) else "")
        + (f" (re: {parent[:8]}…)" if parent else "")
    )


_NAMES = {code: act.name for code, act in ACTS.items()}


def _summarise(topic: Any, details: Any) -> Any:
    return f"{topic} — {json.dumps(details)}" if details else topic


def _summarise_failure(topic: Any, details: Any) -> str:
    tail = " — retryable" if details.get("retry") else ""
    return f"[{details.get('code', '?')}] {details.get('msg', 'unknown error')}{tail}"


def _summarise_capabilities(topic: Any, details: Any) -> str:
    supports = details.get("supports", [])
    if isinstance(supports, str) and len(supports) > 1:
        raise _NotToldError
    return f"CLowl v{details.get('clowl', '?')} | supports: {', '.join(supports)}"


def _summarise_delegation(topic: Any, details: Any) -> str:
    rest = {key: value for key, value in details.items() if key != "delegation_mode"}
    if "delegation_mode" not in details:
        raise _NotToldError
    return f"{topic} [{details['delegation_mode']}]" + (f" — {json.dumps(rest)}" if rest else "")


def _summarise_progress(topic: Any, details: Any) -> str:
    percent, remark = details.get("pct"), details.get("note", "")
    return f"{topic} — {remark}" if percent is None else f"{topic} — {percent}% {remark}".strip(" —")


def _summarise_acknowledgement(topic: Any, details: Any) -> str:
    eta = details.get("eta")
    return f"Acknowledged {topic}" + (f" — ETA {eta}" if eta else "")


_SUMMARIES: dict[Any, Callable[[Any, Any], Any]] = {
    "ERR": _summarise_failure,
    "CAPS": _summarise_capabilities,
    "DLGT": _summarise_delegation,
    "PROG": _summarise_progress,
    "ACK": _summarise_acknowledgement,
}


def _summarise_context(context: Any) -> str:
    ref, digest = context.get("ref"), context.get("hash")
    if not ref:
        return ""
    return f" | ctx: {ref}" + (f" (sha256: {digest[:12]}…)" if digest else "")


def _write_honestly(message: Message, piece: Piece) -> str:
    """The same form, from the columns: what is absent is said to be absent, what is odd is shown as it is."""
    if message.sent_at is not None and message.sent_at_raw is not None and "ts" in piece.data:
        moment = message.sent_at.replace("T", " ").replace("Z", " UTC")
    elif "ts" in piece.data:
        moment = f"ts {write(piece.data['ts'])}"
    else:
        moment = "no time"
    receivers = ", ".join(message.receivers)
    to = "*" if message.broadcast and not receivers else f"[{receivers}]" if len(message.receivers) > 1 else receivers
    act = message.native_act or "?"
    references = "".join(_cite(reference.ref, reference.hash) for reference in message.references)
    return (
        f"[{moment}] "
        + (f"[{message.trace_id}] " if message.trace_id else "")
        + f"{message.sender or '?'} → {to or '?'}: {_NAMES.get(act, act)} {_detail(message, act)}{references}"
        + (" [deterministic]" if message.attributes.get("det") is True else "")
        + (f" (re: {message.parent_id[:8]}…)" if message.parent_id else "")
        + (" [carries a token, unverified]" if message.security.claims else "")
    )


def _cite(ref: str | None, digest: str | None) -> str:
    sealed = f"sha256: {digest[:12]}…" if digest else ""
    if ref:
        return f" | ctx: {ref}" + (f" ({sealed})" if sealed else "")
    return f" | ctx: {sealed}" if sealed else ""


def _detail(message: Message, act: str) -> str:
    topic, details = message.topic or "?", message.content
    if not isinstance(details, dict):
        return topic if details is None else f"{topic} — {_dump(details)}"
    if act == "DLGT" and "delegation_mode" not in details:
        return f"{topic} [no delegation mode]" + (f" — {_dump(details)}" if details else "")
    if act == "CAPS" and not isinstance(details.get("supports", []), list):
        return f"CLowl v{details.get('clowl', '?')} | supports: {_dump(details['supports'])}"
    try:
        return str(_SUMMARIES.get(act, _summarise)(topic, details))
    except _FAILURES:
        return f"{topic} — {_dump(details)}"


def _dump(value: Any) -> str:
    return write(value, ", ", ": ")


_BLANK = re.compile(r"<[A-Za-z][\w .|-]*>\Z")
_MAX_BLANK_LENGTH = 64
_VERSION = re.compile(r"[\w-]{1,16}(?:\.[\w-]{1,16}){0,4}\Z", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# (column, words before its value, where it may stand)
_IDS: tuple[tuple[str, str, tuple[Path, ...]], ...] = (
    ("message_id", "message ", (("mid",),)),
    ("conversation_id", "in conversation ", (("cid",),)),
    ("trace_id", "in trace ", (("tid",), ("trace", "trace_id"), ("trace", "tid"))),
    ("task_id", "for task ", (("task_id",),)),
    ("parent_task_id", "part of task ", (("trace", "parent_task_id"),)),
)
# (where a placeholder may stand, what it stands for)
_BLANKS: tuple[tuple[Path, str], ...] = (
    (("from",), "sender"),
    (("to",), "recipient"),
    (("p",), "act"),
    (("body", "t"), "task"),
    (("mid",), "message id"),
    (("cid",), "conversation"),
    (("ctx",), "context"),
    (("ctx", "ref"), "context"),
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
    yield from _say_blanks(data)
    if "profile" in attributes:
        yield f"in the form of {attributes['profile']}", ()
    for key in ("clowl", "cl"):
        if attributes.get(key) is not None:
            missing = _say_missing(message, data) if key == "cl" else ""
            yield f"CLowl version {_say_bare(attributes[key])}{missing}", (key,)
        elif key in attributes:
            yield "it names no version of CLowl", (key,)
    for column, before, paths in _IDS:
        value = getattr(message, column)
        if value is not None:
            yield f"{before}{say_name(value)}", next((path for path in paths if _has(data, path)), None)
    if piece.profile == "coordination" and message.status is not None:
        meaning = STATES.get(message.status)
        yield f"state {say_name(message.status)}" + (f" ({meaning})" if meaning else ""), ("state",)
    yield from _say_in_full(message, piece)
    yield from _say_time(message, data)
    yield from _say_spelling(message, data)
    for key, value in attributes.items():
        if key == "pid" and value is None:
            yield "it says that it answers no message (pid null)", ("pid",)
            continue
        if key in _SAID or (key == "ctx" and is_text(value)) or (key == "ts" and value is not None):
            continue
        if key == "det" and value is not False:
            if value is not True:
                yield say_pair("det", value), ("det",)
            continue
        is_marked = "it is marked as not deterministic (det false)"
        yield is_marked if key == "det" else say_pair(key, value), tuple(key.split("."))
    for path, value in find_extra(data, piece.profile or "0.2"):
        yield f"{'.'.join(say_key(str(step)) for step in path)} = {say_value(value)}", path
    for written, values in attributes.get("repeated", {}).items():
        earlier = ", then ".join(say_value(value) for value in values)
        yield f"{say_key(written)} stood before as {earlier}", ()
    content = message.content if message.native_act == "DONE" and isinstance(message.content, Mapping) else {}
    if any((key == "path" or key.endswith("_path")) and is_text(value) for key, value in content.items()):
        yield "the content at that path is not in the message", None
    if message.native_act in _ANSWERS and message.parent_id is None:
        yield "the answered message is not named", None
    if message.native_act == "ERR" and message.topic == "error" and message.task_id is None:
        yield "the failed task is not named", None
    if "comment" in attributes:
        yield f"a comment beside it says {say_value(attributes['comment'])}", None


def _say_blanks(data: Mapping[str, Any]) -> Iterator[Words]:
    """That several values are placeholders as a template has them: `<id>` twice is no agent that writes to itself."""
    found = [(name, value) for path, name in _BLANKS if _is_blank(value := _find(data, path))]
    if len(found) > 1:
        names, values = dict.fromkeys(name for name, _ in found), dict.fromkeys(value for _, value in found)
        shown = join_words([quote(value) for value in values])
        yield f"it looks like an unfilled template: {join_words(list(names))} are placeholders ({shown})", None


def _is_blank(value: Any) -> bool:
    return is_text(value) and len(value) < _MAX_BLANK_LENGTH and bool(_BLANK.match(value))


def _find(data: Any, path: Path) -> Any:
    for step in path:
        data = data.get(step) if isinstance(data, Mapping) else None
    return data


def _say_missing(message: Message, data: Mapping[str, Any]) -> str:
    """That a message of the first version bears no id or no time of its own, said once, with the version."""
    names = [name for name, is_there in (("message id", message.message_id), ("time", "ts" in data)) if not is_there]
    return f", with no {' and no '.join(names)}" if names else ""


def _say_in_full(message: Message, piece: Piece) -> Iterator[Words]:
    """The hashes and texts that the sentence tells by their beginnings."""
    path = PLACES[piece.profile or "0.2"].context
    for reference in message.references:
        if reference.hash is not None and is_long_hash(reference.hash):
            own = (*path, "hash")
            yield f"the whole SHA-256 is {say_name(reference.hash)}", own if _has(piece.data, own) else path
        if reference.inline is not None and is_long_text(reference.inline):
            yield f"the whole text given as context is {say_value(reference.inline)}", (*path, "inline")


def _say_bare(value: Any) -> str:
    """A version, id, name or code as it is where it reads as one word, else quoted."""
    if not is_text(value) or not value:
        return say_value(value)
    return value if _VERSION.match(value) else say_name(value)


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


def say_gloss(piece: Piece) -> Iterator[Words]:
    """Every key with its value in wire order, codes with what they mean."""
    if piece.kind != "object":
        return
    profile = piece.profile or "0.2"
    link = ""
    for path, code, value in _walk(piece.data):
        if path[0] == "auth" and value is not None and is_secret(path, profile):
            shown = MASK
        else:
            shown = _say_bare(value) if len(path) == 1 else say_value(value)
            if isinstance(value, bool):
                # The gloss has what the wire has.
                shown = write(value)
            meaning = explain(code, value) if path[-1] in _CODED else None
            if meaning:
                shown += f" ({meaning})"
        yield f"{link}{say_key(code)} {shown}", path
        link = " · "


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


# Of a telling in more pieces than this the rest is one: a segment weighs a hundred times as much as its words.
MAX_SEGMENTS: Final = 10_000
_PIECE, _WIRE, _DATA, _CANCEL = "_piece", "_wire", "_data", "_answers_cancel"


class ToldMessage(Message):
    """A message with its telling. It equals a plain `Message` with the same names."""

    _carried = frozenset({_PIECE, _CANCEL})

    @property
    def piece(self) -> Piece:
        """What it is told from."""
        piece: Piece = self.__dict__[_PIECE]
        return piece

    @property
    def answers_cancel(self) -> bool:
        """Whether it acknowledges a cancellation, as its conversation shows."""
        return _CANCEL in self.__dict__

    def answer_cancel(self) -> Self:
        """The message, told as one that acknowledges a cancellation."""
        told = self.replace()
        told.__dict__[_CANCEL] = True
        return told

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._order)

    __hash__ = Message.__hash__

    @property
    def sentence(self) -> str:
        """The English as one string."""
        if "english" in self.__dict__:
            return super().sentence
        return "".join([words for words, _ in tell(self, self.piece)])

    @cached_property  # type: ignore[misc]  # a name of the record, worked out when it is asked for
    def english(self) -> tuple[Segment, ...]:
        """The sentence in segments."""
        piece = self.piece
        return _place(tell(self, piece), piece, PLACES[piece.profile].details if piece.profile else ())

    @cached_property  # type: ignore[misc]  # a name of the record, worked out when it is asked for
    def also(self) -> tuple[Segment, ...]:
        """What the message carries beyond the sentence."""
        piece = self.piece
        return _place(say_beside(self, piece), piece, ())

    @cached_property  # type: ignore[misc]  # a name of the record, worked out when it is asked for
    def gloss(self) -> tuple[Segment, ...]:
        """Every code in wire order."""
        piece = self.piece
        return _place(say_gloss(piece), piece, ())

    @cached_property  # type: ignore[misc]  # a name of the record, worked out when it is asked for
    def reference_line(self) -> str | None:
        """The line that the reference library prints, or an honest one where it would invent or fail."""
        return write_reference_line(self, self.piece)

    def place_of_act(self) -> Span:
        """Where the act stands with its key; the whole of a message that names none."""
        piece = self.piece
        member = piece.node.locate(PLACES[piece.profile or "0.2"].act)
        return (0, piece.start, piece.end) if member is None else (0, member.key_start, member.end)


class PlainToldMessage(ToldMessage):
    """A message that is the whole of a plain text: its piece is made when something but the sentence is asked for."""

    def replace(self, **values: Any) -> Self:
        """The message with some names given anew, told by the teller: it may no longer be what its text says."""
        held = self.__dict__
        held[_PIECE] = self.piece
        return super().replace(**values)

    @property
    def sentence(self) -> str:
        """The English as one string."""
        held = self.__dict__
        said = say_plain(self, held[_DATA], held[_WIRE]) if _DATA in held and "english" not in held else None
        return super().sentence if said is None else said

    @property
    def piece(self) -> Piece:
        """What it is told from."""
        held = self.__dict__
        if _PIECE not in held:
            held[_PIECE] = take_whole(held[_WIRE], held[_DATA])
        return super().piece


def tell_plain(message: Message, wire: str, data: dict[str, Any]) -> PlainToldMessage:
    """The message tied to the text that it is the whole of."""
    return PlainToldMessage.trust({**message.__dict__, _WIRE: wire, _DATA: data})


def tell_message(message: Message, piece: Piece) -> ToldMessage:
    """The message tied to the piece of the record that it is told from."""
    return ToldMessage.trust({**message.__dict__, _PIECE: piece})


def _place(told: Iterable[Words], piece: Piece, details: Path) -> tuple[Segment, ...]:
    pieces = iter(told)
    segments = tuple(
        Segment.trust({"text": words, "spans": _find_spans(piece, path, details)})
        for words, path in islice(pieces, MAX_SEGMENTS)
    )
    rest = "".join([words for words, _ in pieces])
    return (*segments, Segment(text=rest, spans=_find_spans(piece, (), details))) if rest else segments


def _find_spans(piece: Piece, path: Path | None, details: Path) -> tuple[Span, ...]:
    if path is None:
        return ()
    if not path:
        return ((0, piece.start, piece.end),)
    member = piece.node.locate(path)
    if member is None:
        return ()
    # A detail is said with its key, as is all that is said beside the sentence; in the sentence a name, an id or an
    # act is said by its value alone.
    is_pair = len(path) > len(details) or path in (("det",), ("auth",))
    return ((0, member.key_start if is_pair else member.start, member.end),)
