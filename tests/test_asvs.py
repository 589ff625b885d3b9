"""ASVS 5.0, levels 1 and 2: the table has each requirement once, and what a line names as its proof is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "asvs.md").read_text()
# By section, the level of each requirement of the standard, 5.0.0: 1.2 has five of level 1, four of 2 and one of 3.
LEVELS = {
    "1.1": "22", "1.2": "1111122223", "1.3": "112222222223", "1.4": "222", "1.5": "123",
    "2.1": "122", "2.2": "112", "2.3": "12223", "2.4": "23",
    "3.2": "113", "3.3": "12223", "3.4": "11222233", "3.5": "11122333", "3.7": "22333",
    "4.1": "12233", "4.2": "23333", "4.3": "22", "4.4": "1222",
    "5.1": "2", "5.2": "112333", "5.3": "113", "5.4": "222",
    "6.1": "122", "6.2": "111111112222", "6.3": "11223333", "6.4": "112233", "6.5": "22222333",
    "6.6": "2223", "6.8": "2222",
    "7.1": "222", "7.2": "1111", "7.3": "22", "7.4": "11222", "7.5": "223", "7.6": "22",
    "8.1": "1233", "8.2": "1123", "8.3": "133", "8.4": "23",
    "9.1": "111", "9.2": "1222",
    "10.1": "22", "10.2": "223", "10.3": "22223", "10.4": "1111122222233333", "10.5": "22222", "10.6": "22",
    "10.7": "222",
    "11.1": "2233", "11.2": "22233", "11.3": "11233", "11.4": "1222", "11.5": "23", "11.6": "23",
    "12.1": "12233", "12.2": "11", "12.3": "22223",
    "13.1": "2333", "13.2": "222223", "13.3": "2233", "13.4": "1222233",
    "14.1": "22", "14.2": "12223333", "14.3": "122",
    "15.1": "12233", "15.2": "12233", "15.3": "1222222",
    "16.1": "2", "16.2": "22222", "16.3": "2222", "16.4": "222", "16.5": "2223",
    "17.1": "23", "17.2": "22223333", "17.3": "22",
}  # fmt: skip
STATES = {"met", "not applicable", "not met"}
LINES = [tuple(line.strip("| ").split(" | ")) for line in PAGE.splitlines() if re.match(r"\| \d+\.\d+\.\d+ \|", line)]


def list_required() -> dict[str, str]:
    return {
        f"{section}.{number}": level
        for section, levels in LEVELS.items()
        for number, level in enumerate(levels, 1)
        if level in "12"
    }


def test_each_requirement_is_there_once_with_its_level() -> None:
    required = list_required()
    assert (list(required.values()).count("1"), list(required.values()).count("2")) == (70, 183)
    assert [len(line) for line in LINES if len(line) != 5] == []
    assert [(number, level) for number, level, *_ in LINES] == list(required.items())


def test_what_a_line_names_is_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for number, _, words, state, by in LINES:
        tests = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", by)
        pages = re.findall(r"\]\(([\w.-]+\.md)\)", by)
        made = re.findall(r"`make ([a-z-]+)`", by)
        assert words, number
        assert state in STATES, number
        assert by.strip(), number
        assert state != "met" or tests or pages or made, number
        for path, name in tests:
            assert re.search(rf"^def {name}\(", (ROOT / path).read_text(), re.MULTILINE), (number, path, name)
        assert all((ROOT / "docs" / page).exists() for page in pages), number
        assert set(made) <= targets, number


def test_the_sums_are_those_of_the_lines() -> None:
    for level in "12":
        row = re.search(rf"^\| {level} \| (\d+) \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
        assert row is not None
        states = [line[3] for line in LINES if line[1] == level]
        assert [int(each) for each in row.groups()] == [
            states.count(each) for each in ("met", "not applicable", "not met")
        ]


@pytest.mark.parametrize("word", ["Verify that", "verify that"])
def test_the_words_are_our_own(word: str) -> None:
    assert word not in PAGE
