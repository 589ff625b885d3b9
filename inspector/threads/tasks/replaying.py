"""Replaying: the tasks that a window of a conversation touches otherwise than before, played again from all messages.

A task is a fold over its messages, and what is late comes somewhere into it. So the tasks whose messages in the window
are not the same as before are played again, from all that was ever said of them, together with all that is part of
them: first with the window as it was, which has to come out as it is stored, then as it is now. What they are part of
is played again only where it would hear something else of them. The cost depends on these tasks alone.
"""

from __future__ import annotations

import uuid
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ..models import Conversation, Task
from ..placing.nodes import StoredNode
from ..uncertainty import UncertainError
from .found import Found, make_task_id
from .ledger import TaskRow, copy_row, make_row
from .lifecycle import ENDED, NOT_BEGUN
from .memberships import LINKED
from .recasting import Cast, Stand, list_windowed
from .reloading import Reloaded, Span

# Tasks that are part of others which hear something else of them: so many levels are followed.
MOST_LEVELS: Final = 5
# Sorts before everything after the window, and after everything in it.
_BEYOND: Final[Stand] = (2, b"")

Standing = tuple[bool, str]
Window = Mapping[uuid.UUID, StoredNode]


@dataclass(frozen=True, slots=True)
class Replayed:
    """What has changed of the tasks of a conversation.

    `rows` are those that are new, came out otherwise or moved; `gone` the ids of those that no message belongs to any
    more. `standings_before` and `standings_after` count how those that were played again stood and stand (`Play`).
    `awaited` are tasks that others are part of and no message belongs to, by key: the id on the wire and the state that
    those have brought it to; None of one that is no such task any more.
    """

    rows: list[TaskRow] = field(default_factory=list)
    gone: list[uuid.UUID] = field(default_factory=list)
    standings_before: Counter[Standing] = field(default_factory=Counter)
    standings_after: Counter[Standing] = field(default_factory=Counter)
    awaited: dict[bytes, tuple[str, str] | None] = field(default_factory=dict)


def replay_tasks(conversation: Conversation, old: Sequence[StoredNode], new: Sequence[StoredNode]) -> Replayed:
    """Play those tasks again that a window of a conversation touches otherwise than before.

    Call before anything of it is written: what stands outside of the window is read.

    Args:
        conversation: its row.
        old: the messages of the window in the order of the timeline, placed and assigned as they are stored.
        new: the same with what came in, placed and assigned anew; every other message keeps its task and its place.

    Raises:
        UncertainError: where these are too many, or what is stored does not tell how they would come out.
    """
    was, now = ({node.id: node for node in nodes} for nodes in (old, new))
    touched, moved = _find_touched(was, now)
    replayed = Replayed()
    if touched:
        _Replay(conversation, was, now, touched, moved).tell(replayed)
    _move(conversation, was, now, replayed)
    return replayed


class _Replay:
    """Tasks played with a window as it was and as it is.

    Args:
        conversation: their conversation.
        was: the messages of the window before, by id, in the order of the timeline.
        now: those of the window now.
        touched: the keys of the tasks that are touched otherwise.
        moved: those of them with messages that stand otherwise among others.
    """

    def __init__(
        self, conversation: Conversation, was: Window, now: Window, touched: set[bytes], moved: set[bytes]
    ) -> None:
        self._conversation = conversation
        self._was, self._now, self._moved = was, now, moved
        self._windowed = list_windowed(was), list_windowed(now)
        places = [node.place for window in (was, now) for node in window.values()]
        span = Span(min(places), max(places))
        keys = set(touched)
        for _ in range(MOST_LEVELS):
            self._stored = Reloaded(conversation.pk, span)
            self._load(keys)
            links = self._stored.read_links()
            self._before = Cast(self._stored, list(was.values()), links)
            self._prove_stored()
            self._prove_parents()
            self._after = Cast(self._stored, list(now.values()), links)
            above = {stub for key, stub in self._list_stubs() if not self._is_unheard(key, stub)}
            if not above:
                break
            keys |= above
        else:
            raise UncertainError
        self._prove_within()
        self._prove_none_hidden()

    def _load(self, keys: set[bytes]) -> None:
        stored = self._stored
        while True:
            wanted = self._add_parts(keys | stored.keys)
            stored.load_parts(wanted)
            # What is stored may be what something in the window is part of.
            if self._add_parts(stored.keys) == stored.keys:
                break
        stored.load_messages(self._was)
        stored.load_around([*self._was.values(), *self._now.values()])

    def _add_parts(self, keys: set[bytes]) -> set[bytes]:
        """These, and what the window says is part of them."""
        found = set(keys)
        while True:
            parts = {
                key
                for windowed in self._windowed
                for key, task in windowed.items()
                if task.within is not None and task.within.key in found
            }
            if parts <= found:
                return found
            found |= parts

    def _prove_stored(self) -> None:
        """With the window as it was, the tasks come out as they are stored."""
        rows = dict(self._stored.rows)
        for key, play in self._before.plays.items():
            if not play.message_count:
                continue
            row = rows.pop(key, None)
            if row is None or make_row(play)[-2:] != (bytes(row.digest), bytes(row.place)):
                raise UncertainError
        if rows:
            raise UncertainError

    def _prove_parents(self) -> None:
        """What a message outside answers in the window is there still, and of the same task."""
        for node in self._stored.outside:
            was = self._was.get(node.parent) if node.parent is not None and node.basis in LINKED else None
            if was is not None and (was.id not in self._now or _key_of(self._now[was.id]) != _key_of(was)):
                raise UncertainError

    def _prove_within(self) -> None:
        """What was part of a task is part of it still: who said so first, others may decide who are not known here."""
        for key in self._before.plays.keys() & self._after.plays.keys():
            was, now = (cast.plays[key].task.within for cast in (self._before, self._after))
            if was is not None and (now is None or now.key != was.key):
                raise UncertainError

    # What they are part of, and whether that hears anything else of them than before.

    def _list_stubs(self) -> Iterator[tuple[bytes, bytes]]:
        for cast in (self._before, self._after):
            yield from ((key, stub.key) for key, stub in cast.stubs.items())

    def _is_unheard(self, key: bytes, above: bytes) -> bool:
        """Whether a task is to the one that it is part of what it was, by all that its messages do there."""
        if key in self._moved:
            return False
        said = [self._write_effects(cast, key, above) for cast in (self._before, self._after)]
        if None in said or said[0] != said[1]:
            return False
        was, now = (Counter(node.at for node in cast.list_messages(key)) for cast in (self._before, self._after))
        is_dropped = self._after.plays[key].within is None
        if is_dropped:
            # Dropped by its first message, it was never heard there.
            return all(
                cast.list_messages(key)[0].id == cast.founds[key].request for cast in (self._before, self._after)
            )
        row = self._stored.find_around(above)
        if row is None:
            return True
        return all(row.first_at < at < row.last_at for at in (*(was - now), *(now - was)) if at is not None)

    def _write_effects(self, cast: Cast, key: bytes, above: bytes) -> object:
        play, stub = cast.plays.get(key), cast.stubs.get(key)
        if play is None or not play.message_count or stub is None or stub.key != above:
            return None
        window = self._was if cast is self._before else self._now
        request = window.get(play.task.request) if play.task.request is not None else None
        asked = _write_part(request) if request is not None else None
        states = [NOT_BEGUN, *(step.state for step in play.steps)]
        ends = [
            step for step, state in zip(play.steps, states, strict=False) if step.state in ENDED and step.state != state
        ]
        said = [(end.message_id, end.state, end.link) for end in ends]
        return play.within is None, play.task.request, asked, play.task.act, play.mode, said

    # Tasks that nothing stored says are part of one of them: they were asked for when that had ended.

    def _prove_none_hidden(self) -> None:
        """None of these tasks stands open where it had ended: what was asked in its course then would be part of it."""
        # Of a new task, and of one that comes later now, nothing stands in the window as it was.
        asked = [node.id for node in self._now.values() if node.id in self._was and self._may_be_part(node)]
        for key in self._after.plays.keys() & self._before.plays.keys():
            was, now = self._before.list_ends(key), self._after.list_ends(key)
            beyond = [_BEYOND, *(stand for stand, _ in (*was, *now) if stand > _BEYOND)]
            if any(_has_ended(was, stand) and not _has_ended(now, stand) for stand in beyond):
                raise UncertainError
            before, after = self._before.stands, self._after.stands
            if any(_has_ended(was, before[pk]) and not _has_ended(now, after[pk]) for pk in asked):
                raise UncertainError

    def _may_be_part(self, node: StoredNode) -> bool:
        task = node.of_task
        if task is None or task.request != node.id or task.key in self._stored.keys:
            return False
        return task.is_stored and task.within is None

    # What comes of it.

    def tell(self, replayed: Replayed) -> None:
        """Add what has changed."""
        rows = dict(self._stored.rows)
        for key, play in self._after.plays.items():
            if play.message_count:
                row, stored = make_row(play), rows.pop(key, None)
                if stored is None or row[-2:] != (bytes(stored.digest), bytes(stored.place)):
                    replayed.rows.append(row)
        replayed.gone.extend(row.pk for row in rows.values())
        for cast, counted in (
            (self._before, replayed.standings_before),
            (self._after, replayed.standings_after),
        ):
            counted.update(standing for play in cast.plays.values() if (standing := play.standing) is not None)
        was, now = (
            {key: (play.task.native_id, play.state) for key, play in cast.plays.items() if not play.message_count}
            for cast in (self._before, self._after)
        )
        replayed.awaited.update({key: now.get(key) for key in was | now if was.get(key) != now.get(key)})


def _find_touched(was: Window, now: Window) -> tuple[set[bytes], set[bytes]]:
    """The keys of the tasks whose messages in the window are others than before, or stand otherwise among them."""
    common = [[pk for pk in one if pk in other] for one, other in ((was, now), (now, was))]
    differing = [rank for rank, (one, other) in enumerate(zip(*common, strict=True)) if one != other]
    moved = {pk for order in common for pk in order[differing[0] : differing[-1] + 1]} if differing else set()
    among = {key for window in (was, now) for pk in moved if (key := _key_of(window[pk])) is not None}
    before, after = _gather_parts(was.values()), _gather_parts(now.values())
    return {key for key in before | after if before.get(key) != after.get(key)} | among, among


def _gather_parts(nodes: Iterable[StoredNode]) -> dict[bytes, list[object]]:
    """All that the messages of a window are to each task, and what is known of it, by its key."""
    parts: dict[bytes, list[object]] = {}
    for node in nodes:
        if node.of_task is not None:
            parts.setdefault(node.of_task.key, [_write_found(node.of_task)]).append(_write_part(node))
    return parts


def _write_found(task: Found) -> object:
    within = task.within.key if task.within is not None else None
    return task.request, task.requester, task.act, task.asked_elsewhere, within


def _write_part(node: StoredNode) -> object:
    """All of a message that a task depends on."""
    above = node.above if node.basis in LINKED else None
    answered = (above.id, above.performative, _key_of(above)) if above is not None else None
    said = (node.sender, node.receivers, node.at, node.is_timed, node.meaning, node.work, node.is_retryable)
    elsewhere = (node.cited, node.parent) if above is None else None
    return node.id, node.performative, node.link, node.basis, answered, elsewhere, *said


def _key_of(node: StoredNode) -> bytes | None:
    return node.of_task.key if node.of_task is not None else None


def _has_ended(ends: Sequence[tuple[Stand, bool]], at: Stand) -> bool:
    """Whether a task has ended once what stands here has been said."""
    rank = bisect_right(ends, at, key=lambda each: each[0])
    return rank > 0 and ends[rank - 1][1]


def _move(conversation: Conversation, was: Window, now: Window, replayed: Replayed) -> None:
    """Add the tasks whose first message stands at another place now, and of which nothing else has changed."""
    places: dict[uuid.UUID, tuple[bytes, bytes]] = {}
    seen: set[bytes] = set()
    for node in was.values():
        key = _key_of(node)
        if key is None or key in seen:
            continue
        seen.add(key)
        if node.id in now and now[node.id].place != node.place:
            places[make_task_id(conversation.pk, key)] = (node.place, now[node.id].place)
    told = {make_task_id(conversation.pk, row[0]) for row in replayed.rows} | set(replayed.gone)
    moved = places.keys() - told
    if moved:
        for task in Task.objects.filter(pk__in=moved, conversation_id=conversation.pk):
            before, after = places[task.pk]
            if bytes(task.place) == before:
                replayed.rows.append((*map(_as_bytes, copy_row(task)[:-1]), after))


def _as_bytes(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value
