"""Findings: the list, one with its history, and an act on it: a person's, which a key does in their name."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.accounts.models import Membership
from inspector.accounts.selectors import find_member
from inspector.audit.findings.selectors import (
    CLOSED,
    EVERYWHERE,
    SNOOZED,
    SUPPRESSED,
    find_finding,
    find_messages,
    find_related,
    list_findings,
    mean_findings,
    of_assignee,
    of_delivery,
)
from inspector.audit.findings.services import MAX_REASON_LENGTH, assign, judge, list_acts, snooze
from inspector.audit.models import Finding, FindingAct
from inspector.audit.rules import RULES
from inspector.audit.rules.rule import SEVERITIES
from inspector.database import on_replica
from inspector.threads.models import Message

from .authentication import ACT_REFUSALS, act_for
from .bodies import Document, Text
from .endpoints import Endpoint
from .masking import may_see_secrets
from .paging import CURSOR, FIELDS_ABOUT, LIMIT, choose, chosen_of, find_page, page_of, read_place
from .parameters import Choice, Id, Moment, Names, Parameter, find_named_conversation, find_named_delivery
from .problems import ProblemError
from .shapes import show

logger = logging.getLogger(__name__)

_STATES: Final = [*Finding.State.values, SNOOZED, SUPPRESSED, CLOSED]
_ACT: Final = Document(
    '{"state": "accepted", "reason": "…"}',
    (
        Choice(name="state", default=None, choices=Finding.State.values, about="a decision; open ends a snooze too"),
        Moment(name="snoozed_until", about="leave the open finding out of lists until then"),
        Text(name="assignee", default=None, about="user name of an auditor or owner; empty for nobody"),
        Text(name="reason", max_characters=MAX_REASON_LENGTH, about="needed for decisions but open, and for a snooze"),
    ),
)


class FindingSerializer(serializers.Serializer[Any]):
    """A finding; docs/findings.md lists the rules."""

    id = serializers.UUIDField()
    rule = serializers.CharField()
    title = serializers.CharField(help_text="what the rule finds, in a few words")
    severity = serializers.ChoiceField(choices=SEVERITIES[1:])
    state = serializers.ChoiceField(choices=Finding.State.values, help_text="the decision of an auditor")
    holds = serializers.BooleanField(help_text="false: the finding no longer applies")
    is_suppressed = serializers.BooleanField()
    assignee = serializers.CharField(
        source="assignee.username", allow_null=True, help_text="user name of the person it is assigned to"
    )
    snoozed_until = serializers.DateTimeField(allow_null=True, help_text="lists of open findings leave it out until")
    text = serializers.CharField(
        allow_null=True, help_text="the problem in words; null while the delivery of its message is withdrawn"
    )
    cites = serializers.CharField(help_text="the section it rests on, or its rule")
    conversation = serializers.UUIDField(source="conversation_id")
    message = serializers.UUIDField(allow_null=True)
    span = serializers.ListField(
        child=serializers.IntegerField(), allow_null=True, help_text="the characters it is about: layer, start, end"
    )
    sender = serializers.CharField(allow_null=True)
    at = serializers.DateTimeField(help_text="the time of its message")
    due_at = serializers.DateTimeField(allow_null=True, help_text="from when on it counts, where time decides")
    due_since = serializers.DateTimeField(
        allow_null=True, help_text="when it was noted that this moment had come for its channel; lists begin then"
    )
    found_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True, help_text="when it ceased to hold")


FindingPageSerializer: Final = page_of(
    "Finding", chosen_of("Finding", FindingSerializer, "A finding"), "Findings, newest first", is_searched=True
)


class ActSerializer(serializers.Serializer[Any]):
    """What a person made of a finding, and why."""

    kind = serializers.ChoiceField(choices=FindingAct.Kind.values)
    state = serializers.ChoiceField(choices=Finding.State.values, help_text="as it stood after the act")
    assignee = serializers.CharField(
        source="assignee.username", allow_null=True, help_text="of an act that assigns; null for nobody"
    )
    until = serializers.DateTimeField(allow_null=True, help_text="of an act that snoozes")
    by = serializers.CharField(source="by.username")
    at = serializers.DateTimeField()
    reason = serializers.CharField(allow_blank=True)


class FindingDetailSerializer(FindingSerializer):
    """A finding with what it is about besides, and all that was made of it."""

    why = serializers.CharField(allow_blank=True, help_text="why it matters")
    related = serializers.ListField(child=serializers.UUIDField(), help_text="the other messages it is about")
    related_spans = serializers.ListField(
        child=serializers.ListField(child=serializers.IntegerField(), allow_null=True),
        help_text="of each of these the characters it is about, as in `span`; null where it is about the whole",
    )
    version = serializers.CharField(help_text="by which decoders and rules it was last written")
    acts = ActSerializer(many=True, help_text="the first first")


class FindingsView(Endpoint):
    """What the rules found."""

    parameters: ClassVar = {
        "GET": (
            Parameter(name="q", about="only those of messages that this means, in the search language", default=""),
            CURSOR,
            LIMIT,
            Choice(name="rule", about="filter by rule", choices=sorted(RULES), default=""),
            Choice(
                name="state",
                about="filter by state; by default all current ones that are not suppressed",
                choices=_STATES,
                default="",
            ),
            Choice(name="least", about="filter by minimum severity", choices=SEVERITIES[1:], default="info"),
            Id(name="conversation", about="filter by conversation"),
            Id(
                name="delivery", about="filter by delivery: findings about records that it brought, duplicates included"
            ),
            Parameter(name="assignee", about="filter by the user name of the person it is assigned to", default=""),
            Names(name="fields", about=FIELDS_ABOUT, choices=tuple(FindingSerializer().fields)),
        )
    }

    @extend_schema(operation_id="list_findings", responses=FindingPageSerializer)
    @on_replica
    def get(self, request: Request) -> Response:
        """A page of findings."""
        key, given = self.key, self.given
        workspace = key.workspace
        delivery = find_named_delivery(workspace, given["delivery"])
        meant = mean_findings(workspace=workspace, query=given["q"], may_see_secrets=may_see_secrets(key))
        within = of_delivery(delivery.pk) if delivery else EVERYWHERE
        if given["assignee"]:
            within &= of_assignee(given["assignee"])
        rows = list_findings(
            workspace=workspace,
            rule=given["rule"],
            state=given["state"],
            least=SEVERITIES.index(given["least"]),
            conversation=find_named_conversation(workspace, given["conversation"]),
            within=within,
        )
        page, on = find_page(rows, meant, given, workspace, at="at", before=read_place(given, workspace))
        messages = find_messages(page)
        shown = [choose(show_finding(each, messages.get(each.pk)), given["fields"]) for each in page]
        return Response({"results": shown, **on})


class FindingView(Endpoint):
    """One finding."""

    @extend_schema(operation_id="get_finding", responses=FindingDetailSerializer)
    def get(self, request: Request, finding_id: uuid.UUID) -> Response:
        """The finding with its history, also where it holds no more."""
        return Response(_show_whole(self.find(find_finding, finding_id=finding_id)))


class ActsView(Endpoint):
    """What people make of a finding."""

    scopes: ClassVar = {"POST": "review"}
    refusals: ClassVar = {"POST": ACT_REFUSALS}

    @extend_schema(operation_id="judge_finding", request=_ACT.schema, responses={201: FindingDetailSerializer})
    def post(self, request: Request, finding_id: uuid.UUID) -> Response:
        """Decide on it, snooze it or assign it, one at a time, in the name of the member who made the key."""
        finding = self.find(find_finding, finding_id=finding_id)
        said = _ACT.read(request)
        acts = [name for name in ("state", "snoozed_until", "assignee") if said[name] is not None]
        if len(acts) != 1:
            raise ProblemError(422, f"send one of state, snoozed_until and assignee: {_ACT.example}")
        with act_for(request) as person:
            _act(person, finding, acts[0], said)
        logger.info("key %s: finding %s, %s", self.key.prefix, finding.pk, acts[0])
        return Response(_show_whole(self.find(find_finding, finding_id=finding_id)), status=201)


def _act(person: Membership, finding: Finding, act: str, said: Mapping[str, Any]) -> None:
    if act == "state":
        judge(membership=person, findings=[finding.pk], state=said["state"], reason=said["reason"])
    elif act == "snoozed_until":
        snooze(membership=person, findings=[finding.pk], until=said["snoozed_until"], reason=said["reason"])
    else:
        named = find_member(workspace=person.workspace, name=said["assignee"]) if said["assignee"] else None
        if said["assignee"] and named is None:
            raise ProblemError(422, f"no member of this workspace is called {said['assignee']!r}", member="assignee")
        assign(membership=person, findings=[finding.pk], assignee=named.user if named else None)


def show_finding(finding: Finding, message: Message | None) -> dict[str, Any]:
    """A finding as the list shows it; of a message that is hidden or gone nothing is told."""
    return show(
        FindingSerializer,
        finding,
        title=RULES[finding.rule].title if finding.rule in RULES else finding.rule,
        severity=SEVERITIES[finding.severity],
        text=finding.text if message else None,
        cites=finding.cites or f"rule {finding.rule}",
        message=message.pk if message else None,
        span=finding.place if message else None,
        sender=finding.sender or None if message else None,
    )


def _show_whole(finding: Finding) -> dict[str, Any]:
    message = find_messages([finding]).get(finding.pk)
    related, spans = find_related(finding=finding) if message else [], finding.list_related()
    return {
        **show_finding(finding, message),
        "why": RULES[finding.rule].why if finding.rule in RULES else "",
        "related": [each.pk for each in related],
        "related_spans": [spans.get((each.record_id, each.part)) for each in related],
        "version": finding.version,
        "acts": [show(ActSerializer, act) for act in list_acts(finding=finding)],
    }
