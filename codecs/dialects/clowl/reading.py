"""A text read into a record: its parts become messages, each with its columns and notes, and a tree of fields: every
key and value with its place, its label and its meaning, secrets masked. It never raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from .._english import quote
from .._json import Digits, Node, Path, load, read_key, write_path
from .._record import (
    MASK,
    Envelope,
    Field,
    Identity,
    Layer,
    Message,
    Note,
    NoteKind,
    Reading,
    Span,
    WireReading,
    leaf,
    masked_leaf,
    tile,
)
from .._time import instant_of_seconds
from . import notes, tables
from .columns import fill, read_plain
from .parts import (
    RULES,
    VERSIONED,
    Piece,
    Profile,
    UnreadableError,
    divide,
    find_secrets,
    find_tokens,
    hide,
    hide_secrets,
    is_secret,
    sniff,
    take_whole,
)
from .schema import VERSION_KEY, Found, examine, is_text, say_field

# Below this depth a value is one leaf: a tree unfolded to the last level would hold its text at every level.
UNFOLDED = 12

_SYNTAX = frozenset(" \t\r\n{}[]:,")
_TEXTS = {
    "json": ("text", "JSON that is no message"),
    "prose": ("text", "text"),
    "broken": ("text", "up to where reading failed"),
    "comment": ("comment", "comment"),
    "fence": ("fence", "code fence"),
    "mark": ("mark", "byte order mark"),
}


def grow_tree(wire: str, pieces: list[Piece]) -> tuple[Field, ...]:
    """The fields of a record, tiled: the leaves cover the wire."""
    return tile(_grow(wire, pieces), wire, syntax=_SYNTAX)


def _grow(wire: str, pieces: list[Piece]) -> Iterator[Field]:
    for piece in pieces:
        if piece.kind == "object":
            yield _grow_object(piece)
        elif piece.kind in _TEXTS:
            yield from _grow_text(piece)


def _grow_text(piece: Piece) -> Iterator[Field]:
    at = piece.start
    hidden = sorted((*_find_tokens(piece), *((piece.start + a, piece.start + b) for a, b in find_secrets(piece.text))))
    for start, end in hidden:
        if start < at:
            continue
        yield from _cut(piece, at, start)
        yield masked_leaf("secret", "token", start, end)
        at = end
    yield from _cut(piece, at, piece.end)


def _cut(piece: Piece, start: int, end: int) -> Iterator[Field]:
    """The text between two secrets, in two where reading failed within it: what follows is unread."""
    name, label = _TEXTS[piece.kind]
    failed = end if piece.error is None else min(max(piece.error.offset, start), end)
    for kind, words, first, last in ((name, label, start, failed), ("unread", "not readable", failed, end)):
        if first < last:
            yield leaf(kind, words, piece.wire, first, last, value=piece.wire[first:last])


def _find_tokens(piece: Piece) -> Iterator[tuple[int, int]]:
    for token in piece.tokens:
        at = piece.wire.find(token, piece.start, piece.end)
        while at >= 0:
            yield at, at + len(token)
            at = piece.wire.find(token, at + len(token), piece.end)


def _grow_object(piece: Piece) -> Field:
    return Field(
        name="message",
        label="message",
        raw=_read_raw(piece, piece.start, piece.end, is_masked=False, is_leaf=False),
        span=(0, piece.start, piece.end),
        children=tuple(_grow_member(piece, (member.key,), member) for member in piece.node.members),
    )


def _grow_member(piece: Piece, path: Path, member: Node) -> Field:
    code = ".".join(str(step) for step in path)
    known = tables.FIELDS.get(code) or tables.FIELDS.get(code.removeprefix("semantic."))
    name = hide(str(path[-1]), piece.tokens)
    label, meaning = known or (name, None)
    if isinstance(member.key, int):
        label = f"item {member.key + 1}"
    start = member.key_start
    children: list[Field] = []
    if isinstance(member.key, str):
        children.append(_leaf(piece, "key", "key", member.key_start, member.key_end, member.key, None))
    if member.members and len(path) < UNFOLDED:
        children.extend(_grow_member(piece, (*path, inner.key), inner) for inner in member.members)
        value = None
    elif is_secret(path, piece.profile or "0.2") and piece.wire[member.start : member.end] != "null":
        children.append(masked_leaf("value", "token", member.start, member.end, meaning=meaning))
        value = MASK
    else:
        value = _read_value(piece, member)
        said = explain(code, value)
        meaning = said or meaning
        if member.end > member.start:
            children.append(_leaf(piece, "value", "value", member.start, member.end, value, said))
    is_masked = any(child.is_masked for child in children)
    return Field(
        name=name,
        label=label,
        raw=_read_raw(piece, start, member.end, is_masked=is_masked, is_leaf=not member.members),
        span=(0, start, member.end),
        value=MASK if is_masked else value,
        meaning=meaning,
        children=tuple(children),
        is_masked=is_masked,
    )


def _read_raw(piece: Piece, start: int, end: int, *, is_masked: bool, is_leaf: bool) -> str:
    """The characters of a field; none for what encloses a secret, whose parts show what may be shown."""
    if is_masked:
        return MASK
    return "" if not is_leaf and (piece.tokens or "auth" in piece.data) else piece.wire[start:end]


def _leaf(piece: Piece, name: str, label: str, start: int, end: int, value: Any, meaning: str | None) -> Field:
    if isinstance(value, str) and any(token in value for token in piece.tokens):
        return masked_leaf(name, label, start, end, meaning=meaning)
    return leaf(name, label, piece.wire, start, end, value=value, meaning=meaning)


def _read_value(piece: Piece, node: Node) -> Any:
    raw = piece.wire[node.start : node.end]
    if node.kind == '"':
        return read_key(raw)
    return load(raw, 0, RULES, shallow=True).data if node.kind == "v" else raw


def explain(code: str, value: Any) -> str | None:
    """What the value of a field means in English, where it is a code: an act, error, mode, state or time."""
    code = code.removeprefix("semantic.").replace("body.d.", "data.")
    if not is_text(value):
        return instant_of_seconds(value) if code == "ts" and type(value) is int else None
    if code == "p":
        act = tables.ACTS.get(value.upper())
        return act.meaning if act else None
    if code == "data.code":
        row = tables.ERROR_CODES.get(value)
        return f"{row.name}: {row.meaning}" if row else tables.name_error(value)
    if code == "data.delegation_mode" and value in tables.MODES:
        return tables.MODES[value].meaning
    if code == "state":
        return tables.STATES.get(value)
    return "everyone" if code in ("to", "routing.to") and value == "*" else None


MAX_NOTES = 64
VOCABULARIES: dict[Profile, str] = {
    "0.1": "CLowl v0.1",
    "0.2": "CLowl v0.2",
    "semantic": "CLowl-S v0.3",
    "coordination": "CLowl coordination v0.3",
}
# An escape of U+0000, or of half a character; most of the latter are whole pairs and turn out to be nothing odd.
_ODD_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


def read(wire: str, envelope: Envelope | None = None) -> Reading:
    """Read a text as CLowl (spec-v0.1, spec-v0.2 and the v0.3 drafts). Never raises for any text."""
    found = read_plain(wire)
    if found is None:
        return _read_parts(wire, divide(wire))
    data, columns = found
    return PlainReading.of(wire, (Message.trust(columns),), data)


class PlainReading(WireReading):
    """The reading of a plain v0.2 object and nothing else; `parsed` is the object."""

    dialect = "clowl"
    version = "0.2"
    vocabulary = VOCABULARIES["0.2"]
    candidates = (VERSIONED,)

    @staticmethod
    def grow(wire: str, /) -> tuple[Field, ...]:
        """The fields of the object, which is read again: hardly any tree is asked for."""
        found = read_plain(wire)
        return grow_tree(wire, [] if found is None else [take_whole(wire, found[0])])


def identify(wire: str) -> Identity:
    """The conversation, id and time of the first message in a text, where it carries them. Never raises."""
    found = read_plain(wire)
    if found is None:
        message = read(wire).messages[0]
        return Identity(conversation=message.conversation_id, id=message.message_id, time=message.sent_at)
    _, columns = found
    return Identity(conversation=columns["conversation_id"], id=columns["message_id"], time=columns["sent_at"])


def _read_parts(wire: str, pieces: list[Piece]) -> Reading:
    objects = [piece for piece in pieces if piece.kind == "object"]
    if not objects:
        return _read_malformed(wire, pieces)
    _attach_comments(pieces)
    told = [piece for piece in pieces if piece.kind in ("object", "json", "prose", "broken")]
    for piece in objects:
        piece.tokens = find_tokens(piece.data)
    around = max((piece.tokens for piece in objects), key=len)
    for piece in pieces:
        if piece.kind != "object":
            piece.tokens = around
    messages = tuple(_read_piece(piece, part) for part, piece in enumerate(told, start=1))
    profile: Profile = objects[0].profile or "0.2"
    version = objects[0].data.get(VERSION_KEY.get(profile, ""))
    return Reading(
        dialect="clowl",
        layers=(Layer(id=0, kind="wire", text=wire),),
        tree=lambda: grow_tree(wire, pieces),
        version=version if is_text(version) else None,
        vocabulary=VOCABULARIES[profile],
        candidates=tuple(filter(None, (sniff(wire),))),
        messages=messages,
        notes=_cap(_note_pieces(pieces), (0, 0, len(wire))),
        parsed=tuple(told),
    )


def _attach_comments(pieces: list[Piece]) -> None:
    """A comment belongs to the object after it; one after the last object belongs to that."""
    waiting: list[Piece] = []
    last: Piece | None = None
    for piece in pieces:
        if piece.kind == "comment":
            waiting.append(piece)
        elif piece.kind == "object":
            piece.comments, waiting, last = tuple(waiting), [], piece
    if last is not None:
        last.comments = (*last.comments, *waiting)


def _read_piece(piece: Piece, part: int) -> Message:
    if piece.kind != "object" or piece.profile is None:
        return _read_text(piece, part)
    tokens = piece.tokens
    findings = list(islice(examine(piece.data, piece.profile), MAX_NOTES + 1))
    data = hide(piece.data, tokens)
    if "auth" in data:
        data = {**data, "auth": piece.data["auth"]}
    columns = fill(data, piece.profile)
    piece.data = data
    loaded = piece.loaded
    if loaded is not None and loaded.repeated:
        findings.extend(_find_repeats(piece, columns))
    if loaded is not None and loaded.has_exact_numbers:
        findings.extend(_find_exact_numbers(piece))
    if (loaded is not None and loaded.has_controls) or _ODD_ESCAPE.search(piece.wire, piece.start, piece.end):
        findings.extend(_find_characters(piece))
    if piece.comments:
        findings.append((notes.COMMENT, (), ""))
        columns["attributes"]["comment"] = "\n".join(hide(_words_of(comment), tokens) for comment in piece.comments)
    if part > 1:
        columns["part"] = part
    if findings:
        columns["notes"] = tuple(_write_notes(piece, findings))
    return Message(**columns)


def _words_of(comment: Piece) -> str:
    return comment.text.removeprefix("//").strip()


def _write_notes(piece: Piece, findings: list[Found]) -> Iterator[Note]:
    for kind, path, text in findings[:MAX_NOTES]:
        if kind is notes.COMMENT:
            first = piece.comments[0]
            yield kind.note(f"a comment stands beside it: {quote(hide(_words_of(first), piece.tokens))}", _span(first))
        else:
            yield kind.note(hide(text, piece.tokens), _place(piece, path))
    if len(findings) > MAX_NOTES:
        yield notes.MORE.note(f"there is more to note: {MAX_NOTES} notes are listed", _span(piece))


def _cap(found: Iterator[Note], span: Span) -> tuple[Note, ...]:
    listed = tuple(islice(found, MAX_NOTES + 1))
    if len(listed) <= MAX_NOTES:
        return listed
    return (*listed[:MAX_NOTES], notes.MORE.note(f"there is more to note: {MAX_NOTES} notes are listed", span))


def _place(piece: Piece, path: Path) -> Span:
    member = piece.node.locate(path) if path else None
    if member is None:
        return (0, piece.start, piece.end)
    return (0, member.key_start, member.end)


def _span(piece: Piece) -> Span:
    return (0, piece.start, piece.end)


def _find_repeats(piece: Piece, columns: dict[str, Any]) -> Iterator[Found]:
    """The repeated keys, and the values that their earlier places had; the record keeps those as attributes."""
    places: dict[Path, list[Node]] = {}
    for path, member in piece.node.walk():
        places.setdefault(path, []).append(member)
    earlier: dict[str, list[Any]] = {}
    for path, nodes in places.items():
        if len(nodes) == 1:
            continue
        written = write_path(path)
        told = sum(len(values) for values in earlier.values())
        kept = nodes[: max(0, min(len(nodes) - 1, MAX_NOTES - told))]
        earlier[written] = [_read_earlier(piece, path, node) for node in kept]
        yield notes.DUPLICATE_KEY, path, f"{say_field(path)} stands {len(nodes)} times; the last is read"
    columns["attributes"]["repeated"] = earlier


def _read_earlier(piece: Piece, path: Path, node: Node) -> Any:
    if is_secret(path, piece.profile or "0.2"):
        return MASK
    return hide(load(piece.wire, node.start, RULES, shallow=True).data, piece.tokens)


def _find_exact_numbers(piece: Piece) -> Iterator[Found]:
    for path, member in piece.node.walk():
        raw = piece.wire[member.start : member.end]
        if member.kind == "v" and isinstance(load(raw, 0, RULES, shallow=True).data, Digits):
            yield notes.EXACT_NUMBER, path, f"{say_field(path)} is kept as text, with all its digits"


def _find_characters(piece: Piece) -> Iterator[Found]:
    for path, member in piece.node.walk():
        literals = [piece.wire[member.start : member.end]] if member.kind == '"' else []
        if isinstance(member.key, str):
            literals.append(piece.wire[member.key_start : member.key_end])
        held = "".join(read_key(literal) for literal in literals)
        if "\0" in held:
            yield notes.NUL, path, f"{say_field(path)} holds the character U+0000"
        if any("\ud800" <= character <= "\udfff" for character in held):
            yield notes.SURROGATE, path, f"{say_field(path)} holds half a character"
        if any(character < " " for literal in literals for character in literal):
            yield notes.CONTROL_CHARACTER, path, f"{say_field(path)} holds a raw control character"


def _read_text(piece: Piece, part: int) -> Message:
    text = hide(hide_secrets(piece.text), piece.tokens)
    given: dict[str, Any] = {"part": part} if part > 1 else {}
    if piece.kind == "broken" and piece.error is not None:
        error = piece.error
        note = notes.PART_NOT_READ.note(error.reason, (0, error.offset, max(error.offset, piece.end)))
        return Message(performative="unknown", content=text, notes=(note,), **given)
    kind = notes.FOREIGN_OBJECT if piece.kind == "json" else notes.PROSE_AROUND
    return Message(performative="inform", content=text, notes=(kind.note(kind.about, _span(piece)),), **given)


def _note_pieces(pieces: list[Piece]) -> Iterator[Note]:
    opened: list[Piece] = []
    fence = None
    for index, piece in enumerate(pieces):
        before = pieces[index - 1] if index else None
        following = pieces[index + 1] if index + 1 < len(pieces) else None
        if piece.kind == "mark":
            yield notes.BYTE_ORDER_MARK.note("the text begins with a byte order mark", _span(piece))
        elif piece.kind == "fence" and fence is None:
            fence = piece
            yield notes.FENCED.note("the message stands in a code fence", _span(piece))
        elif piece.kind == "list" and piece.text == "[":
            opened.append(piece)
        elif piece.kind == "list":
            closed = piece.text.count("]")
            if closed > len(opened):
                yield notes.UNCLOSED_LIST.note("a list is closed that was not opened", _span(piece))
            del opened[max(0, len(opened) - closed) :]
        elif piece.kind == "comma" and not (
            opened and _is_item(before) and _is_item(following) and piece.text.count(",") == 1
        ):
            yield notes.STRAY_COMMA.note("a comma stands where no list needs it", _span(piece))
    for piece in opened:
        yield notes.UNCLOSED_LIST.note("the list is not closed", _span(piece))


def _is_item(piece: Piece | None) -> bool:
    return piece is not None and piece.kind in ("object", "json", "prose", "broken", "comment")


def _read_malformed(wire: str, pieces: list[Piece]) -> Reading:
    kind, start, end, reason = _find_failure(wire, pieces)
    note = kind.note(reason, (0, start, end))
    piece = Piece(wire, "broken", 0, len(wire))
    piece.error = UnreadableError(kind, start, reason)
    return Reading(
        dialect="clowl",
        layers=(Layer(id=0, kind="wire", text=wire),),
        tree=lambda: grow_tree(wire, [piece] if wire else []),
        candidates=tuple(filter(None, (sniff(wire),))),
        messages=(Message(performative=None, content=hide_secrets(wire), notes=(note,)),),
        parsed=(piece,),
    )


def _find_failure(wire: str, pieces: list[Piece]) -> tuple[NoteKind, int, int, str]:
    for piece in pieces:
        if piece.error is not None:
            return piece.error.kind, min(piece.error.offset, len(wire)), len(wire), piece.error.reason
    at = next((piece.start for piece in pieces if piece.kind != "mark"), len(wire))
    if at == len(wire):
        return notes.EMPTY, at, at, "there is nothing to read"
    return notes.NOT_CLOWL, at, len(wire), "none of the keys of a CLowl message are there"
