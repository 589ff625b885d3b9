"""The runs of a conversation id that starts over, in a dialect that counts turns."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

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
        self._seen: dict[tuple[str | None, int | None], set[bytes]] = defaultdict(set)
        self._latest = -1
        # What was carried over: its run, the latest turn in it, and whether earlier turns of it were left out.
        self._carried = (0, -1)
        self._is_cut = False

    def number(self, node: Node) -> int:
        """The run that a message belongs to; it is given in the order of the timeline.

        Raises:
            UncertainError: where it stands among turns that are placed already, or may repeat one that was left out.
        """
        turn = (node.sender, node.turn)
        is_late = (node.turn or 0) < self._latest
        if is_late and self._is_cut and turn not in self._seen:
            raise UncertainError
        is_repeated = bool(node.said) and node.said in self._seen.get(turn, ())
        if turn in self._seen and not is_repeated and is_late:
            self._run, self._latest, node.opens_run = self._run + 1, -1, True
            self._seen.clear()
            self._is_cut = False
        run, latest = self._carried
        if self._run == run and (node.turn or 0) < latest:
            raise UncertainError
        self._seen[turn].add(node.said)
        self._latest = max(self._latest, node.turn or 0)
        return self._run

    def write(self) -> list[Any]:
        """What is known, as JSON takes it."""
        seen, is_cut = self._seen.items(), self._is_cut
        if len(seen) > MOST_CARRIED:
            is_cut = True
        kept = [
            [sender, turn, sorted(each.hex() for each in said)]
            for (sender, turn), said in seen
            if turn == self._latest or not is_cut
        ]
        return [self._run, self._latest, is_cut, kept]

    @classmethod
    def read(cls, written: list[Any]) -> Runs:
        """What `write` wrote."""
        runs = cls()
        runs._run, runs._latest, runs._is_cut, seen = written
        for sender, turn, said in seen:
            runs._seen[sender, turn] = {bytes.fromhex(each) for each in said}
        runs._carried = (runs._run, runs._latest)
        return runs
