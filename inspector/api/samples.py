"""Audit samples: the list of them, one with its seed and strata, what it drew, and drawing one."""

from __future__ import annotations

import logging
import uuid
from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.audit.models import AuditSample
from inspector.audit.models.reviews import MAX_NAME_LENGTH
from inspector.audit.reviews.queues import MAX_AT_ONCE, MAX_CRITERIA, MAX_CRITERION_LENGTH
from inspector.audit.samples import MAX_SEED_LENGTH, draw_sample, find_items, find_sample, list_drawn, list_samples

from .authentication import ACT_REFUSALS, act_for
from .bodies import Document, Text, Texts, Whole
from .endpoints import Endpoint
from .paging import CURSOR, LIMIT, cut_keyed, cut_page, page_of, read_place, read_row_key
from .parameters import Choice, Moment, Number
from .shapes import show

logger = logging.getLogger(__name__)

# So many strata stand in an answer; `strata_from` asks for the others.
MAX_STRATA: Final = 500
_DRAWN: Final = "what a sample drew"
_WANTED: Final = Document(
    '{"name": "November", "stratum": "dialect", "wanted": 25}',
    (
        Text(name="name", is_required=True, max_characters=MAX_NAME_LENGTH, about="of the sample and of its queue"),
        Choice(name="stratum", choices=AuditSample.Stratum.values, is_required=True, about="what divides it"),
        Whole(name="wanted", is_required=True, least=1, most=MAX_AT_ONCE, about="how many conversations"),
        Text(name="seed", max_characters=MAX_SEED_LENGTH, about="printed ASCII; a fresh one where it is left out"),
        Moment(name="since", about="only conversations that were active from here on"),
        Moment(name="until", about="only conversations that were active before this"),
        Whole(name="reviewers", default=1, least=1, most=2, about="how many review each conversation"),
        Texts(name="criteria", default=(), most=MAX_CRITERIA, max_characters=MAX_CRITERION_LENGTH, about="the rubric"),
    ),
)


class SampleSerializer(serializers.Serializer[Any]):
    """An audit sample: how it was drawn, so that anybody can draw it again."""

    id = serializers.UUIDField()
    name = serializers.CharField(source="queue.name")
    queue = serializers.UUIDField(source="queue_id", help_text="the queue of reviews that it filled")
    method = serializers.CharField(help_text="by which rules the seed drew")
    seed = serializers.CharField()
    stratum = serializers.ChoiceField(choices=AuditSample.Stratum.values)
    wanted = serializers.IntegerField()
    since = serializers.DateTimeField(allow_null=True)
    until = serializers.DateTimeField(allow_null=True)
    population = serializers.IntegerField(help_text="out of how many it was drawn")
    drawn = serializers.IntegerField()
    unsettled = serializers.IntegerField(help_text="how many of the population were not processed then")
    digest = serializers.CharField(help_text="SHA-256 over the identities that were drawn, in ascending order")
    made_by = serializers.CharField(source="made_by.username")
    made_at = serializers.DateTimeField()


SamplePageSerializer: Final = page_of("Sample", SampleSerializer, "Samples, newest first")


class StratumSerializer(serializers.Serializer[Any]):
    """A stratum of a sample."""

    name = serializers.CharField(allow_blank=True)
    population = serializers.IntegerField()
    drawn = serializers.IntegerField()


class SampleDetailSerializer(SampleSerializer):
    """A sample with its strata, by name."""

    strata = StratumSerializer(many=True, help_text=f"at most {MAX_STRATA}, from `strata_from` on")
    strata_count = serializers.IntegerField()


class DrawnSerializer(serializers.Serializer[Any]):
    """A conversation that was drawn."""

    place = serializers.IntegerField(help_text="in the draw, from 1")
    conversation = serializers.UUIDField(source="conversation_id")
    stratum = serializers.CharField(allow_blank=True)
    identity = serializers.CharField(help_text="SHA-256 of what the log says it is; no id of the database is in it")
    item = serializers.UUIDField(allow_null=True, help_text="its item in the queue of the sample, the latest")


DrawnPageSerializer: Final = page_of("Drawn", DrawnSerializer, "Conversations in the order they were drawn")


class SamplesView(Endpoint):
    """Audit samples."""

    scopes: ClassVar = {"GET": "review", "POST": "sign"}
    parameters: ClassVar = {"GET": (CURSOR, LIMIT)}
    refusals: ClassVar = {"POST": ACT_REFUSALS}

    @extend_schema(operation_id="list_samples", responses=SamplePageSerializer)
    def get(self, request: Request) -> Response:
        """A page of the samples of the workspace."""
        workspace = self.workspace
        found = list_samples(
            workspace=workspace, after=read_place(self.given, workspace), limit=self.given["limit"] + 1
        )
        page, cursor = cut_page(found, self.given, workspace, lambda sample: (sample.made_at, sample.pk))
        return Response({"results": [show_sample(sample) for sample in page], "next": cursor})

    @extend_schema(operation_id="draw_sample", request=_WANTED.schema, responses={201: SampleDetailSerializer})
    def post(self, request: Request) -> Response:
        """Draw one into a queue of its own, in the name of the member who made the key.

        409 where there is no conversation to draw from.
        """
        said = _WANTED.read(request)
        with act_for(request) as person:
            sample = draw_sample(membership=person, **said)
        logger.info("key %s: drew sample %s", self.key.prefix, sample.pk)
        return Response(_show_whole(sample, 0), status=201)


class SampleView(Endpoint):
    """One audit sample."""

    scopes: ClassVar = {"GET": "review"}
    parameters: ClassVar = {
        "GET": (Number(name="strata_from", about="how many strata are passed over", default=0, most=10**9),)
    }

    @extend_schema(operation_id="get_sample", responses=SampleDetailSerializer)
    def get(self, request: Request, sample_id: uuid.UUID) -> Response:
        """How it was drawn, out of how many of each stratum."""
        return Response(_show_whole(self.find(find_sample, sample_id=sample_id), self.given["strata_from"]))


class DrawnView(Endpoint):
    """What an audit sample drew."""

    scopes: ClassVar = {"GET": "review"}
    parameters: ClassVar = {"GET": (CURSOR, LIMIT)}

    @extend_schema(operation_id="list_drawn", responses=DrawnPageSerializer)
    def get(self, request: Request, sample_id: uuid.UUID) -> Response:
        """A page of its conversations."""
        workspace, sample = self.workspace, self.find(find_sample, sample_id=sample_id)
        of = f"{_DRAWN} {sample.pk}"
        key = read_row_key(self.given, workspace, of=of)
        found = list_drawn(sample=sample, after=key[0] if key else 0, limit=self.given["limit"] + 1)
        page, cursor = cut_keyed(found, self.given, workspace, lambda each: [each.place], of=of)
        items = find_items(sample=sample, drawn=page)
        rows = [
            show(
                DrawnSerializer,
                each,
                identity=bytes(each.identity).hex(),
                item=items[each.conversation_id].pk if each.conversation_id in items else None,
            )
            for each in page
        ]
        return Response({"results": rows, "next": cursor})


def show_sample(sample: AuditSample) -> dict[str, Any]:
    """A sample as the list shows it."""
    return show(SampleSerializer, sample, digest=bytes(sample.digest).hex())


def _show_whole(sample: AuditSample, first: int) -> dict[str, Any]:
    return {
        **show_sample(sample),
        "strata": [
            {"name": name, "population": population, "drawn": drawn}
            for name, population, drawn in sample.strata[first : first + MAX_STRATA]
        ],
        "strata_count": len(sample.strata),
    }
