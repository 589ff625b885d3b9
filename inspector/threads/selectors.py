"""Reads of conversations and messages, all within one workspace: the list, one as a tree or by time, and what it comes
to; one message or a few, what is beside them, where they come from, and their records.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import zip_longest
from operator import itemgetter
from typing import Any, Final, NamedTuple

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import (
    BinaryField,
    Case,
    Count,
    Exists,
    F,
    Func,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
    Value,
    When,
)
from django.db.models.functions import Coalesce, Concat, Least, Now

from dialects import Keys, Reading
from inspector.accounts.models import Channel, Workspace
from inspector.bounds import check_effort
from inspector.database import IsAny
from inspector.intake.models import Delivery, HiddenRecord, Job, Record, Sighting, Withdrawal
from inspector.intake.readings import MAX_BYTES_LOOKED_THROUGH, read_with_facts, unfold_reading
from inspector.intake.sealed import clear_length, find_obstacle
from inspector.intake.withdrawals import has_hidden

from .agents import select_naming
from .lines import Kind
from .models import Conversation, Message, Task, Wording
from .states import STANDING
from .summaries import GREETING, Tally, read_tally
from .tasks import STALLED_AFTER, annotate_stands, latest_in_channel
from .timeline import PLACES, load_places, number_messages
from .trees import Place, load_tree, select_trace

MAX_HIDDEN = 10_001
# Behind the English of a message where it stands without its cautions, in titles, cells and tooltips: that it has some.
CAUTION_MARK: Final = " (caution)"


def mark_noted(english: str, severity: int, *, is_doubtful: bool = False) -> str:
    """The English of a message with that mark behind it, where its gravest note is a caution or something else is."""
    return f"{english}{CAUTION_MARK}" if english and (is_doubtful or severity >= Message.Severity.NOTICE) else english


def split_mark(text: str) -> tuple[str, str]:
    """A text, and the mark of its cautions, empty where it has none: that stays where the text is cut."""
    bare = text.removesuffix(CAUTION_MARK)
    return bare, text[len(bare) :]


def marked_english() -> Case:
    """As `mark_noted`, in a query."""
    marked = Concat("english", Value(CAUTION_MARK), output_field=TextField())
    return Case(When(~Q(english=""), severity__gte=Message.Severity.NOTICE, then=marked), default=F("english"))


def read_body(message: Message) -> Mapping[str, Any]:
    """What telling wrote: `message` (the names that are not absent) and `record`; empty while it is not told."""
    check_effort()
    return json.loads(message.body) if message.body else {"message": {}, "record": {}}


def find_message(*, workspace: Workspace, message_id: uuid.UUID) -> Message | None:
    """The message of that id in this workspace with its number, record, conversation, `is_hidden`, `parts` (of its
    record), `is_reworded`, `trace` (`select_trace`), `record_bytes` and `wire_bytes`, or None; one statement. A record
    too long to be looked through is loaded when something asks for its bytes."""
    parts = Message.objects.filter(record_id=OuterRef("record_id")).values("record_id").annotate(count=Count("pk"))
    rows = Message.objects.select_related("record", "conversation", "channel").annotate(
        is_hidden=Exists(HiddenRecord.objects.filter(record_id=OuterRef("record_id"))),
        parts=Subquery(parts.values("count")),
        is_reworded=Exists(Wording.objects.filter(record_id=OuterRef("record_id"), part=OuterRef("part"))),
        trace=select_trace(),
        record_bytes=clear_length("record__source", "record__sealed_with"),
        wire_bytes=Coalesce(
            clear_length("record__wire", "record__sealed_with"), clear_length("record__source", "record__sealed_with")
        ),
    )
    rows = rows.defer("record__source", "record__wire").annotate(
        **_bearable("record__", Q(record_bytes__lte=MAX_BYTES_LOOKED_THROUGH))
    )
    found: Message | None = rows.filter(workspace=workspace, pk=message_id).first()
    if found is not None:
        if vars(found)["record_bytes"] <= MAX_BYTES_LOOKED_THROUGH:
            found.record.source, found.record.wire = vars(found)["bearable_source"], vars(found)["bearable_wire"]
        found.number = load_places(found.conversation).find_position(found.place) + 1
    return found


def find_messages_by_ids(*, workspace: Workspace, message_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, Message]:
    """The messages of these ids in this workspace, with their numbers."""
    found = Message.objects.filter(workspace=workspace).in_bulk(list(message_ids))
    number_messages(found.values())
    return found


def find_neighbours(*, message: Message) -> tuple[uuid.UUID | None, uuid.UUID | None]:
    """The ids of the messages before and after this one in the timeline of its conversation; one statement."""
    if message.place is None:
        return None, None
    rows = Message.objects.shown().filter(conversation_id=message.conversation_id)
    before = rows.filter(place__lt=message.place).order_by("-place").values_list("pk", Value(-1))
    after = rows.filter(place__gt=message.place).order_by("place").values_list("pk", Value(1))
    found = {side: pk for pk, side in before[:1].union(after[:1], all=True)}
    return found.get(-1), found.get(1)


def list_around(*, message: Message, each_side: int = 3) -> list[Message]:
    """A message among those before and after it in the timeline of its conversation."""
    rows = Message.objects.shown().filter(conversation_id=message.conversation_id).defer("body", "words", "atoms")
    if message.place is None:
        return [message]
    before = rows.filter(place__lt=message.place).order_by("-place")[:each_side]
    after = rows.filter(place__gt=message.place).order_by("place")[:each_side]
    return [*reversed(before), message, *after]


def list_beside(*, message: Message, limit: int = 50) -> tuple[Message | None, list[Message]]:
    """The message that this one answers, where it was received, and those that answer it, in whichever conversation, by
    time; with numbers."""
    is_answer = Q(conversation_id=message.conversation_id) & ~Q(parent_basis="adjacency")
    if keys := [key for key in (message.id_key, message.call_key) if key]:
        is_answer |= Q(channel_id=message.channel_id, parent_key__in=keys)
    is_answer &= Q(parent=message.pk)
    answers = Message.objects.shown().filter(is_answer).order_by("place")[:limit]
    wanted = Q(pk__in=answers.values("pk")) | Q(pk=message.parent)
    rows = Message.objects.filter(workspace_id=message.workspace_id).filter(wanted).defer("words", "atoms", "body")
    found = list(rows.order_by("place"))
    parent = next((row for row in found if row.pk == message.parent), None)
    if parent is not None and parent.conversation_id == message.conversation_id:
        parent.number = load_places(message.conversation).find_position(parent.place) + 1
    elif parent is not None:
        number_messages([parent])
    return parent, [row for row in found if row.parent == message.pk and row is not parent]


def reread(*, message: Message) -> Reading:
    """The record of a message read anew in the dialect it is resolved in: the wire and its field tree, nothing told."""
    check_effort()
    record = message.record
    return read_with_facts(record.wire_text, record.envelope, record.facts, dialect=message.read_in)


def unfold(*, message: Message, keys: Keys | None = None) -> Reading:
    """The record of a message read anew: its layers and its field tree, with keys also what they open."""
    return unfold_reading(reread(message=message), keys)


def load_records(*, messages: Sequence[Message], max_bytes: int, max_in_all: int | None = None) -> dict[uuid.UUID, int]:
    """Give these messages their records in one query, those over `max_bytes` left out, those that do not open, and the
    largest where all are over `max_in_all`. Returns the size in bytes of each that was left out, by its id;
    `has_record` tells which message has one."""
    rows = Record.objects.filter(pk__in={message.record_id for message in messages}).defer("source", "wire")
    rows = rows.annotate(size_bytes=clear_length("source"))
    records: dict[uuid.UUID, Any] = {}
    left_out: dict[uuid.UUID, int] = {}
    for record in rows.annotate(**_bearable("", Q(size_bytes__lte=max_bytes))):
        if vars(record)["size_bytes"] > max_bytes:
            left_out[record.pk] = vars(record)["size_bytes"]
        else:
            record.source, record.wire = vars(record)["bearable_source"], vars(record)["bearable_wire"]
            # The page of one that cannot be opened says why.
            if find_obstacle(record) is None:
                records[record.pk] = record
            else:
                left_out[record.pk] = vars(record)["size_bytes"]
    in_all = 0
    for pk, size in sorted(((pk, vars(record)["size_bytes"]) for pk, record in records.items()), key=itemgetter(1)):
        in_all += size
        if max_in_all is not None and in_all > max_in_all:
            left_out[pk] = size
            del records[pk]
    for message in messages:
        if message.record_id in records:
            message.record = records[message.record_id]
    return left_out


def _bearable(prefix: str, condition: Q) -> dict[str, Case]:
    """The bytes of a record and what was read of them, where they are few enough to be loaded."""
    return {
        f"bearable_{name}": Case(When(condition, then=F(f"{prefix}{name}")), output_field=BinaryField())
        for name in ("source", "wire")
    }


def list_messages_of(*, record: Record) -> list[Message]:
    """The messages that were read from a record, by part, each with the record itself."""
    messages = list(Message.objects.filter(workspace_id=record.workspace_id, record=record).order_by("part"))
    for message in messages:
        message.record = record
    return messages


def has_record(message: Message) -> bool:
    """Whether the message's record is loaded, so that showing it costs no query."""
    return "record" in message._state.fields_cache


class Provenance(NamedTuple):
    """The name of the channel, the id of the trace (None where the message names none), and that of the first delivery
    that is not withdrawn, else of the first."""

    channel: str
    trace: uuid.UUID | None
    delivery: uuid.UUID


def find_provenance(messages: Iterable[Message]) -> dict[uuid.UUID, Provenance]:
    """Where each of these messages comes from, by its id; one statement."""
    withdrawn = Exists(Withdrawal.objects.filter(delivery=OuterRef("delivery"), taken_back_at__isnull=True))
    seen = Sighting.objects.filter(record=OuterRef("record")).annotate(is_withdrawn=withdrawn)
    first = seen.order_by("is_withdrawn", "delivery__received_at", "index").values("delivery")[:1]
    rows = Message.objects.filter(IsAny("id", [message.pk for message in messages])).order_by()
    return {
        pk: Provenance(channel, uuid.UUID(trace["id"]) if trace else None, delivery)
        for pk, channel, trace, delivery in rows.values_list("pk", "channel__name", select_trace(), Subquery(first))
    }


def select_messages_of_delivery(*, workspace: Workspace, delivery_id: uuid.UUID) -> QuerySet[Message]:
    """The shown messages of the records that a delivery brought, duplicates included, in no order."""
    sighted = Sighting.objects.filter(workspace=workspace, delivery=delivery_id).values("record")
    return Message.objects.shown().filter(workspace=workspace, record__in=sighted)


def list_messages_of_delivery(*, delivery: Delivery, limit: int) -> list[Message]:
    """The messages of the records that a delivery brought, duplicates included, in the order of the delivery."""
    sighted = Sighting.objects.filter(workspace=delivery.workspace_id, delivery=delivery)
    place = sighted.filter(record=OuterRef("record")).order_by("index").values("index")[:1]
    rows = Message.objects.filter(workspace_id=delivery.workspace_id, record__in=sighted.values("record"))
    return list(rows.annotate(line=Subquery(place)).order_by("line", "part")[:limit])


def has_unread_records(*, delivery: Delivery) -> bool:
    """Whether a record that a delivery brought has no messages yet; a duplicate may wait for another's reading."""
    taken = Sighting.objects.filter(delivery=delivery).exclude(outcome=Sighting.Outcome.QUARANTINED)
    return taken.filter(record__messages__isnull=True).exists()


def count_hidden(*, workspace: Workspace) -> int:
    """How many messages of the workspace are hidden, counted up to `MAX_HIDDEN`."""
    if not has_hidden(workspace=workspace):
        return 0
    return Message.objects.hidden().filter(workspace=workspace).values("pk")[:MAX_HIDDEN].count()


def count_hidden_in(*, conversation: Conversation) -> int:
    """How many messages of the conversation are hidden: as it was last resolved, where that was since it is counted."""
    if conversation.tally:
        return read_tally(conversation.tally).hidden
    return count_hidden_by_conversation([conversation]).get(conversation.pk, 0)


def count_hidden_by_conversation(conversations: Sequence[Conversation]) -> dict[uuid.UUID, int]:
    """How many messages of these conversations of one workspace are hidden, without those of which none is."""
    of_workspace = HiddenRecord.objects.filter(workspace_id=conversations[0].workspace_id)
    if not of_workspace.exists():
        return {}
    rows = Message.objects.hidden().filter(conversation_id__in=[each.pk for each in conversations])
    return dict(rows.values_list("conversation_id").annotate(hidden_count=Count("pk")).order_by())


def list_withdrawals_behind(*, message: Message, limit: int = 10) -> Sequence[Withdrawal]:
    """The withdrawals in force of the deliveries that the message's record was seen in, newest first."""
    rows = Withdrawal.objects.select_related("by", "delivery").filter(
        delivery__sightings__record_id=message.record_id, taken_back_at__isnull=True
    )
    return list(rows.order_by("-at").distinct()[:limit])


# Of so many first messages one is taken that says what a conversation is about.
OPENING_MESSAGES = 20
WORST: Final = "worst"
# What may be wrong with a conversation as such; the overview counts the same.
FAULTS: Final = {"errors": Q(severity=Message.Severity.ERROR), "missing": Q(missing_count__gt=0)}


def find_conversation(*, workspace: Workspace, conversation_id: uuid.UUID) -> Conversation | None:
    """The conversation of that id, with how it `stands` and the `snapshot` it was read in, or None."""
    found: Conversation | None = _select_whole().filter(workspace=workspace, pk=conversation_id).first()
    return found


@cache
def _select_whole() -> QuerySet[Any]:
    """Conversations with all that a page of one needs: made once, for making it takes longer than asking."""
    # What the statement sees, in PostgreSQL's own form: it reads the row, and says so in the same go.
    snapshot = Func(function="pg_current_snapshot", template="%(function)s()::text", output_field=TextField())
    rows = Conversation.objects.select_related("channel").annotate(snapshot=snapshot, **PLACES)
    return annotate_stands(rows)


def select_conversations(
    *,
    workspace: Workspace,
    before: tuple[datetime, uuid.UUID] | None = None,
    order: str = "",
    grade: int | None = None,
    **filters: str,
) -> QuerySet[Conversation]:
    """What `filter_conversations` gives, latest activity first, by keyset; `before` is (last_at, id) of the last one
    seen. `order` is `worst` for the gravest open finding first, and `grade` then the `open_severity` of the last one
    seen."""
    rows = filter_conversations(workspace=workspace, **filters)
    if before:
        last_at, conversation_id = before
        later = Q(last_at__lt=last_at) | Q(last_at=last_at, pk__lt=conversation_id)
        if order == WORST and grade is not None:
            later = Q(open_severity__lt=grade) | (Q(open_severity=grade) & later)
        rows = rows.filter(later)
    return rows.order_by(*(("-open_severity",) if order == WORST else ()), "-last_at", "-id")


def filter_conversations(
    *,
    workspace: Workspace,
    dialect: str = "",
    agent: str = "",
    state: str = "",
    fault: str = "",
    delivery: str = "",
    channel: str = "",
) -> QuerySet[Any]:
    """Conversations with at least one resolved message, in no order, each with its channel and how it `stands`. `fault`
    is `errors` in what was read, or messages that are `missing`; `delivery` an id, `channel` a name."""
    held = Conversation.objects.select_related("channel").filter(workspace=workspace, last_at__isnull=False)
    rows = annotate_stands(held)
    if dialect:
        rows = rows.filter(dialects__contains=[dialect])
    if agent:
        rows = rows.filter(select_naming(workspace=workspace, name=agent))
    if state:
        rows = rows.filter(stands=state)
    if fault:
        rows = rows.filter(FAULTS[fault])
    if channel:
        rows = rows.filter(channel__name=channel)
    if delivery:
        reached = select_messages_of_delivery(workspace=workspace, delivery_id=uuid.UUID(delivery))
        rows = rows.filter(pk__in=reached.values("conversation"))
    return rows


class TreeRow(NamedTuple):
    """A line of the transcript: a message with its depth, or the ghost of one that was not received."""

    depth: int
    message: Message | None
    body: Mapping[str, Any]
    ghost: str = ""


class TreeWindow(NamedTuple):
    """A stretch of a conversation's tree; `next` and `previous` are the places of others, None at its ends."""

    rows: Sequence[TreeRow]
    next: Place | None = None
    previous: Place | None = None


def read_tree(*, conversation: Conversation, at: Place | int = 0, limit: int = 200) -> TreeWindow:
    """The tree's rows from a place on, in display order, with their messages and told bodies, without records; at most
    `limit`. `at` may be the position in the timeline of the message that the window begins with, 0 for the beginning;
    where the tree has it no more, the window is empty. A ghost at the end, of which nothing would be shown, is left to
    the next window."""
    tree = load_tree(conversation)
    if tree is None:
        return TreeWindow(())
    place = at if isinstance(at, Place) else None
    if isinstance(at, int) and at:
        start = find_at(conversation=conversation, position=at)
        place = tree.find_opening(start) if start else None
    if at and (place is None or not tree.find_held([place.line])):
        return TreeWindow(())
    window = tree.read_window(at=place, limit=limit)
    rows, following = list(window.rows), window.next
    while following is not None and following.is_after:
        # The next line stands far up from here.
        on = tree.read_window(at=following, limit=1)
        following = Place(on.rows[0].place, on.rows[0].depth) if on.rows else on.next
    if following is not None and rows and rows[-1].line.kind is Kind.GHOST:
        ghost = rows.pop()
        following = Place(ghost.place, ghost.depth)
    messages = Message.objects.in_bulk([row.line.id for row in rows if row.line.kind == Kind.MESSAGE])
    number_messages(messages.values())
    shown: list[TreeRow] = []
    for row, below in zip_longest(rows, rows[1:]):
        message = messages.get(row.line.id)
        if row.line.kind == Kind.GHOST:
            citing = messages.get(below.line.id) if below else None
            shown.append(TreeRow(row.depth, None, {}, bytes(citing.parent_key or b"").hex() if citing else ""))
        elif message is not None:
            shown.append(TreeRow(row.depth, message, read_body(message)))
    return TreeWindow(shown, following, window.previous)


def find_at(*, conversation: Conversation, position: int) -> uuid.UUID | None:
    """The message at a position of the timeline; None where there is none."""
    rows = Message.objects.shown().filter(
        conversation=conversation, place=load_places(conversation).find_place(position)
    )
    return rows.values_list("pk", flat=True).first()


def read_beginning(*, conversation: Conversation, limit: int = 50) -> list[TreeRow]:
    """The first messages of a conversation in the order of time, as rows without depth; one statement."""
    rows = Message.objects.shown().filter(conversation=conversation, place__isnull=False).order_by("place")[:limit]
    found = list(rows)
    for number, message in enumerate(found, 1):
        message.number = number
    return [TreeRow(0, message, read_body(message)) for message in found]


class Digest(NamedTuple):
    """A conversation summed up: its tally, the first message that asks for something (with the state of its task as
    `stands`, None where that is part of another), and the gravest ones."""

    tally: Tally
    asked: Message | None
    gravest: Sequence[Message]


def sum_up(*, conversation: Conversation) -> Digest:
    """What a conversation asked for, who spoke how often, and where its gravest notes are, in one query."""
    tally = read_tally(conversation.tally) if conversation.tally else Tally(None, 0, 0, 0, {}, {}, [])
    places = {*tally.gravest, *([tally.asked] if tally.asked else [])}
    rows = Message.objects.shown().filter(conversation=conversation, place__in=map(bytes.fromhex, places))
    task = Task.objects.filter(pk=OuterRef("task"), within_key=None)
    rows = rows.annotate(stands=Subquery(task.values("state")[:1]))
    found = {bytes(message.place).hex(): message for message in rows if message.place} if places else {}
    return Digest(tally, found.get(tally.asked or ""), [found[place] for place in tally.gravest if place in found])


def find_openings(*, conversation_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, str]:
    """The English that each of these conversations opens with: what one without a name is called by."""
    rows = Conversation.objects.filter(pk__in=conversation_ids).annotate(opening=opening_of())
    return {pk: english for pk, english in rows.values_list("pk", "opening") if english is not None}


def opening_of() -> Subquery:
    """The English, marked where it has cautions, of the first message that is no greeting, if there is one, among the
    first of the conversation."""
    of_outer = {"conversation": OuterRef(OuterRef("pk")), "place__isnull": False, "told_digest__isnull": False}
    first = Message.objects.shown().filter(**of_outer).order_by("place").values("pk")[:OPENING_MESSAGES]
    is_greeting = Case(When(performative__in=GREETING, then=Value(1)), default=Value(0))
    rows = Message.objects.filter(pk__in=first).order_by(is_greeting, "place")
    return Subquery(rows.values(said=marked_english())[:1])


def list_conversations_of(*, delivery: Delivery, limit: int = 20) -> list[Conversation]:
    """The conversations that the delivery's first thousand records reached, those with most of their messages first;
    each with the English that it opens with as `opening`."""
    first = Sighting.objects.filter(delivery=delivery).order_by("index").values("record_id")[:1000]
    messages = Message.objects.filter(workspace_id=delivery.workspace_id, record_id__in=first)
    counted = messages.values("conversation").annotate(reached=Count("pk")).order_by("-reached", "conversation")
    ids = counted.values("conversation")[:limit]
    # Grouped by an id alone: where the table is in partitions, nothing else of a row follows from that.
    found = Conversation.objects.filter(pk__in=ids).annotate(opening=opening_of(), busiest=ArraySubquery(ids))
    return sorted(found, key=lambda one: vars(one)["busiest"].index(one.pk))


def is_resolving(*, delivery: Delivery) -> bool:
    """Whether a conversation that this delivery reached still waits to be resolved."""
    return find_work(delivery=delivery) == Job.Kind.RESOLVE


def find_work(*, delivery: Delivery) -> Job.Kind | None:
    """What the conversations that a delivery reached wait for next: to be resolved, to be examined, or nothing."""
    states = (Job.State.QUEUED, Job.State.RUNNING)
    reached = Message.objects.filter(conversation=OuterRef("subject"), record__sightings__delivery=delivery)
    unsettled = Conversation.objects.filter(pk=OuterRef("subject"), settled_generation__lt=F("generation"))
    waiting = Job.objects.filter(workspace_id=delivery.workspace_id, state__in=states).filter(
        Q(kind=Job.Kind.EXAMINE) | Q(Exists(unsettled), kind=Job.Kind.RESOLVE), Exists(reached)
    )
    kinds = set(waiting.order_by().values_list("kind", flat=True).distinct())
    return Job.Kind(max(kinds)) if kinds else None


def select_maybe_answered(*, workspace: Workspace, channel: Channel | None = None) -> QuerySet[Task]:
    """The requests without a readable reply for an hour, up to the moment of their channel, which is that of
    `audit.findings.storing`: the time of its latest message, and now where that was posted within an hour of its time.
    So a request counts here when it would be a finding, were nothing sealed."""
    sealed = Message.objects.shown().filter(workspace=workspace, is_sealed=True)
    there = Q(sender=OuterRef("requester"), receivers__contains=[OuterRef("performer")])
    back = Q(sender=OuterRef("performer"), receivers__contains=[OuterRef("requester")])
    rows = Task.objects.filter(
        workspace=workspace,
        state__in=STANDING,
        act__in=("request", "query"),
        request__isnull=False,
        is_answered=False,
        deadline_at=None,
        # Told first where anything is sealed, which is in few conversations.
        conversation__in=sealed.values("conversation"),
    ).exclude(requester="", performer="")
    if channel is not None:
        rows = rows.filter(channel=channel)
    beside = sealed.filter(there | back, conversation=OuterRef("conversation"))
    posted = Message.objects.filter(
        workspace=OuterRef("workspace"),
        channel=OuterRef("channel"),
        order_time=OuterRef("latest"),
        record__is_from_file=False,
        record__created_at__lt=F("record__order_time") + STALLED_AFTER,
    )
    moment = Case(When(Exists(posted), then=Now()), default=Least(Now(), F("latest")))
    rows = rows.alias(latest=latest_in_channel()).alias(moment=moment)
    return rows.filter(Exists(beside), moment__gt=F("last_at") + STALLED_AFTER).order_by()
