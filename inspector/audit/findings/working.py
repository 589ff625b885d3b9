"""Working: the tasks of scenes, those alone that a rule may have to look at, and what was said on them too late."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence, Set
from typing import Any, Final

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet

from inspector.lookups import IsAny
from inspector.threads.models import Message, Task
from inspector.threads.models.tasks import ALONE, HANDED_ON, REMARKABLE
from inspector.threads.tasks.states import write_task_id

from .relating import ORDER, see_all
from .scene import Scene, SeenTask

_TASKS_AT_ONCE: Final = 2000
_ID: Final = write_task_id('"above"."conversation_id"', '"above"."key"')
_ABOVE: Final = f"""
WITH RECURSIVE "above" AS (
    SELECT * FROM unnest(%s::uuid[], %s::bytea[]) AS "asked" ("conversation_id", "key")
    UNION
    SELECT "task"."conversation_id", "task"."within_key" FROM "above" JOIN "threads_task" "task"
        ON "task"."id" = {_ID}
     WHERE "task"."within_key" IS NOT NULL
)
SELECT "task"."id" FROM "above" JOIN "threads_task" "task" ON "task"."id" = {_ID}
"""  # noqa: S608


def load_tasks(scenes: Mapping[uuid.UUID, Scene]) -> None:
    """The remarkable tasks of these scenes, in order; of some also those in whose course they were asked."""
    handed = Task.objects.filter(HANDED_ON, IsAny("conversation_id", scenes))
    comes_back = Exists(handed.filter(conversation=OuterRef("conversation"), requester=OuterRef("performer")))
    may_go_round = HANDED_ON & Q(within_key__isnull=False) & ~Q(performer="") & comes_back
    tasks = Task.objects.filter(REMARKABLE, ALONE | may_go_round, IsAny("conversation_id", scenes))
    _take(scenes, tasks)
    if links := [task for scene in scenes.values() for task in scene.tasks if _is_link(task)]:
        known = {(pk, bytes(task.key)) for pk, scene in scenes.items() for task in scene.tasks}
        _take(scenes, Task.objects.filter(IsAny("id", _find_above(links))), known)
        for scene in scenes.values():
            scene.tasks.sort(key=lambda task: (task.first_at, bytes(task.key)))


def _take(
    scenes: Mapping[uuid.UUID, Scene], tasks: QuerySet[Task], known: Set[tuple[uuid.UUID, bytes]] = frozenset()
) -> None:
    rows = tasks.order_by("conversation_id", "first_at", "key").values_list(*SeenTask._fields)
    for row in rows.iterator(chunk_size=_TASKS_AT_ONCE):
        task = SeenTask._make(row)
        if (task.conversation_id, bytes(task.key)) not in known:
            scenes[task.conversation_id].tasks.append(task)


def _is_link(task: SeenTask) -> bool:
    """Whether a rule compares it with the work above it: what was handed on, or asked back."""
    if task.request is None or task.within_key is None:
        return False
    return bool(task.performer) if task.act == "delegate" else task.act in ("query", "propose")


def _find_above(links: Sequence[SeenTask]) -> list[uuid.UUID]:
    """The tasks in the course of which these were asked, and so on up to the first."""
    asked: list[Any] = [[task.conversation_id for task in links], [bytes(task.within_key or b"") for task in links]]
    with connection.cursor() as cursor:
        cursor.execute(_ABOVE, asked)
        return [pk for (pk,) in cursor.fetchall()]


def load_words_after_end(scenes: Mapping[uuid.UUID, Scene], messages: QuerySet[Message]) -> None:
    """What whoever was asked reports on a task after it was cancelled."""
    ended: dict[uuid.UUID | None, SeenTask] = {
        task.request: task
        for scene in scenes.values()
        for task in scene.tasks
        if task.request and task.state == Task.State.CANCELLED and task.finished_at and task.last_at > task.finished_at
    }
    if not ended:
        return
    first = min(task.finished_at for task in ended.values() if task.finished_at)
    works = messages.filter(
        IsAny("conversation_id", {task.conversation_id for task in ended.values()}),
        order_time__gt=first,
        parent__in=list(ended),
        performative__in=("done", "progress", "failure"),
    )
    for message in see_all(works.order_by(*ORDER)):
        task = ended.get(message.parent)
        if task and task.finished_at and message.at > task.finished_at:
            scenes[message.conversation].after_end.append((task, message))
