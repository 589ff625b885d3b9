"""Drawing traces: what the row of a trace says, and its headings and ghosts; a pure function of its messages.

A trace of some hundred messages is read whole. A longer one is cut by time into parts: whoever changes a message marks
its part (`inserting`), which is read anew, and the sums of all parts are added up.

The digest of a trace is over its messages as a set (`multiset`): of each its time, its name (part and identity), how it
is told, the name of what it answers in the trace, or the key of the id that it lacks. Equal ones are numbered.
"""

from __future__ import annotations

import hashlib
import struct
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec
from django.db import connection, transaction
from django.db.models import Case, Count, F, Q, TextField, Value, When
from django.db.models.functions import Left
from django.utils import timezone

from inspector.database import IsAny, update_rows
from inspector.threads.summaries import Multiset, read_multiset

from .inserting import hold_rows
from .keys import WIRE, count_microseconds, read_instant, read_links
from .lines import ADJACENCY, Group, Placed, hang, keep_groups, name_ghost, name_heading
from .models import Conversation, Message, MessageQuerySet, Trace, TreeGroup
from .nodes import SEVERAL
from .states import ASKS

MAX_SUBJECT: Final = 500
# The last act that decides says how a trace stands: an end, or work that was asked for or went on after it.
_STATES: Final = {
    "done": Conversation.State.DONE,
    "failure": Conversation.State.FAILED,
    "cancel": Conversation.State.CANCELLED,
}
_REOPENS: Final = ASKS | {"commit", "accept", "progress"}
_NAMED: Final = struct.Struct(">I32s")
_ELEMENT: Final = struct.Struct(">qI32s32s16s")
_NUMBER: Final = struct.Struct(">Q")


class Member(NamedTuple):
    """A message of a trace, in the order of its columns; `work` are its links where these say what work it is."""

    order_time: datetime
    order_source: bytes
    order_index: int
    identity: bytes
    part: int
    id: uuid.UUID
    trace_key: bytes
    channel_id: uuid.UUID
    conversation_id: uuid.UUID
    dialect: str
    performative: str | None
    sender: str
    receivers: Sequence[str]
    severity: int
    told_digest: bytes | None
    parent: uuid.UUID | None
    parent_key: bytes | None
    parent_basis: str
    parent_why: str
    subject: str
    work: str
    trace_basis: str

    @property
    def answers(self) -> uuid.UUID | None:
        """What it answers; what merely follows answers nothing."""
        return self.parent if self.parent_basis != ADJACENCY else None

    @property
    def placed(self) -> Placed:
        return Placed(self.id, self.conversation_id, self.parent, self.parent_key, self.parent_basis)

    @property
    def cited(self) -> bytes:
        """The key of what it answers and is missing, or nothing."""
        return self.parent_key if self.parent is None and self.parent_key is not None and self.parent_basis else b""


class Sums(msgspec.Struct):
    """What some messages of a trace add up to, in the order of the timeline; it is kept as JSON text. `state` is empty
    where none of them decides. `conversations` have the times of their first and last message in microseconds since
    1970 and the gravest severity, `missing` is what is cited and was not received. `requests` are those that none of
    these messages answers, `answers` the requests of others that any of them does; `asked` and `named` the topics of
    the first request and the first message that have one. `is_late`: one answers what is later."""

    count: int = 0
    agents: list[str] = []
    dialects: dict[str, int] = {}
    state: str = ""
    conversations: dict[str, tuple[int, int, int]] = {}
    missing: set[str] = set()
    requests: set[str] = set()
    answers: set[str] = set()
    asked: str = ""
    named: str = ""
    is_late: bool = False
    # The sum of its set, in hexadecimal.
    elements: str = Multiset().write().hex()

    def add(self, later: Sums) -> None:
        """Add what comes after these messages."""
        self.count += later.count
        self.agents = list(dict.fromkeys([*self.agents, *later.agents]))
        for name, count in later.dialects.items():
            self.dialects[name] = self.dialects.get(name, 0) + count
        self.state = later.state or self.state
        for name, span in later.conversations.items():
            self.add_span(name, span)
        self.missing |= later.missing
        self.requests |= later.requests
        self.answers |= later.answers
        self.asked = self.asked or later.asked
        self.named = self.named or later.named
        self.elements = self.multiset.union(later.multiset).write().hex()

    def add_span(self, conversation: str, span: tuple[int, int, int]) -> None:
        """Messages of a conversation: from when to when, and their gravest severity."""
        held = self.conversations.get(conversation, span)
        self.conversations[conversation] = (min(held[0], span[0]), max(held[1], span[1]), max(held[2], span[2]))

    @property
    def multiset(self) -> Multiset:
        return read_multiset(bytes.fromhex(self.elements))

    def tell_span(self) -> dict[str, Any]:
        """From when to when, and the gravest severity, by the columns of rows."""
        spans = self.conversations.values()
        return {
            "first_at": read_instant(min(first for first, _, _ in spans)) if spans else None,
            "last_at": read_instant(max(last for _, last, _ in spans)) if spans else None,
            "severity": max((severity for _, _, severity in spans), default=0),
        }

    def tell(self) -> dict[str, Any]:
        """What the row of a trace says, by its columns."""
        return {
            "digest": self.multiset.seal(),
            "state": self.state or Conversation.State.OPEN,
            "subject": self.asked or self.named,
            "agents": self.agents,
            "dialects": sorted(self.dialects, key=lambda name: -self.dialects[name]),
            "message_count": self.count,
            "conversation_count": len(self.conversations),
            "missing_count": len(self.missing),
            "open_count": len(self.requests - self.answers),
            **self.tell_span(),
        }

    def write(self) -> str:
        """The sums as JSON text."""
        return msgspec.json.encode(self).decode()


def read_sums(text: str) -> Sums:
    """The sums that `Sums.write` wrote."""
    return msgspec.json.decode(text, type=Sums)


def sum_up(members: Iterable[Member], *, named: Mapping[uuid.UUID, bytes], asking: Collection[uuid.UUID]) -> Sums:
    """What messages of one trace, in the order of the timeline, add up to. `named` has the name of each message that
    they answer (`name_content`), `asking` those of these that ask."""
    sums, elements = Sums(), Counter[bytes]()
    agents: dict[str, None] = {}
    for each in members:
        links = read_links(each.work) if each.work else None
        act = None if links is not None and links.work.is_public else each.performative
        at = count_microseconds(each.order_time)
        sums.count += 1
        agents |= dict.fromkeys(agent for agent in (each.sender, *each.receivers) if agent)
        sums.dialects[each.dialect] = sums.dialects.get(each.dialect, 0) + 1
        if act in _REOPENS or (links is not None and links.is_retryable):
            sums.state = Conversation.State.OPEN
        elif each.performative in _STATES:
            sums.state = _STATES[each.performative]
        sums.add_span(each.conversation_id.hex, (at, at, each.severity))
        if each.cited and SEVERAL not in each.parent_why:
            sums.missing.add((each.channel_id.bytes + each.cited).hex())
        if act in ASKS:
            sums.requests.add(each.id.hex)
        if each.answers is not None and each.answers in asking:
            sums.answers.add(each.answers.hex)
        if each.subject:
            sums.named = sums.named or each.subject
            sums.asked = sums.asked or (each.subject if each.performative in ASKS else "")
        answers = named.get(each.answers, b"") if each.answers is not None else b""
        elements[_ELEMENT.pack(at, each.part, each.identity, each.told_digest or b"", answers) + each.cited] += 1
    numbered = (
        said + _NUMBER.pack(number) if number else said for said, count in elements.items() for number in range(count)
    )
    own = sums.requests & sums.answers
    sums.agents, sums.requests, sums.answers = list(agents), sums.requests - own, sums.answers - own
    sums.elements = Multiset().add(numbered).write().hex()
    return sums


def name_content(identity: bytes, part: int) -> bytes:
    """Sixteen bytes that name a message by what it is known by, whatever its id."""
    return hashlib.blake2b(_NAMED.pack(part, identity), digest_size=16).digest()


# A part has no more messages than that, but for those of one instant.
MAX_PART = 512
# So many parts are read in one transaction, while all who change the trace wait.
PARTS_AT_ONCE: Final = 8
# Traces of at most so many messages are drawn together, so many of their messages at once.
SMALL, TOGETHER = 200, 2000
# Circles of answers through several conversations are looked for among so many messages that lead to one another.
MAX_CLIMBED: Final = 20_000
_BEGINNING: Final = datetime(1, 1, 2, tzinfo=UTC)
# Whether it may be tried again, and whether it was put up for everyone, stand among the links alone.
_TELLS_OF_WORK: Final = Q(performative="failure") | Q(performative="request", receivers=[], is_broadcast=False)


def draw_traces(
    *, trace: Trace, fence: Callable[[], None], finish: Callable[[set[uuid.UUID]], None], others: Sequence[Trace] = ()
) -> None:
    """Sum a trace up and draw its headings and ghosts, up to its generation as loaded. `fence` is called inside every
    writing transaction and raises when another worker has taken over, `finish` inside the last one, with the ids of
    those of the `others` that are small and so were drawn together with it."""
    if trace.message_count > MAX_PART or len(select_members([trace]).values_list("pk")[: MAX_PART + 1]) > MAX_PART:
        while _read_stale(trace, fence, lambda: finish(set())):
            pass
        return
    together = _find_together(trace, others)
    with transaction.atomic():
        hold_rows("threads_trace", [each.pk for each in together])
        fence()
        members = load_together(together)
        TreeGroup.objects.filter(trace__in=together, kind=TreeGroup.Kind.PART).delete()
        sums = _take_in(members, whole=together)
        _write(sums)
        finish({each.pk for each in together} - {trace.pk})


def _read_stale(trace: Trace, fence: Callable[[], None], finish: Callable[[], None]) -> bool:
    """Read some parts of a long trace anew, and say so; where none is left to be read, add them up."""
    with transaction.atomic():
        hold_rows("threads_trace", [trace.pk])
        fence()
        parts = TreeGroup.objects.filter(trace=trace, kind=TreeGroup.Kind.PART).order_by("order_time")
        is_new = not parts.exists()
        if is_new:
            _begin_anew(trace)
        stale = list(parts.filter(is_stale=True)[:PARTS_AT_ONCE])
        for part in stale:
            _read_part(trace, part, is_new=is_new and part is stale[0])
        if stale:
            return True
        sums = Sums()
        for data in parts.values_list("data", flat=True):
            sums.add(read_sums(data))
        _write({trace: sums})
        finish()
        return False


def _begin_anew(trace: Trace) -> None:
    """Find out which channels a trace has, and make the first part of it."""
    joined = _find_joined([trace]).get(bytes(trace.key), set())
    if trace.channel_id is None:
        trace.channels = sorted(joined)
    else:
        # As soon as its channel has joined, all of it is in the trace across channels.
        trace.channels = [] if joined else [trace.channel_id]
    Trace.objects.filter(pk=trace.pk).update(channels=trace.channels)
    _make_part(trace, _BEGINNING)


def _make_part(trace: Trace, start: datetime) -> None:
    TreeGroup.objects.create(
        workspace_id=trace.workspace_id, trace=trace, kind=TreeGroup.Kind.PART, order_time=start, is_stale=True
    )


def _read_part(trace: Trace, part: TreeGroup, *, is_new: bool) -> None:
    """Sum the messages of a part up anew; one of too many is cut in two, the last one behind as many as it may have."""
    later = TreeGroup.objects.filter(trace=trace, kind=TreeGroup.Kind.PART, order_time__gt=part.order_time)
    until = later.order_by("order_time").values_list("order_time", flat=True).first()
    carrying = Message.objects.filter(_carries([trace]), channel_id__in=trace.channels)
    rows = carrying.filter(order_time__gte=part.order_time)
    if until is not None:
        rows = rows.filter(order_time__lt=until)
    # Where the part ends is found by the index alone: only then it is known that few messages are to be loaded.
    times = rows.order_by("order_time").values_list("order_time", flat=True)
    found = list(times[: MAX_PART + 1])
    if len(found) > MAX_PART:
        end = found[MAX_PART if until is None else MAX_PART // 2]
        # All of one instant stay together, however many they are.
        beyond = times.filter(order_time__gt=end).first() if end == found[0] else end
        if beyond is not None:
            _make_part(trace, beyond)
            rows = rows.filter(order_time__lt=beyond)
    members = load_members(rows.shown())
    sums = _take_in({trace: members}, whole=[trace] if is_new else ())[trace]
    said = {**sums.tell_span(), "data": sums.write(), "size": sums.count}
    TreeGroup.objects.filter(pk=part.pk).update(is_stale=False, **said)


def _carries(traces: Sequence[Trace]) -> Q:
    """The condition for resolved messages that may belong to these traces."""
    condition = Q(pk__in=())
    by_channel: dict[uuid.UUID | None, list[bytes]] = defaultdict(list)
    for each in traces:
        by_channel[each.channel_id].append(bytes(each.key))
    for channel_id, keys in by_channel.items():
        condition |= Q(trace_key__in=keys) if channel_id is None else Q(trace_key__in=keys, channel_id=channel_id)
    return condition & Q(workspace_id=traces[0].workspace_id, place__isnull=False)


def select_members(traces: Sequence[Trace]) -> MessageQuerySet:
    """The resolved messages that may belong to these traces."""
    return Message.objects.shown().filter(_carries(traces))


def _find_joined(traces: Sequence[Trace]) -> dict[bytes, set[uuid.UUID]]:
    """The channels of which the messages of these trace ids are in the trace across channels."""
    joined: dict[bytes, set[uuid.UUID]] = defaultdict(set)
    rows = select_members(traces).exclude(trace_basis=WIRE).order_by()
    for key, channel_id in rows.values_list("trace_key", "channel_id").distinct():
        joined[bytes(key or b"")].add(channel_id)
    return joined


def load_together(traces: Sequence[Trace]) -> dict[Trace, list[Member]]:
    """The messages of each of these small traces, in the order of the timeline."""
    joined = _find_joined(traces)
    owners = {(bytes(each.key), each.channel_id): each for each in traces}
    found: dict[Trace, list[Member]] = {each: [] for each in traces}
    for member in load_members(select_members(traces)):
        is_across = member.channel_id in joined[member.trace_key]
        owner = owners.get((member.trace_key, None if is_across else member.channel_id))
        if owner is not None:
            found[owner].append(member)
    return found


def load_members(messages: MessageQuerySet) -> list[Member]:
    """These messages, in the order of the timeline."""
    found = messages.annotate(
        identity=F("record__identity"),
        subject=Left("topic", MAX_SUBJECT),
        work=Case(When(_TELLS_OF_WORK, then="links"), default=Value(""), output_field=TextField()),
    )
    # Those of one order key by the identity of their records: ids are random and must decide nothing.
    return sorted(Member._make(map(_plain, row)) for row in found.values_list(*Member._fields))


def _take_in(members: Mapping[Trace, Sequence[Member]], *, whole: Collection[Trace]) -> dict[Trace, Sums]:
    """Give these messages the lines that they stand below now, and sum them up; `whole` traces are looked at wholly."""
    every = [each for rows in members.values() for each in rows]
    placed = {each.id: each.placed for each in every}
    cut = [pk for trace in members for pk in trace.cut if pk not in placed]
    placed |= {each.id: each.placed for each in load_members(Message.objects.shown().filter(pk__in=cut))} if cut else {}
    hung = hang(placed.values())
    changed = {pk: each for pk, each in hung.items() if each.trace_above != each.was_trace_above}
    update_rows(
        model=Message, columns=("id", "trace_above"), rows=[(pk, each.trace_above) for pk, each in changed.items()]
    )
    parents = _load_parents(every)
    left = {each.was_trace_above for each in changed.values() if each.was_trace_above is not None}
    found: dict[Trace, Sums] = {}
    for trace, rows in members.items():
        links = {each.id: at for each in rows if (at := parents.get(each.answers)) and at.trace_key == each.trace_key}
        named = {each.answers: links[each.id].name for each in rows if each.answers and each.id in links}
        found[trace] = sum_up(rows, named=named, asking={pk for pk in named if parents[pk].is_asking})
        found[trace].is_late = any(each.id in links and links[each.id].order >= each[:3] for each in rows)
        if trace.cut or _may_go_round(trace, found[trace]):
            left |= _cut_circles(trace, {each.id for each in rows} | changed.keys() | set(trace.cut))
    _keep_groups(members, left, whole)
    return found


class _Parent(NamedTuple):
    """A message that others answer: its trace, its order key, what names it, and whether it asks for something."""

    trace_key: bytes
    order: tuple[datetime, bytes, int]
    name: bytes
    is_asking: bool


def _load_parents(members: Sequence[Member]) -> dict[uuid.UUID | None, _Parent]:
    order = ("order_time", "order_source", "order_index")
    columns = ("id", "trace_key", *order, "record__identity", "part", "performative")
    ids = {each.answers for each in members if each.answers is not None}
    rows = Message.objects.filter(IsAny("id", ids)).values_list(*columns) if ids else ()
    return {
        pk: _Parent(bytes(key or b""), (at, bytes(source), index), name_content(bytes(identity), part), act in ASKS)
        for pk, key, at, source, index, identity, part, act in rows
    }


def _may_go_round(trace: Trace, sums: Sums) -> bool:
    """Whether answers may go round in a trace: through several conversations, and one to what is later than itself."""
    if max(trace.conversation_count, len(sums.conversations)) < 2:
        return False
    parts = TreeGroup.objects.filter(trace=trace, kind=TreeGroup.Kind.PART, data__contains='"is_late":true')
    return sums.is_late or (bool(trace.channels) and parts.exists())


def _cut_circles(trace: Trace, suspects: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """Cut the circles of answers that these messages lead into; the lines below which what was cut stood."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH RECURSIVE up (id) AS (
                SELECT id FROM unnest(%s::uuid[]) AS asked (id)
                UNION
                SELECT message.trace_above FROM up CROSS JOIN LATERAL (
                    SELECT trace_above FROM threads_message WHERE id = up.id LIMIT 1) AS message)
            SELECT message.id, trace_above, conversation_id
              FROM (SELECT id FROM up LIMIT %s) AS up
             CROSS JOIN LATERAL (SELECT * FROM threads_message WHERE id = up.id LIMIT 1) AS message
             ORDER BY order_time, order_source, order_index, place
            """,
            [list(suspects), MAX_CLIMBED],
        )
        above = {pk: (line, home) for pk, line, home in cursor.fetchall()}
    ranks = {pk: rank for rank, pk in enumerate(above)}
    clear, cut, left = set[uuid.UUID](), [], set[uuid.UUID]()
    for start in above:
        path: dict[uuid.UUID, None] = {}
        pk = start
        while pk in above and pk not in clear and pk not in path:
            path[pk] = None
            pk = above[pk][0]
        if pk in path:
            walked = list(path)
            first = min(walked[walked.index(pk) :], key=ranks.__getitem__)
            Message.objects.filter(pk=first).update(trace_above=name_heading(bytes(trace.key), above[first][1]))
            cut.append(first)
            left.add(above[first][0])
        clear |= path.keys()
    if sorted(cut) != trace.cut:
        trace.cut = sorted(cut)
        Trace.objects.filter(pk=trace.pk).update(cut=trace.cut)
    return left


def _keep_groups(
    members: Mapping[Trace, Sequence[Member]], left: Collection[uuid.UUID], whole: Collection[Trace]
) -> None:
    """Keep the ghosts and headings of these traces where the first line below them stands."""
    groups = TreeGroup.objects.exclude(kind=TreeGroup.Kind.PART).select_related("trace")
    # What belongs to none of its messages any more belongs to the trace of its id across channels, if to any.
    groups.filter(trace__in=[trace for trace in whole if not members[trace]]).delete()
    ghosts: dict[uuid.UUID, Trace] = {}
    headings: dict[uuid.UUID, tuple[Trace, uuid.UUID]] = {}
    for trace, rows in members.items():
        key = bytes(trace.key)
        for each in rows:
            headings[name_heading(key, each.conversation_id)] = trace, each.conversation_id
            if each.cited:
                ghosts[name_ghost(key + each.channel_id.bytes, each.cited)] = trace
    known = list(groups.filter(IsAny("id", {*left, *ghosts, *headings}))) + list(groups.filter(trace__in=whole))
    known += groups.filter(IsAny("id", {group.above for group in known if group.kind == TreeGroup.Kind.GHOST}))
    for group in known:
        if group.trace is not None and group.conversation_id is None:
            ghosts.setdefault(group.pk, group.trace)
        elif group.trace is not None and group.conversation_id is not None:
            headings.setdefault(group.pk, (group.trace, group.conversation_id))
    cited = [Group(pk, None, trace.pk, bytes(trace.key)) for pk, trace in ghosts.items()]
    for pk, home in keep_groups("trace_above", cited).items():
        headings.setdefault(name_heading(bytes(ghosts[pk].key), home), (ghosts[pk], home))
    keep_groups("trace_above", [Group(pk, home, trace.pk, bytes(trace.key)) for pk, (trace, home) in headings.items()])


def _plain(value: object) -> object:
    return bytes(value) if isinstance(value, memoryview) else value


def _write(sums: Mapping[Trace, Sums]) -> None:
    """Write the rows of these traces, each drawn up to its generation as loaded, and how far its headings reach."""
    now = timezone.now()
    update_rows(
        model=Trace,
        columns=("id", "settled_generation", "settled_at", *Sums().tell()),
        rows=[(trace.pk, trace.generation, now, *each.tell().values()) for trace, each in sums.items()],
    )
    columns = ("first_at", "last_at", "severity")
    headings = TreeGroup.objects.filter(trace__in=list(sums), kind=TreeGroup.Kind.HEADING)
    by_id = {trace.pk: each.conversations for trace, each in sums.items()}
    spans = []
    for pk, trace_id, home, *held in headings.values_list("pk", "trace_id", "conversation_id", *columns):
        span = by_id[trace_id].get(home.hex) if home else None
        if span is not None and (found := [read_instant(span[0]), read_instant(span[1]), span[2]]) != held:
            spans.append((pk, *found))
    update_rows(model=TreeGroup, columns=("id", *columns), rows=spans)


def _find_together(trace: Trace, others: Sequence[Trace]) -> list[Trace]:
    """The trace, and of the others as many as are few messages together with it."""
    small = [other for other in others if other.pk != trace.pk and other.message_count <= SMALL]
    # What carries the id in any of its channels: never less than what one of them holds.
    rows = select_members(small).values_list("trace_key").annotate(count=Count("pk")) if small else ()
    counts = {bytes(key or b""): count for key, count in rows}
    found, held = [trace], 0
    for other in small:
        count = counts.get(bytes(other.key), 0)
        if count <= SMALL and held + count <= TOGETHER:
            held += count
            found.append(other)
    return found
