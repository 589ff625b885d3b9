"""Milestones: ends that a conversation had before, kept so that settling can go back to one of them.

What is appended is settled from the end. What is late by a little is settled from the last milestone before it,
together with what came after that: as if all of it had only now been added. So a milestone holds what was carried there
(`carries`), and how the rows that settling has overwritten since stood there (`past`). They are few, and the further
back the sparser: of what is late by some messages, a few times as many are settled again.

They hold as long as what lies before them does: whatever settles a conversation from its beginning drops them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from django.db import connection
from django.db.models import Q

from ..models import Carry, Conversation, Task
from ..placing.nodes import StoredNode, Timeline, load_timelines
from ..uncertainty import UncertainError
from .carries import Start, is_before, is_current, read_carry
from .past import read_stood, write_stood

if TYPE_CHECKING:
    from .hindsight import Hindsight

# So many messages are settled again rather than all of a conversation, however short it is; of a longer one, half.
MOST_BACK: Final = 4000
# A milestone that would hold more of what has changed since is none.
MOST_BYTES: Final = 2 * 1024 * 1024


def find_furthest(count: int) -> int:
    """So many messages from the end at most settling goes back in a conversation of so many."""
    return max(MOST_BACK, count // 2)


def load_ends(conversations: Iterable[Conversation]) -> dict[uuid.UUID, Start]:
    """The ends of these conversations, of those that can be gone on with."""
    current = {each.pk: each for each in conversations if is_current(each)}
    if not current:
        return {}
    wanted = Q()
    for each in current.values():
        wanted |= Q(conversation_id=each.pk, generation=each.settled_generation)
    found = {}
    rows = Carry.objects.filter(wanted).values_list("conversation_id", "generation", "data", "border")
    for pk, generation, data, border in rows:
        written = read_carry(data)
        if written is not None:
            found[pk] = Start(generation, written, bytes(border), current[pk])
    return found


def go_back(conversation: Conversation, end: Start, node: StoredNode) -> Start:
    """The last milestone before a message that is late.

    Raises:
        UncertainError: where there is none.
    """
    rows = Carry.objects.filter(conversation=conversation, generation__lt=end.generation, stood__isnull=False)
    changed: dict[uuid.UUID, Task] = {}
    for each in rows.order_by("-generation"):
        row, tasks = read_stood(conversation, bytes(each.stood or b""))
        # How a task stood at the earlier of two is how it stood before it changed first.
        changed |= tasks
        written = read_carry(each.data) if each.reached <= node.instant else None
        if written is not None and is_before(written, node):
            border = bytes(each.border)
            there = {pk: task for pk, task in changed.items() if bytes(task.place) < border}
            return Start(each.generation, written, border, row, there, is_milestone=True)
    raise UncertainError


def load_since(conversation: Conversation, start: Start) -> Timeline:
    """The nodes that come after where settling starts, those that were placed among them."""
    timeline = load_timelines([], since={conversation.pk: start.since})[conversation.pk]
    timeline.nodes = [node for node in timeline.nodes if start.precedes(node)]
    return timeline


def keep_milestones(starts: Mapping[Conversation, Start], changing: Mapping[uuid.UUID, Sequence[uuid.UUID]]) -> None:
    """Keep where these conversations were gone on from, and drop what does not hold any more.

    Call inside the transaction that holds them, before anything of theirs is overwritten.

    Args:
        starts: where each was gone on from.
        changing: by the ids of conversations, those of the tasks that are about to be written.
    """
    ids = [pk for each in starts for pk in changing[each.pk] if pk not in starts[each].tasks]
    stored = Task.objects.in_bulk(ids)
    for conversation, start in starts.items():
        own = Carry.objects.filter(conversation=conversation)
        found = (stored.get(pk) for pk in changing[conversation.pk] if pk not in start.tasks)
        tasks = dict(start.tasks) | {task.pk: task for task in found if task and bytes(task.place) < start.border}
        own.filter(generation__gt=start.generation).delete()
        stood = write_stood(start.row, tasks)
        if is_too_much(stood):
            _drop_up_to(conversation, start.generation)
            continue
        own.filter(generation=start.generation).update(stood=stood)


def thin_out(conversation: Conversation, count: int) -> None:
    """Drop those milestones that are too far back, or closer to each other than they are to the end.

    Args:
        conversation: the conversation.
        count: how many messages it has.
    """
    rows = list(
        Carry.objects.filter(conversation=conversation, stood__isnull=False)
        .order_by("-count", "-generation")
        .values_list("pk", "count")
    )
    far = [pk for pk, held in rows if count - held > find_furthest(count)]
    if far:
        Carry.objects.filter(pk__in=far).delete()
    near = [row for row in rows if row[0] not in far]
    at = 1
    while at < len(near) - 1:
        newer, older = near[at - 1][1], near[at + 1][1]
        if count - older > 3 * (count - newer):
            at += 1
        elif _join(conversation, near[at + 1][0], near[at][0]):
            del near[at]
        else:
            return


def is_too_much(stood: bytes) -> bool:
    """Whether so much has changed since a milestone that it is none."""
    return len(stood) > MOST_BYTES


def _drop_up_to(conversation: Conversation, generation: int) -> None:
    """Drop a milestone whose changes are too much, and without these nothing before it can be gone back to either."""
    Carry.objects.filter(conversation=conversation, generation__lte=generation).delete()


def _join(conversation: Conversation, older: int, newer: int) -> bool:
    """Drop a milestone: what has changed since it is what has changed since the one before it.

    Returns:
        whether that one is still there; if it is too much, both are gone, and all before them.
    """
    rows = Carry.objects.only("stood", "border", "generation").in_bulk([older, newer])
    row, tasks = read_stood(conversation, bytes(rows[older].stood or b""))
    _, later = read_stood(conversation, bytes(rows[newer].stood or b""))
    border = bytes(rows[older].border)
    stood = write_stood(row, {pk: task for pk, task in (later | tasks).items() if bytes(task.place) < border})
    if is_too_much(stood):
        _drop_up_to(conversation, rows[newer].generation)
        return False
    Carry.objects.filter(pk=older).update(stood=stood)
    Carry.objects.filter(pk=newer).delete()
    return True


def write_ends(rows: Sequence[tuple[Conversation, int, int, bytes, bytes]]) -> None:
    """Write what these conversations carry over their ends.

    Args:
        rows: each conversation as it was loaded, and what `write_carry` gave of it.
    """
    if not rows:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO threads_carry (conversation_id, workspace_id, generation, reached, count, border, data)
            SELECT * FROM unnest(%s::uuid[], %s::uuid[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bytea[],
                                 %s::bytea[])
            """,
            [
                list(column)
                for column in zip(
                    *((each.pk, each.workspace_id, each.generation, *said) for each, *said in rows), strict=True
                )
            ],
        )


def write_milestones(found: Mapping[Conversation, Hindsight]) -> None:
    """Write milestones that were found after the fact, the latest of their conversations."""
    for conversation, each in found.items():
        Carry.objects.create(
            conversation=conversation,
            workspace_id=conversation.workspace_id,
            # That of its end is greater, and the end of that generation does not hold any more.
            generation=conversation.settled_generation,
            reached=each.reached,
            count=each.count,
            border=each.border,
            data=each.carried,
            stood=each.stood,
        )


def drop_all(conversation_ids: Iterable[uuid.UUID]) -> None:
    """Forget what these conversations carry."""
    Carry.objects.filter(conversation_id__in=list(conversation_ids)).delete()
