"""A stored conversation as English alone: the lines (`dialects.Transcript`) that the copy as text, the API and reports
print; text of what was opened with a key is in none of them."""

from __future__ import annotations

import json
import uuid
from collections import Counter, defaultdict, deque
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
    get_dialect,
    make_visible,
    name_message,
    say_cautions,
    say_conflict,
    say_instant,
    say_name,
)
from dialects import Message as Told
from inspector.accounts.models import Workspace
from inspector.bounds import check_effort
from inspector.browsing.directory import KEYED, ChangedKey, find_changed_keys
from inspector.intake.models import Record
from inspector.intake.sealed import clear_sha256
from inspector.threads.keys import name_cited
from inspector.threads.models import Conversation, Message
from inspector.threads.models.messages import MAX_SHORT_BODY, MessageQuerySet
from inspector.threads.models.packed_text import unpack_text
from inspector.threads.nodes import HERE, SAID_TIMES, SEVERAL, are_here, count_bearers, find_reuse, write_bearers
from inspector.threads.selectors import mark_noted, read_body
from inspector.threads.terms import RuleFlag
from inspector.threads.timeline import Start, load_places, number_messages, read_timeline
from inspector.threads.trees import find_carrying

# So many lines one text has; a longer conversation goes on at an offset.
MAX_LINES: Final = 500
# So many messages before a window are recalled: a statement is compared with no more.
MAX_RECALLED: Final = 100
# Whose id, number or turn may have been used before.
REUSING: Final = (RuleFlag.DOUBLE | RuleFlag.REUSED).value
# The body of a message that is not told yet.
_NOTHING: Final = '{"message": {}}'


def tell_lines(
    *,
    workspace: Workspace,
    messages: Sequence[Message],
    known: Mapping[uuid.UUID, Message] | None = None,
    bodies: Mapping[uuid.UUID, Mapping[str, Any]] | None = None,
    rekeyed: Mapping[uuid.UUID, Sequence[ChangedKey]] | None = None,
) -> dict[uuid.UUID, TranscriptLine]:
    """What the transcript of their conversation says of each of these messages, by their ids; at most three statements,
    one for keys and three for what stands before them. They are in the order of time, with their numbers and bodies
    (`bodies`: those read already). `known` are all that are answered, numbered, where they are loaded; then two fewer
    are made. `rekeyed` are their changed keys, where they are found already."""
    here = {message.pk: message for message in messages}
    outside = {message.parent for message in messages if message.parent} - here.keys()
    # A page shows this beside the line.
    carrying = find_carrying(messages) if known is None else {}
    parents = dict(known or {})
    if (outside or carrying) and known is None:
        rows = Message.objects.shown().filter(workspace=workspace)
        parents = rows.in_bulk([*outside, *carrying.values()])
        number_messages(parents.values())
    transcript, lines = Transcript(), dict[uuid.UUID, TranscriptLine]()
    wires, reused = _find_likeness(messages), find_reused(messages)
    keys = _tell_rekeyed(find_rekeyed(messages) if rekeyed is None else rekeyed)
    # Where clocks differ what is answered may stand later.
    later = [here[each.parent] for each in messages if each.parent in here and here[each.parent].number > each.number]
    recalled = _recall(transcript, messages, [*later, *(parents[pk] for pk in outside if pk in parents)], wires)
    parents |= here
    before = dict(recalled)
    for message in messages:
        check_effort()
        body = (bodies or {}).get(message.pk) or read_body(message)
        line = lines[message.pk] = before[message.pk] = transcript.tell(
            read_told(message, body["message"]),
            dialect=message.dialect,
            wire=wires.get(message.record_id) or str(message.record_id),
            notes=read_notes(body, message.part),
            number=message.number,
            answer=_find_answer(message, body["message"], before, parents),
        )
        if message.pk in recalled:
            line.ends |= recalled[message.pk].ends
            line.is_answered |= recalled[message.pk].is_answered
        # Of what stands before the lines told here the threads know.
        reuse = reused.get(message.pk)
        if reuse and not any("used before" in place for place in line.places):
            line.places += (reuse,)
        line.places += keys.get(message.pk, ())
        if message.pk in carrying and (outer := parents.get(carrying[message.pk])) is not None:
            line.places += (
                f"Within {name_message(outer.number, outer, dialect=outer.dialect)} of another conversation.",
            )
    return lines


def _recall(
    transcript: Transcript,
    messages: Sequence[Message],
    answered: Iterable[Message],
    wires: Mapping[uuid.UUID, bytes],
) -> dict[uuid.UUID, TranscriptLine]:
    """Have what lines are compared with recalled: what they answer and what stands right before them, which are given
    back, and earlier answers to that; then one statement, and two in a conversation longer than is recalled."""
    first = messages[0] if messages else None
    before, older = list[Message](), list[Message]()
    named = {each.pk: each for each in answered if first and each.conversation_id == first.conversation_id}
    if first and first.number > 1 and first.place is not None:
        shown = Message.objects.shown().filter(conversation=first.conversation_id)
        before = _read_before(shown.filter(place__lt=first.place), MAX_RECALLED)
        for number, each in enumerate(before, first.number - len(before)):
            each.number = number
        tasks = {each.task for each in messages if each.parent in named and each.task}
        if tasks and len(before) == MAX_RECALLED:
            rows = shown.filter(place__lt=before[0].place, task__in=tasks, parent__in=named)
            older = _read_before(rows, MAX_LINES)
            number_messages(older)
    stands_before = {each.pk for each in before}
    lines = {pk: _recall_one(transcript, each, {}, wires) for pk, each in named.items() if pk not in stands_before}
    for each in older:
        if each.parent in lines:
            _recall_one(transcript, each, lines, wires)
    return _recall_in_order(transcript, before, lines, wires)


def _read_before(rows: MessageQuerySet, limit: int) -> list[Message]:
    """The last of these rows, in order."""
    return list(rows.light().order_by("-place")[:limit])[::-1]


def _recall_in_order(
    transcript: Transcript,
    rows: Iterable[Message],
    lines: dict[uuid.UUID, TranscriptLine],
    wires: Mapping[uuid.UUID, bytes],
) -> dict[uuid.UUID, TranscriptLine]:
    """The lines of rows that stand one after another, and those that are recalled already."""
    for each in rows:
        check_effort()
        lines[each.pk] = _recall_one(transcript, each, lines, wires, is_before=True)
    return lines


def _recall_one(
    transcript: Transcript,
    message: Message,
    lines: Mapping[uuid.UUID, TranscriptLine],
    wires: Mapping[uuid.UUID, bytes],
    *,
    is_before: bool = False,
) -> TranscriptLine:
    text = unpack_text(vars(message).get("short_body") or b"", max_bytes=MAX_SHORT_BODY)
    told = json.loads(text)["message"] if text else {}
    line = transcript.recall(
        read_told(message, told) if told else _read_columns(message),
        dialect=message.dialect,
        wire=wires.get(message.record_id) or str(message.record_id),
        number=message.number,
        answer=_find_answer(message, told, lines, {}) if is_before or message.parent in lines else None,
        is_before=is_before,
    )
    line.is_unclear |= bool(count_bearers(message.parent_why))
    return line


def _read_columns(message: Message) -> Told:
    return Told(
        performative=message.performative,
        native_act=message.native_act or None,
        sender=message.sender or None,
        receivers=tuple(message.receivers),
        topic=message.topic or None,
        task_id=message.task_id or None,
        status=message.status or None,
        sent_at=message.order_time.isoformat() if message.order_basis in SAID_TIMES else None,
    )


def find_conflicts(
    messages: Iterable[Message], rekeyed: Mapping[uuid.UUID, Sequence[ChangedKey]] | None = None
) -> dict[uuid.UUID, str]:
    """What of messages contradicts others, wherever these stand: an id that is used again, a key that is another;
    `rekeyed` are those, where they are found already."""
    messages = list(messages)
    found = {pk: (said,) for pk, said in find_reused(messages).items()}
    keys = _tell_rekeyed(find_rekeyed(messages) if rekeyed is None else rekeyed)
    return {pk: " ".join((*found.get(pk, ()), *keys.get(pk, ()))) for pk in found.keys() | keys.keys()}


def _tell_rekeyed(rekeyed: Mapping[uuid.UUID, Sequence[ChangedKey]]) -> dict[uuid.UUID, tuple[str, ...]]:
    return {pk: tuple(f"Caution: {say_changed_key(each)}" for each in changed) for pk, changed in rekeyed.items()}


def find_rekeyed(messages: Iterable[Message]) -> dict[uuid.UUID, list[ChangedKey]]:
    """The keys of messages that are others than their sender showed in another conversation; no statement where none
    of them shows keys, else one."""
    keyed = {each.pk: each.conversation_id for each in messages if each.dialect in KEYED and each.conversation_id}
    found: dict[uuid.UUID, list[ChangedKey]] = defaultdict(list)
    for changed in find_changed_keys(set(keyed.values())) if keyed else ():
        if changed.message in keyed:
            found[changed.message].append(changed)
    return found


def say_changed_key(changed: ChangedKey) -> str:
    """That a key is another one, and where and when which one was shown: a whole sentence."""
    say = get_dialect(changed.dialect).say_key
    (words, one), (_, other) = (say(changed.name, each) for each in (changed.value, changed.other_value))
    name = changed.other_conversation
    where = f"in conversation {say_name(name)}" if name else "in another conversation"
    when = say_instant(changed.other_at)
    return f"{say_name(changed.sender)}'s {words} is another one than {where} ({when}): {one} here, {other} there."


def find_reused(messages: Iterable[Message]) -> dict[uuid.UUID, str]:
    """That a message's id, number or turn was used before with other content, wherever that stands; no statement where
    none of the messages shows it."""
    messages = list(messages)
    doubt = "which of the two is meant by replies is unknown"
    said = {each.pk: find_reuse(each.parent_why) for each in messages}
    found = {pk: f"Caution: {reuse}; {doubt}." for pk, reuse in said.items() if reuse}
    for first, message in _find_doubles(messages):
        check_effort()
        # Two at a time: of many long ones no more are held.
        bodies = dict(Message.objects.filter(pk__in=(message.pk, first.pk)).values_list("pk", "body"))
        told = [read_told(each, json.loads(bodies.get(each.pk) or _NOTHING)["message"]) for each in (first, message)]
        found[message.pk] = say_conflict(f"the id {say_name(message.native_id)}", first.number, *told)
    return found


def _find_doubles(messages: Iterable[Message]) -> list[tuple[Message, Message]]:
    """Those of these messages whose id an earlier message bears with another text, each behind that one, numbered."""
    firsts = _find_first_bearers([each for each in messages if each.sights & RuleFlag.DOUBLE])
    held = Message.objects.defer("body", "words", "atoms").in_bulk({*firsts, *firsts.values()}) if firsts else {}
    number_messages(held.values())
    digests = _find_digests({each.record_id for each in held.values()}) if held else {}
    pairs = [(held[first], held[pk]) for pk, first in firsts.items() if pk in held and first in held]
    # What says the same word for word is a repetition, which is no riddle.
    return [pair for pair in pairs if digests.get(pair[0].record_id) != digests.get(pair[1].record_id)]


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
    """The English of messages as lists have it, by their ids, each with its cautions; `_load_cautions` asks."""
    cautions = _load_cautions(messages)
    return {each.pk: each.english + cautions[each.pk] for each in messages}


def mark_sentences(messages: Collection[Message]) -> dict[uuid.UUID, str]:
    """The English of messages as titles and cells have it, by their ids, marked where it has cautions; `find_doubtful`
    asks."""
    found = find_doubtful(messages)
    return {each.pk: mark_noted(each.english, each.severity, is_doubtful=each.pk in found) for each in messages}


def find_doubtful(messages: Collection[Message]) -> set[uuid.UUID]:
    """Those of messages that `find_conflicts` says something of; no statement where no id stands twice and no key is
    shown, else five."""
    found = {each.pk for each in messages if find_reuse(each.parent_why)}
    return found | {*find_rekeyed(messages), *(each.pk for _, each in _find_doubles(messages))}


def load_cautions(*, conversation: Conversation, first: int, last: int) -> dict[uuid.UUID, str]:
    """What a transcript tells of the messages of these numbers to be careful of, by their ids; of those of which it
    tells something. One statement, and those of `_load_cautions`."""
    places = load_places(conversation)
    shown = Message.objects.shown().filter(conversation=conversation, place__lte=places.find_place(last - 1))
    rows = _read_before(shown, last - first + 1 + MAX_RECALLED)
    for each in rows:
        each.number = places.find_position(each.place) + 1
    messages = [each for each in rows if each.number >= first]
    cautions, doubts = _load_cautions(messages), find_doubts(rows)
    told = {each.pk: " ".join((cautions[each.pk].lstrip(), *doubts.get(each.pk, ()))) for each in messages}
    return {pk: said.strip() for pk, said in told.items() if said.strip()}


def load_doubts(message: Message) -> tuple[str, ...]:
    """That nobody can tell what a message answers, as a transcript tells it, and what that contradicts; one statement,
    none where the message names what it answers, or answers nothing by its kind."""
    is_open = message.parent_basis in ("", "adjacency") and message.performative in ("inform", "observe")
    if not (is_open or message.parent_basis == "turn" or count_bearers(message.parent_why)) or message.place is None:
        return ()
    shown = Message.objects.shown().filter(conversation=message.conversation_id, place__lte=message.place)
    rows = _read_before(shown, MAX_RECALLED + 1)
    for number, each in enumerate(rows, message.number - len(rows) + 1):
        each.number = number
    return find_doubts(rows).get(message.pk, ())


def find_doubts(rows: Iterable[Message]) -> dict[uuid.UUID, tuple[str, ...]]:
    """What others make of the messages of one conversation that stand one after another, numbered, as a transcript
    tells it: what they contradict, and that nobody can tell what they answer; no statement."""
    lines = _recall_in_order(Transcript(), rows, {}, {})
    return {pk: line.doubts for pk, line in lines.items() if line.doubts}


def _load_cautions(messages: Collection[Message]) -> dict[uuid.UUID, str]:
    """The cautions of each of these messages, each with the space before it; one statement for notes, and where ids
    were used before four, and one for each of these; for keys one."""
    doubtful = [message.pk for message in messages if message.severity >= Message.Severity.NOTICE]
    rows = Message.objects.filter(pk__in=doubtful).values_list("pk", "part", "body")
    doubts = dict[uuid.UUID, str]()
    # A few at a time: of many long bodies no more are held.
    for pk, part, body in rows.iterator(chunk_size=10) if doubtful else ():
        check_effort()
        doubts[pk] = add_cautions("", body, part)
    found = find_conflicts(messages)
    said = {each.pk: (doubts.get(each.pk, ""), found.get(each.pk)) for each in messages}
    return {pk: f"{told} {conflict}" if conflict else told for pk, (told, conflict) in said.items()}


def add_cautions(english: str, body: str, part: int) -> str:
    """The English of a message with the cautions that its body, as JSON text, has: nobody reads it without them."""
    return english + (say_doubts(json.loads(body), part) if body else "")


def say_cautions_of(message: Message, body: Mapping[str, Any]) -> str:
    """All cautions of one message whose body is read, as lists have them, each with the space before it;
    `find_conflicts` asks."""
    return "".join((say_doubts(body, message.part), *(f" {said}" for said in find_conflicts([message]).values())))


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
        if not bearers:
            return Answer(basis, cited=cited) if cited else None
        is_here = are_here(message.parent_why)
        found = find_answer(read_told(message, told), message.dialect, deque(lines.values())) if is_here else None
        # Each of the messages before it that it may answer; where some stand in no line, how many there are.
        if found is not None and len(found.lines) == bearers:
            return Answer(basis, found.lines)
        name = f"message {say_name(cited)}" if cited else "a message"
        return Answer(basis, elsewhere=f"{name}; {HERE if is_here else ''}{write_bearers(bearers)} {SEVERAL}")
    if message.parent in lines:
        return Answer(basis, (lines[message.parent],))
    parent = parents.get(message.parent)
    if parent is None:
        return Answer(basis, elsewhere="a message that is not shown")
    where = "" if parent.conversation_id == message.conversation_id else " of another conversation"
    return Answer(basis, elsewhere=f"{name_message(parent.number, parent, dialect=parent.dialect)}{where}")
