"""Concealing: what is read of a record has no token in it, and is otherwise what the dialect read."""

from __future__ import annotations

import base64
import json
from itertools import pairwise

import dialects
from inspector.intake.concealment import walk_fields
from inspector.intake.readings import IN_CLEAR, conceal_reading, mask_layers, read_with_facts
from inspector.tokens import alias_of

TOKEN = "ghp_" + "a1B2" * 9
OTHER = "ghp_" + "c3D4" * 9
CLOWL = {"clowl": "0.2", "mid": "m", "ts": 1795118400, "p": "REQ", "from": "a", "to": "b", "cid": "c"}


def clowl(**names: object) -> str:
    return json.dumps(CLOWL | {"body": {"t": "x", "d": {}}} | names)


def test_a_reading_without_tokens_is_the_same_one() -> None:
    reading = dialects.read(clowl())
    assert conceal_reading(reading) is reading


def test_ids_that_are_tokens_stay_apart() -> None:
    one, two = (read_with_facts(clowl(mid=token, cid=token), "", "").messages[0] for token in (TOKEN, OTHER))
    assert one.message_id == one.conversation_id == alias_of(TOKEN)
    assert two.message_id == alias_of(OTHER) != one.message_id


def test_the_leaves_still_cover_the_wire_and_the_token_alone_is_masked() -> None:
    wire = f'@a3|f0|c1|S0|d1|T1|k1|t"use {TOKEN} now"#'
    reading = read_with_facts(wire, "", "")
    leaves = [
        each
        for each in walk_fields(reading.fields)
        if not any(child.span[0] == each.span[0] for child in each.children)
    ]
    spans = sorted(each.span for each in leaves)
    assert [spans[0][1], spans[-1][2]] == [0, len(wire)]
    assert all(before[2] == after[1] for before, after in pairwise(spans))
    assert [wire[each.span[1] : each.span[2]] for each in leaves if each.is_masked] == [TOKEN]
    assert mask_layers(reading)[0] == wire.replace(TOKEN, "•" * len(TOKEN))
    assert TOKEN not in json.dumps(reading.to_dict()["fields"])
    assert [(note.code, note.span) for note in reading.notes if note.code == IN_CLEAR.code] == [
        (IN_CLEAR.code, (0, wire.index(TOKEN), wire.index(TOKEN) + len(TOKEN)))
    ]


def test_a_token_that_its_dialect_hides_is_not_in_clear() -> None:
    reading = read_with_facts(clowl(auth=TOKEN), "", "")
    assert not [note for note in reading.notes if note.code == IN_CLEAR.code]
    again = read_with_facts(clowl(auth=TOKEN, body={"t": f"deploy {TOKEN}", "d": {}}), "", "")
    assert TOKEN not in json.dumps([again.to_dict()["fields"], again.to_dict()["messages"]])


def test_what_unpacks_into_a_token_is_masked_in_the_wire() -> None:
    payload = base64.b64encode(f"password={TOKEN[4:]}".encode()).decode()
    wire = f"👽13|@bob|${payload}\n--👽lingua/0.4@agent-lingua"
    reading = read_with_facts(wire, "", "")
    assert payload not in mask_layers(reading)[0]
    assert payload not in json.dumps(reading.to_dict()["fields"])
    assert "password=" in str(reading.messages[0].content), "what is no secret stays readable"


def test_a_token_written_with_escapes_is_hidden_whole() -> None:
    wire = clowl(body={"t": "x", "d": {"q": TOKEN}}).replace("ghp_", "gh\\u0070_")
    reading = read_with_facts(wire, "", "")
    assert TOKEN[4:] not in mask_layers(reading)[0]
    assert TOKEN[4:] not in json.dumps([reading.to_dict()["fields"], reading.to_dict()["messages"]])


def test_what_stands_around_the_text_is_hidden_too() -> None:
    reading = read_with_facts("Good morning.", json.dumps({"sender": TOKEN, "extra": {"x": OTHER}}), "")
    assert reading.messages[0].sender == alias_of(TOKEN)
    assert reading.envelope is not None
    assert (reading.envelope.sender, reading.envelope.extra) == (alias_of(TOKEN), {"x": alias_of(OTHER)})
