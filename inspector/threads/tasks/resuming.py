"""Tasks as they were stored, to be gone on with by messages that come after all that were settled."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Final

from ..models import Task
from ..uncertainty import UncertainError
from .found import Found, make_task_id
from .ledger import read_steps
from .lifecycle import NOT_BEGUN
from .plays import Play
from .signs import WISHES

# Tasks that are part of others: so many levels are followed.
MOST_LEVELS: Final = 50


@dataclass(slots=True)
class Resumed:
    """Tasks of a conversation that were stored, by key and by id, and how they were played."""

    by_key: dict[bytes, Found] = field(default_factory=dict)
    by_id: dict[uuid.UUID, Found] = field(default_factory=dict)
    plays: dict[Found, Play] = field(default_factory=dict)

    def add(self, task: Found, play: Play) -> None:
        """A task that is known."""
        self.by_key[task.key], self.by_id[task.id], self.plays[task] = task, task, play


def load_tasks(
    conversation_id: uuid.UUID,
    ids: Iterable[uuid.UUID],
    awaited: Mapping[bytes, tuple[str, str]],
    *,
    changed: Mapping[uuid.UUID, Task],
    border: bytes,
) -> Resumed:
    """Those of these tasks that are stored, and what each is part of.

    Args:
        conversation_id: the conversation.
        ids: of tasks that may be there.
        awaited: the keys of tasks that others are part of and that no message belongs to, with their ids on the wire
            and the states that those have brought them to.
        changed: those that have changed since, by id, as they stood before that.
        border: what begins at this place or later is none of them: it was not there yet.

    Raises:
        UncertainError: where tasks are part of each other beyond `MOST_LEVELS`.
    """
    resumed = Resumed()
    for key, (native_id, state) in awaited.items():
        task = Found(key, make_task_id(conversation_id, key), native_id, is_awaited=True)
        resumed.add(task, Play(task, state=state))
    within: dict[Found, bytes] = {}
    wanted = set(ids)
    for _ in range(MOST_LEVELS):
        if not wanted:
            break
        for row in _read_rows(conversation_id, wanted, changed, border):
            task = _make_task(row)
            resumed.add(task, _make_play(row, task))
            if row.within_key is not None:
                within[task] = bytes(row.within_key)
        keys = {key for key in within.values() if key not in resumed.by_key}
        wanted = {make_task_id(conversation_id, key) for key in keys}
    for task, key in within.items():
        if key not in resumed.by_key:
            raise UncertainError
        task.within = resumed.by_key[key]
        resumed.plays[task].within = resumed.plays[task.within]
    return resumed


def _read_rows(
    conversation_id: uuid.UUID, ids: Set[uuid.UUID], changed: Mapping[uuid.UUID, Task], border: bytes
) -> Iterator[Task]:
    yield from (changed[pk] for pk in ids & changed.keys())
    unchanged = ids - changed.keys()
    if unchanged:
        yield from Task.objects.filter(pk__in=unchanged, conversation_id=conversation_id, place__lt=border)


def _make_task(row: Task) -> Found:
    is_asked = bool(row.act)
    return Found(
        key=bytes(row.key),
        id=row.pk,
        native_id=row.native_id,
        request=row.request if is_asked else None,
        requester=row.requester,
        act=row.act,
        asked_elsewhere=None if is_asked else row.request,
        ends=row.ends,
        ending=row.ending,
        is_stored=True,
    )


def _make_play(row: Task, task: Found) -> Play:
    steps = read_steps(row.steps)
    return Play(
        task=task,
        wish=WISHES[row.act] if row.act else "work",
        place=bytes(row.place),
        performer=row.performer,
        delegate=row.delegate,
        delegation=row.delegation,
        mode=row.mode,
        # Where nothing has changed it yet, its row says that it is open.
        state=steps[-1].state if steps else NOT_BEGUN,
        deadline=row.deadline,
        deadline_at=row.deadline_at,
        first_at=row.first_at,
        last_at=row.last_at,
        asked_at=row.asked_at,
        acknowledged_at=row.acknowledged_at,
        finished_at=row.finished_at,
        message_count=row.message_count,
        retries=row.retries,
        failures=row.failures,
        is_answered=row.is_answered,
        is_inferred=row.is_inferred,
        steps=steps,
        left_out=row.step_count - len(steps),
    )
