"""What is exported and delivered again, into another workspace or the same, is the same records."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from inspector.accounts.models import Workspace
from inspector.intake.framing import take_stream
from inspector.intake.models import Delivery, Door, Record
from inspector.intake.services import open_delivery
from inspector.threads.models import Message
from tests.inspector.conftest import Cast, deliver, resolve_all
from tests.inspector.test_hostile import CASES

from .conftest import ask, make, read

pytestmark = pytest.mark.django_db

SAMPLES = Path(__file__).parents[3] / "samples"
HOSTILE = {name: wire for name, (wire, outcome) in CASES.items() if outcome != "quarantined"}


def take(workspace: Workspace, data: bytes) -> Delivery:
    channel = workspace.channels.get(name="main")
    delivery = open_delivery(workspace=workspace, channel=channel, door=Door.IMPORT, file_name="again.jsonl")
    return take_stream(delivery=delivery, chunks=[data])


def said(workspace: Workspace) -> list[tuple[str, str]]:
    """The wires of a workspace that became messages, each with its envelope, in the order of the timeline."""
    rows = Record.objects.filter(workspace=workspace, is_quarantined=False)
    rows = rows.order_by("order_time", "order_source", "order_index")
    return [(record.wire_text, record.envelope) for record in rows]


def wires(workspace: Workspace) -> list[str]:
    return sorted(wire for wire, _ in said(workspace))


def test_the_sample_story_comes_back_with_equal_wires_and_envelopes(cast: Cast) -> None:
    for path in sorted(SAMPLES.glob("[0-9]-*")):
        deliver(cast, path.read_bytes(), name=path.name)
    resolve_all(is_examined=False)
    export = make(ask(cast))
    assert export.rows == Record.objects.filter(is_quarantined=False).count()
    assert export.messages == export.listed == Message.objects.count()
    other = cast.stranger.workspace
    delivery = take(other, read(export))
    assert (delivery.received, delivery.quarantined) == (export.rows, 0)
    resolve_all(is_examined=False)
    assert wires(other) == wires(cast.workspace)
    assert sorted(said(other)) == sorted(said(cast.workspace))
    for workspace in (other, cast.workspace):
        sealed = Message.objects.filter(workspace=workspace, is_sealed=True)
        assert sealed.count() == 2
    # Into the same workspace nothing new comes of what has an id or a time.
    again = take(cast.workspace, read(export))
    by_place = Record.objects.filter(workspace=cast.workspace, rule__gt=2, is_quarantined=False)
    assert again.stored == by_place.exclude(sightings__delivery=again).count()


def test_every_hostile_record_comes_back_as_it_was(cast: Cast) -> None:
    """All in one file: what is written of one must not become part of its neighbours."""
    for number, wire in enumerate(HOSTILE.values()):
        deliver(cast, wire + b"\nstill here\n", name=f"{number}.jsonl")
    resolve_all(is_examined=False)
    export = make(ask(cast))
    data = read(export)
    assert data.isascii()
    assert data.count(b"\n") == export.rows > len(HOSTILE)
    for line in data.splitlines():
        json.loads(line, parse_constant=refuse)
    delivery = take(cast.stranger.workspace, data)
    assert delivery.quarantined == 0
    there, here = Counter(wires(cast.stranger.workspace)), Counter(wires(cast.workspace))
    assert [wire[:200] for wire in here - there] == []
    assert [wire[:200] for wire in there - here] == []


def refuse(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")
