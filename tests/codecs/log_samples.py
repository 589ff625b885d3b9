"""Logs as hypothesis writes them: every form, with the bytes that make framing hard mixed in."""

from __future__ import annotations

from typing import Literal

from hypothesis import strategies as st


class SignedBlock:
    """A block as a dialect would open it: lines that begin with `%`, ended by a line that begins with `--`."""

    def __init__(self, line: str) -> None:
        self.is_complete = False
        self.lines_if_cut: int | None = 2 if line.startswith("%%") else 1

    def feed(self, line: str) -> Literal["more", "last", "not"]:
        if line.startswith("--"):
            self.is_complete = True
            return "last"
        return "more" if line.startswith("%") or not line.strip() else "not"


class OpenBlock(SignedBlock):
    """A block that keeps all it took when it is cut: it ends at a line `)`."""

    def __init__(self, line: str) -> None:
        super().__init__(line)
        self.lines_if_cut = None

    def feed(self, line: str) -> Literal["more", "last", "not"]:
        self.is_complete = line == ")"
        return "last" if self.is_complete else "more"


OPENERS = (
    ("open", lambda line: OpenBlock(line) if line.startswith("(") else None),
    ("signed", lambda line: SignedBlock(line) if line.startswith("%") else None),
    ("braced", lambda line: SignedBlock(line) if line.startswith("{") else None),
)

_LINES = [
    b"plain text",
    b"",
    b"   ",
    b"// a comment",
    b"2026-11-21T09:00:00Z at nine",
    b"[1700000000] [worker] A -> B: hello",
    b"Ada: hello",
    b'{"raw": "hi", "from": "a"}',
    b'{"raw": "hi"},',
    b'{"clowl": "0.2", "body": {"t": "a}b", "d": {}}}',
    b'{"cut": "short',
    b'{"open": {',
    b"{",
    b'"key": [',
    b'{"in": 1},',
    b"]",
    b"}",
    b"}}",
    b'  "a": 1,',
    b'"a string"',
    b'"a \\"quoted\\" string",',
    b"% one",
    b"%% two",
    b"-- signed",
    b"(",
    b")",
    "a line separator \u2028 inside".encode(),
    b"bad \xe9 byte",
    b"nul \0 byte",
    b"x" * 70,
    b"a,b",
    b'1,"two\n',
    b'"',
]
line_ends = st.sampled_from([b"\n", b"\n", b"\n", b"\r\n", b"\n\n", b"\r"])
text_logs = st.lists(st.tuples(st.sampled_from(_LINES), line_ends), max_size=14).map(
    lambda pairs: b"".join(line + end for line, end in pairs)
)

_ELEMENTS = [
    b'{"raw": "hi", "to": ["b"]}',
    b'{"a": [1, {"b": "]}\\"["}]}',
    b'"text"',
    b'"a \\\\"',
    b"12",
    b"null",
    b"garbage {",
    b'{"bad": "\xe9"}',
    b'{"long": "' + b"y" * 70 + b'"}',
    b'"' + b"\\\\" * 40 + b'"',
    b"{" + b'"k": [[1], {"x": "}"}], ' * 5 + b'"l": 0}',
    b"[[], {}]",
    b"// comment ]\n",
    b"/",
]
_gaps = st.sampled_from([b",", b", ", b" ,\n", b",,", b" ", b",\n// note\n"])
_openings = st.sampled_from(
    [
        b"[",
        b" [ ",
        b'{"v": {"x": "["}, "n": 1, "messages": [',
        b'{"messages":[',
        b'{"system":"s","messages":[{"role":"u"},',
    ]
)
_closings = st.sampled_from([b"]", b",]", b"]\n", b'], "more": "]}"}', b"]}\nthen text", b"", b"]\n[1]"])
array_logs = st.builds(
    lambda opening, pairs, closing: opening + b"".join(element + gap for element, gap in pairs) + closing,
    _openings,
    st.lists(st.tuples(st.sampled_from(_ELEMENTS), _gaps), max_size=8),
    _closings,
)

_MEMBERS = st.sampled_from(
    [
        b'"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "desk"}}]}, ',
        b'"resource": {"attributes": 5}, ',
        b'"resource": {"cut ',
        b'"other]": [{"a": "]}"}], "n": 1.5, ',
        b"5, ",
        b"",
    ]
)
span_logs = st.builds(
    lambda before, pairs, closing: (
        b'{"resourceSpans": [{'
        + before
        + b'"scopeSpans": [{"scope": {"name": "}"}, "spans": ['
        + b"".join(element + gap for element, gap in pairs)
        + closing
    ),
    _MEMBERS,
    st.lists(st.tuples(st.sampled_from(_ELEMENTS), _gaps), max_size=8),
    st.sampled_from([b"]}]}]}", b"]}]}]}\n", b'], "x": 1}, {"spans": [{"b": 2}]}]}], "y": {}}\ntext', b"]}", b""]),
)

_CELLS = [b"hi", b'"hi, there"', b'"two\nlines"', b'"a ""quote"""', b"", b"\xe9", b"z" * 70, b'"open', b'a"b']
csv_logs = st.builds(
    lambda header, rows: header + b"".join(b",".join(cells) + end for cells, end in rows),
    st.sampled_from([b"at,from,message\n", b"Message;From\r\n", b'"text","to"\n']),
    st.lists(st.tuples(st.lists(st.sampled_from(_CELLS), min_size=1, max_size=4), line_ends), max_size=8),
)

_marks = st.sampled_from([b"", b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\xef\xbb", b"\n\n", b"h\0i\0"])
_anything = st.lists(st.sampled_from([b'"', b"{", b"}", b"[", b"]", b",", b"\n", b"\\", b"a", b"\xc3", b" "])).map(
    b"".join
)
logs = st.builds(
    lambda mark, log, rest: mark + log + rest,
    _marks,
    st.one_of(text_logs, array_logs, span_logs, csv_logs, _anything),
    st.one_of(st.just(b""), st.just(b""), text_logs),
)
