"""Writing: messages told again where they no longer stand as told, with what each was told as before, and why; the rows
of conversations that came out differently, many in one statement; and that messages were told for the first time, which
readers follow (`browsing.activity`).

An earlier wording is one that stood: until its conversation came to rest (resolved, nothing more asked for, and no
delivery of its workspace half read), or for ten minutes. So loading a log in slices leaves no history. Times of
re-telling are the wall clock's and belong to this history alone: nothing that resolving decides asks for them.
"""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import Any, Final, NamedTuple

from django.db.models import BigIntegerField, Func, Max, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from dialects import Entry
from inspector.database import copy_rows, cut_windows, make_storable, update_rows
from inspector.intake.models import HiddenRecord, Record, Withdrawal
from inspector.tokens import hide_tokens

from ..dependencies import list_established, questions_of
from ..inserting import HUNG, LEANED, MESSAGE_COLUMNS, OWN, PLACED, TOLD, mark_traces, read_record
from ..lines import Home, Placed, hang, keep_ghosts
from ..models import Announcement, Conversation, Message, Wording
from ..models import Message as MessageRow
from ..models.packed_text import unpack_text
from ..nodes import StoredNode, look_across
from ..teller import Established, Telling, ToldRow, tell_record
from ..terms import decide_established

LONG_ENOUGH: Final = timedelta(minutes=10)
# So many are kept of one message: the first, and the latest.
MAX_WORDINGS: Final = 30

Cause = Wording.Cause


class Change(NamedTuple):
    """That a message which stood is told otherwise: from when on, why, and the one message that arrived late, where it
    was one."""

    until: datetime
    cause: str
    because_of: uuid.UUID | None = None


class History:
    """What becomes of the wordings of one conversation while it is resolved."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        # Later than whatever was resolved before, also where two machines' clocks differ.
        last = conversation.settled_at
        self.at = max(timezone.now(), last + timedelta(microseconds=1)) if last else timezone.now()
        # Why records were read anew in this resolving.
        self._read_anew: dict[uuid.UUID, str] = {}
        self._new: list[uuid.UUID] = []
        self._cause_of_others = ""

    def stood(self, told_at: datetime | None) -> bool:
        """Whether what is told so since then could be relied on."""
        return _has_stood(told_at, rested_at=self.conversation.stood_at, now=self.at)

    def pass_by(self, node: StoredNode, *, is_changed: bool) -> Change | None:
        """Take note of the next message of the timeline; why it is told otherwise than its row, where that stood."""
        if node.is_new:
            if node.record not in self._read_anew and len(self._new) < 2:
                self._new.append(node.id)
        elif is_changed and self.stood(node.told_at):
            return self._explain()
        return None

    def _explain(self) -> Change:
        if self._new:
            return Change(self.at, Cause.LATE, self._new[0] if len(self._new) == 1 else None)
        if not self._cause_of_others:
            self._cause_of_others = next(iter(self._read_anew.values()), "") or self._ask_for_withdrawals()
        return Change(self.at, self._cause_of_others)

    def _ask_for_withdrawals(self) -> str:
        last = self.conversation.settled_at
        hidden = HiddenRecord.objects.filter(record__messages__conversation=self.conversation)
        if last and hidden.filter(since__gte=last).exists():
            return Cause.WITHDRAWAL
        returned = Withdrawal.objects.filter(delivery__sightings__record__messages__conversation=self.conversation)
        # Where nobody took one back, what it leaned on belongs to another conversation now, or to another place.
        return Cause.RETURN if last is None or returned.filter(taken_back_at__gte=last).exists() else Cause.MOVED

    def read_anew(self, record_id: uuid.UUID, *, is_outdated: bool) -> None:
        """Keep what a record's messages were told as, before they are replaced; call inside that transaction."""
        cause = Cause.DECODER if is_outdated else Cause.DIALECT
        self._read_anew[record_id] = cause
        rows = Message.objects.filter(conversation=self.conversation, record_id=record_id)
        stood = [pk for pk, told_at in rows.values_list("pk", "told_at") if self.stood(told_at)]
        keep_wordings(changes=dict.fromkeys(stood, Change(self.at, cause)), told={})

    def forget_unchanged(self) -> None:
        """Drop the wordings of records that were read anew and came out as they were; call after they are written."""
        if not self._read_anew:
            return
        kept = Wording.objects.filter(record_id__in=self._read_anew, until=self.at)
        rows = Message.objects.filter(record_id__in=self._read_anew).values_list("record_id", "part", "body")
        now = {(record_id, part): read_words(body) for record_id, part, body in rows}
        same = [each.pk for each in kept if now.get((each.record_id, each.part)) == (each.english, each.also)]
        Wording.objects.filter(pk__in=same).delete()


def _has_stood(told_at: datetime | None, *, rested_at: datetime | None, now: datetime) -> bool:
    """Whether what is told so since then stood: its conversation came to rest, or it was shown for long enough."""
    if told_at is None:
        return False
    return (rested_at is not None and told_at <= rested_at) or now - told_at >= LONG_ENOUGH


def read_words(body: str) -> tuple[str, list[str]]:
    """The sentence of a told body, and what it says beyond the sentence; each as it is stored."""
    told = json.loads(body)["message"] if body else {}
    sentence = "".join(segment["text"] for segment in told.get("english") or ())
    return make_storable(sentence), [make_storable(segment["text"]) for segment in told.get("also") or ()]


def keep_wordings(
    *, changes: Mapping[uuid.UUID, Change], told: Mapping[uuid.UUID, str]
) -> Mapping[uuid.UUID, datetime]:
    """Keep what these messages are told as in their rows; call in the transaction that is about to replace it. Of those
    that come out in the same words (`told` has new bodies by message id) nothing is kept; returned is since when they
    are told in them."""
    if not changes:
        return {}
    same: dict[uuid.UUID, datetime] = {}
    fresh: list[tuple[Message, datetime, tuple[str, list[str]]]] = []
    columns = ("workspace", "record", "part", "body", "told_digest", "told_in", "told_at")
    for row in Message.objects.filter(pk__in=changes).only(*columns).order_by("record_id", "part"):
        words = read_words(row.body)
        if row.told_at is None:
            continue
        if row.pk in told and words == read_words(told[row.pk]):
            same[row.pk] = row.told_at
        else:
            fresh.append((row, row.told_at, words))
    numbers = _find_numbers({row.record_id for row, *_ in fresh})
    Wording.objects.bulk_create(
        Wording(
            **{name: getattr(row, name) for name in ("workspace_id", "record_id", "part", "told_in")},
            **changes[row.pk]._asdict(),
            number=numbers[row.record_id, row.part] + 1,
            # It may have been told by a decoder that looked for no tokens.
            english=hide_tokens(english),
            also=[hide_tokens(text) for text in also],
            digest=bytes(row.told_digest or b""),
            decoder=row.told_in.partition(" ")[0],
            since=since,
        )
        for row, since, (english, also) in fresh
    )
    for row, *_ in fresh:
        too_many = numbers[row.record_id, row.part] + 2 - MAX_WORDINGS
        if too_many > 1:
            old = Wording.objects.filter(record_id=row.record_id, part=row.part, number__gt=1)
            old.filter(number__lte=too_many).delete()
    return same


def keep_moved(*, messages: QuerySet[Message], at: datetime) -> None:
    """Keep what these messages are told as, as far as it stood, before they are placed anew; in that transaction. What
    comes out in the same words after all is passed over by `list_wordings`."""
    rows = messages.select_related("conversation").only("told_at", "conversation__stood_at")
    stood = [row.pk for row in rows if _has_stood(row.told_at, rested_at=row.conversation.stood_at, now=at)]
    keep_wordings(changes=dict.fromkeys(stood, Change(at, Cause.MOVED)), told={})


def _find_numbers(records: Iterable[uuid.UUID]) -> Mapping[tuple[uuid.UUID, int], int]:
    rows = Wording.objects.filter(record_id__in=list(records)).values_list("record_id", "part")
    found: dict[tuple[uuid.UUID, int], int] = defaultdict(int)
    for record_id, part, number in rows.annotate(last=Max("number")).order_by():
        found[record_id, part] = number
    return found


def list_wordings(*, message: Message) -> list[Wording]:
    """The earlier wordings of a message, oldest first, without those followed by the same words. Each says in `skipped`
    how many before it are no longer kept. Of a message found with the word that it has none the database is not asked.
    """
    if not getattr(message, "is_reworded", True):
        return []
    rows = list(Wording.objects.filter(record_id=message.record_id, part=message.part).order_by("number"))
    words = [(row.english, row.also) for row in rows]
    if message.body:
        words.append(read_words(message.body))
    for row, before in zip(rows, (0, *(each.number for each in rows)), strict=False):
        row.skipped = row.number - before - 1
    return [row for at, row in enumerate(rows) if words[at : at + 1] != words[at + 1 : at + 2]]


# How far ahead is looked for what will be needed, and how much of it is held at once.
_AHEAD, _AHEAD_BYTES = 500, 2 * 1024 * 1024

Run = list[StoredNode]


class Retelling:
    """The messages of one block, placed and in order, being told, in the context of what holds before them, which takes
    what they establish; `fence` is called between loads."""

    def __init__(self, nodes: Sequence[StoredNode], context: Established, fence: Callable[[], None]) -> None:
        self.context = context
        self._fence = fence
        self._runs = [list(same) for _, same in groupby(nodes, key=lambda node: node.record)]
        self._records: Mapping[uuid.UUID, Record] = {}
        asked = (chain(questions_of(node.told_in), list_established(node.established or "")) for node in nodes)
        self.context.expect(chain.from_iterable(asked))
        # The dialects that the context knows to be spoken, since it was last changed by anything else.
        self._spoken: set[str] = set()

    def go_through(self) -> Iterator[tuple[StoredNode, ToldRow | None]]:
        """Each node in the timeline, and what it is told anew (None where it stands). A record whose parts stand
        together is told once."""
        for at, run in enumerate(self._runs):
            if self._stands(run):
                self._skip(run[0])
                for node in run:
                    yield node, None
                continue
            telling = self._tell(at, run)
            for node in run:
                row = telling.rows[node.part]
                # What a record establishes is kept with the first of its parts that stand together.
                node.told_in, node.established = telling.told_in, telling.established if node is run[0] else ""
                node.severity, node.is_sealed = row.severity, row.is_sealed
                node.was_told, node.told_digest = node.told_digest, row.digest
                yield node, row
            # It is written down, and may be long.
            run[0].established = None

    def _stands(self, run: Run) -> bool:
        first, position = run[0], run[0].position + 1
        if first.told_in.endswith("+") and first.established == "":
            return False
        return all(
            node.told_digest and self.context.allows(node.told_in, dialect=node.read_in, position=position)
            for node in run
        )

    def _skip(self, first: StoredNode) -> None:
        established = first.established
        if established is None:
            rows = Message.objects.filter(pk=first.id).values_list("established", flat=True)
            established = rows.first() or ""
            self.context.expect(list_established(established))
        if established:
            self.context.go_through(established, position=first.position + 1)
            self._spoken.clear()
        if first.read_in != "prose" and first.read_in not in self._spoken:
            self.context.add([Entry(kind="dialect", name=first.read_in, value=first.read_in)])
            self._spoken.add(first.read_in)

    def _tell(self, at: int, run: Run) -> Telling:
        first = run[0]
        if first.new is not None:
            record, reading = first.new.arrival.record, first.new.arrival.reading
        else:
            if first.record not in self._records:
                self._load_records(at)
            record = self._records[first.record]
            reading = read_record(record, dialect=first.read_in).reading
        self._spoken.clear()
        return tell_record(record, reading, self.context, position=first.position + 1)

    def _load_records(self, at: int) -> None:
        self._fence()
        # The first of them does not stand, which `go_through` has found already.
        ahead = islice(self._runs, at + 1, at + _AHEAD)
        stale = chain([self._runs[at][0]], (run[0] for run in ahead if run[0].new is None and not self._stands(run)))
        ids = {node.record for node in _take_window(stale)}
        self._records = {}
        self._records = Record.objects.in_bulk(ids)


def _take_window(nodes: Iterable[StoredNode]) -> list[StoredNode]:
    size_of = attrgetter("size_bytes")
    return next(cut_windows(nodes, size_of=size_of, max_items=_AHEAD, max_bytes=_AHEAD_BYTES))


WINDOW = 500
WINDOW_BYTES = 2 * 1024 * 1024
# Of so many messages one row is written, for so long it is kept, and so many rows one sweep deletes at most.
MAX_TOGETHER: Final = 500
KEPT: Final = timedelta(days=1)
MAX_FORGOTTEN: Final = 5000

# A row is found by its conversation and order key too: one that was moved meanwhile keeps its id and is not written.
_KEY = ("id", "conversation_id", "order_time", "order_source", "order_index")
_HOME, _CHANNEL, _TRACE = map(OWN.index, ("conversation_id", "channel_id", "trace_key"))
_BODY = len(_KEY) + len(PLACED) + len(LEANED) + TOLD.index("body")


@dataclass(slots=True)
class Changes:
    """The rows of conversations to be written: new, told otherwise, leaning otherwise, placed otherwise."""

    new: list[tuple[Any, ...]] = field(default_factory=list)
    told: list[tuple[Any, ...]] = field(default_factory=list)
    leaned: list[tuple[Any, ...]] = field(default_factory=list)
    placed: list[tuple[Any, ...]] = field(default_factory=list)
    # Those that no reader has seen yet, and those of which a trace shows something else now.
    fresh: list[uuid.UUID] = field(default_factory=list)
    traced: list[uuid.UUID] = field(default_factory=list)
    where: dict[uuid.UUID, Placed] = field(default_factory=dict)
    # Those of which something that stood is told otherwise.
    reworded: dict[uuid.UUID, Change] = field(default_factory=dict)
    # What they answer otherwise than before, also once they are written: it may stand in other conversations.
    answered: set[uuid.UUID] = field(default_factory=set)
    size_bytes: int = 0

    @property
    def is_window(self) -> bool:
        lighter = len(self.leaned) + len(self.placed)
        return len(self.told) >= WINDOW or lighter >= 10 * WINDOW or self.size_bytes >= WINDOW_BYTES

    def take(self, history: History, node: StoredNode, row: ToldRow | None) -> None:
        """Add what has changed of a node's row; nothing where it came out as it stands."""
        is_changed = row is not None and bool(node.was_told) and row.digest != node.was_told
        if change := history.pass_by(node, is_changed=is_changed):
            self.reworded[node.id] = change
        if node.is_new:
            self.fresh.append(node.id)
        is_told = row is not None and row.digest != node.was_told
        if node.trace and (node.is_new or is_told or node.hash_link() != node.was_linked):
            self.traced.append(node.id)
        if node.parent_elsewhere and (node.is_new or node.hash_link() != node.was_linked):
            self.answered |= {node.parent} if node.parent else set()
        if node.was_parent not in (None, node.parent):
            self.answered.add(node.was_parent)
        key = (node.id, history.conversation.pk, node.at, node.source, node.index)
        self.where[node.id] = Placed(node.id, history.conversation.pk, node.parent, node.cited, node.basis)
        placed = (node.place, node.run, node.parent, node.cited, node.basis, make_storable(node.why), node.task_id)
        if row is None:
            if node.hash_place() != node.was_placed:
                self.placed.append((*key, *placed))
            return
        established = node.established or ""
        leaned = (*placed, node.told_in, established, row.rule_flags | decide_established(established))
        if node.new is not None:
            self.new.append((*node.new.own.values(), *leaned, *row.list_told(), history.at))
            return
        self.size_bytes += len(established)
        if not is_told:
            self.leaned.append((*key, *leaned))
            return
        self.told.append((*key, *leaned, *row.list_told(), history.at))
        self.size_bytes += len(row.body) + len(row.words)

    def clear(self) -> None:
        """Forget what has been written."""
        self.new, self.told, self.leaned, self.placed, self.size_bytes = [], [], [], [], 0
        self.fresh, self.traced, self.where, self.reworded = [], [], {}, {}


def write_changes(changes: Sequence[Changes], *, workspace_id: uuid.UUID) -> None:
    """Write the rows of these conversations, mark their traces and announce what is new; inside a transaction that
    holds them."""
    # What stood is kept; what comes out in the same words is told so since then.
    reworded = {pk: change for each in changes for pk, change in each.reworded.items()}
    told = [row for each in changes for row in each.told]
    bodies = {row[0]: unpack_text(row[_BODY]) for row in told if row[0] in reworded}
    since = keep_wordings(changes=reworded, told=bodies)
    told = [(*row[:-1], since.get(row[0], row[-1])) for row in told] if since else told
    new = [row for each in changes for row in each.new]
    columns = (*_KEY, *PLACED, *LEANED, *TOLD)
    changed = (
        (told, len(columns)),
        ([row for each in changes for row in each.leaned], len(_KEY) + len(PLACED) + len(LEANED)),
        ([row for each in changes for row in each.placed], len(_KEY) + len(PLACED)),
    )
    written = [row[0] for rows in (new, *(rows for rows, _ in changed)) for row in rows]
    where = {pk: placed for each in changes for pk, placed in each.where.items()}
    homes: dict[uuid.UUID, Home] = {row[0]: (row[_HOME], row[_CHANNEL], row[_TRACE] or b"", None, None) for row in new}
    hung = hang((where[pk] for pk in written), homes)
    hanging = ((*row, hung[row[0]].above, hung[row[0]].trace_above) for row in new)
    copy_rows(model=MessageRow, columns=MESSAGE_COLUMNS, rows=hanging)
    for rows, width in changed:
        found = [(row, hung[row[0]]) for row in rows if row[0] in hung]
        # What hangs in its trace already is hung elsewhere when that is drawn: there it is known what it leaves.
        fresh = [(*row, at.above, at.trace_above) for row, at in found if at.was_trace_above is None]
        old = [(*row, at.above) for row, at in found if at.was_trace_above is not None]
        update_rows(model=MessageRow, columns=(*columns[:width], *HUNG), rows=fresh, key_columns=len(_KEY))
        update_rows(model=MessageRow, columns=(*columns[:width], HUNG[0]), rows=old, key_columns=len(_KEY))
    ghosts = {at.above for at in hung.values() if at.is_ghost}
    left = {at.was_above for at in hung.values() if at.was_above is not None and at.was_above != at.above}
    keep_ghosts(ghosts, left=left)
    # What the statement joins grows with the square of how many it is given.
    for start in range(0, len(written), WINDOW):
        look_across(messages=written[start : start + WINDOW])
    traced = MessageRow.objects.filter(pk__in=[pk for each in changes for pk in each.traced])
    mark_traces(messages=traced, workspace_id=workspace_id, is_whole=False)
    announce(messages=[pk for each in changes for pk in each.fresh], workspace_id=workspace_id)


def find_homes(messages: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """The conversations in which these messages stand."""
    rows = MessageRow.objects.filter(pk__in=messages).values_list("conversation_id", flat=True)
    return set(rows) if messages else set()


def announce(*, messages: Sequence[uuid.UUID], workspace_id: uuid.UUID) -> None:
    """Announce messages that the open transaction tells for the first time."""
    number = Func(
        function="pg_current_xact_id", template="%(function)s()::text::bigint", output_field=BigIntegerField()
    )
    Announcement.objects.bulk_create(
        Announcement(workspace_id=workspace_id, transaction=number, at=Now(), messages=list(each))
        for each in (messages[start : start + MAX_TOGETHER] for start in range(0, len(messages), MAX_TOGETHER))
    )


def forget_announcements() -> int:
    """Delete announcements that are older than they are kept; how many. A part at a time, so that no sweep is long."""
    old = Announcement.objects.filter(at__lt=Now() - KEPT).order_by("at").values("pk")[:MAX_FORGOTTEN]
    return Announcement.objects.filter(pk__in=old).delete()[0]
