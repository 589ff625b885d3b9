"""The methods of MCP: whose they are, what act each is, and how a sentence says it. Labels and glossary follow."""

from __future__ import annotations

from typing import Final, NamedTuple

from .._dialect import Term

SPECIFICATION: Final = "Model Context Protocol, revisions 2024-11-05 to 2026-07-28"
REVISIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")


class Method(NamedTuple):
    """A method: its act, who calls it ("client", "server" or "either"), and its verb with its object."""

    performative: str
    caller: str
    says: str


METHODS: Final[dict[str, Method]] = {
    "initialize": Method("handshake", "client", "opens a session"),
    "server/discover": Method("handshake", "client", "asks what the server can do"),
    "ping": Method("control", "either", "asks whether the other side is there"),
    "tools/list": Method("query", "client", "asks for the list of tools"),
    "tools/call": Method("request", "client", "calls"),
    "resources/list": Method("query", "client", "asks for the list of resources"),
    "resources/templates/list": Method("query", "client", "asks for the templates of resources"),
    "resources/read": Method("query", "client", "asks for the resource"),
    "resources/subscribe": Method("subscribe", "client", "asks to be told of changes of the resource"),
    "resources/unsubscribe": Method("unsubscribe", "client", "asks to be told no more of the resource"),
    "subscriptions/listen": Method("subscribe", "client", "asks to be told of changes"),
    "prompts/list": Method("query", "client", "asks for the list of prompts"),
    "prompts/get": Method("query", "client", "asks for the prompt"),
    "completion/complete": Method("query", "client", "asks how an argument may be completed"),
    "logging/setLevel": Method("control", "client", "sets the level of log messages"),
    "sampling/createMessage": Method("request", "server", "asks the client's model to answer"),
    "elicitation/create": Method("query", "server", "asks the client's user"),
    "roots/list": Method("query", "server", "asks which folders it may work in"),
    "tasks/get": Method("query", "either", "asks for the state of the task"),
    "tasks/result": Method("query", "either", "asks for the result of the task"),
    "tasks/list": Method("query", "either", "asks for the list of tasks"),
    "tasks/cancel": Method("cancel", "either", "cancels the task"),
    "notifications/initialized": Method("handshake", "client", "says that it is ready"),
    "notifications/cancelled": Method("cancel", "either", "withdraws its request"),
    "notifications/progress": Method("progress", "either", "reports progress"),
    "notifications/message": Method("inform", "server", "writes to the log"),
    "notifications/resources/updated": Method("inform", "server", "says that a resource changed"),
    "notifications/resources/list_changed": Method("inform", "server", "says that its list of resources changed"),
    "notifications/tools/list_changed": Method("inform", "server", "says that its list of tools changed"),
    "notifications/prompts/list_changed": Method("inform", "server", "says that its list of prompts changed"),
    "notifications/roots/list_changed": Method("inform", "client", "says that its list of folders changed"),
    "notifications/elicitation/complete": Method("inform", "server", "says that what it asked for is complete"),
    "notifications/subscriptions/acknowledged": Method("acknowledge", "server", "confirms what it will tell of"),
    "notifications/tasks/status": Method("inform", "either", "reports the state of a task"),
}

# Of the answers: a key that only this one has, its act, and how a sentence says it.
ANSWERS: Final = (
    ("serverInfo", "handshake", "agrees to the session"),
    ("supportedVersions", "advertise", "names the revisions of MCP that it speaks"),
    ("inputRequests", "query", "asks for more before it can answer"),
    ("tools", "inform", "lists its tools"),
    ("resources", "inform", "lists its resources"),
    ("resourceTemplates", "inform", "lists its templates of resources"),
    ("prompts", "inform", "lists its prompts"),
    ("contents", "inform", "gives the resource"),
    ("messages", "inform", "gives the prompt"),
    ("completion", "inform", "completes the argument"),
    ("roots", "inform", "lists the folders"),
    ("task", "inform", "reports the state of a task"),
    ("tasks", "inform", "lists its tasks"),
    ("taskId", "inform", "reports the state of a task"),
)
# What a user makes of a question: its act, and how a sentence says it.
ACTIONS: Final = {
    "accept": ("accept", "accepts"),
    "decline": ("reject", "declines"),
    "cancel": ("cancel", "gives no answer"),
}
# Answers that clients give.
OF_CLIENT: Final = frozenset({"roots", "action", "model"})

STATES: Final = frozenset({"working", "input_required", "completed", "failed", "cancelled"})

LABELS: Final[dict[str, tuple[str, str | None]]] = {
    "jsonrpc": ("version of JSON-RPC", None),
    "id": ("id of the request", "the answer bears the same; each side counts its own"),
    "method": ("method", None),
    "params": ("parameters", None),
    "params.name": ("name of what is called", None),
    "params.arguments": ("arguments", None),
    "params.protocolVersion": ("revision of MCP", None),
    "result": ("result", None),
    "result.isError": ("whether the tool failed", None),
    "result.content": ("content", None),
    "result.structuredContent": ("content as data", None),
    "error": ("error", None),
    "error.code": ("code of the error", None),
    "error.message": ("message of the error", None),
    "_meta": ("what goes along", "not part of the call itself"),
    "progressToken": ("progress token", "reports of progress bear the same"),
}

GLOSSARY: Final = (
    *(
        Term(
            kind="method",
            code=code,
            name=code,
            meaning=f"the {row.caller} {row.says}" if row.caller != "either" else f"either side {row.says}",
        )
        for code, row in METHODS.items()
    ),
    Term(kind="answer", code="isError", name="isError", meaning="the tool ran, and failed"),
)
