"""Rules over how messages hang together: what is missing, what goes round, what contradicts the clock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from inspector.threads.tasks.ledger import read_steps

from ..findings.scene import Scene, Seen
from .logs import clowl, say
from .rule import Hit, Rule

LONGEST_NAMED: Final = 80
_ASKED: Final = clowl("m1", "REQ", "oscar", "radar")
_ANSWERED: Final = clowl("m2", "DONE", "radar", "oscar", minute=1, pid="m1")


def _find_conflicts(scene: Scene) -> Iterator[Hit]:
    for messages in scene.doubles:
        first, *others = messages
        count = len({message.record for message in messages})
        yield Hit(
            message=others[-1].id,
            text=f"{count} messages with different bytes claim the id {first.native_id!r}.",
            detail=first.native_id,
            related=tuple(message.id for message in messages[:-1])[:20],
        )


def _find_circles(scene: Scene) -> Iterator[Hit]:
    for message in scene.odd:
        if "circle" in message.why:
            yield Hit(message=message.id, text="Its parents lead back to itself. The circle is cut at this message.")
        elif message.why.startswith("it names itself"):
            yield Hit(message=message.id, text="It names itself as the message that it answers.")


def _find_ghosts(scene: Scene) -> Iterator[Hit]:
    """One for each id that is cited and was not received, at the first message that cites it."""
    seen: dict[bytes, list[str]] = {}
    first: dict[bytes, Seen] = {}
    for message in scene.odd:
        if message.cited is not None and message.parent is None and message.basis:
            seen.setdefault(message.cited, []).append(str(message.id))
            first.setdefault(message.cited, message)
    for cited, message in first.items():
        count = len(seen[cited])
        others = "One more message cites" if count == 2 else f"{count - 1:,} more messages cite"
        more = f" {others} it." if count > 1 else ""
        yield Hit(
            message=message.id,
            text=f"It answers {_name(scene.cited_ids.get(message.id, ''))} that was not received here.{more}",
            detail=cited.hex(),
        )


def _name(cited: str) -> str:
    if not cited:
        return "a message"
    return f"the message {cited if len(cited) <= LONGEST_NAMED else cited[:LONGEST_NAMED] + '…'!r}"


def _find_answers_to_nothing(scene: Scene) -> Iterator[Hit]:
    """Tasks that are known by their answers alone; a ghost tells of those whose wire cites what is missing."""
    cited = {message.id for message in scene.odd}
    for task in scene.tasks:
        if task.is_received or task.request is not None:
            continue
        steps = read_steps(task.steps)
        if steps and steps[0].message_id not in cited:
            yield Hit(
                message=steps[0].message_id,
                text=f"It reports on {task.native_id or 'something'!r}, which nobody asked for in what was received.",
                detail=task.native_id,
            )


def _find_words_after_end(scene: Scene) -> Iterator[Hit]:
    for task, message in scene.after_end:
        yield Hit(
            message=message.id,
            text="It reports on work that had been cancelled before.",
            related=(task.request,) if task.request else (),
        )


def _find_early_answers(scene: Scene) -> Iterator[Hit]:
    for each in scene.skewed:
        if each.parent is not None:
            yield Hit(
                message=each.message.id,
                text=f"Its time is {_say(each.seconds)} before that of the message it answers.",
                related=(each.parent,),
                detail="answer",
            )
        else:
            yield Hit(
                message=each.message.id,
                text=f"Its time is {_say(each.seconds)} later than the moment at which it was received.",
                detail="future",
            )


def _say(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:,.0f} seconds"


RULES: Final = (
    Rule(
        code="conflicting-duplicate",
        title="One id, several messages",
        why="An id is to name one message. One of these was altered, sent by somebody else, or numbered wrongly.",
        severity="error",
        group="security",
        look=_find_conflicts,
        triggers=(
            _ASKED + clowl("m1", "REQ", "oscar", "radar", q=1),
            _ASKED + clowl("m1", "REQ", "oscar", "radar", minute=1),
        ),
        passes=(_ASKED + _ASKED, _ASKED + clowl("M1", "REQ", "oscar", "radar", minute=1)),
    ),
    Rule(
        code="circle",
        title="Answers that go round in a circle",
        why="A message cannot answer what came of it: ids were reused, or made up.",
        severity="warning",
        group="sequence",
        look=_find_circles,
        triggers=(
            clowl("m1", "REQ", "oscar", "radar", pid="m2") + _ANSWERED,
            clowl("m1", "REQ", "oscar", "radar", pid="m1"),
        ),
        passes=(
            _ASKED + _ANSWERED,
            _ASKED + _ANSWERED + clowl("m3", "REQ", "oscar", "radar", minute=2, pid="m2"),
        ),
    ),
    Rule(
        code="missing-message",
        title="An answer to a message that was not received",
        why="Part of the conversation is not here: the log is incomplete, or the message was withheld.",
        severity="notice",
        group="sequence",
        look=_find_ghosts,
        triggers=(_ANSWERED,),
        passes=(_ASKED + _ANSWERED, _ASKED.replace('"cid": "c"', '"cid": "elsewhere"') + _ANSWERED),
    ),
    Rule(
        code="answer-without-request",
        title="A report on something that nobody asked for",
        why="Either what was asked is missing here, or an agent worked without being told to.",
        severity="notice",
        group="sequence",
        look=_find_answers_to_nothing,
        triggers=(
            '{"raw": "@a8|f0|c1|S1|d0|T3|k7#", "conversation": "c"}\n',
            say(("ada", "@a3|f0|c1|S0|d1|T1|k6#"), ("bob", "@a8|f0|c1|S1|d0|T2|k7#")),
        ),
        passes=(
            '{"raw": "@a3|f0|c1|S0|d1|T1|k7#", "conversation": "c"}\n'
            '{"raw": "@a8|f0|c1|S1|d0|T2|k7#", "conversation": "c"}\n',
        ),
    ),
    Rule(
        code="act-after-cancel",
        title="Work reported after it was cancelled",
        why="The cancellation did not arrive or was ignored: what was to be stopped may have been done.",
        severity="warning",
        group="sequence",
        look=_find_words_after_end,
        triggers=(
            _ASKED
            + clowl("m2", "CNCL", "oscar", "radar", minute=1, pid="m1")
            + clowl("m3", "DONE", "radar", "oscar", minute=2, pid="m1"),
        ),
        passes=(
            _ASKED + _ANSWERED,
            _ASKED + _ANSWERED + clowl("m3", "CNCL", "oscar", "radar", minute=2, pid="m1"),
            _ASKED
            + clowl("m2", "CNCL", "oscar", "radar", minute=1, pid="m1")
            + clowl("m3", "ACK", "radar", "oscar", minute=2, pid="m1"),
        ),
    ),
    Rule(
        code="skewed-time",
        title="A time that contradicts the order of events",
        why="A clock is wrong or a time was made up: nothing that rests on it is proof of what came first.",
        severity="warning",
        group="sequence",
        look=_find_early_answers,
        triggers=(_ASKED + clowl("m2", "DONE", "radar", "oscar", minute=-60, pid="m1"),),
        passes=(_ASKED + _ANSWERED, _ASKED + clowl("m2", "DONE", "radar", "oscar", minute=-4, pid="m1")),
    ),
)
