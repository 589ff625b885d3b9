"""Summaries: what the messages of a block add up to, and what those of all blocks come to for their conversation; and
digests of sets, whose elements come in any order and whose parts are added up. Pure.

Of a set (`Multiset`) each element is expanded to 4,032 bits (SHAKE-128) and these are added up modulo 2^4032, which is
AdHash (Bellare and Micciancio 1997); the digest is SHA-256 of the sum and of how many elements there are. Two sets of
one digest are a collision of one of both hashes (2^128 steps), or a sum to nothing of different numbers that SHAKE
gives: no better ways are known to it than Wagner's generalized birthday (never less than 2^126) and the reduction of
lattices (far more). An element that is there twice counts twice, and to sums with large factors lattices lead sooner:
let each element say what tells it apart from all others, and its place, where the order matters, in terms that do not
move.

The digest of a conversation has one element for each message: how it is told, what it answers, and where it stands, by
its time and how many of that time come before it. So nothing in an element moves when another message comes in.
Messages are named by their records' identities and their parts: equal sets of records give equal digests.
"""

from __future__ import annotations

import hashlib
import struct
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from heapq import nsmallest
from itertools import chain
from struct import Struct
from typing import Any, Final, NamedTuple

import msgspec
from django.db.models import Exists, OuterRef
from django.utils import timezone

from inspector.database import make_storable, update_rows

from .keys import read_instant
from .models import Conversation, Message, Task
from .nodes import StoredNode, count_bearers
from .states import ASKS, FAILING, derive_state

# Three blocks of SHAKE-128, of which each costs as much as the last.
WIDTH_BYTES: Final = 3 * 168
_MASK: Final = (1 << 8 * WIDTH_BYTES) - 1
_COUNT: Final = struct.Struct("<Q")
SIZE_BYTES: Final = WIDTH_BYTES + _COUNT.size


@dataclass(frozen=True, slots=True)
class Multiset:
    """What is known of a set of elements: their sum, and how many they are."""

    total: int = 0
    count: int = 0

    def add(self, elements: Iterable[bytes]) -> Multiset:
        """This set and these elements beside it; about three microseconds for each."""
        shake, read = hashlib.shake_128, int.from_bytes
        total, count = self.total, self.count
        for element in elements:
            total += read(shake(element).digest(WIDTH_BYTES), "little")
            count += 1
        return Multiset(total & _MASK, count)

    def union(self, other: Multiset) -> Multiset:
        """The elements of both; those that are in both count twice."""
        return Multiset((self.total + other.total) & _MASK, self.count + other.count)

    def seal(self) -> bytes:
        """The digest of the set, 32 bytes: the same whatever it came from and in which order."""
        return hashlib.sha256(self.write()).digest()

    def write(self) -> bytes:
        """The set as `SIZE_BYTES` bytes, from which it can be gone on with."""
        return _COUNT.pack(self.count) + self.total.to_bytes(WIDTH_BYTES, "little")


def read_multiset(data: bytes | memoryview) -> Multiset:
    """The set that `Multiset.write` wrote; a ValueError where it is none."""
    if len(data) != SIZE_BYTES:
        raise ValueError(f"a set is {SIZE_BYTES} bytes, and these are {len(data)}")
    (count,) = _COUNT.unpack_from(data)
    return Multiset(int.from_bytes(data[_COUNT.size :], "little"), count)


_NO_ACT: Final = ""
# What such a message is about is the exchange itself, or what another has named before.
GREETING: Final = ("acknowledge", "handshake", "control")
MAX_GRAVE = 3
# The first agents of a conversation are counted one by one.
MAX_SENDERS = 50


class Summary(msgspec.Struct, array_like=True, omit_defaults=True):
    """What a block adds up to; times in microseconds since 1970, places and keys in hexadecimal. `agents` and
    `dialects` stand in the order in which they appear, with how many messages each sent, or is in. `asks` is the place
    of the first that asks for something, `asked` and `named` the topics that may name the conversation: of the first
    that asks for something by name, of the first with a name that is no greeting. `latest` counts the messages of the
    last time."""

    count: int = 0
    first_at: int | None = None
    last_at: int | None = None
    latest: int = 0
    dialects: list[tuple[str, int]] = []
    agents: list[tuple[str, int]] = []
    acts: dict[str, int] = {}
    severities: dict[int, int] = {}
    gravest: list[tuple[int, str]] = []
    asks: str | None = None
    asked: str | None = None
    named: str | None = None
    missing: list[str] = []
    # Rows of pairs, as `agents` counts them.
    exchanges: list[list[Any]] = []
    elements: bytes = b""
    is_sealed: bool = False


def read_summary(text: str) -> Summary:
    """The summary of its JSON text."""
    return msgspec.json.decode(text, type=Summary)


def sum_up(nodes: Sequence[StoredNode], before: Moment | None) -> Summary:
    """What these nodes add up to, placed and told, in the order of the timeline. `before` is the latest time before the
    block, and how many messages have it, where one of the block has it too."""
    instants = [node.instant for node in nodes]
    about = [node for node in nodes if node.subject and node.performative not in GREETING]
    grave = (node for node in nodes if node.severity >= Message.Severity.WARNING)
    return Summary(
        count=len(nodes),
        first_at=min(instants, default=None),
        last_at=max(instants, default=None),
        latest=instants.count(max(instants, default=0)),
        dialects=list(Counter([node.dialect for node in nodes]).items()),
        agents=_count_agents(nodes),
        acts=dict(Counter([node.performative or _NO_ACT for node in nodes])),
        severities=dict(Counter([node.severity for node in nodes])),
        gravest=[
            (each.severity, each.place.hex())
            for each in nsmallest(MAX_GRAVE, grave, key=lambda each: (-each.severity, each.place))
        ],
        asks=next((node.place.hex() for node in nodes if node.performative in ASKS), None),
        asked=next((node.subject for node in about if node.performative in ASKS), None),
        named=about[0].subject if about else None,
        missing=sorted({node.ghost.hex() for node in nodes if node.ghost and not count_bearers(node.why)}),
        elements=Multiset().add(list_elements(nodes, before)).write(),
        is_sealed=any(node.is_sealed for node in nodes),
    )


def _count_agents(nodes: Sequence[StoredNode]) -> list[tuple[str, int]]:
    """Who sends or receives one of them, and how many each sent; within a message its sender comes first."""
    found: dict[str, int] = {}
    for node in nodes:
        if node.sender:
            found[node.sender] = found.get(node.sender, 0) + 1
        for name in filter(None, node.receivers):
            found.setdefault(name, 0)
    return list(found.items())


ADDED_UP: Final = (
    *("settled_digest", "agents", "dialects", "message_count", "missing_count", "severity", "tally"),
    *("subject", "first_at", "last_at"),
)


def add_up(every: Sequence[Summary], *, hidden: int) -> tuple[Any, ...]:
    """What the summaries of all blocks of a conversation, in their order, come to, as `ADDED_UP`. `hidden` counts the
    messages that a withdrawal hides."""
    dialects, agents, acts = Counter[str](), Counter[str](), Counter[str]()
    severities = Counter[int]()
    for each in every:
        dialects.update(dict(each.dialects))
        agents.update(dict(each.agents))
        acts.update(each.acts)
        severities.update(each.severities)
    elements = reduce(Multiset.union, (read_multiset(each.elements) for each in every if each.elements), Multiset())
    grave = sorted(chain.from_iterable(each.gravest for each in every), key=lambda each: (-each[0], each[1]))
    first_at = min((each.first_at for each in every if each.first_at is not None), default=None)
    last_at = max((each.last_at for each in every if each.last_at is not None), default=None)
    subjects = chain((each.asked for each in every), (each.named for each in every))
    tally = Tally(
        asked=next((each.asks for each in every if each.asks), None),
        asked_count=sum(acts[act] for act in ASKS),
        failed_count=sum(acts[act] for act in FAILING),
        malformed_count=acts[_NO_ACT],
        severities=dict(sorted(severities.items())),
        senders={name: agents[name] for name in list(agents)[:MAX_SENDERS] if agents[name]},
        gravest=[place for _, place in grave[:MAX_GRAVE]],
        hidden=hidden,
        is_sealed=any(each.is_sealed for each in every),
    )
    added_up = {
        "settled_digest": elements.seal(),
        "agents": list(agents),
        # The commonest first, and of as many messages the one that was spoken first.
        "dialects": sorted(dialects, key=lambda name: -dialects[name]),
        "message_count": sum(each.count for each in every),
        "missing_count": len(set(chain.from_iterable(each.missing for each in every))),
        "severity": max(severities, default=0),
        "tally": make_storable(msgspec.json.encode(tally).decode()),
        "subject": next(filter(None, subjects), ""),
        "first_at": None if first_at is None else read_instant(first_at),
        "last_at": None if last_at is None else read_instant(last_at),
    }
    return tuple(added_up[name] for name in ADDED_UP)


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of a conversation's messages. `asked` is the place, in hexadecimal, of the first that asks for something.
    `severities` counts messages by their gravest note (0 is none), `senders` by who sent them, for the agents that
    appear first. `gravest` are places. `hidden` counts those that a withdrawal hides; nothing else here counts them.
    `is_sealed`: one of them is sealed, or that was not yet kept."""

    asked: str | None
    asked_count: int
    failed_count: int
    malformed_count: int
    severities: dict[int, int]
    senders: dict[str, int]
    gravest: list[str]
    hidden: int = 0
    is_sealed: bool = True


def read_tally(text: str) -> Tally:
    """The tally of its JSON text."""
    return msgspec.json.decode(text, type=Tally)


_NAME: Final = Struct(">32si")
# Microseconds since 1970, how many of that time come before it; its name; its run; whether its parent is in this
# conversation, and whether what it cites is missing; the bytes of what stands for a parent elsewhere, of what it cites
# and of how it is told.
_HEAD: Final = Struct(">qI32sii??BBB")


class Moment(NamedTuple):
    """A time in microseconds since 1970, and how many messages of a conversation have it."""

    instant: int
    messages: int


def list_elements(nodes: Iterable[StoredNode], before: Moment | None = None) -> Iterator[bytes]:
    """The elements of these placed and told messages of a conversation, in the order of its timeline. `before` is the
    latest time before them, where one of them has it too."""
    held: dict[int, int] = {} if before is None else {before.instant: before.messages}
    for node in nodes:
        instant, above, cited = node.instant, node.above, node.cited or b""
        same = held.get(instant, 0)
        held[instant] = same + 1
        elsewhere, told = node.parent_elsewhere, node.told_digest
        sizes = (len(elsewhere), len(cited), len(told))
        head = _HEAD.pack(
            instant, same, node.identity, node.part, node.run, above is not None, node.ghost is not None, *sizes
        )
        parent = b"" if above is None else _NAME.pack(above.identity, above.part)
        yield b"".join((head, parent, elsewhere, cited, told, _write_words(node.basis, node.why)))


@lru_cache(maxsize=4096)
def _write_words(basis: str, why: str) -> bytes:
    # Most messages are placed for one of a few reasons.
    return f"{basis}\0{why}".encode("utf-8", "surrogatepass")


_COLUMNS: Final = ("id", "settled_generation", "settled_at", "stood_at", "state", *ADDED_UP)


def write_rows(totals: Sequence[tuple[Conversation, tuple[Any, ...]]]) -> None:
    """Write the rows of these conversations, as `add_up` gave them and as their tasks stand; where they are held."""
    states, now = _read_states([each.pk for each, _ in totals]), timezone.now()
    rows = [
        (each.pk, each.generation, now, each.stood_at, derive_state(*states[each.pk]), *row) for each, row in totals
    ]
    update_rows(model=Conversation, columns=_COLUMNS, rows=rows)


def _read_states(conversation_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, tuple[set[str], set[str]]]:
    """How the tasks of these conversations stand, those that are part of no other and those that are."""
    whole = Task.objects.filter(conversation=OuterRef("conversation"), key=OuterRef("within_key"))
    rows = Task.objects.filter(conversation__in=conversation_ids).annotate(is_part=Exists(whole)).order_by()
    states: dict[uuid.UUID, tuple[set[str], set[str]]] = {pk: (set(), set()) for pk in conversation_ids}
    for pk, is_part, state in rows.values_list("conversation_id", "is_part", "state").distinct():
        states[pk][is_part].add(state)
    return states
