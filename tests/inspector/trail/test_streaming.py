"""The audit log for a collector: every entry, in a form that others read, going on where it stopped."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from inspector.audit.reviews import bindings
from inspector.management.commands import stream_audit_log
from inspector.trail.models import Deed
from inspector.trail.services import Thing, record_deed

from ..conftest import Cast

pytestmark = pytest.mark.django_db
LINE = re.compile(
    r"<109>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z [!-~]{1,255} inspector - (?P<code>[!-~]{1,32}) "
    r'\[audit@32473(?P<data>(?: [!-~]+="(?:[^"\\\]]|\\["\\\]])*")+)\] \ufeff(?P<told>.*)'
)
HOSTILE = 'a"] b\\\n<109>1 - - - - - -\u202e'


def record(cast: Cast, label: str = "x") -> Deed:
    return record_deed("workspace.renamed", workspace_id=cast.workspace.pk, on=Thing("workspace", "1", label))


def stream(cast: Cast, **options: Any) -> list[str]:
    out = io.StringIO()
    call_command("stream_audit_log", cast.workspace.slug, stdout=out, **options)
    return out.getvalue().split("\n")[:-1]


def test_it_goes_on_where_it_stopped(cast: Cast, tmp_path: Path) -> None:
    state = tmp_path / "place"
    before = Deed.objects.filter(workspace=cast.workspace).count()
    for _ in range(3):
        record(cast)
    told = [json.loads(line) for line in stream(cast, state=state)]
    assert [each["number"] for each in told] == list(range(1, before + 4))
    assert told[-1]["deed"] == "workspace.renamed"
    assert stream(cast, state=state) == []
    record(cast)
    assert [json.loads(line)["number"] for line in stream(cast, state=state)] == [before + 4]
    assert len(stream(cast)) == before + 4, "without a state it begins at 1"


def test_more_than_a_batch_is_written_at_once(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_audit_log, "BATCH", 2)
    for _ in range(7):
        record(cast)
    numbers = [json.loads(line)["number"] for line in stream(cast)]
    assert numbers == list(range(1, numbers[-1] + 1))
    assert len(numbers) >= 7


def test_a_hostile_name_ends_no_line_of_syslog(cast: Cast) -> None:
    record(cast, HOSTILE)
    (line,) = stream(cast, form="syslog")[-1:]
    found = LINE.fullmatch(line)
    assert found is not None, line
    assert found["code"] == "workspace.renamed"
    assert "U+000A" in found["told"]
    assert "\u202e" not in line


def test_what_is_withheld_is_written_once_it_may_be_told(
    cast: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = record(cast)
    record(cast)

    def withhold(**asked: Any) -> Any:
        return bindings.list_told_deeds(**asked).exclude(pk=hidden.pk)

    monkeypatch.setattr(stream_audit_log, "list_told_deeds", withhold)
    first = [json.loads(line)["number"] for line in stream(cast, state=tmp_path / "place")]
    assert hidden.sequence not in first
    monkeypatch.undo()
    assert [json.loads(line)["number"] for line in stream(cast, state=tmp_path / "place")] == [hidden.sequence]


def test_a_state_that_is_none_is_refused(cast: Cast, tmp_path: Path) -> None:
    state = tmp_path / "place"
    for text in ("", "{}", '{"workspace": "another", "after": 1, "withheld": []}'):
        state.write_text(text)
        with pytest.raises(CommandError, match="state in"):
            stream(cast, state=state)
    with pytest.raises(CommandError, match="no workspace"):
        call_command("stream_audit_log", "nobody")
