"""Places: they sort as the timeline does, say the number of a message, and move little when one comes in late."""

from __future__ import annotations

import json
import random

import pytest
from django.db import connection

from inspector.threads.keys import KEY_BYTES, BlockSize, Places, make_place, name_slot
from inspector.threads.models import Conversation, Message
from inspector.threads.timeline import load_places
from tests.inspector.conftest import Cast, take_in


def test_places_sort_as_the_timeline_and_say_its_numbers() -> None:
    chance = random.Random(5)
    blocks = [BlockSize(bytes(KEY_BYTES), 0 if chance.random() < 0.1 else 7)]
    blocks.extend(
        BlockSize(name_slot(instant, b"s" * 32, chance.randrange(90))[:KEY_BYTES], chance.randint(1, 40))
        for instant in sorted(chance.sample(range(-5000, 5000), 300))
    )
    found = [make_place(block.key, rank) for block in blocks for rank in range(block.size)]
    assert found == sorted(set(found))
    places = Places(blocks)
    assert places.count == len(found)
    assert [places.find_position(place) for place in found] == list(range(len(found)))
    assert [places.find_place(position) for position in range(len(found))] == found
    assert places.find_place(len(found)) > found[-1]


@pytest.mark.long(seconds=3)
@pytest.mark.django_db
def test_a_late_message_near_the_front_leaves_the_rows_behind_its_block(cast: Cast) -> None:
    def say(number: float, name: str) -> bytes:
        said = {"raw": "So it is.", "id": name, "conversation": "c", "at": 1_795_251_600 + number}
        return json.dumps(said).encode() + b"\n"

    take_in(cast, *(say(number, f"m{number}") for number in range(2500)))
    # Once it is known as several blocks.
    take_in(cast, say(2600, "last"))
    conversation = Conversation.objects.get()
    blocks = load_places(conversation).blocks
    assert len(blocks) > 2
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE before AS SELECT id, ctid AS row FROM threads_message")
        take_in(cast, say(3.5, "late"))
        cursor.execute(
            "SELECT count(*) FROM threads_message AS now JOIN before ON before.id = now.id WHERE now.ctid <> before.row"
        )
        assert cursor.fetchone()[0] <= blocks[0].size
    places = load_places(Conversation.objects.get())
    assert [places.find_position(one.place) for one in Message.objects.order_by("place")] == list(range(2502))
    assert places.find_position(Message.objects.get(native_id="late").place) == 4
