"""Finding a thing by its id or its name alone, within one workspace: each question is answered from an index."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Left

from inspector.accounts.models import Channel, Workspace
from inspector.browsing.transcripts import mark_sentences
from inspector.intake.identity import digest_texts
from inspector.intake.models import Delivery
from inspector.threads.models import Agent, AgentTotal, Conversation, Message, Trace
from inspector.threads.placing.keys import key_of_id, key_of_trace

MAX_RECENT: Final = 60
MAX_BUSIEST: Final = 300
MAX_FOUND: Final = 5
MAX_NAME_LENGTH: Final = 200


@dataclass(frozen=True, slots=True)
class Found:
    """A thing that was found: its kind (message, conversation, trace, delivery or agent), its id, its name."""

    kind: str
    id: uuid.UUID
    title: str


def find_by_uuid(*, workspace: Workspace, wanted: uuid.UUID) -> list[Found]:
    """What bears this id of ours: a message, all of a record, a conversation, a trace, a delivery or an agent."""
    messages = Message.objects.filter(Q(pk=wanted) | Q(record=wanted), workspace=workspace)
    found = _find_messages(messages.order_by("part"))
    named = Conversation.objects.filter(workspace=workspace, pk=wanted).values_list("pk", "title", "native_id")
    found += [Found("conversation", pk, title or native_id) for pk, title, native_id in named]
    traces = Trace.objects.filter(workspace=workspace, pk=wanted, last_at__isnull=False).values_list("pk", "native_id")
    found += [Found("trace", pk, native_id) for pk, native_id in traces]
    files = Delivery.objects.filter(workspace=workspace, pk=wanted).exclude(state=Delivery.State.STAGED)
    found += [Found("delivery", pk, name or str(pk)) for pk, name in files.values_list("pk", "file_name")]
    agents = Agent.objects.filter(workspace=workspace, pk=wanted).values_list("pk", "name")
    return [*found, *(Found("agent", pk, name) for pk, name in agents)]


def find_by_native_id(*, workspace: Workspace, native_id: str, digest: bytes | None = None) -> list[Found]:
    """The messages, conversations and traces that a wire calls so, the newest first of each.

    Args:
        native_id: as the wire has it, in its own letter case.
        digest: the SHA-256 of a delivery to look for too.
    """
    channels = Channel.objects.filter(workspace=workspace).values("pk")
    messages = Message.objects.shown().filter(workspace=workspace, channel__in=channels, id_key=key_of_id(native_id))
    found = _find_messages(messages.order_by("-order_time", "-pk"))
    key = digest_texts("conversation", native_id)
    named = Conversation.objects.filter(workspace=workspace, channel__in=channels, key=key, last_at__isnull=False)
    for pk, title in named.order_by("-last_at").values_list("pk", "title")[:MAX_FOUND]:
        found.append(Found("conversation", pk, title or native_id))
    traces = Trace.objects.filter(workspace=workspace, key=key_of_trace(native_id), last_at__isnull=False)
    found += [Found("trace", pk, native_id) for pk in traces.values_list("pk", flat=True)[:MAX_FOUND]]
    if digest is not None:
        files = Delivery.objects.filter(workspace=workspace, sha256=digest).exclude(state=Delivery.State.STAGED)
        rows = files.order_by("-received_at").values_list("pk", "file_name")[:MAX_FOUND]
        found += [Found("delivery", pk, name or str(pk)) for pk, name in rows]
    return found


def _find_messages(messages: QuerySet[Message]) -> list[Found]:
    found = messages.defer("body", "words", "atoms")[:MAX_FOUND]
    return [Found("message", pk, said) for pk, said in mark_sentences(found).items()]


def list_recent(*, workspace: Workspace, among: Collection[uuid.UUID] | None = None) -> list[Conversation]:
    """The conversations with the latest activity, of all or among some, with what they are called."""
    rows = Conversation.objects.filter(workspace=workspace, last_at__isnull=False)
    if among is not None:
        rows = rows.filter(pk__in=among)
    return list(rows.only("pk", "title", "subject", "native_id").order_by("-last_at", "-id")[:MAX_RECENT])


def list_busiest(*, workspace: Workspace) -> list[tuple[uuid.UUID, str, str, str]]:
    """The agents that say and are told most: id, what people call each (or empty), its name, and its channel."""
    rows = AgentTotal.objects.filter(workspace=workspace, dialect="").annotate(
        total=F("sent") + F("received"), begun=Left("agent__name", MAX_NAME_LENGTH)
    )
    columns = ("agent", "agent__friendly_name", "begun", "agent__channel__name")
    return list(rows.order_by("-total", "agent").values_list(*columns)[:MAX_BUSIEST])
