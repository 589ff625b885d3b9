"""Noticed: the messages that came new to a trace or changed, as they were and as they are, and what is beside them.

Beside those that were noted there are some that have changed with them: what answers a message that is told otherwise,
for the digest names it so, and what answered one that only now belongs to the trace.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..arriving.noting import MOST_NOTED, Noted, Stood
from ..models import MessageQuerySet, Trace
from .carrying import Carried
from .changes import Change, Was, find_anchor
from .elements import Place
from .grafting import Anchor, Shoot
from .lengthening import takes_in
from .merging import UnpatchableError
from .outline import Kind, Knot
from .reckoning import Member, load_members, select_ids
from .strands import CHANNEL, ID, Gatherer, Strand, hash_ghost, read_members, select_members


@dataclass(frozen=True, slots=True)
class Noticed:
    """What came new to a trace or changed.

    `members` are the messages of the trace, `new` those that came to it, with their `new_places` in the timeline.
    `was` and `now` say of what has changed how it was and is, `others` how that is which it answers or answered and has
    not changed; `hung` and `shoots` say on what it hung and hangs. `missed_before` and `missed_now` are what it cited
    and cites that was not received, `awaited` what is answered in the trace and is not among its messages.
    """

    members: MessageQuerySet
    new: Strand
    new_places: Sequence[Place]
    was: Mapping[bytes, Member]
    now: Mapping[bytes, Member]
    others: Mapping[bytes, Member]
    hung: Mapping[bytes, Anchor]
    shoots: Sequence[Shoot]
    missed_before: frozenset[tuple[bytes, uuid.UUID]]
    missed_now: frozenset[tuple[bytes, uuid.UUID]]
    awaited: frozenset[bytes]

    def list_unchanged(self) -> MessageQuerySet:
        """The messages of the trace that have not changed."""
        return self.members.exclude(pk__in=[uuid.UUID(bytes=name) for name in self.now])

    def list_changes(self) -> list[Change]:
        """What changes in the tree, in the order of the timeline."""
        found = []
        for shoot in self.shoots:
            was = self.was.get(shoot.id)
            if was is None:
                found.append(Change(shoot.id, None, shoot))
            elif was.told != self.now[shoot.id].told or self.hung[shoot.id] != find_anchor(shoot):
                stood = Was(shoot.at, shoot.performative, shoot.group, self.hung[shoot.id])
                found.append(Change(shoot.id, stood, shoot))
        return found


def notice(trace: Trace, carried: Carried, noted: Sequence[Noted]) -> Noticed:
    """Read what has changed in a trace, and what that takes along.

    Raises:
        UngrowableError: a channel joins others.
        UnpatchableError: something left the trace, or it is too much.
    """
    members = select_members([trace])
    if trace.channel_id is None:
        members = members.filter(channel_id__in=carried.channels)
    read = _read(trace, carried, noted)
    with_them = _find_with_them(members, carried, read)
    if with_them:
        read = _read(trace, carried, [*noted, *with_them])
    return _put_together(members, carried, read)


@dataclass(slots=True)
class _Read:
    """The rows of messages that were noted, in the order of the timeline, and how those stood that are not new."""

    all: Gatherer
    new: Gatherer
    channels: dict[bytes, uuid.UUID]
    stood: dict[bytes, Stood]

    @property
    def knots(self) -> Sequence[Knot]:
        return self.all.strand.knots

    def list_now(self) -> dict[bytes, Member]:
        rows = zip(self.knots, self.all.places, self.all.told, self.all.parents, strict=True)
        return {
            knot.id: Member(place[0], place[3], told, parent, self.all.cited.get(at, b""))
            for at, (knot, place, told, parent) in enumerate(rows)
        }

    def list_was(self, now: Mapping[bytes, Member]) -> dict[bytes, Member]:
        return {
            name: now[name]._replace(
                told=stood.told_digest or b"",
                parent=stood.parent.bytes if stood.parent else None,
                cited=stood.cited or b"",
            )
            for name, stood in self.stood.items()
        }


def _read(trace: Trace, carried: Carried, noted: Sequence[Noted]) -> _Read:
    found = _Read(Gatherer(Strand(channels=carried.channels)), Gatherer(Strand()), {}, {})
    stood = {each.id: each.stood for each in noted}
    lost = {message_id for message_id, before in stood.items() if before is not None}
    for row in read_members(select_members([trace]).filter(pk__in=list(stood))):
        message_id = row[ID]
        lost.discard(message_id)
        if not takes_in(trace, carried.channels, row):
            continue
        found.all.add(row)
        found.channels[message_id.bytes] = row[CHANNEL]
        before = stood[message_id]
        if before is None:
            found.new.add(row)
        else:
            found.stood[message_id.bytes] = before
    if lost:
        raise UnpatchableError("something has left the trace")
    return found


def _find_with_them(members: MessageQuerySet, carried: Carried, read: _Read) -> list[Noted]:
    """What has changed with these messages though nobody noted it."""
    told = zip(read.knots, read.all.told, strict=True)
    changed = {
        knot.id
        for knot, words in told
        if (knot.id not in read.stood and knot.id in carried.awaited)
        or (knot.id in read.stood and (read.stood[knot.id].told_digest or b"") != words)
    }
    if not changed:
        return []
    rows = members.filter(parent__in=[uuid.UUID(bytes=name) for name in changed])
    rows = rows.exclude(pk__in=[uuid.UUID(bytes=knot.id) for knot in read.knots])
    found = load_members(rows[: MOST_NOTED + 1])
    if len(found) > MOST_NOTED:
        raise UnpatchableError("too much answers what has changed")
    return [
        Noted(uuid.UUID(bytes=name), Stood(uuid.UUID(bytes=each.parent), None, False, each.told or None))
        for name, each in found.items()
        if each.parent is not None
    ]


def _put_together(members: MessageQuerySet, carried: Carried, read: _Read) -> Noticed:
    now = read.list_now()
    was = read.list_was(now)
    answered = {each.parent for each in (*now.values(), *was.values()) if each.parent is not None}
    others = load_members(select_ids(members, answered - now.keys()))
    shoots = list(_make_shoots(read, others.keys() | now.keys()))
    return Noticed(
        members=members,
        new=read.new.end(),
        new_places=read.new.places,
        was=was,
        now=now,
        others=others,
        hung=_list_hung(read, was, others.keys() | was.keys()),
        shoots=shoots,
        missed_before=frozenset(
            (stood.cited, read.channels[name])
            for name, stood in read.stood.items()
            if stood.cited is not None and not stood.is_several
        ),
        missed_now=frozenset(read.all.strand.ghosts),
        awaited=_find_awaited(carried, was, now, others.keys() | now.keys()),
    )


def _make_shoots(read: _Read, tree: Iterable[bytes]) -> Iterable[Shoot]:
    held = set(tree)
    for knot, parent in zip(read.knots, read.all.parents, strict=True):
        if parent == knot.id:
            raise UnpatchableError("a message answers itself")
        above = parent if parent in held else None
        yield Shoot(knot.id, knot.mark, knot.at, knot.performative, knot.severity, above, knot.ghost, knot.group)


def _list_hung(read: _Read, was: Mapping[bytes, Member], tree: Iterable[bytes]) -> dict[bytes, Anchor]:
    """The lines that those messages hung on which are not new."""
    held, found = set(tree), dict[bytes, Anchor]()
    for knot in read.knots:
        before = was.get(knot.id)
        if before is None:
            continue
        if before.cited:
            found[knot.id] = hash_ghost(before.cited, read.channels[knot.id])[:16], Kind.GHOST
        elif before.parent in held:
            found[knot.id] = before.parent, Kind.MESSAGE
        else:
            found[knot.id] = knot.group, Kind.CONVERSATION
    return found


def _find_awaited(
    carried: Carried, was: Mapping[bytes, Member], now: Mapping[bytes, Member], tree: Iterable[bytes]
) -> frozenset[bytes]:
    """What is answered in the trace and is not in it now.

    Raises:
        UnpatchableError: something no longer answers what is not in the trace, and others may or may not.
    """
    held = set(tree)
    for name, before in was.items():
        if before.parent is not None and before.parent not in held and now[name].parent != before.parent:
            raise UnpatchableError("a message no longer answers what is not in the trace")
    outside = {each.parent for each in now.values() if each.parent is not None and each.parent not in held}
    return (carried.awaited - now.keys()) | outside
