"""Replaying tasks: how each stands after its messages, in the order of the timeline. Pure, and without recursion."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from ..placing.nodes import StoredNode
from .events import FAILURES, LINKED, find_event
from .states import ENDED, Step, TaskState, follow, get_end_of_part

# A deadline further off is none.
MAX_SECONDS: Final = 10**9


def take(task: TaskState, node: StoredNode) -> None:
    """One message of a task."""
    if not task.message_count:
        task.place = node.place
    task.message_count += 1
    for concerned in (task, task.within):
        if concerned is not None:
            concerned.meet(node.at)
    time = node.at if node.is_timed else None
    if task.request == node.id:
        task.asked_at = None if node.work.is_public else time
        _apply(task, "posted" if node.work.is_public else "asked", node)
        if task.within is not None:
            _pass_on(task, task.within, node)
    else:
        by = "requester" if node.sender and node.sender == task.requester else "other"
        if by == "other":
            _hear(task, node, time)
        event = _find_event(task, node, by)
        if event is not None:
            if event == "delegated":
                _name_delegate(task, node)
            elif event == "asked-again" and len(node.receivers) == 1:
                # Who is asked again owes the end; asked of somebody else, it is no longer who was asked first.
                task.performer = node.receivers[0]
            _apply(task, event, node)
    if node.work.deadline and (task.request == node.id or node.sender == task.requester):
        task.deadline = node.work.deadline
        task.deadline_at = _find_deadline(node, time)


def _hear(task: TaskState, node: StoredNode, time: datetime | None) -> None:
    """Somebody who did not ask says a word on it."""
    if not task.is_answered:
        task.acknowledged_at = time
    task.is_answered = True
    task.performer = task.performer or node.sender or ""


def _find_event(task: TaskState, node: StoredNode, by: str) -> str | None:
    parent = node.above
    return find_event(
        node.performative,
        by=by,
        status=node.meaning,
        wish=task.wish,
        answers=parent.performative if parent and node.basis in LINKED else None,
        is_retryable=bool(node.is_retryable),
        has_result=node.work.has_result,
        has_progress=node.work.has_progress,
        is_again=node.performative == (task.act or None),
        is_waiting=task.state == "waiting",
    )


def _name_delegate(task: TaskState, node: StoredNode) -> None:
    task.delegate = node.receivers[0] if len(node.receivers) == 1 else ""
    task.delegation = node.work.mode


def _pass_on(task: TaskState, whole: TaskState, node: StoredNode) -> None:
    """What a new task is to the one in the course of which it was asked; nothing where that has ended."""
    if whole.state in ENDED:
        task.within = None
        return
    if node.sender and node.sender == whole.requester:
        # Who asked for the whole asks for a part of it as well: that says nothing of how the whole stands.
        return
    _hear(whole, node, node.at if node.is_timed else None)
    event = _find_event(whole, node, "other")
    if event is not None:
        if event == "delegated":
            _name_delegate(whole, node)
        _apply(whole, event, node)


def _apply(task: TaskState, event: str, node: StoredNode) -> None:
    """Follow an event, and where it ends a task, what that is to the one in the course of which it was asked."""
    cause: str | None = event
    while cause is not None:
        state = follow(task.state, cause)
        has_changed, task.state, task.is_touched = state != task.state, state, True
        task.retries += cause == "asked-again"
        task.failures += cause in FAILURES
        if has_changed or cause in FAILURES or cause == "asked-again":
            task.steps.append(Step(node.id, cause, state, node.link))
            task.is_inferred = task.is_inferred or bool(node.link)
        if has_changed:
            task.finished_at = node.at if state in ENDED and node.is_timed else None
        cause = None
        if has_changed and state in ENDED and task.within is not None:
            cause = get_end_of_part(task.wish, task.mode, state)
            task = task.within


def _find_deadline(node: StoredNode, time: datetime | None) -> datetime | None:
    """The instant of a deadline; of one that counts from now on None where the time of its message is not known."""
    work = node.work
    if work.instant is not None:
        try:
            said = datetime.fromisoformat(work.instant)
            return said.astimezone(UTC) if said.tzinfo else said.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            return None
    if work.seconds is None or time is None or not 0 <= work.seconds <= MAX_SECONDS:
        return None
    return time + timedelta(seconds=work.seconds)
