"""Re-telling: a conversation gone through in its timeline, and those messages told that no longer stand as told."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice

from dialects import Entry
from inspector.intake.models import Record

from ..inserting.inserts import read_record
from ..models import Message
from ..placing.nodes import StoredNode
from ..resolving.established import Established
from .contexts import has_established, list_established, questions_of
from .teller import Telling, ToldRow, tell_record

# How far ahead is looked for what will be needed, and how much of it is held at once.
_AHEAD, _AHEAD_BYTES = 500, 2 * 1024 * 1024

Run = list[StoredNode]


class Texts:
    """What the records of a few conversations established, loaded as it is asked for: much of it at once, not too much.

    Args:
        nodes: their messages, in the order in which they are gone through.
    """

    def __init__(self, nodes: Iterable[StoredNode]) -> None:
        self._nodes = [node for node in nodes if node.is_established]
        self._places = {node.id: at for at, node in enumerate(self._nodes)}
        self._until = 0
        self._held: dict[uuid.UUID, str] = {}

    def take(self, node: StoredNode, context: Established) -> str | None:
        """What a record established, by the first of its nodes; None where it is not told now.

        Args:
            context: is about to be asked for what is loaded.
        """
        at = self._places[node.id]
        if at >= self._until:
            ids = [each.id for each in _within_bounds(islice(self._nodes, at, at + _AHEAD))]
            self._until = at + len(ids)
            rows = Message.objects.filter(pk__in=ids).exclude(established="")
            self._held = dict(rows.values_list("id", "established"))
            context.expect(chain.from_iterable(map(list_established, self._held.values())))
        return self._held.pop(node.id, None)


class Retelling:
    """Messages of one block being told.

    Args:
        nodes: the messages, placed, in the order of the timeline.
        context: what holds before the first of them; it holds what they establish as well, once they are gone through.
        texts: what their records established when they were told.
        fence: called between loads, as a sign of life.
    """

    def __init__(
        self, nodes: Sequence[StoredNode], context: Established, texts: Texts, fence: Callable[[], None]
    ) -> None:
        self.context = context
        self._texts = texts
        self._fence = fence
        self._runs = [list(same) for _, same in groupby(nodes, key=lambda node: node.record)]
        self._records: Mapping[uuid.UUID, Record] = {}
        self.context.expect(chain.from_iterable(questions_of(node.told_in) for node in nodes))
        # The dialects that the context knows to be spoken, since it was last changed by anything else.
        self._spoken: set[str] = set()

    def go_through(self) -> Iterator[tuple[StoredNode, ToldRow | None, str]]:
        """Each node in the timeline, what it is told anew (None where it stands), and what its record established.

        A record whose parts stand together is told once.
        """
        for at, run in enumerate(self._runs):
            if self._stands(run):
                self._skip(run[0])
                for node in run:
                    yield node, None, ""
                continue
            telling = self._tell(at, run)
            for node in run:
                row = telling.rows[node.part]
                # What a record establishes is kept with the first of its parts that stand together.
                established = telling.established if node is run[0] else ""
                node.told_in, node.is_established, node.severity = telling.told_in, bool(established), row.severity
                node.was_told, node.told_digest = node.told_digest, row.digest
                yield node, row, established

    def _stands(self, run: Run) -> bool:
        first, position = run[0], run[0].position + 1
        if has_established(first.told_in) and not first.is_established:
            return False
        return all(
            node.told_digest and self.context.allows(node.told_in, dialect=node.dialect, position=position)
            for node in run
        )

    def _skip(self, first: StoredNode) -> None:
        if first.is_established:
            established = self._texts.take(first, self.context)
            # What was put elsewhere since the nodes were loaded is not told by now. Its conversation is marked, and is
            # resolved again with it.
            if established is not None:
                self.context.go_through(established, position=first.position + 1)
                self._spoken.clear()
        if first.dialect != "prose" and first.dialect not in self._spoken:
            self.context.add([Entry(kind="dialect", name=first.dialect, value=first.dialect)])
            self._spoken.add(first.dialect)

    def _tell(self, at: int, run: Run) -> Telling:
        first = run[0]
        if first.new is not None:
            record, reading = first.new.arrival.record, first.new.arrival.reading
        else:
            if first.record not in self._records:
                self._load_records(at)
            record = self._records[first.record]
            reading = read_record(record, dialect=first.dialect).reading
        self._spoken.clear()
        return tell_record(record, reading, self.context, position=first.position + 1)

    def _load_records(self, at: int) -> None:
        self._fence()
        # The first of them does not stand, which `go_through` has found already.
        ahead = islice(self._runs, at + 1, at + _AHEAD)
        stale = chain([self._runs[at][0]], (run[0] for run in ahead if run[0].new is None and not self._stands(run)))
        ids = {node.record for node in _within_bounds(stale)}
        self._records = {}
        self._records = Record.objects.in_bulk(ids)


def _within_bounds(nodes: Iterable[StoredNode]) -> Iterator[StoredNode]:
    """The nodes in order up to so many bytes of their records, at least one."""
    held = 0
    for node in nodes:
        if held and held + node.size_bytes > _AHEAD_BYTES:
            return
        held += node.size_bytes
        yield node
