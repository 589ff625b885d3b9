"""Fitting: a window that was settled again is brought into its conversation as it is stored.

Rows, tasks and what the conversation's row sums up are changed by what came out otherwise. What was there
behind the window stays as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ..agents.exchanges import gather_exchanges, write_exchanges
from ..hidden import count_hidden_by_conversation
from ..models import Carry, Conversation, Lack, Task
from ..opening.opener import ask_opening
from ..placing.numbering import write_directories
from ..placing.places import BEYOND
from ..tasks.replaying import Replayed, replay_tasks
from ..telling.shelves import put_on_shelf, write_shelves
from ..telling.wordings import note_rest
from ..uncertainty import UncertainError
from .alone import Fence, hold_alone
from .carries import MOST_AWAITED, MOST_UNMET, Start, pack_carry, write_carry
from .counts import Counts
from .courses import find_missing, read_awaited
from .milestones import write_ends
from .readers import note_lacking
from .stretches import drop_stretches
from .summing import Sum, change_sum, write_sums
from .window import Window
from .writing import write_changes


def fit(
    conversation: Conversation, end: Start, window: Window, fence: Fence, finish: Callable[[], None] | None = None
) -> None:
    """Write what came out otherwise in a window, in one transaction.

    Args:
        conversation: the row; its generation as loaded is what is settled with it.
        end: what is carried over its end.
        window: what was gone through again.
        fence: as `settle` takes it.
        finish: as `settle` takes it; None where the job goes on after it.

    Raises:
        UncertainError: where tasks or counts cannot be told.
    """
    replayed = replay_tasks(conversation, window.old.nodes, window.now.nodes)
    summed = _sum(conversation, end, window, replayed)
    exchanges = gather_exchanges(conversation, window.now.timeline.list_new())
    with hold_alone([conversation.pk], fence):
        write_changes([window.changes], workspace_id=conversation.workspace_id)
        write_directories([(conversation, window.join_blocks())])
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
    put_on_shelf(conversation, window.shelved)
    note_lacking(conversation, window.until, window.changed)
