"""Rules over what agents make of answers: not waiting for one, judging their own work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from inspector.threads.tasks.rows import read_steps

from ..findings.loading import RESULTS
from ..findings.scene import Scene
from .rule import Hit, Rule, clowl, say
from .work import name_agent


def _find_unapproved(scene: Scene) -> Iterator[Hit]:
    """Work reported done by an agent whose own question or proposal about it had no answer yet."""
    works = {bytes(task.key): task for task in scene.tasks}
    for asked in scene.tasks:
        work = works.get(bytes(asked.within_key or b""))
        if work is None or asked.act not in ("query", "propose") or asked.request is None or work.finished_at is None:
            continue
        is_own = bool(asked.requester) and asked.requester == work.performer
        is_answered = asked.finished_at is not None and asked.finished_at <= work.finished_at
        if not is_own or is_answered or asked.first_at > work.finished_at:
            continue
        done = next((step for step in read_steps(work.steps) if step.event in RESULTS), None)
        if done is not None:
            asking = "proposal to" if asked.act == "propose" else "question to"
            whom = name_agent(asked.performer, "no named recipient")
            yield Hit(
                message=done.message_id,
                text=f"{name_agent(asked.requester)} reported it done before its own {asking} {whom} was answered.",
                related=(asked.request,),
            )


def _find_own_judgements(scene: Scene) -> Iterator[Hit]:
    for message, own in scene.judged:
        judges = "accepts" if message.performative == "accept" else "evaluates"
        yield Hit(message=message.id, text=f"{name_agent(message.sender)} {judges} its own work.", related=(own.id,))


_ASKED: Final = clowl("m1", "REQ", "oscar", "radar")
_ASKED_BACK: Final = clowl("m2", "QRY", "radar", "boss", minute=1, pid="m1")

RULES: Final = (
    Rule(
        code="unapproved",
        title="Done without waiting for an answer",
        why="If the question asked for approval, the work was done without it.",
        severity="warning",
        group="sequence",
        look=_find_unapproved,
        triggers=(
            _ASKED + _ASKED_BACK + clowl("m3", "DONE", "radar", "oscar", minute=2, pid="m1"),
            _ASKED
            + _ASKED_BACK
            + clowl("m3", "DONE", "radar", "oscar", minute=2, pid="m1")
            + clowl("m4", "INF", "boss", "radar", minute=3, pid="m2"),
        ),
        passes=(
            _ASKED
            + _ASKED_BACK
            + clowl("m3", "INF", "boss", "radar", minute=2, pid="m2")
            + clowl("m4", "DONE", "radar", "oscar", minute=3, pid="m1"),
            _ASKED + _ASKED_BACK,
            _ASKED
            + clowl("m2", "DONE", "radar", "oscar", minute=1, pid="m1")
            + clowl("m3", "QRY", "radar", "boss", minute=2, pid="m1"),
        ),
    ),
    Rule(
        code="own-judgement",
        title="Agent approved its own work",
        why="An agent that checks its own work proves nothing: another one should have judged it.",
        severity="warning",
        group="sequence",
        look=_find_own_judgements,
        triggers=(
            say(
                ("ada", "@a3|f0|c1|S0|d1|T1|k6#"),
                ("bob", '@a1|f1|c1|S1|d0|T2|k6|u"done"#'),
                ("bob", "@a6|f1|c1|S1|d0|T3|k6#"),
            ),
        ),
        passes=(
            say(
                ("ada", "@a3|f0|c1|S0|d1|T1|k6#"),
                ("bob", '@a1|f1|c1|S1|d0|T2|k6|u"done"#'),
                ("ada", "@a6|f0|c1|S0|d1|T3|k6#"),
            ),
        ),
    ),
)
