"""The workspace of a key: what it is called, renaming and archiving it, and making another; and GET rules, channels and
saved searches, what a query or a filter can name in it.
"""

from __future__ import annotations

import logging
from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.accounts.selectors import find_membership, list_channels
from inspector.accounts.workspaces import archive_workspace, make_workspace, rename_workspace
from inspector.audit.findings.examining import Settings, load_settings
from inspector.audit.findings.selectors import RuleCount, count_by_rule
from inspector.audit.rules import RULES, Rule
from inspector.audit.rules.rule import SEVERITIES
from inspector.search.aids import select_saved

from .authentication import ACT_REFUSALS, act_for
from .bodies import Document, Text
from .endpoints import Endpoint
from .paging import CURSOR, LIMIT, cut_keyed, page_of, read_row_key, walk_by_id
from .parameters import Choice
from .shapes import show

logger = logging.getLogger(__name__)

_ACT: Final = Document(
    '{"act": "rename", "name": "Night shift"} or {"act": "archive"}',
    (
        Choice(name="act", choices=("rename", "archive"), is_required=True, about="the action on the workspace"),
        Text(name="name", max_characters=120, about="to rename it to"),
    ),
)
_MADE: Final = Document(
    '{"slug": "night", "name": "Night shift"}',
    (
        Text(name="slug", is_required=True, max_characters=64, about="its part of every address"),
        Text(name="name", is_required=True, max_characters=120, about="as people read it"),
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


class WorkspaceView(Endpoint):
    """The workspace that the key belongs to."""

    scopes: ClassVar = {"GET": ("read", "workspace")}

    @extend_schema(operation_id="get_workspace", responses=WorkspaceSerializer)
    def get(self, request: Request) -> Response:
        """What it is called, and since when it is there."""
        return Response(show(WorkspaceSerializer, self.workspace))


class WorkspaceActsView(Endpoint):
    """An action on the workspace of the key."""

    scopes: ClassVar = {"POST": "workspace"}
    refusals: ClassVar = {"POST": ACT_REFUSALS}

    @extend_schema(operation_id="act_on_workspace", request=_ACT.schema, responses={201: WorkspaceSerializer})
    def post(self, request: Request) -> Response:
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
        return Response(show(WorkspaceSerializer, key.workspace), status=201)


class WorkspacesView(Endpoint):
    """Other workspaces."""

    scopes: ClassVar = {"POST": "workspace"}
    refusals: ClassVar = {"POST": ACT_REFUSALS}

    @extend_schema(operation_id="make_workspace", request=_MADE.schema, responses={201: WorkspaceSerializer})
    def post(self, request: Request) -> Response:
        """Make another one, in the name of the member who made the key: an owner of the key's workspace today.

        They own the new one. This key sees nothing of it: its owner makes keys for it on its settings page.
        """
        key, said = self.key, _MADE.read(request)
        with act_for(request) as person:
            workspace = make_workspace(**said, owner=person.user, by=person)
        logger.info("key %s: made workspace %s", key.prefix, workspace.pk)
        return Response(show(WorkspaceSerializer, workspace), status=201)


_RULES: Final = "rules"


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


RulePageSerializer: Final = page_of("Rule", RuleSerializer, "Rules in the order of their codes")


class RulesView(Endpoint):
    """The rules that look for findings."""

    parameters: ClassVar = {"GET": (CURSOR, LIMIT)}

    @extend_schema(operation_id="list_rules", responses=RulePageSerializer)
    def get(self, request: Request) -> Response:
        """A page of rules, each with how many findings of it there are."""
        given, workspace = self.given, self.workspace
        key = read_row_key(given, workspace, of=_RULES)
        codes = sorted(code for code in RULES if key is None or code > key[0])
        page, cursor = cut_keyed(codes, given, workspace, lambda code: [code], of=_RULES)
        settings = load_settings(workspace_id=workspace.pk)
        counts = {count.rule.code: count for count in count_by_rule(workspace=workspace)}
        return Response(
            {"results": [show_rule(RULES[code], settings, counts.get(code)) for code in page], "next": cursor}
        )


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


class ChannelSerializer(serializers.Serializer[Any]):
    """A channel: a namespace of ids. `channel:` in a query finds what came by it."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    created_at = serializers.DateTimeField()


ChannelPageSerializer: Final = page_of("Channel", ChannelSerializer, "Channels in the order in which they were made")


class ChannelsView(Endpoint):
    """The channels of the workspace."""

    parameters: ClassVar = {"GET": (CURSOR, LIMIT)}

    @extend_schema(operation_id="list_channels", responses=ChannelPageSerializer)
    def get(self, request: Request) -> Response:
        """A page of channels."""
        workspace = self.workspace
        page, cursor = walk_by_id(list_channels(workspace=workspace), self.given, workspace, of="channels")
        return Response({"results": [show(ChannelSerializer, each) for each in page], "next": cursor})


class SavedSearchSerializer(serializers.Serializer[Any]):
    """A query that somebody saved under a name."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    query = serializers.CharField(allow_blank=True, help_text="as `q` takes it")
    is_shared = serializers.BooleanField(help_text="false: it is seen by its saver alone")
    saved_by = serializers.CharField(source="saved_by.username")
    created_at = serializers.DateTimeField()


SavedSearchPageSerializer: Final = page_of(
    "SavedSearch",
    SavedSearchSerializer,
    "Saved searches in the order in which they were made",
)


class SearchesView(Endpoint):
    """The searches that are saved in the workspace."""

    parameters: ClassVar = {"GET": (CURSOR, LIMIT)}

    @extend_schema(operation_id="list_searches", responses=SavedSearchPageSerializer)
    def get(self, request: Request) -> Response:
        """A page of the shared searches, and of those of the member who made the key, while that is a member."""
        key = self.key
        maker = find_membership(user=key.created_by, slug=key.workspace.slug) if key.created_by else None
        found = select_saved(workspace=key.workspace, user_id=maker.user_id if maker else None)
        page, cursor = walk_by_id(found, self.given, key.workspace, of="searches")
        return Response({"results": [show(SavedSearchSerializer, each) for each in page], "next": cursor})
