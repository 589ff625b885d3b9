"""The methods, states and errors of A2A in its three generations, each as a row. Labels and glossary follow."""

from __future__ import annotations

from typing import Final, NamedTuple

from .._dialect import Term

SPECIFICATION: Final = "Agent2Agent (A2A) protocol, before 0.2, 0.2 to 0.3, and 1.0"
VERSIONS: Final = ("0.1", "0.3", "1.0")


class Method(NamedTuple):
    """A method: its act, its verb with its object, the version that writes it so, and whether other protocols do."""

    performative: str
    says: str
    version: str
    is_shared: bool = False


_SEND: Final = "asks"
_GET: Final = "asks for the state of"
_CANCEL: Final = "asks {agent} to cancel"
_SET: Final = "asks {agent} to send news of"
_ASK_SET: Final = "asks {agent} where it sends news of"
_UNSET: Final = "asks {agent} to send no more news of"
_FOLLOW: Final = "asks to follow"
_CARD: Final = "asks {agent} for its full agent card"

METHODS: Final[dict[str, Method]] = {
    "tasks/send": Method("request", _SEND, "0.1"),
    "tasks/sendSubscribe": Method("request", _SEND, "0.1"),
    "tasks/pushNotification/set": Method("subscribe", _SET, "0.1"),
    "tasks/pushNotification/get": Method("query", _ASK_SET, "0.1"),
    "message/send": Method("request", _SEND, "0.3"),
    "message/stream": Method("request", _SEND, "0.3"),
    "tasks/get": Method("query", _GET, "0.3", is_shared=True),
    "tasks/list": Method("query", _GET, "0.3", is_shared=True),
    "tasks/cancel": Method("cancel", _CANCEL, "0.3", is_shared=True),
    "tasks/resubscribe": Method("subscribe", _FOLLOW, "0.3"),
    "tasks/pushNotificationConfig/set": Method("subscribe", _SET, "0.3"),
    "tasks/pushNotificationConfig/get": Method("query", _ASK_SET, "0.3"),
    "tasks/pushNotificationConfig/list": Method("query", _ASK_SET, "0.3"),
    "tasks/pushNotificationConfig/delete": Method("control", _UNSET, "0.3"),
    "agent/getAuthenticatedExtendedCard": Method("query", _CARD, "0.3"),
    "SendMessage": Method("request", _SEND, "1.0"),
    "SendStreamingMessage": Method("request", _SEND, "1.0"),
    "GetTask": Method("query", _GET, "1.0"),
    "ListTasks": Method("query", _GET, "1.0"),
    "CancelTask": Method("cancel", _CANCEL, "1.0"),
    "SubscribeToTask": Method("subscribe", _FOLLOW, "1.0"),
    "CreateTaskPushNotificationConfig": Method("subscribe", _SET, "1.0"),
    "GetTaskPushNotificationConfig": Method("query", _ASK_SET, "1.0"),
    "ListTaskPushNotificationConfigs": Method("query", _ASK_SET, "1.0"),
    "DeleteTaskPushNotificationConfig": Method("control", _UNSET, "1.0"),
    "GetExtendedAgentCard": Method("query", _CARD, "1.0"),
}
STREAMED: Final = frozenset({"tasks/sendSubscribe", "message/stream", "SendStreamingMessage"})
SENDING: Final = STREAMED | {"tasks/send", "message/send", "SendMessage"}


class State(NamedTuple):
    """A state of a task: the act of who reports it, and how a sentence says it."""

    performative: str
    says: str


# A task that waits for its client stays the same task: to say so is no new question.
STATES: Final[dict[str, State]] = {
    "submitted": State("acknowledge", "is submitted"),
    "working": State("progress", "is being worked on"),
    "input-required": State("progress", "needs input"),
    "auth-required": State("progress", "needs authorisation"),
    "completed": State("done", "is completed"),
    "canceled": State("inform", "is cancelled"),
    "failed": State("failure", "has failed"),
    "rejected": State("reject", "is rejected"),
    "unknown": State("inform", "is in an unknown state"),
    "unspecified": State("inform", "is in a state that is not said"),
}

# The error codes of the specification (A2A 1.0, section 5.4).
ERRORS: Final[dict[int, str]] = {
    -32001: "there is no such task",
    -32002: "the task can no longer be cancelled",
    -32003: "the agent sends no push notifications",
    -32004: "the agent does not support this operation",
    -32005: "the agent does not take this type of content",
    -32006: "the agent's own answer is not valid",
    -32007: "the agent has no extended card",
    -32008: "the agent needs an extension that the client does not support",
    -32009: "the agent does not speak this version of A2A",
}
# The same errors by what the types of HTTP's errors end with (section 11.6 of earlier drafts of 1.0).
PROBLEMS: Final[dict[str, int]] = {
    "task-not-found": -32001,
    "task-not-cancelable": -32002,
    "push-notification-not-supported": -32003,
    "unsupported-operation": -32004,
    "content-type-not-supported": -32005,
    "invalid-agent-response": -32006,
    "extended-agent-card-not-configured": -32007,
    "extension-support-required": -32008,
    "version-not-supported": -32009,
}


def read_state(written: str) -> str:
    """A state as version 0.3 writes it: `TASK_STATE_INPUT_REQUIRED` and `input_required` are `input-required`."""
    return written.lower().removeprefix("task_state_").replace("_", "-")


LABELS: Final[dict[str, tuple[str, str | None]]] = {
    "jsonrpc": ("version of JSON-RPC", None),
    "id": ("id", "of a request, of which the answer bears the same, or of a task"),
    "method": ("method", None),
    "params": ("parameters", None),
    "result": ("result", None),
    "error": ("error", None),
    "kind": ("kind", None),
    "role": ("role", "user is who asks, agent who is asked"),
    "contextId": ("conversation", "the agent gives it to what belongs together"),
    "sessionId": ("conversation", "as it was called before version 0.2"),
    "taskId": ("task", None),
    "messageId": ("id of the message", None),
    "referenceTaskIds": ("tasks that it refers to", None),
    "parts": ("parts", None),
    "status": ("status", None),
    "state": ("state of the task", None),
    "timestamp": ("time", None),
    "final": ("whether the stream ends", None),
    "history": ("earlier messages", "repeated, not sent anew"),
    "artifacts": ("artifacts", "results of the task"),
    "artifact": ("artifact", "a result of the task"),
    "artifactId": ("id of the artifact", None),
    "append": ("whether it is added", "to the piece before"),
    "lastChunk": ("whether it is the last piece", None),
    "skills": ("skills", None),
    "configuration": ("how the answer shall come", None),
    "pushNotificationConfig": ("where news is to be sent", None),
    "metadata": ("what goes along", "not part of the message itself"),
}

GLOSSARY: Final = (
    *(
        Term(kind="method", code=code, name=code, meaning=f"the client {row.says.format(agent='the agent')}{more}")
        for code, row in METHODS.items()
        for more in ("" if row.says in (_SEND, _CARD) else " a task",)
    ),
    *(Term(kind="state", code=code, name=code, meaning=f"the task {row.says}") for code, row in STATES.items()),
    *(Term(kind="error", code=str(code), name=str(code), meaning=meaning) for code, meaning in ERRORS.items()),
)
