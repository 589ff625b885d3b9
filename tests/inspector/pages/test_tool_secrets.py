"""A secret in the arguments of a tool: found and masked, whatever carries the call."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from django.test import Client
from django.urls import reverse

from inspector.audit.models import Finding
from inspector.threads.models import Conversation, Message

from ..conftest import Cast, deliver, settle_all

pytestmark = pytest.mark.django_db

SECRET: Final = "ghp_" + "a1B2" * 9
GIVEN: Final = {"repo": "shop", "note": f"use {SECRET}"}


def attribute(name: str, value: str) -> dict[str, Any]:
    return {"key": name, "value": {"stringValue": value}}


SPAN: Final = {
    "traceId": "8c2f61d07be94a1f9d3e5a7706c1b24e",
    "spanId": "0000000000000001",
    "name": "execute_tool push",
    "startTimeUnixNano": "1795162500000000000",
    "endTimeUnixNano": "1795162501000000000",
    "attributes": [
        attribute("gen_ai.operation.name", "execute_tool"),
        attribute("gen_ai.tool.name", "push"),
        attribute("gen_ai.tool.call.arguments", json.dumps(GIVEN)),
    ],
}
CALLS: Final[dict[str, dict[str, Any]]] = {
    "mcp": {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "push", "arguments": GIVEN}},
    "a2a": {
        "jsonrpc": "2.0",
        "id": "p-1",
        "method": "message/send",
        "params": {
            "message": {
                "kind": "message",
                "role": "user",
                "messageId": "m-1",
                "contextId": "c",
                "parts": [{"kind": "data", "data": {"tool": "push", "arguments": GIVEN}}],
            }
        },
    },
    "otel": {"resourceSpans": [{"scopeSpans": [{"spans": [SPAN]}]}]},
    "chat of OpenAI": {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "push", "arguments": json.dumps(GIVEN)}}],
    },
    "chat of Anthropic": {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t1", "name": "push", "input": GIVEN}],
    },
}


@pytest.mark.parametrize("carrier", CALLS)
def test_a_secret_in_a_tools_arguments_is_found_and_masked(carrier: str, cast: Cast, auditor: Client) -> None:
    deliver(cast, json.dumps(CALLS[carrier]).encode(), name="calls.jsonl")
    settle_all()
    (message,) = Message.objects.filter(english__contains="push").exclude(performative="other")[:1]
    assert message.read_in == carrier.partition(" ")[0]
    assert Finding.objects.filter(rule="token-in-clear", holds=True, record=message.record_id).exists()
    shown = {
        "message": auditor.get(reverse("pages:message", args=["acme", message.pk])),
        "conversation": auditor.get(
            reverse("pages:conversation", args=["acme", Conversation.objects.get(pk=message.conversation_id).pk])
        ),
        "search": auditor.get(reverse("pages:search", args=["acme"]), {"q": "shop"}),
    }
    for name, answer in shown.items():
        text = answer.content.decode()
        assert answer.status_code == 200
        assert SECRET not in text, name
        assert SECRET[4:] not in text, name
    assert "••••••" in shown["message"].content.decode()
