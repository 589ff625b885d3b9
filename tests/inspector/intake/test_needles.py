"""Needles: what is found is what a look at every place finds, and many cost no more than few."""

from __future__ import annotations

import json
import random
import string
import time
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from inspector.intake.concealment import HEAD, Needles
from inspector.intake.readings import read_with_facts

# Few letters, so that needles begin alike and stand within each other.
TEXTS = st.text(alphabet="ab", max_size=60)
NEEDLES = st.lists(st.text(alphabet="ab", min_size=HEAD, max_size=12), max_size=20)


def look_everywhere(needles: list[str], text: str) -> Iterator[tuple[int, int, str]]:
    at = 0
    while at < len(text):
        here = max((each for each in needles if text.startswith(each, at)), key=len, default="")
        if here:
            yield at, at + len(here), here
        at += len(here) or 1


@given(NEEDLES, TEXTS)
def test_all_are_found_and_the_longest_wins(needles: list[str], text: str) -> None:
    assert list(Needles(needles).find_whole(text)) == list(look_everywhere(needles, text))


@given(NEEDLES.filter(bool), TEXTS)
def test_a_place_is_told_how_far_it_agrees(needles: list[str], text: str) -> None:
    sought = Needles(needles)
    for at in sought.find_places(text):
        length, needle = sought.match(text, at)
        assert text[at:].startswith(needle[:length])
        assert length == max(
            next((n for n in range(len(each), 0, -1) if text.startswith(each[:n], at)), 0) for each in needles
        )


def test_needles_longer_than_a_look_are_told_apart() -> None:
    long = "x" * 2000
    sought = Needles([long + "a", long + "bc", long])
    assert [needle[2000:] for *_, needle in sought.find_whole(f"{long}bc {long}a {long}bd")] == ["bc", "a", ""]


def say_tokens(count: int) -> str:
    chance = random.Random(count)
    tokens = ("AKIA" + "".join(chance.choices(string.ascii_uppercase + string.digits, k=16)) for _ in range(count))
    names = {"clowl": "0.2", "mid": "m", "ts": 1795118400, "p": "INF", "from": "a", "to": "b", "cid": "c"}
    return json.dumps(names | {"body": {"t": "x", "d": {f"k{place}": token for place, token in enumerate(tokens)}}})


def test_a_record_full_of_tokens_is_read_in_time_that_grows_with_it() -> None:
    spent = []
    for count in (250, 2000):
        start = time.process_time()
        reading = read_with_facts(say_tokens(count), "", "")
        assert reading.fields
        assert "AKIA" not in json.dumps([reading.to_dict()["messages"], reading.to_dict()["fields"]])
        spent.append(time.process_time() - start)
    # Eight times as many; were each looked for in each, it would be sixty-four times as long.
    assert spent[1] < 24 * spent[0]
