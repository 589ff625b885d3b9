"""Expressions: words, quoted texts, texts of counted bytes, and lists of them, read with a stack and never deeper; and
the values of parameters: texts, names, times, and agents with where they can be reached.

Every regular expression here is possessive: none can backtrack, so a scan is linear in the text. White space is what
SC00070I says: every character up to the space.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from .._record import Moment, Note, NoteKind
from .._time import write_instant
from .tables import (
    BARE_AGENT,
    BARE_CONTENT,
    FIPA,
    KQML,
    LOCAL_TIME,
    MAX_DEPTH,
    NO_AGENT,
    TIME,
    TOO_SHORT,
    UNCLOSED,
    UNCLOSED_TEXT,
    Shape,
)

SPACE = r"[\x00-\x20]"
SPACES = "".join(map(chr, range(0x21)))

# A bracket, a quote, the count of a text of counted bytes, the name of a parameter, or a word.
TOKEN = re.compile(
    rf'{SPACE}*+(?:(\()|(\))|(")|#([0-9]{{1,9}}+)"|(:[^\x00-\x20()"]*+)|([^\x00-\x20()":][^\x00-\x20()]*+))'
)

# What stands within quotes: in FIPA a backslash escapes the quote and nothing else, in KQML any character.
INSIDE = {
    FIPA: re.compile(r'(?>(?:[^"\\]++|\\"?)*)'),
    KQML: re.compile(r'(?>(?:[^"\\]++|\\.)*)', re.DOTALL),
}
_ESCAPED = {FIPA: re.compile(r'\\(")'), KQML: re.compile(r"\\(.)", re.DOTALL)}


class Node(NamedTuple):
    """One expression: text[start:end] is how it is written, `value` the text that it stands for.

    The value of a list is its characters. A list that is too deep, `deep`, has no items.
    """

    kind: Literal["word", "key", "text", "bytes", "list", "deep"]
    start: int
    end: int
    value: str
    items: tuple[Node, ...] = ()


class Fault(NamedTuple):
    """Where and why an expression does not end."""

    kind: NoteKind
    at: int


class Frame(NamedTuple):
    """The items of a list, the index after its bracket, and the fault that left it open."""

    items: tuple[Node, ...]
    end: int
    fault: Fault | None = None


def read_items(text: str, at: int, vocabulary: str, opened_at: int) -> Frame:
    """The expressions from `at` up to the bracket that closes the list around them, which opened at `opened_at`."""
    stack: list[tuple[int, list[Node]]] = [(opened_at, [])]
    skipped: list[int] = []
    while True:
        token = TOKEN.match(text, at)
        if token is None:
            return Frame(tuple(stack[0][1]), len(text), Fault(UNCLOSED, opened_at))
        at = token.end()
        found: Node | None = None
        if token[1]:
            if skipped or len(stack) > MAX_DEPTH:
                skipped.append(at - 1)
            else:
                stack.append((at - 1, []))
        elif token[2]:
            if skipped:
                start = skipped.pop()
                found = None if skipped else Node("deep", start, at, text[start:at])
            else:
                start, items = stack.pop()
                if not stack:
                    return Frame(tuple(items), at)
                found = Node("list", start, at, text[start:at], tuple(items))
        elif token[3] or token[4]:
            node = _read_quoted(text, at, vocabulary) if token[3] else _read_counted(text, token.start(4) - 1, at)
            if isinstance(node, Fault):
                return Frame(tuple(stack[0][1]), node.at, node)
            at, found = node.end, node
        else:
            kind: Literal["key", "word"] = "key" if token[5] else "word"
            found = Node(kind, token.start(token.lastindex or 0), at, token[token.lastindex or 0])
        if found is not None and not skipped:
            stack[-1][1].append(found)


def _read_quoted(text: str, at: int, vocabulary: str) -> Node | Fault:
    """The text whose quote opens before `at`."""
    inside = INSIDE[vocabulary].match(text, at)
    end = inside.end() if inside else at
    if text[end : end + 1] != '"':
        return Fault(UNCLOSED_TEXT, at - 1)
    return Node("text", at - 1, end + 1, _ESCAPED[vocabulary].sub(r"\1", text[at:end]))


def _read_counted(text: str, start: int, at: int) -> Node | Fault:
    """The text of so many bytes of UTF-8 as the number from `start` to `at` says."""
    size = int(text[start + 1 : at - 1])
    if size > 4 * (len(text) - at):
        return Fault(TOO_SHORT, start)
    held = text[at : at + size].encode("utf-8", "surrogatepass")[:size]
    try:
        value = held.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return Fault(TOO_SHORT, start)
    if len(held) < size:
        return Fault(TOO_SHORT, start)
    return Node("bytes", start, at + len(value), value)


def read_expression(text: str, vocabulary: str) -> Node | None:
    """The one expression that a text is from end to end, or None."""
    items, end, fault = read_items(f"{text})", 0, vocabulary, 0)
    is_one = fault is None and end == len(text) + 1 and len(items) == 1
    return items[0] if is_one and items[0].end - items[0].start == len(text) else None


class Agent(NamedTuple):
    """An agent as it is named: its addresses, and what else its identifier says, each as written with its name."""

    name: str
    start: int
    end: int
    addresses: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()


class Value(NamedTuple):
    """What a parameter says: the one of these that its shape asks for."""

    text: str = ""
    agents: tuple[Agent, ...] = ()
    moment: Moment | None = None


def read_value(shape: Shape, node: Node, vocabulary: str, label: str, notes: list[Note]) -> Value | None:
    """The value of a parameter, or None where it cannot be read, which is noted."""
    span = (0, node.start, node.end)
    if shape in ("agent", "agents"):
        return _read_agents(node, vocabulary, label, notes, is_one=shape == "agent")
    if shape == "time":
        return Value(text=node.value, moment=_read_time(node, notes))
    if label == "content" and vocabulary == FIPA and node.kind not in ("text", "bytes"):
        notes.append(BARE_CONTENT.note("the content stands without quotes", span))
    return Value(text=node.value)


def _read_agents(node: Node, vocabulary: str, label: str, notes: list[Note], *, is_one: bool) -> Value | None:
    """The agents that a name, an identifier, or a set of them stands for."""
    is_bare = False
    members: tuple[Node, ...] = (node,)
    if node.kind == "list" and not _is_identifier(node):
        has_head = bool(node.items) and node.items[0].value.lower() in ("set", "sequence")
        members = node.items[1:] if has_head else node.items
        is_bare = is_one or not has_head
    elif not is_one:
        is_bare = True
    found: list[Agent] = []
    for member in members:
        agent = _read_agent(member)
        span = (0, member.start, member.end)
        if agent is None or (is_one and found):
            notes.append(NO_AGENT.note(f"the {label} is written so that it names no agent", span))
            if is_one:
                return None
            continue
        found.append(agent)
        is_bare = is_bare or not _is_identifier(member)
    if not members:
        notes.append(NO_AGENT.note(f"the {label} is written so that it names no agent", (0, node.start, node.end)))
    if is_bare and found and vocabulary == FIPA:
        where = (0, node.start, node.end)
        notes.append(BARE_AGENT.note(f"the {label} is not written as {_FORMS[is_one]}", where))
    return Value(agents=tuple(found)) if found else None


_FORMS = {True: "an agent-identifier", False: "a set of agent-identifiers"}


def _is_identifier(node: Node) -> bool:
    return node.kind == "list" and bool(node.items) and node.items[0].value.lower() == "agent-identifier"


def _read_agent(node: Node) -> Agent | None:
    if node.kind in ("word", "text", "bytes"):
        return Agent(node.value, node.start, node.end) if node.value else None
    if not _is_identifier(node):
        return None
    name, addresses, rest = "", tuple[str, ...](), list[str]()
    place = (node.start, node.end)
    items = node.items
    for at, key in enumerate(items):
        value = items[at + 1] if at + 1 < len(items) else None
        if key.kind != "key" or value is None or value.kind == "key":
            continue
        said = key.value.lower()
        if said == ":name" and not name and value.kind != "list":
            name, place = value.value, (value.start, value.end)
        elif said == ":addresses" and not addresses and value.kind == "list":
            addresses = tuple(each.value for each in value.items[1:])
        else:
            start = key.start - node.start
            rest.append(node.value[start : value.end - node.start])
    return Agent(name, *place, addresses, tuple(rest)) if name else None


_TIME = re.compile(r"([+-]?)(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})([A-Za-z]?)\Z", re.ASCII)


def _read_time(node: Node, notes: list[Note]) -> Moment:
    """A time of SC00070I: absolute in UTC or in no zone, or `+` and how long from now."""
    raw, span = node.value, (0, node.start, node.end)
    found = _TIME.match(raw)
    sign, zone = (found[1], found[9]) if found else ("", "")
    moment = None
    if found and sign != "-":
        year, month, day, hour, minute, second, milli = map(int, found.groups()[1:8])
        if sign and not (year or month or zone):
            seconds = ((day * 24 + hour) * 60 + minute) * 60 + second + milli / 1000
            return Moment(raw=raw, kind="relative", seconds=int(seconds) if seconds == int(seconds) else seconds)
        if not sign and zone in ("", "Z", "z"):
            try:
                moment = datetime(year, month, day, hour, minute, second, milli * 1000, UTC)
            except ValueError:
                moment = None
    if moment is None:
        notes.append(TIME.note("the time for an answer cannot be read: it is kept as text", span))
        return Moment(raw=raw, kind="unread")
    if not zone:
        notes.append(LOCAL_TIME.note("the time for an answer names no zone: it is a local time of its sender", span))
        return Moment(raw=raw, kind="local")
    return Moment(raw=raw, kind="exact", instant=write_instant(moment))
