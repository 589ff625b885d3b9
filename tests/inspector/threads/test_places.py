"""Places: they sort as the timeline does, say the number of a message, and move little when one comes in late."""

from __future__ import annotations

import json
import random
import struct
from zlib import crc32

import pytest
from django.db import connection

from inspector.threads.models import Conversation, Message
from inspector.threads.placing.numbering import load_places
from inspector.threads.placing.places import Places, Slot, cut_places, read_sizes, write_sizes
from tests.inspector.conftest import Cast, deliver, settle_all


def slot(instant: int, index: int = 0, part: int = 1, source: bytes = b"s" * 32) -> Slot:
    return Slot(instant, source, index, crc32(struct.pack(">qi", index, part), crc32(source) ^ instant))


def timelines() -> dict[str, list[Slot]]:
    chance = random.Random(5)
    return {
        "each at its time": [slot(at) for at in range(5000)],
        "no time at all": [slot(0, at) for at in range(5000)],
        "one record of many parts": [slot(7, 3, part) for part in range(5000)],
        "before 1970 and all alike": [Slot(-5, b"", -1, 1)] * 5000,
        "clumps": sorted(slot(chance.randrange(40), chance.randrange(90)) for _ in range(5000)),
    }


@pytest.mark.parametrize("name", timelines())
def test_places_sort_as_the_timeline_and_say_its_numbers(name: str) -> None:
    found, blocks = cut_places(timelines()[name])
    assert found == sorted(set(found))
    places = Places(read_sizes(write_sizes(blocks)))
    assert places.count == 5000
    assert [places.find_position(place) for place in found] == list(range(5000))
    assert [places.find_place(position) for position in range(5000)] == found
    assert places.find_place(5000) > found[-1]
    assert max(block.size for block in blocks) <= 512


def test_one_that_comes_in_anywhere_moves_its_block_alone() -> None:
    timeline = [slot(2 * at) for at in range(20_000)]
    before = set(cut_places(timeline)[0])
    moved = []
    for at in range(1, 20_000, 97):
        after = cut_places([*timeline[:at], slot(2 * at - 1), *timeline[at:]])[0]
        moved.append(len(set(after) - before))
    assert sum(moved) / len(moved) < 250
    assert max(moved) <= 4 * 512


@pytest.mark.long(seconds=3)
@pytest.mark.django_db
def test_a_late_message_near_the_front_leaves_the_rows_behind_its_block(cast: Cast) -> None:
    def say(number: float, name: str) -> bytes:
        said = {"raw": "So it is.", "id": name, "conversation": "c", "at": 1_795_251_600 + number}
        return json.dumps(said).encode() + b"\n"

    deliver(cast, *(say(number, f"m{number}") for number in range(1200)))
    settle_all()
    conversation = Conversation.objects.get()
    first = load_places(conversation).blocks[0].size
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE before AS SELECT id, ctid AS row FROM threads_message")
        deliver(cast, say(3.5, "late"))
        settle_all()
        cursor.execute(
            "SELECT count(*) FROM threads_message AS now JOIN before ON before.id = now.id WHERE now.ctid <> before.row"
        )
        assert cursor.fetchone()[0] <= first
    places = load_places(Conversation.objects.get())
    assert [places.find_position(one.place) for one in Message.objects.order_by("place")] == list(range(1201))
    assert places.find_position(Message.objects.get(native_id="late").place) == 4
