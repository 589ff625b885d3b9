"""Gathering: what some placed and told messages of a conversation come to, whatever stands around them. Pure."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from heapq import nsmallest
from typing import NamedTuple

from ..models import Message
from ..placing.nodes import StoredNode
from ..placing.several import count_bearers
from .counts import Spoken
from .digests import Moment, find_latest
from .tallies import ASKING, GREETING, MOST_GRAVE


class Named(NamedTuple):
    """A message that may name its conversation: its place and its id."""

    place: bytes
    id: uuid.UUID


@dataclass(frozen=True, slots=True)
class Gathered:
    """What messages that stand together in a timeline come to; empty of none.

    `dialects` and `agents` stand in the order in which they appear. `acts` and `severities` count messages. `gravest`
    are severities by places in hexadecimal. `asks` is the place of the first that asks for something. `asked` is the
    first that asks for something by name, `named` the first with a name that is no greeting. `missing` are the keys of
    the ids that are cited and that no message received bears.
    """

    first: bytes = b""
    last: bytes = b""
    count: int = 0
    dialects: Mapping[str, Spoken] = field(default_factory=dict)
    agents: Mapping[str, Spoken] = field(default_factory=dict)
    acts: Counter[str | None] = field(default_factory=Counter)
    severities: Counter[int] = field(default_factory=Counter)
    gravest: Mapping[str, int] = field(default_factory=dict)
    asks: bytes | None = None
    asked: Named | None = None
    named: Named | None = None
    missing: frozenset[bytes] = frozenset()
    latest: Moment | None = None
    first_at: datetime | None = None
    last_at: datetime | None = None


def gather_nodes(nodes: Sequence[StoredNode]) -> Gathered:
    """What these nodes come to, in the order of the timeline."""
    if not nodes:
        return Gathered()
    times = [node.at for node in nodes if node.at is not None]
    about = [node for node in nodes if node.has_topic and node.performative not in GREETING]
    grave = (node for node in nodes if node.severity >= Message.Severity.WARNING)
    gravest = nsmallest(MOST_GRAVE, grave, key=lambda each: (-each.severity, each.place))
    return Gathered(
        first=nodes[0].place,
        last=nodes[-1].place,
        count=len(nodes),
        dialects=_find_dialects(nodes),
        agents=_find_agents(nodes),
        acts=Counter([node.performative for node in nodes]),
        severities=Counter([node.severity for node in nodes]),
        gravest={node.place.hex(): node.severity for node in gravest},
        asks=next((node.place for node in nodes if node.performative in ASKING), None),
        asked=next((Named(node.place, node.id) for node in about if node.performative in ASKING), None),
        named=Named(about[0].place, about[0].id) if about else None,
        missing=frozenset(node.ghost for node in nodes if node.ghost and not count_bearers(node.why)),
        latest=find_latest(nodes),
        first_at=min(times, default=None),
        last_at=max(times, default=None),
    )


def _find_dialects(nodes: Sequence[StoredNode]) -> dict[str, Spoken]:
    firsts: dict[str, bytes] = {}
    for node in nodes:
        if node.dialect not in firsts:
            firsts[node.dialect] = node.place
    counts = Counter([node.dialect for node in nodes])
    return {name: Spoken(place, counts[name]) for name, place in firsts.items()}


def _find_agents(nodes: Sequence[StoredNode]) -> dict[str, Spoken]:
    """Who sends or receives one of them; within a message its sender comes first."""
    firsts: dict[str, bytes] = {}
    for node in nodes:
        sender, place = node.sender, node.place
        if sender and sender not in firsts:
            firsts[sender] = place
        for name in node.receivers:
            if name and name not in firsts:
                firsts[name] = place
    sent = Counter([node.sender for node in nodes])
    return {name: Spoken(place, sent[name]) for name, place in firsts.items()}
