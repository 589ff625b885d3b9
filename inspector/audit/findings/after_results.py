"""What followed on what tools gave back: the next words and the next call of their caller, and what was new."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, Q, QuerySet, Subquery

from dialects import all_dialects
from inspector.lookups import IsAny
from inspector.threads.models import Message
from inspector.tool_words import PIECE, VALUE, find_orders, is_result

from .scene import AfterResult, Said, Scene, Span

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


class _Chosen(NamedTuple):
    """What belongs to a result, by its ids: the call, and what its caller sent later, in order."""

    call: uuid.UUID
    later: Sequence[uuid.UUID]


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
    said = read({pk for each in chosen.values() for pk in (each.call, *each.later)})
    for scene in scenes.values():
        failures = _list_failures(scene)
        followed = []
        for result in scene.results[:MAX_RESULTS]:
            each = chosen.get(result.message.id)
            if each is None or each.call not in said:
                continue
            later = [said[pk] for pk in each.later if pk in said and not said[pk].is_mute]
            after = AfterResult(
                result=result,
                failure=failures.get(result.message.id),
                has_failed=result.message.id in failures,
                call=said[each.call],
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


def _choose(messages: QuerySet[Message], results: Mapping[uuid.UUID, Said]) -> dict[uuid.UUID, _Chosen]:
    """Of each result the call, which a span is itself, and what its caller sent next, within some messages."""
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
        chosen[pk] = _Chosen(call_id, own[:_MAX_READ])
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
