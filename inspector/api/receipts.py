"""The receipt of a delivery: what was received, and what became of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from django.urls import reverse
from rest_framework import serializers

from inspector.audit.findings.selectors import count_open_by_severity, of_delivery
from inspector.intake import selectors
from inspector.intake.identity import list_warnings
from inspector.intake.models import Delivery, Door, Withdrawal
from inspector.intake.withdrawals import find_withdrawal, is_weighing
from inspector.ledger.selectors import find_entry
from inspector.threads.models import Message

from .backlog import tell_wait
from .paging import chosen_of, page_of
from .shapes import show

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
    sha256 = serializers.CharField(allow_null=True)
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
    sha256 = serializers.CharField(allow_null=True)
    received = serializers.IntegerField(help_text="records: received = stored + duplicate + quarantined, always")
    stored = serializers.IntegerField()
    duplicate = serializers.IntegerField()
    quarantined = serializers.IntegerField()
    read = serializers.IntegerField(help_text="records read into messages so far")
    failure = serializers.CharField(allow_blank=True)


DeliveryPageSerializer: Final = page_of(
    "Delivery", chosen_of("Delivery", DeliveryRowSerializer, "A delivery"), "Deliveries, newest first"
)


def show_delivery(delivery: Delivery, *, is_withdrawn: bool) -> dict[str, Any]:
    """A delivery as the list shows it."""
    return show(DeliveryRowSerializer, delivery, is_withdrawn=is_withdrawn, sha256=_show_digest(delivery))


def _show_digest(delivery: Delivery) -> str | None:
    return bytes(delivery.sha256).hex() if delivery.sha256 else None


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
        sha256=_show_digest(delivery),
        framed_bytes=progress.framed_bytes,
        read=progress.read,
        is_framed=progress.is_framed,
        is_read=progress.is_read,
        failure=progress.failure,
        ledger={"index": entry.index} if entry else None,
        withdrawal=make_withdrawal(withdrawal) if withdrawal else None,
        findings={Message.Severity(severity).label.lower(): count for severity, count in found.items()},
    )


def make_withdrawal(withdrawal: Withdrawal) -> dict[str, Any]:
    """The members of an act of withdrawal."""
    return show(WithdrawalSerializer, withdrawal, is_done=not is_weighing(delivery=withdrawal.delivery))
