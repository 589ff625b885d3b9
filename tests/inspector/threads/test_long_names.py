"""Names of any length: no index refuses them, and what is measured of them is theirs alone."""

from __future__ import annotations

import json
import random

import pytest

from inspector.search.selectors import find_messages
from inspector.threads.models import Message
from inspector.threads.tasks import measure_agent

from ..conftest import Cast, take_in

pytestmark = pytest.mark.django_db


def test_names_longer_than_an_entry_of_an_index(cast: Cast) -> None:
    # Nothing in them repeats, so that PostgreSQL cannot pack them; two differ only far behind what is indexed.
    chance = random.Random(9)
    signs = [chr(point) for point in range(0x4E00, 0x9FA5)]
    start = "".join(chance.choice(signs) for _ in range(6000))
    names = [start + "a", start + "b", "short"]
    lines = [
        {"clowl": "0.2", "mid": f"m{n}", "ts": 1795248000 + n, "p": "REQ", "from": sender, "to": receiver, "cid": "c",
         "tid": start, "body": {"t": start, "d": {}}}
        for n, (sender, receiver) in enumerate([(names[0], names[1]), (names[1], names[2]), (names[0], names[1])])
    ]  # fmt: skip
    take_in(cast, "\n".join(json.dumps(line) for line in lines).encode())
    assert Message.objects.exclude(english="").count() == 3
    where = cast.channel.pk
    measured = measure_agent(workspace=cast.workspace, names=[(where, names[0])])
    assert (measured.asked_by.asked, measured.asked_of.asked) == (2, 0)
    other = measure_agent(workspace=cast.workspace, names=[(where, names[1])])
    assert (other.asked_by.asked, other.asked_of.asked) == (1, 2)
    assert len(find_messages(workspace=cast.workspace, query="from:short OR to:short")) == 1
