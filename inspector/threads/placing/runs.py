"""The runs of a conversation id that starts over, in a dialect that counts turns."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from ..reads import Key, Reads
from ..uncertainty import UncertainError

if TYPE_CHECKING:
    from .placer import Node

# Of a run so many turns are carried over the end of a conversation; of a longer one those of its latest turn alone.
MOST_CARRIED: Final = 400


class Runs:
    """Counts the runs of a conversation id.

    A sender's turn that is said again after a later turn, in other bytes, opens a new one; the same bytes are repeated.
    """

    def __init__(self) -> None:
        self._run = 1
        # By turn and by sender: what was said. And how many of them there are.
        self._seen: dict[int | None, dict[str | None, set[bytes]]] = defaultdict(dict)
        self._count = 0
        self._latest = -1
        # What was carried over: its run, the latest turn in it, and whether earlier turns of it were left out.
        self._carried = (0, -1)
        self._is_cut = False

    def number(self, node: Node, reads: Reads | None = None) -> int:
        """The run that a message belongs to; it is given in the order of the timeline.

        Args:
            node: the message.
            reads: takes what is looked up, where it is wanted.

        Raises:
            UncertainError: where it stands among turns that are placed already, or may repeat one that was left out.
        """
        said = self._seen[node.turn].get(node.sender)
        is_late = (node.turn or 0) < self._latest
        if reads is not None:
            reads.note("runs", node.dialect)
            # What was said is of no account where no later turn was.
            if is_late:
                reads.note("turn", node.dialect, node.sender, node.turn)
        if is_late and self._is_cut and said is None:
            raise UncertainError
        is_repeated = bool(node.said) and said is not None and node.said in said
        if said is not None and not is_repeated and is_late:
            self._run, self._latest, node.opens_run = self._run + 1, -1, True
            self._seen.clear()
            self._count, self._is_cut, said = 0, False, None
        run, latest = self._carried
        if self._run == run and (node.turn or 0) < latest:
            raise UncertainError
        if said is None:
            said = self._seen[node.turn][node.sender] = set()
            self._count += 1
        said.add(node.said)
        self._latest = max(self._latest, node.turn or 0)
        return self._run

    def write(self) -> list[Any]:
        """What is known, as JSON takes it."""
        is_cut = self._is_cut or self._count > MOST_CARRIED
        turns = [self._latest] if is_cut else list(self._seen)
        kept = [
            [sender, turn, sorted(each.hex() for each in said)]
            for turn in turns
            for sender, said in self._seen.get(turn, {}).items()
        ]
        return [self._run, self._latest, is_cut, kept]

    def list_differences(self, other: Runs, dialect: str) -> set[Key]:
        """What `number` would look up here and there, in what came of the same after different messages."""
        keys: set[Key] = set()
        if (self._run, self._latest, self._is_cut) != (other._run, other._latest, other._is_cut):
            keys.add(("runs", dialect))
        for turn in self._seen.keys() | other._seen.keys():
            one, two = self._seen.get(turn, {}), other._seen.get(turn, {})
            keys |= {
                ("turn", dialect, sender, turn)
                for sender in one.keys() | two.keys()
                if one.get(sender) != two.get(sender)
            }
        return keys

    @classmethod
    def read(cls, written: list[Any]) -> Runs:
        """What `write` wrote."""
        runs = cls()
        runs._run, runs._latest, runs._is_cut, seen = written
        for sender, turn, said in seen:
            runs._seen[turn][sender] = {bytes.fromhex(each) for each in said}
        runs._count = len(seen)
        runs._carried = (runs._run, runs._latest)
        return runs
