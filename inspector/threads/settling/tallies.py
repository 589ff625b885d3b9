"""A conversation's tally: what its page says first, counted once by settling and not on every visit.

Messages stand by their places, so that equal sets of records give equal tallies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Final

import msgspec

from ..models import Message
from ..placing.nodes import StoredNode

# The acts that ask somebody for something.
ASKING: Final = ("request", "query", "delegate", "propose", "subscribe")
# The acts that say it did not work.
FAILING: Final = ("failure", "not-understood")
# What such a message is about is the exchange itself, or what another has named before.
GREETING: Final = ("acknowledge", "handshake", "control")
MOST_GRAVE = 3
# The first agents of a conversation are counted one by one.
MOST_SENDERS = 50


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


def count_nodes(nodes: Sequence[StoredNode], agents: Sequence[str], *, hidden: int = 0) -> Tally:
    """The tally of the placed and told nodes of a conversation, whose agents are known in their order."""
    acts = Counter(node.performative for node in nodes)
    senders = Counter(node.sender for node in nodes)
    grave = (node for node in nodes if node.severity >= Message.Severity.WARNING)
    return Tally(
        asked=next((node.place.hex() for node in nodes if node.performative in ASKING), None),
        asked_count=sum(acts[act] for act in ASKING),
        failed_count=sum(acts[act] for act in FAILING),
        malformed_count=acts[None],
        severities=dict(sorted(Counter(node.severity for node in nodes).items())),
        senders={name: senders[name] for name in agents[:MOST_SENDERS] if senders[name]},
        gravest=[
            node.place.hex() for node in nsmallest(MOST_GRAVE, grave, key=lambda each: (-each.severity, each.position))
        ],
        hidden=hidden,
    )


def add_tallies(
    before: Tally, added: Tally, agents: Sequence[str], severities: Mapping[str, int], *, hidden: int = 0
) -> Tally:
    """The tally of a conversation and of messages that come after all of it.

    Args:
        before: of the conversation.
        added: of those messages.
        agents: those of both, in their order.
        severities: of the places that either says are gravest.
        hidden: as in a tally.
    """
    senders = {name: before.senders.get(name, 0) + added.senders.get(name, 0) for name in agents[:MOST_SENDERS]}
    counts = Counter(before.severities) + Counter(added.severities)
    gravest = sorted([*before.gravest, *added.gravest], key=lambda place: (-severities[place], place))
    return Tally(
        asked=before.asked or added.asked,
        asked_count=before.asked_count + added.asked_count,
        failed_count=before.failed_count + added.failed_count,
        malformed_count=before.malformed_count + added.malformed_count,
        severities=dict(sorted(counts.items())),
        senders={name: count for name, count in senders.items() if count},
        gravest=gravest[:MOST_GRAVE],
        hidden=hidden,
    )


def write_tally(tally: Tally) -> str:
    """The tally as JSON text."""
    return msgspec.json.encode(tally).decode()


def read_tally(text: str) -> Tally:
    """The tally that `write_tally` wrote."""
    return msgspec.json.decode(text, type=Tally)
