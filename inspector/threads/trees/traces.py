"""Reads of traces, and of what the rows of a tree stand for. All within one workspace."""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Final, NamedTuple

from django.db.models import Case, JSONField, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.functions import Coalesce, JSONObject, Left

from inspector.accounts.models import Workspace
from inspector.lookups import IsAny, go_on

from ..agents.names import select_naming
from ..models import Conversation, Message, Trace
from ..placing.citations import count_bearers
from ..placing.keys import RANDOM
from ..placing.links import name_cited
from .lines import ADJACENCY, Kind
from .windows import Tree, WindowRow

MAX_SENTENCE: Final = 300
MAX_FOUND: Final = 1000


def find_trace(*, workspace: Workspace, trace_id: uuid.UUID) -> Trace | None:
    """The trace of that id in this workspace, or None."""
    return Trace.objects.select_related("channel").filter(workspace=workspace, pk=trace_id).first()


def select_traces(
    *, workspace: Workspace, before: tuple[datetime, uuid.UUID] | None = None, **filters: str
) -> QuerySet[Trace]:
    """What `filter_traces` gives, latest activity first, by keyset; `before` is (last_at, id) of the last one seen."""
    rows = filter_traces(workspace=workspace, **filters)
    return go_on(rows, "last_at", before).order_by("-last_at", "-id")


def filter_traces(*, workspace: Workspace, dialect: str = "", agent: str = "", state: str = "") -> QuerySet[Trace]:
    """Traces with at least one resolved message, in no order: of a dialect, an agent, a state; with their channels."""
    rows = Trace.objects.select_related("channel").filter(workspace=workspace, last_at__isnull=False)
    if dialect:
        rows = rows.filter(dialects__contains=[dialect])
    if agent:
        rows = rows.filter(select_naming(workspace=workspace, name=agent))
    if state:
        rows = rows.filter(state=state)
    return rows


def list_namesakes(*, trace: Trace, limit: int = 20) -> list[Trace]:
    """Other traces of the same id: nothing says that they are the same work, or that they are not."""
    rows = Trace.objects.select_related("channel").filter(
        workspace_id=trace.workspace_id, key=bytes(trace.key), last_at__isnull=False
    )
    return list(rows.exclude(pk=trace.pk).order_by("-last_at", "-id")[:limit])


def select_trace() -> Case:
    """`id` and `name` of the trace of the message in a row, or nothing. What a trace of its channel does not hold is in
    the one across channels, as is an id that is random by its form."""
    held = Trace.objects.filter(workspace=OuterRef("workspace_id"), key=OuterRef("trace_key"), last_at__isnull=False)
    said = held.values(said=JSONObject(id="pk", name="native_id"))
    across = Subquery(said.filter(channel=None))
    return Case(
        When(trace_basis=RANDOM, then=across),
        default=Coalesce(Subquery(said.filter(channel=OuterRef("channel_id"))), across),
        output_field=JSONField(),
    )


def find_traces_of(*, messages: Sequence[Message]) -> list[dict[str, str]]:
    """`id` and `name` of the traces that these messages belong to, in their order; those not drawn yet are left out."""
    named = [message.pk for message in messages if message.trace_key]
    rows = Message.objects.filter(IsAny("id", named)).order_by().values_list("pk", select_trace()) if named else ()
    held = dict(rows)
    found = {trace["id"]: trace for message in messages if (trace := held.get(message.pk))}
    return list(found.values())


def find_matching(
    *, owner: Conversation | Trace, text: str, limit: int = MAX_FOUND
) -> list[tuple[datetime, uuid.UUID]]:
    """The times and ids of messages whose English or names hold this text, the earliest first; at most `limit`."""
    rows = Tree(owner).messages.filter(_holds(text)).order_by("order_time", "pk")
    return list(rows.values_list("order_time", "pk")[:limit])


def match_rows(*, rows: Sequence[WindowRow], text: str) -> frozenset[uuid.UUID]:
    """Those rows of a window whose messages `find_matching` finds: no other message is looked at."""
    messages = [row.line.id for row in rows if row.line.kind is Kind.MESSAGE]
    return frozenset(Message.objects.filter(_holds(text), pk__in=messages).values_list("pk", flat=True))


def _holds(text: str) -> Q:
    condition = Q(english__icontains=text) | Q(native_id=text) | Q(native_act__iexact=text)
    return condition | Q(topic__icontains=text) | Q(sender__iexact=text) | Q(performative=text.lower())


class Answered(NamedTuple):
    """A message that a top of the tree answers: what it is called, and whether the tree holds it."""

    native_id: str
    is_inside: bool


class Ghost(NamedTuple):
    """What is cited and stands for no message here: its name, if known, and how many messages elsewhere bear its id."""

    name: str
    bearers: int


class Contents(NamedTuple):
    """What the rows of a window stand for: messages, with the beginning of their English, conversations, and ghosts."""

    said: dict[uuid.UUID, Message]
    conversations: dict[uuid.UUID, Conversation]
    ghosts: dict[uuid.UUID, Ghost]
    # What tops of the tree answer: it stands elsewhere, or was cut off because answers go round in a circle.
    answered: dict[uuid.UUID, Answered]
    carrying: dict[uuid.UUID, uuid.UUID]


def load_contents(*, owner: Conversation | Trace, rows: Sequence[WindowRow]) -> Contents:
    """What the rows of a window stand for, in five statements at most, whatever their number."""
    messages = Message.objects.shown().filter(
        IsAny("id", [row.line.id for row in rows if row.line.kind is Kind.MESSAGE])
    )
    said = messages.light().annotate(sentence=Left("english", MAX_SENTENCE)).in_bulk()
    for message in said.values():
        message.english = vars(message)["sentence"]
    conversation_ids = {each.conversation_id for each in said.values()}
    conversation_ids |= {row.line.id for row in rows if row.line.kind is Kind.CONVERSATION}
    fields = ("id", "native_id", "title", "subject", "message_count")
    own = {owner.pk: owner} if isinstance(owner, Conversation) else {}
    conversations = own | Conversation.objects.only(*fields).in_bulk(list(conversation_ids - own.keys()))
    answered = _find_answered(owner, rows, said)
    return Contents(said, conversations, read_ghosts(rows), answered, find_carrying(said.values()))


def find_carrying(messages: Iterable[Message]) -> dict[uuid.UUID, uuid.UUID]:
    """The messages of another conversation within which these stand, by the ids of these; one statement, and none where
    no message is carried."""
    carried = [each for each in messages if each.carrier]
    if not carried:
        return {}
    rows = Message.objects.filter(IsAny("record_id", {each.record_id for each in carried}), carrier="")
    parts: dict[uuid.UUID, list[tuple[int, uuid.UUID, uuid.UUID]]] = defaultdict(list)
    for record_id, part, pk, home in rows.values_list("record_id", "part", "pk", "conversation_id"):
        parts[record_id].append((part, pk, home))
    found = {}
    for each in carried:
        # What a message carries stands behind it, before the next that nothing carries.
        outer = max((row for row in parts[each.record_id] if row[0] < each.part), default=None)
        if outer is not None and outer[2] != each.conversation_id:
            found[each.pk] = outer[1]
    return found


def read_ghosts(rows: Sequence[WindowRow]) -> dict[uuid.UUID, Ghost]:
    """The ghosts by their rows, each as the message below, which cites it, has it; of the last none."""
    citing = {
        below.line.id: row.place
        for row, below in pairwise(rows)
        if row.line.kind is Kind.GHOST and below.line.kind is Kind.MESSAGE
    }
    if not citing:
        return {}
    messages = Message.objects.filter(pk__in=list(citing))
    return {
        citing[pk]: Ghost(name_cited(json.loads(body)["message"]) if body else "", count_bearers(why))
        for pk, body, why in messages.values_list("pk", "body", "parent_why")
    }


def _find_answered(
    owner: Conversation | Trace, rows: Sequence[WindowRow], said: dict[uuid.UUID, Message]
) -> dict[uuid.UUID, Answered]:
    top = 1 if isinstance(owner, Trace) else 0
    tops = [said[row.line.id] for row in rows if row.depth == top and row.line.id in said]
    parents = {each.parent for each in tops if each.parent is not None and each.parent_basis != ADJACENCY}
    if not parents:
        return {}
    found = Message.objects.filter(pk__in=parents).values_list("pk", "native_id", "conversation_id", "trace_key")
    if isinstance(owner, Conversation):
        return {pk: Answered(name, conversation_id == owner.pk) for pk, name, conversation_id, _ in found}
    return {pk: Answered(name, bytes(key or b"") == bytes(owner.key)) for pk, name, _, key in found}
