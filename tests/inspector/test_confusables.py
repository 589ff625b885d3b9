"""Names that can be taken for one another are found, each with its reason; numbered series are left alone."""

from __future__ import annotations

import time

import pytest

from inspector.characters import find_likenesses, find_oddities
from tests.each import for_each


@for_each(
    [
        ("r\u0430dar", "radar", "looks alike, and this one mixes Latin and Cyrillic letters"),
        ("rad\u200bar", "radar", "looks alike, and this one holds a character that cannot be seen (U+200B"),
        ("Radar", "radar", "differs in upper and lower case alone"),
        ("\u0430\u0441\u0435", "ace", "looks alike: U+0430 cyrillic small letter a here, U+0061 latin small letter a"),
        ("p1anner", "planner", "looks alike: U+0031 digit one here"),
        ("rnuse", "muse", "looks alike"),
        ("oskar", "oscar", "differs by one letter"),
        ("planer", "planner", "differs by one letter"),
        ("coordiantor", "coordinator", "differs by two letters that are swapped"),
        ("ｒａｄａｒ", "radar", "looks alike"),
    ]
)
def test_what_can_be_taken_for_another(name: str, other: str, why: str) -> None:
    found = find_likenesses([name, other, "something", "else"])
    assert set(found) == {name, other}
    assert [each.name for each in found[other]] == [name]
    assert found[name][0].why.startswith(why), found[name][0].why


@for_each(
    [
        ("worker-1", "worker-2", "worker-12"),
        ("agent-a", "agent-b"),
        ("taskA", "taskB"),
        ("0", "1", "2"),
        ("ink", "inc"),
        ("radar", "sonar", "oscar", "muse"),
        ("研究", "編集"),
    ]
)
def test_what_people_tell_apart_is_left_alone(names: tuple[str, ...]) -> None:
    assert find_likenesses(names) == {}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("radar ", "begins or ends with a space"),
        ("a\u202eb", "holds a character that cannot be seen (U+202E right-to-left override)"),
        ("r\u0430dar", "mixes Latin and Cyrillic letters (U+0430 cyrillic small letter a among them)"),
    ],
)
def test_what_is_odd_by_itself(name: str, words: str) -> None:
    assert find_oddities(name) == [words]


def test_names_of_good_faith_are_not_odd() -> None:
    for name in ("radar", "agent-7", "Größe", "радар", "研究-bot", "λ-runner 2"[2:], "🤖 helper"):
        assert find_oddities(name) == [], name


def test_thousands_of_names_of_one_series_take_no_time() -> None:
    names = [f"an-agent-of-a-very-large-fleet-{number}-{'x' * (number % 40)}" for number in range(2000)]
    started = time.thread_time()
    find_likenesses(names)
    # A tenth of this where nothing else runs; comparing each with each would take minutes.
    assert time.thread_time() - started < 5
