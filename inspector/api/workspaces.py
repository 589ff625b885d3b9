"""The workspace of a key: what it is called, renaming and archiving it, and making another; what a query or a filter
can name in it, rules, channels and saved searches; how much it holds; and the limits.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request

from inspector.accounts.models import ApiKey
from inspector.accounts.selectors import find_membership, list_channels
from inspector.accounts.workspaces import archive_workspace, make_workspace, rename_workspace
from inspector.audit.findings.examining import Settings, load_settings
from inspector.audit.findings.selectors import RuleCount, count_by_rule
from inspector.audit.overview import MAX_COUNTED, count_sections
from inspector.audit.rules import RULES, Rule
from inspector.audit.rules.rule import SEVERITIES
from inspector.browsing.activity import sum_messages
from inspector.database import on_replica
from inspector.intake.selectors import sum_deliveries
from inspector.search.aids import select_saved
from inspector.search.language import list_terms
from inspector.search.refining import COUNTED, count_facets
from inspector.search.selectors import fetch, read_query

from .authentication import act_for, may_see_secrets
from .bodies import ENCODINGS, FORMS, SILENCE_SECONDS
from .decoding import MAX_RECORDS
from .deliveries import show_waiting
from .endpoints import Endpoint, operation
from .parameters import Document, take_choice, take_text
from .problems import ProblemError
from .shapes import cut_page, listing, read_row_key, show, walk_by_id

logger = logging.getLogger(__name__)

_ACT: Final = Document(
    '{"act": "rename", "name": "Night shift"} or {"act": "archive"}',
    (
        take_choice("act", choices=("rename", "archive"), is_required=True, about="the action on the workspace"),
        take_text("name", default="", max_characters=120, about="to rename it to"),
    ),
)
_MADE: Final = Document(
    '{"slug": "night", "name": "Night shift"}',
    (
        take_text("slug", is_required=True, max_characters=64, about="its part of every address"),
        take_text("name", is_required=True, max_characters=120, about="as people read it"),
    ),
)


class WorkspaceSerializer(serializers.Serializer[Any]):
    """A workspace."""

    id = serializers.UUIDField()
    slug = serializers.CharField(help_text="its part of the address of every page")
    name = serializers.CharField()
    created_at = serializers.DateTimeField()
    archived_at = serializers.DateTimeField(
        allow_null=True, help_text="since when it takes no messages and its keys are refused"
    )


class RuleSerializer(serializers.Serializer[Any]):
    """A rule; docs/findings.md says what each finds."""

    id = serializers.CharField(
        source="code",
        help_text="its code, as `rule` of a finding and `rule:` in a query name it",
    )
    title = serializers.CharField()
    why = serializers.CharField(help_text="why it matters")
    group = serializers.CharField()
    severity = serializers.ChoiceField(choices=SEVERITIES[1:], help_text="as it is set in the workspace")
    is_on = serializers.BooleanField()
    open = serializers.IntegerField(help_text="findings without a decision")
    total = serializers.IntegerField(help_text="findings that hold and are not suppressed")
    latest_at = serializers.DateTimeField(allow_null=True, help_text="the time of the latest message that it found")


class ChannelSerializer(serializers.Serializer[Any]):
    """A channel: a namespace of ids. `channel:` in a query finds what came by it."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    created_at = serializers.DateTimeField()


class SavedSearchSerializer(serializers.Serializer[Any]):
    """A query that somebody saved under a name."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    query = serializers.CharField(allow_blank=True, help_text="as `q` takes it")
    is_shared = serializers.BooleanField(help_text="false: it is seen by its saver alone")
    saved_by = serializers.CharField(source="saved_by.username")
    created_at = serializers.DateTimeField()


PATIENCE_MS: Final = 1500
_LISTS: Final = ("conversations", "traces", "agents", "findings")
_RECORDS: Final = ("deliveries", "received", "stored", "duplicate", "quarantined")


class FacetValueSerializer(serializers.Serializer[Any]):
    """A value of a name, and how many of the counted messages it finds."""

    value = serializers.CharField()
    count = serializers.IntegerField()
    is_chosen = serializers.BooleanField(help_text="whether the query asks for it")


class FacetSerializer(serializers.Serializer[Any]):
    """A name of the search language with its commonest values."""

    name = serializers.CharField()
    values = FacetValueSerializer(many=True)
    more = serializers.IntegerField(help_text="how many other values there are")
    adds = serializers.BooleanField(
        help_text="whether the query asks for some of the values: what the others find comes beside it then"
    )
    is_all = serializers.BooleanField(help_text=f"false: only the newest {COUNTED:,} messages are counted")


class FacetsSerializer(serializers.Serializer[Any]):
    """Every name that is counted, over how many messages, and whether these are all."""

    facets = FacetSerializer(many=True)
    counted = serializers.IntegerField()
    is_all = serializers.BooleanField(help_text=f"false: only the newest {COUNTED:,} messages are counted")


class CountSerializer(serializers.Serializer[Any]):
    """How many there are."""

    count = serializers.IntegerField()
    is_exact = serializers.BooleanField(help_text=f"false: there are more than {MAX_COUNTED:,}")


class RecordsSerializer(serializers.Serializer[Any]):
    """All deliveries added up: received = stored + duplicate + quarantined."""

    deliveries = serializers.IntegerField()
    received = serializers.IntegerField()
    stored = serializers.IntegerField()
    duplicate = serializers.IntegerField()
    quarantined = serializers.IntegerField()


class TotalsSerializer(serializers.Serializer[Any]):
    """How much the workspace holds."""

    records = RecordsSerializer(allow_null=True, help_text="null: adding them up takes too long")
    messages = serializers.IntegerField(
        allow_null=True, help_text="of processed conversations; null: adding them up takes too long"
    )
    conversations = CountSerializer()
    traces = CountSerializer()
    agents = CountSerializer()
    findings = CountSerializer(help_text="the open ones")


class LimitsSerializer(serializers.Serializer[Any]):
    """The limits, and what is understood. Bytes are counted before and after unpacking."""

    record_bytes = serializers.IntegerField(help_text="a longer record is quarantined")
    delivery_bytes = serializers.IntegerField(help_text="a longer body of POST messages is answered with 413")
    delivery_records = serializers.IntegerField(
        help_text="a body of more is read so far, and answered with 413; past 100,000 each needs 4 bytes, packed"
    )
    export_bytes = serializers.IntegerField(help_text="an export whose file would be longer is refused")
    decode_bytes = serializers.IntegerField(help_text="a longer body of POST decode or encode is answered with 413")
    decode_records = serializers.IntegerField(help_text="more records in a body of POST decode are answered with 413")
    backlog_seconds = serializers.IntegerField(help_text="when told_in_seconds would be more, POST messages gets 503")
    requests_per_minute = serializers.IntegerField(
        help_text="what one key may send; more is answered with 429; 0 is no limit"
    )
    waiting_bytes = serializers.IntegerField(help_text="when more wait to be imported, large bodies get 503")
    sign_ins_per_minute = serializers.IntegerField(help_text="what one address may try; more is answered with 429")
    channels = serializers.IntegerField(help_text="a workspace that has as many gets no new one by POST messages")
    silence_seconds = serializers.IntegerField(help_text="a sender that is silent for longer is answered with 408")
    wait_seconds = serializers.IntegerField(help_text="the longest Prefer: wait")
    waiters = serializers.IntegerField(help_text="how many requests a web process lets wait at a time")
    waited_messages = serializers.IntegerField(help_text="how many messages are added after waiting")
    content_types = serializers.ListField(child=serializers.CharField())
    content_encodings = serializers.ListField(child=serializers.CharField())


def show_rule(rule: Rule, settings: Settings, count: RuleCount | None) -> dict[str, Any]:
    """A rule as the list shows it; one that found nothing has no count."""
    return show(
        RuleSerializer,
        rule,
        severity=SEVERITIES[settings.find_severity(rule)],
        is_on=settings.is_on(rule.code),
        open=count.open if count else 0,
        total=count.total if count else 0,
        latest_at=count.latest if count else None,
    )


class Workspaces(Endpoint):
    """The workspace of a key, what a query or a filter can name in it, how much it holds, and what is allowed."""

    @operation(WorkspaceSerializer, scope=("read", "workspace"))
    def get_workspace(self, request: Request) -> dict[str, Any]:
        """What it is called, and since when it is there."""
        return show(WorkspaceSerializer, self.workspace)

    @operation({201: WorkspaceSerializer}, body=_ACT, scope="workspace")
    def act_on_workspace(self, request: Request) -> dict[str, Any]:
        """Rename or archive it, in the name of the member who made the key: an owner of the workspace today.

        Once it is archived every key of it is refused, this one too: an owner restores it on its settings page.
        """
        key, said = self.key, _ACT.read(request)
        with act_for(request) as person:
            if said["act"] == "rename":
                rename_workspace(workspace=key.workspace, name=said["name"], by=person)
            else:
                archive_workspace(workspace=key.workspace, by=person)
        logger.info("key %s: workspace %s: %s", key.prefix, key.workspace_id, said["act"])
        return show(WorkspaceSerializer, key.workspace)

    @operation({201: WorkspaceSerializer}, body=_MADE, scope="workspace")
    def make_workspace(self, request: Request) -> dict[str, Any]:
        """Make another one, in the name of the member who made the key: an owner of the key's workspace today.

        They own the new one. This key sees nothing of it: its owner makes keys for it on its settings page.
        """
        key, said = self.key, _MADE.read(request)
        with act_for(request) as person:
            workspace = make_workspace(**said, owner=person.user, by=person)
        logger.info("key %s: made workspace %s", key.prefix, workspace.pk)
        return show(WorkspaceSerializer, workspace)

    @listing("Rule", RuleSerializer, "Rules in the order of their codes")
    def list_rules(self, request: Request) -> dict[str, Any]:
        """A page of rules, each with how many findings of it there are."""
        workspace = self.workspace
        key = read_row_key(self, "rules")
        codes = sorted(code for code in RULES if key is None or code > key[0])
        page, cursor = cut_page(self, codes, lambda code: [code], "rules")
        set_so = load_settings(workspace_id=workspace.pk)
        counts = {count.rule.code: count for count in count_by_rule(workspace=workspace)}
        rows = [show_rule(RULES[code], set_so, counts.get(code)) for code in page]
        return {"results": rows, "next": cursor}

    @listing("Channel", ChannelSerializer, "Channels in the order in which they were made")
    def list_channels(self, request: Request) -> dict[str, Any]:
        """A page of channels."""
        page, cursor = walk_by_id(self, list_channels(workspace=self.workspace), "channels")
        return {"results": [show(ChannelSerializer, each) for each in page], "next": cursor}

    @listing("SavedSearch", SavedSearchSerializer, "Saved searches in the order in which they were made")
    def list_searches(self, request: Request) -> dict[str, Any]:
        """A page of the shared searches, and of those of the member who made the key, while that is a member."""
        key = self.key
        maker = find_membership(user=key.created_by, slug=key.workspace.slug) if key.created_by else None
        found = select_saved(workspace=key.workspace, user_id=maker.user_id if maker else None)
        page, cursor = walk_by_id(self, found, "searches")
        return {"results": [show(SavedSearchSerializer, each) for each in page], "next": cursor}

    @operation(FacetsSerializer, parameters=(take_text("q", about="the search language", default=""),))
    @on_replica
    def count_facets(self, request: Request) -> dict[str, Any]:
        """The commonest dialects, acts, senders, receivers, severities and rules of the newest messages it means."""
        key, query = self.key, self.given["q"]
        terms = list(list_terms(read_query(query)))
        found = count_facets(workspace=key.workspace, query=query, may_see_secrets=may_see_secrets(key))
        if found is None:
            raw = next((term for term in terms if term.name == "raw"), None)
            if raw is not None and not may_see_secrets(key):
                detail = "what raw: finds is counted for keys with the scope secrets alone: leave it away"
                raise ProblemError(400, detail, parameter="q", start=raw.start, end=raw.end)
            raise ProblemError(
                503, "counting takes too long: make the query narrower, by time or by agent", retry_after=5
            )
        return show(FacetsSerializer, found)

    @operation(TotalsSerializer)
    @on_replica
    def get_totals(self, request: Request) -> dict[str, Any]:
        """Records by what became of them; messages, conversations, traces, agents and open findings."""
        workspace = self.workspace
        records = fetch(sum_deliveries(workspace=workspace).values_list(*_RECORDS), PATIENCE_MS)
        messages = fetch(sum_messages(workspace=workspace), PATIENCE_MS)
        counts = count_sections(workspace=workspace, names=_LISTS)
        return {
            "records": None if records is None else dict(zip(_RECORDS, (records or [(0,) * 5])[0], strict=True)),
            "messages": None if messages is None else int(sum(messages)),
            **{
                name: {"count": min(count, MAX_COUNTED), "is_exact": count <= MAX_COUNTED}
                for name, count in counts.items()
            },
        }

    @operation(LimitsSerializer, scope=tuple(ApiKey.Scope.values))
    def get_limits(self, request: Request) -> dict[str, Any]:
        """The limits."""
        return {
            **settings.LIMITS,
            "decode_records": MAX_RECORDS,
            "silence_seconds": SILENCE_SECONDS,
            **show_waiting(),
            "content_types": list(FORMS),
            "content_encodings": list(ENCODINGS),
        }
