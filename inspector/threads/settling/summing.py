"""What a conversation's row says of its messages, gathered from its placed and told nodes."""

from __future__ import annotations

import base64
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils import timezone

from inspector.intake.bulk import update_rows
from inspector.intake.text import make_storable

from ..models import Conversation, Message, Task
from ..multiset import Multiset, read_multiset
from ..placing.nodes import StoredNode, Timeline
from ..placing.several import count_bearers
from ..tasks.found import make_task_id
from ..tasks.ledger import TaskRow, copy_row, make_row, write_tasks
from ..tasks.lifecycle import derive_state
from ..tasks.plays import Play
from .digests import Moment, find_latest, list_elements
from .tallies import ASKING, GREETING, add_tallies, count_nodes, read_tally, write_tally

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

# How a task stands: whether another gave rise to it, and its state. See `Play.standing`.
Standing = tuple[bool, str]


@dataclass(slots=True)
class Counts:
    """What a conversation's row does not say of what it sums up, and what is needed to go on with it.

    `dialects` counts messages, in the order in which their dialects were first spoken; `standings` counts tasks.
    `severities` are those of the gravest messages, by their places in hexadecimal. `named` is 2 where its subject is
    that of what asked first, 1 of what was said first, 0 where it has none. `latest` is the time of its latest
    messages, and `settled` what its digest is of: see `digests`.
    """

    dialects: Counter[str] = field(default_factory=Counter)
    standings: Counter[Standing] = field(default_factory=Counter)
    severities: dict[str, int] = field(default_factory=dict)
    named: int = 0
    latest: Moment | None = None
    settled: Multiset = field(default_factory=Multiset)

    def write(self) -> dict[str, Any]:
        """They as JSON takes them."""
        return {
            "dialects": dict(self.dialects),
            "standings": [[*standing, count] for standing, count in self.standings.items() if count],
            "severities": self.severities,
            "named": self.named,
            "latest": self.latest,
            "settled": base64.b64encode(self.settled.write()).decode(),
        }

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Counts:
        """What `write` wrote."""
        standings = Counter({(is_part, state): count for is_part, state, count in written["standings"]})
        return cls(
            Counter(written["dialects"]),
            standings,
            dict(written["severities"]),
            written["named"],
            Moment(*written["latest"]) if written["latest"] else None,
            read_multiset(base64.b64decode(written["settled"])),
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
    row = before.row if before is not None else Conversation()
    counts = before.counts if before is not None else Counts()
    agents = dict.fromkeys(row.agents)
    for node in nodes:
        agents.update(dict.fromkeys(name for name in (node.sender, *node.receivers) if name))
        counts.dialects[node.dialect] += 1
    for play in plays:
        standing, was = play.standing, before.standings.get(play) if before is not None else None
        if standing != was:
            counts.standings.update([standing] if standing else ())
            counts.standings.subtract([was] if was else ())
    subject_of, named = _find_subject(nodes)
    if named > counts.named:
        counts.named = named
    else:
        subject_of = None
    tally = count_nodes(nodes, list(agents), hidden=hidden)
    grave = ((node.place.hex(), node.severity) for node in nodes if node.severity >= Message.Severity.WARNING)
    severities = {place: severity for place, severity in grave if place in tally.gravest}
    if before is not None:
        severities |= counts.severities
        tally = add_tallies(read_tally(row.tally), tally, list(agents), severities, hidden=hidden)
    counts.severities = {place: severities[place] for place in tally.gravest}
    missing = {node.ghost for node in nodes if node.ghost and not count_bearers(node.why)}
    missing -= before.missing if before is not None else set()
    states: tuple[set[str], set[str]] = (set(), set())
    for (is_part, state), count in counts.standings.items():
        if count:
            states[is_part].add(state)
    counts.settled = counts.settled.add(list_elements(nodes, counts.latest))
    counts.latest = find_latest(nodes, counts.latest)
    tasks = [make_row(play) for play in plays if play.message_count and (before is None or play.is_touched)]
    others = dict(before.changed) if before is not None else {}
    for task in tasks:
        others.pop(make_task_id(conversation.pk, task[0]), None)
    return Sum(
        conversation=conversation,
        digest=counts.settled.seal(),
        state=derive_state(*states),
        subject_of=subject_of,
        agents=list(agents),
        dialects=[name for name, _ in counts.dialects.most_common()],
        message_count=row.message_count + len(nodes),
        missing_count=row.missing_count + len(missing),
        severity=max((row.severity, *(node.severity for node in nodes))),
        tally=make_storable(write_tally(tally)),
        first_at=row.first_at or timeline.first_at,
        last_at=timeline.last_at or row.last_at,
        tasks=[*tasks, *map(copy_row, others.values())],
        counts=counts,
        subject=row.subject,
        is_whole=before is None,
        since=before.border if before is not None else b"",
    )


def _find_subject(nodes: Sequence[StoredNode]) -> tuple[uuid.UUID | None, int]:
    """What is asked for names a conversation better than what is announced before it: a message, and `Counts.named`."""
    named = [node for node in nodes if node.has_topic and node.performative not in GREETING]
    asked = next((node for node in named if node.performative in ASKING), None)
    best = asked or (named[0] if named else None)
    return best.id if best else None, 2 if asked else 1 if best else 0


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
