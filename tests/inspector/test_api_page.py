"""docs/api.md against the API: each curl line is pasted, and what the page names is what there is."""

from __future__ import annotations

import gzip
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from django.test import Client
from django.urls import reverse
from django.urls.resolvers import URLPattern

from inspector.accounts.models import ApiKey
from inspector.accounts.services import create_api_key
from inspector.api.bodies import FORMS
from inspector.api.urls import urlpatterns
from inspector.ledger.sequencing import enter_new
from inspector.threads.models import Agent

from .conftest import Cast, resolve_all

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "api.md").read_text()
README = (ROOT / "README.md").read_text()
BASE: Final = "http://127.0.0.1:8000"


@dataclass
class Call:
    """A curl command taken apart."""

    method: str = "GET"
    url: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    query: dict[str, str] = field(default_factory=dict)


def commands_of(page: str) -> Iterator[tuple[str, str]]:
    """Each curl command of the page's shell blocks, with the text that is fed to it."""
    for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL):
        text = block.replace("\\\n", " ")
        heredoc = re.search(r" <<'END'\n(.*?)\nEND\n", text, re.DOTALL)
        lines = (text[: heredoc.start()] if heredoc else text).splitlines()
        commands = [line for line in lines if "curl " in line]
        for command in commands:
            yield command, f"{heredoc[1]}\n" if heredoc and command == commands[-1] else ""


def take_apart(command: str, fed: str, variables: dict[str, str]) -> Call:
    """A curl command as a call; only the options that the page uses are known."""
    before, _, command = command.rpartition("curl ")
    data = fed.encode()
    if zipped := re.fullmatch(r"gzip -c (\S+) \| ", before):
        data = gzip.compress((ROOT / zipped[1]).read_bytes())
    else:
        assert not before, before
    words = iter(re.sub(r"\$(\w+)", lambda found: variables[found[1]], word) for word in shlex.split(command))
    call = Call()
    is_get = False
    for word in words:
        if word in ("-sS", "-G"):
            is_get = is_get or word == "-G"
            continue
        if word == "-H":
            name, _, value = next(words).partition(": ")
            call.headers[name] = value
        elif word == "-X":
            call.method = next(words)
        elif word == "--data-urlencode" or (word == "-d" and is_get):
            name, _, value = next(words).partition("=")
            call.query[name] = value
        elif word in ("-d", "--data-binary"):
            call.method, given = "POST", next(words)
            if word == "-d":
                # curl reads a file where the data begins with @, so -d of nSLIP would fail when pasted.
                assert not given.startswith("@"), given
            call.body = given.encode()
            if given.startswith("@"):
                call.body = data if given == "@-" else (ROOT / given[1:]).read_bytes()
        else:
            assert word.startswith(BASE), word
            call.url = word.removeprefix(BASE)
    return call


def send(client: Client, call: Call) -> Any:
    headers = dict(call.headers)
    if call.method == "GET":
        return client.get(call.url, call.query or None, headers=headers)
    kind = headers.pop("Content-Type", "")
    return client.generic(call.method, call.url, call.body, content_type=kind, headers=headers)


@pytest.mark.django_db
def test_every_curl_line_of_the_page_and_the_readme_works_when_pasted(client: Client, cast: Cast) -> None:
    # Deliveries are withdrawn in the name of whoever made the key.
    made_by, scopes = cast.owner.user, list(ApiKey.Scope.values)
    token = create_api_key(workspace=cast.workspace, name="page", scopes=scopes, created_by=made_by)[1]
    variables = {"URL": BASE, "KEY": token}
    sent = 0
    for command, fed in (*commands_of(README), *commands_of(PAGE)):
        if "$MESSAGE" in command:
            resolve_all()
            found = client.get(reverse("api:messages"), headers={"Authorization": f"Bearer {token}"}).json()["results"]
            first = next(message for message in found if message["dialect"] == "clowl")
            variables |= {"MESSAGE": first["id"], "CONVERSATION": first["conversation"], "RECORD": first["record"]}
            enter_new(at_once=True)
            variables["AGENT"] = str(Agent.objects.get(name=first["sender"]).pk)
        call = take_apart(command, fed, variables)
        answer = send(client, call)
        is_sent = call.method == "POST" and call.url == "/api/v1/messages"
        is_asked = "Content-Type" in command and "/v1/exports" in command
        is_made = call.method == "POST" and any(
            name in call.url for name in ("/withdrawal", "/samples", "/comments", "/workspace")
        )
        expected = 202 if is_sent or is_asked else 201 if is_made else 206 if "Range" in call.headers else 200
        assert answer.status_code == expected, (command, answer.getvalue())
        if is_asked:
            variables["EXPORT"] = answer.json()["id"]
            resolve_all()
        if is_sent:
            receipt = answer.json()
            assert receipt["received"] == receipt["stored"] + receipt["duplicate"] + receipt["quarantined"] > 0
            variables["DELIVERY"] = receipt["delivery"]
        sent += 1
    assert sent > 10


@pytest.mark.django_db
def test_the_search_of_the_page_finds_what_it_asks_for(client: Client, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    data = (ROOT / "samples" / "1-invoice-run.jsonl").read_bytes()
    client.post(reverse("api:messages"), data, content_type="application/x-ndjson", headers=headers)
    resolve_all()
    (query,) = re.findall(r"/api/v1/messages\".*--data-urlencode 'q=([^']+)'", PAGE)
    found = client.get(reverse("api:messages"), {"q": query}, headers=headers).json()["results"]
    assert [message["performative"] for message in found] == ["failure"]


@pytest.mark.django_db
def test_the_receipt_of_the_page_has_the_names_of_a_receipt(client: Client, token: str) -> None:
    answer = client.post(
        reverse("api:messages"), "hello", content_type="text/plain", headers={"Authorization": f"Bearer {token}"}
    )
    printed = re.search(r"```json\n(\{.*?\})\n```", PAGE, re.DOTALL)
    assert printed
    assert re.findall(r'^  "(\w+)":', printed[1], re.MULTILINE) == list(answer.json())


def test_the_page_names_every_endpoint_and_content_type() -> None:
    paths = [str(found.pattern) for found in urlpatterns if isinstance(found, URLPattern)]
    assert len(paths) == len(urlpatterns)
    plain = re.sub(r"\{id\}|\$[A-Z]+", "ID", PAGE)
    missing = [path for path in paths if "/api/" + re.sub(r"<[^>]+>", "ID", path) not in plain]
    assert not missing
    named = re.findall(r"^\| (`application/[^|]+|`text/[^|]+) \|", PAGE, re.MULTILINE)
    assert {kind for cell in named for kind in re.findall(r"`([^`]+)`", cell)} == set(FORMS)
    # The names of the search language stand on its own page, which tests/inspector/search/test_page.py holds.
    assert "](search.md)" in PAGE


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("status", "change"),
    [
        (401, {"Authorization": "Bearer nonsense"}),
        (415, {"Content-Type": "image/png"}),
        (422, {"Idempotency-Key": "k" * 256}),
        (400, {"body": ""}),
    ],
    ids=["no-key", "image", "long-idempotency-key", "empty"],
)
def test_a_status_of_the_page_is_answered_as_a_problem(
    client: Client, token: str, status: int, change: dict[str, str]
) -> None:
    assert f"| {status} |" in PAGE
    headers = {"Authorization": f"Bearer {token}", **change}
    body, kind = headers.pop("body", "hello"), headers.pop("Content-Type", "text/plain")
    answer = client.generic("POST", reverse("api:messages"), body, content_type=kind, headers=headers)
    assert answer.status_code == status
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["detail"]
