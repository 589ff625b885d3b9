"""Summaries: what the messages of a block add up to, and what those of all blocks come to for their conversation.

A conversation's row is their sum in the order of the blocks, and nothing else. Messages stand by their places.

Its digest is over a set (`multiset`), one element for each message: how it is told, what it answers, and where it
stands, by its time and how many of that time come before it. So nothing in an element moves when another message comes
in before it. Messages are named by their records' identities and their parts: equal sets of records give equal digests.
"""

from __future__ import annotations

import base64
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import nsmallest
from itertools import chain
from struct import Struct
from typing import Any, Final, NamedTuple

import msgspec
from django.db.models import Exists, OuterRef
from django.utils import timezone

from inspector.intake.bulk import update_rows
from inspector.intake.text import make_storable

from ..models import Conversation, Message, Task
from ..multiset import WIDTH_BYTES, Multiset, read_multiset
from ..placing.citations import count_bearers
from ..placing.nodes import StoredNode
from ..placing.places import read_instant
from ..tasks.events import ASKS, FAILING
from ..tasks.states import STANDING, TaskState, derive_state

_NO_ACT: Final = ""
# What such a message is about is the exchange itself, or what another has named before.
GREETING: Final = ("acknowledge", "handshake", "control")
MAX_GRAVE = 3
# The first agents of a conversation are counted one by one.
MAX_SENDERS = 50


class Summary(msgspec.Struct, array_like=True, omit_defaults=True):
    """What a block adds up to; times in microseconds since 1970, places and keys in hexadecimal.

    `agents` and `dialects` stand in the order in which they appear, with how many messages each sent, or is in.
    `asks` is the place of the first that asks for something, `asked` and `named` the ids of the messages that may name
    the conversation: the first that asks for something by name, the first with a name that is no greeting. `latest`
    counts the messages of the last time.
    """

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
    # Rows of pairs, as `agents.aggregates` counts them.
    exchanges: list[list[Any]] = []
    elements: str = ""


_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Summary)


def write_summary(summary: Summary) -> str:
    """The summary as JSON text."""
    return _encoder.encode(summary).decode()


def read_summary(text: str) -> Summary:
    """The summary that `write_summary` wrote."""
    return _decoder.decode(text)


def sum_up(nodes: Sequence[StoredNode], before: Moment | None) -> tuple[Summary, Multiset]:
    """What these nodes add up to, placed and told, in the order of the timeline; and the set that is their digest.

    Args:
        before: the latest time before the block, and how many messages have it, where one of the block has it too.
    """
    instants = [node.instant for node in nodes]
    about = [node for node in nodes if node.has_topic and node.performative not in GREETING]
    grave = (node for node in nodes if node.severity >= Message.Severity.WARNING)
    asked = next((node for node in about if node.performative in ASKS), None)
    elements = Multiset().add(list_elements(nodes, before))
    summary = Summary(
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
        asked=asked.id.hex if asked is not None else None,
        named=about[0].id.hex if about else None,
        missing=sorted({node.ghost.hex() for node in nodes if node.ghost and not count_bearers(node.why)}),
    )
    return summary, elements


def with_elements(summary: Summary, elements: Multiset) -> Summary:
    """The summary with its set, as it is stored."""
    summary.elements = base64.b64encode(elements.write()).decode()
    return summary


def _count_agents(nodes: Sequence[StoredNode]) -> list[tuple[str, int]]:
    """Who sends or receives one of them, and how many each sent; within a message its sender comes first."""
    found: dict[str, int] = {}
    for node in nodes:
        sender = node.sender
        if sender:
            found[sender] = found.get(sender, 0) + 1
        for name in node.receivers:
            if name and name not in found:
                found[name] = 0
    return list(found.items())


# The columns of a conversation that its blocks add up to.
ADDED_UP: Final = (
    *("settled_digest", "agents", "dialects", "message_count", "missing_count", "severity", "tally"),
    *("first_at", "last_at"),
)


def add_up(
    summaries: Iterable[Summary], *, elements: Multiset | None = None, hidden: int
) -> tuple[uuid.UUID | None, tuple[Any, ...]]:
    """What the summaries of all blocks of a conversation come to: the message that names it, and `ADDED_UP`.

    Args:
        summaries: in the order of the blocks.
        elements: of the only block, where there is one.
        hidden: how many messages a withdrawal hides.
    """
    every = list(summaries)
    dialects, agents, acts = Counter[str](), Counter[str](), Counter[str]()
    severities = Counter[int]()
    for each in every:
        dialects.update(dict(each.dialects))
        agents.update(dict(each.agents))
        acts.update(each.acts)
        severities.update(each.severities)
    count = sum(each.count for each in every)
    if elements is None:
        total = sum(read_multiset(base64.b64decode(each.elements)).total for each in every if each.elements)
        elements = Multiset(total % (1 << (8 * WIDTH_BYTES)), count)
    grave = sorted(chain.from_iterable(each.gravest for each in every), key=lambda each: (-each[0], each[1]))
    first_at = min((each.first_at for each in every if each.first_at is not None), default=None)
    last_at = max((each.last_at for each in every if each.last_at is not None), default=None)
    subject = next((each.asked for each in every if each.asked), None)
    subject = subject or next((each.named for each in every if each.named), None)
    tally = Tally(
        asked=next((each.asks for each in every if each.asks), None),
        asked_count=sum(acts[act] for act in ASKS),
        failed_count=sum(acts[act] for act in FAILING),
        malformed_count=acts[_NO_ACT],
        severities=dict(sorted(severities.items())),
        senders={name: agents[name] for name in list(agents)[:MAX_SENDERS] if agents[name]},
        gravest=[place for _, place in grave[:MAX_GRAVE]],
        hidden=hidden,
    )
    return uuid.UUID(hex=subject) if subject else None, (
        elements.seal(),
        list(agents),
        # The commonest first, and of as many messages the one that was spoken first.
        sorted(dialects, key=lambda name: -dialects[name]),
        count,
        len(set(chain.from_iterable(each.missing for each in every))),
        max(severities, default=0),
        make_storable(write_tally(tally)),
        None if first_at is None else read_instant(first_at),
        None if last_at is None else read_instant(last_at),
    )


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of a conversation's messages.

    `asked` is the place, in hexadecimal, of the first that asks for something. `severities` counts messages by their
    gravest note (0 is none), `senders` by who sent them, for the agents that appear first. `gravest` are places.
    `hidden` counts those that a withdrawal hides; nothing else here counts them.
    """

    asked: str | None
    asked_count: int
    failed_count: int
    malformed_count: int
    severities: dict[int, int]
    senders: dict[str, int]
    gravest: list[str]
    hidden: int = 0


def write_tally(tally: Tally) -> str:
    """The tally as JSON text."""
    return msgspec.json.encode(tally).decode()


def read_tally(text: str) -> Tally:
    """The tally that `write_tally` wrote."""
    return msgspec.json.decode(text, type=Tally)


# Identity and part of a record.
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
    """The elements of these placed and told messages of a conversation, in the order of its timeline.

    Args:
        nodes: the messages; none of the others that come later has the time of one of them.
        before: of those that come before them, the latest time. None has another time of theirs.
    """
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


LONGEST_SUBJECT: Final = 500
_COLUMNS: Final = ("id", "settled_generation", "settled_at", "state", "subject", *ADDED_UP)


def write_rows(
    totals: Sequence[tuple[Conversation, tuple[uuid.UUID | None, tuple[Any, ...]], str]],
) -> None:
    """Write the rows of these conversations, as `add_up` gave them, with how each stands; where they are held."""
    about = [subject for _, (subject, _), _ in totals if subject]
    topics = dict(Message.objects.filter(pk__in=about).values_list("id", "topic")) if about else {}
    now = timezone.now()
    rows = [
        (each.pk, each.generation, now, state, topics.get(subject, "")[:LONGEST_SUBJECT] if subject else "", *row)
        for each, (subject, row), state in totals
    ]
    update_rows(model=Conversation, columns=_COLUMNS, rows=rows)


def derive_state_of(tasks: Iterable[TaskState]) -> str:
    """How a conversation stands, by all of its tasks that a message belongs to."""
    states: tuple[set[str], set[str]] = (set(), set())
    for task in tasks:
        is_part = task.within is not None and task.within.message_count > 0
        states[is_part].add(task.state or STANDING[0].value)
    return derive_state(*states)


def read_state_of(conversation: Conversation) -> str:
    """The same by the rows of its tasks."""
    whole = Task.objects.filter(conversation=conversation, key=OuterRef("within_key"))
    rows = Task.objects.filter(conversation=conversation).annotate(is_part=Exists(whole)).order_by()
    states: tuple[set[str], set[str]] = (set(), set())
    for is_part, state in rows.values_list("is_part", "state").distinct():
        states[is_part].add(state)
    return derive_state(*states)
