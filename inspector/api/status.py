"""The API's manual in a browser, what it allows, and what it says where there is nothing."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.urls import Resolver404, resolve
from django.views.generic import TemplateView
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.accounts.models import ApiKey

from .bodies import ENCODINGS, SILENCE_SECONDS
from .decoding import MAX_RECORDS
from .endpoints import Endpoint
from .ingest import FORMS
from .waiting import show_waiting


class NothingView(Endpoint):
    """Every address below /api/ that is none: a problem document like any other refusal."""

    authentication_classes = ()
    scopes: ClassVar = {}
    permission_classes = ()
    schema = None  # type: ignore[assignment]  # it is not described

    def initial(self, request: Request, *args: Any, **names: Any) -> None:
        """Refuse whatever the method.

        Raises:
            NotFound: always; it names the address that was probably meant.
        """
        path = request.path
        other = path.rstrip("/") if path.endswith("/") else f"{path}/"
        if _is_address(other):
            raise NotFound(
                f"there is no such address: the one without its last slash is {other}"
                if path.endswith("/")
                else f"there is no such address: the one with a slash at its end is {other}"
            )
        raise NotFound("there is no such address; GET /api/schema/ lists all addresses")


def _is_address(path: str) -> bool:
    try:
        return resolve(path).url_name != "nothing"
    except Resolver404:
        return False


class ManualView(TemplateView):
    """The manual in a browser. It needs no key; what it sends does, and the key stays in the browser's page."""

    template_name = "api/manual.html"


class LimitsSerializer(serializers.Serializer[Any]):
    """The limits, and what is understood. Bytes are counted before and after unpacking."""

    record_bytes = serializers.IntegerField(help_text="a longer record is quarantined")
    delivery_bytes = serializers.IntegerField(help_text="a longer body of POST messages is answered with 413")
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


class LimitsView(Endpoint):
    """The limits that refusals name: for every key, whatever it may do."""

    scopes: ClassVar = {"GET": tuple(ApiKey.Scope.values)}

    @extend_schema(operation_id="get_limits", responses=LimitsSerializer)
    def get(self, request: Request) -> Response:
        """The limits."""
        return Response(
            {
                **settings.LIMITS,
                "decode_records": MAX_RECORDS,
                "silence_seconds": SILENCE_SECONDS,
                **show_waiting(),
                "content_types": list(FORMS),
                "content_encodings": list(ENCODINGS),
            }
        )
