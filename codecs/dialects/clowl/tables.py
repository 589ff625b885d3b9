"""What CLowl's words mean: the acts, error codes, delegation modes, states and fields, one row each.

Reading, telling, writing and the glossary all use these rows. Sources: clowl 0.2.0 (README, "Performatives"), the
v0.1 and v0.2 specifications (section 7 for errors) and the v0.3 draft schemas.
"""

from __future__ import annotations

from typing import NamedTuple

from .._dialect import Term


class Act(NamedTuple):
    """One performative: its code, the reference's English name, ours, and the version that brought it."""

    code: str
    name: str
    performative: str
    meaning: str
    since: str


ACTS = {
    act.code: act
    for act in (
        Act("REQ", "REQUEST", "request", "asks that a task be done", "0.1"),
        Act("INF", "INFORM", "inform", "gives information; no action is expected", "0.1"),
        Act("ACK", "ACKNOWLEDGE", "acknowledge", "confirms the receipt of a message: not yet agreement", "0.1"),
        Act("ERR", "ERROR", "failure", "says that it failed, with a code and a message", "0.1"),
        Act("DLGT", "DELEGATE", "delegate", "passes the task on to another agent, in a delegation mode", "0.1"),
        Act("DONE", "COMPLETE", "done", "says that the task has ended, with its result", "0.1"),
        Act("CNCL", "CANCEL", "cancel", "withdraws a task", "0.2"),
        Act("QRY", "QUERY", "query", "asks for information or a status, without any action", "0.2"),
        Act("PROG", "PROGRESS", "progress", "says how far a running task is", "0.2"),
        Act("CAPS", "CAPABILITIES", "advertise", "states the capabilities of the sender", "0.2"),
    )
}
CODE_OF = {act.performative: act.code for act in ACTS.values()}

V01_ACTS = frozenset(code for code, act in ACTS.items() if act.since == "0.1")
# CLowl-S delegates by an INF whose task is `delegation_notice`, and has no broadcast of capabilities.
SEMANTIC_ACTS = frozenset(ACTS) - {"DLGT", "CAPS"}


class ErrorCode(NamedTuple):
    """One error code: its name, whether section 7 lets it be retried, and what went wrong."""

    code: str
    name: str
    is_retryable: bool
    meaning: str


ERROR_CODES = {
    row.code: row
    for row in (
        ErrorCode("E001", "parse", True, "the message could not be parsed"),
        ErrorCode("E002", "auth", False, "the sender was not authorised"),
        ErrorCode("E003", "context", True, "the context could not be had"),
        ErrorCode("E004", "capacity", True, "the receiver has no capacity"),
        ErrorCode("E005", "task", False, "the task is not known or not possible"),
        ErrorCode("E006", "timeout", True, "it took too long"),
        ErrorCode("E007", "dependency", True, "something it depends on failed"),
        ErrorCode("E008", "validation", True, "the data is not valid"),
        ErrorCode("E009", "internal", True, "the receiver failed inside"),
        ErrorCode("E010", "delegation", False, "the delegation failed"),
        ErrorCode("E011", "conflict", True, "it conflicts with something else"),
        ErrorCode("E012", "budget", False, "a budget is used up"),
        ErrorCode("E013", "cancelled", False, "the task was cancelled"),
        ErrorCode("E014", "version", False, "the version is not supported"),
        ErrorCode("E015", "cycle", False, "the delegation runs in a circle"),
        ErrorCode("E016", "security", False, "it was stopped for a reason of security"),
    )
}
# Ranges that the error table keeps free: (first, last, whose they are).
RESERVED_CODES = ((100, 199, "transport"), (200, 299, "coordination"), (900, 999, "application"))


def name_error(code: str) -> str | None:
    """The plain name of an error code: of the catalogue, or of the reserved range it lies in; None for neither."""
    row = ERROR_CODES.get(code)
    if row is not None:
        return row.name
    if len(code) == 4 and code[0] == "E" and code[1:].isascii() and code[1:].isdigit():
        return next((f"{whose} range" for first, last, whose in RESERVED_CODES if first <= int(code[1:]) <= last), None)
    return None


class Mode(NamedTuple):
    """One delegation mode, with the words before the task, between task and receiver, and after the receiver."""

    name: str
    meaning: str
    before: str
    between: str
    after: str


MODES = {
    mode.name: mode
    for mode in (
        Mode(
            "transfer",
            "a full handoff: the one who delegates is done with it",
            " hands ",
            " over completely to ",
            " (delegation mode transfer)",
        ),
        Mode(
            "fork",
            "a parallel branch, beside the work of the one who delegates",
            " branches ",
            " off to ",
            ", to be worked on in parallel (delegation mode fork)",
        ),
        Mode(
            "assist",
            "help only: the one who delegates keeps the task",
            " calls for assistance with ",
            " from ",
            " (delegation mode assist)",
        ),
    )
}

STATES = {
    "CREATED": "made, not yet sent",
    "DISPATCHED": "sent out",
    "ACKNOWLEDGED": "received and taken on",
    "RUNNING": "being worked on",
    "WAITING": "waiting for something",
    "COMPLETED": "finished",
    "FAILED": "ended without success",
    "CANCELLED": "withdrawn",
    "TIMED_OUT": "ran out of time",
}

# Values of a `status` that say of what was cancelled that it is, in lower case and with spaces.
CANCELLED = frozenset({"cancelled", "canceled", "aborted"})

# wire key -> (label for people, meaning)
FIELDS: dict[str, tuple[str, str]] = {
    "clowl": ("version", "the version of CLowl that the message claims"),
    "cl": ("version", "the version of CLowl that the message claims (v0.1's key)"),
    "mid": ("message id", "names this message within its conversation"),
    "ts": ("time", "the time of the message, in whole Unix seconds"),
    "tid": ("trace id", "joins the messages of one goal across conversations"),
    "pid": ("parent id", "the message id that this one answers; null where it answers none"),
    "p": ("act", "the performative: what the message does"),
    "from": ("sender", "the agent that speaks"),
    "to": ("receiver", "the agents addressed: a name, a list of names, or * for everyone"),
    "cid": ("conversation id", "the conversation it belongs to"),
    "body": ("body", "the task and its data"),
    "body.t": ("task", "the name of the task"),
    "body.d": ("data", "the details"),
    "ctx": ("context", "the context that the message refers to"),
    "ctx.ref": ("context reference", "a path or address of the context"),
    "ctx.inline": ("context inline", "the context itself, at most 2,000 characters"),
    "ctx.hash": ("context hash", "the SHA-256 that the context must have"),
    "auth": ("token", "a token the message carries; nothing verifies it here"),
    "det": ("deterministic", "true if the sender marks the message deterministic"),
    "task": ("task", "the name of the task"),
    "data": ("data", "the details"),
    "task_id": ("task id", "names the task across its messages"),
    "state": ("state", "the state of the task"),
    "trace": ("trace", "the links of the task to others"),
    "trace.trace_id": ("trace id", "joins the messages of one goal"),
    "trace.parent_task_id": ("parent task id", "the task that this one is part of"),
    "trace.parent_mid": ("parent id", "the message id that this one answers"),
    "routing": ("routing", "the sender and the receivers"),
    "routing.from": ("sender", "the agent that sends it"),
    "routing.to": ("receiver", "the agents that it is sent to"),
    "routing.broadcast": ("broadcast", "true if it goes to everyone"),
    "auth.issuer": ("issuer", "the issuer of the token, as stated"),
    "auth.scopes": ("scopes", "the rights of the token, as stated"),
    "semantic": ("semantic message", "the CLowl-S message inside the envelope"),
    "body.d.delegation_mode": ("delegation mode", "the way in which the work is passed on"),
    "body.d.code": ("error code", "the kind of failure"),
    "body.d.msg": ("error message", "the failure in words"),
    "body.d.retry": ("retry", "true if the sender allows another try"),
    "body.d.cascade_err": ("cause", "the failure that caused this one"),
    "body.d.pct": ("percent", "the progress of the task, 0 to 100"),
    "body.d.note": ("note", "a remark on the progress"),
    "body.d.eta": ("estimated time", "the expected duration"),
    "body.d.supports": ("capabilities", "the abilities of the sender"),
    "body.d.reason": ("reason", "the reason for the withdrawal"),
    "body.d.status": ("status", "the status as the sender reports it"),
}

# Keys that language models write in place of the real ones: foreign key -> the key that was probably meant.
PROBABLY_MEANT = {
    "performative": "p",
    "context": "ctx",
    "ref_mid": "pid",
    "sender": "from",
    "receiver": "to",
    "conversation_id": "cid",
    "message_id": "mid",
    "parent_id": "pid",
    "trace_id": "tid",
    "timestamp": "ts",
    "token": "auth",
}

GLOSSARY = (
    *(
        Term(kind="act", code=act.code, name=act.name.lower(), meaning=act.meaning, cites="spec-v0.2 §4")
        for act in ACTS.values()
    ),
    *(
        Term(
            kind="error",
            code=row.code,
            name=row.name,
            meaning=f"{row.meaning}; {'may' if row.is_retryable else 'may not'} be retried",
            cites="spec-v0.2 §7",
        )
        for row in ERROR_CODES.values()
    ),
    *(
        Term(
            kind="error range",
            code=f"E{first}-E{last}",
            name=whose,
            meaning=f"kept free for errors of the {whose}",
            cites="error-codes",
        )
        for first, last, whose in RESERVED_CODES
    ),
    *(
        Term(kind="delegation mode", code=mode.name, name=mode.name, meaning=mode.meaning, cites="spec-v0.2 §4")
        for mode in MODES.values()
    ),
    *(
        Term(kind="state", code=code, name=code.lower().replace("_", " "), meaning=meaning, cites="architecture-v0.3")
        for code, meaning in STATES.items()
    ),
    *(
        Term(kind="field", code=code, name=label, meaning=meaning, cites="spec-v0.2 §3")
        for code, (label, meaning) in FIELDS.items()
    ),
)
