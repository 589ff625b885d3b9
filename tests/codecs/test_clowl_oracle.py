"""CLowl's reference line against the reference library itself, and where the two must part.

The library is a development dependency; it is never imported by the product.
"""

from __future__ import annotations

import json
from typing import Any

import clowl
from hypothesis import strategies as st

import dialects
from tests.each import for_each
from tests.lanes import generated

ACTS = ["REQ", "INF", "ACK", "ERR", "DLGT", "DONE", "CNCL", "QRY", "PROG", "CAPS"]

texts = st.text(max_size=12)
scalars = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    scalars | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
details = st.fixed_dictionaries(
    {},
    optional={
        "q": values,
        "code": st.sampled_from(["E001", "E002", "E016", "E999", 7]),
        "msg": texts,
        "retry": st.booleans() | st.none(),
        "delegation_mode": st.sampled_from(["transfer", "fork", "assist", "lend"]),
        "pct": st.integers(0, 100) | st.floats(0, 100),
        "note": texts | st.sampled_from(["—", "- -", " "]),
        "eta": texts | st.integers(0, 90),
        "supports": st.lists(texts, max_size=3),
        "clowl": st.just("0.2"),
        "status": st.sampled_from(["failed", "ready"]),
        "clé": values,
    },
)
contexts = st.fixed_dictionaries({}, optional={name: st.none() | texts for name in ("ref", "inline", "hash")})
messages = st.fixed_dictionaries(
    {
        "p": st.sampled_from(ACTS) | st.sampled_from(["req", "PING", ""]),
        "from": texts,
        "to": texts | st.lists(texts, max_size=3),
        "cid": texts,
        "body": st.fixed_dictionaries({}, optional={"t": texts, "d": details}),
    },
    optional={
        "clowl": st.sampled_from(["0.2", "0.9"]),
        "mid": texts,
        "ts": st.integers(1, 2**40) | st.integers(1_000_000_000, 2_000_000_000),
        "tid": texts | st.none(),
        "pid": texts | st.none(),
        "ctx": contexts | st.none(),
        "auth": st.none() | st.just("") | st.just("tok-5e6f7a8b"),
        "det": st.booleans(),
        "urgency": texts,
    },
)


def line_of(wire: str) -> str | None:
    return dialects.decode(wire, dialect="clowl").messages[0].reference_line


def ask_reference(data: dict[str, Any]) -> str | None:
    """The library's own line, or None where it fails."""
    try:
        return clowl.CLowlMessage.from_dict(data).to_human()
    except (TypeError, ValueError, AttributeError, KeyError, OverflowError, OSError):
        return None


def is_invented(data: dict[str, Any]) -> bool:
    """Whether the library puts something into its line that the message does not say."""
    details = data["body"].get("d") or {}
    return (
        not data.get("ts")
        or bool(data.get("auth"))
        or (data["p"] == "DLGT" and "delegation_mode" not in details)
        or isinstance(details.get("supports"), str)
    )


@generated(800, data=messages)
def test_the_line_is_the_reference_s_wherever_that_neither_invents_nor_fails(data: dict[str, Any]) -> None:
    expected = ask_reference(data)
    line = line_of(json.dumps(data))
    assert line is not None
    if expected is not None and not is_invented(data):
        assert line == expected
    else:
        assert "[authenticated]" not in line


@generated(
    300,
    data=messages,
    key=st.sampled_from(["p", "from", "to", "cid", "body", "ts", "ctx", "tid", "pid", "det"]),
    odd=values,
)
def test_a_field_of_any_type_gives_a_line(data: dict[str, Any], key: str, odd: object) -> None:
    data = {**data, "clowl": "0.2", key: odd}
    assert line_of(json.dumps(data))


BASE: dict[str, Any] = {
    "clowl": "0.2",
    "mid": "a1",
    "ts": 1709078400,
    "p": "REQ",
    "from": "planner",
    "to": "scout",
    "cid": "c-7",
    "body": {"t": "survey", "d": {}},
}


@for_each(ACTS)
def test_every_act_reads_as_in_the_reference(act: str) -> None:
    data = {**BASE, "p": act, "body": {"t": "survey", "d": {"delegation_mode": "fork", "note": "half", "pct": 50}}}
    assert line_of(json.dumps(data)) == ask_reference(data)


@for_each(
    [
        ({"ts": 0}, "[ts 0] planner → scout: REQUEST survey"),
        ({"ts": None}, "[ts null] planner → scout: REQUEST survey"),
        ({"ts": 1709078400000}, "[ts 1709078400000] planner → scout: REQUEST survey"),
        ({"ts": "noon"}, '[ts "noon"] planner → scout: REQUEST survey'),
        ({"p": "DLGT"}, "[2024-02-28 00:00:00 UTC] planner → scout: DELEGATE survey [no delegation mode]"),
        (
            {"auth": "tok-5e6f7a8b"},
            "[2024-02-28 00:00:00 UTC] planner → scout: REQUEST survey [carries a token, unverified]",
        ),
        (
            {"p": "CAPS", "body": {"t": "x", "d": {"supports": "abc", "clowl": "0.2"}}},
            '[2024-02-28 00:00:00 UTC] planner → scout: CAPABILITIES CLowl v0.2 | supports: "abc"',
        ),
        ({"ctx": "a.md"}, "[2024-02-28 00:00:00 UTC] planner → scout: REQUEST survey | ctx: a.md"),
        ({"body": None}, "[2024-02-28 00:00:00 UTC] planner → scout: REQUEST ?"),
    ]
)
def test_where_the_reference_invents_or_fails_the_line_is_honest(change: dict[str, Any], line: str) -> None:
    data = {**BASE, **change}
    assert line_of(json.dumps(data)) == line
    assert ask_reference(data) != line


def test_what_is_valid_here_is_valid_for_the_reference() -> None:
    wire = json.dumps(BASE)
    assert dialects.decode(wire).messages[0].notes == ()
    assert clowl.CLowlMessage.from_dict(BASE).validate() == []


@generated(300, data=messages)
def test_whatever_the_reference_finds_wrong_is_noted(data: dict[str, Any]) -> None:
    if ask_reference(data) is None or not data.get("mid") or not data.get("ts"):
        return  # the library fails, or fills the gap itself
    faults = clowl.CLowlMessage.from_dict(data).validate()
    notes = dialects.decode(json.dumps(data), dialect="clowl").messages[0].notes
    assert not faults or [note for note in notes if note.severity in ("warning", "error")]
