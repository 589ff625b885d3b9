"""GET saved searches: shared ones, and ones of the member who made the key."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.accounts.selectors import find_membership
from inspector.search.saved import walk_saved

from .authentication import caller_of
from .endpoints import Endpoint
from .paging import CURSOR, LIMIT, cut_keyed, page_of, read_row_key
from .shapes import show

_SEARCHES: Final = "searches"


class SavedSearchSerializer(serializers.Serializer[Any]):
    """A query that somebody saved under a name."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    query = serializers.CharField(allow_blank=True, help_text="as `q` takes it")
    is_shared = serializers.BooleanField(help_text="false: it is seen by its saver alone")
    saved_by = serializers.CharField()
    created_at = serializers.DateTimeField()


SavedSearchPageSerializer: Final = page_of(
    "SavedSearch",
    SavedSearchSerializer,
    "Saved searches in the order in which they were made",
)


class SearchesView(Endpoint):
    """The searches that are saved in the workspace."""

    scopes: ClassVar = {"GET": "read"}
    parameters: ClassVar = {"GET": (CURSOR, LIMIT)}

    @extend_schema(operation_id="list_searches", responses=SavedSearchPageSerializer)
    def get(self, request: Request) -> Response:
        """A page of the shared searches, and of those of the member who made the key, while that is a member."""
        given, key = self.given, caller_of(request)
        workspace = key.workspace
        maker = find_membership(user=key.created_by, slug=workspace.slug) if key.created_by else None
        place = read_row_key(given, workspace, of=_SEARCHES)
        found = walk_saved(
            workspace=workspace,
            user_id=maker.user_id if maker else None,
            after=uuid.UUID(place[0]) if place else None,
            limit=given["limit"] + 1,
        )
        page, cursor = cut_keyed(found, given, workspace, lambda saved: [str(saved.pk)], of=_SEARCHES)
        rows = [show(SavedSearchSerializer, saved, saved_by=saved.saved_by.get_username()) for saved in page]
        return Response({"results": rows, "next": cursor})
