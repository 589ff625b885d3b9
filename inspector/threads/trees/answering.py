"""Answering: what becomes of a request of a stored tree where some of its answers come, leave or are others now. Pure.

Its line says how it was answered and until when, which mostly tells it. Where the answer that ended it may be gone, or
one may stand before it, the acts of its answers are asked for, in the order of the timeline, until one ends it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from .blocks import StoredLine
from .changes import Change, find_anchor
from .grafting import GraftError, Shoot
from .outline import ASKING, ENDS, Kind, Knot, Outcome, prolong
from .searched import Steps, together
from .seeking import Moment
from .units import Standing, Units

# Of one request so many answers are asked for; where none of them ends it, that is not known.
_MOST_ANSWERS: Final = 1000
_FIRST_ANSWERS: Final = 32
# Later than any time that is drawn.
_ENDLESS: Final = 1 << 62


@dataclass(slots=True)
class _Answers:
    """What a request gains and loses: answers as they are now, and the times and acts of those that it had."""

    came: list[Shoot] = field(default_factory=list)
    gone: list[tuple[int, str | None]] = field(default_factory=list)


def answer_requests(
    units: Units, changes: Sequence[Change], standing: Mapping[bytes, Standing]
) -> Steps[dict[bytes, tuple[Outcome, int]]]:
    """How the messages that change, and those that they answer or answered, are answered now, and until when they last.

    Raises:
        GraftError: it cannot be known from so few of the answers.
    """
    answers = _gather(units, changes, standing)
    changed = {change.id: change for change in changes}
    found = yield from together(
        _Request(units, name, each, changed.get(name), standing.get(name)).decide() for name, each in answers.items()
    )
    return dict(zip(answers, found, strict=True))


def _gather(units: Units, changes: Iterable[Change], standing: Mapping[bytes, Standing]) -> dict[bytes, _Answers]:
    answers: dict[bytes, _Answers] = defaultdict(_Answers)
    for change in changes:
        stood, was, now = standing.get(change.id), change.was, change.now
        if now is not None:
            # Its own line is written anew.
            answers[now.id]
        is_same = now is not None and was is not None and was.performative == now.performative
        if is_same and (change.id, Kind.MESSAGE) not in units.by_key:
            continue
        if stood is not None and was is not None and stood.hangs[1] is Kind.MESSAGE:
            answers[stood.hangs[0]].gone.append((was.at, was.performative))
        if now is not None and (anchor := find_anchor(now))[1] is Kind.MESSAGE:
            answers[anchor[0]].came.append(now)
    return {name: each for name, each in answers.items() if not _leaves(units, name)}


def _leaves(units: Units, name: bytes) -> bool:
    unit = units.by_key.get((name, Kind.MESSAGE))
    return unit is not None and unit.hangs is None


class _Request:
    """A message, and what changes of its answers."""

    def __init__(
        self, units: Units, name: bytes, answers: _Answers, change: Change | None, stood: Standing | None
    ) -> None:
        self._units, self._order, self._tree = units, units.order, units.tree
        self._answers, self._now, self._was = answers, change.now if change else None, change.was if change else None
        self._place = stood.place if stood is not None else units.find_place((name, Kind.MESSAGE))
        self._came: list[Knot] = []

    def decide(self) -> Steps[tuple[Outcome, int]]:
        """How it is answered now, and until when it lasts."""
        line = None if self._place is None else (yield from self._tree.read(self._place))
        now, was = self._now, self._was
        if now is None and line is None:
            raise GraftError("a message answers one that is not in the tree")
        start = now.at if now is not None else line.start if line is not None else 0
        is_asking = now.performative in ASKING if now is not None else line is not None and line.outcome
        if not is_asking:
            return Outcome.NONE, start
        ranks = yield from self._order.sort([Moment(each.at, each.id) for each in self._answers.came])
        self._came = [_make_knot(self._answers.came[rank]) for rank in ranks]
        if line is None:
            return prolong(Outcome.OPEN, start, start, self._came)
        if now is not None and was is not None and (was.at != now.at or was.performative not in ASKING):
            return (yield from self._go_through(start, None))
        return (yield from self._go_on(line))

    def _go_on(self, line: StoredLine) -> Steps[tuple[Outcome, int]]:
        """The same of a request that asks as it did, from what its line says."""
        outcome, end = line.outcome, line.end
        if outcome in (Outcome.OPEN, Outcome.ANSWERED):
            # None of the answers that it had ends it.
            found, until = prolong(outcome, line.start, end, self._came)
            if not self._answers.gone or found is not Outcome.ANSWERED:
                return found, until
            return (yield from self._find_latest(line.start))
        ends = [each for each in self._came if each.performative in ENDS]
        gone = [at for at, performative in self._answers.gone if performative in ENDS]
        if self._order.is_by_turn:
            return (yield from self._go_through(line.start, None)) if ends or gone else (outcome, end)
        # The one that ended it has the time at which it ended, or an earlier one than the request.
        is_gone = any(max(line.start, at) == end for at in gone)
        if not is_gone:
            if not ends or max(line.start, ends[0].at) > end:
                return outcome, end
            if max(line.start, ends[0].at) < end:
                return ENDS[ends[0].performative or ""], max(line.start, ends[0].at)
        return (yield from self._go_through(line.start, end if end > line.start else None))

    def _find_latest(self, start: int) -> Steps[tuple[Outcome, int]]:
        """Of a request that no answer ends: until when it lasts by those that it has now."""
        if self._place is None or self._order.is_by_turn:
            return (yield from self._go_through(start, None))
        last = yield from self._order.find_last(self._place, Moment(_ENDLESS, b""))
        times = [each.at for each in self._came]
        if last is not None:
            times.append(self._tree.line(last).start)
        return (Outcome.ANSWERED, max(start, *times)) if times else (Outcome.OPEN, start)

    def _go_through(self, start: int, since: int | None) -> Steps[tuple[Outcome, int]]:
        """What the answers say, in their order; where `since` is given, no old one that is earlier ends it."""
        ending, latest = yield from self._find_ending(since)
        come = next((each for each in self._came if each.performative in ENDS), None)
        if come is not None:
            moment = Moment(come.at, come.id)
            if ending is None or (yield from self._order.precedes(moment, ending)):
                return ENDS[come.performative or ""], max(start, come.at)
        if ending is not None:
            return ENDS[self._tree.facts[ending.id].performative or ""], max(start, ending.at)
        if since is not None:
            return (yield from self._find_latest(start))
        times = [each.at for each in self._came]
        if latest is not None:
            times.append(latest)
        return (Outcome.ANSWERED, max(start, *times)) if times else (Outcome.OPEN, start)

    def _find_ending(self, since: int | None) -> Steps[tuple[Moment | None, int | None]]:
        """The first of the answers that stay which ends it, and the latest time of those gone through."""
        if self._place is None:
            return None, None
        tree, end = self._tree, (yield from self._tree.find_end(self._place))
        child, latest, passed, most = self._place + 1, None, 0, _FIRST_ANSWERS
        if since is not None:
            child = yield from self._order.find_slot(self._place, Moment(since, b""))
        while child < end:
            moments: list[Moment] = []
            while child < end and len(moments) < most:
                unit = self._units.standing.get(child)
                if unit is not None:
                    child = unit.end
                    continue
                line = yield from tree.read(child)
                moments.append(Moment(line.start, line.id))
                latest = line.start if latest is None else max(latest, line.start)
                child = yield from tree.find_end(child)
            yield from tree.learn(moment.id for moment in moments)
            for moment in moments:
                if tree.facts[moment.id].performative in ENDS:
                    return moment, latest
            passed, most = passed + len(moments), 4 * most
            if passed > _MOST_ANSWERS:
                raise GraftError("a request has many answers of which none may end it")
        return None, latest


def _make_knot(shoot: Shoot) -> Knot:
    return Knot(shoot.id, shoot.mark, shoot.at, shoot.performative, shoot.severity, None)
