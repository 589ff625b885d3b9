"""What a conversation's row says of its messages, gathered from its placed and told nodes."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from inspector.intake.bulk import update_rows
from inspector.intake.text import make_storable

from ..models import Conversation, Message, Task
from ..placing.nodes import StoredNode, Timeline
from ..placing.places import BEYOND
from ..tasks.found import make_task_id
from ..tasks.ledger import TaskRow, copy_row, make_row, write_tasks
from ..tasks.lifecycle import derive_state
from ..tasks.plays import Play
from .counts import Counts, Standing
from .reckoning import Reckoned, reckon
from .tallies import write_tally

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
class Before:
    """What was summed up before the nodes that come now: how its row stood and counts, how the tasks that they may
    belong to stood, and which of the messages that they miss were missing already. `changed` are the tasks that have
    changed since, by id, as they stood before that; what begins at the `border` or later was not there."""

    row: Conversation
    changed: Mapping[uuid.UUID, Task]
    border: bytes
    counts: Counts
    standings: Mapping[Play, Standing | None]
    missing: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True)
class Sum:
    """What one conversation's row takes, and its tasks' rows; `subject_of` is the message whose topic it is about.

    `is_whole` is False where the tasks are those alone that something was added to, and all of those that begin at the
    place `since` or later. `subject` is what it was about before.
    """

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
    counts: Counts
    subject: str = ""
    is_whole: bool = True
    since: bytes = b""

    def list_tasks(self) -> list[uuid.UUID]:
        """The ids of the tasks whose rows it gives."""
        return [make_task_id(self.conversation.pk, row[0]) for row in self.tasks]


def sum_nodes(
    conversation: Conversation, timeline: Timeline, plays: Sequence[Play], *, hidden: int, before: Before | None = None
) -> Sum:
    """What the conversation's row says once its nodes are placed and told, in the order of its timeline.

    Args:
        conversation: the row as it was.
        timeline: its nodes, or those that come after all that it sums up already.
        plays: its tasks as they were played, or those that the nodes may belong to.
        hidden: how many more messages a withdrawal hides.
        before: what it sums up already; None where the nodes are all of it.
    """
    nodes = timeline.nodes
    reckoned = reckon(
        before.row if before is not None else Conversation(),
        before.counts if before is not None else Counts(),
        (),
        nodes,
        standings=_count_standings(plays, before),
        missing=before.missing if before is not None else (),
        hidden=hidden,
        end=before.border if before is not None else b"",
    )
    tasks = [make_row(play) for play in plays if play.message_count and (before is None or play.is_touched)]
    others = dict(before.changed) if before is not None else {}
    for task in tasks:
        others.pop(make_task_id(conversation.pk, task[0]), None)
    return _make_sum(
        conversation,
        reckoned,
        [*tasks, *map(copy_row, others.values())],
        subject=before.row.subject if before is not None else "",
        since=before.border if before is not None else b"",
        is_whole=before is None,
    )


def change_sum(
    conversation: Conversation,
    counts: Counts,
    old: Sequence[StoredNode],
    new: Sequence[StoredNode],
    *,
    standings: Mapping[Standing, int],
    ghosts: Collection[bytes],
    hidden: int,
    tasks: Sequence[TaskRow] = (),
) -> Sum:
    """What the conversation's row says once a stretch of its timeline has come out otherwise.

    Args:
        conversation: the row as it stands.
        counts: what is carried beside it.
        old: the messages of the stretch as they were, placed and told, in the order of the timeline. Nobody outside it
            stands between two of them, has the time of one of them, or has another place now.
        new: those that are there now.
        standings: by how many more of its tasks stand so.
        ghosts: which of the ids that are missing in either are missing in messages outside the stretch as well.
        hidden: how many messages a withdrawal hides.
        tasks: the rows of the tasks that came out otherwise.

    Raises:
        UncertainError: where that is not known.
    """
    reckoned = reckon(conversation, counts, old, new, standings=standings, missing=ghosts, hidden=hidden)
    return _make_sum(conversation, reckoned, tasks, subject=conversation.subject, since=BEYOND, is_whole=False)


def _make_sum(
    conversation: Conversation,
    reckoned: Reckoned,
    tasks: Sequence[TaskRow],
    *,
    subject: str,
    since: bytes,
    is_whole: bool,
) -> Sum:
    counts = reckoned.counts
    states: tuple[set[str], set[str]] = (set(), set())
    for is_part, state in counts.standings:
        states[is_part].add(state)
    # The commonest first, and of as many messages the one that was spoken first.
    dialects = sorted(counts.dialects, key=lambda name: -counts.dialects[name].messages)
    return Sum(
        conversation=conversation,
        digest=counts.settled.seal(),
        state=derive_state(*states),
        subject_of=reckoned.subject_of,
        agents=reckoned.agents,
        dialects=dialects,
        message_count=reckoned.message_count,
        missing_count=reckoned.missing_count,
        severity=max(reckoned.tally.severities, default=0),
        tally=make_storable(write_tally(reckoned.tally)),
        first_at=reckoned.first_at,
        last_at=reckoned.last_at,
        tasks=tasks,
        counts=counts,
        subject=subject,
        is_whole=is_whole,
        since=since,
    )


def _count_standings(plays: Sequence[Play], before: Before | None) -> Counter[Standing]:
    """By how many more tasks stand so than before."""
    changed: Counter[Standing] = Counter()
    for play in plays:
        standing, was = play.standing, before.standings.get(play) if before is not None else None
        if standing != was:
            changed.update([standing] if standing else ())
            changed.subtract([was] if was else ())
    return changed


def make_conversation(summed: Sum) -> Conversation:
    """The row of a conversation as it would be; it is not to be saved."""
    return Conversation(
        pk=summed.conversation.pk,
        settled_digest=summed.digest,
        subject=_name_subject(summed, _read_topics([summed])),
        state=summed.state,
        agents=summed.agents,
        dialects=summed.dialects,
        message_count=summed.message_count,
        missing_count=summed.missing_count,
        severity=summed.severity,
        tally=summed.tally,
        first_at=summed.first_at,
        last_at=summed.last_at,
    )


def write_sums(sums: Sequence[Sum]) -> None:
    """Write the rows of these conversations; call inside the transaction that holds them."""
    topics = _read_topics(sums)
    now = timezone.now()
    rows = [
        (
            each.conversation.pk,
            each.conversation.generation,
            now,
            each.digest,
            each.state,
            _name_subject(each, topics),
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
    write_tasks(
        [(each.conversation, each.tasks) for each in sums],
        since={each.conversation.pk: each.since for each in sums if not each.is_whole},
    )


def _read_topics(sums: Sequence[Sum]) -> dict[uuid.UUID, str]:
    ids = [each.subject_of for each in sums if each.subject_of]
    return dict(Message.objects.filter(pk__in=ids).values_list("id", "topic")) if ids else {}


def _name_subject(each: Sum, topics: Mapping[uuid.UUID, str]) -> str:
    if each.subject_of is not None:
        return topics.get(each.subject_of, "")[:500]
    return each.subject
