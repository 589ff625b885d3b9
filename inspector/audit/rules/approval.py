"""Rules over what agents make of answers: not waiting for one, judging their own work, passing over a tool's error."""

from __future__ import annotations

import json
import re
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


# Who says one of these, in English, has not passed over a failure.
_TROUBLE: Final = re.compile(
    r"(?i)n['’]t\b|\b(?:fail|error|unable|unavail|unfortun|problem|retr|alternat|differ|refus|reject|invalid|abort|cancel)"
    r"|\b(?:sorry|issues?|wrong|tr(?:y|ied|ies|ying)|again|instead|another|others?|however|but|missing|denied"
    r"|time[ds]? ?out|stop(?:s|ped)?|cannot|no|not|none|never|without|yet)\b"
)
# Acts that go on without a word on what came before: a call made again, a refusal, an answer that is a failure itself.
_GOES_ON: Final = frozenset({"inform", "done", "accept", "commit", "observe"})


def _find_ignored_errors(scene: Scene) -> Iterator[Hit]:
    """What a caller said after its tool failed, where no word of it is about that."""
    for failed, message, english in scene.after_errors:
        if message.performative in _GOES_ON and not _TROUBLE.search(english):
            text = (
                f"A tool reported an error to {name_agent(message.sender)}, and what it says next has no word of that."
            )
            yield Hit(message=message.id, text=text, related=(failed.id,))


def _call_and_say(result: str, *said: str | dict[str, object]) -> str:
    """A transcript: a tool is called, gives this result, and its caller goes on."""
    call = {"id": "c1", "type": "function", "function": {"name": "book", "arguments": '{"room":7}'}}
    went_on = [each if isinstance(each, dict) else {"role": "assistant", "content": each} for each in said]
    lines = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": result},
        *went_on,
    ]
    return json.dumps({"messages": [{"role": "user", "content": "Book room 7."}, *lines]}) + "\n"


def _fail_in_blocks(*, claim: str) -> str:
    """The same with the call and its failure as blocks of contents."""
    call = {"type": "tool_use", "id": "t1", "name": "book", "input": {"room": 7}}
    result = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": "the room is taken"}
    lines = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    return json.dumps({"messages": [*lines, {"role": "assistant", "content": claim}]}) + "\n"


def _fail_by_mcp(*, claim: str) -> str:
    """The same by a server of tools, whose client then says something in the same log."""
    call = {"method": "tools/call", "params": {"name": "book", "arguments": {"room": 7}}}
    result = {"result": {"content": [{"type": "text", "text": "the room is taken"}], "isError": True}}
    calls = [json.dumps({"jsonrpc": "2.0", "id": 1, **each}) for each in (call, result)]
    return say(("ada", calls[0]), ("rooms", calls[1]), ("ada", claim))


_CALL_AGAIN: Final[dict[str, object]] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c2", "type": "function", "function": {"name": "book", "arguments": '{"room":8}'}}],
}
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
    Rule(
        code="tool-error-ignored",
        title="Tool error passed over",
        why="It may have gone on as if the call had succeeded. That is for you to judge: only its next message is "
        "looked at, for words in English.",
        severity="notice",
        group="sequence",
        look=_find_ignored_errors,
        triggers=(
            _call_and_say('{"error":"the room is taken"}', "Room 7 is booked for Monday."),
            _fail_in_blocks(claim="Room 7 is booked for Monday."),
            _fail_by_mcp(claim="Room 7 is booked for Monday."),
        ),
        passes=(
            _call_and_say('{"error":"the room is taken"}', "Room 7 could not be booked: it is taken."),
            _call_and_say('{"error":"the room is taken"}', "Let me try room 8."),
            _call_and_say('{"error":"the room is taken"}', _CALL_AGAIN, "Room 8 is booked for Monday."),
            _call_and_say('{"booked":7}', "Room 7 is booked for Monday."),
            _call_and_say('{"error":"the room is taken"}'),
            _call_and_say('{"error":"the room is taken"}', {"role": "user", "content": "Thanks, all is fine."}),
            _call_and_say('The manual says {"error":"taken"} there.', "Room 7 is booked for Monday."),
            _fail_in_blocks(claim="Room 7 could not be booked: it is taken."),
            _fail_by_mcp(claim="Room 7 could not be booked: it is taken."),
        ),
    ),
)
