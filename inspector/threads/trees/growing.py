"""Growing: stored trees take in what was appended to them, and of each those blocks alone are read that it touches.

Many trees grow together in few statements: each says which blocks it needs (`grafting`), and those of all are fetched
at once. In a large tree the blocks that hold an answered message are searched by the database. A tree may also grow
from what it was before (`Base`): what was put into it since is then no longer in it.
"""

from __future__ import annotations

import uuid
from collections.abc import Generator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final, NamedTuple

from django.db import connection

from .blocks import Entry, read_directory
from .fetching import read_blocks, search_blocks
from .grafting import Grafted, GraftError, Shoot, Wanted, graft
from .opened import Packed
from .stored import Owner, Rewritten, StoredOutline, find_outlines, put_trees

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
    owners: dict[tuple[uuid.UUID, bytes], tuple[uuid.UUID, int]] = {}
    plain: list[tuple[uuid.UUID, bytes]] = []
    searched: dict[tuple[uuid.UUID, bytes], Set[bytes]] = {}
    for tree in waiting:
        if tree.wanted is None:
            continue
        for number in tree.wanted.numbers:
            key = (tree.outline.id, tree.entries[number].digest)
            owners[key] = (tree.owner_id, number)
            if tree.wanted.names:
                searched[key] = tree.wanted.names
            else:
                plain.append(key)
    found: dict[uuid.UUID, dict[int, Packed]] = {tree.owner_id: {} for tree in waiting}
    for outline_id, digest, packed in (*read_blocks(plain), *search_blocks(searched)):
        owner_id, number = owners[outline_id, digest]
        found[owner_id][number] = packed
    return found
