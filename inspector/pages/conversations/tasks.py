"""The tasks of a conversation: what was asked, how each stands and since when, and the message behind each change."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from inspector.accounts.models import Membership
from inspector.audit.findings.selectors import DENIED, tell_findings
from inspector.audit.rules.decoding import DENIED_RULE
from inspector.audit.rules.work import END_OF
from inspector.browsing.transcripts import mark_sentences
from inspector.database import or_404
from inspector.threads.models import Conversation, Message, Task
from inspector.threads.selectors import find_conversation, find_messages_by_ids
from inspector.threads.states import ENDED, EVENTS, LINKS, STANDING, Step
from inspector.threads.tasks import (
    EVERY,
    STALLED_AFTER,
    Times,
    find_moment,
    find_task,
    find_tasks_by_keys,
    list_tasks,
    measure_conversation,
    read_steps,
)

from ..lists import read_walk
from ..shell import parse_id, within_workspace, write_query
from ..shown.agents import AgentMark, Cast, cast_conversation
from ..shown.told import shorten, write_elapsed
from .frame import AFTER, list_reversed, render_view, say_doubt

PAGE_TASKS: Final = 25
# A task without a topic is called by its request: of a longer sentence the beginning.
MAX_NAME_LENGTH: Final = 200
# By an end and the one that reversed it: the first in words.
_REVERSED: Final[Mapping[tuple[str, str], str]] = {
    ("refused", "done"): "refusing",
    ("failed", "done"): "failing",
    ("done", "failed"): "it was reported done",
}
# What an act says more exactly than its event, by both.
_EXACT: Final[Mapping[tuple[str, str | None], str]] = {
    ("progressed", "accept"): "accepted the proposal",
    ("acknowledged", "accept"): "agreed to it",
    ("acknowledged", "commit"): "committed to it",
}
# A proposal that was turned down has its answer, and is not done as work is.
TURNED_DOWN: Final = "turned-down"
# Of the changes of a task so many of the first and of the last are listed; the rest is counted.
MAX_STEPS: Final = 10


@within_workspace("GET", of=find_conversation)
def show_tasks(request: HttpRequest, membership: Membership, conversation: Conversation) -> HttpResponse:
    """A page of the conversation's tasks in the order in which they begin, and its measures, as of a moment."""
    latest = find_moment(conversation=conversation)
    moment = _read_moment(request) or latest
    state = request.GET.get("state", "")
    states = [state] if state in Task.State.values else []
    after = _read_place(request, conversation)
    walk = read_walk(request, membership, places=("after",), snapshot=getattr(conversation, "snapshot", ""))
    if walk.is_rest:
        after = (b"", uuid.UUID(walk.after[0])) if walk.after else None
    found = list_tasks(
        conversation=conversation,
        moment=moment,
        after=after,
        limit=PAGE_TASKS + 1,
        states=states,
        is_by_id=walk.is_rest,
        within=walk.written if walk.is_rest else EVERY,
    )
    page, last = walk.cut(found, PAGE_TASKS, Task.objects.filter(conversation=conversation))
    measures = measure_conversation(conversation=conversation, moment=moment)
    telling = tell_findings(conversation=conversation)
    denied = {(each.record_id, each.part) for each in telling.findings if each.rule == DENIED_RULE}
    lines = _make_lines(page, moment, membership, conversation, denied)
    reversals = {line["stands"]: DENIED for line in lines if line["is_denied"]}
    reversals |= {end: before for _, before, end in reversed(list_reversed(telling.findings))}
    context = {
        "tasks": lines,
        "measures": measures,
        "times": {"acknowledge": _say_time(measures.acknowledge), "finish": _say_time(measures.finish)},
        "states": [
            {
                "value": value,
                "count": count,
                "url": write_query(request, state=None if value == state else value, after=None),
                "is_current": value == state,
                "doubt": _say_some(value, reversals[value]) if value in reversals else "",
            }
            for value, count in measures.states.items()
        ],
        "as_of": moment,
        "is_latest": moment == latest,
        "now_url": write_query(request, as_of="now", after=None),
        "latest_url": write_query(request, as_of=None, after=None),
        "is_filtered": bool(states),
        "all_url": write_query(request, state=None, after=None),
        "stalled_after": write_elapsed(STALLED_AFTER),
        "later_url": walk.write_on([str(last.pk)], after=str(last.pk)) if last else None,
        "walk": walk,
    }
    template = "conversation/tasks.html"
    return render_view(
        request, membership, conversation, template, context, current="conversation-tasks", telling=telling
    )


def _say_some(state: str, before: str) -> str:
    return f"{state}, some denied by their data" if before == DENIED else f"{state}, some after {AFTER[before]}"


def _read_moment(request: HttpRequest) -> datetime | None:
    """The moment that the address names: now, or a time with its zone; None where it names none that can be read."""
    text = request.GET.get("as_of", "")
    if text == "now":
        return timezone.now()
    try:
        at = parse_datetime(text)
    except ValueError:
        return None
    return at if at is not None and timezone.is_aware(at) else None


def _read_place(request: HttpRequest, conversation: Conversation) -> tuple[bytes, uuid.UUID] | None:
    text = request.GET.get("after", "")
    if not text:
        return None
    task = or_404(find_task(conversation=conversation, task_id=or_404(parse_id(text))))
    return bytes(task.place), task.pk


def _say_time(times: Times) -> dict[str, Any]:
    return {
        "measured": times.measured,
        "median": say_seconds(times.median),
        "p95": say_seconds(times.p95) if times.measured > 1 else "",
    }


def say_seconds(seconds: float | None) -> str:
    """A span of time in words; below ten seconds with its tenths, where it has any. Empty for None."""
    if seconds is None:
        return ""
    if seconds < 10 and round(seconds, 1) % 1:
        return f"{seconds:.1f} s"
    return write_elapsed(timedelta(seconds=round(seconds)))


def _make_lines(
    tasks: Sequence[Task],
    moment: datetime | None,
    membership: Membership,
    conversation: Conversation,
    denied: Collection[tuple[uuid.UUID, int]],
) -> list[dict[str, Any]]:
    shown = {task.pk: _choose_steps(read_steps(task.steps)) for task in tasks}
    keys = [bytes(task.within_key) for task in tasks if task.within_key]
    wholes = find_tasks_by_keys(conversation=conversation, keys=keys)
    ids = {step.message_id for first, last in shown.values() for step in (*first, *last)}
    ids |= {task.request for task in (*tasks, *wholes.values()) if task.request}
    messages = find_messages_by_ids(workspace=membership.workspace, message_ids=list(ids))
    maker = _Maker(messages, wholes, moment, membership.workspace.slug, cast_conversation(conversation), denied)
    return [maker.make(task, *shown[task.pk]) for task in tasks]


def _choose_steps(steps: Sequence[Step]) -> tuple[Sequence[Step], Sequence[Step]]:
    return (steps, ()) if len(steps) <= 2 * MAX_STEPS else (steps[:MAX_STEPS], steps[-MAX_STEPS:])


@dataclass
class _Maker:
    _messages: Mapping[uuid.UUID, Message]
    _wholes: Mapping[bytes, Task]
    _moment: datetime | None
    _slug: str
    _cast: Cast
    # The places of the messages whose data deny the end that they report.
    _denied: Collection[tuple[uuid.UUID, int]]

    def __post_init__(self) -> None:
        self._said = mark_sentences(self._messages.values())

    def make(self, task: Task, first: Sequence[Step], last: Sequence[Step]) -> dict[str, Any]:
        asked = self._messages.get(task.request) if task.request else None
        whole = self._wholes.get(bytes(task.within_key)) if task.within_key else None
        stands = str(getattr(task, "stands", task.state))
        is_standing = task.state in STANDING
        outcome = self._say_outcome(stands, (*first, *last))
        is_denied = not outcome and self._is_denied(stands, (*first, *last))
        return {
            "anchor": make_task_anchor(task),
            "row": task,
            "title": self._name(task),
            "url": self._link(asked.pk) if asked else "",
            "stands": stands,
            "outcome": say_doubt(stands, DENIED) if is_denied else outcome,
            "is_denied": is_denied,
            "requester": self._find_agent(task.requester),
            "performer": self._find_agent(task.performer),
            "delegate": self._find_agent(task.delegate),
            "is_delegated": any(step.event == "delegated" for step in (*first, *last)),
            "asked_at": asked.order_time if asked else None,
            "acknowledged_after": say_seconds(task.acknowledge_seconds),
            "finished_after": say_seconds(task.finish_seconds),
            "has_finished": not is_standing,
            "silent_for": self._say_silence(task) if is_standing else "",
            "is_late": bool(task.deadline_at and task.finished_at and task.finished_at > task.deadline_at),
            "part_of": (self._name(whole) or whole.native_id or "another task") if whole else "",
            "part_of_url": self._link(whole.request) if whole and whole.request else "",
            "first_steps": [self._make_step(step) for step in first],
            "last_steps": [self._make_step(step) for step in last],
            "steps_between": max(0, task.step_count - len(first) - len(last)),
        }

    def _name(self, task: Task) -> str:
        asked = self._messages.get(task.request) if task.request else None
        return shorten(asked.topic or self._said[asked.pk], MAX_NAME_LENGTH) if asked else ""

    def _say_outcome(self, stands: str, steps: Sequence[Step]) -> str:
        """An end that is not what its state alone says; empty where it is: turned down, or reversed, and how much
        later that came."""
        if not steps or steps[-1].state != stands:
            return ""
        if steps[-1].event == TURNED_DOWN:
            return "turned down"
        if len(steps) < 2:
            return ""
        before, step = steps[-2:]
        after = _REVERSED.get((END_OF.get(before.event, ""), END_OF.get(step.event, "")))
        # A failure that says that it may be tried again was no end.
        if after is None or before.event == "failed-for-now":
            return ""
        earlier, later = self._messages.get(before.message_id), self._messages.get(step.message_id)
        gap = later.order_time - earlier.order_time if earlier and later else None
        return f"{stands}, after {after}{f' ({write_elapsed(gap)} later)' if gap else ''}"

    def _is_denied(self, stands: str, steps: Sequence[Step]) -> bool:
        """Whether the data of the message that ended it so deny that."""
        if not steps or steps[-1].state != stands or stands not in ENDED:
            return False
        message = self._messages.get(steps[-1].message_id)
        return message is not None and (message.record_id, message.part) in self._denied

    def _say_silence(self, task: Task) -> str:
        if self._moment is None or self._moment - task.last_at <= STALLED_AFTER:
            return ""
        return write_elapsed(self._moment - task.last_at)

    def _find_agent(self, name: str) -> AgentMark | None:
        return self._cast.find(name) if name else None

    def _link(self, message_id: uuid.UUID) -> str:
        return reverse("pages:message", args=[self._slug, message_id])

    def _make_step(self, step: Step) -> dict[str, Any]:
        message = self._messages.get(step.message_id)
        exact = _EXACT.get((step.event, message.performative)) if message else None
        return {
            "at": message.order_time if message else None,
            "agent": self._find_agent(message.sender) if message else None,
            "about": exact or EVENTS.get(step.event, step.event),
            "state": step.state,
            "is_turned_down": step.event == TURNED_DOWN,
            "url": self._link(message.pk) if message else "",
            "number": message.number if message else 0,
            "why": LINKS.get(step.link, ""),
        }


def make_task_anchor(task: Task) -> str:
    """Where a task stands on its page."""
    return f"t-{task.pk.hex[:12]}"
