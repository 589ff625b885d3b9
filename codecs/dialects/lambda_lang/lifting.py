"""Copies of what a body says in the protocol's own keys: task, status, priority, timeout, progress; tables."""

from __future__ import annotations

import re
from typing import Any

from .._record import Moment, Note, Priority
from .blocks import Node, parse_block
from .notes import REPEATED_KEY
from .statements import Part

# A record that repeats a fault a thousand times carries its note this often.
MOST_NOTES = 50
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
            if item.key in seen and len(notes) < MOST_NOTES:
                notes.append(REPEATED_KEY.note(f"the key {item.key!r} is given again", (0, *item.key_at)))
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
