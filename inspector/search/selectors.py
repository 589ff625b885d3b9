"""Searching messages: newest first, by keyset, within a time that a reader is willing to wait; those beside one in that
order; and the conversations and traces that hold a shown message which a query finds. Cursors of keyset pages are
signed, and good in one workspace only.

The whole timeline is asked for at once, which is nearly always quick. Where it is not (PostgreSQL takes what is common
elsewhere to be common here, and walks through everything newer), the index of words and terms is asked alone. It has an
entry for the span of time in which a message lies, and one for a sample of all: the sample says in which spans the
newest are, and a span that holds thousands is walked down. What even that does not find in time is looked for in
windows of the timeline that widen, newest first, until the time is up; the answer then says how far back it looked, and
the search can go on from there.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from itertools import groupby, pairwise
from typing import Any, Final, Generic, TypeVar

from django.contrib.postgres.fields import ArrayField
from django.core import signing
from django.db import OperationalError, connections, models, router, transaction
from django.db.models import BooleanField, CharField, Exists, Func, OuterRef, Q, TextField, Value
from django.db.models.lookups import IsNull

from inspector.accounts.models import Workspace
from inspector.database import IsAny, go_on
from inspector.intake.withdrawals import has_hidden
from inspector.threads.keys import RANDOM, count_microseconds, read_instant
from inspector.threads.models import Message, MessageQuerySet, Trace
from inspector.threads.terms import SAMPLE, SIZES, Spans, mark_workspace
from inspector.trail.row_security import across

from . import registry
from .language import Group, parse, zone_of_query
from .sql import as_filter, is_of_terms

Place = tuple[datetime, uuid.UUID]


class CursorError(Exception):
    """A cursor that was tampered with, or belongs to another workspace."""


def write_cursor(place: Place, workspace_id: uuid.UUID, *, of: str = "") -> str:
    """The cursor after a row, which is named by its time and id; `of` names its list, where no other may take it."""
    return write_key([place[0].isoformat(), str(place[1])], workspace_id, of=of)


def read_cursor(text: str | None, workspace_id: uuid.UUID, *, of: str = "") -> Place | None:
    """The place that a cursor names; None for no cursor.

    Raises:
        CursorError: for one that `write_cursor` did not write for this list of this workspace.
    """
    key = read_key(text, workspace_id, of=of)
    return (datetime.fromisoformat(key[0]), uuid.UUID(key[1])) if key else None


def write_key(key: Sequence[str | int | bool], workspace_id: uuid.UUID, *, of: str) -> str:
    """The cursor after a row of a list that is in another order than that of time; `of` names the list."""
    return signing.dumps(list(key), salt=_name_salt(workspace_id, of), compress=False)


def read_key(text: str | None, workspace_id: uuid.UUID, *, of: str) -> list[Any] | None:
    """The key that such a cursor names, its parts as they were written; None for no cursor.

    Raises:
        CursorError: for one that `write_key` did not write for this list of this workspace.
    """
    if not text:
        return None
    try:
        key: list[Any] = signing.loads(text, salt=_name_salt(workspace_id, of))
    except signing.BadSignature as error:
        raise CursorError("the cursor is damaged or from elsewhere: start again without it") from error
    return key


def _name_salt(workspace_id: uuid.UUID, of: str) -> str:
    return f"cursor {of} {workspace_id}" if of else f"cursor {workspace_id}"


def write_sample(workspace_id: uuid.UUID) -> list[str]:
    """The entry of the sampled messages; it begins with the mark of the workspace, as all entries do."""
    return [f"{mark_workspace(workspace_id)}{SAMPLE}"]


def write_spans(workspace_id: uuid.UUID, since: datetime, until: datetime) -> list[str]:
    """The entries of the fewest spans that hold the time between two moments, these included."""
    first, last = (count_microseconds(moment) // 1_000_000 for moment in (since, until))
    return _write_spans(workspace_id, first, last)


def _write_spans(workspace_id: uuid.UUID, first: int, last: int) -> list[str]:
    mark = mark_workspace(workspace_id)
    return [f"{mark}{bits}:{number}" for bits, number in _cover(first, last)]


def _cover(first: int, last: int) -> Iterator[tuple[int, int]]:
    start, end = first >> SIZES[0], (last >> SIZES[0]) + 1
    for bits, wider in pairwise(SIZES):
        many = 1 << wider - bits
        # What does not fill a wider span at either side.
        while start < end and start % many:
            yield bits, start
            start += 1
        while start < end and end % many:
            end -= 1
            yield bits, end
        start, end = start // many, end // many
    yield from ((SIZES[-1], number) for number in range(start, end))


class IsWithin(Func):
    """Whether a message has one of these entries."""

    template = "(%(expressions)s)"
    arg_joiner = " && "
    output_field = BooleanField()

    def __init__(self, entries: list[str]) -> None:
        super().__init__(Spans(), Value(entries, output_field=ArrayField(TextField())))


Row = TypeVar("Row", bound=models.Model)

GLANCE_MS, AT_ONCE_MS, BY_TERMS_MS = 4, 60, 550
PATIENCE_MS: Final = 2500
HIDDEN_MS: Final = 700
MAX_TRIES: Final = 5
FIRST_WINDOW: Final = 512
_CANCELLED: Final = "57014"
# Helpers take longer to start than the index of words and terms takes to find a page.
_BY_INDEX: Final[Mapping[str, str]] = {
    "enable_indexscan": "off",
    "enable_bitmapscan": "on",
    "enable_seqscan": "off",
    "max_parallel_workers_per_gather": "0",
    # So that of hundreds of thousands the index can say which rows they are, and not only on which pages.
    "work_mem": "32MB",
}
_BY_WALKING: Final[Mapping[str, str]] = {"enable_indexscan": "on", "enable_bitmapscan": "off"}
# Of the sample, one in 512, so many in a span of 128 seconds tell of thousands.
CROWDED: Final = 8


class SlowQueryError(Exception):
    """A query of which nothing can be looked through in the time that anybody waits."""


@dataclass(frozen=True, slots=True)
class Found(Generic[Row]):
    """What a query means of a list, newest first.

    `searched_back_to` is the place to which the search came before its patience ended, and after which it can go on;
    None where it came to the end of the list, or found as many as were asked for.
    """

    rows: list[Row]
    searched_back_to: Place | None = None


def read_query(text: str) -> Group:
    """The tree of a query in all names that are registered.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    return parse(text, names=registry.names(), is_path=registry.is_name, literals=registry.list_literals())


def find_messages(
    *,
    workspace: Workspace,
    query: str,
    before: Place | None = None,
    limit: int = 50,
    zone: tzinfo | None = None,
    may_see_secrets: bool = False,
) -> list[Message]:
    """The messages of `search`, for whom it is enough to have them; see there."""
    return search(
        workspace=workspace, query=query, before=before, limit=limit, zone=zone, may_see_secrets=may_see_secrets
    ).rows


def search(
    *,
    workspace: Workspace,
    query: str,
    before: Place | None = None,
    limit: int = 50,
    zone: tzinfo | None = None,
    may_see_secrets: bool = False,
) -> Found[Message]:
    """Messages that a query means, each with its conversation and channel.

    Args:
        query: in the search language; empty for all.
        before: (order_time, id) of the last message seen.
        zone: whose days the days of the query are; UTC where none is given.
        may_see_secrets: whether the reader may see masked characters; without it `raw:` looks at the masked text.

    Raises:
        QueryError: for a query that cannot be understood.
        SlowQueryError: where nothing at all could be looked through.
    """
    meant = narrow(workspace=workspace, query=query, zone=zone, may_see_secrets=may_see_secrets)
    rows = _for_hits(go_on(meant, "order_time", before))
    every = Message.objects.filter(workspace=workspace)
    by_terms = is_of_terms(read_query(query))
    messages = fetch(rows[:limit], GLANCE_MS if by_terms else AT_ONCE_MS)
    if messages is None:
        messages = _search_by_terms(rows, every, before, limit, is_of_terms=by_terms)
    if messages is not None:
        return Found(messages)
    return search_back(rows, every, at="order_time", before=before, limit=limit)


def _for_hits(rows: models.QuerySet[Message]) -> models.QuerySet[Message]:
    """These messages, newest first, with what a list shows of each."""
    with_both = rows.select_related("conversation", "channel").defer("body", "words")
    return with_both.order_by("-order_time", "-id")


def narrow(*, workspace: Workspace, query: str, zone: tzinfo | None, may_see_secrets: bool) -> MessageQuerySet:
    """The shown messages that a query means.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    with days_of(zone):
        return _select(workspace, query, may_see_secrets=may_see_secrets).shown()


def _select(workspace: Workspace, query: str, *, may_see_secrets: bool) -> MessageQuerySet:
    meant = as_filter(read_query(query), workspace, may_see_secrets=may_see_secrets)
    return Message.objects.filter(workspace=workspace).filter(meant)


def _search_by_terms(
    rows: models.QuerySet[Message], every: MessageQuerySet, before: Place | None, limit: int, *, is_of_terms: bool
) -> list[Message] | None:
    """The messages by the index of words and terms, whatever the planner expects; None where that takes too long.

    Beside a policy PostgreSQL does not ask an index whose expression calls functions that are not leakproof, as that of
    the spans. What is of words and terms alone, which name their workspace each, is looked for without policies, for
    its ids; the rows of these ids are read with them.
    """
    newest = every.order_by("-order_time", "-id").values_list("workspace_id", "order_time").first()
    if newest is None:
        return []
    workspace_id, until = newest
    if before:
        until = before[0]
    else:
        # What is committed meanwhile is for the next page that begins at the newest.
        rows = rows.filter(order_time__lte=until)
    with across(rows.db) if is_of_terms else nullcontext():
        ids = fetch(_find_newest(rows, workspace_id, until, limit), BY_TERMS_MS, walks=False)
    return None if ids is None else list(_for_hits(every.shown().filter(IsAny("id", ids)))) if ids else []


def _find_newest(
    rows: models.QuerySet[Message], workspace_id: uuid.UUID, until: datetime, limit: int
) -> Iterator[uuid.UUID]:
    """The ids of the first of these rows, none of which is later than a moment: looked for from one of the sample to
    the next older one, between which hundreds are to be expected; then among all that are older."""
    deadline, missing = time.monotonic() + BY_TERMS_MS / 1000, limit
    ids = rows.values_list("pk", flat=True)
    sampled = rows.filter(IsWithin(write_sample(workspace_id))).values_list("order_time", flat=True)
    above, holds = _number(until) + 1, _BY_INDEX
    for number, group in groupby(map(_number, sampled)):
        # Where a single span holds thousands, the index would have to give them all.
        is_crowded = sum(1 for _ in group) >= CROWDED
        for part, settings in _part(ids, workspace_id, number, above, is_crowded=is_crowded):
            if settings is not holds:
                _set(holds := settings, rows.db)
            found = list(part[:missing])
            yield from found
            missing -= len(found)
            if not missing:
                return
        above = number
        if time.monotonic() > deadline:
            break
    if holds is not _BY_INDEX:
        _set(_BY_INDEX, rows.db)
    yield from (ids if above > _number(until) else ids.filter(order_time__lt=_start(above)))[:missing]


def _part(
    ids: models.QuerySet[Message, Any], workspace_id: uuid.UUID, first: int, above: int, *, is_crowded: bool
) -> Iterator[tuple[models.QuerySet[Message, Any], Mapping[str, str]]]:
    """What lies in the spans from the first to the last below another, newest first, and by which settings it is looked
    for: by the index, but for a first one that is crowded, in which the timeline is walked down."""
    lowest = first + is_crowded
    if lowest < above:
        spans = _write_spans(workspace_id, lowest << SIZES[0], (above << SIZES[0]) - 1)
        yield ids.filter(IsWithin(spans)), _BY_INDEX
    if is_crowded:
        inside = ids.filter(order_time__gte=_start(first))
        yield inside.filter(order_time__lt=_start(lowest)) if lowest < above else inside, _BY_WALKING


def _number(moment: datetime) -> int:
    """Which span of the smallest size a moment lies in."""
    return count_microseconds(moment) // 1_000_000 >> SIZES[0]


def _start(number: int) -> datetime:
    """When such a span begins."""
    return read_instant((number << SIZES[0]) * 1_000_000)


def search_back(
    rows: models.QuerySet[Row], every: models.QuerySet[Row], *, at: str, before: Place | None, limit: int
) -> Found[Row]:
    """The first of what a query means, looked for window by window back in time as long as there is patience.

    A window holds so many rows of the list, whatever the query means of them, so that each is looked through in about
    the same time; it widens while that goes well, and is made smaller where it does not.

    Args:
        rows: what the query means, newest first.
        every: the list that they are taken from.
        at: the name of the time that both are ordered by; ties go by the primary key.
        before: the place after which to look.

    Raises:
        SlowQueryError: where nothing at all could be looked through.
    """
    until = time.monotonic() + PATIENCE_MS / 1000
    found: list[Row] = []
    place, width = before, FIRST_WINDOW
    while (left_ms := int((until - time.monotonic()) * 1000)) > 0:
        places = go_on(every, at, place).order_by(f"-{at}", "-pk").values_list(at, "pk")
        border = fetch(places[width - 1 : width], left_ms)
        window = go_on(rows, at, place)
        if border:
            end, last = border[0]
            window = window.filter(models.Q(**{f"{at}__gte": end}))
            window = window.filter(models.Q(**{f"{at}__gt": end}) | models.Q(pk__gte=last))
        # A window that takes too long leaves time for a smaller one.
        more = None if border is None else fetch(window[: limit - len(found)], max(1, left_ms // 2))
        if more is None:
            width = max(1, width // 16)
            continue
        found += more
        if not border or len(found) >= limit:
            return Found(found)
        place, width = border[0], width * 4
    if place is None or place == before:
        raise SlowQueryError("the search takes too long: make it narrower, by time or by agent")
    return Found(found, place)


def fetch(rows: Iterable[Any], patience_ms: int, *, walks: bool = True) -> list[Any] | None:
    """The rows, or None where they take longer than this.

    Args:
        rows: what is asked for, by no statement before it is gone through.
        patience_ms: how long may be waited for each statement.
        walks: whether the table, or an index in its order, may be gone through until there are enough; without it
            PostgreSQL is left with what the indexes of words and terms find.
    """
    using = rows.db if isinstance(rows, models.QuerySet) else router.db_for_read(Message)
    outer = transaction.savepoint(using) if connections[using].in_atomic_block else None
    try:
        with transaction.atomic(using):
            _set({"statement_timeout": str(patience_ms), **({} if walks else _BY_INDEX)}, using)
            found = list(rows)
            # Nothing was written: to go back is the shortest way to the limit that held before.
            transaction.set_rollback(True, using)
            return found
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) != _CANCELLED:
            raise
        return None
    finally:
        if outer:
            _leave(outer, using)


def _set(settings: Mapping[str, str], using: str) -> None:
    """Let these settings hold for the rest of the transaction."""
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT set_config(name, value, TRUE) FROM unnest(%s::text[], %s::text[]) AS given (name, value)",
            [list(settings), list(settings.values())],
        )


def _leave(point: str, using: str) -> None:
    """Give up a savepoint. On a machine that stands still the limit may have cancelled the way back from inside it as
    well: that is then gone once more, from further out."""
    tries = 0
    while connections[using].needs_rollback and tries < MAX_TRIES:
        tries += 1
        transaction.set_rollback(False, using)
        try:
            transaction.savepoint_rollback(point, using)
        except OperationalError:
            transaction.set_rollback(True, using)
    if not connections[using].needs_rollback:
        transaction.savepoint_commit(point, using)


def count_hidden(*, workspace: Workspace, query: str, may_see_secrets: bool, limit: int = 1001) -> int | None:
    """How many messages that a query means are hidden because their deliveries were withdrawn, up to a limit; None
    where counting them takes too long.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    if not has_hidden(workspace=workspace):
        return 0
    rows = _select(workspace, query, may_see_secrets=may_see_secrets).hidden().values_list("pk")
    found = fetch(rows[:limit], HIDDEN_MS)
    return None if found is None else len(found)


@contextmanager
def days_of(zone: tzinfo | None) -> Iterator[None]:
    """Within this, the days of a query are days of that time zone; of UTC where none is given."""
    token = zone_of_query.set(zone or UTC)
    try:
        yield
    finally:
        zone_of_query.reset(token)


BESIDE_MS: Final = 700


@dataclass(frozen=True, slots=True)
class Beside:
    """The ids of the matches on both sides of a message, None where there is none.

    `is_known` is False where finding them takes too long.
    """

    newer: uuid.UUID | None
    older: uuid.UUID | None
    is_known: bool = True


def find_beside(
    *, workspace: Workspace, query: str, message: Message, zone: tzinfo | None = None, may_see_secrets: bool = False
) -> Beside:
    """The next newer and the next older message that a query means; the message itself need not be one.

    Args:
        query: in the search language.
        message: beside which.
        zone: whose days the days of the query are; UTC where none is given.
        may_see_secrets: as in `selectors.search`.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    rows = narrow(workspace=workspace, query=query, zone=zone, may_see_secrets=may_see_secrets)
    at = {"order_time": message.order_time}
    newer = rows.filter(Q(order_time__gt=message.order_time) | Q(**at, pk__gt=message.pk)).order_by("order_time", "id")
    older = rows.filter(Q(order_time__lt=message.order_time) | Q(**at, pk__lt=message.pk)).order_by(
        "-order_time", "-id"
    )
    sides = [
        side[:1].values_list("pk", Value(name, output_field=CharField()))
        for name, side in (("newer", newer), ("older", older))
    ]
    found = fetch(sides[0].union(sides[1], all=True), BESIDE_MS)
    if found is None:
        return Beside(None, None, is_known=False)
    ids = {name: pk for pk, name in found}
    return Beside(ids.get("newer"), ids.get("older"))


THREADS_MS: Final = 700

# As `find_traces_of` has it: an id that is random by its form is in the trace across channels, any other in that of its
# channel where there is one.
_OF_ITS_CHANNEL: Final = Trace.objects.filter(
    workspace=OuterRef("workspace"), key=OuterRef("trace_key"), channel=OuterRef("channel"), last_at__isnull=False
)
_OF_TRACE: Final = Q(trace_key=OuterRef("key")) & (
    Q(channel=OuterRef("channel")) & ~Q(trace_basis=RANDOM)
    | Q(IsNull(OuterRef("channel"), True)) & (Q(trace_basis=RANDOM) | ~Q(Exists(_OF_ITS_CHANNEL)))
)


def mean_conversations(*, workspace: Workspace, query: str, may_see_secrets: bool) -> Exists | None:
    """The condition on conversations that a query is; None for an empty one.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    return mean(Q(conversation=OuterRef("pk")), workspace=workspace, query=query, may_see_secrets=may_see_secrets)


def mean_traces(*, workspace: Workspace, query: str, may_see_secrets: bool) -> Exists | None:
    """The condition on traces that a query is; None for an empty one.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    return mean(_OF_TRACE, workspace=workspace, query=query, may_see_secrets=may_see_secrets)


def mean(own: Q, *, workspace: Workspace, query: str, may_see_secrets: bool) -> Exists | None:
    """The condition that one of the shown messages of a row is found; None for an empty query.

    Args:
        own: says of a message whether it is the row's, to which it refers by `OuterRef`.
        query: in the search language.
        may_see_secrets: as in `selectors.search`.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    if not query.strip():
        return None
    rows = narrow(workspace=workspace, query=query, zone=None, may_see_secrets=may_see_secrets)
    return Exists(rows.filter(own).order_by())


def find_meant(
    rows: models.QuerySet[Row], meant: Exists | None, *, at: str, before: Place | None, limit: int
) -> Found[Row]:
    """The first of these rows that a query means, newest first.

    Args:
        rows: in the order of `at` and the primary key.
        meant: the condition that the query is; None for all of them.
        at: the name of the time that they are ordered by.
        before: the place after which to look.

    Raises:
        SlowQueryError: where nothing at all could be looked through.
    """
    every = go_on(rows, at, before)
    if meant is None:
        return Found(list(every[:limit]))
    wanted = every.filter(meant)
    found = fetch(wanted[:limit], THREADS_MS)
    return Found(found) if found is not None else search_back(wanted, every, at=at, before=before, limit=limit)
