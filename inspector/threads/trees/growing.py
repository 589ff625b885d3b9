"""Growing: stored trees take in what was appended to them, and of each those blocks alone are read that it touches.

Many trees grow together in few statements: each says which blocks it needs (`grafting`), and those of all are fetched
at once. In a large tree the blocks that hold an answered message are searched by the database. A tree may also grow
from what it was before (`Base`): what was put into it since is then no longer in it.
"""

from __future__ import annotations

import uuid
from collections.abc import Generator, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final, NamedTuple

from django.db import connection
from psycopg import sql

from .blocks import Entry, read_directory, read_ids
from .grafting import Grafted, GraftError, Shoot, Wanted, graft
from .opened import Packed
from .stored import Owner, Rewritten, StoredOutline, find_outlines, put_trees

# Of so many ids the database searches the blocks, which takes as long as there are ids; for more they are gone through.
_FEW_NAMES: Final = 8
_BLOCKS_AT_ONCE: Final = 100
_LACKING: Final = "a block of the tree is missing"


class Base(NamedTuple):
    """A tree as it stood once: its directory, and the place of its last message."""

    directory: bytes
    latest: int


@dataclass(frozen=True, slots=True)
class Growth:
    """What is appended to the tree of one conversation or trace.

    `shoots` stand in the order of the timeline, all of them later than everything that was drawn. `new_groups` are
    those groups of theirs of which no message was drawn. `after` is the id of the message that was the last one, where
    the caller knows it: a tree that ends otherwise does not grow. `base` is the tree that it grows from, where that is
    not the stored one: an earlier one of the same owner. `held` are the digests of blocks that are needed later though
    neither the stored tree nor what becomes of it has them (those of other bases, and of this one if it is to be grown
    from again).
    """

    owner_id: uuid.UUID
    shoots: Sequence[Shoot]
    new_groups: frozenset[bytes] = frozenset()
    after: bytes | None = None
    base: Base | None = None
    held: frozenset[bytes] = frozenset()


class Effort(NamedTuple):
    """How many blocks were opened and written; those that a search passed over are not counted.

    `answered` counts the requests of the trees that were open and are no more.
    """

    opened: int
    written: int
    answered: int


class UngrowableError(Exception):
    """Trees that must be drawn whole, by their owners, each with the reason; nothing was written."""

    def __init__(self, reasons: Mapping[uuid.UUID, str]) -> None:
        """Keep the reasons."""
        super().__init__(f"{len(reasons)} trees cannot grow: {', '.join(sorted(set(reasons.values())))}")
        self.reasons = reasons


@dataclass(slots=True)
class _Growing:
    """A tree on its way: what it waits for, and what came of it, or why it cannot grow."""

    growth: Growth
    outline: StoredOutline
    entries: Sequence[Entry]
    steps: Generator[Wanted, Mapping[int, Packed], Grafted]
    wanted: Wanted | None = None
    grafted: Grafted | None = None
    reason: str = ""

    @property
    def owner_id(self) -> uuid.UUID:
        """Whose tree it is."""
        return self.growth.owner_id

    @property
    def is_earlier(self) -> bool:
        """Whether it grows from a tree that is not the stored one."""
        return self.growth.base is not None and self.growth.base.directory != self.outline.directory

    def rewrite(self, grafted: Grafted) -> Rewritten:
        """What is to be written of it."""
        return Rewritten(self.owner_id, self.outline, grafted.entries, grafted.blocks, grafted.latest, self.growth.held)

    def begin(self) -> None:
        """Ask for the first blocks; where nothing is appended the tree is what it grows from."""
        if self.reason:
            return
        if self.growth.shoots:
            self.go_on(None)
        elif self.growth.base is not None and self.is_earlier:
            self.grafted = Grafted(self.entries, (), self.growth.base.latest, 0)

    def go_on(self, blocks: Mapping[int, Packed] | None) -> None:
        """Take the blocks that were waited for; None begins."""
        awaited, self.wanted = self.wanted, None
        if awaited is not None and not awaited.names and len(awaited.numbers) > len(blocks or ()):
            self.reason = _LACKING
            return
        try:
            self.wanted = next(self.steps) if blocks is None else self.steps.send(blocks)
        except StopIteration as ended:
            self.grafted = ended.value
        except GraftError as error:
            self.reason = str(error)


def grow_trees(grown: Sequence[Growth], owner: Owner, workspace_id: uuid.UUID) -> Effort:
    """Put what was appended into the stored trees; call inside a transaction that holds their owners.

    The lines are those that `write_trees` draws of everything; the borders of the blocks may stand elsewhere.

    Raises:
        UngrowableError: some of them must be drawn whole; nothing was written of any.
    """
    outlines = find_outlines(owner, [growth.owner_id for growth in grown])
    trees = [_start(growth, outlines[growth.owner_id]) for growth in grown if growth.owner_id in outlines]
    _find_lacking([tree for tree in trees if tree.is_earlier])
    for tree in trees:
        tree.begin()
    opened = 0
    while waiting := [tree for tree in trees if tree.wanted is not None]:
        blocks = _fetch(waiting)
        for tree in waiting:
            opened += len(blocks[tree.owner_id])
            tree.go_on(blocks[tree.owner_id])
    reasons = {growth.owner_id: "there is no tree" for growth in grown if growth.owner_id not in outlines}
    reasons |= {tree.owner_id: tree.reason for tree in trees if tree.reason}
    if reasons:
        raise UngrowableError(reasons)
    grafted = [tree.grafted for tree in trees if tree.grafted is not None]
    return Effort(
        opened,
        put_trees([tree.rewrite(tree.grafted) for tree in trees if tree.grafted is not None], owner, workspace_id),
        sum(each.answered for each in grafted),
    )


def _start(growth: Growth, outline: StoredOutline) -> _Growing:
    base = growth.base or Base(outline.directory, outline.latest)
    entries = read_directory(base.directory)
    steps = graft(
        entries=entries,
        latest=base.latest,
        shoots=growth.shoots,
        new_groups=growth.new_groups,
        after=growth.after,
    )
    return _Growing(growth, outline, entries, steps)


def _find_lacking(trees: Sequence[_Growing]) -> None:
    """Refuse those of these trees of which a block is no longer there, be it one that is not opened."""
    if not trees:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT outline_id, digest FROM threads_outlineblock WHERE outline_id = ANY(%s)",
            [[tree.outline.id for tree in trees]],
        )
        held = {(outline_id, bytes(digest)) for outline_id, digest in cursor}
    for tree in trees:
        if any((tree.outline.id, entry.digest) not in held for entry in tree.entries):
            tree.reason = _LACKING


def _fetch(waiting: Sequence[_Growing]) -> dict[uuid.UUID, dict[int, Packed]]:
    """The blocks that these trees wait for, by their numbers."""
    found: dict[uuid.UUID, dict[int, Packed]] = {tree.owner_id: {} for tree in waiting}
    plain: dict[tuple[uuid.UUID, bytes], tuple[_Growing, int]] = {}
    for tree in waiting:
        if tree.wanted is None:
            continue
        numbers = {tree.entries[number].digest: number for number in tree.wanted.numbers}
        if tree.wanted.names:
            digests = list(numbers)
            for digest, packed in _search(tree.outline.id, digests, tree.wanted.names):
                found[tree.owner_id][numbers[digest]] = packed
        else:
            plain |= {(tree.outline.id, digest): (tree, number) for digest, number in numbers.items()}
    for outline_id, digest, packed in read_blocks(list(plain)):
        tree, number = plain[outline_id, digest]
        found[tree.owner_id][number] = packed
    return found


def read_blocks(keys: Sequence[tuple[uuid.UUID, bytes]]) -> Iterator[tuple[uuid.UUID, bytes, Packed]]:
    """These blocks, each named by its outline and its digest; those that are not there are left out."""
    if not keys:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT block.outline_id, block.digest, block.depths, block.lines
              FROM unnest(%s::uuid[], %s::bytea[]) AS wanted (outline_id, digest)
              JOIN threads_outlineblock AS block
                ON block.outline_id = wanted.outline_id AND block.digest = wanted.digest
            """,
            [[outline_id for outline_id, _ in keys], [digest for _, digest in keys]],
        )
        for outline_id, digest, depths, lines in cursor:
            yield outline_id, bytes(digest), Packed(bytes(depths), bytes(lines))


def _search(outline_id: uuid.UUID, digests: Sequence[bytes], names: Set[bytes]) -> Iterator[tuple[bytes, Packed]]:
    """Those of the blocks that hold one of these ids, by their digests."""
    if len(names) > _FEW_NAMES:
        for low in range(0, len(digests), _BLOCKS_AT_ONCE):
            keys = [(outline_id, digest) for digest in digests[low : low + _BLOCKS_AT_ONCE]]
            for _, digest, packed in read_blocks(keys):
                if not names.isdisjoint(read_ids(packed.lines)):
                    yield digest, packed
        return
    with connection.cursor() as cursor:
        cursor.execute(
            sql.SQL(
                "SELECT digest, depths, lines FROM threads_outlineblock"
                " WHERE outline_id = %s AND digest = ANY(%s) AND ({})"
            ).format(sql.SQL(" OR ").join([sql.SQL("position(%s::bytea IN lines) > 0")] * len(names))),
            [outline_id, list(digests), *names],
        )
        for digest, depths, lines in cursor:
            yield bytes(digest), Packed(bytes(depths), bytes(lines))
