"""Merging: what the row of a trace says and what is carried over its end, with messages put in anywhere. Pure."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from operator import itemgetter
from typing import NamedTuple

from .carrying import MOST_AGENTS, Carried, is_much
from .elements import Place
from .strands import Strand
from .sums import Sum


class UnpatchableError(Exception):
    """It is not certain what a trace becomes by what has changed, or it takes too much to tell."""


class Merged(NamedTuple):
    """What is carried now, what the row says but for what the tree tells, and the message that its subject is of.

    `topic_of` is None where the subject is what it was.
    """

    carried: Carried
    said: Sum
    topic_of: uuid.UUID | None


def merge(carried: Carried, said: Sum, new: Strand) -> Merged:
    """What comes of these new messages, beside the elements, the answers that are awaited, and the last message.

    Raises:
        UnpatchableError: two messages stand at one place, or there is too much to be carried.
    """
    if carried.agents_at is None:
        raise UnpatchableError("there are too many agents")
    agents = _merge_firsts(dict(zip(said.agents, carried.agents_at, strict=True)), new.agents)
    dialects_at = _merge_firsts(carried.dialects_at, new.dialects_at)
    counts = Counter(carried.dialects) + new.dialects
    dialects = Counter({name: counts[name] for name in dialects_at})
    asked_at = _choose_first(carried.asked_at, new.asked_at)
    named_at = _choose_first(carried.named_at, new.named_at)
    is_decided = _choose_first(new.decided_at, carried.decided_at, is_last=True) == new.decided_at is not None
    found = replace(
        carried,
        agents_at=list(agents.values()) if len(agents) <= MOST_AGENTS else None,
        dialects=dict(dialects),
        dialects_at=dialects_at,
        conversations=carried.conversations | new.conversations,
        decided_at=new.decided_at if is_decided else carried.decided_at,
        asked_at=asked_at,
        named_at=named_at,
    )
    if is_much(found):
        raise UnpatchableError("there is too much to be carried")
    topic_of = None
    if asked_at is not None:
        topic_of = new.asked_of if asked_at == new.asked_at else None
    elif named_at is not None:
        topic_of = new.named_of if named_at == new.named_at else None
    summed = said._replace(
        state=new.state if is_decided else said.state,
        agents=list(agents),
        dialects=[name for name, _ in dialects.most_common()],
        message_count=said.message_count + len(new.knots),
        conversation_count=len(found.conversations),
    )
    return Merged(found, summed, topic_of)


def _merge_firsts(known: Mapping[str, Place | None], new: Mapping[str, Place | None]) -> dict[str, Place]:
    """The first places of names among both, in their order."""
    places = {name: place for name, place in known.items() if place is not None}
    if not set(new.values()).isdisjoint(places.values()):
        raise UnpatchableError("two messages stand at one place")
    for name, place in new.items():
        if place is not None and (name not in places or place < places[name]):
            # Names that one message brings stay in their order.
            places.pop(name, None)
            places[name] = place
    return dict(sorted(places.items(), key=itemgetter(1)))


def _choose_first(known: Place | None, new: Place | None, *, is_last: bool = False) -> Place | None:
    """The earlier of two places of different messages, or the later."""
    if known is None or new is None:
        return known or new
    if known == new:
        raise UnpatchableError("two messages stand at one place")
    return max(known, new) if is_last else min(known, new)
