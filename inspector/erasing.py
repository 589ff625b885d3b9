"""Erasing: what is to go, counted beforehand and asked for with a reason, or older than it is kept; and doing it, with
all that was made of it.

A piece is one transaction: tombstones are written, the records are weighed as withdrawn ones are, and their bytes,
messages, search terms, earlier English, comments, opened texts and the exports that hold them go. Neighbours may have
quoted what went: their conversations are resolved and examined anew by the jobs that follow a withdrawal. When these
have come to rest, the rest goes (`_forget_rest`): earlier wordings there, findings that no longer hold, names without
messages, and what deliveries without records said of themselves. Only then is an erasure finished.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import connection, transaction
from django.db.models import Exists, Max, Min, OuterRef, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.utils import timezone

from inspector.accounts.models import Channel, Membership
from inspector.audit.models import Comment, CommentTurn, Finding, Suppression
from inspector.database import make_storable
from inspector.exports.entries import read_entries
from inspector.exports.making import drop_file
from inspector.exports.models import UNDER_WAY, Block, Export
from inspector.intake import jobs
from inspector.intake.models import Chunk, DeadLetter, Delivery, Job, Record, Scaffold, Sighting
from inspector.intake.sealed import SQL_LENGTH, SQL_SHA256
from inspector.intake.staging import NotStagedError, discard
from inspector.intake.withdrawals import (
    Weighing,
    check_reason,
    find_forsaken,
    find_withdrawal,
    hold_channel,
    weigh_records,
    withdraw_delivery,
)
from inspector.keyring.models import PeriodKey
from inspector.keyring.periods import destroy_key, find_period_key, name_period
from inspector.ledger.kinds import BY_NAME, digest_content, first_id
from inspector.retention.models import Erasure, RetentionRule, Tombstone
from inspector.retention.services import find_rules, is_erased, is_held
from inspector.threads.models import (
    Agent,
    Conversation,
    Exchange,
    MaskedWire,
    Message,
    OpenedMessage,
    OpeningTrial,
    Trace,
    Wording,
)
from inspector.threads.models.agents import make_agent_id
from inspector.threads.resolving.arrivals import follow_weighing
from inspector.trail.services import Thing, record_deed

# A preview counts up to here.
MAX_COUNTED: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is to be erased: a record or delivery by its id, all messages that a person sent, or a period.

    Args:
        name: of a person, as messages spell it; of a period its month, as 2026-10.
        is_both: whether what others sent to that person goes too.
    """

    kind: str
    subject: uuid.UUID | None = None
    name: str = ""
    is_both: bool = False

    def __post_init__(self) -> None:
        """Spell the name as messages store it, so that any text can be asked for."""
        object.__setattr__(self, "name", make_storable(self.name))


@dataclass(frozen=True, slots=True)
class Preview:
    """What erasing means now, counted up to `MAX_COUNTED`: `others` are messages of others in the same records."""

    records: int
    messages: int
    others: int
    first: datetime | None
    last: datetime | None
    is_held: bool

    def __str__(self) -> str:
        times = f", from {self.first:%Y-%m-%d} to {self.last:%Y-%m-%d}" if self.first and self.last else ""
        others = f", {self.others:,} of them by others" if self.others else ""
        held = "; a legal hold stops that" if self.is_held else ""
        return f"{self.messages:,} messages in {self.records:,} records{times}{others}{held}"


def preview(*, workspace_id: uuid.UUID, target: Target) -> Preview:
    """How many messages would be erased, and how old they are.

    Raises:
        ValidationError: where there is nothing of the kind.
    """
    channel = _find_channel(workspace_id, target)
    if target.kind == Erasure.Kind.PERSON:
        records = list(list_records_of(workspace_id, target.name, is_both=target.is_both)[:MAX_COUNTED])
    elif target.kind == Erasure.Kind.PERIOD:
        rows = Record.objects.filter(sealed_with=find_period_key(workspace_id=workspace_id, period=target.name))
        records = list(rows.order_by("pk").values_list("pk", flat=True)[:MAX_COUNTED])
    elif target.kind == Erasure.Kind.DELIVERY:
        seen = Sighting.objects.filter(delivery=target.subject)
        elsewhere = Sighting.objects.filter(record=OuterRef("record")).exclude(delivery=target.subject)
        records = list(seen.filter(~Exists(elsewhere)).values_list("record", flat=True)[:MAX_COUNTED])
    else:
        records = [uuid.UUID(str(target.subject))]
    kept = Record.objects.filter(pk__in=records).filter(~is_erased("record", OuterRef("pk")))
    times = kept.aggregate(first=Min("order_time"), last=Max("order_time"))
    messages = Message.objects.filter(record__in=records)
    count, others = messages.count(), 0
    if target.kind == Erasure.Kind.PERSON:
        others = messages.exclude(sender=target.name).count()
    held = is_held(workspace_id=workspace_id, channel_id=channel)
    return Preview(kept.count(), count, others, times["first"], times["last"], held)


def count_expired(*, workspace_id: uuid.UUID, channel: Channel | None, days: int) -> tuple[int, datetime | None]:
    """How many records a rule would erase now, counted up to `MAX_COUNTED`, and when the first of them came."""
    rows = Record.objects.filter(workspace=workspace_id, pk__lt=first_id(timezone.now() - timedelta(days=days)))
    rows = rows.filter(~is_erased("record", OuterRef("pk")))
    ids = (rows.filter(channel=channel) if channel else rows).order_by("pk").values_list("pk", flat=True)
    found = list(ids[:MAX_COUNTED])
    return len(found), Record.objects.get(pk=found[0]).created_at if found else None


def find_erased(*, delivery: Delivery) -> tuple[int, Erasure] | None:
    """How many of a delivery's records were erased, counted up to `MAX_COUNTED`, and one erasure of them."""
    rows = Tombstone.objects.filter(
        kind="record", subject__in=Sighting.objects.filter(delivery=delivery).values("record")
    )
    first = rows.select_related("erasure__by").first()
    return (rows[:MAX_COUNTED].count(), first.erasure) if first else None


def _find_channel(workspace_id: uuid.UUID, target: Target) -> uuid.UUID | None:
    """The channel of what is meant; None of a person or a period, whose messages may be in any."""
    if target.kind == Erasure.Kind.PERIOD:
        return None
    if target.kind == Erasure.Kind.PERSON:
        if not Agent.objects.filter(workspace=workspace_id, name=target.name).exists():
            raise ValidationError("no message here names this agent: write the name as the messages spell it")
        return None
    models: dict[str, Any] = {Erasure.Kind.RECORD: Record, Erasure.Kind.DELIVERY: Delivery}
    if target.kind not in models:
        raise ValidationError("what is erased is a record, a delivery, a person or a period")
    found = models[target.kind].objects.filter(pk=target.subject, workspace_id=workspace_id)
    channel: uuid.UUID | None = found.values_list("channel", flat=True).first()
    if channel is None:
        raise ValidationError(f"there is no such {target.kind} in this workspace", code="missing")
    return channel


@transaction.atomic
def ask_to_erase(*, membership: Membership, target: Target, reason: str) -> Erasure:
    """Have something erased for good, by a job that follows; uploads that wait to be imported are discarded at once.

    Of a period the key is destroyed at once: what the job then removes cannot be read any more.

    Raises:
        PermissionDenied: for anybody but an owner.
        ValidationError: without a reason, where there is nothing of the kind, under a legal hold, or for a delivery
            that is still being taken in.
    """
    if not membership.is_owner:
        raise PermissionDenied("only an owner of this workspace erases messages")
    workspace_id, reason = membership.workspace_id, check_reason(reason)
    channel = _find_channel(workspace_id, target)
    if is_held(workspace_id=workspace_id, channel_id=channel):
        raise ValidationError("a legal hold stops erasing: lift it first")
    if target.kind == Erasure.Kind.DELIVERY:
        delivery = Delivery.objects.get(pk=uuid.UUID(str(target.subject)))
        if find_withdrawal(delivery=delivery) is None:
            withdraw_delivery(membership=membership, delivery=delivery, reason=reason)
    for staged in Delivery.objects.filter(workspace=workspace_id, state=Delivery.State.STAGED):
        try:
            discard(delivery=staged)
        except NotStagedError as error:
            raise ValidationError("an upload is being imported just now: try again when it is read") from error
    key = None
    if target.kind == Erasure.Kind.PERIOD:
        key = find_period_key(workspace_id=workspace_id, period=target.name)
        destroy_key(key)
    given = {"name": target.name, "is_both": target.is_both} if target.kind == Erasure.Kind.PERSON else {}
    erasure = Erasure(
        workspace_id=workspace_id,
        kind=target.kind,
        channel_id=channel,
        target=key.pk if key else target.subject,
        by=membership.user,
    )
    return _begin(erasure, reason, given, by=membership)


def _begin(erasure: Erasure, reason: str, given: dict[str, Any], *, by: Membership | None = None) -> Erasure:
    """A person's name stands in the job alone, which forgets it at the end."""
    erasure.reason = reason
    erasure.save(force_insert=True)
    jobs.ask(kind=Job.Kind.ERASE, subjects=[erasure.pk], workspace_id=erasure.workspace_id)
    Job.objects.filter(kind=Job.Kind.ERASE, subject=erasure.pk).update(checkpoint=given)
    jobs.wake_workers()
    record_act("erasure.asked", erasure, by=by, reason=reason)
    return erasure


def record_act(code: str, erasure: Erasure, *, by: Membership | None = None, **details: Any) -> None:
    on = Thing("erasure", erasure.pk, erasure.get_kind_display().lower())
    record_deed(code, workspace_id=erasure.workspace_id, on=on, by=by, about=[erasure.target or erasure.pk],
                details=details)  # fmt: skip


def erase_expired() -> int:
    """Begin to erase what is older than its channel keeps it; how many erasures that were. At most one a day each."""
    begun = 0
    today = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    for channel in Channel.objects.filter(Exists(RetentionRule.objects.filter(workspace=OuterRef("workspace")))):
        rules = find_rules(workspace_id=channel.workspace_id)
        rule = rules.get(channel.pk) or rules.get(None)
        if rule is None or rule.days is None or is_held(workspace_id=channel.workspace_id, channel_id=channel.pk):
            continue
        until = today - timedelta(days=rule.days)
        done = Erasure.objects.filter(kind=Erasure.Kind.AGE, channel=channel)
        if done.filter(Q(finished_at=None) | Q(until__gte=until)).exists():
            continue
        old = Record.objects.filter(workspace=channel.workspace_id, channel=channel, pk__lt=first_id(until))
        since = done.aggregate(last=Max("until"))["last"]
        if not old.filter(pk__gte=first_id(since) if since else uuid.UUID(int=0)).exists():
            continue
        with transaction.atomic():
            reason = f"kept for {rule.days} days, as {rule.by.get_username()} set on {rule.at:%Y-%m-%d}"
            erasure = Erasure(workspace_id=channel.workspace_id, kind=Erasure.Kind.AGE, channel=channel, until=until)
            _begin(erasure, reason, {"after": str(first_id(since))} if since else {})
        begun += 1
    return begun


def list_records_of(workspace_id: uuid.UUID, name: str, *, is_both: bool) -> QuerySet[Any]:
    """The records with messages that an agent sent, or also received, by the conversations that it is known from."""
    agents = Agent.objects.filter(workspace=workspace_id, name=name).values("pk")
    places = Exchange.objects.filter(Q(sender__in=agents) | Q(receiver__in=agents)).values("conversation")
    whose = Q(sender=name) | Q(receivers__contains=[name]) if is_both else Q(sender=name)
    rows = Message.objects.filter(whose, workspace=workspace_id, conversation__in=places)
    return rows.order_by("record").values_list("record", flat=True).distinct()


# So many records go in one transaction, and the rest of so many conversations.
BATCH_RECORDS, BATCH_CONVERSATIONS = 200, 100
SLICE_SECONDS: Final = 5.0
# How long an erasure waits for others' work, and where a hold stops it.
PAUSE_SECONDS, HELD_SECONDS = 1.0, 600.0
GONE: Final = "Its text was erased."
_ACTIVE: Final = (Job.State.QUEUED, Job.State.RUNNING)
_BLANK: Final = {"text": GONE, "cites": "", "span": "", "related": "", "sender": ""}


def erase(job: Job) -> None:
    """A slice of an erasure: pieces of records, and at their end the rest."""
    erasure = Erasure.objects.select_related("channel").get(pk=job.subject)
    until = time.monotonic() + SLICE_SECONDS
    while time.monotonic() < until:
        if is_held(workspace_id=erasure.workspace_id, channel_id=erasure.channel_id):
            jobs.release(job, delay_seconds=HELD_SECONDS)
            return
        records, after = _find_batch(erasure, job.checkpoint)
        if after is None:
            state = job.checkpoint if "rest" in job.checkpoint else {"rest": None}
            if not _forget_rest(job, erasure, state):
                return
        elif not _erase_piece(job, erasure, records, {**job.checkpoint, "after": after}):
            jobs.release(job, delay_seconds=PAUSE_SECONDS)
            return
    jobs.release(job)


def _find_batch(erasure: Erasure, state: dict[str, Any]) -> tuple[Sequence[uuid.UUID], Any]:
    """The next records, and where to go on; None for where once there are no more."""
    after = state.get("after")
    if "rest" in state:
        return (), None
    if erasure.kind == Erasure.Kind.DELIVERY:
        there = Sighting.objects.filter(delivery=erasure.target, index__gt=-1 if after is None else after)
        seen = list(there.order_by("index").values_list("index", "record")[:BATCH_RECORDS])
        return sorted(find_forsaken(record_ids=[pk for _, pk in seen])), seen[-1][0] if seen else None
    if erasure.kind == Erasure.Kind.RECORD:
        return (() if after else [uuid.UUID(str(erasure.target))]), None if after else True
    found: QuerySet[Any]
    if erasure.kind == Erasure.Kind.PERSON:
        found = list_records_of(erasure.workspace_id, state["name"], is_both=state["is_both"])
        found = found.filter(record__gt=after) if after else found
    else:
        rows = Record.objects.filter(workspace=erasure.workspace_id, pk__gt=after or uuid.UUID(int=0))
        if erasure.kind == Erasure.Kind.PERIOD:
            rows = rows.filter(sealed_with=erasure.target)
        else:
            rows = rows.filter(channel=erasure.channel, pk__lt=first_id(erasure.until or erasure.at))
        found = rows.order_by("pk").values_list("pk", flat=True)
    ids = list(found[:BATCH_RECORDS])
    return ids, str(ids[-1]) if ids else None


@transaction.atomic
def _erase_piece(job: Job, erasure: Erasure, ids: Sequence[uuid.UUID], state: dict[str, Any]) -> bool:
    """Erase these records; False while one of them is still to be read."""
    channels = set(Record.objects.filter(pk__in=ids).values_list("channel", flat=True))
    for channel in sorted(channels):
        hold_channel(channel, is_shared=False)
    rows = Record.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("identity")
    ids = list(rows.filter(~is_erased("record", OuterRef("pk"))).values_list("pk", flat=True))
    seen = Sighting.objects.filter(record__in=ids)
    deliveries = set(seen.values_list("delivery", flat=True))
    reading = (Job.Kind.FRAME, Job.Kind.INGEST)
    if Job.objects.filter(kind__in=reading, subject__in=deliveries, state__in=_ACTIVE).exists():
        return False
    _bury_records(erasure, ids)
    weigh_records(record_ids=ids, workspace_id=erasure.workspace_id)
    jobs.checkpoint(job, state)
    follow_weighing(weighing=Weighing(turned=sorted(ids), moved=()), workspace_id=erasure.workspace_id)
    _forget_derived(erasure, ids)
    # Framing keeps what it had begun to read, and a failure may quote what it failed at.
    Job.objects.filter(subject__in=deliveries, kind__in=reading).exclude(state__in=_ACTIVE).update(
        checkpoint={}, failure=""
    )
    with connection.cursor() as cursor:
        cursor.execute(
            """
            DELETE FROM intake_scaffold AS piece USING intake_sighting AS seen
             WHERE seen.record_id = ANY(%s) AND piece.delivery_id = seen.delivery_id
               AND piece.offset < seen.offset + seen.length
               AND piece.offset + {} > seen.offset
            """.format(SQL_LENGTH.format("piece", "data")),  # noqa: S608
            [ids],
        )
        cursor.execute("SELECT erase_buried(%s)", [ids])
    seen.update(envelope="", reason="")
    return True


def _bury_records(erasure: Erasure, ids: Sequence[uuid.UUID]) -> None:
    """A tombstone for each record and each comment on it, with what these were about."""
    about: dict[uuid.UUID, set[uuid.UUID]] = {pk: set() for pk in ids}
    messages = Message.objects.filter(record__in=ids).values_list(
        "record", "pk", "conversation", "channel", "sender", "receivers", "trace_key"
    )
    keys: dict[bytes, set[uuid.UUID]] = {}
    for record, pk, conversation, channel, sender, receivers, key in messages:
        agents = (make_agent_id(erasure.workspace_id, channel, name) for name in (sender, *receivers) if name)
        about[record] |= {pk, conversation, *agents}
        if key is not None:
            keys.setdefault(bytes(key), set()).add(record)
    for trace, key in Trace.objects.filter(workspace=erasure.workspace_id, key__in=keys).values_list("pk", "key"):
        for record in keys[bytes(key)]:
            about[record].add(trace)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, {}, {} FROM intake_record AS record WHERE id = ANY(%s)".format(  # noqa: S608
                SQL_SHA256.format("record"), SQL_LENGTH.format("record", "source")
            ),
            [list(ids)],
        )
        found = cursor.fetchall()
    _bury(erasure, "record", [(pk, digest, size, sorted(about[pk])) for pk, digest, size in found])
    for kind, rows in (
        ("comment", Comment.objects.filter(record__in=ids)),
        ("comment-turn", CommentTurn.objects.filter(comment__record__in=ids)),
    ):
        leaves = [leaf for _, leaf in BY_NAME[kind].read(rows)]
        sizes = [len(str(leaf.content["words"]).encode()) for leaf in leaves]
        _bury(erasure, kind, [(leaf.subject, digest_content(leaf), size, [])
                              for leaf, size in zip(leaves, sizes, strict=True)])  # fmt: skip


def _bury(erasure: Erasure, kind: str, rows: Collection[tuple[uuid.UUID, bytes, int, list[uuid.UUID]]]) -> None:
    Tombstone.objects.bulk_create(
        [
            Tombstone(workspace_id=erasure.workspace_id, erasure=erasure, kind=kind, subject=pk, sha256=digest,
                      size_bytes=size, about=about)
            for pk, digest, size, about in rows
        ]
    )  # fmt: skip


def _forget_derived(erasure: Erasure, ids: Sequence[uuid.UUID]) -> None:
    """Delete what was made of these records alone."""
    messages = Message.objects.filter(workspace=erasure.workspace_id, record__in=ids)
    for model in (OpenedMessage, OpeningTrial):
        model._default_manager.filter(message__in=messages.values("pk")).delete()
    for derived in (Wording, MaskedWire, DeadLetter):
        derived._default_manager.filter(record__in=ids).delete()
    _drop_exports(erasure, set(messages.values_list("conversation", flat=True)))
    messages.delete()
    Comment.objects.filter(record__in=ids).update(quoted=b"", words="")
    Finding.objects.filter(record__in=ids).update(**_BLANK)


def _drop_exports(erasure: Erasure, conversations: Collection[uuid.UUID]) -> None:
    """Remove the files that hold a message of these conversations: what is left there may quote what was erased."""
    with_file = Export.objects.filter(workspace=erasure.workspace_id, state__in=(Export.State.DONE, *UNDER_WAY))
    for export in with_file.order_by("pk").select_for_update(no_key=True):
        blocks = Block.objects.filter(export=export).values_list("entries", flat=True)
        # What earlier versions made has no set any more: nobody knows what it holds.
        is_meant = export.state == Export.State.DONE and not blocks.exists()
        for entries in blocks.iterator(chunk_size=10):
            records = [record for record, _ in read_entries(bytes(entries))]
            is_meant |= Message.objects.filter(record__in=records, conversation__in=conversations).exists()
        if is_meant:
            drop_file(export)
            Export.objects.filter(pk=export.pk).update(state=Export.State.REMOVED, query="", title="", filters={})


def _select_about(erasure: Erasure) -> RawSQL:
    return RawSQL("SELECT unnest(about) FROM retention_tombstone WHERE erasure_id = %s", [erasure.pk])


def _forget_rest(job: Job, erasure: Erasure, state: dict[str, Any]) -> bool:
    """What some conversations still say of what was erased; whether there are more. Ends the job after the last."""
    reached = Conversation.objects.filter(pk__in=_select_about(erasure)).order_by("pk")
    some = list(reached.filter(pk__gt=state["rest"]) if state["rest"] else reached)[:BATCH_CONVERSATIONS]
    traces = Trace.objects.filter(pk__in=_select_about(erasure))
    ids = [each.pk for each in some]
    works = Q(kind__in=[Job.Kind.RESOLVE, Job.Kind.EXAMINE], subject__in=ids)
    if not some:
        works |= Q(kind=Job.Kind.TRACE, subject__in=traces.values("pk"))
    if any(not each.is_settled for each in some) or Job.objects.filter(works, state__in=_ACTIVE).exists():
        jobs.checkpoint(job, state)
        jobs.release(job, delay_seconds=PAUSE_SECONDS)
        return False
    with transaction.atomic():
        told = Message.objects.filter(conversation__in=ids)
        Wording.objects.filter(record__in=told.values("record")).delete()
        _drop_exports(erasure, ids)
        Finding.objects.filter(conversation__in=ids, holds=False).update(**_BLANK)
        empty = Conversation.objects.filter(pk__in=ids).filter(
            ~Exists(Message.objects.filter(conversation=OuterRef("pk")))
        )
        empty.update(native_id="", title="", subject="", agents=[], tally="")
        if some:
            jobs.checkpoint(job, {"rest": str(ids[-1])})
            return True
        _forget_names(erasure, traces)
        _bury_deliveries(erasure)
        if not is_held(workspace_id=erasure.workspace_id, channel_id=None):
            for key in _list_spent_keys(erasure.workspace_id):
                destroy_key(key)
        # With the checkpoint a person's name is gone too.
        jobs.checkpoint(job, {})
        jobs.finish(job)
        Erasure.objects.filter(pk=erasure.pk).update(finished_at=timezone.now())
        count = Tombstone.objects.filter(erasure=erasure, kind="record").count()
        record_act("erasure.finished", erasure, records=count)
    return False


def _list_spent_keys(workspace_id: uuid.UUID) -> list[PeriodKey]:
    """The keys of months that are over which seal nothing any more."""
    keys = PeriodKey.objects.filter(workspace=workspace_id, destroyed_at=None, period__lt=name_period())
    # Nearly every key seals a record still, which an index tells.
    sealed = (Record, Chunk, Scaffold)
    return [key for key in keys if not any(each._default_manager.filter(sealed_with=key).exists() for each in sealed)]


def _forget_names(erasure: Erasure, traces: QuerySet[Trace]) -> None:
    """Traces and agents that no message names any more."""
    carried = Message.objects.filter(workspace=erasure.workspace_id, trace_key=OuterRef("key"))
    traces.filter(~Exists(carried)).update(native_id="", subject="", agents=[])
    said = Exchange.objects.filter(Q(sender=OuterRef("pk")) | Q(receiver=OuterRef("pk")))
    nobody = list(Agent.objects.filter(pk__in=_select_about(erasure)).filter(~Exists(said)))
    Suppression.objects.filter(workspace=erasure.workspace_id, sender__in=[each.name for each in nobody]).delete()
    Agent.objects.filter(pk__in=[each.pk for each in nobody]).delete()


def _bury_deliveries(erasure: Erasure) -> None:
    """What deliveries say of themselves of which every record was erased, or which was itself to be erased."""
    records = Tombstone.objects.filter(erasure=erasure, kind="record").values("subject")
    left = Sighting.objects.filter(delivery=OuterRef("pk")).filter(~is_erased("record", OuterRef("record")))
    seen = Q(pk__in=Sighting.objects.filter(record__in=records).values("delivery")) & ~Exists(left)
    own = Q(pk=erasure.target) if erasure.kind == Erasure.Kind.DELIVERY else Q(pk__in=[])
    rows = Delivery.objects.filter(seen | own).filter(~is_erased("delivery", OuterRef("pk")))
    sizes = dict(rows.values_list("pk", "size_bytes"))
    leaves = [leaf for _, leaf in BY_NAME["delivery"].read(BY_NAME["delivery"].find(list(sizes)))]
    _bury(erasure, "delivery", [(leaf.subject, digest_content(leaf), sizes[leaf.subject], []) for leaf in leaves])
    for model in (Scaffold, Chunk):
        model._default_manager.filter(delivery__in=sizes).delete()
    Delivery.objects.filter(pk__in=sizes).update(
        file_name="", remote_address="", options={}, warnings={}, failure="", idempotency_key=None, source_digest=None
    )
