"""Reckoning: what the digest of a trace becomes by messages that came new to it or changed, without the others."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from django.db.models import Q

from ..models import MessageQuerySet
from ..multiset import Multiset
from ..placing.instants import count_microseconds, read_instant
from .elements import describe, name_content, number_element
from .merging import UnpatchableError
from .outline import ADJACENCY

# Of more than so many that stand at the same instants and are told alike, nothing is reckoned.
_MOST_TWINS: Final = 2000


class Member(NamedTuple):
    """What the digest has of a message of a trace: when it was, its part, how it is told, what it answers or lacks."""

    at: int
    part: int
    told: bytes
    parent: bytes | None
    cited: bytes


def load_members(rows: MessageQuerySet) -> dict[bytes, Member]:
    """These messages by their ids."""
    columns = ("id", "order_time", "part", "told_digest", "parent", "parent_key", "parent_basis")
    return {
        pk.bytes: Member(
            count_microseconds(at),
            part,
            bytes(told or b""),
            parent.bytes if parent is not None and basis != ADJACENCY else None,
            bytes(cited) if parent is None and cited is not None and basis else b"",
        )
        for pk, at, part, told, parent, cited, basis in rows.values_list(*columns)
    }


def select_ids(rows: MessageQuerySet, ids: Iterable[bytes]) -> MessageQuerySet:
    """Those of the messages that have these ids."""
    return rows.filter(pk__in=[uuid.UUID(bytes=name) for name in ids])


def reckon(
    elements: Multiset,
    rows: MessageQuerySet,
    *,
    was: Mapping[bytes, Member],
    now: Mapping[bytes, Member],
    others: Mapping[bytes, Member],
) -> Multiset:
    """What the digest is of after these messages have changed.

    Args:
        elements: what it was of.
        rows: the messages of the trace.
        was: those that were in the trace and have changed, as they were; whatever answers one of them that is told
            otherwise is among them.
        now: those and what came new, as they are.
        others: of what has not changed at least the messages of the trace that any of them answers or answered.

    Raises:
        UnpatchableError: too many are told alike at the same instants.
    """
    twins = _find_twins(rows, was, now)
    others = {**load_members(select_ids(rows, _list_parents(twins.values()) - now.keys() - others.keys())), **others}
    before = Counter(_describe({**twins, **was}, {**others, **was}))
    after = Counter(_describe({**twins, **now}, {**others, **now}))
    gone = [each for said in before for each in _number(said, after[said], before[said])]
    new = [each for said in after for each in _number(said, before[said], after[said])]
    return elements.remove(gone).add(new)


def _number(said: bytes, low: int, high: int) -> Iterator[bytes]:
    return (number_element(said, number) for number in range(low, high))


def _describe(members: Mapping[bytes, Member], known: Mapping[bytes, Member]) -> Iterator[bytes]:
    for each in members.values():
        answered = known.get(each.parent) if each.parent is not None else None
        name = name_content(answered.at, answered.part, answered.told) if answered is not None else b""
        yield describe(each.at, each.part, each.told, name, each.cited)


def _list_parents(members: Iterable[Member]) -> set[bytes]:
    return {each.parent for each in members if each.parent is not None}


def _find_twins(rows: MessageQuerySet, was: Mapping[bytes, Member], now: Mapping[bytes, Member]) -> dict[bytes, Member]:
    """The messages that may be described as these are or were: those of one instant that are told alike."""
    said = {(each.at, each.part, each.told) for each in (*was.values(), *now.values())}
    told = Q(told_digest__in={words for _, _, words in said if words})
    if any(not words for _, _, words in said):
        told |= Q(told_digest__isnull=True) | Q(told_digest=b"")
    alike = rows.filter(told, order_time__in={read_instant(at) for at, _, _ in said})
    found = load_members(_leave_out(alike, now.keys())[: _MOST_TWINS + 1])
    if len(found) > _MOST_TWINS:
        raise UnpatchableError("too many messages of the same instants are told alike")
    return {name: each for name, each in found.items() if (each.at, each.part, each.told) in said}


def _leave_out(rows: MessageQuerySet, ids: Collection[bytes]) -> MessageQuerySet:
    return rows.exclude(pk__in=[uuid.UUID(bytes=name) for name in ids])
