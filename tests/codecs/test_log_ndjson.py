"""The law of one record a line: cutting, repeating or moving a line changes no other line's record."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

from hypothesis import strategies as st

from dialects import LogOptions, LogRecord, detect, read_log
from tests.each import for_each
from tests.lanes import generated

TAG = '@a3|f0|c1|S0|d1|T1|k1|t"two words"#'
CLOWL = {"clowl": "0.2", "mid": "m1", "p": "REQ", "from": "a", "to": ["b"], "cid": "c", "body": {"d": [1, {"k": {}}]}}
OBJECTS = (
    json.dumps(CLOWL),
    json.dumps({"raw": TAG, "from": "ada", "to": ["bob"], "at": "2026-11-21T09:00:00Z", "extra": [[{}]]}),
    json.dumps({"raw": "!st{ta:kiln,pr:80%}", "id": "7"}),
    json.dumps({"raw": "👽73|@1|$aGk=\n--👽lingua/0.4@agent-lingua"}, ensure_ascii=False),
    json.dumps({"type": "lambda", "tokens": ["!st", "?Uk/kl"]}),
    json.dumps({"resourceSpans": [{"attributes": [{"value": TAG}]}]}),
)
# What a line of NDJSON may hold besides: texts, and what opens a record of several lines in a log of text.
OTHERS = (
    json.dumps("a text"),
    "plain text",
    "// a remark",
    "```json",
    "2026-11-21T09:00:00Z ada -> bob: hello",
    "{def:",
    '@a3|f0|c1|S0|d1|T1|t"two',
    "👽73|@1|$aGk=",
    "[1, 2",
    "}",
    "",
)
LINES = OBJECTS + OTHERS
bodies = st.lists(st.sampled_from(LINES), min_size=1, max_size=7)


def frame(lines: list[str], form: Any = "ndjson") -> dict[int, Any]:
    """Of each line, from 0, what its record is; its place and the chain to it left out."""
    log = "".join(f"{line}\n" for line in lines).encode()
    records = [item for item in read_log(log, LogOptions(form=form)) if isinstance(item, LogRecord)]
    assert len({record.line for record in records}) == len(records)
    return {
        record.line - 1: (record.source, record.wire, record.envelope, record.problem, detect(record.wire or "")[0])
        for record in records
    }


@for_each(product(LINES, [OBJECTS[0], OBJECTS[1], TAG, '"a"', '"k": {"x": 1}}', "]}"]))
def test_a_line_cut_anywhere_takes_nothing_of_the_next(line: str, behind: str) -> None:
    expected = frame([behind, OBJECTS[1]])
    for cut in range(len(line)):
        found = frame([line[:cut], behind, OBJECTS[1]])
        assert {place: found[place + 1] for place in expected} == expected, line[:cut]


@generated(300, lines=bodies, place=st.integers(0, 6), cut=st.integers(0, 200))
def test_cutting_a_line_changes_no_other_record(lines: list[str], place: int, cut: int) -> None:
    place %= len(lines)
    whole = frame(lines)
    found = frame([*lines[:place], lines[place][:cut], *lines[place + 1 :]])
    whole.pop(place, None)
    found.pop(place, None)
    assert found == whole


@generated(300, lines=bodies, order=st.lists(st.integers(0, 6), max_size=12))
def test_repeating_and_moving_lines_changes_no_record(lines: list[str], order: list[int]) -> None:
    alone = {line: frame([line]).get(0) for line in lines}
    chosen = [lines[place % len(lines)] for place in order]
    found = frame(chosen)
    assert [found.get(place) for place in range(len(chosen))] == [alone[line] for line in chosen]


@for_each(product([*OBJECTS, TAG], OBJECTS))
def test_an_object_in_a_log_of_text_is_taken_by_no_line_that_was_cut(line: str, behind: str) -> None:
    """Where an object may be printed over lines too, a whole one on a line is the next record."""
    expected = frame([behind, OBJECTS[1]], "lines")
    for cut in range(len(line)):
        found = frame([line[:cut], behind, OBJECTS[1]], "lines")
        assert {place: found[place + 1] for place in expected} == expected, line[:cut]
