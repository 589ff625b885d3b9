"""A stored conversation as English alone: the lines (`dialects.Transcript`) that the copy as text, the API and reports
print; text of what was opened with a key is in none of them."""

from __future__ import annotations

import json
import uuid
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from django.db.models.functions import Coalesce

from dialects import (
    Answer,
    Definition,
    Note,
    Segment,
    Target,
    Transcript,
    TranscriptLine,
    find_answer,
    make_visible,
    name_message,
    say_cautions,
    say_conflict,
    say_name,
)
from dialects import Message as Told
from inspector.accounts.models import Workspace
from inspector.effort import check_effort
from inspector.intake.models import Record
from inspector.intake.sealed import clear_sha256
from inspector.threads.messages import read_body
from inspector.threads.models import Conversation, Message
from inspector.threads.placing.citations import HERE, SEVERAL, are_here, count_bearers, find_reuse, write_bearers
from inspector.threads.placing.links import name_cited
from inspector.threads.rendering.rule_flags import RuleFlag
from inspector.threads.timeline import Start, number_messages, read_timeline

# So many lines one text has; a longer conversation goes on at an offset.
MAX_LINES: Final = 500
# The body of a message that is not told yet.
_NOTHING: Final = '{"message": {}}'


def tell_lines(
    *,
    workspace: Workspace,
    messages: Sequence[Message],
    known: Mapping[uuid.UUID, Message] | None = None,
    bodies: Mapping[uuid.UUID, Mapping[str, Any]] | None = None,
) -> dict[uuid.UUID, TranscriptLine]:
    """What the transcript of their conversation says of each of these messages, by their ids; at most three statements.
    They are in the order of time, with their numbers and bodies (`bodies`: those read already). `known` are all that
    are answered, numbered, where they are loaded; then one at most is made."""
    here = {message.pk: message for message in messages}
    outside = {message.parent for message in messages if message.parent} - here.keys()
    parents = dict(known or {})
    if outside and known is None:
        parents = Message.objects.shown().filter(workspace=workspace).in_bulk(list(outside))
        number_messages(parents.values())
    # Where clocks differ what is answered may stand later.
    parents |= here
    transcript, lines = Transcript(), dict[uuid.UUID, TranscriptLine]()
    wires, reused = _find_likeness(messages), find_reused(messages)
    for message in messages:
        check_effort()
        body = (bodies or {}).get(message.pk) or read_body(message)
        lines[message.pk] = transcript.tell(
            read_told(message, body["message"]),
            dialect=message.dialect,
            wire=wires.get(message.record_id) or str(message.record_id),
            notes=read_notes(body, message.part),
            number=message.number,
            answer=_find_answer(message, body["message"], lines, parents),
        )
        # Of what stands before the lines told here the threads know.
        reuse = reused.get(message.pk)
        if reuse and not any("used before" in place for place in lines[message.pk].places):
            lines[message.pk].places += (reuse,)
    return lines


def find_reused(messages: Iterable[Message]) -> dict[uuid.UUID, str]:
    """That a message's id, number or turn was used before with other content, wherever that stands; no statement where
    none of the messages shows it."""
    messages = list(messages)
    doubt = "which of the two is meant by replies is unknown"
    said = {each.pk: find_reuse(each.parent_why) for each in messages}
    found = {pk: f"Caution: {reuse}; {doubt}." for pk, reuse in said.items() if reuse}
    firsts = _find_first_bearers([each for each in messages if each.sights & RuleFlag.DOUBLE])
    held = Message.objects.defer("body", "words", "atoms").in_bulk({*firsts, *firsts.values()}) if firsts else {}
    number_messages(held.values())
    digests = _find_digests({each.record_id for each in held.values()}) if held else {}
    for pk, first_pk in firsts.items():
        if pk in held and first_pk in held:
            message, first = held[pk], held[first_pk]
            # What says the same word for word is a repetition, which is no riddle.
            if digests.get(first.record_id) != digests.get(message.record_id):
                check_effort()
                # Two at a time: of many long ones no more are held.
                bodies = dict(Message.objects.filter(pk__in=(pk, first_pk)).values_list("pk", "body"))
                told = [
                    read_told(each, json.loads(bodies.get(each.pk) or _NOTHING)["message"]) for each in (first, message)
                ]
                found[pk] = say_conflict(f"the id {say_name(message.native_id)}", first.number, *told)
    return found


def _find_first_bearers(messages: Sequence[Message]) -> dict[uuid.UUID, uuid.UUID]:
    """The first message before each of these in its conversation that bears its id too; at most one statement, which
    looks at the bearers of an id once, however many of these bear it."""
    named = {(each.conversation_id, bytes(each.id_key or b"")): each for each in messages if each.id_key and each.place}
    if not named:
        return {}
    bearers = Message.objects.shown().filter(
        channel__in={each.channel_id for each in named.values()},
        conversation__in={conversation_id for conversation_id, _ in named},
        id_key__in=[key for _, key in named],
        place__isnull=False,
    )
    order = ("conversation_id", "id_key")
    rows = bearers.order_by(*order, "place").distinct(*order).values_list(*order, "pk", "record_id")
    first = {(conversation_id, bytes(key or b"")): (pk, record_id) for conversation_id, key, pk, record_id in rows}
    found = {each.pk: first.get((each.conversation_id, bytes(each.id_key or b""))) for each in messages}
    own = {each.pk: each.record_id for each in messages}
    return {pk: other[0] for pk, other in found.items() if other and other[1] != own[pk]}


def _find_likeness(messages: Sequence[Message]) -> dict[uuid.UUID, bytes]:
    """What is the same where records say the same word for word, of those messages that bear an id or a turn again."""
    named = {
        message.pk: (message.native_id or message.turn, message.native_id or message.sender) for message in messages
    }
    counts = Counter(named.values())
    again = [message.record_id for message in messages if named[message.pk][0] and counts[named[message.pk]] > 1]
    if not again:
        return {}
    return _find_digests(again)


def _find_digests(record_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, bytes]:
    """The digests of the texts of records: the texts themselves stay in the database."""
    digest = Coalesce(clear_sha256("wire"), clear_sha256("source"))
    return {pk: bytes(found) for pk, found in Record.objects.filter(pk__in=record_ids).values_list("pk", digest)}


def write_text(*, conversation: Conversation, offset: int = 0) -> str:
    """A conversation as lines of text, every hidden character visible: at most `MAX_LINES` from an offset on."""
    window = read_timeline(conversation=conversation, start=Start(offset=offset), size=MAX_LINES)
    lines = tell_lines(workspace=conversation.workspace, messages=window.rows)
    return "".join(f"{make_visible(line)}\n" for line in _write(conversation, list(lines.values())))


def _write(conversation: Conversation, lines: Sequence[TranscriptLine]) -> Iterator[str]:
    yield (
        f"Conversation {say_name(conversation.native_id)}:" if conversation.native_id else "A conversation without id:"
    )
    for line in lines:
        yield line.text
    last = lines[-1].number if lines else 0
    if last < conversation.message_count:
        yield f"Here end {len(lines):,} of {conversation.message_count:,} messages; the next is message {last + 1:,}."


def read_told(message: Message, told: Mapping[str, Any]) -> Told:
    """What telling wrote of a message, as far as a line needs it: it was checked when it was written."""
    if not told:
        return Told(sender=message.sender or None, english=(Segment(text="Not processed yet."),))
    target = told.get("target")
    read: dict[str, Any] = {name: _read_segments(told.get(name)) for name in ("english", "also")}
    read["receivers"] = tuple(told.get("receivers") or ())
    read["defines"] = tuple(Definition.trust(dict(each)) for each in told.get("defines") or ())
    read["target"] = Target.trust(dict(target)) if target else None
    return Told.trust({**told, **read})


def _read_segments(rows: Iterable[Mapping[str, Any]] | None) -> tuple[Segment, ...]:
    return tuple(Segment.trust({"text": row["text"], "basis": row.get("basis", "exact")}) for row in rows or ())


def read_notes(body: Mapping[str, Any], part: int) -> list[Note]:
    """The notes of a message; those of its record stand at its first part."""
    shared = body["record"].get("notes") or () if part == 1 else ()
    names = ("severity", "group", "code", "text")
    return [
        Note(**{name: note[name] for name in names}, span=tuple(note["span"]) if note.get("span") else None)
        for note in (*(body["message"].get("notes") or ()), *shared)
    ]


def load_sentences(messages: Collection[Message]) -> dict[uuid.UUID, str]:
    """The English of messages as lists have it, by their ids, each with its cautions; one statement more for notes,
    and where ids were used before four, and one for each of these."""
    doubtful = [message.pk for message in messages if message.severity >= Message.Severity.NOTICE]
    rows = Message.objects.filter(pk__in=doubtful).values_list("pk", "part", "body")
    doubts = dict[uuid.UUID, str]()
    # A few at a time: of many long bodies no more are held.
    for pk, part, body in rows.iterator(chunk_size=10) if doubtful else ():
        check_effort()
        doubts[pk] = add_cautions("", body, part)
    reused = find_reused(messages)
    return {
        each.pk: " ".join(filter(None, (each.english + doubts.get(each.pk, ""), reused.get(each.pk))))
        for each in messages
    }


def add_cautions(english: str, body: str, part: int) -> str:
    """The English of a message with the cautions that its body, as JSON text, has: nobody reads it without them."""
    return english + (say_doubts(json.loads(body), part) if body else "")


def say_doubts(body: Mapping[str, Any], part: int) -> str:
    """The cautions of a message, those of its record at its first part."""
    return "".join(segment.text for segment in say_cautions(read_notes(body, part)))


def _find_answer(
    message: Message,
    told: Mapping[str, Any],
    lines: Mapping[uuid.UUID, TranscriptLine],
    parents: Mapping[uuid.UUID, Message],
) -> Answer | None:
    basis = message.parent_basis
    if not basis or basis == "adjacency":
        return None
    if message.parent is None:
        cited = name_cited(told)
        bearers = count_bearers(message.parent_why)
        if bearers and are_here(message.parent_why):
            return _name_several(message, told, cited, lines)
        if bearers:
            return Answer(basis, elsewhere=f"message {say_name(cited)}; {write_bearers(bearers)} {SEVERAL}")
        return Answer(basis, cited=cited) if cited else None
    if message.parent in lines:
        return Answer(basis, (lines[message.parent],))
    parent = parents.get(message.parent)
    if parent is None:
        return Answer(basis, elsewhere="a message that is not shown")
    name = name_message(parent.number, parent, dialect=parent.dialect)
    where = "" if parent.conversation_id == message.conversation_id else " of another conversation"
    return Answer(basis, elsewhere=f"{name}{where}")


def _name_several(
    message: Message, told: Mapping[str, Any], cited: str, lines: Mapping[uuid.UUID, TranscriptLine]
) -> Answer:
    """Each of the messages before it that it may answer; where some stand in no line, how many there are."""
    found = find_answer(read_told(message, told), message.dialect, deque(lines.values()))
    count = count_bearers(message.parent_why)
    if found is not None and len(found.lines) == count:
        return Answer(message.parent_basis, found.lines)
    return Answer(message.parent_basis, elsewhere=f"message {say_name(cited)}; {HERE}{write_bearers(count)} {SEVERAL}")
