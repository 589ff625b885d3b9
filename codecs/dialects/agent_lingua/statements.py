"""A statement, response or error with its fields, as it stands on the wire.

Specification: 0.4.0 Syntax Structure, Response Format, Error Codes. Fields may come in any order; a field given
twice is kept, and the last one stands; a sigil that the grammar does not have is kept as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from .._english import quote
from .._record import Note, NoteKind
from . import notes as kinds
from .fields import Aim, Condition, Time, read_condition, read_target, read_time
from .frames import Head, is_mangled, open_answer, open_marked, open_unmarked, repair
from .payloads import Layers, Payload, find_json_end, read_payload
from .tables import ACTIONS, DOMAINS, ERRORS, MODIFIERS, SIGILS, STATUSES, SUBTYPES

MAX_STATEMENTS = 1000
MAX_FIELDS = 64
MAX_MODIFIERS = 16
_BLANK = " \t\r\n"
_JOINED = re.compile(r"[ \t\r\n]*(?=;;|\Z)")
_GAP = re.compile(r"[ \t\r\n]*")
_ORDER = {sigil: place for place, sigil in enumerate(SIGILS)}


class Part(NamedTuple):
    """A field of a statement: its role, its span with the sigil, and what was read in it."""

    role: str
    start: int
    end: int
    value: str
    aim: Aim | None = None
    time: Time | None = None
    condition: Condition | None = None
    payload: Payload | None = None


@dataclass(slots=True)
class Statement:
    """One part of a record.

    Attributes:
        kind: statement, response, error, text (after a 👽) or prose (beside one).
        start, end: its span on the wire.
        marker: the span of its 👽, if it has one.
        codes: the spans of its codes, as they open.
        domain, action: the codes in capitals, as written where the table has none.
        modifiers: (code, offset) of each digit.
        status, error, subtype: of a response or an error.
        parts: every field in the order of the wire.
        standing: by role, the field that stands.
        text: the span of human text.
    """

    kind: str
    start: int
    end: int
    marker: tuple[int, int] | None = None
    codes: tuple[tuple[int, int], ...] = ()
    domain: str = ""
    action: str = ""
    modifiers: tuple[tuple[str, int], ...] = ()
    status: str = ""
    error: str = ""
    subtype: str = ""
    parts: list[Part] = field(default_factory=list)
    standing: dict[str, Part] = field(default_factory=dict)
    text: tuple[int, int] | None = None
    notes: list[Note] = field(default_factory=list)
    is_mangled: bool = False

    @property
    def is_answer(self) -> bool:
        """Whether it is a response or an error."""
        return self.kind in ("response", "error")

    @property
    def payload(self) -> Payload | None:
        """The payload that stands."""
        part = self.standing.get("payload")
        return part.payload if part else None

    def note(self, kind: NoteKind, text: str, start: int, end: int) -> None:
        """Note something about a stretch of the wire."""
        self.notes.append(kind.note(text, (0, start, end)))


def read_statements(text: str, start: int, end: int, head: Head, layers: Layers) -> Iterator[Statement]:
    """The statements joined by `;;` in text[start:end], the first of which opens with `head`."""
    opened: Head | None = head
    while opened is not None:
        statement, stop = _read_statement(text, start, end, opened, layers)
        yield statement
        at = stop
        opened = None
        while text.startswith(";;", at) and at < end:
            start = _gap_end(text, at + 2, end)
            opened = _open(text, start, end) if start < end else None
            if opened is not None:
                break
            statement.note(kinds.EMPTY_STATEMENT, "nothing stands beside this ;;", at, at + 2)
            at = start


def _gap_end(text: str, at: int, end: int) -> int:
    found = _GAP.match(text, at, end)
    return found.end() if found else at


def _open(text: str, at: int, end: int) -> Head | None:
    head = open_marked(text, at, end)
    if head is not None:
        return head if head.kind not in ("text", "bare") else None
    return open_answer(text, at, end) or open_unmarked(text, at, end)


def _find_joint(text: str, at: int, end: int, *, is_raw: bool = False) -> int:
    """The next `;;` that joins statements, or the end: others belong to the field they stand in."""
    while True:
        at = text.find(";;", at, end)
        if at < 0:
            return end
        after = _gap_end(text, at + 2, end)
        if is_raw:
            head = open_marked(text, after, end)
            if head is not None and head.kind not in ("text", "bare"):
                return at
        elif after == end or text.startswith(";;", after) or _open(text, after, end) is not None:
            return at
        at += 2


def _read_statement(text: str, start: int, end: int, head: Head, layers: Layers) -> tuple[Statement, int]:
    statement = Statement(head.kind, start, end, marker=head.marker, codes=head.codes)
    statement.is_mangled = is_mangled(text, head.marker)
    if statement.is_mangled and head.marker:
        statement.note(kinds.MOJIBAKE, "a 👽 in the wrong character set, read as one", *head.marker)
    _read_codes(statement, text)
    joint = _find_joint(text, head.end, end)
    at = head.end
    while at < end:
        bar = text.find("|", at, joint)
        if bar < 0:
            break
        _refuse_remnant(statement, text, at, bar)
        if len(statement.parts) >= MAX_FIELDS:
            statement.note(kinds.LIMIT, f"more than {MAX_FIELDS} fields: the rest is not read", bar, joint)
            at = joint
            break
        at, joint = _read_field(statement, text, bar + 1, joint, end, layers)
    _refuse_remnant(statement, text, at, joint)
    statement.end = joint
    _check_fields(statement)
    return statement, joint


def _refuse_remnant(statement: Statement, text: str, start: int, end: int) -> None:
    if not text[start:end].isspace() and start < end:
        statement.parts.append(Part("unknown", start, end, text[start:end].strip()))
        statement.note(kinds.JOINT_INSIDE, "this stands where a field or a statement should", start, end)


def _read_field(statement: Statement, text: str, start: int, joint: int, end: int, layers: Layers) -> tuple[int, int]:
    """Read the field that begins at `start`; where it ends, and where the statement now does."""
    start = min(_gap_end(text, start, joint), joint)
    if text.startswith("$r:", start):
        joint = _find_joint(text, start, end, is_raw=True)
        stop = joint
    elif text.startswith(("$j:{", "$j:["), start) and (close := find_json_end(text, start + 3, end)):
        if close > joint:
            joint = _find_joint(text, close, end)
        stop = text.find("|", close, joint)
    else:
        stop = text.find("|", start, joint)
    stop = joint if stop < 0 else stop
    last = stop
    while last > start and text[last - 1] in _BLANK:
        last -= 1
    _take_field(statement, text, start, last, layers)
    return stop, joint


def _take_field(statement: Statement, text: str, start: int, end: int, layers: Layers) -> None:
    sigil, value = text[start : start + 1], text[start + 1 : end]
    if statement.is_mangled and sigil != "$":
        value = repair(value)
    role = SIGILS.get(sigil)
    if statement.kind == "error" and role != "payload" and " " in value:
        role = None  # the details of an error are free text, and free text may begin with a sigil
    if start == end or (not value and role != "payload" and role is not None):
        statement.parts.append(Part("empty", start, end, sigil))
        what = "nothing follows its sigil" if sigil else "nothing stands between two separators"
        statement.note(kinds.EMPTY_FIELD, what, max(start - 1, statement.start), end)
        return
    if ";;" in value and role != "payload":
        statement.note(kinds.JOINT_INSIDE, "a ;; that opens no statement stays in this field", start, end)
    part = Part(role or "unknown", start, end, value)
    if role == "target":
        aim = read_target(value, None if statement.is_answer else statement.domain, start + 1)
        statement.notes.extend(aim.notes)
        part = part._replace(aim=aim)
    elif role == "time":
        time = read_time(value, start + 1)
        statement.notes.extend(time.notes)
        part = part._replace(time=time)
    elif role == "condition":
        condition = read_condition(value, start + 1)
        statement.notes.extend(condition.notes)
        part = part._replace(condition=condition)
    elif role == "payload":
        payload = read_payload(value, start + 1, layers)
        if statement.is_mangled and payload.kind == "raw":
            payload.content = payload.text = repair(payload.content)
        statement.notes.extend(payload.notes)
        part = part._replace(payload=payload)
    elif role is None:
        part = _take_unknown(statement, text, start, end)
    if part.role in SIGILS.values() and part.role in statement.standing:
        text_of = f"the {part.role} is given again, and the documents do not define which counts: each is shown"
        statement.note(kinds.REPEATED_FIELD, text_of, start, end)
    statement.parts.append(part)
    statement.standing[part.role] = part


def _take_unknown(statement: Statement, text: str, start: int, end: int) -> Part:
    if statement.kind == "error":
        return Part("detail", start, end, text[start:end])
    shown = text[start : start + 1]
    statement.note(kinds.UNKNOWN_FIELD, f"the grammar has no field that begins with {quote(shown)}", start, end)
    return Part("unknown", start, end, text[start:end])


def _read_codes(statement: Statement, text: str) -> None:
    codes = [text[first:last] for first, last in statement.codes]
    if statement.kind == "response":
        statement.status = _capital(statement, codes[0], STATUSES, 0)
        if statement.status not in STATUSES:
            statement.note(kinds.UNKNOWN_STATUS, f"{quote(codes[0])} is no status", *statement.codes[0])
        elif statement.status == "A":
            statement.note(kinds.UNDOCUMENTED_STATUS, "^A is not in the status table", *statement.codes[0])
    elif statement.kind == "error":
        statement.error, statement.subtype = codes
        if statement.error not in ERRORS:
            statement.note(kinds.UNKNOWN_ERROR, f"{quote(codes[0])} is no error type", *statement.codes[0])
        if codes[1] and not (statement.error == "2" and codes[1] in SUBTYPES):
            statement.note(
                kinds.UNKNOWN_ERROR, f"{quote(codes[1])} is no subtype of error {codes[0]}", *statement.codes[1]
            )
    else:
        statement.domain = _capital(statement, codes[0], DOMAINS, 0)
        statement.action = _capital(statement, codes[1], ACTIONS, 1)
        if statement.domain not in DOMAINS:
            statement.note(kinds.UNKNOWN_DOMAIN, f"{quote(codes[0])} is no domain", *statement.codes[0])
        if statement.action not in ACTIONS:
            statement.note(kinds.UNKNOWN_ACTION, f"{quote(codes[1])} is no action", *statement.codes[1])
        _read_modifiers(statement, codes[2])
    if statement.is_answer and statement.marker is not None:
        statement.note(kinds.MARKED_RESPONSE, "responses and errors carry no 👽", *statement.marker)
    elif statement.kind == "statement" and statement.marker is None:
        statement.note(kinds.MARKER_LEFT_OUT, "the statement lacks its 👽", statement.start, statement.codes[1][1])


def _capital(statement: Statement, code: str, table: Mapping[str, object], index: int) -> str:
    capital = code.upper()
    if code == capital or capital not in table or not code.isascii():
        return code
    statement.note(kinds.LOWER_CASE, f"{code} is read as {capital}", *statement.codes[index])
    return capital


def _read_modifiers(statement: Statement, digits: str) -> None:
    first, end = statement.codes[2]
    if len(digits) > MAX_MODIFIERS:
        text = f"more than {MAX_MODIFIERS} modifiers: the rest is not read"
        statement.note(kinds.LIMIT, text, first + MAX_MODIFIERS, end)
    statement.modifiers = tuple((digit, first + place) for place, digit in enumerate(digits[:MAX_MODIFIERS]))
    for place, digit in enumerate(digits[:MAX_MODIFIERS]):
        if digit in digits[:place]:
            statement.note(
                kinds.REPEATED_MODIFIER, f"{MODIFIERS[digit]} is given again", first + place, first + place + 1
            )


def _check_fields(statement: Statement) -> None:
    """What the fields say together: their order, and modifiers against the payload's prefix."""
    places = [_ORDER[role] for role in (_sigil(part) for part in statement.parts) if role]
    if places != sorted(places):
        first, last = statement.parts[0].start, statement.parts[-1].end
        roles = [role for role in (_sigil(part) for part in statement.parts) if role]
        early, late = next(pair for pair in pairwise(roles) if _ORDER[pair[0]] > _ORDER[pair[1]])
        order = "target, identifier, time, condition, payload"
        text = f"the {SIGILS[early]} stands before the {SIGILS[late]}; the grammar's order is {order}"
        statement.note(kinds.FIELD_ORDER, text, first, last)
    payload = statement.payload
    kind = payload.kind if payload else "none"
    if payload and kind == "encrypted" and "identifier" not in statement.standing:
        text = "an encrypted message must carry its session as #id"
        statement.note(kinds.SESSION_MISSING, text, payload.start - 1, payload.end)
    if payload and kind == "zlib" and statement.kind == "statement" and "8" not in dict(statement.modifiers):
        text = "the prefix says compressed, and modifier 8 (compressed) is missing"
        statement.note(kinds.MODIFIER_MISSING, text, payload.start - 1, payload.end)
    for digit, at in statement.modifiers:
        if digit == "7" and kind != "encrypted":
            text = "modifier 7 says encrypted, and the payload is " + ("missing" if kind == "none" else kind)
            statement.note(kinds.MODIFIER_DISAGREES, text, at, at + 1)
        elif digit == "8" and kind not in ("zlib", "encrypted"):
            text = "modifier 8 says compressed, and the payload is " + ("missing" if kind == "none" else kind)
            statement.note(kinds.MODIFIER_DISAGREES, text, at, at + 1)


_SIGIL_OF = {role: sigil for sigil, role in SIGILS.items()}


def _sigil(part: Part) -> str:
    return _SIGIL_OF.get(part.role, "")
