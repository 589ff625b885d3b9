"""The nodes of conversations as stored: small facts of each message, in order key; references to messages; and
citations: ids that messages name as what they answer, who bears them elsewhere, and what several messages show.
"""

from __future__ import annotations

import re
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from django.db import connection
from django.db.models import Case, F, Q, QuerySet, When
from django.db.models.fields.tuple_lookups import Tuple, TupleGreaterThanOrEqual, TupleLessThan
from django.db.models.functions import Left, Length

from dialects import get_dialect
from inspector.database import IsAny, make_storable

from .dependencies import MAX_ESTABLISHED_LENGTH
from .inserting import NewMessage
from .keys import NO_WORK, Declared, Guess, Links, Way, Work, count_microseconds, name_slot, read_links
from .models import Message, MessageQuerySet
from .states import TaskState, read_status
from .teller import NOT_TOLD
from .terms import CLOCK_SKEW, RuleFlag


class Citation(NamedTuple):
    """An id that is cited, as its key, and the trace of the message that cites it ("" where it has none)."""

    key: bytes
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What bears a cited id in other conversations: the one message that can be meant, which `content` stands for
    whatever its id is, else only how many do. `count` is not exact above `MAX_BEARERS`."""

    id: uuid.UUID | None
    content: bytes = b""
    count: int = 1


# Of more it is only said that there are more.
MAX_BEARERS: Final = 10
# What a reason holds where several bear the id, in whatever else it says, for conditions of SQL.
SEVERAL: Final = "messages bear that id"
HERE: Final = "in this conversation "
# What a reason holds where its number, or its turn, was its sender's before, for other content.
REUSED: Final = "was used before by its sender, with other content"
_SAID: Final = re.compile(rf"; ({HERE})?(more than )?([0-9]+) {SEVERAL}")


def say_several(why: str, count: int, *, is_here: bool = False) -> str:
    """The reason of a link whose id so many messages bear, here or elsewhere; not exact above `MAX_BEARERS`."""
    return f"{why}; {HERE if is_here else ''}{write_bearers(count)} {SEVERAL}"


def are_here(why: str) -> bool:
    """Whether those that a reason counts are messages of the conversation itself."""
    said = _SAID.search(why)
    return bool(said and said[1])


def count_bearers(why: str) -> int:
    """How many messages bear an id that stands for none, as a reason says it: one above `MAX_BEARERS` for more."""
    said = _SAID.search(why)
    return int(said[3]) + bool(said[2]) if said else 0


def find_reuse(why: str) -> str:
    """What a reason says of a number or turn that was used before; empty where it does not."""
    return next((said for said in why.split("; ") if said.endswith(REUSED)), "") if REUSED in why else ""


def write_bearers(count: int) -> str:
    """The number in words: `3`, `more than 10`."""
    return f"more than {MAX_BEARERS}" if count > MAX_BEARERS else str(count)


# Each id finds its few bearers by the index, however many there are; one more is asked for than is counted.
_BEARERS = """
SELECT asked.key, asked.trace, bearer.id, bearer.identity, bearer.part
FROM unnest(%s::bytea[], %s::text[]) AS asked (key, trace)
CROSS JOIN LATERAL (
    SELECT message.id, record.identity, message.part
    FROM threads_message AS message
    JOIN intake_record AS record ON record.id = message.record_id
    WHERE message.workspace_id = %s AND message.channel_id = %s
        AND (message.id_key = asked.key OR message.call_key = asked.key)
        AND (asked.trace = '' OR message.trace_id = asked.trace)
        AND NOT EXISTS (SELECT FROM intake_hiddenrecord AS hidden WHERE hidden.record_id = message.record_id)
    LIMIT %s
) AS bearer
"""


def find_bearers(
    workspace_id: uuid.UUID, channel_id: uuid.UUID, citations: Iterable[Citation]
) -> Mapping[Citation, Elsewhere]:
    """Who bears each cited id in the channel, among the messages of the citing one's trace, else among all; without
    those that nobody bears. What comes meanwhile is missed unless the channel is held (`hold_channels`)."""
    every = sorted(set(citations))
    if not every:
        return {}
    ask = (workspace_id, channel_id)
    in_channel = _find(*ask, [Citation(key) for key in {citation.key for citation in every}])
    # The trace decides only between several.
    unclear = [each for each in every if each.trace and len(in_channel.get(Citation(each.key), ())) > 1]
    in_trace = _find(*ask, unclear) if unclear else {}
    found = {}
    for citation in every:
        bearers = in_trace.get(citation) or in_channel.get(Citation(citation.key))
        if bearers:
            found[citation] = bearers[0] if len(bearers) == 1 else Elsewhere(None, count=len(bearers))
    return found


def _find(
    workspace_id: uuid.UUID, channel_id: uuid.UUID, citations: Sequence[Citation]
) -> Mapping[Citation, Sequence[Elsewhere]]:
    keys, traces = [citation.key for citation in citations], [citation.trace for citation in citations]
    found: dict[Citation, list[Elsewhere]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_BEARERS, [keys, traces, workspace_id, channel_id, MAX_BEARERS + 1])
        for key, trace, message_id, identity, part in cursor.fetchall():
            citation = Citation(bytes(key), trace)
            found[citation].append(Elsewhere(message_id, bytes(identity) + part.to_bytes(8)))
    return found


# By what wire says that a message answers another.
_SAID_ELSEWHERE: Final = ("explicit", "correlation")

# Of those that bear one id all but the first to be written are found: the others are looked up by them. Hidden ones
# count, for they may be shown again. Each is looked up by itself, by index, whatever estimates say (LATERAL and LIMIT).
_ADD: Final = """
WITH "written" AS MATERIALIZED (
    SELECT "message".* FROM unnest(%(messages)s::uuid[]) AS "asked" ("id") CROSS JOIN LATERAL (
        SELECT "id", "workspace_id", "channel_id", "conversation_id", "record_id", "id_key", "sender", "parent",
               "parent_basis", "parent_why", "order_time"
          FROM "threads_message" "message" WHERE "message"."id" = "asked"."id" LIMIT 1
    ) "message"
), "name" AS MATERIALIZED (
    SELECT DISTINCT ON ("conversation_id", "id_key") * FROM "written" WHERE "id_key" IS NOT NULL
), "shared" AS MATERIALIZED (
    SELECT "name"."conversation_id", "name"."id_key" FROM "name" CROSS JOIN LATERAL (
        SELECT FROM "threads_message" "bearer"
         WHERE "bearer"."workspace_id" = "name"."workspace_id" AND "bearer"."channel_id" = "name"."channel_id"
           AND "bearer"."id_key" = "name"."id_key" AND "bearer"."conversation_id" = "name"."conversation_id"
           AND "bearer"."record_id" <> "name"."record_id" LIMIT 1
    ) "other"
), "found" AS (
    SELECT "written"."id", %(double)s AS "sight" FROM "written" JOIN "shared" USING ("conversation_id", "id_key")
    UNION ALL
    SELECT "written"."id", %(early)s FROM "written" CROSS JOIN LATERAL (
        SELECT "order_time" FROM "threads_message" "message" WHERE "message"."id" = "written"."parent" LIMIT 1
    ) "parent"
     WHERE "written"."parent_basis" = ANY(%(said)s) AND "parent"."order_time" > "written"."order_time" + %(skew)s
    UNION ALL
    SELECT "written"."id", %(strange)s FROM "written" CROSS JOIN LATERAL (
        SELECT FROM "intake_sighting" "sighting"
          JOIN "intake_delivery" "delivery" ON "delivery"."id" = "sighting"."delivery_id"
          JOIN "accounts_apikey" "key" ON "key"."id" = "delivery"."sent_by_key_id"
         WHERE "sighting"."record_id" = "written"."record_id" AND "sighting"."outcome" = 'stored'
           AND "key"."agents" <> '{}' AND "written"."sender" <> ALL("key"."agents") LIMIT 1
    ) "strange" WHERE "written"."sender" <> '' AND EXISTS (SELECT FROM "accounts_apikey" WHERE "agents" <> '{}')
    UNION ALL
    SELECT "id", %(reused)s FROM "written" WHERE strpos("parent_why", %(reuse)s) > 0
), "sum" AS (
    SELECT "id", bit_or("sight")::smallint AS "sights" FROM "found" GROUP BY "id"
)
UPDATE "threads_message" "message" SET "sights" = "message"."sights" | "sum"."sights"
  FROM "sum" WHERE "message"."id" = "sum"."id" AND "message"."sights" & "sum"."sights" <> "sum"."sights"
"""


def look_across(*, messages: Sequence[uuid.UUID]) -> None:
    """Add to the flags of these messages what it takes others to see; call it where their conversations are held."""
    given: dict[str, Any] = {"messages": list(messages), "said": list(_SAID_ELSEWHERE), "skew": CLOCK_SKEW}
    given |= {"double": RuleFlag.DOUBLE.value, "early": RuleFlag.EARLY.value, "strange": RuleFlag.STRANGE.value}
    given |= {"reused": RuleFlag.REUSED.value, "reuse": REUSED}
    with connection.cursor() as cursor:
        cursor.execute(_ADD, given)


def suspect_answers(*, moved: QuerySet[Message], among: Collection[uuid.UUID]) -> None:
    """Have the answers to messages looked at that are about to be moved, as they may be earlier than these by then,
    among the conversations that are held."""
    rows = list(moved.values_list("id", "conversation_id", "workspace_id", "channel_id", "id_key"))
    beside = Q(conversation_id__in={row[1] for row in rows})
    elsewhere = Q(
        workspace_id__in={row[2] for row in rows},
        channel_id__in={row[3] for row in rows},
        parent_key__in=[key for *_, key in rows if key],
    )
    answers = Message.objects.filter(beside | elsewhere, parent__in=[row[0] for row in rows])
    answers = answers.filter(IsAny("conversation_id", among))
    answers.update(sights=F("sights").bitor(RuleFlag.EARLY.value))


Rank = tuple[int, str, int, int]


@dataclass(slots=True, eq=False)
class Ref:
    """A message: `node` itself where it stands in the block at hand, `turn` where its dialect counts them."""

    id: uuid.UUID
    rank: Rank
    sender: str | None
    turn: int | None
    node: StoredNode | None = None

    @classmethod
    def of(cls, node: StoredNode) -> Ref:
        """The reference to a node of the block, where its position ranks it."""
        turn = node.turn if node.turn is not None and get_dialect(node.dialect).orders_by_turn else None
        # Its order key, as short as it tells messages apart.
        return cls(node.id, (node.instant, node.source[:8].hex(), node.index, node.part), node.sender, turn, node)

    def find_moment(self) -> tuple[bool, Rank | int]:
        """Its moment in the timeline: what stands in the block comes after all that earlier blocks gave."""
        return (False, self.rank) if self.node is None else (True, self.node.position)

    def write(self) -> list[Any]:
        """It as JSON takes it."""
        return [self.id.hex, *self.rank, self.sender, self.turn]

    @classmethod
    def read(cls, written: list[Any]) -> Ref:
        """What `write` wrote."""
        name, instant, source, index, part, sender, turn = written
        return cls(uuid.UUID(hex=name), (instant, source, index, part), sender, turn)


def take_latest(refs: Iterable[Ref | None]) -> Ref | None:
    """The latest of these."""
    return max((ref for ref in refs if ref is not None), key=Ref.find_moment, default=None)


# A number is given to no more statements that are told apart; one that was given to more is nobody's.
MAX_MEANT: Final = 16
# So much of its topic may name a conversation.
MAX_SUBJECT: Final = 500
# What is said to more than these by name is said to everybody.
MAX_NAMED: Final = 20


class Bearer(NamedTuple):
    """A statement that bears an id by which answers name it; `content` stands for what it says under a number."""

    ref: Ref
    receivers: tuple[str, ...]
    content: str

    @property
    def sender(self) -> str | None:
        return self.ref.sender

    @classmethod
    def of(cls, node: StoredNode, ref: Ref, name: bytes) -> Bearer:
        """A statement as it bears a name; under its message's own id it is what its record is."""
        receivers = node.receivers if len(node.receivers) <= MAX_NAMED else ()
        return cls(ref, receivers, (node.identity if name == node.key else node.said).hex())

    @classmethod
    def read_all(cls, written: list[list[Any]]) -> list[Bearer]:
        """Bearers as they were stored."""
        return [cls(Ref.read(ref), tuple(receivers), content) for ref, receivers, content in written]

    def add_to(self, bearers: Sequence[Bearer]) -> list[Bearer]:
        """The bearers of an id with this one: of what is said again the latest, and no more than `MAX_MEANT`."""
        kept = [each for each in bearers if (each.sender, *each[1:]) != (self.sender, *self[1:])]
        return [*kept, self] if len(kept) <= MAX_MEANT else kept


class Pair(NamedTuple):
    """The latest message of some, and the latest of anyone but its sender; or of a turn before its."""

    latest: Ref
    other: Ref | None = None

    @classmethod
    def read(cls, written: list[Any]) -> Pair:
        """A pair as it was stored."""
        latest, other = written
        return cls(Ref.read(latest), other and Ref.read(other))

    def follow(self, ref: Ref, *, by: Literal["sender", "turn"]) -> Pair:
        """The pair once one more message has come."""
        return Pair(ref, self.latest if getattr(self.latest, by) != getattr(ref, by) else self.other)

    def of_other(self, sender: str | None) -> Ref | None:
        """The latest that this sender did not send."""
        return self.latest if self.latest.sender != sender else self.other

    def before_turn(self, ref: Ref) -> Ref | None:
        """The latest before a message; where turns are counted, of an earlier turn than its own."""
        return self.other if ref.turn is not None and self.latest.turn == ref.turn else self.latest


# What a node calls as its row does.
_SAME: Final = (
    *("id", "part", "dialect", "carrier", "performative", "is_broadcast", "turn", "severity", "told_in"),
    *("established", "is_sealed", "subject", "told_at"),
)
_COLUMNS: Final = (
    *("conversation_id", "order_time", "order_source", "order_index"),
    *("short_established" if name == "established" else name for name in _SAME),
    *("record_id", "sender", "receivers"),
    *("task_id", "id_key", "links", "told_digest", "trace_id", "order_basis", "status", "record__identity"),
    *("place", "run", "parent", "parent_key", "parent_basis", "parent_why", "task"),
)
# Those of one order key by the identity of their records: ids are random and must decide nothing.
_ORDER = ("order_time", "order_source", "order_index", "record__identity", "part")
# The bases of a time that the message or its log carries; any other is the delivery's.
SAID_TIMES = frozenset({"wire", "envelope"})


@dataclass(slots=True)
class StoredNode:
    """A message as resolving sees it: small facts of it, where it is placed, and what its row holds already. `key`,
    `correlation`, the keys of the ways and `said` are digests (`Links`). `is_statement` is False of what nobody
    answers: text beside a dialect's own words."""

    id: uuid.UUID
    record: uuid.UUID
    part: int
    dialect: str
    sender: str | None
    receivers: tuple[str, ...]
    key: bytes | None
    correlation: tuple[bytes, ...]
    task: str | None
    turn: int | None
    ways: Sequence[Way]
    carrier: str = ""
    trace: str = ""
    said: bytes = b""
    is_statement: bool = True
    run: int = 1
    position: int = 0
    parent: uuid.UUID | None = None
    # The parent itself where it is in this conversation; where it is in another, what stands for it by content.
    above: StoredNode | None = None
    parent_elsewhere: bytes = b""
    # The key of an id that is cited and not found here; a ghost where no single message elsewhere bears it.
    cited: bytes | None = None
    ghost: bytes | None = None
    basis: str = ""
    why: str = ""
    opens_run: bool = False
    # Which of its own, `turn 3` or `its number`, its sender had used before for other content.
    reused: str = ""
    # Whether its turn comes before one that stands in an earlier block.
    is_late: bool = False
    at: datetime | None = None
    is_broadcast: bool = False
    declared: tuple[Declared, ...] = ()
    # The time of its order key in microseconds since 1970.
    instant: int = 0
    # Of its record: what it is known by.
    identity: bytes = b""
    # Of its order key, and where it stands: see `keys`.
    source: bytes = b""
    index: int = 0
    place: bytes = b""
    performative: str | None = None
    is_retryable: bool | None = None
    subject: str = ""
    severity: int = 0
    is_sealed: bool = False
    size_bytes: int = 0
    guess: Guess | None = None
    told_in: str = ""
    told_digest: bytes = b""
    # Of a node told anew: the digest that its row holds.
    was_told: bytes = b""
    # What its record established, where it is the first of its messages; None where that has to be loaded.
    established: str | None = ""
    # Since when it is told as it is, and whether it has not been placed before: for the history of its wordings.
    told_at: datetime | None = None
    is_new: bool = False
    # Of its task: whether wire or envelope carry its time, what its status word means, and what it says of the work.
    is_timed: bool = False
    meaning: str | None = None
    work: Work = NO_WORK
    # The task that it belongs to, how it does where that is inferred, and the id that its row has for it.
    of_task: TaskState | None = None
    link: str = ""
    task_id: uuid.UUID | None = None
    was_placed: int = 0
    was_task: uuid.UUID | None = None
    was_parent: uuid.UUID | None = None
    was_linked: int = 0
    # Of one that has no row yet: what it is to be inserted as.
    new: NewMessage | None = None

    @property
    def read_in(self) -> str:
        """The dialect that its record is read in."""
        return self.carrier or self.dialect

    @property
    def handles(self) -> tuple[bytes, ...]:
        """The ids beside its message's own by which an answer may name it."""
        return tuple(name for name in self.correlation if name != self.key)

    @property
    def order(self) -> tuple[datetime, bytes, int]:
        """Its order key, but for the identity of its record."""
        if self.at is None:
            raise ValueError("a stored message has a time")
        return self.at, self.source, self.index

    @property
    def slot(self) -> bytes:
        """The place that it would have if it began a block: slots sort as the timeline does."""
        return name_slot(self.instant, self.source, self.index)

    def hash_place(self) -> int:
        """A hash, within this process, of everything that placing decides of the row."""
        return hash((self.place, self.run, self.parent, self.cited, self.basis, self.why, self.task_id))

    def hash_link(self) -> int:
        """The same of what it answers alone, which is what a trace shows of how it is placed."""
        return _hash_link(self.parent, self.cited, self.basis, self.why)


def _hash_link(parent: uuid.UUID | None, cited: bytes | None, basis: str, why: str) -> int:
    # What merely follows answers nothing.
    return hash(() if parent is not None and basis == "adjacency" else (parent, cited, basis, why))


def load_timelines(conversation_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, list[StoredNode]]:
    """The nodes of each of these conversations, without those that a withdrawal hides; one statement."""
    timelines: dict[uuid.UUID, list[StoredNode]] = {conversation_id: [] for conversation_id in conversation_ids}
    rows = _read_rows(Q(conversation_id__in=list(conversation_ids))).order_by("conversation_id", *_ORDER)
    for row in rows.values_list(*_COLUMNS):
        timelines[row[0]].append(_make_node(row))
    return timelines


def load_chunk(
    conversation_id: uuid.UUID,
    start: tuple[datetime, bytes, int] | None,
    end: tuple[datetime, bytes, int] | None,
    *,
    limit: int,
) -> tuple[list[StoredNode], bool]:
    """The first shown nodes of a conversation from `start` (None: its beginning) up to and without `end` (None: its
    end), in order key, and whether these are all. At most `limit` are loaded, but for those of one order key, which
    stay together."""
    rows, key = _read_rows(Q(conversation_id=conversation_id)), Tuple("order_time", "order_source", "order_index")
    if start is not None:
        rows = rows.filter(TupleGreaterThanOrEqual(key, start))
    if end is not None:
        rows = rows.filter(TupleLessThan(key, end))
    ordered = rows.order_by(*_ORDER).values_list(*_COLUMNS)
    found = list(ordered[: limit + 1])
    is_all = len(found) <= limit
    if not is_all:
        last = found[-1][1:4]
        found = [row for row in found if row[1:4] != last]
        if not found:
            found = list(ordered.filter(order_time=last[0], order_source=last[1], order_index=last[2]))
    return list(map(_make_node, found)), is_all


def load_nodes(conversation_id: uuid.UUID, wanted: Q) -> list[StoredNode]:
    """The nodes of a conversation that are wanted, as they stand now, placed or not; in no order, without positions."""
    nodes = []
    for row in _read_rows(wanted & Q(conversation_id=conversation_id)).values_list(*_COLUMNS):
        node = _make_node(row)
        _, node.run, node.parent, cited, node.basis, node.why, node.task_id = row[-7:]
        node.cited = None if cited is None else bytes(cited)
        nodes.append(node)
    return nodes


def _read_rows(wanted: Q) -> MessageQuerySet:
    # Long ones are loaded one by one: together they can be as long as a log.
    rows = Message.objects.shown().filter(wanted).annotate(length=Length("established"))
    established = Case(When(length__lte=MAX_ESTABLISHED_LENGTH, then="established"))
    return rows.annotate(short_established=established, subject=Left("topic", MAX_SUBJECT))


def make_new_node(new: NewMessage) -> StoredNode:
    """The node of a message that has no row yet."""
    own, record = new.own, new.arrival.record
    said: dict[str, Any] = {
        **own,
        "receivers": [make_storable(name) for name in new.message.receivers],
        "severity": 0,
        "told_in": NOT_TOLD.told_in,
        "subject": own["topic"][:MAX_SUBJECT],
        "is_sealed": False,
        "short_established": "",
        "record__identity": record.identity,
        "run": 1,
        "parent_basis": "",
        "parent_why": "",
    }
    node = _make_node([said.get(name) for name in _COLUMNS], new.links)
    node.new = new
    return node


def sort_nodes(nodes: Iterable[StoredNode]) -> list[StoredNode]:
    """These nodes in order key."""
    return sorted(nodes, key=lambda node: (node.instant, node.source, node.index, node.identity, node.part))


def _make_node(row: Sequence[Any], links: Links | None = None) -> StoredNode:
    at, source, index, *same = row[1 : 4 + len(_SAME)]
    record, sender, receivers, task, key, links_text, told_digest, trace, order_basis, status, identity = row[-18:-7]
    place, run, parent, parent_key, basis, why, task_id = row[-7:]
    said = dict(zip(_SAME, same, strict=True))
    cited = None if parent_key is None else bytes(parent_key)
    if links is None:
        links = read_links(links_text, key) if links_text else Links()
    return StoredNode(
        **said,
        record=record,
        sender=sender or None,
        receivers=tuple(receivers),
        task=task or None,
        trace=trace,
        is_statement=said["performative"] not in (None, "inform"),
        at=at,
        instant=count_microseconds(at),
        identity=bytes(identity),
        source=bytes(source),
        index=index,
        told_digest=bytes(told_digest or b""),
        is_new=place is None,
        is_timed=order_basis in SAID_TIMES,
        meaning=read_status(status),
        was_placed=hash((None if place is None else bytes(place), run, parent, cited, basis, why, task_id)),
        was_task=task_id,
        was_parent=parent,
        was_linked=_hash_link(parent, cited, basis, why),
        **links._asdict(),
    )
