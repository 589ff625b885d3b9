"""The trail: who did what, when and on what, newest first; read by keys with the scope for it."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.audit.trail import list_told_deeds
from inspector.database import make_storable
from inspector.trail.deeds import DEEDS
from inspector.trail.models import Deed
from inspector.trail.selectors import Wanted

from .endpoints import Endpoint
from .paging import CURSOR, LIMIT, cut_keyed, page_of, read_row_key
from .parameters import Choice, Id, Moment, Parameter
from .problems import ProblemError
from .shapes import show

MAX_WORDS_LENGTH: Final = 200
_OF: Final = "the trail of a program"
_ACTOR: Final = "a kind, a colon and an id, as member:7 or api-key:…; of the product and its operator the kind alone"


class DoerSerializer(serializers.Serializer[Any]):
    """Who did it, by the name of that time."""

    kind = serializers.ChoiceField(choices=Deed.Actor.values)
    id = serializers.CharField(allow_blank=True)
    name = serializers.CharField(allow_blank=True)


class ThingSerializer(serializers.Serializer[Any]):
    """What it was done to, by the name of that time."""

    kind = serializers.CharField()
    id = serializers.CharField(allow_blank=True)
    label = serializers.CharField(allow_blank=True)  # type: ignore[assignment]  # the thing's own word


class DeedSerializer(serializers.Serializer[Any]):
    """An action; docs/trail.md lists the kinds."""

    number = serializers.IntegerField(source="sequence", help_text="in its workspace, by the database, without a gap")
    at = serializers.DateTimeField()
    actor = DoerSerializer()
    address = serializers.CharField(allow_blank=True, help_text="that the request came from; empty outside of one")
    deed = serializers.CharField(source="code", help_text="the code of its kind")
    told = serializers.CharField(help_text="the action in a sentence")
    object = ThingSerializer(allow_null=True)
    about = serializers.ListField(child=serializers.UUIDField(), help_text="the ids of all that it concerns")
    details = serializers.DictField()


DeedPageSerializer: Final = page_of("Deed", DeedSerializer, "Actions, newest first")


class TrailView(Endpoint):
    """What people and programs did."""

    scopes: ClassVar = {"GET": "trail"}
    parameters: ClassVar = {
        "GET": (
            Parameter(name="q", about="filter by words", default="", max_characters=MAX_WORDS_LENGTH),
            CURSOR,
            LIMIT,
            Parameter(name="actor", about=f"filter by actor: {_ACTOR}", default="", max_characters=100),
            Choice(name="deed", about="filter by kind", choices=sorted(DEEDS), default=""),
            Id(name="about", about="filter by the id of an object"),
            Moment(name="since", about="filter: from this time on"),
            Moment(name="until", about="filter: before this time"),
        )
    }

    @extend_schema(operation_id="list_deeds", responses=DeedPageSerializer)
    def get(self, request: Request) -> Response:
        """A page of the trail. What would tell of a review that is still blind is missing, and so is its number."""
        workspace, given = self.workspace, self.given
        wanted = Wanted(
            actor=_read_actor(given["actor"]),
            code=given["deed"],
            about=given["about"],
            words=make_storable(given["q"].strip()),
            since=given["since"],
            until=given["until"],
        )
        rows = list_told_deeds(workspace_id=workspace.pk, wanted=wanted)
        key = read_row_key(given, workspace, of=_OF)
        if key is not None:
            rows = rows.filter(sequence__lt=key[0])
        found = list(rows[: given["limit"] + 1])
        page, cursor = cut_keyed(found, given, workspace, lambda deed: [deed.sequence], of=_OF)
        return Response({"results": [show_deed(deed) for deed in page], "next": cursor})


def _read_actor(text: str) -> tuple[str, str] | None:
    if not text:
        return None
    kind, _, actor_id = text.partition(":")
    if kind not in Deed.Actor.values or "\x00" in actor_id:
        raise ProblemError(400, f"actor is {_ACTOR}", parameter="actor", allowed=_ACTOR)
    return kind, make_storable(actor_id)


def show_deed(deed: Deed) -> dict[str, Any]:
    """A deed as the list shows it."""
    thing = {"kind": deed.object_kind, "id": deed.object_id, "label": deed.object_label}
    return show(
        DeedSerializer,
        deed,
        actor={"kind": deed.actor_kind, "id": deed.actor_id, "name": deed.actor_name},
        object=thing if deed.object_kind else None,
    )
