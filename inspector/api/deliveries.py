"""Deliveries: the list, the receipt of one and what became of it, its withdrawal; the exact bytes of a record, for who
may have them; and waiting: in how many seconds what is posted is told, and `Prefer: wait=N` (RFC 7240), which holds the
answer of a POST until what it brought is told, and adds the messages.

The records are durable before the waiting begins, and nothing is locked while it lasts: it is a look at the database
now and then. A process lends two of its threads to it at most; whoever comes third is answered at once.

What is secret of a record is what the codecs mask: the leaves of the field tree that say so. A masked character becomes
one mark, so that every span of the tree still points at its place.
"""

from __future__ import annotations

import logging
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import timedelta
from typing import Any, Final

from django.db.models import F, Func, IntegerField, Sum
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from dialects import Reading, read
from inspector.audit.findings.selectors import count_open_by_severity, of_delivery
from inspector.bounds import BYTES, RangeError, answer_bytes
from inspector.database import or_404
from inspector.intake import selectors
from inspector.intake.identity import list_warnings
from inspector.intake.models import Delivery, Door, Record, Withdrawal
from inspector.intake.readings import MAX_BYTES_LOOKED_THROUGH, conceal_reading, find_outer_secrets, has_tokens, mask
from inspector.intake.withdrawals import (
    MAX_REASON_LENGTH,
    find_withdrawal,
    find_withdrawals,
    is_weighing,
    take_back,
    withdraw_delivery,
)
from inspector.ledger.proofs import find_changed, find_entry, say_changed
from inspector.opening import disclose_source
from inspector.threads.models import Announcement, Message
from inspector.threads.selectors import (
    has_unread_records,
    is_resolving,
    list_messages_of,
    list_messages_of_delivery,
    unfold,
)
from inspector.trail.row_security import across

from .authentication import act_for, may_see_secrets
from .endpoints import Endpoint, operation
from .evidence import refuse_erased
from .messages import show_messages
from .parameters import (
    Document,
    find_named_channel,
    take_choice,
    take_number,
    take_text,
)
from .problems import ProblemError
from .shapes import DigestField, choose, cut_page, listing, read_place, show

logger = logging.getLogger(__name__)

LISTED_STATES: Final = [state for state in Delivery.State.values if state != Delivery.State.STAGED]


class ProblemRowSerializer(serializers.Serializer[Any]):
    """A record that was quarantined."""

    index = serializers.IntegerField(help_text="its place in the delivery, from zero")
    line = serializers.IntegerField(help_text="the line it begins on, from one")
    reason = serializers.CharField()
    raw = serializers.CharField(help_text="where its exact bytes are")


class WarningRowSerializer(serializers.Serializer[Any]):
    """A likely mistake of the sender. The stored bytes stay as they are."""

    index = serializers.IntegerField(help_text="the record's place in the delivery, from zero")
    line = serializers.IntegerField(help_text="the line it begins on, from one")
    code = serializers.CharField(help_text="a stable name of the problem")
    reason = serializers.CharField(help_text="the problem in words, and how it was handled")
    hint = serializers.CharField(help_text="what to change")


class ReceiptSerializer(serializers.Serializer[Any]):
    """Counts of records: received = stored + duplicate + quarantined, always."""

    delivery = serializers.UUIDField()
    state = serializers.ChoiceField(choices=Delivery.State.values)
    received = serializers.IntegerField()
    stored = serializers.IntegerField()
    duplicate = serializers.IntegerField()
    quarantined = serializers.IntegerField()
    told_in_seconds = serializers.IntegerField(
        help_text="about how long until its messages are processed, by what waits now; 0 when all are read"
    )
    problems = ProblemRowSerializer(many=True)
    warnings = WarningRowSerializer(many=True, help_text="the first hundred, and the first of each code")
    warnings_total = serializers.IntegerField()
    warnings_by_code = serializers.DictField(child=serializers.IntegerField())
    links = serializers.DictField(child=serializers.CharField())


class WithdrawalSerializer(serializers.Serializer[Any]):
    """An act of withdrawal, and of taking it back."""

    by = serializers.CharField(source="by.username", help_text="who withdrew it")
    at = serializers.DateTimeField()
    reason = serializers.CharField()
    taken_back_by = serializers.CharField(source="taken_back_by.username", allow_null=True)
    taken_back_at = serializers.DateTimeField(allow_null=True)
    taken_back_reason = serializers.CharField()
    is_done = serializers.BooleanField(help_text="whether its records are all hidden, or shown again, by now")


class LedgerPlaceSerializer(serializers.Serializer[Any]):
    """Where the receipt stands in the ledger: GET /ledger/proofs/inclusion?kind=delivery&id=… proves it."""

    index = serializers.IntegerField()


class DeliverySerializer(ReceiptSerializer):
    """A receipt with custody and progress."""

    channel = serializers.CharField(source="channel.name")
    door = serializers.ChoiceField(choices=Door.values)
    received_at = serializers.DateTimeField()
    file_name = serializers.CharField()
    size_bytes = serializers.IntegerField()
    sha256 = DigestField(allow_null=True)
    framed_bytes = serializers.IntegerField()
    read = serializers.IntegerField(help_text="records read into messages so far")
    is_framed = serializers.BooleanField(help_text="whether the counts are final")
    is_read = serializers.BooleanField(help_text="whether every stored record has been read")
    failure = serializers.CharField()
    ledger = LedgerPlaceSerializer(allow_null=True, help_text="null until it is entered, some seconds later")
    withdrawal = WithdrawalSerializer(allow_null=True, help_text="the one in force")
    findings = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="open findings about its records so far, by severity; GET /findings?delivery= lists them",
    )


class DeliveryRowSerializer(serializers.Serializer[Any]):
    """A delivery in a list."""

    id = serializers.UUIDField()
    state = serializers.ChoiceField(choices=LISTED_STATES)
    is_withdrawn = serializers.BooleanField()
    channel = serializers.CharField(source="channel.name")
    door = serializers.ChoiceField(choices=Door.values)
    received_at = serializers.DateTimeField()
    file_name = serializers.CharField(allow_blank=True)
    size_bytes = serializers.IntegerField()
    sha256 = DigestField(allow_null=True)
    received = serializers.IntegerField(help_text="records: received = stored + duplicate + quarantined, always")
    stored = serializers.IntegerField()
    duplicate = serializers.IntegerField()
    quarantined = serializers.IntegerField()
    read = serializers.IntegerField(help_text="records read into messages so far")
    failure = serializers.CharField(allow_blank=True)


def make_receipt(delivery: Delivery, *, after: int = -1) -> dict[str, Any]:
    """The members of a receipt; problems from the index after `after` on, at most a hundred."""
    problems = selectors.list_problems(delivery=delivery, after=after) if delivery.quarantined else ()
    warned = list_warnings(delivery.warnings)
    return show(
        ReceiptSerializer,
        delivery,
        delivery=str(delivery.pk),
        told_in_seconds=tell_wait(delivery),
        problems=[
            show(ProblemRowSerializer, problem, raw=reverse("api:raw", args=[problem.record_id]))
            for problem in problems
        ],
        warnings=[asdict(row) for row in warned.first],
        warnings_total=warned.total,
        warnings_by_code=dict(warned.counts),
        links={"self": reverse("api:delivery", args=[delivery.pk])},
    )


def make_delivery(delivery: Delivery, *, after: int = -1) -> dict[str, Any]:
    """The members of a delivery's resource."""
    progress = selectors.find_progress(delivery=delivery)
    withdrawal = find_withdrawal(delivery=delivery)
    found = count_open_by_severity(workspace=delivery.workspace, within=of_delivery(delivery.pk))
    entry = find_entry("delivery", delivery.pk)
    receipt = make_receipt(delivery, after=after)
    receipt["links"]["findings"] = f"{reverse('api:findings')}?delivery={delivery.pk}"
    if len(receipt["problems"]) == 100:
        last = receipt["problems"][-1]["index"]
        receipt["links"]["next"] = f"{receipt['links']['self']}?after={last}"
    return show(
        DeliverySerializer,
        delivery,
        **receipt,
        **{name: getattr(progress, name) for name in ("framed_bytes", "read", "is_framed", "is_read", "failure")},
        ledger={"index": entry.index} if entry else None,
        withdrawal=make_withdrawal(withdrawal) if withdrawal else None,
        findings={Message.Severity(severity).label.lower(): count for severity, count in found.items()},
    )


def make_withdrawal(withdrawal: Withdrawal) -> dict[str, Any]:
    """The members of an act of withdrawal."""
    return show(WithdrawalSerializer, withdrawal, is_done=not is_weighing(delivery=withdrawal.delivery))


def withhold(record: Record) -> tuple[bool, str | None]:
    """Whether there is something of a record that a key may not have which may see no secrets, and what it gets in its
    place: the text with its secrets masked, if it could be looked through.
    """
    if not selectors.has_bytes(record) or len(record.source) > MAX_BYTES_LOOKED_THROUGH or not record.source:
        return True, None
    spans = [span for reading in _read_all(record) for span in find_outer_secrets(reading)]
    return (True, mask(_text_of(record), spans)) if spans or has_tokens(record) else (False, None)


def _read_all(record: Record) -> Iterator[Reading]:
    """The record as its messages were resolved, as it would be read without them, and as the bytes stand."""
    messages: list[Message] = list_messages_of(record=record)
    for message in messages:
        yield unfold(message=message)
    if not messages:
        yield conceal_reading(read(_text_of(record)))


def _text_of(record: Record) -> str:
    """The text; of bytes that are none, what can be read in them."""
    wire = bytes(record.source if record.wire is None else record.wire)
    return wire.decode("utf-8", "replace" if record.is_quarantined else "surrogatepass")


_REASON: Final = take_text(
    "reason", about="reason of the withdrawal", is_required=True, max_characters=MAX_REASON_LENGTH
)
_WITHDRAWAL: Final = Document('{"reason": "…"}', (_REASON,))


class Deliveries(Endpoint):
    """Deliveries, their withdrawals, and the exact bytes of their records."""

    @listing(
        "Delivery",
        DeliveryRowSerializer,
        "Deliveries, newest first",
        take_text("channel", about="filter by channel", default=""),
        take_choice("state", about="filter by state", choices=LISTED_STATES, default=""),
        what="A delivery",
    )
    def list_deliveries(self, request: Request) -> dict[str, Any]:
        """A page of deliveries, with their counts; the problems of each are at its own address."""
        given = self.given
        found = selectors.list_deliveries(
            workspace=self.workspace,
            channel=find_named_channel(self.workspace, given["channel"]),
            state=given["state"],
            before=read_place(self),
            limit=given["limit"] + 1,
        )
        page, cursor = cut_page(self, found, lambda delivery: (delivery.received_at, delivery.pk))
        withdrawn = find_withdrawals(delivery_ids=[delivery.pk for delivery in page])
        rows = [show(DeliveryRowSerializer, each, is_withdrawn=each.pk in withdrawn) for each in page]
        return {"results": [choose(row, given) for row in rows], "next": cursor}

    @operation(
        DeliverySerializer,
        parameters=(take_number("after", about="problems after the one with this index", default=-1),),
        scope=("ingest", "read"),
    )
    def get_delivery(self, request: Request, delivery_id: uuid.UUID) -> dict[str, Any]:
        """The delivery; `after` pages through its problems."""
        delivery = self.find(selectors.find_delivery, delivery_id=delivery_id)
        return make_delivery(delivery, after=self.given["after"])

    @operation(
        {
            (200, BYTES): OpenApiResponse(OpenApiTypes.BINARY, description="the bytes, as a download"),
            (206, BYTES): OpenApiResponse(OpenApiTypes.BINARY, description="the range of them that is asked for"),
            304: OpenApiResponse(description="`If-None-Match` names these bytes"),
        },
        parameters=(
            take_choice(
                "part",
                about="source: the received bytes; wire: the text that was read from them",
                choices=("source", "wire"),
                default="source",
            ),
        ),
        refusals=(409, 410, 412, 416),
        reads="exact bytes",
        media_type=BYTES,
        headers=[
            OpenApiParameter("Range", {"type": "string"}, "header", description="one range of bytes, as bytes=0-1023"),
            OpenApiParameter(
                "If-None-Match", {"type": "string"}, "header", description="304 where the ETag is one of these"
            ),
            OpenApiParameter(
                "If-Match", {"type": "string"}, "header", description="412 where the ETag is none of these"
            ),
            OpenApiParameter("Content-Range", {"type": "string"}, "header", response=[206]),
            OpenApiParameter("Accept-Ranges", {"type": "string"}, "header", response=[200, 206]),
            OpenApiParameter("ETag", {"type": "string"}, "header", response=[200, 206, 304]),
            OpenApiParameter(
                "X-Source-SHA256", {"type": "string"}, "header", response=[200, 206], description="of the exact source"
            ),
        ],
    )
    def get_raw(self, request: Request, record_id: uuid.UUID) -> HttpResponseBase:
        """The bytes, as a download that no browser will interpret: all of them, or the range that is asked for.

        Of a record that holds a secret, a key without the scope `secrets` gets a refusal, with the masked text and the
        SHA-256 of the exact bytes. Other bytes than were entered in the ledger are refused (409).
        """
        key = self.key
        record = self.find(selectors.find_record, record_id=record_id)
        refuse_erased(key.workspace_id, record_id)
        for index in find_changed("record", [record.pk]).values():
            raise ProblemError(409, say_changed("record", index), index=index)
        is_secret, masked = withhold(record)
        size, digest = selectors.measure_source(record=record)
        if is_secret and not may_see_secrets(key):
            raise ProblemError(
                403,
                "the record holds a secret, or is too long to be looked through: its exact bytes need a key with the "
                "scope secrets",
                scope=["secrets"],
                masked=masked,
                sha256=digest,
            )
        if is_secret:
            logger.info("key %s was given the exact bytes of record %s, which holds a secret", key.prefix, record.pk)
            disclose_source(record=record, by=key)
        pieces = selectors.read_source(record=record)
        wire_bytes = vars(record)["wire_bytes"]
        if self.given["part"] == "wire" and wire_bytes is not None:
            pieces, size = selectors.read_pieces(record=record, name="wire"), wire_bytes
        try:
            response = answer_bytes(request, pieces, name=f"{record.pk}.bin", size=size, digest=digest)
        except RangeError as error:
            raise ProblemError(416, str(error), headers={"Content-Range": f"bytes */{error.size}"}) from error
        if response.status_code == 412:
            raise ProblemError(412, f"If-Match names other bytes: these have the ETag {response['ETag']}")
        response["X-Source-SHA256"] = digest
        return response

    @operation(WithdrawalSerializer, scope="ingest")
    def get_withdrawal(self, request: Request, delivery_id: uuid.UUID) -> dict[str, Any]:
        """The withdrawal in force; 404 where there is none."""
        found = or_404(find_withdrawal(delivery=self.find(selectors.find_delivery, delivery_id=delivery_id)))
        return make_withdrawal(found)

    @operation({201: WithdrawalSerializer}, body=_WITHDRAWAL, scope="withdraw")
    def withdraw_delivery(self, request: Request, delivery_id: uuid.UUID) -> dict[str, Any]:
        """Withdraw the delivery in the name of the member who made the key: what no other delivery holds is hidden."""
        delivery = self.find(selectors.find_delivery, delivery_id=delivery_id)
        return self._act(delivery, _WITHDRAWAL.read(request)["reason"], withdraw_delivery)

    @operation({200: WithdrawalSerializer}, parameters=(_REASON,), scope="withdraw", refusals=(409, 422))
    def take_withdrawal_back(self, request: Request, delivery_id: uuid.UUID) -> dict[str, Any]:
        """Undo the withdrawal, in the same name: its records are shown again. Both acts are kept."""
        delivery = self.find(selectors.find_delivery, delivery_id=delivery_id)
        return self._act(delivery, self.given["reason"], take_back)

    def _act(self, delivery: Delivery, reason: str, act: Callable[..., Withdrawal]) -> dict[str, Any]:
        with act_for(self.request) as person:
            made = act(membership=person, delivery=delivery, reason=reason)
        logger.info("key %s: %s delivery %s", self.key.prefix, act.__name__, delivery.pk)
        return make_withdrawal(made)


# What a system without a backlog takes: what is posted is gathered, read and told.
QUIET_SECONDS: Final = 6
# Over how long the pace is measured, and the messages a second that one core tells where nothing was measured yet.
PACE_SECONDS, MIN_PACE = 60, 300
# How often a process looks.
LOOK_SECONDS: Final = 1.0

_looked: tuple[float, int, int] = (float("-inf"), QUIET_SECONDS, QUIET_SECONDS)


def estimate_told() -> int:
    """In how many seconds what is posted now is told, as of the last look."""
    return _look()[1]


def estimate_done() -> int:
    """In how many seconds all that was posted is told, as of the last look: also what is read in slices."""
    return _look()[2]


def _look() -> tuple[float, int, int]:
    global _looked
    now = time.monotonic()
    if now - _looked[0] >= LOOK_SECONDS:
        with across():
            lag, pace = selectors.find_lag(), measure_pace()
            counts = (selectors.count_posted(), selectors.count_backlog(door=Door.API))
        told, done = (QUIET_SECONDS + int(max(lag, count / pace)) for count in counts)
        _looked = (now, told, done)
    return _looked


def measure_pace() -> float:
    """How many messages a second all workers told lately, where there were many."""
    lately = Announcement.objects.filter(at__gt=timezone.now() - timedelta(seconds=PACE_SECONDS))
    count = Func(F("messages"), function="cardinality", output_field=IntegerField())
    told = lately.aggregate(told=Sum(count))["told"] or 0
    return max(float(MIN_PACE), told / PACE_SECONDS)


def tell_wait(delivery: Delivery) -> int:
    """In how many seconds a delivery is told; 0 for one of which everything is read."""
    is_read = delivery.is_framed and delivery.read + delivery.set_aside >= delivery.stored
    return 0 if is_read else estimate_told()


def refuse_backlog(max_seconds: int) -> None:
    """Take nothing more while what is posted would wait for longer than this, or what was posted is not done sooner.

    Raises:
        ProblemError: 503 with the seconds until it is worth another try.
    """
    seconds = max(estimate_told(), estimate_done())
    if seconds > max_seconds:
        raise ProblemError(
            503,
            f"what was posted is processed in {seconds:,} seconds: send this again later",
            retry_after=min(max(seconds - max_seconds, 30), 300),
        )


MAX_WAITERS: Final = 2
MAX_SECONDS: Final = 30
MAX_MESSAGES: Final = 200
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.05, 0.5

_seats = threading.BoundedSemaphore(MAX_WAITERS)
_WAIT = re.compile(r'wait\s*=\s*"?0*([0-9]{1,6})([0-9]*)"?\s*(?:;.*)?', re.IGNORECASE)


def read_wish(request: Request) -> int:
    """The seconds of `Prefer: wait`, at most 30; 0 for no such wish. The first of several holds."""
    for preference in request.headers.get("Prefer", "").split(","):
        found = _WAIT.fullmatch(preference.strip())
        if found:
            return MAX_SECONDS if found[2] else min(int(found[1]), MAX_SECONDS)
    return 0


def grant_wish(request: Request, delivery: Delivery, response: Response) -> Response:
    """The response, with the messages of the delivery where the request asked to wait and a seat was free."""
    seconds = read_wish(request)
    if not seconds:
        return response
    if not _seats.acquire(blocking=False):
        return response
    try:
        is_settled = wait_until_settled(delivery, seconds=seconds)
        found = list_messages_of_delivery(delivery=delivery, limit=MAX_MESSAGES + 1)
    finally:
        _seats.release()
    response.data |= {
        # The receipt was made before the waiting.
        "told_in_seconds": tell_wait(delivery),
        "is_settled": is_settled,
        "messages": list(show_messages(found[:MAX_MESSAGES]).values()),
        "has_more_messages": len(found) > MAX_MESSAGES,
    }
    response["Preference-Applied"] = f"wait={seconds}"
    return response


def wait_until_settled(delivery: Delivery, *, seconds: float) -> bool:
    """Look until every record of the delivery is read and its conversations are resolved, or the time is over."""
    until, pause = time.monotonic() + seconds, FIRST_PAUSE_SECONDS
    while True:
        delivery.refresh_from_db(fields=["read", "stored"])
        is_read = delivery.read >= delivery.stored and not has_unread_records(delivery=delivery)
        if is_read and not is_resolving(delivery=delivery):
            return True
        left = until - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, MAX_PAUSE_SECONDS)


def show_waiting() -> dict[str, Any]:
    """The bounds of waiting, as GET /limits tells them."""
    return {"wait_seconds": MAX_SECONDS, "waiters": MAX_WAITERS, "waited_messages": MAX_MESSAGES}
