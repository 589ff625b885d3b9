"""Secrets planted through every door are found nowhere by whoever may not see them (R18), and everywhere by the law.

Thirty-odd tokens of all shapes stand in all dialects, in every field, in payloads, ids, names, malformed records, file
names and refused requests. Every address of the URLconf is asked as a viewer and with a key that may read, and what
comes back is searched for each of them: as it is, in small letters, in hexadecimal, in Base64.
"""

from __future__ import annotations

import base64
import io
import json
import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.db import connection
from django.test import Client

from inspector.accounts.models import Membership
from inspector.accounts.services import create_api_key
from inspector.audit.models import Finding
from inspector.intake.models import Delivery, Record, Sighting
from inspector.logs import LineFormatter
from inspector.threads import tracing
from inspector.threads.models import Agent, Conversation, Fact, Message, Trace, TreeGroup
from inspector.threads.resolving import resolver as resolving_blocks

from .conftest import Cast, resolve_all
from .exports.conftest import ask, make, read
from .test_access import ROUTES, fill

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def spell(seed: str, length: int, letters: str = _DIGITS) -> str:
    """Characters that look random and are the same each time; no two seeds share a stretch of them."""
    number = int.from_bytes(seed.encode() * 7) * 0x9E3779B97F4A7C15F39CC0605CEDC8341082276BF3A27251F86C6A11D0C18E95
    found = ""
    while len(found) < length:
        number, digit = divmod(number, len(letters))
        found += letters[digit]
        number ^= number >> 7
    return found


_CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


def jwt(seed: str) -> str:
    return f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOi{spell(seed, 22)}.{spell(seed[::-1] + 's', 40)}"


def pem(seed: str) -> str:
    return f"-----BEGIN PRIVATE KEY-----\n{spell(seed, 64)}\n{spell(seed + 'k', 40)}\n-----END PRIVATE KEY-----"


# By where each is planted.
CANARIES: dict[str, str] = {
    "clowl-auth": spell("clowl-auth", 30),
    "clowl-task": "AKIA" + spell("clowl-task", 16, _CAPITALS),
    "clowl-details": spell("clowl-details", 24),
    "clowl-mid": "ghp_" + spell("clowl-mid", 36),
    "clowl-cid": "glpat-" + spell("clowl-cid", 22),
    "clowl-sender": "sk-proj-" + spell("clowl-sender", 32) + "7",
    "clowl-trace": "hf_" + spell("clowl-trace", 34),
    "clowl-escaped": "xoxb-" + spell("clowl-escaped", 30),
    "clowl-pem": pem("clowl-pem"),
    "clowl-inline": jwt("clowl-inline"),
    "clowl-unknown-key": "ASIA" + spell("clowl-unknown-key", 16, _CAPITALS),
    "clowl-error": spell("clowl-error", 20) + "1",
    "nslip-text": jwt("nslip-text"),
    "nslip-url": spell("nslip-url", 18),
    "nslip-password": spell("nslip-password", 12) + "!9",
    "nslip-malformed": "npm_" + spell("nslip-malformed", 36),
    "lambda-json": "AIza" + spell("lambda-json", 35),
    "lambda-block": "github_pat_" + spell("lambda-block", 40),
    "lambda-definition": "whsec_" + spell("lambda-definition", 30),
    "lingua-text": "sk_live_" + spell("lingua-text", 24),
    "lingua-base64": spell("lingua-base64", 28) + "3",
    "lingua-json": jwt("lingua-json"),
    "lingua-zlib": "gho_" + spell("lingua-zlib", 36),
    "lingua-target": "ghs_" + spell("lingua-target", 36),
    "prose-bearer": spell("prose-bearer", 40) + "4",
    "prose-basic": spell("prose-basic", 30) + "5==",
    "prose-camel": "ya29." + spell("prose-camel", 40),
    "prose-cut": spell("prose-cut", 32),
    "prose-long": spell("prose-long", 32),
    "prose-cookie": spell("prose-cookie", 32),
    "envelope-from": "xoxp-" + spell("envelope-from", 30),
    "envelope-to": "dop_v1_" + spell("envelope-to", 64, "0123456789abcdef"),
    "envelope-conversation": "LTAI" + spell("envelope-conversation", 20),
    "envelope-id": "rk_live_" + spell("envelope-id", 24),
    "envelope-extra": "pypi-" + spell("envelope-extra", 60),
    "quarantined": "ghu_" + spell("quarantined", 36),
    "file-name": "ghr_" + spell("file-name", 36),
    "idempotency-key": "AKIA" + spell("idempotency-key", 16, _CAPITALS),
    "wrong-key": "aci_" + spell("wrong-key", 12, "0123456789abcdef") + "_" + spell("wrong-k", 64, "0123456789abcdef"),
    "refused-body": "ghp_" + spell("refused-body", 36),
    "refused-parameter": "ghp_" + spell("refused-parameter", 36),
    "channel": "glpat-" + spell("channel", 22).lower(),
}
FOOT = "\n--👽lingua/0.4@agent-lingua"
PLAIN_TEXTS = ("clowl-auth", "clowl-details", "clowl-error", "nslip-url", "nslip-password", "lingua-base64")


def clowl(number: int, **names: Any) -> dict[str, Any]:
    return {
        "clowl": "0.2",
        "mid": f"m{number}",
        "ts": 1795118400 + number,
        "p": "REQ",
        "from": "oscar",
        "to": "radar",
        "cid": "canaries",
        "body": {"t": f"task{number}", "d": {}},
    } | names


def lingua(kind: str, payload: bytes) -> str:
    return f"👽13|@bob|{kind}{base64.b64encode(payload).decode()}{FOOT}"


def make_log() -> Iterator[dict[str, Any]]:
    """The lines of the log: messages of CLowl, and other wires in envelopes."""
    said = CANARIES
    yield clowl(1, auth=said["clowl-auth"])
    yield clowl(2, body={"t": f"deploy_{said['clowl-task']}", "d": {"password": said["clowl-details"]}})
    yield clowl(3, mid=said["clowl-mid"], tid=said["clowl-trace"])
    yield clowl(4, pid=said["clowl-mid"], p="DONE", **{"from": "radar", "to": said["clowl-sender"]})
    yield clowl(5, cid=said["clowl-cid"], **{"from": said["clowl-sender"]})
    yield clowl(6, body={"t": "x", "d": {"note": said["clowl-pem"], "again": "ok"}})
    yield clowl(7, ctx={"inline": f"use {said['clowl-inline']} there"})
    yield clowl(8, **{said["clowl-unknown-key"]: {"a": said["clowl-unknown-key"]}})
    yield clowl(
        9, p="ERR", body={"t": "x", "d": {"code": "E002", "msg": f"Authorization: Bearer {said['clowl-error']}"}}
    )
    for number, wire in enumerate(
        (
            f'@a3|f0|c1|S0|d1|T1|k1|t"use {said["nslip-text"]} now"#',
            f'@a3|f1|c1|S1|d0|T2|k1|t"postgres://ada:{said["nslip-url"]}@db/x"#',
            f'@a3|f1|c1|S1|d0|T3|k1|t"db_password={said["nslip-password"]}"#',
            f'@a3|f0|c1|S0|d1|T4|t"{said["nslip-malformed"]} never closed',
            json.dumps({"type": "lambda", "version": "1.5.0", "lambda": "?Uk/co", "english": said["lambda-json"]}),
            f"!It{{key:{said['lambda-block']}}}",
            f'{{def:{{zz:"{said["lambda-definition"]}"}}}}',
            "?Uk/zz",
            f"👽13|@bob|'{said['lingua-text']}'{FOOT}",
            lingua("$", f"client_secret={said['lingua-base64']}".encode()),
            lingua("$j:", json.dumps({"token": said["lingua-json"]}).encode()),
            f"👽13|@{said['lingua-target']}|$aGk={FOOT}",
            f"curl -H 'Authorization: Bearer {said['prose-bearer']}' https://example.org",
            f"Authorization: Basic {said['prose-basic']}",
            f"It gave me {said['prose-camel']}, keep it.",
            f'{{"a":1,"password":"{said["prose-cut"]}',
            f'It says client_secret="{"a1 " * 100}{said["prose-long"]}" and goes on.',
            f'{{"Cookie": "sessionid={said["prose-cookie"]}; theme=dark"}}',
        )
    ):
        yield {"raw": wire, "from": "ada", "to": "bob", "conversation": f"c{number // 4}", "at": 1795118500 + number}
    yield {
        "raw": "Good morning.",
        "from": said["envelope-from"],
        "to": [said["envelope-to"]],
        "conversation": said["envelope-conversation"],
        "id": said["envelope-id"],
        "secret note": said["envelope-extra"],
        "at": 1795119000,
    }


def forms_of(canary: str) -> Iterator[bytes]:
    """What would give a canary away: its middle, so that a cut at an end hides nothing."""
    core = (
        re.sub(r"^[A-Za-z0-9]{2,6}[_.-](?:[a-z0-9]+[_-])?", "", canary).strip().split("\n")[-2 if "\n" in canary else 0]
    )
    core = core.split(".")[1][10:] if core.startswith("eyJ") else core[:26]
    yield core.encode()
    yield core.lower().encode()
    yield core.encode().hex().encode()
    yield core.encode().hex(" ").encode()
    for shift in range(3):
        coded = base64.b64encode(b"\0" * shift + core.encode())
        yield coded[4 : -4 - len(coded) % 4]


FORMS = {name: tuple(forms_of(canary)) for name, canary in CANARIES.items()}


class Finds(defaultdict[str, set[str]]):
    """Where canaries were found, by their name."""

    def __init__(self) -> None:
        super().__init__(set)

    def look(self, place: str, content: bytes | str) -> None:
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        for name, forms in FORMS.items():
            if any(form in data for form in forms):
                self[name].add(place)


@pytest.fixture
def log_lines() -> Iterator[io.StringIO]:
    """Everything that is logged, at DEBUG, as the product writes it."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(LineFormatter())
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield written
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch, settings: Any) -> list[str]:
    """What is sent to the broker, where there is one."""
    from celery import Celery

    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1"
    sent: list[str] = []
    monkeypatch.setattr(Celery, "send_task", lambda self, *args, **names: sent.append(repr((args, names))))
    return sent


def plant(cast: Cast, sign_in: Callable[[Membership], Client], token: str, tmp_path: Any, finds: Finds) -> None:
    """Send every canary in, by the API, by the upload page and by the import command; refusals are looked through."""
    lines = [json.dumps(line, ensure_ascii=False) for line in make_log()]
    escaped = clowl(10, body={"t": "say", "d": {"q": CANARIES["clowl-escaped"]}})
    lines.append(json.dumps(escaped).replace("xoxb-", "xo\\u0078b-"))
    third = len(lines) // 3
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": CANARIES["idempotency-key"]}
    kind = "application/x-ndjson"
    answer = Client().post("/api/v1/messages", "\n".join(lines[:third]), content_type=kind, headers=headers)
    assert answer.status_code == 202
    finds.look("receipt", answer.content)
    auditor = sign_in(cast.auditor)
    body = "\n".join(lines[third : 2 * third]).encode() + f"\n\xff {CANARIES['quarantined']}\n".encode("latin-1")
    upload = SimpleUploadedFile(f"dump-{CANARIES['file-name']}.jsonl", body)
    staged = auditor.post("/w/acme/upload/", {"logs": [upload], "channel": "main", "has_prefixes": "on"})
    finds.look("staged upload", auditor.get(staged["Location"]).content)
    said = dict.fromkeys(("dialect", "start", "first", "second"), "")
    said |= {"channel": "main", "has_prefixes": "on", "who": "unknown", "action": "load"}
    loaded = auditor.post(staged["Location"], said)
    assert loaded.status_code == 302
    path = tmp_path / "import.jsonl"
    path.write_text("\n".join(lines[2 * third :]))
    call_command("import_log", str(path), workspace="acme", stdout=io.StringIO(), stderr=io.StringIO())
    for address, content, its_headers in (
        ("/api/v1/messages", "{}", {"Authorization": f"Bearer {CANARIES['wrong-key']}"}),
        (f"/api/v1/messages?channel={CANARIES['channel']}%20/", "{}", headers),
        ("/api/v1/messages", CANARIES["refused-body"], headers),
        ("/api/v1/exports", json.dumps({CANARIES["refused-body"]: 1, "form": CANARIES["refused-body"]}), headers),
        ("/api/v1/encode", json.dumps({"dialect": CANARIES["refused-body"], "messages": []}), headers),
    ):
        kinds = "application/json"
        finds.look(
            f"refusal of {address}", Client().post(address, content, content_type=kinds, headers=its_headers).content
        )
    wrong = quote(CANARIES["refused-parameter"])
    for address in (f"/api/v1/messages?limit={wrong}", f"/api/v1/messages?{wrong}=1", f"/api/v1/messages?q={wrong}:("):
        answer = Client().get(address, headers=headers)
        finds.look(f"refusal of {address[:25]}", answer.content)


def test_planted_secrets_are_found_nowhere(
    cast: Cast,
    sign_in: Callable[[Membership], Client],
    token: str,
    tmp_path: Any,
    log_lines: io.StringIO,
    sent: list[str],
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
    record_property: Callable[[str, object], None],
) -> None:
    finds = Finds()
    # However short a conversation or a trace is, it is of several blocks or parts, which are looked through as well.
    monkeypatch.setattr(resolving_blocks, "SPACING", 1)
    monkeypatch.setattr(resolving_blocks, "MAX_MESSAGES", 1)
    monkeypatch.setattr(tracing, "MAX_PART", 0)
    with django_capture_on_commit_callbacks(execute=True):
        plant(cast, sign_in, token, tmp_path, finds)
    resolve_all()
    viewer = sign_in(cast.viewer)
    asked = look_at_addresses(cast, viewer, token, finds)
    look_at_searches(viewer, token, finds)
    for form in ("jsonl", "csv"):
        finds.look(f"export as {form}", read(make(ask(cast, membership=cast.viewer, is_masked=True, form=form))))
    columns = look_at_columns(finds)
    finds.look("logs", log_lines.getvalue())
    assert "inspector" in log_lines.getvalue()
    assert sent
    finds.look("broker", "\n".join(sent))
    # `bench.proofs` prints these.
    record_property("planted secrets", len(CANARIES))
    record_property("answers looked through", asked)
    record_property("columns", columns)
    record_property("failures", sum(len(places) for places in finds.values()))
    assert not finds, json.dumps({name: sorted(places)[:12] for name, places in finds.items()}, indent=1)
    # The bytes themselves are what was sent: whoever may have them has all of it.
    kept = b"\n".join(bytes(source) for source in Record.objects.values_list("source", flat=True))
    assert all(CANARIES[name].encode() in kept for name in ("clowl-task", "nslip-text", "quarantined"))
    assert Finding.objects.filter(rule="token-in-clear").count() >= 15


# Evidence: what arrived, exactly as it arrived.
EXACT = {("intake_record", "envelope"), ("intake_record", "facts"), ("intake_sighting", "envelope")}


def look_at_columns(finds: Finds) -> int:
    """Every column of text, of all tables: the index of the search, titles, job rows, what is kept of refusals."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
            " AND data_type IN ('text', 'character varying', 'ARRAY', 'tsvector', 'jsonb', 'json')"
        )
        columns = set(cursor.fetchall()) - EXACT
        assert ("threads_message", "words") in columns
        for table, column in sorted(columns):
            cursor.execute(f'SELECT "{column}"::text FROM "{table}" WHERE "{column}" IS NOT NULL')
            for (value,) in cursor.fetchall():
                finds.look(f"{table}.{column}", value)
        assert Fact.objects.exists()
        # JSON as bytes.
        for value, extra in Fact.objects.values_list("value", "extra"):
            finds.look("threads_fact", bytes(value).decode() + bytes(extra or b"").decode())
    # Of traces in parts what these add up to is among the columns.
    assert ("threads_treegroup", "data") in columns
    assert TreeGroup.objects.filter(kind=TreeGroup.Kind.PART).exists()
    return len(columns) + 1


def look_at_addresses(cast: Cast, viewer: Client, token: str, finds: Finds) -> int:
    """Ask for every address of the URLconf, for each thing it may name; how many answers were looked through."""
    things: dict[str, list[Any]] = {
        "message_id": list(Message.objects.values_list("pk", flat=True)),
        "conversation_id": list(Conversation.objects.values_list("pk", flat=True)),
        "agent_id": list(Agent.objects.values_list("pk", flat=True)),
        "trace_id": list(Trace.objects.values_list("pk", flat=True)),
        "record_id": list(Record.objects.values_list("pk", flat=True)),
        "delivery_id": list(Delivery.objects.values_list("pk", flat=True)),
        "sighting_id": list(Sighting.objects.filter(outcome="quarantined").values_list("pk", flat=True)),
        "finding_id": list(Finding.objects.values_list("pk", flat=True)),
        "export_id": [make(ask(cast, membership=cast.viewer, is_masked=True)).pk],
        "channel_id": [cast.channel.pk],
        "key_id": [create_api_key(workspace=cast.workspace, name="k", scopes=["read"])[0].pk],
        "membership_id": [cast.viewer.pk],
    }
    assert all(things.values()), {name for name, ids in things.items() if not ids}
    asked = 0
    for name, route in ROUTES:
        if name.endswith(("stream", "events")) or "sign-" in name:
            continue
        names = [found.rpartition(":")[2] for found in re.findall(r"<([^>]+)>", route)]
        many = next((things[each] for each in names if each in things), [None])
        for pk in many:
            given = {
                each: str(pk) if each in things else FIXED.get(each, "00000000-0000-0000-0000-000000000000")
                for each in names
            }
            address = fill(route, given)
            headers = {"Authorization": f"Bearer {token}"} if name.startswith("api:") else {}
            client = Client() if headers else viewer
            for query in QUERIES.get(name, ("",)):
                response = client.get(address + query, headers=headers)
                content = b"".join(response.streaming_content) if response.streaming else response.content
                finds.look(name, content + str(response.headers).encode())
                asked += 1
    return asked


FIXED = {"slug": "acme", "workspace": "acme", "workspace_slug": "acme", "dialect": "nslip", "token": "x"}
QUERIES = {"pages:message": ("", "?as=prose", "?as=lambda-lang", "?view=hex", "?view=escaped&span=0.0.40")}


def look_at_searches(viewer: Client, token: str, finds: Finds) -> None:
    """What a search gives that asks for something near the secrets, and whether it tells that one is there."""
    for query in ("raw:password", "raw:Bearer", "", "severity:warning", "rule:token-in-clear"):
        finds.look("search", viewer.get("/w/acme/search/", {"q": query}).content)
        headers = {"Authorization": f"Bearer {token}"}
        for address in ("messages", "facets"):
            finds.look(f"api {address}", Client().get(f"/api/v1/{address}", {"q": query}, headers=headers).content)
    for name, canary in CANARIES.items():
        if "\n" not in canary and name not in ("quarantined", "file-name"):
            answer = Client().get("/api/v1/messages", {"q": f'raw:"{canary}"'}, headers=headers)
            if answer.status_code == 200 and answer.json()["results"]:
                finds[name].add("raw: tells that it is there")
