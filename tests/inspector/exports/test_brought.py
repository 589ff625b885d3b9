"""Another package brings a form of exports by an entry point and a storage by its name: both are used as ours are."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from django.urls import reverse

from inspector import pipeline
from inspector.api.exports import FORMS
from inspector.exports.exporters import BROUGHT, Exporter
from inspector.exports.models import Export
from inspector.pages.exports import FORMS as PAGE_FORMS
from tests.test_extending import PROJECT, install, run

from ..conftest import Cast, deliver, resolve_all
from ..intake.processes import process
from .conftest import ask, make, read

SECRET = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3
LOG = (
    b'{"raw":"?Uk/co","from":"ada","conversation":"c2","at":"2026-11-21T09:00:00Z"}\n'
    + json.dumps({"raw": f"take {SECRET} * and go", "from": "ada", "at": "2026-11-21T09:00:01Z"}).encode()
    + b"\n"
)

# Each step through the door that a person or a program has, in a process that has the package.
STORY = """
import json, django
django.setup()
from django.conf import settings
settings.ALLOWED_HOSTS = ["testserver"]
from django.test import Client
from django.urls import reverse
from inspector import pipeline
from inspector.accounts.models import Membership
from inspector.accounts.services import create_api_key
from inspector.exports.models import Export
member = Membership.objects.select_related("user", "workspace").get(workspace__slug="acme", user__username="amir")
browser = Client()
browser.force_login(member.user, backend="inspector.accounts.sessions.SessionBackend")
page = browser.get(reverse("pages:new-export", args=["acme"])).content.decode()
key = create_api_key(workspace=member.workspace, name="e", scopes=["export"])[1]
program = Client(headers={"Authorization": f"Bearer {key}"})
asked = program.post("/api/v1/exports", {"form": "md", "q": ""}, content_type="application/json")
refused = program.post("/api/v1/exports", {"form": "xml", "q": ""}, content_type="application/json")
description = program.get("/api/schema/?format=json")
pipeline.run_due(seconds=60, only=("export",))
export = Export.objects.get()
given = browser.get(reverse("pages:export-file", args=["acme", export.pk]))
shown = browser.get(reverse("pages:export", args=["acme", export.pk])).content.decode()
print("STORY", json.dumps({
    "page": "Markdown: a message a line, for notes and tickets" in page,
    "asked": asked.status_code,
    "refused": refused.status_code,
    "described": '["jsonl", "csv", "html", "md"]' in json.dumps(json.loads(description.content)),
    "state": [export.state, export.failure],
    "name": export.file_name.rpartition(".")[2],
    "type": given["Content-Type"],
    "shown": "Markdown" in shown,
    "file": b"".join(given).decode(),
}))
"""


@pytest.mark.django_db(transaction=True)
def test_a_form_and_a_storage_of_another_package_are_used_as_our_own(cast: Cast, tmp_path: Path) -> None:
    package, files = install(PROJECT / "examples/relay", tmp_path), tmp_path / "files"
    deliver(cast, LOG)
    resolve_all(is_examined=False)
    more = {
        "PYTHONPATH": os.pathsep.join(map(str, [package, PROJECT / "codecs", PROJECT])),
        "OBJECT_STORE": f"inspector_relay.storage.PackedFolder?location={files}",
    }
    with process(tmp_path, "-c", STORY, **more) as child:
        assert child.wait(240) == 0, (tmp_path / "process.log").read_text()[-3000:]
    (line,) = (each for each in (tmp_path / "process.log").read_text().splitlines() if each.startswith("STORY "))
    told = json.loads(line.removeprefix("STORY "))
    file = told.pop("file")
    assert told == {
        "page": True,
        "asked": 202,
        "refused": 422,
        "described": True,
        "state": ["done", ""],
        "name": "md",
        "type": "text/markdown; charset=utf-8",
        "shown": True,
    }
    head, empty, first, second = file.splitlines()
    assert (head, empty) == ("# Messages", "")
    assert first.startswith("- 2026-11-21T09:00:00Z ")
    # Nobody who brings a form sees a secret that the file may not have, and what it escapes is escaped.
    assert SECRET not in file
    assert "•••" in second
    assert r"\*" in second
    kept = [path.read_bytes() for path in files.rglob("*") if path.is_file()]
    assert kept
    assert all(data.startswith(b"\x1f\x8b") for data in kept)


def bring(monkeypatch: pytest.MonkeyPatch, write: Callable[[Mapping[str, Any]], Any], **more: Any) -> None:
    """Let there be a form `txt`."""
    given = {"slug": "txt", "title": "Text", "about": "plain", "media_type": "text/plain", "write": write} | more
    monkeypatch.setitem(BROUGHT, "txt", Exporter(**given))


@pytest.mark.django_db
def test_every_record_is_given_once_between_head_and_end(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    bring(monkeypatch, lambda line: f"{line['raw']}\n".encode(), head=b"<\n", end=b">\n")
    monkeypatch.setattr("inspector.exports.entries.BLOCK_RECORDS", 3)
    deliver(cast, b"".join(b"line %d\n" % number for number in range(10)))
    resolve_all(is_examined=False)
    export = make(ask(cast, form="txt"))
    assert read(export).split(b"\n") == [b"<", *(b"line %d" % number for number in range(10)), b">", b""]
    assert (export.rows, export.messages) == (10, 10)


@pytest.mark.django_db
def test_what_no_reader_of_json_takes_is_given_all_the_same(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[Mapping[str, Any]] = []
    bring(monkeypatch, lambda line: lines.append(line) or b"x")  # type: ignore[func-returns-value]
    odd = b'{"raw":"a","n":%s,"f":1e999,"h":"\\ud800"}\n{"raw":"%s"}\n' % (b"9" * 5000, b"\\ud800" * 20)
    deliver(cast, odd + b'{"raw":' + b"[" * 900 + b"]" * 900 + b"}\n")
    resolve_all(is_examined=False)
    export = make(ask(cast, form="txt"))
    assert (export.state, export.failure) == (Export.State.DONE, "")
    assert len(lines) == export.messages == 3


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("write", "part"),
    [
        (lambda line: line["nothing"], "The format Text, which another package brings, failed (KeyError)."),
        (lambda line: line["raw"], "The format Text, which another package brings, failed (TypeError)."),
    ],
    ids=["raises", "no bytes"],
)
def test_a_form_that_fails_ends_the_export_with_a_sentence(
    cast: Cast, auditor: Client, monkeypatch: pytest.MonkeyPatch, write: Any, part: str
) -> None:
    bring(monkeypatch, write)
    deliver(cast, LOG)
    resolve_all(is_examined=False)
    export = make(ask(cast, form="txt"))
    assert (export.state, export.failure, export.pieces) == (Export.State.REFUSED, part, 0)
    assert part in auditor.get(reverse("pages:export", args=["acme", export.pk])).content.decode()


@pytest.mark.django_db
def test_a_form_that_nobody_brings_any_more_is_said_and_its_files_are_still_given(
    cast: Cast, auditor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring(monkeypatch, lambda line: b"x\n")
    deliver(cast, LOG)
    resolve_all(is_examined=False)
    done, waiting = make(ask(cast, form="txt")), ask(cast, form="txt")
    monkeypatch.delitem(BROUGHT, "txt")
    pipeline.run_due(seconds=60, only=("export",))
    waiting.refresh_from_db()
    assert waiting.failure == "The format txt is not there: install the package again that brought it."
    answer = auditor.get(reverse("pages:export-file", args=["acme", done.pk]))
    assert (b"".join(answer), answer["Content-Type"]) == (b"x\nx\n", "application/octet-stream")
    assert auditor.get(reverse("pages:export", args=["acme", done.pk])).status_code == 200
    assert "txt" not in (*FORMS, *dict(PAGE_FORMS))
    with pytest.raises(ValidationError, match="findings are written as CSV or JSON Lines"):
        ask(cast, form="txt", filters={}, has_findings=True)


def test_a_form_of_a_name_that_is_taken_or_cannot_be_one_stops_the_start(tmp_path: Path) -> None:
    named = tmp_path / "twice-1.dist-info"
    named.mkdir()
    (named / "METADATA").write_text("Metadata-Version: 2.1\nName: twice\nVersion: 1\n")
    (tmp_path / "twice.py").write_text(
        "from inspector.exports.exporters import Exporter\n"
        "given = {'title': 'T', 'about': 't', 'media_type': 'text/plain', 'write': lambda line: b''}\n"
        "make = lambda slug: Exporter(slug=slug, **given)\n"
        "CSV, LONG, OTHER = make('csv'), make('much-too-long'), make('other')\n"
    )
    for name, value, part in (
        ("csv", "CSV", "calls itself 'csv', which there is already"),
        ("much-too-long", "LONG", "is no exporter called 'much-too-long', in at most eight"),
        ("another", "OTHER", "is no exporter called 'another'"),
    ):
        (named / "entry_points.txt").write_text(f"[inspector.exporters]\n{name} = twice:{value}\n")
        with pytest.raises(AssertionError, match=part):
            run("-c", "import inspector.exports.exporters", path=[tmp_path, PROJECT / "codecs", PROJECT])
