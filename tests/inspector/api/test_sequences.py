"""GET the sequence of a conversation: its windows hold every message once, and their counts add up."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client
from django.urls import reverse

from inspector.threads.models import Conversation
from tests.inspector.conftest import Cast, deliver, settle_all


def test_windows_end_to_end_hold_every_message_once(client: Client, cast: Cast, token: str) -> None:
    lines = [
        {
            "clowl": "0.2",
            "mid": f"m{number}",
            "ts": 1795251600 + number,
            "pid": "lost" if number == 7 else None,
            "p": "REQ" if number % 9 == 0 else "PROG",
            "from": "ink",
            "to": "muse",
            "cid": "c",
            "body": {"t": "draft", "d": {"pct": number}},
        }
        for number in range(70)
    ]
    deliver(cast, *(json.dumps(line).encode() + b"\n" for line in lines))
    settle_all(is_examined=False)
    address = reverse("api:sequence", args=[Conversation.objects.get(native_id="c").pk])

    def ask(**query: object) -> Any:
        response = client.get(address, query, headers={"Authorization": f"Bearer {token}"})
        assert response.status_code == 200, response.content
        return response.json()

    # The older name of a place leads through it, too.
    for alike, name, key in (
        ("together", "cursor", "next"),
        ("apart", "cursor", "next"),
        ("apart", "offset", "next_offset"),
    ):
        arrows: list[dict[str, Any]] = []
        place: Any = ""
        while place is not None:
            window = ask(**({name: place} if place else {}), limit=32, alike=alike)
            arrows += window["arrows"]
            place = window[key]
        messages = [message for arrow in arrows for message in arrow["messages"]]
        assert len(messages) == len(set(messages)) == 70
        assert sum(arrow["count"] for arrow in arrows) == window["message_count"] == 70
        assert (len(arrows) == 70) == (alike == "apart")
        assert [arrow["missing_id"] for arrow in arrows if arrow["is_parent_missing"]] == ["lost"]
    assert window["agents"] == ["ink", "muse"]
    refused = client.get(address, {"limit": 201}, headers={"Authorization": f"Bearer {token}"})
    assert refused.status_code == 400
    cursor = ask(limit=32)["next"]
    both = client.get(address, {"offset": 3, "cursor": cursor}, headers={"Authorization": f"Bearer {token}"})
    assert (both.status_code, both.json()["parameter"]) == (400, "offset")
    whole = reverse("api:conversation", args=[Conversation.objects.get(native_id="c").pk])
    page = client.get(whole, {"offset": 64, "limit": 4}, headers={"Authorization": f"Bearer {token}"}).json()
    assert [message["native_id"] for message in page["messages"]] == ["m64", "m65", "m66", "m67"]
    assert page["next_offset"] == 68
