"""Settling: a conversation's messages placed and told; a pure function of the set of its records.

What it depends on: the records of the conversation with their order keys, and the messages of the channel that they
cite. Placing goes through small facts of the messages and reads no record: of all, or of those alone that come after
everything that was settled, where the conversation carries what matters to them (`carries`). Telling reads the records
of those that have not been told in a context such as theirs is now. Only rows that came out differently are written, in
batches, each of which proves that the lease still holds.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial

from ..agents.exchanges import Exchanges, gather_exchanges, write_exchanges
from ..hidden import count_hidden_by_conversation
from ..models import Conversation
from ..opening.opener import ask_opening
from ..placing.nodes import StoredNode
from ..placing.numbering import write_directories
from ..placing.places import follow_place
from ..telling.carried import Carried, CarriedContext
from ..telling.retelling import Retelling, load_together
from ..telling.shelves import write_shelves
from ..telling.wordings import note_rest
from ..uncertainty import UncertainError
from .alone import Fence, hold_alone
from .carries import write_carry
from .courses import Course
from .entrants import Entrants
from .hindsight import Hindsight, find_cut, find_nearer_cut, look_back
from .late import settle_late
from .milestones import (
    drop_all,
    keep_milestones,
    thin_out,
    write_ends,
    write_milestones,
)
from .readers import is_lacking
from .stretches import LEAST_LONG, drop_stretches
from .summing import Sum, sum_nodes, write_sums
from .together import bound, find_together, is_small
from .writing import Changes, write_changes

# Ends the jobs of the other conversations, and says which of them are still to be written.
EndOthers = Callable[[set[uuid.UUID]], set[uuid.UUID]]


def settle(
    *,
    conversation: Conversation,
    fence: Fence,
    finish: Callable[[], None],
    others: Sequence[Conversation] = (),
    end_others: EndOthers = set,
) -> None:
    """Place and tell a conversation, and note up to which generation it is settled.

    Args:
        conversation: the row; its generation as loaded is what this run settles.
        fence: called inside every writing transaction, and as the sign of life between them; raises when another
            worker has taken over.
        finish: called inside the last one, so that the job ends together with its work.
        others: more conversations of the same workspace: those of them that are small are settled in the same last
            transaction.
        end_others: called inside it with the ids of those that were settled; says which of them are still to be
            written. Not called where there are none.
    """
    if settle_late(conversation, fence=fence, finish=finish):
        return
    whole: set[uuid.UUID] = set()
    while True:
        settling = _Settling(conversation, others, fence, whole)
        try:
            settling.write(finish, end_others)
        except UncertainError:
            # What was carried did not tell: its transaction wrote nothing.
            whole |= settling.resumed
        else:
            return


class _Settling:
    """Conversations being settled together: placed and told first, then written in one transaction.

    Args:
        conversation: the one whose job it is.
        others: those that may be settled with it.
        fence: as `settle` takes it.
        whole: those that are settled from their beginning, whatever they carry.
    """

    def __init__(
        self,
        conversation: Conversation,
        others: Sequence[Conversation],
        fence: Fence,
        whole: Set[uuid.UUID],
    ) -> None:
        self._conversation = conversation
        self._fence = fence
        together = find_together(conversation, others)
        self._entrants = Entrants(together, whole, fence)
        self._timelines, self._courses = self._entrants.timelines, self._entrants.courses
        self._histories = self._entrants.histories
        self._hindsights: dict[Conversation, Hindsight] = {}
        self._together = bound(together, self._timelines)
        self._entrants.place(self._together)
        self._hidden = count_hidden_by_conversation(self._together)

    @property
    def resumed(self) -> Set[uuid.UUID]:
        """The conversations that are gone on with, and not settled from their beginning."""
        return self._entrants.resumed

    def write(self, finish: Callable[[], None], end_others: EndOthers) -> None:
        """Tell what must be told, and write what came out otherwise.

        Raises:
            UncertainError: where what is carried does not tell; nothing is written then.
        """
        conversation, fence, timelines, courses = self._conversation, self._fence, self._timelines, self._courses
        together = self._together
        retellings = {
            each.pk: Retelling(timelines[each.pk].nodes, fence, courses[each.pk].context) for each in together
        }
        cuts = {each.pk: self._find_cut(each) for each in together}
        # Where it matters what is established on the way, nothing is passed by before.
        plain = (each.pk for each in together if cuts[each.pk] is None and courses[each.pk].making is None)
        small = (pk for pk in plain if is_small(timelines[pk]))
        load_together([retellings[pk] for pk in small], fence)
        changes: dict[uuid.UUID, Changes] = {}
        sums: dict[uuid.UUID, Sum] = {}
        exchanges: dict[uuid.UUID, Exchanges] = {}
        for each in together:
            timeline, course = timelines[each.pk], courses[each.pk]
            changes[each.pk] = Changes(each.pk, self._histories[each.pk], is_whole=course.resumed is None)
            write = partial(_write_window, conversation, fence) if each is conversation else None
            held = _tell(course, timeline.nodes, retellings.pop(each.pk), changes[each.pk], write, cuts[each.pk])
            self._prove_known(each)
            sums[each.pk] = sum_nodes(
                each,
                timeline,
                list(course.playing.plays.values()),
                hidden=self._count_hidden(each),
                before=course.before,
            )
            if held is not None:
                self._look_back(each, held, sums[each.pk], cuts[each.pk] or 0)
            exchanges[each.pk] = gather_exchanges(
                each, timeline.nodes if course.resumed is None else timeline.list_new()
            )
        with hold_alone([each.pk for each in together], fence):
            kept = {conversation.pk}
            if len(together) > 1:
                kept |= end_others(changes.keys() - kept)
            settled = [each for each in together if each.pk in kept]
            self._keep_milestones(settled, sums)
            write_changes([changes[pk] for pk in kept], workspace_id=conversation.workspace_id)
            write_directories([(each, timelines[each.pk].blocks) for each in settled])
            write_sums([sums[pk] for pk in kept])
            write_exchanges([exchanges[pk] for pk in kept], resumed=self.resumed)
            self._write_stretches(settled)
            self._write_ends(settled, sums)
            for pk in kept:
                self._histories[pk].forget_unchanged()
            note_rest([self._histories[pk] for pk in kept])
            ask_opening(workspace_id=conversation.workspace_id, conversation_ids=kept)
            finish()

    def _prove_known(self, conversation: Conversation) -> None:
        """Nothing was asked that what is carried over its border does not tell rightly.

        Raises:
            UncertainError: otherwise.
        """
        course = self._courses[conversation.pk]
        start, making = course.resumed, course.making
        if making is not None and start is not None and is_lacking(conversation, start.border, making.read):
            raise UncertainError

    def _write_stretches(self, settled: Sequence[Conversation]) -> None:
        for each in settled:
            course = self._courses[each.pk]
            if course.making is None and each.message_count < LEAST_LONG:
                continue
            start = course.resumed
            if start is None or course.making is None:
                drop_stretches(each)
            else:
                drop_stretches(each, start.border)
            if course.making is not None:
                spoken = start.written["spoken"] if start is not None else ()
                course.making.write(each, self._timelines[each.pk].nodes, spoken)

    def _find_cut(self, conversation: Conversation) -> int | None:
        start, nodes = self._courses[conversation.pk].resumed, self._timelines[conversation.pk].nodes
        return find_cut(conversation, nodes) if start is None else find_nearer_cut(start, nodes)

    def _look_back(self, conversation: Conversation, held: Carried, summed: Sum, cut: int) -> None:
        """Find a milestone not far before what was late, so that the next that is late is settled from there."""
        found = look_back(
            conversation,
            self._timelines[conversation.pk].nodes,
            cut,
            CarriedContext.resume(held, conversation.pk),
            summed,
            hidden=self._count_hidden(conversation),
            start=self._courses[conversation.pk].resumed,
        )
        if found is not None:
            self._hindsights[conversation] = found

    def _keep_milestones(self, settled: Sequence[Conversation], sums: Mapping[uuid.UUID, Sum]) -> None:
        """Keep what is about to be overwritten of those that are gone on with; of the others no milestone holds."""
        starts = {each: start for each in settled if (start := self._courses[each.pk].resumed) is not None}
        keep_milestones(starts, {each.pk: sums[each.pk].list_tasks() for each in starts})
        drop_all(each.pk for each in settled if each not in starts)

    def _write_ends(self, settled: Sequence[Conversation], sums: Mapping[uuid.UUID, Sum]) -> None:
        rows = []
        for each in settled:
            carried = write_carry(self._courses[each.pk], sums[each.pk].counts, self._timelines[each.pk])
            if carried is None:
                drop_all([each.pk])
            else:
                rows.append((each, *carried))
        write_ends(rows)
        ended = {each for each, *_ in rows}
        write_shelves([(each, self._courses[each.pk].context) for each in settled if each in ended])
        write_milestones({each: found for each, found in self._hindsights.items() if each in ended})
        for each, _, count, *_ in rows:
            if self._courses[each.pk].resumed is not None:
                thin_out(each, count)

    def _count_hidden(self, conversation: Conversation) -> int:
        return self._hidden.get(conversation.pk, 0)


def _write_window(conversation: Conversation, fence: Fence, changes: Changes) -> None:
    with hold_alone([conversation.pk], fence):
        drop_all([conversation.pk])
        write_changes([changes], workspace_id=conversation.workspace_id)


def _tell(
    course: Course,
    nodes: Sequence[StoredNode],
    retelling: Retelling,
    changes: Changes,
    write: Callable[[Changes], None] | None,
    cut: int | None,
) -> Carried | None:
    """Tell what must be told, and keep what changes; where it becomes much, it is written on the way.

    Args:
        course: of their conversation.
        nodes: the messages.
        retelling: of these.
        changes: takes what changes.
        write: writes it on the way.
        cut: after so many of them it is asked what is carried.

    Returns:
        what is carried after so many nodes as `cut` says, where it says so.
    """
    held, latest = None, b""
    making = course.making
    told = retelling.go_through() if making is None else making.tell(nodes, retelling)
    for at, (node, row, established) in enumerate(told, start=1):
        changes.take(node, row, established)
        latest = max(latest, node.place)
        if at == cut:
            held = retelling.context.write(follow_place(latest))
        if write is not None and changes.is_window:
            write(changes)
            changes.clear()
    return held
