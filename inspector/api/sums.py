"""GET facets and totals: how the messages that a query means are spread, and how much there is of everything."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.audit.overview import MAX_COUNTED, count_sections
from inspector.browsing.activity import sum_messages
from inspector.database import on_replica
from inspector.intake.selectors import sum_deliveries
from inspector.search.language import list_terms
from inspector.search.refining import COUNTED, Facet, count_facets
from inspector.search.selectors import fetch, read_query

from .endpoints import Endpoint
from .masking import may_see_secrets
from .parameters import Parameter
from .problems import ProblemError
from .shapes import show

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


class FacetsView(Endpoint):
    """How the messages of a query are spread."""

    parameters: ClassVar = {"GET": (Parameter(name="q", about="the search language", default=""),)}

    @extend_schema(operation_id="count_facets", responses=FacetsSerializer)
    @on_replica
    def get(self, request: Request) -> Response:
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
        return Response(
            {
                "facets": [show_facet(facet) for facet in found.facets],
                "counted": found.counted,
                "is_all": found.is_all,
            }
        )


def show_facet(facet: Facet) -> dict[str, Any]:
    """A name with its values."""
    return show(FacetSerializer, facet, values=[show(FacetValueSerializer, each) for each in facet.values])


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


class TotalsView(Endpoint):
    """What everything in the workspace comes to."""

    @extend_schema(operation_id="get_totals", responses=TotalsSerializer)
    @on_replica
    def get(self, request: Request) -> Response:
        """Records by what became of them; messages, conversations, traces, agents and open findings."""
        workspace = self.workspace
        records = fetch(sum_deliveries(workspace=workspace).values_list(*_RECORDS), PATIENCE_MS)
        messages = fetch(sum_messages(workspace=workspace), PATIENCE_MS)
        counts = count_sections(workspace=workspace, names=_LISTS)
        return Response(
            {
                "records": None if records is None else dict(zip(_RECORDS, (records or [(0,) * 5])[0], strict=True)),
                "messages": None if messages is None else int(sum(messages)),
                **{
                    name: {"count": min(count, MAX_COUNTED), "is_exact": count <= MAX_COUNTED}
                    for name, count in counts.items()
                },
            }
        )
