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

    for alike in ("together", "apart"):
        arrows: list[dict[str, Any]] = []
        cursor: str | None = ""
        while cursor is not None:
            window = ask(cursor=cursor, limit=32, alike=alike)
            arrows += window["arrows"]
            cursor = window["next"]
        messages = [message for arrow in arrows for message in arrow["messages"]]
        assert len(messages) == len(set(messages)) == 70
        assert sum(arrow["count"] for arrow in arrows) == window["message_count"] == 70
        assert (len(arrows) == 70) == (alike == "apart")
        assert [arrow["missing_id"] for arrow in arrows if arrow["is_parent_missing"]] == ["lost"]
    assert window["agents"] == ["ink", "muse"]
    refused = client.get(address, {"limit": 201}, headers={"Authorization": f"Bearer {token}"})
    assert refused.status_code == 400
