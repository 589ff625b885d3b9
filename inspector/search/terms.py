"""What of a message can be searched by name: the table that search collects."""

from __future__ import annotations

from dataclasses import dataclass

from dialects import PERFORMATIVES, all_dialects


@dataclass(frozen=True, slots=True)
class SearchableTerm:
    """A name of the search language that is an exact term of each message.

    `atom` is the record's name under which the term is indexed; `values`, where given, are all that exist. Where it
    `is_agent`, what people call the agent is found too (`names`).
    """

    name: str
    atom: str
    about: str
    values: tuple[str, ...] | None = None
    is_agent: bool = False


SEARCHABLE: tuple[SearchableTerm, ...] = (
    SearchableTerm(
        "dialect", "dialect", "the dialect it was written in", tuple(dialect.slug for dialect in all_dialects())
    ),
    SearchableTerm(
        "carrier",
        "carrier",
        "the dialect of the message that it stands in",
        tuple(dialect.slug for dialect in all_dialects() if dialect.is_carrier),
    ),
    SearchableTerm("from", "sender", "the sender, by its own or its friendly name", is_agent=True),
    SearchableTerm("to", "receiver", "a recipient; * for a broadcast", is_agent=True),
    SearchableTerm("performative", "performative", "the act", (*PERFORMATIVES, "malformed")),
    SearchableTerm("conversation", "conversation_id", "the conversation's id in the message"),
    SearchableTerm("trace", "trace_id", "the trace's id"),
    SearchableTerm("task", "task_id", "the task's id"),
    SearchableTerm("id", "message_id", "the message's id"),
    SearchableTerm("topic", "topic", "its topic"),
    SearchableTerm("status", "status", "the status in the message"),
    SearchableTerm("act", "native_act", "the dialect's own word for the act"),
    SearchableTerm("tool", "attributes.tool", "the tool that it calls"),
    SearchableTerm("version", "version", "the version of the dialect, where the message names it"),
    SearchableTerm("vocabulary", "vocabulary", "the vocabulary it was read with"),
    SearchableTerm("parent", "parent_id", "the id of its parent message"),
    SearchableTerm("correlation", "correlation_id", "the correlation id"),
    SearchableTerm("parent-task", "parent_task_id", "the id of the task above its task"),
    SearchableTerm("object", "object_id", "the id of its object"),
    SearchableTerm("target", "target", "its target"),
    SearchableTerm("path", "path", "an agent that it passed"),
    SearchableTerm("modifier", "modifier", "a modifier of the act"),
    SearchableTerm("delegation", "delegation", "the mode of a delegation: transfer, fork, assist"),
    SearchableTerm("capability", "capability", "a capability that its sender declared"),
    SearchableTerm("frame", "frame", "its frame"),
    SearchableTerm("result", "result_id", "the id of a result"),
    SearchableTerm("defines", "defines", "a term that it defines"),
    SearchableTerm("reference", "reference", "a path or address that it refers to"),
    SearchableTerm("note", "note", "the code of a note of the decoder"),
    SearchableTerm(
        "group",
        "group",
        "the group of a note of the decoder",
        ("malformed", "undecoded", "protocol", "sequence", "assumption", "security", "deprecated"),
    ),
)

# The record's names for what has a shorter one above, and what stands below a name: `attributes.det`.
ALIASES = {
    "sender": "from",
    "references": "reference",
    "notes": "note",
    "receivers": "to",
    "native_act": "act",
    "modifiers": "modifier",
    "capabilities": "capability",
    "object_id": "object",
    "message_id": "id",
    "conversation_id": "conversation",
    "trace_id": "trace",
    "parent_id": "parent",
    "task_id": "task",
    "parent_task_id": "parent-task",
    "correlation_id": "correlation",
    "result_id": "result",
}
PATHS = ("attributes.", "content.", "error.", "security.")
# What stands below these is the product's to say: any other name finds nothing, and is refused.
_SECURITY = ("encrypted", "opened", "session", "verified", "claim")
KNOWN = {"error.": ("code", "retryable", "cause"), "security.": _SECURITY}
