"""What the API allows."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from .ingest import FORMS


class NothingView(APIView):
    """Every address below /api/ that is none: a problem document like any other refusal."""

    authentication_classes = ()
    permission_classes = ()
    schema = None

    def initial(self, request: Request, *args: Any, **names: Any) -> None:
        """Refuse whatever the method.

        Raises:
            NotFound: always.
        """
        raise NotFound("there is no such address; GET /api/schema/ lists those that are")


class LimitsSerializer(serializers.Serializer[Any]):
    """The limits in bytes, and what is understood."""

    record_bytes = serializers.IntegerField()
    delivery_bytes = serializers.IntegerField()
    content_types = serializers.ListField(child=serializers.CharField())
    content_encodings = serializers.ListField(child=serializers.CharField())


class LimitsView(APIView):
    """The limits that refusals name."""

    scopes: Final = {"GET": "ingest"}

    @extend_schema(responses=LimitsSerializer)
    def get(self, request: Request) -> Response:
        """The limits."""
        return Response(
            {
                "record_bytes": settings.LIMITS["record_bytes"],
                "delivery_bytes": settings.LIMITS["delivery_bytes"],
                "content_types": list(FORMS),
                "content_encodings": ["identity", "gzip", "zstd"],
            }
        )
