"""Values of parameters: texts, names, times, and agents with where they can be reached."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import NamedTuple

from .._record import Moment, Note
from .._time import write_instant
from .expressions import Node
from .notes import BARE_AGENT, BARE_CONTENT, LOCAL_TIME, NO_AGENT, TIME
from .tables import FIPA, Shape


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
