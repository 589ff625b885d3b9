"""Generated from the URLconf: at every address that names something, a stranger finds nothing."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from typing import Final

import pytest
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from inspector.accounts.models import ApiKey, Membership, Role, Workspace
from inspector.accounts.services import create_api_key
from inspector.accounts.workspaces import invite_member
from inspector.audit.agents import name_agent
from inspector.audit.findings.services import suppress
from inspector.audit.models import Finding, Review, ReviewItem, ReviewQueue
from inspector.audit.reviews.queues import create_queue, fill_queue
from inspector.audit.reviews.verdicts import give_verdict
from inspector.audit.samples import draw_sample
from inspector.intake.models import Delivery, Record, Sighting
from inspector.keyring.models import EscrowedKey
from inspector.keyring.services import add_keys
from inspector.keyring.spellings import PlainKey
from inspector.retention.models import Erasure
from inspector.search.aids import save_search
from inspector.threads.models import Agent, AgentWord, Conversation, Message, Trace

from .conftest import Cast, deliver, resolve_all
from .exports.conftest import ask, make
from .pages.test_access import comment_on

SECRET_KEY = PlainKey(kind=EscrowedKey.Kind.PSK, secret=b"Secret psk.")
METHODS = ("get", "post", "put", "patch", "delete")
# Addresses that belong to nobody: signing in and out, the choice of a workspace, what the API allows, its schema.
OPEN = {
    "pages:sign-in",
    "pages:sign-in-link",
    "pages:invitation",
    "pages:old-link",
    "pages:sign-out",
    "pages:home",
    "account_login",
    "single-sign-on",
    "openid_connect_callback",
    "api:limits",
    "api:schema",
    "api:docs",
    "api:nothing",
    "pages:health",
    # Sums over all workspaces that name none; tests/inspector/api/test_probes.py holds who may see them.
    "healthz",
    "readyz",
    "metrics",
}


def find_routes(resolver: URLResolver, prefix: str = "", space: str = "") -> Iterator[tuple[str, str]]:
    """Every (name, route) of the URLconf."""
    for entry in resolver.url_patterns:
        route = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from find_routes(entry, route, entry.namespace or space)
        elif isinstance(entry, URLPattern):
            yield f"{space}:{entry.name}" if space else str(entry.name), route


# A person's own second factors belong to no workspace: tests/inspector/accounts/test_second_factors.py holds these.
ROUTES = sorted(each for each in find_routes(get_resolver()) if not each[1].startswith("second-factor/"))


@pytest.fixture
def things(cast: Cast) -> dict[str, str]:
    """One of each thing that an address may name, all of the first workspace."""
    delivery = deliver(
        cast, b'{"raw": "Secret plan.", "id": "m1", "conversation": "c1", "from": "Secret agent"}\n\xff broken\n'
    )
    resolve_all()
    key, _ = create_api_key(workspace=cast.workspace, name="k", scopes=["read"])
    conversation = Conversation.objects.get()
    review = give_verdict(
        membership=cast.auditor,
        conversation=conversation,
        verdict=Review.Verdict.FINE,
        comment="Secret comment.",
        seen=bytes(conversation.settled_digest or b""),
    )
    queue = create_queue(membership=cast.owner, name="Secret queue", criteria=["Secret criterion"])
    fill_queue(queue=queue, conversations=[conversation.pk], why="Secret why", membership=cast.owner)
    agent = Agent.objects.get()
    return {
        "slug": cast.workspace.slug,
        "workspace": cast.workspace.slug,
        "workspace_slug": cast.workspace.slug,
        "delivery_id": str(delivery.pk),
        "agent_id": str(agent.pk),
        "word_id": str(name_agent(membership=cast.auditor, agent=agent, friendly_name="Secret name").pk),
        "record_id": str(Record.objects.filter(is_quarantined=False).get().pk),
        "sighting_id": str(Sighting.objects.first().pk),  # type: ignore[union-attr]
        "conversation_id": str(conversation.pk),
        "message_id": str(Message.objects.get().pk),
        "review_id": str(review.pk),
        "queue_id": str(queue.pk),
        "item_id": str(queue.items.get().pk),
        "key_id": str(key.pk),
        "escrowed_key_id": str(add_keys(membership=cast.owner, keys=[SECRET_KEY], label="Secret key.")[0].pk),
        "membership_id": str(cast.viewer.pk),
        "invitation_id": str(invite_member(workspace=cast.workspace, name="secret-guest", role="viewer")[0].pk),
        "trace_id": str(Trace.objects.create(workspace=cast.workspace, key=b"trace", native_id="Secret trace").pk),
        "sample_id": str(draw_sample(membership=cast.owner, name="Secret sample", stratum="dialect", wanted=1).pk),
        "comment_id": str(comment_on(cast, Message.objects.get(), "Secret words.").pk),
        "finding_id": str(make_finding(Message.objects.get()).pk),
        "suppression_id": str(
            suppress(membership=cast.auditor, rule="circle", conversation=None, sender="a", reason="Secret reason.").pk
        ),
        "saved_id": str(save_search(membership=cast.owner, name="Secret search", query="a", is_shared=True).pk),
        "export_id": str(make(ask(cast, title="Secret export")).pk),
        "channel_id": str(cast.channel.pk),
        "erasure_id": str(Erasure.objects.create(workspace=cast.workspace, kind="age", reason="Secret reason.").pk),
        "dialect": "nslip",
        "token": "x",
    }


def make_finding(message: Message) -> Finding:
    return Finding.objects.create(
        workspace=message.workspace,
        channel=message.channel,
        conversation=message.conversation,
        record=message.record,
        part=message.part,
        rule="circle",
        key=b"key",
        severity=3,
        text="Secret finding.",
        at=message.order_time,
        version="1",
    )


def fill(route: str, things: dict[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        name = found[1].rpartition(":")[2]
        assert name in things, f"the cast has no {name}: add one, so that {route} is tested"
        return things[name]

    return "/" + re.sub(r"<([^>]+)>", value, route)


def test_the_urlconf_has_what_is_tested() -> None:
    assert len(ROUTES) > 10
    assert {name.partition(":")[0] for name, _ in ROUTES} >= {"api", "pages"}


@pytest.mark.django_db
@pytest.mark.parametrize("space", ["api", "pages"])
def test_a_stranger_finds_nothing(
    space: str, things: dict[str, str], cast: Cast, sign_in: Callable[[Membership], Client]
) -> None:
    _, token = create_api_key(workspace=cast.stranger.workspace, name="k", scopes=list(ApiKey.Scope.values))
    routes = [each for each in ROUTES if each[0] not in OPEN and each[0].startswith("pages:") == (space == "pages")]
    assert len(routes) > 20
    before = snapshot(cast)
    for name, route in routes:
        strangers: list[tuple[Client, dict[str, str]]] = [
            (sign_in(cast.stranger), {}),
            (Client(), {"Authorization": f"Bearer {token}"}),
            (Client(), {}),
        ]
        # What is asked at one address changes nothing for the next.
        with transaction.atomic():
            for method in METHODS:
                for client, headers in strangers:
                    look_as_a_stranger(client, headers, method, (name, route), fill(route, things))
            assert snapshot(cast) == before, route
            transaction.set_rollback(True)


# What shows a stranger the stranger's own workspace, which is empty.
OWN: Final = {
    *("api:messages", "api:conversations", "api:agents", "api:traces", "api:comments", "api:findings", "api:samples"),
    *("api:trail", "api:review-queues", "api:live", "api:exports", "api:deliveries", "api:channels", "api:rules"),
    *("api:searches", "api:facets", "api:totals", "api:workspace", "api:erasures"),
}


def look_as_a_stranger(client: Client, headers: dict[str, str], method: str, named: tuple[str, str], url: str) -> None:
    """Ask as somebody of another workspace, as a program of theirs, or as nobody: there is nothing to be seen."""
    name, route = named
    response = getattr(client, method)(url, headers=headers)
    content = b"".join(response.streaming_content) if response.streaming else response.content
    assert b"Secret" not in content, f"{method} {url}"
    allowed = {302, 400, 401, 403, 404, 405, 415} | ({200} if name in OWN and headers else set())
    assert response.status_code in allowed, f"{method} {url}: {response.status_code}"
    if name.startswith("pages:") and "<" in route and "sessionid" in client.cookies:
        assert response.status_code in {404, 405}, f"{method} {url}"
    if response.status_code == 302:
        assert "sign-in" in response["Location"], f"{method} {url}"


def snapshot(cast: Cast) -> tuple[object, ...]:
    return (
        Review.objects.count(),
        ReviewItem.objects.exclude(holder=None).count(),
        ReviewQueue.objects.count(),
        AgentWord.objects.filter(undone_at=None).count(),
        Delivery.objects.count(),
        ApiKey.objects.filter(workspace=cast.workspace, revoked_at=None).count(),
        EscrowedKey.objects.filter(workspace=cast.workspace).count(),
        Membership.objects.filter(workspace=cast.workspace).count(),
        Membership.objects.filter(workspace=cast.workspace, role=Role.OWNER).count(),
        *Workspace.objects.order_by("pk").values_list("slug", "name", "archived_at"),
    )


@pytest.mark.django_db
def test_ids_that_do_not_exist_are_404_alike(cast: Cast, things: dict[str, str]) -> None:
    _, token = create_api_key(workspace=cast.workspace, name="all", scopes=list(ApiKey.Scope.values))
    headers = {"Authorization": f"Bearer {token}"}
    for name, route in ROUTES:
        if name.startswith("api:") and "<" in route:
            url = fill(route, {key: str(uuid.uuid4()) for key in things})
            # What takes a POST alone is refused for that, whatever the id.
            assert Client().get(url, headers=headers).status_code in {404, 405}
