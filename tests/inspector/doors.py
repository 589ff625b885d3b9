"""The three doors that a log comes in by, each as it is used: a program posts, a person uploads, a shell imports."""

from __future__ import annotations

import html
import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from inspector.accounts.models import Membership
from inspector.accounts.sessions import BACKEND

DOORS: Final = ("post", "upload", "import")
# What a program declares a body as; a file's name promises nothing.
_CONTENT_TYPES: Final = {
    ".jsonl": "application/x-ndjson",
    ".json": "application/json",
    ".log": "text/plain",
    ".zip": "application/zip",
}


@dataclass(frozen=True)
class Way:
    """A door, and who comes by it; `token` is a key of their workspace, and `folder` is where their files lie."""

    name: str
    person: Membership
    token: str
    folder: Path

    def send(self, body: bytes, name: str = "x.jsonl", *, channel: str = "main") -> str:
        """Bring a log to the door. Why it was refused, in the words of the door; nothing where it was taken."""
        by_door = {"post": self._post, "upload": self._upload, "import": self._import}
        return by_door[self.name](body, name, channel)

    def _post(self, body: bytes, name: str, channel: str) -> str:
        headers = {"Authorization": f"Bearer {self.token}", "X-Channel": channel}
        plain = name.removesuffix(".gz")
        if plain != name:
            headers["Content-Encoding"] = "gzip"
        kind = _CONTENT_TYPES[Path(plain).suffix]
        response = Client().post("/api/v1/messages", body, content_type=kind, headers=headers)
        if response.status_code == 202:
            return ""
        assert 400 <= response.status_code < 500, response.content
        return str(response.json()["detail"])

    def _upload(self, body: bytes, name: str, channel: str) -> str:
        """As a person does it: the beginning is told on a page before anything is loaded."""
        choices = {"channel": channel, "has_prefixes": "on", "who": "unknown"}
        address = reverse("pages:upload", args=[self.person.workspace.slug])
        sent = self._browser.post(address, {"logs": [SimpleUploadedFile(name, body)], **choices})
        if sent.status_code == 400:
            return html.unescape(sent.content.decode())
        assert sent.status_code == 302, sent.content
        told = self._browser.get(sent["Location"])
        assert told.status_code == 200
        assert len(told.content) < 300_000
        loaded = self._browser.post(sent["Location"], {**choices, "action": "load"})
        assert loaded.status_code == 302, loaded.content
        return ""

    @cached_property
    def _browser(self) -> Client:
        browser = Client()
        browser.force_login(self.person.user, backend=BACKEND)
        return browser

    def _import(self, body: bytes, name: str, channel: str) -> str:
        path, said = self.folder / name, io.StringIO()
        path.write_bytes(body)
        options = {"workspace": self.person.workspace.slug, "channel": channel, "verbosity": 0, "stderr": said}
        try:
            call_command("import_log", str(path), **options)
        except CommandError:
            return said.getvalue()
        return ""


def in_turns(inputs: Mapping[str, Any]) -> list[Any]:
    """A door and an input: each comes in by one door, the doors in turns, and by the two others in the long lane."""
    return [
        pytest.param(
            door,
            given,
            id=f"{door}-{name}",
            marks=[pytest.mark.long(seconds=6)] if (at + turn + 1) % len(DOORS) else [],
        )
        for at, (name, given) in enumerate(inputs.items())
        for turn, door in enumerate(DOORS)
    ]
