"""Pictures of everything that settling decides, by which two ways to the same set of messages are compared."""

from __future__ import annotations

import json
import uuid
from typing import Any

from inspector.audit.models import Finding
from inspector.intake.models import Delivery, Job, Record, Withdrawal
from inspector.threads.models import (
    AgentTotal,
    Conversation,
    Declaration,
    Exchange,
    Message,
    PairTotal,
    Task,
    Trace,
)
from inspector.threads.tasks import read_steps
from inspector.threads.timeline import load_places
from inspector.threads.trees import Tree

from ..browsing.test_agents import check_totals
from .plain_trees import read_lines


def picture() -> dict[str, Any]:
    """Everything that settling decides, each message and record named by what it is and not by its random id."""
    records = {str(record.pk): bytes(record.identity).hex() for record in Record.objects.all()}
    names = {message.pk: f"{records[str(message.record_id)]}/{message.part}" for message in Message.objects.all()}
    shown: dict[str, Any] = {}
    check_totals()
    for conversation in Conversation.objects.select_related("channel"):
        assert conversation.is_settled
        rows = []
        places = load_places(conversation)
        assert places.count == conversation.message_count
        for message in Message.objects.shown().filter(conversation=conversation).order_by("place"):
            body = message.body
            for pk, identity in records.items():
                body = body.replace(pk, identity)
            rows.append(
                (
                    names[message.pk],
                    (
                        places.find_position(message.place),
                        message.run,
                        message.dialect,
                        message.severity,
                        message.is_sealed,
                        bool(message.task),
                    ),
                    names.get(message.parent) if message.parent else None,
                    (bytes(message.parent_key or b"").hex(), message.parent_basis, message.parent_why),
                    (message.english, body, message.words, message.atoms),
                    bytes(message.told_digest or b"").hex(),
                )
            )
        tree = draw(conversation, names)
        shown[f"{conversation.channel.name} {bytes(conversation.key).hex()}"] = {
            "rows": rows,
            "tree": tree,
            "tasks": list_tasks(conversation, names),
            "findings": list_findings(conversation, records),
            "counted": {model.__name__: list_counted(model, conversation) for model in (Exchange, Declaration)},
            "sum": (
                bytes(conversation.settled_digest or b"").hex(),
                (conversation.state, conversation.subject, conversation.agents, conversation.dialects),
                (conversation.message_count, conversation.missing_count, conversation.severity),
                (conversation.first_at, conversation.last_at),
            ),
        }
    return shown


def list_tasks(conversation: Conversation, names: dict[uuid.UUID, str]) -> list[tuple[Any, ...]]:
    """The rows of the tasks, each task and message named by what it is."""
    tasks = list(conversation.tasks.order_by("place", "native_id"))
    by_key = {bytes(task.key): task.native_id or names.get(task.request, "") for task in tasks if task.request}
    told = ("id", "key", "within_key", "request", "steps", "place", "conversation", "workspace", "channel")
    places = load_places(conversation)
    return [
        (
            names.get(task.request) if task.request else None,
            places.find_position(task.place),
            by_key.get(bytes(task.within_key)) if task.within_key else None,
            [(names[step.message_id], step.event, step.state, step.link) for step in read_steps(task.steps)],
            *(getattr(task, column.name) for column in Task._meta.fields if column.name not in told),
        )
        for task in tasks
    ]


def list_findings(conversation: Conversation, records: dict[str, str]) -> list[tuple[Any, ...]]:
    """The findings that hold, each record named by what it is. Those that ended depend on what was seen in between."""
    return sorted(
        (
            (finding.rule, records[str(finding.record_id)], finding.part, bytes(finding.key).hex()),
            (finding.severity, finding.text, finding.cites, finding.span, finding.sender, finding.is_suppressed),
            (str(finding.at), str(finding.due_at), finding.is_due),
            [(records[str(uuid.UUID(record))], part) for record, part, *_ in json.loads(finding.related or "[]")],
        )
        for finding in Finding.objects.filter(conversation=conversation, holds=True)
    )


def list_counted(model: type[Exchange | Declaration], conversation: Conversation) -> list[str]:
    """What is counted of a conversation, without whose it is."""
    told = ("id", "workspace", "channel", "message", "conversation")
    names = [column.name for column in model._meta.fields if column.name not in told]
    return sorted(map(str, model.objects.filter(conversation=conversation).values_list(*names)))


def draw(owner: Conversation | Trace, names: dict[uuid.UUID, str]) -> list[tuple[Any, ...]]:
    """The lines of a tree, each message named by what it is."""
    return [
        (names.get(line.id, line.kind), depth, (line.start, line.end), line.outcome, line.severity)
        for depth, line in read_lines(Tree(owner))
    ]


def differences(one: Any, other: Any, at: str = "") -> list[str]:
    """Where two pictures differ."""
    if type(one) is not type(other):
        return [f"{at}: {one!r} != {other!r}"]
    if isinstance(one, dict):
        return [
            d for key in one.keys() | other.keys() for d in differences(one.get(key), other.get(key), f"{at}.{key}")
        ]
    if isinstance(one, (list, tuple)):
        if len(one) != len(other):
            return [f"{at}: {len(one)} != {len(other)}: {one!r:.300} {other!r:.300}"]
        return [d for n, (a, b) in enumerate(zip(one, other, strict=True)) for d in differences(a, b, f"{at}[{n}]")]
    return [] if one == other else [f"{at}: {one!r:.400} != {other!r:.400}"]


def forget() -> None:
    """Empty the tables."""
    for model in (Job, Message, Conversation, Trace, Record, Withdrawal, Delivery, AgentTotal, PairTotal):
        model._default_manager.all().delete()
