"""Stretches: a long conversation is cut into parts, of each of which is kept what settling knew where it begins.

With that a stretch can be settled again by itself (`late`). Whether what comes after it stays as it is follows from
what later stretches have read (`reads`): where two states differ in nothing that was asked for behind them, all that
stands behind them comes out alike.

What is carried over later borders lacks what was put in before. It is not written anew: `Lack` says from which border
on what is not known rightly any more, and whoever asks for it settles the whole conversation.
"""

from __future__ import annotations

import base64
import json
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import islice
from typing import Any, Final

from ..models import Conversation, Lack, Stretch
from ..placing.cuts import Cuts
from ..placing.earlier import Earlier
from ..placing.nodes import StoredNode
from ..placing.placer import find_asked
from ..placing.places import Places, begins_block
from ..reads import Border, Digests, Reads, read_digests, write_digests
from ..tasks.memberships import Membership
from ..telling.carried import Carried, CarriedContext
from ..telling.retelling import Retelling, note_told
from ..telling.teller import ToldRow
from ..uncertainty import UncertainError
from .carries import Written, name_version
from .readers import keep_read, write_read

# A stretch has at least so many messages.
SPACING: Final = 1024
# A conversation of so many messages is cut into stretches.
LEAST_LONG: Final = 4096

State = dict[str, Any]


class Making:
    """The stretches of a conversation that come of settling it, or of going on with it.

    Args:
        borders: where stretches begin, up to the one in which the messages that come now begin.
        read: what that one had read before.
        first: how many messages there are before those that come now.
        last: the instant of the last of them by order key, where a stretch may begin behind it.
    """

    def __init__(self, borders: Sequence[Border], read: Digests, first: int, last: int | None = None) -> None:
        self._borders = list(borders)
        self._read = read
        self._first = first
        self._last = last
        self.cuts = Cuts((), Reads(borders[-1].position), spacing=SPACING)
        self._contexts: list[Carried] = []

    def cut(self, nodes: Sequence[StoredNode]) -> Cuts:
        """Where these messages, in order key, may be cut; they are about to be placed."""
        candidates = [self._first + at for at in find_borders(nodes, self._last)]
        self.cuts = Cuts(candidates, Reads(self._borders[-1].position), spacing=SPACING)
        return self.cuts

    def cut_at(self, nodes: Sequence[StoredNode], borders: Sequence[bytes]) -> Cuts:
        """The same, where they are to be cut at these places and nowhere else."""
        slots = [node.slot for node in nodes]
        candidates = [self._first + bisect_left(slots, border) for border in borders]
        self.cuts = Cuts(candidates, Reads(self._borders[-1].position), spacing=0)
        return self.cuts

    def tell(
        self, nodes: Sequence[StoredNode], retelling: Retelling
    ) -> Iterator[tuple[StoredNode, ToldRow | None, str]]:
        """Go through these messages, which are placed, and keep what is established where each stretch begins."""
        told, at = retelling.go_through(), 0
        for cut in self.cuts.made:
            until = cut.position - self._first
            yield from islice(told, until - at)
            self._contexts.append(retelling.context.write(nodes[until].place))
            at = until
        yield from told
        self.note(nodes)

    def note(self, nodes: Sequence[StoredNode]) -> None:
        """Note what the telling of these messages asked, and where stretches begin among them."""
        at, reads = 0, self.cuts.reads
        for cut in self.cuts.made:
            until = cut.position - self._first
            note_told(reads, nodes[at:until])
            self._borders.append(Border(cut.position, nodes[until].place))
            at, reads = until, cut.reads
        note_told(reads, nodes[at:])

    @property
    def read(self) -> Digests:
        """What all these stretches have read."""
        return reduce(_merge, self.list_read())

    def write_running(self) -> str:
        """What the last stretch has read, as text."""
        return base64.b64encode(write_digests(self.list_read()[-1])).decode()

    def list_read(self) -> list[Digests]:
        """What each stretch has read, from the one on in which the messages began."""
        found: list[Digests] = []
        known = len(self._borders) - len(self.cuts.made)
        for at, reads in enumerate([self.cuts.reads, *(cut.reads for cut in self.cuts.made)]):
            found.append(reads.list_digests(self._borders[: known + at]))
        found[0] = _merge(self._read, found[0])
        return found

    def write(self, conversation: Conversation, nodes: Sequence[StoredNode], spoken: Iterable[str]) -> None:
        """Write the stretches that have begun, and what those have read that have ended.

        Args:
            conversation: the conversation; its stretches behind the one in which the messages begin are dropped.
            nodes: the messages.
            spoken: the dialects that were spoken before them, in order.
        """
        if not self._first:
            _put(conversation, b"", _make_beginning(nodes))
        self.write_made(conversation, nodes, spoken)

    def rewrite(self, conversation: Conversation, nodes: Sequence[StoredNode], spoken: Iterable[str]) -> None:
        """Write the stretches of these messages anew, which end where another begins."""
        keep_read(conversation, self._borders[-1 - len(self.cuts.made)].place, self.list_read()[0])
        if self.cuts.made:
            within = self._borders[-len(self.cuts.made) :]
            Stretch.objects.filter(conversation=conversation, border__in=[border.place for border in within]).delete()
            self.write_made(conversation, nodes, spoken)
            keep_read(conversation, within[-1].place, self.list_read()[-1])

    def write_made(self, conversation: Conversation, nodes: Sequence[StoredNode], spoken: Iterable[str]) -> None:
        """Write the stretches that begin among these messages, and what those before each of them have read."""
        made, read = self.cuts.made, self.list_read()
        known = len(self._borders) - len(made)
        heard, at = dict.fromkeys(spoken), 0
        for number, (cut, context) in enumerate(zip(made, self._contexts, strict=True)):
            keep_read(conversation, self._borders[known + number - 1].place, read[number])
            until = cut.position - self._first
            heard |= dict.fromkeys(node.dialect for node in nodes[at:until] if node.dialect != "prose")
            at = until
            state = {**cut.placed, "standing": cut.assigned, "context": context}
            state |= {"count": cut.position, "spoken": list(heard)}
            _put(conversation, self._borders[known + number].place, state)


def is_long(count: int) -> bool:
    """Whether a conversation of so many messages is cut into stretches."""
    return count >= LEAST_LONG


def begin_stretches() -> Making:
    """The stretches of a conversation that is settled from its beginning."""
    return Making([Border(0, b"")], {}, 0)


def resume_stretches(conversation: Conversation, written: Written, places: Places) -> Making | None:
    """The stretches of a conversation that is gone on with, where so much of it was settled; None where it has none."""
    if written["read"] is None:
        return None
    borders = [each for each in load_borders(conversation, places) if each.position <= places.count]
    if not borders:
        raise UncertainError
    return Making(borders, read_digests(base64.b64decode(written["read"])), places.count, written["last"][0])


def load_borders(conversation: Conversation, places: Places) -> list[Border]:
    """Where the stretches of a conversation begin."""
    rows = Stretch.objects.filter(conversation=conversation).order_by("border").values_list("border", flat=True)
    found = [bytes(border) for border in rows]
    return [Border(places.find_position(border) if border else 0, border) for border in found]


def drop_stretches(conversation: Conversation, since: bytes = b"") -> None:
    """Forget the stretches of a conversation that begin at a place or behind it, and what is lacking there."""
    for model in (Stretch, Lack):
        model._default_manager.filter(conversation=conversation, border__gte=since).delete()


def find_borders(nodes: Sequence[StoredNode], last: int | None = None) -> list[int]:
    """At which of these nodes, which stand in order key, a block of places begins whatever comes before it.

    Args:
        nodes: the nodes.
        last: the instant of the one before them, None where there is none, or no stretch may begin with the first.
    """
    found = []
    for at, node in enumerate(nodes):
        if last is not None and begins_block(node.mark) and last != node.instant:
            found.append(at)
        last = node.instant
    return found


def load_state(conversation: Conversation, border: bytes) -> State:
    """What is known where a stretch begins.

    Raises:
        UncertainError: where another version of the program wrote it.
    """
    state: State = json.loads(zlib.decompress(Stretch.objects.get(conversation=conversation, border=border).state))
    if state["version"] != name_version():
        raise UncertainError
    return state


def pack_state(state: State) -> bytes:
    """What is known where a stretch begins, as it is stored."""
    text = json.dumps({"version": name_version(), **state}, separators=(",", ":"))
    return zlib.compress(text.encode(), 1)


def _put(conversation: Conversation, border: bytes, state: State) -> None:
    Stretch.objects.create(
        conversation=conversation,
        workspace_id=conversation.workspace_id,
        border=border,
        state=pack_state(state),
        **write_read({}),
    )


def _make_beginning(nodes: Sequence[StoredNode]) -> State:
    """What is known where nothing has been said yet."""
    return {
        "count": 0,
        "spoken": [],
        "earlier": Earlier(find_asked(nodes)).write(),
        "runs": {},
        "standing": Membership(nodes[0].id).standing.write(),
        "context": CarriedContext().write(b""),
    }


def _merge(one: Digests, other: Digests) -> Digests:
    return {place: one.get(place, frozenset()) | other.get(place, frozenset()) for place in (*one, *other)}
