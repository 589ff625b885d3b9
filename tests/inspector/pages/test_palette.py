"""The palette finds pages, saved searches, conversations, agents and what an id names; nothing of other workspaces."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from inspector.intake.models import Delivery
from inspector.pages.palette import Item, rank_items
from inspector.search.aids import save_search
from inspector.threads.models import Conversation, Message
from tests.inspector.conftest import Cast

from .conftest import page_of

ADDRESS = page_of("palette")


def find(client: Client, typed: str) -> list[dict[str, Any]]:
    response = client.get(ADDRESS, {"q": typed})
    assert response.status_code == 200
    items: list[dict[str, Any]] = response.json()["items"]
    return items


def test_letters_find_pages_searches_conversations_and_agents(viewer: Client, cast: Cast, story: Delivery) -> None:
    save_search(membership=cast.viewer, name="Never answered", query="is:unanswered", is_shared=False)
    assert find(viewer, "ovw")[0] == {
        "title": "Overview",
        "kind": "page",
        "url": page_of("overview"),
    }
    assert find(viewer, "nvr ansd")[0]["kind"] == "saved search"
    assert {"radar", "oscar"} <= {item["title"] for item in find(viewer, "ar") if item["kind"].startswith("agent")}
    kinds = [item["kind"] for item in find(viewer, "")]
    assert kinds[0] == "page"
    assert {"title": "Search for zebra", "kind": "search", "url": "/w/acme/search/?q=zebra"} in find(viewer, "zebra")
    assert "Keyring" not in {item["title"] for item in find(viewer, "keyring")}


def test_agents_rules_and_deliveries_are_places_with_what_tells_them_apart(
    viewer: Client, cast: Cast, story: Delivery
) -> None:
    agent = next(item for item in find(viewer, "radar") if item["title"] == "radar")
    assert agent["kind"] == f"agent in {cast.channel.name}"
    assert {"title": "Exposed secret", "kind": "rule", "url": "/w/acme/findings/?rule=token-in-clear"} in find(
        viewer, "exposed"
    )
    delivery = next(item for item in find(viewer, story.file_name) if item["kind"].startswith("delivery of"))
    assert delivery["url"] == page_of("delivery", story.pk)


def test_an_id_leads_to_what_it_names(viewer: Client, cast: Cast, story: Delivery) -> None:
    message, conversation = Message.objects.get(native_id="m2"), Conversation.objects.get(native_id="story")
    there = page_of("message", message.pk)
    for typed in ("m2", str(message.pk), str(message.record_id)):
        assert find(viewer, typed)[0]["url"] == there, typed
    # By the title that the list of conversations has.
    named = {"title": "search story", "kind": "conversation"}
    for typed in ("story", str(conversation.pk)):
        there = page_of("conversation", conversation.pk)
        assert find(viewer, typed)[0] == named | {"url": there}
    assert story.sha256 is not None
    assert find(viewer, bytes(story.sha256).hex())[0]["url"] == page_of("delivery", story.pk)
    assert find(viewer, "t1")[0]["kind"] == "trace"


def test_a_stranger_finds_nothing_by_its_id(cast: Cast, story: Delivery, sign_in: Any) -> None:
    client = sign_in(cast.stranger)
    message = Message.objects.get(native_id="m2")
    found = client.get(reverse("pages:palette", args=["other"]), {"q": str(message.pk)}).json()["items"]
    assert [item["kind"] for item in found] == ["search"]


@pytest.mark.parametrize(
    ("typed", "first"), [("cv", "Conversations"), ("conv", "Conversations"), ("ag", "Agents"), ("trans", "Translator")]
)
def test_the_best_fit_comes_first(typed: str, first: str) -> None:
    items = [
        Item(title, "page", "")
        for title in ("Traces", "A conversation of vans", "Conversations", "Translator", "Agents")
    ]
    assert rank_items(typed, items)[0].title == first
