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
    SearchableTerm("from", "sender", "who sent it, by its own name or what people call it", is_agent=True),
    SearchableTerm("to", "receiver", "whom it was sent to; * for a broadcast", is_agent=True),
    SearchableTerm("performative", "performative", "the act", (*PERFORMATIVES, "malformed")),
    SearchableTerm("conversation", "conversation_id", "the conversation's id as the wire says"),
    SearchableTerm("trace", "trace_id", "the trace's id"),
    SearchableTerm("task", "task_id", "the task's id"),
    SearchableTerm("id", "message_id", "the message's id"),
    SearchableTerm("topic", "topic", "what it is about"),
    SearchableTerm("status", "status", "the status that the wire says"),
    SearchableTerm("act", "native_act", "the dialect's own word for the act"),
)
