"""Aggregates of traces: what some messages of a trace add up to, and what parts of it add up to. Pure.

The digest of a trace is over its messages as a set (`multiset`): of each its time, its name (part and identity), how it
is told, the name of what it answers in the trace, or the key of the id that it lacks. Equal ones are numbered.
"""

from __future__ import annotations

import hashlib
import struct
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from inspector.multiset import Multiset, read_multiset

from ..models import Conversation
from ..placing.citations import SEVERAL
from ..placing.links import read_links
from ..placing.places import count_microseconds, read_instant
from ..tasks.events import ASKS
from .lines import ADJACENCY, Placed

MAX_SUBJECT: Final = 500
# The last act that decides says how a trace stands: an end, or work that was asked for or went on after it.
_STATES: Final = {
    "done": Conversation.State.DONE,
    "failure": Conversation.State.FAILED,
    "cancel": Conversation.State.CANCELLED,
}
_REOPENS: Final = ASKS | {"commit", "accept", "progress"}
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
        return Placed(self.id, self.conversation_id, self.parent, self.parent_key, self.parent_basis)

    @property
    def cited(self) -> bytes:
        """The key of what it answers and is missing, or nothing."""
        return self.parent_key if self.parent is None and self.parent_key is not None and self.parent_basis else b""


class Sums(msgspec.Struct):
    """What some messages of a trace add up to, in the order of the timeline; it is kept as JSON text. `state` is empty
    where none of them decides. `conversations` have the times of their first and last message in microseconds since
    1970 and the gravest severity, `missing` is what is cited and was not received. `requests` are those that none of
    these messages answers, `answers` the requests of others that any of them does; `asked` and `named` the topics of
    the first request and the first message that have one. `is_late`: one answers what is later."""

    count: int = 0
    agents: list[str] = []
    dialects: dict[str, int] = {}
    state: str = ""
    conversations: dict[str, tuple[int, int, int]] = {}
    missing: set[str] = set()
    requests: set[str] = set()
    answers: set[str] = set()
    asked: str = ""
    named: str = ""
    is_late: bool = False
    # The sum of its set, in hexadecimal.
    elements: str = Multiset().write().hex()

    def add(self, later: Sums) -> None:
        """Add what comes after these messages."""
        self.count += later.count
        self.agents = list(dict.fromkeys([*self.agents, *later.agents]))
        for name, count in later.dialects.items():
            self.dialects[name] = self.dialects.get(name, 0) + count
        self.state = later.state or self.state
        for name, span in later.conversations.items():
            self.add_span(name, span)
        self.missing |= later.missing
        self.requests |= later.requests
        self.answers |= later.answers
        self.asked = self.asked or later.asked
        self.named = self.named or later.named
        self.elements = self.multiset.union(later.multiset).write().hex()

    def add_span(self, conversation: str, span: tuple[int, int, int]) -> None:
        """Messages of a conversation: from when to when, and their gravest severity."""
        held = self.conversations.get(conversation, span)
        self.conversations[conversation] = (min(held[0], span[0]), max(held[1], span[1]), max(held[2], span[2]))

    @property
    def multiset(self) -> Multiset:
        return read_multiset(bytes.fromhex(self.elements))

    def tell_span(self) -> dict[str, Any]:
        """From when to when, and the gravest severity, by the columns of rows."""
        spans = self.conversations.values()
        return {
            "first_at": read_instant(min(first for first, _, _ in spans)) if spans else None,
            "last_at": read_instant(max(last for _, last, _ in spans)) if spans else None,
            "severity": max((severity for _, _, severity in spans), default=0),
        }

    def tell(self) -> dict[str, Any]:
        """What the row of a trace says, by its columns."""
        return {
            "digest": self.multiset.seal(),
            "state": self.state or Conversation.State.OPEN,
            "subject": self.asked or self.named,
            "agents": self.agents,
            "dialects": sorted(self.dialects, key=lambda name: -self.dialects[name]),
            "message_count": self.count,
            "conversation_count": len(self.conversations),
            "missing_count": len(self.missing),
            "open_count": len(self.requests - self.answers),
            **self.tell_span(),
        }

    def write(self) -> str:
        """The sums as JSON text."""
        return msgspec.json.encode(self).decode()


def read_sums(text: str) -> Sums:
    """The sums that `Sums.write` wrote."""
    return msgspec.json.decode(text, type=Sums)


def sum_up(members: Iterable[Member], *, named: Mapping[uuid.UUID, bytes], asking: Collection[uuid.UUID]) -> Sums:
    """What messages of one trace, in the order of the timeline, add up to. `named` has the name of each message that
    they answer (`name_content`), `asking` those of these that ask."""
    sums, elements = Sums(), Counter[bytes]()
    agents: dict[str, None] = {}
    for each in members:
        links = read_links(each.work) if each.work else None
        act = None if links is not None and links.work.is_public else each.performative
        at = count_microseconds(each.order_time)
        sums.count += 1
        agents |= dict.fromkeys(agent for agent in (each.sender, *each.receivers) if agent)
        sums.dialects[each.dialect] = sums.dialects.get(each.dialect, 0) + 1
        if act in _REOPENS or (links is not None and links.is_retryable):
            sums.state = Conversation.State.OPEN
        elif each.performative in _STATES:
            sums.state = _STATES[each.performative]
        sums.add_span(each.conversation_id.hex, (at, at, each.severity))
        if each.cited and SEVERAL not in each.parent_why:
            sums.missing.add((each.channel_id.bytes + each.cited).hex())
        if act in ASKS:
            sums.requests.add(each.id.hex)
        if each.answers is not None and each.answers in asking:
            sums.answers.add(each.answers.hex)
        if each.subject:
            sums.named = sums.named or each.subject
            sums.asked = sums.asked or (each.subject if each.performative in ASKS else "")
        answers = named.get(each.answers, b"") if each.answers is not None else b""
        elements[_ELEMENT.pack(at, each.part, each.identity, each.told_digest or b"", answers) + each.cited] += 1
    numbered = (
        said + _NUMBER.pack(number) if number else said for said, count in elements.items() for number in range(count)
    )
    own = sums.requests & sums.answers
    sums.agents, sums.requests, sums.answers = list(agents), sums.requests - own, sums.answers - own
    sums.elements = Multiset().add(numbered).write().hex()
    return sums


def name_content(identity: bytes, part: int) -> bytes:
    """Sixteen bytes that name a message by what it is known by, whatever its id."""
    return hashlib.blake2b(_NAMED.pack(part, identity), digest_size=16).digest()
