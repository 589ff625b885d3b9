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


class Retelling:
    """Messages of one conversation being told: from its first on, or from where its context is known.

    Args:
        nodes: the messages, placed, in the order of the timeline.
        fence: called between loads, as a sign of life.
        context: what holds before the first of them; it holds what they establish as well, once they are gone through.
    """

    def __init__(self, nodes: Sequence[StoredNode], fence: Callable[[], None], context: Established) -> None:
        self._fence = fence
        self._runs = [list(same) for _, same in groupby(nodes, key=lambda node: node.record)]
        self.context = context
        self._records: Mapping[uuid.UUID, Record] = {}
        self._established: dict[uuid.UUID, str] = {}
        self.context.expect(chain.from_iterable(questions_of(node.told_in) for node in nodes))
        # The dialects that the context knows to be spoken, since it was last changed by anything else.
        self._spoken: set[str] = set()

    @property
    def established(self) -> list[StoredNode]:
        """The first nodes of the records that established something."""
        return [run[0] for run in self._runs if run[0].is_established]

    def take_established(self, established: Mapping[uuid.UUID, str]) -> None:
        """Let be at hand what records established, by the ids of their first nodes, as far as it was loaded."""
        self._established = {node.id: established[node.id] for node in self.established if node.id in established}

    def go_through(self) -> Iterator[tuple[StoredNode, ToldRow | None, str]]:
        """Each node in the timeline, what it is told anew (None where it stands), and what its record established.

        A record whose parts stand together is told once.
        """
        for at, run in enumerate(self._runs):
            if self._stands(run):
                self._skip(at, run)
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

    def _skip(self, at: int, run: Run) -> None:
        first = run[0]
        if first.is_established:
            if first.id not in self._established:
                self._load_established(at)
            established = self._established.pop(first.id, None)
            # What was put elsewhere since the nodes were loaded is not told by now. Its conversation is marked, and is
            # settled again with it.
            if established is not None:
                self.context.go_through(established, position=first.position + 1)
                self._spoken.clear()
        if first.dialect != "prose" and first.dialect not in self._spoken:
            self.context.add([Entry(kind="dialect", name=first.dialect, value=first.dialect)])
            self._spoken.add(first.dialect)

    def _load_established(self, at: int) -> None:
        heads = (run[0] for run in islice(self._runs, at, at + _AHEAD) if run[0].is_established)
        self._established = load_established(node.id for node in _within_bounds(heads))
        self.context.expect(chain.from_iterable(map(list_established, self._established.values())))

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


def load_together(retellings: Sequence[Retelling]) -> None:
    """Load at once what the records of several small conversations established, as far as it is not too much."""
    established = load_established(
        node.id for node in _within_bounds(node for each in retellings for node in each.established)
    )
    for each in retellings:
        each.take_established(established)


def load_established(ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, str]:
    """What records established, by the ids of the messages that it is kept with; nothing of what is not told now."""
    wanted = list(ids)
    rows = Message.objects.filter(pk__in=wanted).exclude(established="")
    return dict(rows.values_list("id", "established")) if wanted else {}


def _within_bounds(nodes: Iterator[StoredNode]) -> Iterator[StoredNode]:
    """The nodes in order up to so many bytes of their records, at least one."""
    held = 0
    for node in nodes:
        if held and held + node.size_bytes > _AHEAD_BYTES:
            return
        held += node.size_bytes
        yield node
