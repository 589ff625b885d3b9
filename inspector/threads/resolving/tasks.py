"""The tasks of a block: which one each message belongs to, and how each stands; gone on with from earlier blocks.

A task is known by its key. How it stands is a fact that later blocks read; what it adds up to (how many messages, its
changes, its first and last time) is kept beside that fact by each block, so that one more message on a task marks no
later block unless the task stands otherwise. A task's row is the latest fact and the sum of what stands beside all.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from ..tasks.replay import Play, Step
from ..tasks.rows import MAX_STEPS
from ..tasks.states import Found, make_task_id
from .view import View

_FOUND: Final = ("native_id", "requester", "act", "ends", "ending")
_PLAYED: Final = ("wish", "performer", "delegate", "delegation", "mode", "state", "deadline", "is_answered")
_TIMES: Final = ("deadline_at", "asked_at", "acknowledged_at", "finished_at")


@dataclass(slots=True, eq=False)
class TaskState:
    """A task as it stands where a block is gone through: what it is, and its course."""

    found: Found
    play: Play
    # The keys of the tasks that it is part of: as the wire says, and as its course goes on (dropped where that ended).
    within: bytes | None = None
    is_touched: bool = False

    def write(self) -> list[Any]:
        """How it stands, as JSON takes it."""
        found, play = self.found, self.play
        return [
            found.key.hex(),
            _write_id(found.request),
            _write_id(found.asked_elsewhere),
            None if self.within is None else self.within.hex(),
            None if play.within is None else play.within.task.key.hex(),
            [getattr(found, name) for name in _FOUND],
            [getattr(play, name) for name in _PLAYED],
            [_write_time(getattr(play, name)) for name in _TIMES],
        ]


@dataclass(slots=True)
class Part:
    """What the messages of one block add to a task."""

    place: bytes = b""
    message_count: int = 0
    retries: int = 0
    failures: int = 0
    is_inferred: bool = False
    first_at: datetime | None = None
    last_at: datetime | None = None
    steps: list[Step] = field(default_factory=list)
    left_out: int = 0

    def write(self) -> list[Any]:
        """It as JSON takes it; of many changes the first and the last."""
        kept, left_out = self.steps, self.left_out
        if len(kept) > 2 * MAX_STEPS:
            left_out += len(kept) - 2 * MAX_STEPS
            kept = [*kept[:MAX_STEPS], *kept[-MAX_STEPS:]]
        return [
            self.place.hex(),
            self.message_count,
            self.retries,
            self.failures,
            self.is_inferred,
            _write_time(self.first_at),
            _write_time(self.last_at),
            [[step.message_id.hex, *step[1:]] for step in kept],
            left_out,
        ]

    @classmethod
    def read(cls, written: Sequence[Any]) -> Part:
        """What `write` wrote."""
        place, count, retries, failures, is_inferred, first_at, last_at, steps, left_out = written
        return cls(
            bytes.fromhex(place),
            count,
            retries,
            failures,
            is_inferred,
            _read_time(first_at),
            _read_time(last_at),
            [Step(uuid.UUID(hex=name), *said) for name, *said in steps],
            left_out,
        )


def add_parts(play: Play, parts: Sequence[Part]) -> Play:
    """A play with what its messages add up to, of all blocks in their order."""
    steps: list[Step] = []
    left_out = 0
    for part in parts:
        if part.message_count and not play.message_count:
            play.place = part.place
        play.message_count += part.message_count
        play.retries += part.retries
        play.failures += part.failures
        play.is_inferred = play.is_inferred or part.is_inferred
        for at in (part.first_at, part.last_at):
            play.meet(at)
        steps += part.steps
        left_out += part.left_out
        if len(steps) > 4 * MAX_STEPS:
            left_out += len(steps) - 2 * MAX_STEPS
            steps = [*steps[:MAX_STEPS], *steps[-MAX_STEPS:]]
    play.steps, play.left_out = steps, left_out
    return play


class Tasks:
    """The tasks that the messages of a block may belong to, by key; those of earlier blocks as they stood there."""

    def __init__(self, conversation_id: uuid.UUID, view: View) -> None:
        self._conversation_id = conversation_id
        self._view = view
        self._by_id: dict[uuid.UUID, TaskState] = {}

    def find(self, task_id: uuid.UUID) -> TaskState | None:
        """A task that some message belonged to, or that another is part of."""
        held = self._by_id.get(task_id)
        if held is None:
            written = self._view.get(("task", task_id.hex))
            if written is not None:
                held = self._by_id[task_id] = self._read(task_id, written)
        return held

    def make(self, key: bytes, task_id: uuid.UUID, native_id: str = "") -> TaskState:
        """The task of a key, which is new where it is none yet."""
        held = self.find(task_id)
        if held is None:
            found = Found(key, task_id, native_id)
            held = self._by_id[task_id] = TaskState(found, Play(found))
        return held

    def _read(self, task_id: uuid.UUID, written: Sequence[Any]) -> TaskState:
        found, play, within, played_within = read_task(task_id, written)
        state = TaskState(found, play, within)
        if played_within is not None:
            # It goes on within another only where that is known as well.
            from_above = self.find(make_task_id(self._conversation_id, played_within))
            play.within = from_above.play if from_above is not None else None
        return state

    def note(self) -> None:
        """Say how each of those stands that anything was said of."""
        for task_id, state in self._by_id.items():
            if not state.is_touched and not state.play.is_touched:
                continue
            play = state.play
            part = Part(
                play.place,
                play.message_count,
                play.retries,
                play.failures,
                play.is_inferred,
                play.first_at,
                play.last_at,
                play.steps,
                play.left_out,
            )
            self._view.put(("task", task_id.hex), state, part)

    @property
    def states(self) -> Mapping[uuid.UUID, TaskState]:
        """All that were asked for, by id."""
        return self._by_id


def read_task(task_id: uuid.UUID, written: Sequence[Any]) -> tuple[Found, Play, bytes | None, bytes | None]:
    """A task as it was written: what it is, its course, and the keys of what it is part of and goes on within."""
    key, request, elsewhere, within, played_within, found_said, play_said, times = written
    found = Found(bytes.fromhex(key), task_id)
    found.request, found.asked_elsewhere = _read_id(request), _read_id(elsewhere)
    for name, value in zip(_FOUND, found_said, strict=True):
        setattr(found, name, value)
    play = Play(found)
    for name, value in zip(_PLAYED, play_said, strict=True):
        setattr(play, name, value)
    for name, value in zip(_TIMES, times, strict=True):
        setattr(play, name, _read_time(value))
    return (
        found,
        play,
        None if within is None else bytes.fromhex(within),
        None if played_within is None else bytes.fromhex(played_within),
    )


def _write_id(pk: uuid.UUID | None) -> str | None:
    return None if pk is None else pk.hex


def _read_id(written: str | None) -> uuid.UUID | None:
    return None if written is None else uuid.UUID(hex=written)


def _write_time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _read_time(written: str | None) -> datetime | None:
    return None if written is None else datetime.fromisoformat(written)
