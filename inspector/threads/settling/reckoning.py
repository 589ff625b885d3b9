"""Reckoning: what a conversation's row says once some messages have been taken out of its timeline and others put in.

Whoever settles all of a conversation, or what was appended to it, takes none out. The messages stand together: no other
has a place between theirs, and no other's place moves. What cannot be told from what is carried (`counts`) and from
them raises `UncertainError`; that happens only where a message that was the first, the last or the gravest of something
is taken out and none of those that are put in stands for it. Pure.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from ..models import Conversation, Message
from ..placing.nodes import StoredNode
from ..placing.places import BEYOND
from ..uncertainty import UncertainError
from .counts import MOST_AGENTS, Counts, Spoken, Standing
from .digests import Moment, list_elements
from .gathering import Gathered, gather_nodes
from .tallies import ASKING, FAILING, MOST_GRAVE, MOST_SENDERS, Tally, read_tally

_NOTHING: Final = Tally(None, 0, 0, 0, {}, {}, [])


class Window(NamedTuple):
    """The messages that are taken out and those that are put in, and the first and the last of their places."""

    old: Gathered
    new: Gathered
    first: bytes
    last: bytes

    def holds(self, place: bytes) -> bool:
        """Whether a message of this place is one of them."""
        return self.first <= place <= self.last


@dataclass(frozen=True, slots=True)
class Reckoned:
    """What the row says then, and what is carried beside it; `subject_of` is None where it is about what it was."""

    agents: list[str]
    message_count: int
    missing_count: int
    tally: Tally
    first_at: datetime | None
    last_at: datetime | None
    subject_of: uuid.UUID | None
    counts: Counts


def reckon(
    row: Conversation,
    counts: Counts,
    old: Sequence[StoredNode],
    new: Sequence[StoredNode],
    *,
    standings: Mapping[Standing, int],
    missing: Collection[bytes],
    hidden: int,
    end: bytes = BEYOND,
) -> Reckoned:
    """What a conversation comes to with these messages in place of those.

    Args:
        row: what it came to.
        counts: what was carried beside it; it is not changed.
        old: the messages that are taken out, in the order of the timeline.
        new: those that are put in.
        standings: by how many more of its tasks stand so.
        missing: which of the ids that are missing in these messages are so in others as well.
        hidden: how many messages a withdrawal hides.
        end: where they come after all others, a place that those do not reach. Elsewhere no other has the time of one
            of these.

    Raises:
        UncertainError: where that is not known.
    """
    gone, come = gather_nodes(old), gather_nodes(new)
    firsts = [each.first for each in (gone, come) if each.count]
    window = Window(gone, come, min(firsts, default=b""), max(gone.last, come.last))
    is_end = window.first >= end
    before = read_tally(row.tally) if row.tally else _NOTHING
    agents, spoken = _change_agents(row.agents, counts.agents, window, is_end=is_end)
    gravest = _change_gravest(before, counts.severities, window)
    named, subject, subject_of = _change_subject(counts, window)
    asks = _change_asks(before.asked, window)
    return Reckoned(
        agents=agents,
        message_count=row.message_count - gone.count + come.count,
        missing_count=row.missing_count - len(gone.missing.difference(missing)) + len(come.missing.difference(missing)),
        tally=Tally(
            asked=asks,
            asked_count=before.asked_count + _count_more(window, *ASKING),
            failed_count=before.failed_count + _count_more(window, *FAILING),
            malformed_count=before.malformed_count + _count_more(window, None),
            severities=dict(sorted(_change_counts(before.severities, gone.severities, come.severities).items())),
            senders={name: sent for name, (_, sent) in zip(agents[:MOST_SENDERS], spoken, strict=False) if sent},
            gravest=list(gravest),
            hidden=hidden,
        ),
        first_at=_change_time(row.first_at, gone.first_at, come.first_at, is_first=True),
        last_at=_change_time(row.last_at, gone.last_at, come.last_at, is_first=False),
        subject_of=subject_of,
        counts=Counts(
            dialects=_change_spoken(counts.dialects, gone.dialects, come.dialects, window),
            agents=spoken[:MOST_AGENTS],
            standings=_change_counts(counts.standings, {}, standings),
            severities=gravest,
            named=named,
            subject=subject,
            latest=_change_latest(counts.latest, window),
            settled=counts.settled.remove(list_elements(old)).add(
                list_elements(new, counts.latest if is_end else None)
            ),
        ),
    )


def _change_agents(
    names: Sequence[str], known: Sequence[Spoken], window: Window, *, is_end: bool
) -> tuple[list[str], list[Spoken]]:
    """The agents in the order of their first appearance, and of as many of the first as is known what is carried.

    Args:
        names: those there were.
        known: what was carried of the first of them.
        window: what changes.
        is_end: whether that comes after all others.
    """
    held = dict(zip(names, known, strict=False))
    # Where these appeared first is not known, but that it was after all whose is.
    others = dict.fromkeys(names[len(known) :])
    gone, come = window.old.agents, window.new.agents
    if others:
        before = {name for name, spoken in held.items() if spoken.place < window.first}
        fresh = [name for name in come if name not in before]
        if is_end:
            others |= dict.fromkeys(name for name in fresh if name not in held)
        elif fresh != [name for name in gone if name not in before] and (
            window.last >= known[-1].place or not others.keys().isdisjoint(fresh)
        ):
            raise UncertainError
        come = {name: spoken for name, spoken in come.items() if name not in others}
    changed = _change_spoken(held, gone, come, window)
    return [*changed, *others], list(changed.values())


def _change_spoken(
    held: Mapping[str, Spoken], gone: Mapping[str, Spoken], come: Mapping[str, Spoken], window: Window
) -> dict[str, Spoken]:
    """What appears in a conversation, in the order of its first appearance."""
    if any(window.holds(spoken.place) and name not in come for name, spoken in held.items()):
        raise UncertainError
    before = {name: spoken for name, spoken in held.items() if spoken.place < window.first}
    here = {name: spoken for name, spoken in come.items() if name not in before}
    after = {name: spoken for name, spoken in held.items() if name not in before and name not in here}
    return {
        name: Spoken(spoken.place, _count(held, name) - _count(gone, name) + _count(come, name))
        for name, spoken in (before | here | after).items()
    }


def _count(spoken: Mapping[str, Spoken], name: str) -> int:
    return spoken[name].messages if name in spoken else 0


def _change_counts(held: Mapping[Any, int], gone: Mapping[Any, int], come: Mapping[Any, int]) -> Counter[Any]:
    """How many of each there are, without those of which there are none."""
    changed = Counter(held)
    changed.subtract(gone)
    changed.update(come)
    if any(count < 0 for count in changed.values()):
        # What is taken out was not in it.
        raise UncertainError
    return +changed


def _count_more(window: Window, *acts: str | None) -> int:
    return sum(window.new.acts[act] - window.old.acts[act] for act in acts)


def _change_gravest(before: Tally, held: Mapping[str, int], window: Window) -> dict[str, int]:
    """The severities of the gravest messages by their places, the gravest first, and of one severity the first."""
    kept = {place: severity for place, severity in held.items() if not window.holds(bytes.fromhex(place))}
    # Whether there are grave messages that are neither among the gravest nor in the window.
    others = _change_counts(before.severities, window.old.severities, Counter()) - Counter(kept.values())
    is_more = any(severity >= Message.Severity.WARNING for severity in others)
    gravest = sorted([*kept.items(), *window.new.gravest.items()], key=_rank_grave)[:MOST_GRAVE]
    if is_more:
        # They come after the last of the gravest there were, and after the window where that was in it.
        last = max(held.items(), key=_rank_grave)
        place = window.last.hex() if window.holds(bytes.fromhex(last[0])) else last[0]
        until = _rank_grave((place, last[1]))
        if len(gravest) < MOST_GRAVE or _rank_grave(gravest[-1]) > until:
            raise UncertainError
    return dict(gravest)


def _rank_grave(grave: tuple[str, int]) -> tuple[int, str]:
    place, severity = grave
    return -severity, place


def _change_subject(counts: Counts, window: Window) -> tuple[int, bytes, uuid.UUID | None]:
    """`Counts.named` and `Counts.subject`, and the message where it is one of those that are put in.

    What is asked for names a conversation better than what is announced before it.
    """
    asked, named = window.new.asked, window.new.named
    found: list[tuple[int, bytes, uuid.UUID | None]] = []
    if asked is not None:
        found = [(-2, *asked)]
    elif named is not None:
        found = [(-1, *named)]
    if counts.named and window.holds(counts.subject):
        if not found or found[0][0] > -counts.named:
            raise UncertainError
    elif counts.named:
        found.append((-counts.named, counts.subject, None))
    kind, place, pk = min(found, default=(0, b"", None))
    return -kind, place, pk


def _change_asks(held: str | None, window: Window) -> str | None:
    """The place of the first message that asks for something, in hexadecimal."""
    asks = None if window.new.asks is None else window.new.asks.hex()
    if held is not None and window.holds(bytes.fromhex(held)):
        if asks is None:
            raise UncertainError
        return asks
    return min((place for place in (held, asks) if place is not None), default=None)


def _change_latest(held: Moment | None, window: Window) -> Moment | None:
    """The latest time, and how many messages have it."""
    gone, come = window.old.latest, window.new.latest
    if held is None:
        return come
    if gone is not None and gone.instant == held.instant:
        if come is None:
            raise UncertainError
        # The others are all earlier than these.
        return come
    if come is None or come.instant < held.instant:
        return held
    # Only what is appended may go on in the same time.
    return Moment(come.instant, come.messages + held.messages) if come.instant == held.instant else come


def _change_time(
    held: datetime | None, gone: datetime | None, come: datetime | None, *, is_first: bool
) -> datetime | None:
    """The time of the first message of all, or of the last."""
    if gone is not None and gone == held:
        if come is None:
            raise UncertainError
        # The others are all later than these, or earlier.
        return come
    choose = min if is_first else max
    return choose((time for time in (held, come) if time is not None), default=None)
