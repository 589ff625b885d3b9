"""Scenes: what the rules see of a conversation as it is resolved: what is odd in it, and not the whole of it; and what
followed on what tools gave back: the next words and the next call of their caller, and what was new.

Of a body no more is read than the rules need: the database cannot pick that out, its JSON refuses escapes of ours.

A scene depends on what resolving stored and on what is withdrawn, and so not on the order of processing.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, Q, QuerySet, Subquery

from dialects import all_dialects
from inspector.browsing.directory import ChangedKey
from inspector.database import IsAny
from inspector.threads.models import Conversation, Message
from inspector.tokens import MARKS, PIECE, VALUE, find_orders, is_result

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
    """The body of a message as resolving wrote it."""
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

    `odd` are those that were placed oddly, or cite what was not received; `cited_ids` says which id, where it is known,
    and `withdrawn` has those, as their keys, that were received and are withdrawn.
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
    withdrawn: set[bytes] = field(default_factory=set)
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


# Of so many results of a conversation it is asked what their callers did next, among so many messages.
MAX_RESULTS: Final = 200
_MAX_LATER: Final = 10
# So many of them are read, by their caller.
_MAX_READ: Final = 5
# Among so many messages these are looked for: most of a stream are pieces.
_MAX_WINDOW: Final = 500
# So many messages before a call are gone through for who else named what it has from a result.
_MAX_BEFORE: Final = 2000
# By which notes a decoder says that a tool failed.
TOOL_FAILURES: Final = frozenset(
    note.code for each in all_dialects() for note in each.notes if note.code.endswith(".tool-failed")
)
# Who speaks in a transcript without names, and calls no tools.
_NOT_CALLERS: Final = ("user", "system", "developer", "tool", "tool_result")


class Named(NamedTuple):
    """What an order in a result names and the next call has: a value, or the tool itself, with where both stand."""

    name: str
    is_tool: bool
    kind: str
    ordered_at: Span
    called_at: Span


def narrow_span(text: str, span: Span, start: int, end: int) -> Span:
    """Where text[start:end] stands in the raw text, of which the whole text comes from a stretch.

    A text that was written with escapes that no usual writer of JSON writes is not told apart: that is the whole.
    """
    layer, first, last = span
    if last - first == len(text):
        return layer, first + start, first + end
    for is_ascii in (False, True):
        if last - first == len(json.dumps(text, ensure_ascii=is_ascii)):
            before, through = (len(json.dumps(text[:at], ensure_ascii=is_ascii)) - 1 for at in (start, end))
            return layer, first + before, first + through
    return span


def list_named(result: Said, call: Said, *, has_failed: bool) -> Iterator[Named]:
    """What orders in a result name and a call has.

    A tool by its name alone is taken from an order that says who must call it, or that nothing else counts; what an
    error says is to be called first is help, and no order.
    """
    for text, span in result.texts:
        for order in find_orders(text):
            words = text[order.start : order.end]
            ordered_at = narrow_span(text, span, order.start, order.end)
            for value in dict.fromkeys(VALUE.findall(words)):
                called_at = _find_in(call, value)
                if called_at is not None:
                    yield Named(value, False, order.kind, ordered_at, called_at)
            is_counted = order.kind == "override" or (order.kind == "duty" and not has_failed)
            if is_counted and call.tool and re.search(rf"(?<![\w.-]){re.escape(call.tool)}(?![\w-])", words):
                yield Named(call.tool, True, order.kind, ordered_at, _find_in(call, call.tool) or call.texts[0][1])


def _find_in(call: Said, name: str) -> Span | None:
    for text, span in call.texts:
        at = text.find(name)
        if at >= 0:
            return narrow_span(text, span, at, at + len(name))
    return None


def load_after_results(
    scenes: Mapping[uuid.UUID, Scene],
    messages: QuerySet[Message],
    read: Callable[[Collection[uuid.UUID]], Mapping[uuid.UUID, Said]],
) -> None:
    """Fill `after_results` of these scenes from their results.

    Args:
        scenes: by the ids of their conversations.
        read: gives the messages of these ids with the texts of their sentences.
    """
    results = {said.message.id: said for scene in scenes.values() for said in scene.results[:MAX_RESULTS]}
    if not results:
        return
    chosen = _choose(messages, results)
    said = read({pk for call, later in chosen.values() for pk in (call, *later)})
    for scene in scenes.values():
        failures = _list_failures(scene)
        followed = []
        for result in scene.results[:MAX_RESULTS]:
            call, sent = chosen.get(result.message.id, (None, ()))
            if call is None or call not in said:
                continue
            later = [said[pk] for pk in sent if pk in said and not said[pk].is_mute]
            after = AfterResult(
                result=result,
                failure=failures.get(result.message.id),
                has_failed=result.message.id in failures,
                call=said[call],
                next=next(iter(later), None),
                next_call=_find_call(later),
            )
            followed.append(after)
        scene.after_results = list(_note_known(messages.filter(conversation=scene.conversation), followed))


def _find_call(later: Sequence[Said]) -> Said | None:
    """The first call; where its arguments came in pieces, the message in which they are put together."""
    calls = [each for each in later if each.is_call]
    begun, ended = [*calls, None, None][:2]
    is_begun = begun is not None and ended is not None and begun.tool == ended.tool
    return ended if is_begun and ended and ended.message.performative != "request" else begun


def _choose(
    messages: QuerySet[Message], results: Mapping[uuid.UUID, Said]
) -> Mapping[uuid.UUID, tuple[uuid.UUID, Sequence[uuid.UUID]]]:
    """Of each result the call, which a span is itself, and what its caller sent next, in order; of some messages."""
    window = messages.filter(
        conversation=OuterRef(OuterRef("conversation")), place__gt=OuterRef(OuterRef("place"))
    ).order_by("place")
    pieces = Q(performative="progress", native_act__regex=PIECE)
    later = messages.filter(pk__in=window.values("pk")[:_MAX_WINDOW]).exclude(pieces).order_by("place")
    call = messages.filter(conversation=OuterRef("conversation"), pk=OuterRef("parent")).values("pk")
    rows = messages.filter(IsAny("id", results)).annotate(
        call_id=Subquery(call), later=ArraySubquery(later.values("pk")[:_MAX_LATER])
    )
    found = {}
    for pk, call_id, after in rows.values_list("pk", "call_id", "later"):
        own = pk if results[pk].is_call else call_id
        if own:
            found[pk] = (own, after)
    wanted = {pk for call_id, after in found.values() for pk in (call_id, *after)}
    light = {row[0]: row[1:] for row in messages.filter(IsAny("id", wanted)).values_list("pk", "sender", "native_act")}
    chosen = {}
    for pk, (call_id, after) in found.items():
        caller = light[call_id][0]
        own = [each for each in after if each in light and light[each][0] == caller]
        own = [each for each in own if caller or light[each][1] not in _NOT_CALLERS]
        chosen[pk] = (call_id, own[:_MAX_READ])
    return chosen


def _list_failures(scene: Scene) -> dict[uuid.UUID, Span | None]:
    """Where each of the results that failed says so."""
    return {
        noted.message.id: tuple(note["span"]) if note.get("span") else None
        for noted in scene.noted
        for note in noted.notes
        if note["code"] in TOOL_FAILURES
    }


def _note_known(messages: QuerySet[Message], followed: Sequence[AfterResult]) -> Iterator[AfterResult]:
    """Each with what somebody else had said before its next call; asked only where orders name something of that."""
    for each in followed:
        names = set()
        if each.next_call is not None:
            names = {named.name for named in list_named(each.result, each.next_call, has_failed=each.has_failed)}
        yield each._replace(known=_find_known(messages, each, names)) if names else each


def _find_known(messages: QuerySet[Message], after: AfterResult, names: set[str]) -> frozenset[str]:
    """Those of the names that somebody said before a call: what tools gave back does not count.

    Nor does what its caller said since the result: that comes of it.
    """
    call = after.next_call
    places = dict(
        messages.filter(pk__in=[after.result.message.id, call and call.message.id]).values_list("pk", "place")
    )
    since, until = places[after.result.message.id], places[call.message.id] if call else b""
    rows = messages.filter(place__lt=until).order_by("-place")
    known = set()
    columns = ("place", "sender", "native_act", "performative", "english")
    for place, sender, native_act, performative, english in rows.values_list(*columns)[:_MAX_BEFORE].iterator():
        is_own = place > since and sender == after.call.message.sender and native_act not in _NOT_CALLERS
        if not is_own and not is_result(performative, native_act):
            known |= {name for name in names if name.lower() in english.lower()}
    return frozenset(known)
