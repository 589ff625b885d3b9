"""What a statement says in the protocol's own keys, and what its settings do to the record."""

from __future__ import annotations

import re
from typing import Any

from .._english import quote
from .._record import Definition, Moment, Note, Priority, Reference, Security
from .._time import instant_of_seconds, instant_of_text
from .blocks import Node, parse_block
from .contexts import Setting
from .notes import BAD_CHUNK, BROKEN_HEADER, LONG_ID, NOT_FETCHED, NOT_VERIFIED, REPEATED_KEY
from .protocol import HANDSHAKES, TRUST
from .statements import Part

# A record that repeats a fault a thousand times carries its note this often.
MAX_NOTES = 50
_ANSWERED = re.compile(r"#id:([\w.\-]+)")
_TASK = re.compile(r"(?<![A-Za-z:])ta[ ]+id=([A-Za-z0-9_.\-]+)")
_STATUS = re.compile(r"(?<![A-Za-z:])st=([A-Za-z0-9_]+)")
_SECONDS = re.compile(r"\$?(\d{1,9}(?:\.\d{1,6})?)(s|m|min|h|d)?\Z")
_LITERAL = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*"|\\.', re.DOTALL)
_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_PERCENT = re.compile(r"\$?(\d{1,9}(?:\.\d{1,6})?)%[+\-^_]?\Z")


def hide_literal(body: str) -> str:
    """The body with blanks for what is quoted or escaped, which is no word, key or bracket of the sender's."""
    return _LITERAL.sub(lambda found: " " * len(found[0]), body) if '"' in body or "\\" in body else body


def find_answered(body: str) -> str | None:
    """The id of the message that a body names with `#id:`."""
    found = _ANSWERED.search(hide_literal(body)) if "#id:" in body else None
    return found[1] if found else None


def lift_keys(wire: str, part: Part, body: str, given: dict[str, Any], notes: list[Note]) -> None:
    """Copies of what a body says in the protocol's own keys: task, status, priority, timeout, progress."""
    body = hide_literal(body)
    if "id=" in body:
        tasks = _TASK.findall(body)
        if len(tasks) == 1 and body.count("id=") == 1:
            given["task_id"] = tasks[0]
    if "st=" in body and (found := _STATUS.search(body)):
        given["status"] = found[1]
    if answered := find_answered(body):
        given["parent_id"] = answered
    if not body.endswith("}") or "{" not in body:
        return
    block = parse_block(wire, part.body[0] + body.index("{"), part.body[1])
    note_repeated(block, notes)
    for item in block.items:
        if item.kind == "pair":
            _lift_key(item.key, item.items[0].text, given)


def _lift_key(key: str, raw: str, given: dict[str, Any]) -> None:
    percent = _PERCENT.match(raw)
    # A modifier behind it leaves the number whole.
    if key == "pr" and percent:
        number = float(percent[1])
        given["progress"] = int(number) if number.is_integer() else number
    elif key == "pr":
        given["priority"] = Priority(raw=raw, rank={"^^^": 1, "^": 1, "_": 3}.get(raw))
    elif key == "ti":
        found = _SECONDS.match(raw)
        seconds = float(found[1]) * _UNITS.get(found[2] or "s", 1) if found else None
        whole = int(seconds) if seconds is not None and seconds.is_integer() else seconds
        given["deadline"] = Moment(raw=raw, kind="timeout", seconds=whole)
    elif key == "st":
        given["status"] = raw


def note_repeated(block: Node, notes: list[Note]) -> None:
    seen: set[str] = set()
    for item in block.items:
        if item.kind == "pair":
            if item.key in seen and len(notes) < MAX_NOTES:
                notes.append(REPEATED_KEY.note(f"the key {quote(item.key)} is given again", (0, *item.key_at)))
            seen.add(item.key)


def split_offer(body: str) -> dict[str, str]:
    """What is offered, and what is wanted in return: the sides of the first `<` in no bracket or quote (v0.6 §6.3)."""
    depth = 0
    for index, character in enumerate(hide_literal(body)):
        depth += (character in "[({") - (character in "])}")
        if character == "<" and depth == 0:
            return {"offer": body[:index], "want": body[index + 1 :]}
    return {"offer": body} if body else {}


def read_table(body: str) -> dict[str, Any]:
    """`||h1|h2||r1|r2||` as its columns and rows; a line break between rows is allowed."""
    rows = [
        [cell.strip() for cell in row.split("|")]
        for line in body.split("\n")
        for row in line.strip().strip("|").split("||")
        if row.strip("| ")
    ]
    return {"columns": rows[0] if rows else [], "rows": rows[1:]}


# No release names a limit; a longer id is more likely a mistake than a name.
MAX_ID_LENGTH = 256


def apply_settings(
    wire: str,
    part: Part,
    settings: tuple[Setting, ...],
    given: dict[str, Any],
    attributes: dict[str, Any],
    notes: list[Note],
) -> None:
    """Put what a statement's settings establish into the names given, the attributes and the notes."""
    defines: list[Definition] = []
    claims: list[str] = []
    is_encrypted = part.form == "sealed"
    if given.get("native_act") != "data":
        blocks = [wire[item.start : item.end] for item in part.items if item.kind == "block"]
        if blocks:
            attributes["context"] = blocks
    else:
        settings = tuple(setting for setting in settings if setting.kind not in ("other", "members"))
    for setting in settings:
        span = (0, setting.start, setting.end)
        kind, value = setting.kind, setting.value
        if kind in _DEFINED:
            name = setting.name if kind in ("def", "group", "other", "ctx") else "active"
            defines.append(Definition(kind=_DEFINED[kind], name=name or "active", value=value))
        elif kind == "version" and isinstance(value, str):
            attributes["version"] = value
        elif kind == "broken-header":
            attributes.setdefault("broken_headers", []).append(value)
            text = f"{value} opens as a header and is none: it sets no version, no id and no domain"
            notes.append(BROKEN_HEADER.note(text, span))
        elif kind == "handshake":
            _read_handshake(part, setting, given)
        elif kind == "id" and isinstance(value, str):
            given["message_id"] = value
            if len(value) > MAX_ID_LENGTH:
                notes.append(LONG_ID.note(f"the message id has {len(value):,} characters: it is kept whole", span))
        elif kind == "time":
            given["sent_at_raw"] = setting.raw
            given["sent_at"] = instant_of_text(setting.raw) or _instant(setting.raw)
        elif kind == "chunk":
            message, number, count = value
            attributes["chunk"] = {"of": message, "number": number, "count": count}
            given["correlation_id"], given["object_id"] = message, f"#{number}"
            if not 1 <= number <= count:
                notes.append(BAD_CHUNK.note(f"chunk {number} of {count}", span))
        elif kind in ("vocabulary", "reference"):
            given["references"] = (*given.get("references", ()), Reference(ref=str(value)))
            notes.append(NOT_FETCHED.note(f"{quote(str(value))} is shown and never fetched", span))
        elif kind == "inline":
            attributes["domain"] = value
        elif kind == "enc":
            is_encrypted = True
            attributes["cipher"] = value
        elif kind in ("auth", "signature", "trust", "trust-level"):
            claims.append(_say_claim(setting))
            notes.append(NOT_VERIFIED.note(f"{quote(setting.raw)} is a claim: nothing here verifies it", span))
            if kind == "trust":
                attributes["trust"] = value
    if defines:
        given["defines"] = tuple(defines)
    if claims or is_encrypted:
        given["security"] = Security(encrypted=is_encrypted, claims=tuple(claims))
    if given.get("sent_at") is None:
        given.pop("sent_at", None)


_DEFINED = {
    "def": "def",
    "ns": "ns",
    "topic": "topic",
    "group": "group",
    "domain": "domain",
    "ctx": "context",
    "other": "setting",
}


def _say_claim(setting: Setting) -> str:
    if setting.kind == "trust":
        return TRUST[setting.value][0]
    if setting.kind == "signature":
        return f"signature {setting.value[0]}:{setting.value[1]}"
    if setting.kind == "auth":
        return f"authentication {setting.raw}"
    return f"trust {setting.raw}"


def _read_handshake(part: Part, setting: Setting, given: dict[str, Any]) -> None:
    """The statement after `#h` is the handshake's content, its type symbol included."""
    act = HANDSHAKES[setting.name]
    content = given.get("content")
    given |= {"performative": act.performative, "native_act": setting.name}
    given.pop("modifiers", None)
    if part.symbol and content is not None:
        given["content"] = f"{part.symbol}{content}"
    elif content is None:
        given.pop("content", None)


def _instant(raw: str) -> str | None:
    try:
        return instant_of_seconds(float(raw)) if len(raw) < 20 else None
    except ValueError:
        return None
