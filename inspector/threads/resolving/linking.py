"""Links: which message each one answers, by the reply rules of the dialects; and the runs of an id that starts over.

A dialect names the ways to a parent (`dialects.Reply`), tried in order: docs/threads.md has the table. An id is looked
up in the whole conversation, then in the channel; everything else among earlier messages.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Final

from django.db.models import Q

from dialects import find_meant, get_dialect

from ..dependencies import Key, View
from ..keys import Way
from ..models import Conversation
from ..nodes import (
    MAX_MEANT,
    REUSED,
    Bearer,
    Citation,
    Elsewhere,
    Pair,
    Rank,
    Ref,
    StoredNode,
    load_nodes,
    say_several,
    sort_nodes,
    take_latest,
)

LATE = "it came long after later turns, so it stands where its time puts it"


def order_nodes(nodes: Sequence[StoredNode], view: View) -> list[StoredNode]:
    """The nodes of a block in the order of the timeline, each with its run."""
    runs: dict[tuple[str, int], list[int]] = defaultdict(list)
    counting = [node for node in nodes if node.turn is not None and get_dialect(node.dialect).orders_by_turn]
    if not counting:
        return list(nodes)
    view.expect(("run", dialect) for dialect in {node.dialect for node in counting})
    # Nearly all of them go on in the run that is under way.
    under_way = {node.dialect: view.get(("run", node.dialect)) or (1, -1) for node in counting}
    view.expect(("turn", node.dialect, under_way[node.dialect][0], node.turn or 0, node.sender) for node in counting)
    for at, node in enumerate(nodes):
        if node.turn is not None and get_dialect(node.dialect).orders_by_turn:
            node.run = _number(node, view)
            runs[node.dialect, node.run].append(at)
            run, latest = under_way[node.dialect]
            node.is_late = node.run == run and node.turn < latest
    ordered = list(nodes)
    for places in runs.values():
        by_turn = sorted((nodes[at] for at in places), key=lambda node: node.turn or 0)
        for at, node in zip(places, by_turn, strict=True):
            ordered[at] = node
    return ordered


def _number(node: StoredNode, view: View) -> int:
    turn = node.turn or 0
    run, latest = view.get(("run", node.dialect)) or (1, -1)
    key = ("turn", node.dialect, run, turn, node.sender)
    said = view.get(key)
    is_repeated = bool(node.said) and said is not None and node.said.hex() in said
    if said is not None and not is_repeated and turn < latest:
        run, latest, said, node.opens_run = run + 1, -1, None, True
        key = ("turn", node.dialect, run, turn, node.sender)
    elif said is not None and not is_repeated:
        node.reused = f"turn {turn}"
    if not is_repeated:
        view.put(key, [*(said or ()), node.said.hex()])
    view.put(("run", node.dialect), (run, max(latest, turn)))
    return int(run)


# What stands for nobody in particular among the receivers.
ANYONE: Final = ""
# So many statements are looked at for the latest that waits for an answer.
MAX_WAITING: Final = 512
MAX_CIRCLE: Final = 10_000
CIRCLE: Final = "its parents go round in a circle, which is cut here"


def is_answer(node: StoredNode) -> bool:
    """Whether it is a message that answers by its kind, and no statement: one with a way that is no mere sequence."""
    return any(way.basis == "turn" or way.basis == "correlation" for way in node.ways)


class Linker:
    """Finds what the messages of a block answer, one after the other. `outside` are messages of other blocks that bear
    the ids which they cite, `elsewhere` is who bears those in other conversations of the channel that nobody in this
    one bears."""

    def __init__(
        self,
        conversation: Conversation,
        nodes: Sequence[StoredNode],
        view: View,
        outside: Sequence[StoredNode],
        elsewhere: Mapping[Citation, Elsewhere],
    ) -> None:
        self._conversation = conversation
        self._nodes = nodes
        self._view = view
        self._elsewhere = elsewhere
        # Who bears an id in the conversation, in the order of the timeline.
        self._bearers: dict[bytes, list[StoredNode]] = defaultdict(list)
        for node in [*outside, *nodes]:
            if node.key:
                self._bearers[node.key].append(node)
        # Statements by the ids that answers may name them with, those yet to come among them.
        self._named_here: dict[bytes, list[StoredNode]] = defaultdict(list)
        self._held = {node.id: node for node in nodes}
        for node in nodes:
            if node.correlation and not is_answer(node):
                for name in node.correlation:
                    self._named_here[name].append(node)
        self._by_node: dict[uuid.UUID, Ref] = {}
        self._answered: set[uuid.UUID] = set()
        # What was found in earlier blocks, to be loaded together.
        self._distant: dict[uuid.UUID, list[StoredNode]] = defaultdict(list)
        # Whether a message here or earlier names one that stands later than itself.
        self._has_ahead = False

    def link(self) -> None:
        """Give each node its parent, its ghost, or neither."""
        self._expect()
        for node in self._nodes:
            ref = self._by_node[node.id] = Ref.of(node)
            for way in node.ways:
                if self._follow(node, ref, way):
                    break
            self._add(node, ref)
            said = LATE if node.is_late else ""
            if node.opens_run:
                said = (
                    f"turn {node.turn} was said before, in other bytes and before a later turn: run {node.run} begins"
                )
            reuse = f"{node.reused} {REUSED}" if node.reused else ""
            node.why = "; ".join(filter(None, (node.why, said, reuse)))
        self._load_distant()

    def _expect(self) -> None:
        keys: list[Key] = []
        if self._view.is_first:
            return
        for node in self._nodes:
            for way in node.ways:
                if way.whom == "latest-to-me":
                    keys.append(("to-me", node.sender, node.run, node.task))
                elif way.whom == "previous":
                    keys.append(("previous", node.dialect, node.run))
                elif way.whom == "latest-of-other":
                    keys += [("said-to", node.sender or ""), ("said-to", ANYONE)]
                    keys += [pair for other in node.receivers for pair in _pairs(other, node.sender or "")]
                elif way.whom == "correlation-id" and way.key is not None:
                    keys.append(("named", way.key.hex()))
        self._view.expect(dict.fromkeys(keys))

    def _add(self, node: StoredNode, ref: Ref) -> None:
        own, view = self._view.own, self._view
        for receiver in node.receivers:
            self._follow_turn(("to-me", receiver, node.run, node.task), ref)
        self._follow_turn(("previous", node.dialect, node.run), ref)
        for receiver in node.receivers or (ANYONE,):
            # Of anyone else, before the first one here, only an earlier block knows, which is asked where that matters.
            said: Pair | None = own.get(("said-to", receiver))
            own["said-to", receiver] = said.follow(ref, by="sender") if said else Pair(ref)
            view.put(("said-between", node.sender, receiver), ref)
        if node.correlation and not is_answer(node):
            for name in node.handles:
                named: Key = ("named", name.hex())
                bearer, before = Bearer.of(node, ref, name), view.get(named, Bearer.read_all) or ()
                own_before = {each.content for each in before if each.sender == bearer.sender and each.content}
                if bearer.content and own_before and bearer.content not in own_before:
                    node.reused = "its number"
                view.put(named, bearer.add_to(before))
        if node.is_statement and get_dialect(node.dialect).asks_what_waits and not is_answer(node):
            own.setdefault(("waiting", node.dialect), []).append([ref, list(node.receivers)])

    def _follow_turn(self, key: Key, ref: Ref) -> None:
        held: Pair | None = self._view.get(key, Pair.read) if ref.turn is not None else None
        self._view.put(key, held.follow(ref, by="turn") if held else Pair(ref))

    def _follow(self, node: StoredNode, ref: Ref, way: Way) -> bool:
        if way.whom == "message-id":
            return self._cite(node, way)
        if way.whom == "request-elsewhere":
            # Where it is not known, nothing is missed: it may stand in another log.
            return self._cite_elsewhere(node, way)
        if way.whom == "correlation-id" and way.key is not None:
            meant = self._find_correlated(node, way.key)
            if len(meant) > 1:
                node.basis, node.cited, node.ghost = way.basis, way.key, way.key
                node.why = say_several(way.why, len(meant), is_here=True)
                return True
            found = meant[0].ref if meant else None
        else:
            found = self._find(node, ref, way)
        # The way by a correlation id, where it names one, is tried before the turns.
        named = (each for each in node.ways if each.whom == "correlation-id" and each.key is not None)
        sought = next(named, None) if way.basis == "turn" else None
        if sought is not None and (found is None or self._has_handles(found)):
            # The turn is no way round what the wire says: a message that bears another id is not the one that is meant.
            node.basis, node.why, node.cited, node.ghost = sought.basis, sought.why, sought.key, sought.key
            return True
        if found is None or found.id == node.id:
            return False
        self._attach(node, way, found)
        return True

    def _attach(self, node: StoredNode, way: Way, found: Ref) -> None:
        """Let a message answer another, or merely follow it, unless that closes a circle."""
        if self._closes_circle(node, found):
            node.why = "" if way.basis == "adjacency" else CIRCLE
            return
        node.parent, node.basis, node.why, node.above = found.id, way.basis, way.why, found.node
        if found.node is not None:
            self._has_ahead |= found.node.position > node.position
        else:
            self._distant[found.id].append(node)
        if way.basis != "adjacency":
            self._answered.add(found.id)
            if found.id not in self._by_node:
                # What is answered in another block is known to be so by this fact.
                self._view.put(("answered", found.id.hex), True)

    def _has_handles(self, found: Ref) -> bool:
        node = found.node or self._load(found.id)
        return node is not None and bool(node.handles)

    def _cite(self, node: StoredNode, way: Way) -> bool:
        """Find who bears the id: in the conversation, else in the trace, else in the channel; several are nobody."""
        key = way.key
        if not key:
            return False
        self._view.note_everywhere(("id", key.hex()))
        bearers = self._bearers.get(key, ())
        if key == node.key:
            node.why = "it names itself as the message it answers"
        elif len(bearers) > 1:
            node.why = f"{way.why}, but {len(bearers)} messages of this conversation bear that id"
        elif bearers:
            self._attach(node, way, self._find_ref(bearers[0]))
        elif not self._cite_elsewhere(node, way):
            node.basis, node.why, node.cited, node.ghost = way.basis, way.why, key, key
        return True

    def _cite_elsewhere(self, node: StoredNode, way: Way) -> bool:
        """Cite what bears the id in other conversations, if anything does."""
        elsewhere = self._elsewhere.get(Citation(way.key, node.trace)) if way.key else None
        if elsewhere is None:
            return False
        node.basis, node.cited = way.basis, way.key
        if elsewhere.id is not None:
            node.parent, node.parent_elsewhere = elsewhere.id, elsewhere.content
            node.why = f"{way.why}; it is in another conversation"
        else:
            node.ghost, node.why = way.key, say_several(way.why, elsewhere.count)
        return True

    def _find(self, node: StoredNode, ref: Ref, way: Way) -> Ref | None:
        me = node.sender or ""
        if way.whom.startswith("latest") and not me:
            return None
        if way.whom == "latest-of-other":
            return self._find_latest(node, me)
        if way.whom == "latest-unanswered-of-other":
            return self._find_unanswered(node, me)
        is_to_me = way.whom == "latest-to-me"
        key: Key = ("to-me", me, node.run, node.task) if is_to_me else ("previous", node.dialect, node.run)
        pair: Pair | None = self._view.get(key, Pair.read)
        return pair and pair.before_turn(ref)

    def _find_correlated(self, node: StoredNode, name: bytes) -> Sequence[Bearer]:
        """The statement that an answer means by an id, or all that it may mean; else the first to come."""
        self._view.note_everywhere(("id", name.hex()))
        own = [each for each in self._bearers.get(name, ()) if not is_answer(each)]
        earlier = [each for each in own if each.position < node.position]
        named: Key = ("named", name.hex())
        bearers = [*map(partial(self._make_bearer, name), earlier), *(self._view.get(named, Bearer.read_all) or ())]
        bearers.sort(key=self._find_moment)
        if not bearers:
            behind = (each for each in own if each.position >= len(self._nodes))
            later = {each.id: each for each in (*self._named_here.get(name, ()), *behind) if each is not node}
            bearers = [self._make_bearer(name, each) for each in reversed(later.values())]
        if not bearers:
            stored = [each for each in self._view.list_everywhere([named])[named] if each.border > self._view.border]
            # A later block has those of all blocks before it, too.
            bearers = Bearer.read_all(stored[-1].value)[::-1] if stored else []
        if len(bearers) > MAX_MEANT:
            return bearers
        return find_meant(bearers, sender=node.sender, receivers=node.receivers, get_content=attrgetter("content"))

    def _find_moment(self, bearer: Bearer) -> tuple[bool, Rank | int]:
        return (True, node.position) if (node := self._held.get(bearer.ref.id)) else (False, bearer.ref.rank)

    def _make_bearer(self, name: bytes, node: StoredNode) -> Bearer:
        return Bearer.of(node, self._find_ref(node), name)

    def _find_ref(self, node: StoredNode) -> Ref:
        return self._by_node.get(node.id) or Ref(node.id, (node.instant, "", 0, 0), node.sender, None, node)

    def _find_latest(self, node: StoredNode, me: str) -> Ref | None:
        pairs = [pair for other in node.receivers if other != me for pair in _pairs(other, me)]
        told = take_latest(self._view.get(pair, Ref.read) for pair in pairs)
        return told or take_latest(self._find_said(("said-to", receiver), me) for receiver in (me, ANYONE))

    def _find_said(self, key: Key, me: str) -> Ref | None:
        """The latest of these that somebody else sent, in this block or before it."""
        walked = (pair if isinstance(pair, Pair) else Pair.read(pair) for pair in self._view.walk(key))
        return next((other for other in (pair.of_other(me) for pair in walked) if other is not None), None)

    def _find_unanswered(self, node: StoredNode, me: str) -> Ref | None:
        """The latest statement to its sender or to nobody that waits: by one whom it speaks to, else by anyone else."""
        others = {other for other in node.receivers if other != me}
        to_me: Ref | None = None
        looked_at = 0
        for entries in self._view.walk(("waiting", node.dialect)):
            self._view.expect(("answered", held[0]) for held, _ in entries[-MAX_WAITING:] if not isinstance(held, Ref))
            for held, receivers in reversed(entries):
                ref = held if isinstance(held, Ref) else Ref.read(held)
                looked_at += 1
                if looked_at > MAX_WAITING:
                    return to_me
                if ref.sender == me or ref.id in self._answered or self._view.get(("answered", ref.id.hex)):
                    continue
                if receivers and me not in receivers:
                    continue
                if ref.sender in others or not others:
                    return ref
                to_me = to_me or ref
        return to_me

    def _closes_circle(self, node: StoredNode, target: Ref) -> bool:
        """Whether the parents of a message lead back to the one that is to answer it. Of what stands later only the ids
        that it names are known; so what the wire says is cut at the first of a circle, and what is inferred where it
        closes one."""
        is_ahead = target.node is not None and target.node.position > node.position
        if not (is_ahead or self._has_ahead or self._view.get(("ahead",))):
            return False
        at: uuid.UUID | None = target.id
        for _ in range(MAX_CIRCLE):
            if at is None:
                return False
            if at == node.id:
                return True
            at = self._find_parent_of(at, node)
        return True

    def _find_parent_of(self, message_id: uuid.UUID, node: StoredNode) -> uuid.UUID | None:
        here = self._held.get(message_id)
        if here is not None and message_id in self._by_node:
            return here.parent
        stub = here or (None if self._view.is_only else self._load(message_id))
        if stub is None:
            return None
        if here is None and stub.position < node.position:
            self._view.note(("parent", message_id.hex))
            return stub.parent if stub.basis else None
        key = next((way.key for way in stub.ways if way.whom == "message-id" and way.key), None)
        if key is None or key == stub.key:
            return None
        self._view.note_everywhere(("id", key.hex()))
        bearers = {each.id for each in self._bearers.get(key, ())}
        if not self._view.is_only:
            bearers |= {each.id for each in self._load_where(Q(id_key=key, channel_id=self._conversation.channel_id))}
        return bearers.pop() if len(bearers) == 1 else None

    def _load(self, message_id: uuid.UUID) -> StoredNode | None:
        return next(iter(self._load_where(Q(pk=message_id))), None)

    def _load_where(self, wanted: Q) -> list[StoredNode]:
        return load_outside(self._conversation, wanted, self._nodes)

    def _load_distant(self) -> None:
        """Give those whose parents stand in earlier blocks these parents as nodes."""
        for key, entries in self._view.own.items():
            if key[0] == "waiting":
                entries[:] = [each for each in entries if each[0].id not in self._answered]
        if self._has_ahead:
            self._view.put(("ahead",), True)
        if not self._distant:
            return
        found = {each.id: each for each in self._load_where(Q(pk__in=list(self._distant)))}
        for message_id, nodes in self._distant.items():
            for node in nodes:
                node.above = found.get(message_id)


def load_outside(conversation: Conversation, wanted: Q, nodes: Sequence[StoredNode]) -> list[StoredNode]:
    """Messages of a conversation that stand outside a block, with a position before or behind its own."""
    held = {node.id for node in nodes}
    first = min((node.slot for node in nodes), default=b"")
    found = [node for node in load_nodes(conversation.pk, wanted) if node.id not in held]
    for node in found:
        node.position = -1 if node.slot < first else len(nodes)
    return sort_nodes(found)


def load_bearers(conversation: Conversation, nodes: Sequence[StoredNode]) -> list[StoredNode]:
    """Who bears the ids that the messages of a block cite, outside the block; one statement at most."""
    keys = {way.key for node in nodes for way in node.ways if way.key is not None}
    wanted = Q(id_key__in=keys, workspace_id=conversation.workspace_id, channel_id=conversation.channel_id)
    return load_outside(conversation, wanted, nodes) if keys else []


def _pairs(other: str, me: str) -> tuple[Key, Key]:
    return ("said-between", other, me), ("said-between", other, ANYONE)
