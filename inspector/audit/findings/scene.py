"""Scenes: what the rules see of a conversation as it is resolved: what is odd in it, and not the whole of it.

Of a body no more is read than the rules need: the database cannot pick that out, its JSON refuses escapes of ours.

A scene depends on what settling stored and on the keys of nothing else, and so not on the order of processing.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from inspector.browsing.changed_keys import ChangedKey
from inspector.threads.models import Conversation
from inspector.tokens import MARKS

Notes = list[dict[str, Any]]
Span = tuple[int, int, int]
_MASKED: Final = re.compile(re.escape(MARKS) + "[0-9a-f]*")


def _hide(masked: re.Match[str]) -> str:
    return MARKS[0] * len(masked[0])


# So many characters of a sentence are compared with others.
MAX_TEXT: Final = 20_000
NO_BYTES: Final = msgspec.Raw(b"null")


class OfMessage(msgspec.Struct):
    """What is read of the message; what is no note and no id as it stands, for `read_value`."""

    notes: Notes = []
    parent_id: Any = None
    correlation_id: Any = None
    task_id: Any = None
    object_id: Any = None
    references: msgspec.Raw = NO_BYTES
    condition: msgspec.Raw = NO_BYTES
    error: msgspec.Raw = NO_BYTES
    attributes: msgspec.Raw = NO_BYTES
    english: msgspec.Raw = NO_BYTES
    nested: msgspec.Raw = NO_BYTES
    content: msgspec.Raw = NO_BYTES


class OfRecord(msgspec.Struct):
    """What is read of its record."""

    notes: Notes = []
    from_envelope: list[str] = []


class Body(msgspec.Struct):
    """A told body; empty of a message that has not been told."""

    message: OfMessage = msgspec.field(default_factory=OfMessage)
    record: OfRecord = msgspec.field(default_factory=OfRecord)

    def list_notes(self, *, part: int) -> Sequence[Mapping[str, Any]]:
        """The notes of the message; those of its record are told once, with its first part."""
        return [*self.message.notes, *self.record.notes] if part == 1 else self.message.notes

    def names(self) -> tuple[str, ...]:
        """The names under which it may cite another message, the likeliest first."""
        said = (self.message.parent_id, self.message.correlation_id, self.message.task_id, self.message.object_id)
        return tuple(name for name in said if name)

    def find_tool(self) -> str:
        """The tool that it calls; empty where it calls none."""
        name = (read_value(self.message.attributes) or {}).get("tool")
        return name if isinstance(name, str) else ""

    def list_acts(self) -> Sequence[Mapping[str, Any]]:
        """What is done within it: calls of tools, what these gave back, and words; empty where it is one act."""
        return [each for each in read_value(self.message.nested) or () if isinstance(each, dict)]

    def list_texts(self, *acts: str) -> Sequence[tuple[str, Span]]:
        """The pieces of its sentence that come from one stretch of its raw text, with that; the first ones. Where acts
        are named, those of which one such act within it is made.

        What is masked is dots: nothing is to be compared with it.
        """
        found: list[tuple[str, Span]] = []
        left = MAX_TEXT
        wanted = {tuple(each.get("span") or ()) for each in self.list_acts() if each.get("performative") in acts}
        for piece in read_value(self.message.english) or ():
            spans: Sequence[Span] = piece.get("spans") or ()
            text = piece["text"][:left]
            if len(spans) == 1 and (not acts or tuple(spans[0]) in wanted):
                layer, start, end = spans[0]
                found.append((_MASKED.sub(_hide, text), (layer, start, end)))
                left -= len(text)
            if left <= 0:
                break
        return found


_read = msgspec.json.Decoder(Body).decode


def read_body(text: str) -> Body:
    """The body of a message as settling wrote it."""
    if not text:
        return Body()
    try:
        return _read(text)
    except msgspec.MsgspecError:
        # Half a surrogate pair is a character to us and to Python's reader, and none to the quick one.
        return msgspec.convert(_to_raw(json.loads(text)), Body)


def _to_raw(said: dict[str, Any]) -> dict[str, Any]:
    """The same with the values that are kept as they stand written anew."""
    message = said.get("message", {})
    kept = {name: msgspec.Raw(json.dumps(message[name]).encode()) for name in _KEPT if name in message}
    return {**said, "message": {**message, **kept}}


_KEPT: Final = ("references", "condition", "error", "attributes", "english", "nested", "content")


def read_value(said: msgspec.Raw) -> Any:
    """A value that was kept as it stands."""
    return json.loads(bytes(said))


class Seen(NamedTuple):
    """A message as the rules see it; the names are those of its row."""

    id: uuid.UUID
    conversation: uuid.UUID
    record: uuid.UUID
    part: int
    dialect: str
    performative: str | None
    sender: str
    receivers: Sequence[str]
    native_id: str
    at: datetime
    parent: uuid.UUID | None
    cited: bytes | None
    basis: str
    why: str


class SeenTask(NamedTuple):
    """A task as the rules see it; the names are those of its row."""

    conversation_id: uuid.UUID
    key: bytes
    within_key: bytes | None
    native_id: str
    request: uuid.UUID | None
    act: str
    requester: str
    performer: str
    state: str
    deadline_at: datetime | None
    first_at: datetime
    last_at: datetime
    finished_at: datetime | None
    failures: int
    is_answered: bool
    steps: str


class Said(NamedTuple):
    """A message, or an act within it, with the texts of its sentence, each with where it comes from, and the tool that
    it calls. `is_mute` where it says and calls nothing: the span of a step, for instance."""

    message: Seen
    texts: Sequence[tuple[str, Span]]
    tool: str = ""
    is_call: bool = False
    is_mute: bool = False

    @classmethod
    def read_result(cls, message: Seen, body: Body) -> Said:
        """What a tool gave back."""
        acts = body.list_acts()
        texts = body.list_texts("done", "failure") if acts else body.list_texts()
        # Who runs a tool and tells of it in one message has called it there.
        return cls(message, texts, is_call=any(each.get("performative") == "request" for each in acts))

    @classmethod
    def read_said(cls, message: Seen, body: Body) -> Said:
        """What its sender says or calls: of a span not what that was given, nor what a tool gave back in it."""
        acts = body.list_acts()
        if not acts:
            is_call = message.performative == "request"
            is_mute = not is_call and bytes(body.message.content) == bytes(NO_BYTES)
            return cls(message, body.list_texts(), body.find_tool(), is_call, is_mute)
        calls = [each for each in acts if each.get("performative") == "request"]
        tool = next((name for each in calls if (name := each.get("attributes", {}).get("tool"))), body.find_tool())
        texts = body.list_texts("request", "inform")
        return cls(message, texts, tool, bool(calls), not (texts or calls))


class AfterResult(NamedTuple):
    """What a tool gave back, and what its caller did next.

    Args:
        result: what it gave back.
        failure: the stretch that says that it failed; None also where it did not.
        has_failed: whether it did.
        call: the call that it answers.
        next: what its caller said next, be it words or a call; None where it said nothing soon.
        next_call: the tool that its caller called next.
        known: of the values and tools that the result's orders name and this call has, those that somebody else said
            before the call.
    """

    result: Said
    failure: Span | None
    has_failed: bool
    call: Said
    next: Said | None
    next_call: Said | None
    known: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Noted:
    """A message with the notes that its decoder made of it, each as the record's JSON has it."""

    message: Seen
    notes: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Skewed:
    """A message whose time is impossible: before the message it answers, or after it was received here."""

    message: Seen
    parent: uuid.UUID | None
    seconds: float


@dataclass(slots=True)
class Scene:
    """One conversation as the rules see it. Lists are in the order of the timeline.

    `odd` are those that were placed oddly, or cite what was not received; `cited_ids` says which id, where it is known.
    `leaning` carry what their record says of contexts, conditions and parts. `doubles` are records under one id; each
    of `reused` ends with a message whose number or turn is that of those before it. `failures` carry what their record
    says of the error. `tasks` are the remarkable ones, and those in the course of
    which work was handed on. `sealed` are encrypted, the first of each sender and receivers; `open` are not, in a
    conversation where others are or are agreed to be; `pacts` carry what they established of sessions, each as [kind,
    name, value and more]; `refused` are not opened by the key of their session. `hidden` hold characters that cannot
    be seen, `mixed` words that look Latin and are not. `judged` accept or evaluate a message of their own sender, which
    stands beside each. `rekeyed` show another key than their sender did in another conversation. `elsewhere` are
    requests that messages of other conversations answer, and requests and reports of which the other may stand in
    another one, so that nothing is missing here. `results` are what tools gave back and failed, gives orders or states
    a value; `after_results` what their callers did next. `strangers` came by a key whose agents have other names, each
    with what the key is called.
    """

    conversation: Conversation
    noted: list[Noted] = field(default_factory=list)
    odd: list[Seen] = field(default_factory=list)
    cited_ids: dict[uuid.UUID, str] = field(default_factory=dict)
    leaning: list[tuple[Seen, Mapping[str, Any]]] = field(default_factory=list)
    doubles: list[list[Seen]] = field(default_factory=list)
    reused: list[list[Seen]] = field(default_factory=list)
    failures: list[tuple[Seen, Mapping[str, Any]]] = field(default_factory=list)
    tasks: list[SeenTask] = field(default_factory=list)
    after_end: list[tuple[SeenTask, Seen]] = field(default_factory=list)
    skewed: list[Skewed] = field(default_factory=list)
    sealed: list[Seen] = field(default_factory=list)
    open: list[Seen] = field(default_factory=list)
    pacts: list[tuple[Seen, Sequence[Sequence[Any]]]] = field(default_factory=list)
    refused: list[Seen] = field(default_factory=list)
    hidden: list[tuple[Seen, str]] = field(default_factory=list)
    mixed: list[tuple[Seen, Sequence[str]]] = field(default_factory=list)
    judged: list[tuple[Seen, Seen]] = field(default_factory=list)
    results: list[Said] = field(default_factory=list)
    after_results: list[AfterResult] = field(default_factory=list)
    strangers: list[tuple[Seen, str]] = field(default_factory=list)
    rekeyed: list[ChangedKey] = field(default_factory=list)
    elsewhere: set[uuid.UUID] = field(default_factory=set)
    first: Seen | None = None
