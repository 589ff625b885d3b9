"""FIPA-ACL and KQML beyond the vectors: what is no message, blocks of lines, and bounds."""

from __future__ import annotations

import time

import pytest

import dialects
from dialects._log import LogOptions, LogRecord, read_log
from dialects.fipa.tables import ACTS, FIPA, MAX_MESSAGES, MAX_PARAMETERS

from ..each import for_each
from ..timing import is_within
from .cases import load

HEAD = ":sender (agent-identifier :name ann) :receiver (set (agent-identifier :name bob))"


@for_each(sorted(ACTS))
def test_every_act_has_a_vector(name: str) -> None:
    assert name in {vector["id"] for vector in load("fipa")["valid"]}


def test_fipa_has_22_acts() -> None:
    assert sum(act.vocabulary == FIPA for act in ACTS.values()) == 22
    assert {act.performative for act in ACTS.values()} <= dialects.PERFORMATIVES.keys()


@for_each(
    [
        "(inform)",
        "an (error) in brackets",
        "they agree (request denied) and go on",
        "(subscribe :topic flour)",
        '(error :message "no such file" :code 2)',
        '(request :method "GET" :url "/acc")',
        "(defun tell (x) (print x))",
        "(cl-defun reply (&key sender content) (list sender content))",
        "write (inform :content x) in a message",
        "(greet :sender ann :content hello)",
        '{"wire": "(inform :sender a :content b)"}',
        '(list (inform "x"))',
    ]
)
def test_look_alikes_are_not_taken_for_messages(text: str) -> None:
    assert dialects.detect(text)[0].dialect != "fipa"


def test_a_guess_is_decided_by_its_conversation() -> None:
    spoken = f'(request {HEAD} :content "x")'
    assert dialects.decode("(cancel)", prior=[(spoken, None)]).messages[0].performative == "cancel"
    assert dialects.decode("(cancel)").dialect == "prose"


def test_no_act_of_another_dialect_in_a_text_makes_it_that_dialect() -> None:
    for inner in ("@a3|f0|c1|S0|d1|T1#", "👽71|@1|#post-1", "!Ik/co", '{"clowl":"0.2","p":"REQ"}'):
        quoted = inner.replace('"', '\\"')
        assert dialects.detect(f'(inform {HEAD} :content "{quoted}")')[0].dialect == "fipa"


def split(log: str) -> list[str]:
    return [item.wire or "" for item in read_log(log.encode(), LogOptions()) if isinstance(item, LogRecord)]


PRINTED = (
    '(INFORM\n :sender  ( agent-identifier :name ann )\n\n :content  "one (\n(request :content\ntwo"\n :language  x )'
)
CUT = '(INFORM\n :sender  ( agent-identifier :name ann )\n :content  "one"'
KQML = "(advertise :sender joe :content\n  (ask-if :sender ann\n    :content (x))\n)"


@pytest.mark.parametrize(
    ("log", "records"),
    [
        (f"{PRINTED}\n{PRINTED}\nbye\n", [PRINTED, PRINTED, "bye"]),
        (f"{KQML}\nbye\n", [KQML, "bye"]),
        (f"{CUT}\n{PRINTED}\n", [CUT, PRINTED]),
        (f"hi\n{CUT}\n", ["hi", CUT]),
        ("(inform\nis what he said)\n", ["(inform", "is what he said)"]),
        ('(inform :content #11"a)\n(b\nc) é)\nbye\n', ['(inform :content #11"a)\n(b\nc) é)', "bye"]),
    ],
    ids=["printed", "nested", "cut", "cut-at-the-end", "prose", "counted"],
)
def test_a_message_goes_on_over_lines(log: str, records: list[str]) -> None:
    assert split(log) == records


def test_what_is_too_much_stays_text() -> None:
    many = dialects.decode(f'(tell {HEAD} :content "x") ' * (MAX_MESSAGES + 3))
    assert [note.code for note in many.notes] == ["fipa.too-many-messages"]
    assert len(many.messages) == MAX_MESSAGES + 1
    more = "".join(f" :X-{number} a" for number in range(MAX_PARAMETERS))
    (message,) = dialects.decode(f"(inform {HEAD}{more})").messages
    assert [note.code for note in message.notes] == ["fipa.too-many-parameters"]


def test_no_depth_of_lists_is_too_deep() -> None:
    deep = f'(inform {HEAD} :content "x" :X-a {"(" * 30_000}{")" * 30_000})'
    assert [note.code for note in dialects.decode(deep).messages[0].notes] == ["fipa.too-deep"]
    assert dialects.decode(deep[:-1]).is_malformed


WORST = {
    "openers": lambda size: "(inform :sender " * size,
    "spaces": lambda size: "(inform" + " " * size + "(inform",
    "open-acts": lambda size: f"(inform{' ' * 40}" * size,
    "brackets": lambda size: f"(inform :content {'(' * size}",
    "quotes": lambda size: '(inform :content "' + '\\"' * size,
    "counts": lambda size: "(inform :content " + f'#{size}"' * size,
    "messages": lambda size: '(inform :content "x")' * size,
    "parameters": lambda size: f"(inform{' :X-a b' * size})",
}


@for_each(WORST)
def test_time_grows_with_the_text_and_no_faster(name: str) -> None:
    def measure(wire: str) -> float:
        start = time.thread_time()
        assert dialects.decode(wire, dialect="fipa").fields
        return time.thread_time() - start

    short, long = WORST[name](400), WORST[name](4_000)
    assert is_within(40 * min(measure(short) for _ in range(3)) + 0.02, lambda: measure(long))


def test_lines_that_open_and_never_close_take_linear_time() -> None:
    def measure(count: int) -> float:
        start = time.thread_time()
        split('(inform :content "a\n' * count)
        return time.thread_time() - start

    assert is_within(40 * min(measure(300) for _ in range(3)) + 0.02, lambda: measure(3_000))


def _forward(content: str) -> str:
    return f"(forward :sender joe :receiver hub :content {content})"


def test_contents_are_read_down_to_a_bound() -> None:
    """Deeper ones stay text, which a note says; the messages follow each other."""
    wire = "(tell :sender joe :receiver ann :content open)"
    for _ in range(8):
        wire = _forward(wire)
    reading = dialects.decode(wire)
    assert [message.native_act for message in reading.messages] == ["forward"] * 5
    assert [message.carrier_part for message in reading.messages] == [None, 1, 2, 3, 4]
    assert "fipa.content-too-deep" in [note.code for note in reading.messages[-1].notes]


def test_many_contents_are_read_up_to_a_bound() -> None:
    reading = dialects.decode(_forward("(tell :sender joe :content open)") * 300)
    assert sum(message.carrier_part is not None for message in reading.messages) == 256
    assert [note.code for note in reading.messages[-1].notes] == ["fipa.content-too-deep"]


def test_what_a_content_says_stands_where_its_spans_say() -> None:
    """In a layer of its own, of the characters between the quotes; the raw text is still covered."""
    wire = '(inform :sender joe :receiver hub :content "(tell :sender ann :receiver bob :content \\"open\\")")'
    reading = dialects.decode(wire)
    (outer, inner) = reading.layers
    assert inner.text == '(tell :sender ann :receiver bob :content "open")'
    assert inner.of is not None
    assert wire[inner.of[1] : inner.of[2]] == '"(tell :sender ann :receiver bob :content \\"open\\")"'
    (said,) = [segment for segment in reading.messages[1].english if segment.text == "open"]
    ((layer, start, end),) = said.spans
    assert (layer, inner.text[start:end]) == (inner.id, ':content "open"')
    assert outer.text == wire


def test_a_message_with_a_content_is_written_as_one() -> None:
    wire = '(inform :sender joe :receiver hub :content "(tell :sender ann :receiver bob :content open)")'
    reading = dialects.decode(wire)
    written = dialects.get_dialect("fipa").encode(reading.messages)
    again = dialects.decode(written.wire)
    assert [(each.native_act, each.sender, each.content) for each in again.messages] == [
        (each.native_act, each.sender, each.content) for each in reading.messages
    ]
