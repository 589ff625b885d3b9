"""Late messages of a long conversation, settled with the stretches around them and nothing else of it.

Those stretches are gone through twice (`window`): as they were, and with what is late. Where the two leave behind
states that differ in nothing that a later stretch has read, all that comes after comes out as it did. So rows, tasks,
the tree and what the conversation's row sums up are changed by what the two say differently, at a cost that has nothing
to do with how long the conversation is.

What cannot be known in this way is settled as before: from a milestone, or from the beginning.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Final

from django.db.models import Min

from dialects import get_dialect

from ..agents.exchanges import gather_exchanges, write_exchanges
from ..hidden import count_hidden_by_conversation
from ..models import Carry, Conversation, Lack, Message, Stretch, Task
from ..opening.opener import ask_opening
from ..placing.nodes import StoredNode, load_timelines
from ..placing.numbering import load_places, write_directories
from ..placing.places import BEYOND, Places
from ..reads import sees
from ..tasks.replaying import Replayed, replay_tasks
from ..telling.shelves import write_shelves
from ..telling.wordings import note_rest
from ..trees.changes import Change, Was, find_anchor
from ..trees.changing import Alteration, change_trees
from ..trees.growing import UngrowableError
from ..uncertainty import UncertainError
from .alone import Fence, hold_alone
from .carries import MOST_AWAITED, MOST_UNMET, Start, pack_carry, write_carry
from .counts import Counts
from .courses import find_missing, read_awaited
from .milestones import go_back, load_ends, write_ends
from .stretches import LEAST_LONG, SPACING, drop_stretches, find_readers, note_lacking, read_running
from .summing import Sum, change_sum, write_sums
from .window import Window
from .writing import make_shoot, write_changes

# So many messages are settled in this way at once.
MOST_COMING: Final = 500
# What is late by less is settled from a milestone, where there is one.
_NEAR: Final = 2 * SPACING


def settle_late(conversation: Conversation, *, fence: Fence, finish: Callable[[], None]) -> bool:
    """Settle what has come late into a conversation, where that can be done by itself.

    Where more has come that is not late, that is left: the conversation is settled up to the generation before this
    one then, and goes on from there.

    Args:
        conversation: the row; its generation as loaded is what this run settles. What is written in it is loaded anew.
        fence: called inside the writing transaction and as a sign of life; raises when another worker has taken over.
        finish: called inside the transaction, so that the job ends together with its work.

    Returns:
        whether all is done.
    """
    if conversation.message_count < LEAST_LONG or not _has_late(conversation):
        return False
    end = load_ends([conversation]).get(conversation.pk)
    if end is None or end.written["read"] is None:
        return False
    coming = load_timelines([], new_in=[conversation.pk])[conversation.pk].nodes
    late = [node for node in coming if not end.precedes(node)]
    if not late or len(late) > MOST_COMING:
        return False
    stored = load_places(conversation)
    if not stored.count == end.written["count"] == conversation.message_count or _is_near(conversation, end, late[0]):
        return False
    try:
        window = _find_window(conversation, end, stored, late, coming, fence)
        is_all = window.until == BEYOND or len(late) == len(coming)
        if is_all:
            _write(conversation, end, window, fence, finish)
        else:
            _write_part(conversation, end, window, fence)
    except (UncertainError, UngrowableError):
        return False
    return is_all


def _has_late(conversation: Conversation) -> bool:
    """Whether what has come now is older than the last message; to ask is cheaper than to load what is carried."""
    rows = Message.objects.filter(conversation=conversation, place__isnull=True)
    earliest = rows.aggregate(earliest=Min("order_time"))["earliest"]
    return earliest is not None and conversation.last_at is not None and earliest <= conversation.last_at


def _is_near(conversation: Conversation, end: Start, node: StoredNode) -> bool:
    """Whether a milestone that is not far from the end is before a message."""
    try:
        start = go_back(conversation, end, node)
    except UncertainError:
        return False
    return int(end.written["count"]) - int(start.written["count"]) <= _NEAR


def _find_window(
    conversation: Conversation,
    end: Start,
    stored: Places,
    late: Sequence[StoredNode],
    coming: Sequence[StoredNode],
    fence: Fence,
) -> Window:
    """The stretches of what is late, and as many after them as it takes until the rest comes out as it did.

    Args:
        conversation: the row.
        end: what is carried over its end.
        stored: its directory.
        late: the messages.
        coming: all that has come, which is settled with them where they reach to the end.
        fence: as `settle` takes it.

    Raises:
        UncertainError: where that cannot be known.
    """
    rows = Stretch.objects.filter(conversation=conversation).order_by("border")
    borders = [bytes(border) for border in rows.values_list("border", flat=True)]
    # Where one begins at the same moment, the message may belong to the one before it.
    at = bisect_left(borders, late[0].slot)
    to = bisect_right(borders, late[-1].slot)
    if not at:
        raise UncertainError
    while True:
        until = borders[to] if to < len(borders) else BEYOND
        window = Window(
            conversation,
            end,
            stored,
            coming if until == BEYOND else late,
            borders=borders[:at],
            within=borders[at:to],
            until=until,
            fence=fence,
        )
        readers = find_readers(conversation, window.changed, until, since=until)
        if until != BEYOND and sees(read_running(end), window.changed, until):
            to = len(borders)
        elif readers:
            to = bisect_right(borders, readers[-1])
        else:
            return window


def _write_part(conversation: Conversation, end: Start, window: Window, fence: Fence) -> None:
    """Write what came out otherwise for what is late, and let the conversation be as if nothing else had come yet."""
    part = copy(conversation)
    part.generation -= 1
    if part.generation < conversation.settled_generation:
        raise UncertainError
    _write(part, end, window, fence)
    generation = conversation.generation
    conversation.refresh_from_db()
    conversation.generation = generation


def _write(
    conversation: Conversation, end: Start, window: Window, fence: Fence, finish: Callable[[], None] | None = None
) -> None:
    """Write what came out otherwise, in one transaction; where the job goes on after it, there is nothing to finish.

    Raises:
        UncertainError: where tasks or counts cannot be told.
        UngrowableError: where the tree has to be drawn whole; nothing is written then.
    """
    replayed = replay_tasks(conversation, window.old.nodes, window.now.nodes)
    summed = _sum(conversation, end, window, replayed)
    exchanges = gather_exchanges(conversation, window.now.timeline.list_new())
    with hold_alone([conversation.pk], fence):
        write_changes([window.changes], workspace_id=conversation.workspace_id)
        write_directories([(conversation, window.join_blocks())])
        _change_tree(conversation, window)
        write_sums([summed])
        Task.objects.filter(pk__in=replayed.gone).delete()
        write_exchanges([exchanges], resumed=frozenset({conversation.pk}))
        awaited = _list_awaited(end, replayed)
        if window.until == BEYOND:
            _write_new_end(conversation, end, window, summed, awaited)
        else:
            _write_same_end(conversation, end, window, summed, awaited)
        window.now.making.rewrite(conversation, window.now.nodes, window.spoken)
        window.history.forget_unchanged()
        ask_opening(workspace_id=conversation.workspace_id, conversation_ids={conversation.pk})
        if finish is not None:
            note_rest([window.history])
            finish()


def _sum(conversation: Conversation, end: Start, window: Window, replayed: Replayed) -> Sum:
    old, now = window.old.nodes, window.now.nodes
    standings = Counter(replayed.standings_after)
    standings.subtract(replayed.standings_before)
    return change_sum(
        conversation,
        Counts.read(end.written["counts"]),
        old,
        now,
        standings={standing: count for standing, count in standings.items() if count},
        ghosts=find_missing(conversation, [*old, *now], window.now.course.since),
        hidden=count_hidden_by_conversation([conversation]).get(conversation.pk, 0),
        tasks=replayed.rows,
    )


def _change_tree(conversation: Conversation, window: Window) -> None:
    """Bring into the tree what of the window hangs or looks otherwise than it did."""
    before = {node.id: make_shoot(node) for node in window.old.nodes}
    changes = []
    for node in window.now.nodes:
        shoot, stood = make_shoot(node), before.get(node.id)
        if stood is None:
            changes.append(Change(shoot.id, None, shoot))
        elif stood != shoot:
            was = Was(stood.at, stood.performative, stood.group, find_anchor(stood))
            changes.append(Change(shoot.id, was, shoot))
    spoken = {*conversation.dialects, *(node.dialect for node in window.now.nodes)} - {"prose"}
    is_by_turn = any(get_dialect(name).orders_by_turn for name in spoken)
    alteration = Alteration(conversation.pk, changes, is_by_turn=is_by_turn)
    change_trees([alteration], "conversation", conversation.workspace_id)


def _list_awaited(end: Start, replayed: Replayed) -> list[Any]:
    """What is carried of tasks that no message belongs to, as they stand now."""
    awaited: dict[bytes, tuple[str, str] | None] = {**read_awaited(end.written), **replayed.awaited}
    return [[key.hex(), *said] for key, said in awaited.items() if said is not None]


def _write_new_end(conversation: Conversation, end: Start, window: Window, summed: Sum, awaited: Sequence[Any]) -> None:
    """What is carried over the end is what the window, which reaches to it, leaves behind."""
    course = window.now.course
    course.placed.unmet |= {bytes.fromhex(name) for name in end.written["unmet"]}
    course.placed.is_cut = course.placed.is_cut or end.written["is_cut"]
    carried = write_carry(course, summed.counts, window.now.timeline, awaited=awaited)
    if carried is None:
        raise UncertainError
    Carry.objects.filter(conversation=conversation).delete()
    write_ends([(conversation, *carried)])
    write_shelves([(conversation, course.context)])
    # What is known from there on was found out anew.
    Lack.objects.filter(conversation=conversation, border__gt=window.border).delete()


def _write_same_end(
    conversation: Conversation, end: Start, window: Window, summed: Sum, awaited: Sequence[Any]
) -> None:
    """What is carried over the end is what it was, but for what counts messages and what it lacks from now on."""
    written, added = end.written, len(window.now.nodes) - len(window.old.nodes)
    # Where entries were left out, no later message is among them; a greater bound says so too.
    cut = {kind: (run, position + added) for kind, (run, position) in written["earlier"]["cut"].items()}
    unmet = sorted({*written["unmet"], *(name.hex() for name in window.now.course.placed.unmet)})
    changed = {
        "count": written["count"] + added,
        "earlier": written["earlier"] | {"cut": cut},
        "spoken": list(dict.fromkeys([*window.now.course.spoken, *written["spoken"]])),
        "counts": summed.counts.write(),
        "awaited": awaited,
        "unmet": unmet[:MOST_UNMET],
        "is_cut": written["is_cut"] or len(unmet) > MOST_UNMET,
    }
    data = pack_carry(written | changed)
    Carry.objects.filter(conversation=conversation).delete()
    if data is None or len(awaited) > MOST_AWAITED:
        drop_stretches(conversation)
        return
    write_ends([(conversation, written["last"][0], changed["count"], end.border, data)])
    note_lacking(conversation, window.until, window.changed)
