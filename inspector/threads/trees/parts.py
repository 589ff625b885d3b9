"""Parts: what some messages of a trace add up to, and what parts add up to. Pure; parts are kept as JSON text.

The digest of a trace is over its messages as a set (`multiset`): of each its time, its part and the identity of its
record, how it is told, and in the same way what it answers in the trace, or the key of the id that it lacks. So it is
the same whatever the messages came in and in which order. Equal ones are numbered, so that all elements differ.
"""

from __future__ import annotations

import hashlib
import json
import struct
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from ..models import Conversation
from ..multiset import Multiset, read_multiset
from ..placing.instants import count_microseconds, read_instant
from ..placing.links import read_links
from ..placing.several import SEVERAL
from .hanging import Placed
from .outline import ADJACENCY, ASKING

LONGEST_SUBJECT: Final = 500
# The last act that decides says how a trace stands: an end, or work that was asked for or went on after it.
_STATES: Final = {
    "done": Conversation.State.DONE,
    "failure": Conversation.State.FAILED,
    "cancel": Conversation.State.CANCELLED,
}
_REOPENS: Final = ASKING | {"commit", "accept", "progress"}
_NAMED: Final = struct.Struct(">I32s")
_ELEMENT: Final = struct.Struct(">qI32s32s16s")
_NUMBER: Final = struct.Struct(">Q")


class Member(NamedTuple):
    """A message of a trace, in the order of its columns; `work` are its links where these say what work it is."""

    order_time: datetime
    order_source: bytes
    order_index: int
    identity: bytes
    part: int
    id: uuid.UUID
    trace_key: bytes
    channel_id: uuid.UUID
    conversation_id: uuid.UUID
    dialect: str
    performative: str | None
    sender: str
    receivers: Sequence[str]
    severity: int
    told_digest: bytes | None
    parent: uuid.UUID | None
    parent_key: bytes | None
    parent_basis: str
    parent_why: str
    subject: str
    work: str
    trace_basis: str

    @property
    def answers(self) -> uuid.UUID | None:
        """What it answers; what merely follows answers nothing."""
        return self.parent if self.parent_basis != ADJACENCY else None

    @property
    def placed(self) -> Placed:
        """What placing says of it."""
        return Placed(self.id, self.conversation_id, self.parent, self.parent_key, self.parent_basis)

    @property
    def cited(self) -> bytes:
        """The key of what it answers and is missing, or nothing."""
        return self.parent_key if self.parent is None and self.parent_key is not None and self.parent_basis else b""


@dataclass(slots=True)
class Sums:
    """What some messages of a trace add up to, in the order of the timeline.

    `state` is empty where none of them decides. `conversations` have the times of their first and last message in
    microseconds since 1970 and the gravest severity, `missing` is what is cited and was not received. `requests` are
    those that none of these messages answers, `answers` the requests of others that any of them does; `asked` and
    `named` the topics of the first request and the first message that have one.
    """

    count: int = 0
    agents: dict[str, None] = field(default_factory=dict)
    dialects: Counter[str] = field(default_factory=Counter)
    state: str = ""
    conversations: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    requests: set[str] = field(default_factory=set)
    answers: set[str] = field(default_factory=set)
    asked: str = ""
    named: str = ""
    elements: Multiset = field(default_factory=Multiset)
    # Whether one of them answers what is later.
    is_late: bool = False

    def add(self, later: Sums) -> None:
        """Add what comes after these messages."""
        self.count += later.count
        self.agents |= later.agents
        self.dialects.update(later.dialects)
        self.state = later.state or self.state
        for name, (first, last, severity) in later.conversations.items():
            held = self.conversations.get(name, (first, last, severity))
            self.conversations[name] = (min(held[0], first), max(held[1], last), max(held[2], severity))
        self.missing |= later.missing
        self.requests |= later.requests
        self.answers |= later.answers
        self.asked = self.asked or later.asked
        self.named = self.named or later.named
        total = self.elements.total + later.elements.total
        self.elements = Multiset(total, self.elements.count + later.elements.count)

    @property
    def span(self) -> tuple[int, int, int, int] | None:
        """How many messages, from when to when, and the gravest severity; None of none."""
        spans = self.conversations.values()
        if not spans:
            return None
        firsts, lasts, severities = zip(*spans, strict=True)
        return self.count, min(firsts), max(lasts), max(severities)

    def tell(self) -> dict[str, Any]:
        """What the row of a trace says, by its columns."""
        _, first, last, severity = self.span or (0, None, None, 0)
        return {
            "digest": self.elements.add(()).seal(),
            "state": self.state or Conversation.State.OPEN,
            "subject": self.asked or self.named,
            "agents": list(self.agents),
            "dialects": [name for name, _ in self.dialects.most_common()],
            "message_count": self.count,
            "conversation_count": len(self.conversations),
            "missing_count": len(self.missing),
            "open_count": len(self.requests - self.answers),
            "severity": severity,
            "first_at": read_instant(first) if first is not None else None,
            "last_at": read_instant(last) if last is not None else None,
        }

    def write(self) -> str:
        """The sums as JSON text."""
        said = {name: getattr(self, name) for name in ("count", "dialects", "state", "conversations", "asked", "named")}
        said |= {name: sorted(getattr(self, name)) for name in ("missing", "requests", "answers")}
        said |= {"is_late": self.is_late, "agents": list(self.agents)}
        return json.dumps(said | {"elements": self.elements.write().hex()}, separators=(",", ":"))


def read_sums(text: str) -> Sums:
    """The sums that `Sums.write` wrote."""
    said = json.loads(text)
    return Sums(
        count=said["count"],
        agents=dict.fromkeys(said["agents"]),
        dialects=Counter(said["dialects"]),
        state=said["state"],
        conversations={name: tuple(span) for name, span in said["conversations"].items()},
        missing=set(said["missing"]),
        requests=set(said["requests"]),
        answers=set(said["answers"]),
        asked=said["asked"],
        is_late=said["is_late"],
        named=said["named"],
        elements=read_multiset(bytes.fromhex(said["elements"])),
    )


def sum_up(members: Iterable[Member], *, named: Mapping[uuid.UUID, bytes], asking: Collection[uuid.UUID]) -> Sums:
    """What messages of one trace add up to.

    Args:
        members: the messages, in the order of the timeline; none of their times is one of another part.
        named: what names each message of the trace that they answer (`name_content`).
        asking: those of these that ask for something.
    """
    sums, elements = Sums(), Counter[bytes]()
    for each in members:
        links = read_links(each.work) if each.work else None
        is_public = links is not None and links.work.is_public
        act = None if is_public else each.performative
        at, name = count_microseconds(each.order_time), each.conversation_id.hex
        sums.count += 1
        sums.agents |= dict.fromkeys(agent for agent in (each.sender, *each.receivers) if agent)
        sums.dialects[each.dialect] += 1
        if act in _REOPENS or (links is not None and links.is_retryable):
            sums.state = Conversation.State.OPEN
        elif each.performative in _STATES:
            sums.state = _STATES[each.performative]
        first, last, severity = sums.conversations.get(name, (at, at, 0))
        sums.conversations[name] = (min(first, at), max(last, at), max(severity, each.severity))
        if each.cited and SEVERAL not in each.parent_why:
            sums.missing.add((each.channel_id.bytes + each.cited).hex())
        if act in ASKING:
            sums.requests.add(each.id.hex)
        if each.answers is not None and each.answers in asking:
            sums.answers.add(each.answers.hex)
        if each.subject:
            sums.named = sums.named or each.subject
            sums.asked = sums.asked or (each.subject if each.performative in ASKING else "")
        answers = named.get(each.answers, b"") if each.answers is not None else b""
        elements[_ELEMENT.pack(at, each.part, each.identity, each.told_digest or b"", answers) + each.cited] += 1
    numbered = (
        said + _NUMBER.pack(number) if number else said for said, count in elements.items() for number in range(count)
    )
    sums.elements = sums.elements.add(numbered)
    own = sums.requests & sums.answers
    sums.requests, sums.answers = sums.requests - own, sums.answers - own
    return sums


def name_content(identity: bytes, part: int) -> bytes:
    """Sixteen bytes that name a message by what it is known by, whatever its id."""
    return hashlib.blake2b(_NAMED.pack(part, identity), digest_size=16).digest()
