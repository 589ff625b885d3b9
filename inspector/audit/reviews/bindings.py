"""Bindings: what exactly a verdict was given on, as digests, in what that differs by now, and whether it holds.

The digest of a conversation is SHA-256 over its shown messages in the order of their order keys. Of each: SHA-256 of
the raw bytes of its record; the decoder that read it, as `dialect version`; SHA-256 of its sentence in English; and the
digest of everything that is told of it beside. The same four are kept for each message with its record and part, so
that a later comparison can say which messages differ, and in which of the four.

A conversation is read in one statement. Pages of lists never do: the worker compares whenever a conversation has been
settled, and they read what it found.

While a conversation waits for two who must not know of each other, what anybody says of it is told to nobody but who
said it: neither the verdict nor that there is one, nor who gave it. Everything that shows verdicts reads them here, or
in the two conditions of `searchable`, which say the same; and of the audit log is left out what would tell as much.
"""

from __future__ import annotations

import hashlib
import json
import struct
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from django.db import connection
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from inspector.accounts.models import Membership, Workspace
from inspector.database import IsAny
from inspector.intake.sealed import SQL_SHA256
from inspector.threads.models import Conversation, Message
from inspector.trail.models import Deed
from inspector.trail.services import Wanted, filter_deeds

from ..models.reviews import BLIND_STATES, Binding, Review, ReviewItem

# Of what differs in one way no more messages are named; the count says how many there are.
MAX_NAMED: Final = 20
# What can differ of a message, and what can become of it.
KINDS: Final = ("bytes", "decoder", "english", "beside", "came", "gone", "order")

_LINE: Final = struct.Struct(">16sI32sH32s32s")
_READ: Final = """
    SELECT message.record_id, message.part, {},
           message.dialect || ' ' || split_part(message.told_in, ' ', 1),
           sha256(convert_to(message.english, 'UTF8')), message.told_digest
      FROM threads_message message JOIN intake_record record ON record.id = message.record_id
     WHERE message.conversation_id = %s
       AND NOT EXISTS (SELECT 1 FROM intake_hiddenrecord hidden WHERE hidden.record_id = message.record_id)
     ORDER BY message.order_time, message.order_source, message.order_index, record.identity, message.part
""".format(SQL_SHA256.format("record"))  # noqa: S608

Place = tuple[uuid.UUID, int]


class Line(NamedTuple):
    """What a verdict is bound to of one message."""

    record: uuid.UUID
    part: int
    raw: bytes
    decoder: str
    english: bytes
    told: bytes


@dataclass(frozen=True, slots=True)
class Change:
    """That messages differ in one of `KINDS`: how many, and the first of them.

    `decoders` are (then, now) of what is read by another decoder, each as `dialect version`, once.
    """

    count: int
    places: Sequence[Place] = field(default=())
    decoders: Sequence[tuple[str, str]] = field(default=())


def read_lines(*, conversation_id: uuid.UUID) -> list[Line]:
    """The shown messages of a conversation in the order of their order keys, in one statement."""
    with connection.cursor() as cursor:
        cursor.execute(_READ, [conversation_id])
        return [
            Line(record, part, bytes(raw), decoder, bytes(english), bytes(told or bytes(32)))
            for record, part, raw, decoder, english, told in cursor.fetchall()
        ]


def digest_lines(lines: Sequence[Line]) -> bytes:
    """SHA-256 over what a verdict is bound to; the module says of what."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.raw + line.decoder.encode() + b"\n" + line.english + line.told)
    return digest.digest()


def bind(*, conversation: Conversation) -> Binding:
    """What the conversation is now, to bind a verdict to; call in a transaction that holds it.

    Two who saw the same share a row. That it is as it was is known from here on.
    """
    lines = read_lines(conversation_id=conversation.pk)
    bound, _ = Binding.objects.update_or_create(
        conversation=conversation,
        digest=digest_lines(lines),
        defaults={
            "checked_digest": bytes(conversation.settled_digest or b""),
            "checked_at": timezone.now(),
            "changes": "",
        },
        create_defaults={
            "workspace_id": conversation.workspace_id,
            "messages": len(lines),
            "manifest": _pack(lines),
            "checked_digest": bytes(conversation.settled_digest or b""),
        },
    )
    return bound


def check(*, conversations: Collection[uuid.UUID]) -> None:
    """Compare what verdicts on these conversations are bound to with what is there, and keep what differs.

    Call in the transaction that holds them. Those that nobody judged, or that stand as they were compared last, cost
    one statement together.
    """
    rows = Binding.objects.filter(conversation__in=conversations).defer("manifest").select_related("conversation")
    due = [row for row in rows if bytes(row.checked_digest) != bytes(row.conversation.settled_digest or b"")]
    for conversation_id in {row.conversation_id for row in due}:
        lines = read_lines(conversation_id=conversation_id)
        for row in due:
            if row.conversation_id == conversation_id:
                row.changes = write_changes(compare(row, lines))
                row.checked_digest = bytes(row.conversation.settled_digest or b"")
                row.checked_at = timezone.now()
                row.save(update_fields=["changes", "checked_digest", "checked_at"])


def compare(bound: Binding, lines: Sequence[Line]) -> dict[str, Change]:
    """In what the messages of a conversation differ from what a verdict was bound to, by `KINDS`; empty: in nothing.

    Args:
        bound: what the verdict was bound to.
        lines: the messages now.
    """
    if digest_lines(lines) == bytes(bound.digest):
        return {}
    then = {(line.record, line.part): line for line in _unpack(bytes(bound.manifest))}
    found: dict[str, list[Place]] = {}
    decoders: dict[tuple[str, str], None] = {}
    for line in lines:
        place = (line.record, line.part)
        old = then.pop(place, None)
        for kind in ["came"] if old is None else _find_differences(old, line):
            found.setdefault(kind, []).append(place)
        if old is not None and old.decoder != line.decoder:
            decoders[old.decoder, line.decoder] = None
    if then:
        found["gone"] = list(then)
    # Where no message differs, they stand in another order.
    if not found:
        found["order"] = []
    named = sorted(decoders)[:MAX_NAMED]
    return {
        kind: Change(len(places), places[:MAX_NAMED], named if kind == "decoder" else ())
        for kind, places in found.items()
    }


def _find_differences(old: Line, new: Line) -> Iterator[str]:
    if old.raw != new.raw:
        yield "bytes"
    if old.decoder != new.decoder:
        yield "decoder"
    if old.english != new.english:
        yield "english"
    # Another decoder always tells otherwise, if only in saying which it is.
    elif old.decoder == new.decoder and old.told != new.told:
        yield "beside"


def write_changes(changes: Mapping[str, Change]) -> str:
    """What differs as it is kept: JSON text, empty where nothing does."""
    kept = {
        kind: [change.count, [[record.hex, part] for record, part in change.places], *filter(None, [change.decoders])]
        for kind, change in changes.items()
    }
    return json.dumps(kept) if kept else ""


def read_changes(text: str) -> dict[str, Change]:
    """What differs, from how it is kept; what was kept before the decoders were named says nothing of them."""
    return {
        kind: Change(
            count,
            [(uuid.UUID(record), part) for record, part in places],
            [(then, now) for each in decoders for then, now in each],
        )
        for kind, (count, places, *decoders) in (json.loads(text) if text else {}).items()
    }


def _pack(lines: Sequence[Line]) -> bytes:
    """The decoders as a line of JSON, then each message in a fixed number of bytes."""
    decoders = list(dict.fromkeys(line.decoder for line in lines))
    numbers = {decoder: number for number, decoder in enumerate(decoders)}
    packed = [
        _LINE.pack(line.record.bytes, line.part, line.raw, numbers[line.decoder], line.english, line.told)
        for line in lines
    ]
    return json.dumps(decoders).encode() + b"\n" + b"".join(packed)


def read_bound(bound: Binding) -> list[Line]:
    """The messages that a verdict was bound to, as they were, in their order."""
    return list(_unpack(bytes(bound.manifest)))


def _unpack(manifest: bytes) -> Iterator[Line]:
    head, _, body = manifest.partition(b"\n")
    decoders = json.loads(head)
    for record, part, raw, decoder, english, told in _LINE.iter_unpack(body):
        yield Line(uuid.UUID(bytes=record), part, raw, decoders[decoder], english, told)


# Of a conversation that is no larger, what a verdict is bound to is compared whenever it is shown.
COMPARED_AT_ONCE: Final = 2000
State = ReviewItem.State


def select_told(rows: QuerySet[Review], *, reader_id: int | None = None) -> QuerySet[Review]:
    """Those of these verdicts that may be told to a reader: none that was withdrawn, or that is to stay unknown.

    Args:
        reader_id: who reads; one sees what one said oneself. None is anybody.
    """
    return select_open(rows, reader_id=reader_id).filter(withdrawn_at=None)


def select_open(rows: QuerySet[Review], *, reader_id: int | None = None) -> QuerySet[Review]:
    """Those of these verdicts, withdrawn ones too, that need not stay unknown to a reader, as `select_told` has it."""
    told = ~Q(_find_blind("created_at"))
    return rows.filter(told if reader_id is None else told | Q(reviewer=reader_id))


def select_told_items(rows: QuerySet[ReviewItem]) -> QuerySet[ReviewItem]:
    """These items, each with `is_hidden`: whether what settled it must not be told, as others are at it blindly."""
    return rows.annotate(is_hidden=_find_blind("ended_at"))


def _find_blind(moment: str) -> Exists:
    """Whether the conversation of a row was already under blind review at that moment of the row, and still is."""
    blind = ReviewItem.objects.filter(
        conversation=OuterRef("conversation"), needed__gt=1, state__in=BLIND_STATES, added_at__lte=OuterRef(moment)
    )
    return Exists(blind)


def select_stale(rows: QuerySet[ReviewItem]) -> QuerySet[ReviewItem]:
    """Those of these items whose sign-off is in force and known to be stale: what `find_sign_offs` says, in SQL."""
    differs = Q(binding__isnull=False) & ~Q(binding__changes="")
    differs |= Q(binding=None) & ~Q(seen_digest=F("conversation__settled_digest"))
    carrying = Review.objects.filter(differs, item=OuterRef("pk"), verdict=OuterRef("verdict"), withdrawn_at=None)
    later = ReviewItem.objects.filter(
        ~_find_blind("ended_at"),
        Q(ended_at__gt=OuterRef("ended_at")) | Q(ended_at=OuterRef("ended_at"), pk__gt=OuterRef("pk")),
        conversation=OuterRef("conversation"),
        state=State.SETTLED,
    )
    return rows.filter(~_find_blind("ended_at"), Exists(carrying), ~Exists(later), state=State.SETTLED)


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether what was seen is still what is there.

    `changes` by kind, empty where it holds. It `is_known` unless the conversation was settled anew since it was
    compared, or was judged before verdicts were bound to bytes. `is_exact` where the messages can be named.
    """

    changes: Mapping[str, Change]
    is_known: bool = True
    is_exact: bool = True

    @property
    def is_stale(self) -> bool:
        """Whether it is known to differ."""
        return bool(self.changes) or not self.is_exact


_HOLDS: Final = Standing({})


def find_standings(
    *, reviews: Sequence[Review], conversation: Conversation, is_compared: bool = False
) -> dict[uuid.UUID, Standing]:
    """How each of these verdicts on a conversation stands.

    Args:
        reviews: with their bindings.
        is_compared: whether to compare with the messages themselves, in one or two statements, where these are few
            enough; else what the worker found is told.
    """
    bound = {review.binding for review in reviews if review.binding is not None}
    lines = None
    if bound and is_compared and conversation.message_count <= COMPARED_AT_ONCE:
        lines = read_lines(conversation_id=conversation.pk)
    now = bytes(conversation.settled_digest or b"")
    by_binding = {
        each.pk: Standing(compare(each, lines))
        if lines is not None
        else Standing(read_changes(each.changes), is_known=bytes(each.checked_digest) == now)
        for each in bound
    }
    # Of a verdict that is bound to no bytes it is known whether the conversation is told as it was.
    return {
        review.pk: by_binding[review.binding_id]
        if review.binding_id
        else Standing({}, is_exact=bytes(review.seen_digest) == now)
        for review in reviews
    }


def list_reviews(*, conversation: Conversation, reader_id: int | None, limit: int = 50) -> list[Review]:
    """The verdicts on a conversation that a reader may see, newest first, each with who gave it and on what."""
    rows = Review.objects.filter(conversation=conversation)
    # Most conversations have none, and each of their pages asks for them: so this is asked first, which is cheap.
    if not rows.exists():
        return []
    rows = rows.select_related("reviewer", "item__queue", "rubric", "binding")
    return list(select_told(rows, reader_id=reader_id).order_by("-created_at", "-pk")[:limit])


@dataclass(frozen=True, slots=True)
class SignOff:
    """What settled a conversation last: the verdict, of whom and when, and how it stands."""

    verdict: str
    reviewers: Sequence[str]
    at: datetime
    standing: Standing


def find_sign_offs(*, conversations: Collection[Conversation], is_compared: bool = False) -> dict[uuid.UUID, SignOff]:
    """What is in force on each of these conversations that was settled, in two statements.

    Args:
        conversations: of one workspace.
        is_compared: whether each is compared with its messages, as `find_standings` does it; else what the worker found
            is told.
    """
    by_id = {each.pk: each for each in conversations}
    rows = ReviewItem.objects.filter(conversation__in=list(by_id), state=State.SETTLED)
    rows = rows.filter(~_find_blind("ended_at"))
    items = list(rows.order_by("conversation", "-ended_at", "-pk").distinct("conversation"))
    reviews = Review.objects.filter(item__in=[item.pk for item in items], withdrawn_at=None)
    reviews = reviews.select_related("reviewer", "binding")
    reviews = reviews if is_compared else reviews.defer("binding__manifest")
    by_item: dict[uuid.UUID, list[Review]] = {}
    for review in reviews.order_by("created_at", "pk") if items else []:
        by_item.setdefault(review.item_id, []).append(review)
    return {
        item.conversation_id: make_sign_off(
            item, by_item.get(item.pk, []), by_id[item.conversation_id], is_compared=is_compared
        )
        for item in items
    }


def make_sign_off(
    item: ReviewItem, reviews: Sequence[Review], conversation: Conversation, *, is_compared: bool = False
) -> SignOff:
    """The sign-off of a settled item, from its verdicts: those that say what it came to carry it."""
    carrying = [review for review in reviews if review.verdict == item.verdict]
    standings = find_standings(reviews=carrying, conversation=conversation, is_compared=is_compared)
    stale = [standing for standing in standings.values() if standing.is_stale]
    unknown = [standing for standing in standings.values() if not standing.is_known]
    return SignOff(
        verdict=item.verdict,
        reviewers=[review.reviewer.get_username() for review in carrying],
        at=item.ended_at or item.added_at,
        standing=next(iter([*stale, *unknown]), _HOLDS),
    )


def list_item_reviews(*, item: ReviewItem, reader_id: int | None) -> list[Review]:
    """The verdicts on an item that a reader may see, the first first; for None what anybody may."""
    rows = Review.objects.filter(item=item).select_related("reviewer", "rubric", "binding")
    found = list(select_told(rows, reader_id=reader_id).order_by("created_at", "pk"))
    for review in found:
        # It is loaded with its queue already.
        review.item = item
    return found


def find_places(*, places: Collection[Place], workspace: Workspace) -> dict[Place, Message]:
    """The messages at these places, as far as they are shown; asks for nothing where there are none."""
    if not places:
        return {}
    rows = Message.objects.shown().filter(workspace=workspace, record__in={record for record, _ in places})
    found = {(message.record_id, message.part): message for message in rows.defer("body", "words")}
    return {place: found[place] for place in places if place in found}


# What would tell a second reviewer that somebody has spoken, who, and what.
_REVIEWING: Final = ("verdict.given", "verdict.withdrawn", "review.taken", "review.released")


def list_told_deeds(*, workspace_id: uuid.UUID, wanted: Wanted, reader: Membership | None = None) -> QuerySet[Deed]:
    """The deeds that a reader may see, newest first: all but what others did to review what is still blind.

    A review by two is blind until both have spoken. Until then verdicts on its conversation, and who took it, are
    missing here for everybody but who did it, and so are their numbers; afterwards they stand where they belong.

    Args:
        reader: a member of the workspace; None is a program, whose own no deed of a member is.
    """
    # Such a deed names its item and its conversation among what it is about: both are found by their indexes.
    blind = ReviewItem.objects.filter(
        # What is said of the same conversation elsewhere meanwhile would tell as much.
        Q(IsAny("id", OuterRef("about")))
        | Q(IsAny("conversation_id", OuterRef("about")), added_at__lte=OuterRef("at")),
        workspace=workspace_id,
        needed__gt=1,
        state__in=BLIND_STATES,
    )
    tells = Q(code__in=_REVIEWING) & Q(Exists(blind))
    if reader is not None:
        tells &= ~Q(actor_kind=Deed.Actor.MEMBER, actor_id=str(reader.user_id))
    return filter_deeds(workspace_id=workspace_id, wanted=wanted).exclude(tells)
