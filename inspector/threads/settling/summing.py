"""What a conversation's row says of its messages, gathered from its placed and told nodes."""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from inspector.intake.bulk import update_rows
from inspector.intake.text import make_storable

from ..models import Conversation, Message
from ..placing.nodes import StoredNode, Timeline
from ..placing.several import count_bearers
from ..tasks.ledger import TaskRow, make_rows, write_tasks
from ..tasks.lifecycle import derive_state
from ..tasks.plays import list_states, play_tasks
from .tallies import ASKING, GREETING, count_nodes, write_tally

_COLUMNS = (
    "id",
    "settled_generation",
    "settled_at",
    "settled_digest",
    "state",
    "subject",
    "agents",
    "dialects",
    "message_count",
    "missing_count",
    "severity",
    "tally",
    "first_at",
    "last_at",
)


@dataclass(frozen=True, slots=True)
class Sum:
    """What one conversation's row takes, and its tasks' rows; `subject_of` is the message whose topic it is about."""

    conversation: Conversation
    digest: bytes
    state: str
    subject_of: uuid.UUID | None
    agents: list[str]
    dialects: list[str]
    message_count: int
    missing_count: int
    severity: int
    tally: str
    first_at: datetime | None
    last_at: datetime | None
    tasks: Sequence[TaskRow]


def sum_nodes(conversation: Conversation, timeline: Timeline, *, hidden: int) -> Sum:
    """What the conversation's row says once its nodes are placed and told, in the order of its timeline.

    Args:
        conversation: the row as it was.
        timeline: its nodes.
        hidden: how many more messages a withdrawal hides.
    """
    nodes = timeline.nodes
    plays = play_tasks(nodes)
    agents: Counter[str] = Counter()
    dialects: Counter[str] = Counter()
    for node in nodes:
        agents.update(name for name in (node.sender, *node.receivers) if name)
        dialects[node.dialect] += 1
    return Sum(
        conversation=conversation,
        digest=digest_nodes(nodes),
        state=derive_state(*list_states(plays)),
        subject_of=_find_subject(nodes),
        agents=list(agents),
        dialects=[name for name, _ in dialects.most_common()],
        message_count=len(nodes),
        missing_count=len({node.ghost for node in nodes if node.ghost and not count_bearers(node.why)}),
        severity=max((node.severity for node in nodes), default=0),
        tally=make_storable(write_tally(count_nodes(nodes, list(agents), hidden=hidden))),
        first_at=timeline.first_at,
        last_at=timeline.last_at,
        tasks=list(make_rows(plays, nodes)),
    )


def digest_nodes(nodes: Iterable[StoredNode]) -> bytes:
    """SHA-256 over what a reader sees of a conversation: its messages as told, in order, and what each answers.

    A parent stands by its place, or by the content of its record where it is in another conversation; so that nothing
    changes where only ids do.
    """
    digest = hashlib.sha256()
    for node in nodes:
        parent = node.parent_elsewhere if node.parent_at is None else node.parent_at
        said = (node.run, parent, node.cited, node.ghost is None, node.basis, node.why, node.told_digest)
        digest.update(repr(said).encode("utf-8", "backslashreplace"))
    return digest.digest()


def _find_subject(nodes: Sequence[StoredNode]) -> uuid.UUID | None:
    """What is asked for names a conversation better than what is announced before it."""
    named = [node for node in nodes if node.has_topic and node.performative not in GREETING]
    asked = next((node for node in named if node.performative in ASKING), None)
    best = asked or (named[0] if named else None)
    return best.id if best else None


def write_sums(sums: Sequence[Sum]) -> None:
    """Write the rows of these conversations; call inside the transaction that holds them."""
    ids = [each.subject_of for each in sums if each.subject_of]
    topics = dict(Message.objects.filter(pk__in=ids).values_list("id", "topic")) if ids else {}
    now = timezone.now()
    rows = [
        (
            each.conversation.pk,
            each.conversation.generation,
            now,
            each.digest,
            each.state,
            topics.get(each.subject_of, "")[:500] if each.subject_of else "",
            each.agents,
            each.dialects,
            each.message_count,
            each.missing_count,
            each.severity,
            each.tally,
            each.first_at,
            each.last_at,
        )
        for each in sums
    ]
    update_rows(model=Conversation, columns=_COLUMNS, rows=rows)
    write_tasks([(each.conversation, each.tasks) for each in sums])
