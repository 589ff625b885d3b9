"""A session of a chat as its program files it: calls find their results, and a sub-agent is told as one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inspector.threads.models import Conversation, Message

from ..conftest import Cast, take_in

pytestmark = pytest.mark.django_db


def write_line(own: str, parent: str | None, role: str, content: Any, **more: Any) -> bytes:
    """A line of a session, as Claude Code files it."""
    turn = {"id": "msg_2" if more else "msg_1"} if role == "assistant" else {}
    message = {"role": role, "content": content, **turn}
    line = {"parentUuid": parent, "isSidechain": False, "sessionId": "sess-1", "uuid": own, "type": role, **more}
    return json.dumps({**line, "timestamp": f"2026-11-21T09:00:0{own[-1]}.000Z", "message": message}).encode() + b"\n"


CALL = {"type": "tool_use", "id": "toolu_1", "name": "Task", "input": {"prompt": "Count.", "say": "@a3|f0#"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "42"}
SESSION = (
    write_line("u1", None, "user", "How many bricks?"),
    write_line("u2", "u1", "assistant", [{"type": "text", "text": "I will ask."}]),
    write_line("u3", "u2", "assistant", [CALL]),
    write_line("u4", None, "user", "Count.", isSidechain=True),
    write_line("u5", "u4", "assistant", [{"type": "text", "text": "42."}], isSidechain=True, agentId="a1"),
    write_line("u6", "u3", "user", [RESULT]),
)


def test_a_session_is_one_conversation_whose_lines_hang_by_their_ids(cast: Cast) -> None:
    take_in(cast, *SESSION, name="session.jsonl")
    conversation = Conversation.objects.get()
    assert conversation.native_id == "sess-1"
    messages = {message.pk: message for message in Message.objects.all()}
    names = {pk: message.native_id or message.dialect for pk, message in messages.items()}
    hung = {names[pk]: (names.get(message.above), message.parent_basis) for pk, message in messages.items()}
    assert {name: hung[name] for name in ("u1", "u2", "u3", "u4", "u5", "u6")} == {
        "u1": (None, ""),
        "u2": ("u1", "explicit"),
        "u3": ("u2", "explicit"),
        # It follows what was said before, and answers none of it.
        "u4": (None, "adjacency"),
        "u5": ("u4", "explicit"),
        "u6": ("u3", "correlation"),
    }
    english = {names[pk]: message.english for pk, message in messages.items()}
    assert english["u3"].startswith("The assistant (going on with the turn msg_1) calls the tool Task (call toolu_1)")
    assert english["u4"] == "The user (to the sub-agent) says: “Count.”"
    assert english["u5"] == "The assistant (as the sub-agent a1) says: “42.”"
    assert english["u6"] == "The tool answers (call toolu_1, its call of Task): “42”."
    assert [(message.dialect, message.carrier) for message in messages.values() if message.carrier] == [
        ("nslip", "chat")
    ]
