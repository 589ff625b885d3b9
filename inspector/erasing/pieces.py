"""Erasing: what somebody asked to be erased, or what is older than it is kept, goes with all that was made of it.

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
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.utils import timezone

from inspector.audit.models import Comment, CommentTurn, Finding, Suppression
from inspector.exports.listing import read_entries
from inspector.exports.making import drop_file
from inspector.exports.models import UNDER_WAY, Block, Export
from inspector.intake import jobs
from inspector.intake.models import Chunk, DeadLetter, Delivery, Job, Record, Scaffold, Sighting
from inspector.intake.sealed import SQL_LENGTH, SQL_SHA256
from inspector.intake.withdrawals import (
    Weighing,
    find_forsaken,
    hold_channel,
    weigh_records,
)
from inspector.keyring.models import PeriodKey
from inspector.keyring.periods import destroy_key, name_period
from inspector.ledger.kinds import BY_NAME, digest_content, first_id
from inspector.retention.models import Erasure, Tombstone
from inspector.retention.selectors import is_erased, is_held
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
)  # fmt: skip
from inspector.threads.models.agents import make_agent_id
from inspector.threads.resolving.arrivals import follow_weighing

from .requests import list_records_of, record_act

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
    works = Q(kind__in=[Job.Kind.SETTLE, Job.Kind.EXAMINE], subject__in=ids)
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
