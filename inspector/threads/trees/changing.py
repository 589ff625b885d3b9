"""Changing: stored trees take in what comes late, lose what leaves, and hang elsewhere what does so now.

Many trees are changed together in few statements: each says which blocks and facts it needs (`regrafting`), and those
of all are fetched at once. In a large tree the database searches the blocks that may hold a line.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db import connection
from psycopg import sql

from ..placing.instants import count_microseconds
from .blocks import Entry, read_directory
from .changes import Change
from .fetching import read_blocks, search_blocks
from .grafting import GraftError
from .growing import UngrowableError
from .opened import Packed
from .outline import ADJACENCY
from .regrafting import Regrafted, regraft
from .searched import Fact, Found, Wish
from .stored import Owner, Rewritten, StoredOutline, find_outlines, put_trees


@dataclass(frozen=True, slots=True)
class Alteration:
    """What changes in the tree of one conversation or trace.

    `changes` name every message that comes or leaves, hangs on another line or stands elsewhere in the timeline, or of
    which time, act, severity or conversation is another: so all that hung on a ghost which a message fills now, or on a
    message that leaves. `new_groups` are those groups of which no message was drawn. `is_by_turn` says that the
    timeline may follow turns and not the times alone: then the order is that of `Message.place`, which must be written
    by then. `held` are the digests of blocks that are needed later, whether or not the tree has them (`growing`).
    """

    owner_id: uuid.UUID
    changes: Sequence[Change]
    new_groups: frozenset[bytes] = frozenset()
    is_by_turn: bool = False
    held: frozenset[bytes] = frozenset()


class Altered(NamedTuple):
    """How many blocks of a tree were opened and written, and how many more of its requests are open than before."""

    opened: int
    written: int
    more_open: int


@dataclass(slots=True)
class _Altering:
    """A tree on its way: what it wishes for, and what came of it, or why it cannot be changed."""

    alteration: Alteration
    outline: StoredOutline
    entries: Sequence[Entry]
    steps: Generator[Wish, Found, Regrafted]
    wish: Wish | None = None
    regrafted: Regrafted | None = None
    reason: str = ""

    @property
    def owner_id(self) -> uuid.UUID:
        """Whose tree it is."""
        return self.alteration.owner_id

    def go_on(self, found: Found | None) -> None:
        """Take what was wished for; None begins."""
        self.wish = None
        try:
            self.wish = next(self.steps) if found is None else self.steps.send(found)
        except StopIteration as ended:
            self.regrafted = ended.value
        except GraftError as error:
            self.reason = str(error)

    def rewrite(self, regrafted: Regrafted) -> Rewritten:
        """What is to be written of it."""
        entries, blocks, latest = regrafted.entries, regrafted.blocks, regrafted.latest
        return Rewritten(self.owner_id, self.outline, entries, blocks, latest, self.alteration.held)


def change_trees(
    alterations: Sequence[Alteration], owner: Owner, workspace_id: uuid.UUID
) -> Mapping[uuid.UUID, Altered]:
    """Put these changes into the stored trees; call inside a transaction that holds their owners.

    The lines are those that `write_trees` draws of everything; the borders of the blocks may stand elsewhere. A tree is
    named once.

    Raises:
        UngrowableError: some of them must be drawn whole; nothing was written of any.
    """
    outlines = find_outlines(owner, [each.owner_id for each in alterations])
    altered = [each for each in alterations if each.changes]
    trees = [_start(each, outlines[each.owner_id]) for each in altered if each.owner_id in outlines]
    for tree in trees:
        tree.go_on(None)
    while waiting := [(tree, tree.wish) for tree in trees if tree.wish is not None]:
        blocks = _fetch(waiting)
        facts = _learn(waiting, owner)
        for tree, wish in waiting:
            known = {
                name: facts[tree.alteration.is_by_turn, name]
                for name in wish.facts
                if (tree.alteration.is_by_turn, name) in facts
            }
            tree.go_on(Found(blocks[tree.owner_id], known))
    reasons = {each.owner_id: "there is no tree" for each in altered if each.owner_id not in outlines}
    reasons |= {tree.owner_id: tree.reason for tree in trees if tree.reason}
    if reasons:
        raise UngrowableError(reasons)
    changed = [(tree, tree.regrafted) for tree in trees if tree.regrafted is not None]
    put_trees([tree.rewrite(regrafted) for tree, regrafted in changed], owner, workspace_id)
    return {tree.owner_id: Altered(each.opened, len(each.blocks), each.more_open) for tree, each in changed}


def _start(alteration: Alteration, outline: StoredOutline) -> _Altering:
    entries = read_directory(outline.directory)
    steps = regraft(
        entries=entries,
        latest=outline.latest,
        changes=alteration.changes,
        new_groups=alteration.new_groups,
        is_by_turn=alteration.is_by_turn,
    )
    return _Altering(alteration, outline, entries, steps)


def _fetch(waiting: Sequence[tuple[_Altering, Wish]]) -> dict[uuid.UUID, dict[int, Packed]]:
    """The blocks that these trees wish for, and those that hold an id which they seek, by their numbers."""
    owners: dict[tuple[uuid.UUID, bytes], tuple[uuid.UUID, int]] = {}
    plain: list[tuple[uuid.UUID, bytes]] = []
    searched: dict[tuple[uuid.UUID, bytes], set[bytes]] = defaultdict(set)
    for tree, wish in waiting:
        keys = {number: (tree.outline.id, entry.digest) for number, entry in enumerate(tree.entries)}
        for name, numbers in wish.names.items():
            for number in numbers:
                if number not in wish.numbers:
                    searched[keys[number]].add(name)
        plain.extend(keys[number] for number in wish.numbers)
        owners |= {keys[number]: (tree.owner_id, number) for number in keys}
    found: dict[uuid.UUID, dict[int, Packed]] = {tree.owner_id: {} for tree, _ in waiting}
    for outline_id, digest, packed in (*read_blocks(plain), *search_blocks(searched)):
        owner_id, number = owners[outline_id, digest]
        found[owner_id][number] = packed
    return found


def _learn(waiting: Sequence[tuple[_Altering, Wish]], owner: Owner) -> dict[tuple[bool, bytes], Fact]:
    """The facts that these trees wish for, by whether the timeline follows turns and by the ids of the messages."""
    names = {name for _, wish in waiting for name in wish.facts}
    if not names:
        return {}
    same = sql.Identifier("conversation_id" if owner == "conversation" else "trace_key")
    found: dict[tuple[bool, bytes], Fact] = {}
    with connection.cursor() as cursor:
        cursor.execute(
            sql.SQL(
                """
                SELECT message.id, message.order_time, message.order_source, message.order_index, record.identity,
                       message.part, message.place, message.performative, message.conversation_id,
                       message.parent_basis <> {adjacency} AND EXISTS (
                           SELECT 1 FROM threads_message AS above
                            WHERE above.id = message.parent AND above.{same} = message.{same})
                  FROM threads_message AS message JOIN intake_record AS record ON record.id = message.record_id
                 WHERE message.id = ANY(%s)
                """
            ).format(adjacency=sql.Literal(ADJACENCY), same=same),
            [[uuid.UUID(bytes=name) for name in names]],
        )
        for message_id, at, source, index, identity, part, place, act, conversation_id, is_answer in cursor:
            told = (count_microseconds(at), act, conversation_id.bytes, is_answer)
            order = (at, bytes(source), index, bytes(identity), part)
            found[False, message_id.bytes] = Fact(order, *told)
            if place is not None:
                found[True, message_id.bytes] = Fact(bytes(place), *told)
    return found
