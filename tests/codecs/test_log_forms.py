"""Every form of log and every prefix, as a table: what goes in, which wires and envelopes come out."""

from __future__ import annotations

from typing import Any

import pytest

import dialects
from dialects import LogOptions, LogRecord, Scaffold, read_log
from dialects._log import envelopes
from tests.each import for_each

NINE = "2026-11-21T09:00:00Z"
TAG = '@a3|f0|c1|S0|d1|T1|k1|t"x"#'
OBJECT = '{"clowl": "0.2", "p": "REQ", "body": {"t": "a}b"}}'
TURN = '{"role": "user", "content": "a]b"}'
CHAT = '{"id": "c", "conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}'
PRINTED = '{\n  "clowl": "0.2",\n  "body": {\n    "t": "x",\n    "d": [1,\n {}]\n  }\n}'

# id: (the log, the records as wire or (wire, envelope)), with options where they are not the default.
FORMS: dict[str, tuple[Any, ...]] = {
    "nothing": ("", []),
    "blank lines only": ("\n \r\n\t\n", []),
    "one line": ("hello", ["hello"]),
    "line ends": ("one\r\ntwo\nthree", ["one", "two", "three"]),
    "a byte order mark": ("\ufeffone\ntwo\n", ["one", "two"]),
    "a line separator is no line end": ("one\u2028still one\x0bstill\ntwo\n", ["one\u2028still one\x0bstill", "two"]),
    "a lone CR is no line end": ("one\rstill one\ntwo\r", ["one\rstill one", "two"]),
    "blank lines": ("\n\none\n\n  \ntwo\n\n", ["one", "two"]),
    "white space is the text's": ("  one  \n", ["  one  "]),
    "NUL is text": ("a\0b\n", ["a\0b"]),
    "JSON Lines": (f"{OBJECT}\n{OBJECT}\n", [OBJECT, OBJECT]),
    "JSON Lines with CR LF and spaces": (f"{OBJECT}\r\n {OBJECT} \r\n", [OBJECT, OBJECT]),
    "JSON Lines with commas": (f'{OBJECT},\n"a",\n', [OBJECT, "a"]),
    "comments between objects": (f"// first\n{OBJECT}\n\n// second\n{OBJECT}", [OBJECT, OBJECT]),
    "after text a comment may be a text": ("one\n// two", ["one", "// two"]),
    "envelopes": (
        f'{{"raw": "hi", "from": "oscar", "to": ["radar"], "at": "{NINE}", "conversation": "c", "n": 1}}\n',
        [
            (
                "hi",
                {
                    "sender": "oscar",
                    "receivers": ["radar"],
                    "at": NINE,
                    "at_raw": NINE,
                    "conversation": "c",
                    "extra": {"n": 1},
                },
            )
        ],
    ),
    "an envelope with Unix time": (
        '{"raw": "hi", "at": 1700000000}',
        [("hi", {"at": "2023-11-14T22:13:20Z", "at_raw": "1700000000"})],
    ),
    "an envelope that names the dialect": ('{"raw": "hi", "dialect": "prose"}', [("hi", {"dialect": "prose"})]),
    "an envelope's own field names": (
        '{"message": "hi", "who": "ada"}',
        [("hi", {"sender": "ada"})],
        {"fields": {"raw": "message", "from": "who"}},
    ),
    "raw that is no text is no envelope": ('{"raw": 5}\n', ['{"raw": 5}']),
    "raw twice would hide one": ('{"raw": "a", "raw": "b"}', ['{"raw": "a", "raw": "b"}']),
    "raw inside another object": ('{"x": {"raw": "a"}}', ['{"x": {"raw": "a"}}']),
    "escapes in raw": ('{"raw": "a\\nb\\u0000\\ud800"}', ["a\nb\0\ud800"]),
    "another object is its text": ('{"level": "info"}', ['{"level": "info"}']),
    "JSON strings": ('"a\\nb"\n"c"', ["a\nb", "c"]),
    "a quoted sentence is JSON, one with more is not": ('"hi"\n"hi" he said', ["hi", '"hi" he said']),
    "objects over several lines": (f"{PRINTED}\n{PRINTED}", [PRINTED, PRINTED]),
    "an object over several lines with CR LF": (PRINTED.replace("\n", "\r\n"), [PRINTED.replace("\n", "\r\n")]),
    "an envelope over several lines": ('{\n"raw":\n"hi",\n"from": "a"\n},\nend', [("hi", {"sender": "a"}), "end"]),
    "an object cut short": (f'{{"clowl": "0.2",\n{OBJECT}\n', ['{"clowl": "0.2",', OBJECT]),
    "a string cut short": (f'{{"clowl": "0.\n{OBJECT}\n', ['{"clowl": "0.', OBJECT]),
    "an object never closed": ('{"a": [\n"b",\n"c"\nend', ['{"a": [\n"b",\n"c"', "end"]),
    "a time ends an open object": (f'{{"a": [\n{NINE} hi', ['{"a": [', ("hi", {"at": NINE, "at_raw": NINE})]),
    "two objects on one line are one text": (f"{OBJECT}{OBJECT}\n", [OBJECT + OBJECT]),
    "a mixed file": (f'text\n{OBJECT}\n"a"\n{{"raw": "b"}}\n{TAG}\n', ["text", OBJECT, "a", "b", TAG]),
    "an array": (f'[{OBJECT}, "b", {{"raw": "c"}}]', [OBJECT, "b", "c"]),
    "an array over lines": (f'\n [\n  {OBJECT},\n\n  "b"\n]\n', [OBJECT, "b"]),
    "an array with commas and comments": ('[\n// one\n"a",,\n"b",\n]', ["a", "b"]),
    "an array of other values": ('["a", 12, null, [1, [2]], nonsense ]', ["a", "12", "null", "[1, [2]]", "nonsense"]),
    "brackets in strings": ('["a]", {"b": "}\\"]"}]', ["a]", '{"b": "}\\"]"}']),
    "an empty array": ("[]\n", []),
    "two arrays": ('["a"]\n["b"]\nc\n', ["a", "b", "c"]),
    "messages in an object": ('{"v": "}", "messages": ["a", {"raw": "b"}], "more": {"x": "]"}}\n', ["a", "b"]),
    "messages over lines": ('{\n "messages": [\n  "a"\n ]\n}\n', ["a"]),
    "turns of a chat in an object": (f'{{"model": "m", "messages": [{TURN}, {TURN}]}}', [TURN, TURN]),
    "a chat with its instructions": (
        f'{{"system": "s", "messages": [{TURN}]}}',
        [f'{{"system": "s", "messages": [{TURN}]}}'],
    ),
    "instructions beside no chat": ('{"system": "s", "messages": ["a", "b"]}', ["a", "b"]),
    "a chat a line": (f'{{"messages": [{TURN}]}}\n' * 2, [f'{{"messages": [{TURN}]}}'] * 2, {"name": "tuning.jsonl"}),
    "no chat in a file of lines": ('{"messages": ["a", "b"]}', ["a", "b"], {"name": "tuning.jsonl"}),
    "a chat with an id": (CHAT, [CHAT]),
    "an object that is a record may hold messages": (
        '{"clowl": "0.2", "messages": ["a"]}',
        ['{"clowl": "0.2", "messages": ["a"]}'],
    ),
    "an array in text is text where lines are asked for": ('["a"]', ['["a"]'], {"form": "lines"}),
    "a bracket before a text is no array": (
        "[note] one\n[2] two",
        [("one", {"label": "note"}), ("two", {"label": "2"})],
    ),
    "CSV": (
        f"timestamp,sender,receiver,message,thread,score\n{NINE},ada,bob;eve,hello,t1,7\n",
        [
            (
                "hello",
                {
                    "at": NINE,
                    "at_raw": NINE,
                    "sender": "ada",
                    "receivers": ["bob", "eve"],
                    "conversation": "t1",
                    "extra": {"score": "7"},
                },
            )
        ],
    ),
    "CSV in quotes": (
        'id,message\r\n1,"a, ""b""\r\nc"\r\n\r\n2,d\r\n',
        [('a, "b"\r\nc', {"id": "1"}), ("d", {"id": "2"})],
    ),
    "CSV with semicolons": ("from;text\nada;hi\n", [("hi", {"sender": "ada"})]),
    "CSV with tabs and Unix time": (
        "time\ttext\n1700000000.5\thi\n",
        [("hi", {"at": "2023-11-14T22:13:20.5Z", "at_raw": "1700000000.5"})],
    ),
    "CSV whose quote is never closed": (
        'from,text\na,"b\nc,d\n',
        [('"b', {"sender": "a"}), ("d", {"sender": "c"})],
    ),
    "CSV with mapped columns": (
        "what,who\nhi,ada\n",
        [("hi", {"sender": "ada"})],
        {"fields": {"raw": "what", "from": "who"}},
    ),
    "CSV without a column for the text": ("a,b\n1,2\n", ["1,2"], {"form": "csv"}),
    "CSV with one column": ("message\nhi\n", ["hi"], {"form": "csv"}),
    "CSV with too few and too many cells": (
        "from,text\nada\nbob,hi,more\n",
        ["ada", ("hi", {"sender": "bob", "extra": {"column 3": "more"}})],
    ),
    "a sentence with a comma is no header": ("message, text for you\nhi\n", ["message, text for you", "hi"]),
    "a file's name can rule CSV out": ("from,text\na,b\n", ["from,text", "a,b"], {"name": "x.log"}),
}


def frame(log: str, options: dict[str, Any]) -> list[LogRecord]:
    return [item for item in read_log(log.encode(), LogOptions(**options)) if isinstance(item, LogRecord)]


def plain(record: LogRecord) -> Any:
    """The wire, with the envelope's names that say something."""
    if record.envelope is None:
        return record.wire
    return record.wire, {name: value for name, value in record.envelope.to_dict().items() if value}


@for_each(FORMS.values())
def test_a_form_is_framed(case: tuple[Any, ...]) -> None:
    log, expected, *options = case
    assert [plain(record) for record in frame(log, *options or ({},))] == expected


# id: (the line, the wire, the envelope)
AT_NINE = {"at": NINE, "at_raw": NINE}
PREFIXES: dict[str, tuple[str, str, dict[str, Any] | None]] = {
    "ISO time": (f"{NINE} hi", "hi", AT_NINE),
    "ISO time in brackets": (f"[{NINE}] hi", "hi", AT_NINE),
    "ISO time with a zone": (
        "2026-11-21 10:00:00,25+01:00 hi",
        "hi",
        {"at": "2026-11-21T09:00:00.25Z", "at_raw": "2026-11-21 10:00:00,25+01:00"},
    ),
    "ISO time in UTC": ("[2026-11-21 09:00:00 UTC] hi", "hi", {"at": NINE, "at_raw": "2026-11-21 09:00:00 UTC"}),
    "Unix time": ("1700000000 hi", "hi", {"at": "2023-11-14T22:13:20Z", "at_raw": "1700000000"}),
    "Unix time in milliseconds": (
        "[1700000000250] hi",
        "hi",
        {"at": "2023-11-14T22:13:20.25Z", "at_raw": "1700000000250"},
    ),
    "a number that is no time": ("0000000012 hi", "0000000012 hi", None),
    "a date that does not exist": ("2026-13-40T09:00:00Z hi", "2026-13-40T09:00:00Z hi", None),
    "a time alone is text": (f"[{NINE}]", f"[{NINE}]", None),
    "a time must be set apart": (f"{NINE}hi", f"{NINE}hi", None),
    "a label": ("[worker-1] hi", "hi", {"label": "worker-1"}),
    "a label alone is text": ("[worker-1]", "[worker-1]", None),
    "time and labels": (f"{NINE} [INFO] [agents] hi", "hi", {**AT_NINE, "label": "INFO agents"}),
    "speaker and receiver": ("oscar -> radar: hi", "hi", {"sender": "oscar", "receivers": ["radar"]}),
    "an arrow in one character": ("oscar → radar, eve: hi", "hi", {"sender": "oscar", "receivers": ["radar", "eve"]}),
    "to everybody": ("oscar -> *: hi", "hi", {"sender": "oscar", "extra": {"to": "*"}}),
    "a speaker after a time": (f"{NINE} Agent B: hi", "hi", {**AT_NINE, "sender": "Agent B"}),
    "a speaker before a wire": ("oscar: ~wire", "~wire", {"sender": "oscar"}),
    "a speaker before an object": (f"oscar: {OBJECT}", OBJECT, {"sender": "oscar"}),
    "a speaker before an envelope": (
        f'{NINE} oscar: {{"raw": "hi", "from": "eve"}}',
        "hi",
        {**AT_NINE, "sender": "eve"},
    ),
    "no space, no speaker": ("oscar:~wire", "oscar:~wire", None),
    "a remark is no speaker": ("Please remember: bring the logs", "Please remember: bring the logs", None),
    "no speaker where the whole is a wire": ("~a: ~b", "~a: ~b", None),
    "a relay is no speaker": ("A1>A2>A3: ~wire", "A1>A2>A3: ~wire", None),
    "an address is no speaker": ("@A1: ~wire", "@A1: ~wire", None),
    "an URL is no speaker": ("https: //x.example", "https: //x.example", None),
    **{
        f"{word} is no speaker": (f"{word}: ~wire", f"{word}: ~wire", None)
        for word in ("pub", "prv", "sig", "v", "c", "s", "e", "o", "THOUGHT", "SLIP", "Λ", "ERROR")
    },
}


@pytest.fixture
def plain_detection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text is in a dialect where it begins with `~` or as an object does: the real ones have their own tests."""

    def detect(wire: str) -> tuple[dialects.Candidate, ...]:
        is_wire = wire.lstrip().startswith(("~", "{"))
        return (dialects.Candidate(dialect="x" if is_wire else "prose", score=0.9 if is_wire else 0.3, why="a test"),)

    monkeypatch.setattr(envelopes, "detect", detect)


@pytest.mark.usefixtures("plain_detection")
@pytest.mark.parametrize("case", PREFIXES.values(), ids=PREFIXES)
def test_a_prefix_becomes_the_envelope(case: tuple[str, str, dict[str, Any] | None]) -> None:
    line, wire, envelope = case
    [record] = frame(f"{line}\n", {})
    assert record.source == line.encode()
    assert plain(record) == ((wire, envelope) if envelope else wire)


@for_each(PREFIXES.values())
def test_prefixes_can_be_switched_off(case: tuple[str, str, dict[str, Any] | None]) -> None:
    [record] = frame(case[0], {"prefixes": False})
    assert plain(record) == case[0]


SIGNED = "--👽lingua/0.4@agent-lingua"
POSTED = "👽73|@1|$aGk="
NEXT = {"at": "2026-11-21T09:00:01Z", "at_raw": "2026-11-21T09:00:01Z"}

# id: (the log, the records): the blocks that the real dialects open.
BLOCKS: dict[str, tuple[str, list[Any]]] = {
    "a statement and its signature": (f"{POSTED}\n{SIGNED}\nend\n", [f"{POSTED}\n{SIGNED}", "end"]),
    "statements over one signature": (f"{POSTED}\n👽71|@1\n{SIGNED}", [f"{POSTED}\n👽71|@1\n{SIGNED}"]),
    "statements without a signature": (f"{POSTED}\n👽71|@1\nend\n", [POSTED, "👽71|@1", "end"]),
    "prose above a block is its own record": (f"Dear all\n{POSTED}\n{SIGNED}\n", ["Dear all", f"{POSTED}\n{SIGNED}"]),
    "a block with CR LF": (f"{POSTED}\r\n{SIGNED}\r\n", [f"{POSTED}\r\n{SIGNED}"]),
    "blocks behind times and speakers": (
        f"{NINE} ada: {POSTED}\n{SIGNED}\n{NEXT['at']} bob: ^0|#1\n{SIGNED}\n",
        [
            (f"{POSTED}\n{SIGNED}", {**AT_NINE, "sender": "ada"}),
            (f"^0|#1\n{SIGNED}", {**NEXT, "sender": "bob"}),
        ],
    ),
    "a time ends a block": (f"{POSTED}\n{NINE} {SIGNED}\n", [POSTED, (SIGNED, AT_NINE)]),
    "a tag over two lines": ('@a3|f0|c1|S0|d1|T1|t"two\nlines"#\nend', ['@a3|f0|c1|S0|d1|T1|t"two\nlines"#', "end"]),
    "a tag never closed": (f'@a3|f0|c1|S0|d1|T1|t"two\n{TAG}\nend', ['@a3|f0|c1|S0|d1|T1|t"two', TAG, "end"]),
    "statements behind times and arrows": (
        f"{NINE} ada -> bob: !st{{\n ta:kiln,\n pr:80%\n}}\n"
        f"{NEXT['at']} bob -> ada: <+\n{NEXT['at']} ada -> *: !Ik/co\n",
        [
            ("!st{\n ta:kiln,\n pr:80%\n}", {**AT_NINE, "sender": "ada", "receivers": ["bob"]}),
            ("<+", {**NEXT, "sender": "bob", "receivers": ["ada"]}),
            ("ada -> *: !Ik/co", NEXT),
        ],
    ),
    "a statement behind an arrow alone": (
        'ada -> bob: {def:\n kl="the kiln"\n}\nada -> bob: ?Uk/kl\n',
        [
            ('{def:\n kl="the kiln"\n}', {"sender": "ada", "receivers": ["bob"]}),
            ("?Uk/kl", {"sender": "ada", "receivers": ["bob"]}),
        ],
    ),
    "a fence": (f"```json\n{OBJECT}\n```\nend", [f"```json\n{OBJECT}\n```", "end"]),
}


@for_each(BLOCKS.values())
def test_a_block_is_one_record(case: tuple[str, list[Any]]) -> None:
    log, expected = case
    assert [plain(record) for record in frame(log, {})] == expected


def test_blank_lines_behind_a_block_are_scaffold() -> None:
    items = list(read_log(f"{POSTED}\n\n \nend".encode()))
    assert [item.data for item in items if isinstance(item, Scaffold)] == [b"\n\n \n"]


def test_a_block_is_bounded_in_lines_and_bytes() -> None:
    log = '{"a": [\n' + "1,\n" * 50 + "2]}"
    assert len(frame(log, {})) == 1
    assert max(record.source.count(b"\n") for record in frame(log, {"max_block_lines": 10})) == 9
    assert max(record.length for record in frame(log, {"max_record_bytes": 100})) in range(90, 101)


def test_a_surer_rest_makes_a_speaker_of_a_real_wire() -> None:
    [record] = frame(f"oscar: {TAG}", {})
    assert (record.wire, record.envelope) == (TAG, dialects.Envelope(sender="oscar"))


def test_scaffold_is_what_no_record_holds() -> None:
    log = b'\xef\xbb\xbf\n{"raw": "a"} ,\r\n\n// note\n "b"\n'
    scaffold = [item.data for item in read_log(log) if isinstance(item, Scaffold)]
    assert scaffold == [b"\xef\xbb\xbf\n", b" ,\r\n\n// note\n ", b"\n"]
