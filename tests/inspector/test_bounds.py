"""Nobody fills a disk by a request: a body is bounded, and its sender asked for, before any of it is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.test.client import FakePayload
from django.urls import URLPattern, URLResolver, get_resolver

from inspector.accounts.models import Membership
from inspector.bounds import MAX_BYTES

from .conftest import Cast

BORDER = "border"
FORM = f"multipart/form-data; boundary={BORDER}"
SignIn = Callable[[Membership], Client]


class Unread(FakePayload):
    """A body of which no byte may be taken."""

    def read(self, *_: Any, **__: Any) -> bytes:
        raise AssertionError("the body was read")

    readline = read


def post_unread(client: Client, path: str, *, length: int = 400_000_000, **extra: Any) -> Any:
    """A POST whose body nobody may read; the length is what it declares."""
    return client.generic("POST", path, b"", FORM, **{"CONTENT_LENGTH": str(length), "wsgi.input": Unread()} | extra)


def list_paths(slug: str) -> list[str]:
    """An address of every kind that the URLconf has, with made-up ids."""
    found: list[str] = []

    def walk(patterns: list[URLPattern | URLResolver], before: str) -> None:
        for pattern in patterns:
            route = before + str(pattern.pattern)
            if isinstance(pattern, URLResolver):
                walk(pattern.url_patterns, route)
            else:
                found.append("/" + route)

    walk(get_resolver().url_patterns, "")
    ids = "0" * 8 + "-0000-0000-0000-" + "0" * 12
    return [
        "/".join(
            part if "<" not in part else slug if "slug:slug" in part else ids if "uuid" in part else "1"
            for part in path.split("/")
        )
        for path in found
        if "(" not in path
    ]


def test_no_address_reads_a_large_body_of_a_stranger(cast: Cast) -> None:
    paths = list_paths(cast.workspace.slug)
    assert len(paths) > 100
    answers = {path: post_unread(Client(raise_request_exception=False), path).status_code for path in paths}
    assert {path: status for path, status in answers.items() if not 300 <= status < 500} == {}


@pytest.mark.parametrize("extra", [{"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True}, {}])
def test_a_form_of_more_than_a_mebibyte_or_of_unknown_length_is_refused(cast: Cast, extra: dict[str, Any]) -> None:
    refused = post_unread(Client(), "/sign-in/", length=0 if extra else MAX_BYTES + 1, **extra)
    assert refused.status_code == 413
    assert "too large" in refused.content.decode()


def test_a_form_of_a_mebibyte_is_read(cast: Cast) -> None:
    answer = Client().post("/sign-in/", {"username": "x" * (MAX_BYTES - 5000), "password": "y"})
    assert answer.status_code == 422


def test_an_upload_of_a_viewer_or_of_more_than_the_limit_is_refused_unread(
    cast: Cast, sign_in: SignIn, settings: Any
) -> None:
    path = f"/w/{cast.workspace.slug}/upload/"
    assert post_unread(sign_in(cast.viewer), path).status_code == 403
    assert post_unread(sign_in(cast.stranger), path).status_code == 404
    assert post_unread(sign_in(cast.auditor), path, length=10**12).status_code == 413


def test_an_upload_is_refused_while_too_much_waits(cast: Cast, sign_in: SignIn, settings: Any) -> None:
    client, path = sign_in(cast.auditor), f"/w/{cast.workspace.slug}/upload/"
    settings.LIMITS = settings.LIMITS | {"waiting_bytes": 1_000_000}
    refused = post_unread(client, path, length=2_000_000)
    assert refused.status_code == 503
    assert "Too many bytes wait" in refused.content.decode()
