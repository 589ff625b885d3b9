"""A2A, Agent2Agent: what a client asks an agent, and how the tasks that come of it stand (Linux Foundation).

Specification: https://a2a-protocol.org, before 0.2 (`tasks/send`), 0.2 to 0.3 (`message/send`) and 1.0 (`SendMessage`,
also as bodies of HTTP), each also as the data of server-sent events. A message names no sender: its role says whether
who asks or who is asked speaks, and the log or an agent card may name them. What the record cannot hold: the bytes of
files, and earlier messages that a task repeats; both stay in the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .._carrier import Carrier, make_dialect
from .._dialect import Reply
from .._draft import Draft
from .._jsonrpc import Call, find_replies, list_calls
from .._record import Message, NoteKind
from .answers import STATE_UNKNOWN, draft_answer, draft_object
from .calls import NO_MESSAGE, draft_call, draft_sending
from .shapes import Spot, find_request, find_shape, find_version, is_error, unwrap
from .tables import ERRORS, GLOSSARY, LABELS, METHODS, SPECIFICATION, VERSIONS

_HINT = re.compile(
    r'"(?:jsonrpc|parts|context_?[iI]d|task_?[iI]d|sessionId|skills|statusUpdate|artifactUpdate|supportedInterfaces'
    r'|nextPageToken)"|"TASK_STATE_|"(?:https://)?a2a-protocol\.org["/]'
)

ID_MISSING = NoteKind(
    code="a2a.id-missing",
    severity="warning",
    group="protocol",
    about="An answer bears no id, so that nobody can say what it answers.",
    cites="JSON-RPC 2.0, section 5",
)


def _is_own(call: Call) -> bool:
    """Whether a call has a method of A2A; of those that others have too, where it names its task as A2A does."""
    method = METHODS.get(call.method)
    names_task = "taskId" not in call.params and ("id" in call.params or "contextId" in call.params)
    return method is not None and (not method.is_shared or names_task)


def _recognise(data: Any) -> tuple[float, str] | None:
    """A method of A2A is sure; an answer is by its shape, and weaker than prose where any protocol could."""
    calls = list_calls(data)
    if not calls:
        spots = _list_spots(data)
        is_own = spots and all(find_shape(unwrap(spot)) or find_request(spot) for spot in spots)
        return (0.9, "an object as A2A writes it") if is_own else None
    if any(_is_own(call) for call in calls):
        return 0.975, "JSON-RPC with a method of A2A"
    if any(call.method for call in calls):
        return None
    if any(find_shape(unwrap(Spot(call.data.get("result")))) for call in calls):
        return 0.95, "JSON-RPC with a result as A2A gives it"
    if any(call.kind == "error" and is_error(Spot(call.data["error"])) for call in calls):
        return 0.95, "JSON-RPC with an error of A2A"
    # Any program may answer so: it is A2A where the conversation speaks it, and alone it is prose.
    if any(call.kind == "error" and call.data["error"].get("code") in list(ERRORS) for call in calls):
        return 0.26, "an error of JSON-RPC with a code of A2A"
    return 0.24, "an answer of JSON-RPC, in which A2A is written"


def _list_spots(data: Any) -> list[Spot]:
    return list(Spot(data).items) if isinstance(data, list) else [Spot(data)]


def _make(data: Any) -> Sequence[Draft]:
    calls = list_calls(data)
    if calls:
        return [_draft(call) for call in calls]
    return [
        draft_object(spot) if find_request(spot) is None else draft_sending(spot, None) for spot in _list_spots(data)
    ]


def _draft(call: Call) -> Draft:
    if call.kind in ("request", "notification"):
        return draft_call(call)
    draft = draft_answer(call)
    if call.id is None:
        draft.note(ID_MISSING, "the answer bears no id: what it answers is not known", call.path)
    return draft


def _find_version(data: Any) -> str | None:
    for call in list_calls(data):
        method = METHODS.get(call.method)
        if method is not None and not method.is_shared:
            return method.version
        version = find_version(unwrap(Spot(call.data.get("result"))))
        if version is not None:
            return version
    spots = [] if list_calls(data) else _list_spots(data)
    return next(filter(None, (find_version(find_request(spot) or unwrap(spot)) for spot in spots)), None)


def _reply(message: Message) -> Sequence[Reply]:
    """As all of JSON-RPC; where that request is not here, the message that a task repeats, else the request where it
    stands: a client that knows no conversation yet, or that asks for a task, names none."""
    by_id, repeated = find_replies(message), message.attributes.get("repeats")
    if repeated is None:
        is_alone = message.parent_id is None or message.conversation_id is None
        return by_id if is_alone else (*by_id, by_id[0].replace(whom="request-elsewhere"))
    return (
        *by_id[: message.parent_id is not None],
        Reply(whom="message-id", basis="explicit", why=_REPEATS, value=repeated),
    )


_REPEATS = "its task repeats that message"

DIALECT = make_dialect(
    Carrier(
        slug="a2a",
        title="A2A",
        summary="Messages of a client to an agent, and how the agent's tasks stand.",
        specification=SPECIFICATION,
        hint=_HINT,
        recognise=_recognise,
        make=_make,
        replies=_reply,
        labels=LABELS,
        notes=(ID_MISSING, NO_MESSAGE, STATE_UNKNOWN),
        glossary=GLOSSARY,
        versions=VERSIONS,
        names_conversations_late=True,
        version_of=_find_version,
        rank=21,
    )
)
