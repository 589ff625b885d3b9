"""The message page says why its English is as it is, and what it was told as before; the API says it too."""

from __future__ import annotations

import json

import pytest
from django.test import Client
from django.urls import reverse

from inspector.intake.models import Door
from inspector.pages.evidence import find_difference
from inspector.threads.models import Message
from tests.inspector.conftest import take_in

from ..conftest import Cast
from .conftest import page_of, shows

pytestmark = pytest.mark.django_db


def line(native_id: str, raw: str, second: int, **names: object) -> bytes:
    said = {"raw": raw, "id": native_id, "at": f"2026-11-21T09:00:{second:02d}Z", "conversation": "lab", "from": "ada"}
    return json.dumps(said | names).encode() + b"\n"


def read(client: Client, message: Message) -> str:
    answer = client.get(page_of("message", message.pk))
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_the_page_and_the_api_tell_what_was_said_before_and_why(cast: Cast, viewer: Client, token: str) -> None:
    take_in(cast, line("ask", "?Uk/fp", 5, dialect="lambda_lang"), door=Door.API, is_examined=False)
    before = Message.objects.get().english
    definition = '{def:fp="<b>flash\u202e point</b>"}!ta'
    take_in(cast, line("def", definition, 1, dialect="lambda_lang"), door=Door.API, is_examined=False)
    asked, defined = Message.objects.get(native_id="ask"), Message.objects.get(native_id="def")
    page = read(viewer, asked)
    shows(
        page,
        "Why this English",
        f'href="{page_of("message", defined.pk)}">message 1</a>',
        "in the sentence",
        "History of wordings",
        "Reworded because an earlier message arrived late",
        "<del>unknown",
    )
    assert "<b>" not in page.split("History of wordings")[1]
    assert "\u202e" not in page
    assert "History of wordings" not in read(viewer, defined)
    url = reverse("api:message", args=[asked.pk])
    answer = Client().get(url, headers={"Authorization": f"Bearer {token}"}).json()
    (wording,) = answer["wordings"]
    assert (wording["english"], wording["cause"], wording["because_of"]) == (before, "late", str(defined.pk))
    assert wording["until"] == answer["told_at"]


def test_why_a_message_stands_without_the_parent_that_it_names_is_said(cast: Cast, viewer: Client) -> None:
    take_in(cast, line("me", "I said so.", 1, parent="me"), door=Door.API, is_examined=False)
    assert "it names itself as the message it answers" in read(viewer, Message.objects.get())


def test_a_difference_is_found_word_by_word() -> None:
    assert find_difference("ada asks about fp now", "ada asks about flash point now") == [
        ("same", "ada asks about "),
        ("gone", "fp"),
        ("new", "flash point"),
        ("same", " now"),
    ]
    assert find_difference("a" * 5000, "b") == [("gone", "a" * 5000), ("new", "b")]
