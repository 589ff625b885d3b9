"""Reads of conversations: the list, one as a tree or by time, and what it comes to. All within one workspace."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from django.db.models import Case, Count, Exists, F, Func, OuterRef, Q, QuerySet, Subquery, TextField, Value, When

from inspector.accounts.models import Workspace
from inspector.intake.models import Delivery, Job, Sighting

from .agents.names import select_naming
from .messages import marked_english, read_body, select_messages_of_delivery
from .models import Conversation, Message
from .resolving.summaries import GREETING, Tally, read_tally
from .tasks.measures import annotate_stands
from .timeline import PLACES, load_places, number_messages
from .trees.lines import Kind
from .trees.windows import Place, load_tree

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
    """A conversation summed up: its tally, the first message that asks for something, and the gravest ones."""

    tally: Tally
    asked: Message | None
    gravest: Sequence[Message]


def sum_up(*, conversation: Conversation) -> Digest:
    """What a conversation asked for, who spoke how often, and where its gravest notes are, in one query."""
    tally = read_tally(conversation.tally) if conversation.tally else Tally(None, 0, 0, 0, {}, {}, [])
    places = {*tally.gravest, *([tally.asked] if tally.asked else [])}
    rows = Message.objects.shown().filter(conversation=conversation, place__in=map(bytes.fromhex, places))
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


def list_conversations_of(*, delivery: Delivery, limit: int = 20) -> QuerySet[Conversation]:
    """The conversations that the delivery's first thousand records reached, the busiest first: each with `reached`, how
    many messages of these records it holds, and `opening`, the English that it opens with."""
    first = Sighting.objects.filter(delivery=delivery).order_by("index").values("record_id")[:1000]
    reached = Conversation.objects.filter(workspace_id=delivery.workspace_id, messages__record_id__in=first)
    return reached.annotate(reached=Count("messages"), opening=opening_of()).order_by("-reached", "pk")[:limit]


def is_settling(*, delivery: Delivery) -> bool:
    """Whether a conversation that this delivery reached still waits to be settled."""
    return find_work(delivery=delivery) == Job.Kind.SETTLE


def find_work(*, delivery: Delivery) -> Job.Kind | None:
    """What the conversations that a delivery reached wait for next: to be settled, to be examined, or nothing."""
    states = (Job.State.QUEUED, Job.State.RUNNING)
    reached = Message.objects.filter(conversation=OuterRef("subject"), record__sightings__delivery=delivery)
    unsettled = Conversation.objects.filter(pk=OuterRef("subject"), settled_generation__lt=F("generation"))
    waiting = Job.objects.filter(workspace_id=delivery.workspace_id, state__in=states).filter(
        Q(kind=Job.Kind.EXAMINE) | Q(Exists(unsettled), kind=Job.Kind.SETTLE), Exists(reached)
    )
    kinds = set(waiting.order_by().values_list("kind", flat=True).distinct())
    return Job.Kind(max(kinds)) if kinds else None
