"""What no table of agent-lingua vectors can hold: generated variants, growth, look-alikes, lines of a log, replies."""

from __future__ import annotations

import base64
import gc
import itertools
import json
import random
import statistics
import time
import zlib
from collections.abc import Callable
from typing import Any

import pytest

import dialects
from dialects._english import quote
from dialects._record import leaves
from dialects.agent_lingua.notes import NOTES

from ..each import for_each
from .cases import cases

LINGUA = dialects.get_dialect("agent_lingua")
SIGNATURE = "\n--👽lingua/0.4@agent-lingua"
HEX = "0123456789ABCDEF"

# The specification's tables, written down a second time: a slip in the codec's own shows here.
DOMAINS = [
    "SYS",
    "MSG",
    "FSX",
    "WEB",
    "CRN",
    "MEM",
    "EXC",
    "MBK",
    "SOC",
    "FIN",
    "ANA",
    "MDA",
    "LOC",
    "IOT",
    "SEC",
    "EXT",
]
ACTIONS = [
    "NOP",
    "GET",
    "PUT",
    "PST",
    "DEL",
    "UPD",
    "QRY",
    "SUB",
    "USB",
    "HSK",
    "REJ",
    "FWD",
    "SYN",
    "VFY",
    "TRF",
    "XTD",
]
ACTS = {
    **dict.fromkeys(("PUT", "PST", "DEL", "UPD", "FWD", "SYN", "TRF", "XTD"), "request"),
    **dict.fromkeys(("GET", "QRY", "VFY"), "query"),
    "SUB": "subscribe",
    "USB": "unsubscribe",
    "HSK": "handshake",
    "REJ": "reject",
    "NOP": "control",
}
MODIFIERS = ["normal", "urgent", "silent", "batch", "test", "retry", "async", "encrypted", "compressed", "confirm"]
KINDS = {
    **dict.fromkeys(("SYS", "MSG", "EXC", "CRN", "MEM", "ANA", "SEC", "EXT"), "agent"),
    **dict.fromkeys(("FSX", "WEB", "MDA", "FIN", "IOT"), "object"),
    **dict.fromkeys(("MBK", "SOC", "LOC"), "place"),
}
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
SYMBOLS = {"+": "delay", "-": "before", "*": "repeat"}
CONDITIONS = {"K": "karma", "F": "follower", "T": "text", "N": "quantity", "S": "status"}
OPERATORS = {">": "is greater than", "<": "is less than", "=": "is", "!": "is not", "~": "contains"}


def base64_of(text: str | bytes) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


def json_of(value: Any) -> str:
    return "$j:" + base64_of(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def codes_of(reading: dialects.Reading) -> list[str]:
    notes = [*reading.notes, *(note for message in reading.messages for note in message.notes)]
    return [note.code.removeprefix("agent_lingua.") for note in notes]


def find_act(domain: str, action: str, *, has_identifier: bool) -> str:
    if domain == "EXC" or (domain == "MBK" and (action == "HSK" or (action == "GET" and has_identifier))):
        return "request"
    if (domain, action) == ("SYS", "USB") and has_identifier:
        return "control"
    return ACTS[action]


@for_each(list(itertools.product(range(16), range(16))))
def test_every_domain_and_action_is_told(codes: tuple[int, int]) -> None:
    """All 256 pairs, with and without an identifier: the act, the codes' names, and one whole sentence."""
    domain, action = codes
    for identifier in ("", "|#item-5"):
        wire = f"👽{HEX[domain]}{HEX[action]}{identifier}{SIGNATURE}"
        reading = dialects.decode(wire, dialects.Envelope(sender="quill"))
        (message,) = reading.messages
        expected = find_act(DOMAINS[domain], ACTIONS[action], has_identifier=bool(identifier))
        assert message.performative == expected
        assert message.native_act == ACTIONS[action]
        assert message.attributes["domain"] == DOMAINS[domain]
        sentence = message.sentence
        assert sentence.startswith("quill ")
        assert sentence.endswith(".")
        assert "  " not in sentence
        assert ("item-5" in sentence) == bool(identifier)
        is_idiom = "idiom" in message.attributes
        assert codes_of(reading) == (["idiom"] if is_idiom else [])


def test_no_two_pairs_share_their_sentence() -> None:
    """A sentence that fits two wires would hide from an auditor which of them was sent."""
    said: dict[str, str] = {}
    for domain, action in itertools.product(HEX, HEX):
        sentence = dialects.decode(f"👽{domain}{action}|#x{SIGNATURE}").messages[0].sentence
        assert sentence not in said, f"{domain}{action} reads as {said.get(sentence)} does: {sentence}"
        said[sentence] = domain + action


class Variant:
    """A statement made up at random: first the record, then the wire, by the test's own tiny writer."""

    def __init__(self, seed: int) -> None:
        self.random = pick = random.Random(seed)
        self.domain, self.action = pick.randrange(16), pick.randrange(16)
        self.modifiers = pick.sample(range(10), pick.choice((0, 0, 1, 3)))
        self.target = pick.choice((None, "H", "A", "S", self.make_name(), self.make_name()))
        self.identifier = pick.choice((None, self.make_name()))
        self.time = pick.choice((None, self.make_time()))
        self.condition = pick.choice((None, self.make_condition()))
        self.content = pick.choice((None, self.make_text(), {"t": self.make_text(), "zz": pick.randrange(10**6)}))
        if self.content == "":
            self.content = None

    def make_name(self) -> str:
        return (
            "".join(self.random.choices("abcdefghkmnpqrstuvwxyzäñ0123456789-_./", k=self.random.randint(3, 12))) + "x"
        )

    def make_text(self) -> str:
        letters = "abc DEF |;;@#~%$ 测试 éß \n \"quoted\" 👽 'x' <b>&amp;"
        return "".join(self.random.choices(letters, k=self.random.randint(1, 40)))

    def make_time(self) -> tuple[str, list[tuple[int, str]]]:
        units = sorted(self.random.sample("smhdw", self.random.choice((1, 1, 2))), key=lambda unit: -SECONDS[unit])
        return self.random.choice("+-*"), [(self.random.randint(1, 59), unit) for unit in units]

    def make_condition(self) -> tuple[str, str, str]:
        return (
            self.random.choice("KFTNS"),
            self.random.choice("><=!~"),
            self.random.choice((str(self.random.randrange(1000)), self.make_name())),
        )

    def fields(self) -> list[str]:
        written = []
        if self.target is not None:
            written.append(f"@{self.target}")
        if self.identifier is not None:
            written.append(f"#{self.identifier}")
        if self.time is not None:
            written.append("~" + self.time[0] + "".join(f"{count}{unit}" for count, unit in self.time[1]))
        if self.condition is not None:
            written.append("%" + "".join(self.condition))
        if isinstance(self.content, str):
            written.append("$" + base64_of(self.content))
        elif self.content is not None:
            written.append(json_of(self.content))
        return written

    def write(self, fields: list[str]) -> str:
        head = f"👽{HEX[self.domain]}{HEX[self.action]}{''.join(map(str, self.modifiers))}"
        return "|".join([head, *fields]) + SIGNATURE

    def expect(self) -> dict[str, Any]:
        """The names of the record that this statement must have, by the specification."""
        domain, action = DOMAINS[self.domain], ACTIONS[self.action]
        kind = {"H": "human", "A": "all", "S": "self"}.get(self.target or "", KINDS[domain])
        moment = self.time and sum(count * SECONDS[unit] for count, unit in self.time[1])
        return {
            "performative": find_act(domain, action, has_identifier=self.identifier is not None),
            "native_act": action,
            "modifiers": tuple(MODIFIERS[digit] for digit in self.modifiers),
            "content": self.content,
            "object_id": self.identifier,
            "receivers": (self.target,) if self.target and kind == "agent" else (),
            "broadcast": kind == "all" and self.target is not None,
            "target_kind": kind if self.target else None,
            "target_raw": self.target,
            "schedule": (SYMBOLS[self.time[0]], moment) if self.time else None,
            "condition": (CONDITIONS[self.condition[0]], "".join(self.condition)) if self.condition else None,
            "rank": 1 if 1 in self.modifiers else None,
        }


def observe(message: dialects.Message) -> dict[str, Any]:
    return {
        "performative": message.performative,
        "native_act": message.native_act,
        "modifiers": message.modifiers,
        "content": message.content,
        "object_id": message.object_id,
        "receivers": message.receivers,
        "broadcast": message.broadcast,
        "target_kind": message.target.kind if message.target else None,
        "target_raw": message.target.raw if message.target else None,
        "schedule": (message.schedule.kind, message.schedule.seconds) if message.schedule else None,
        "condition": (message.condition.kind, message.condition.raw) if message.condition else None,
        "rank": message.priority.rank if message.priority else None,
    }


@for_each(range(400))
def test_generated_statements_read_as_they_were_made(seed: int) -> None:
    variant = Variant(seed)
    fields = variant.fields()
    wire = variant.write(fields)
    reading = dialects.decode(wire, dialects.Envelope(sender="quill"))
    (message,) = reading.messages
    assert observe(message) == variant.expect()
    written = dialects.encode(reading)
    assert (written.wire, written.losses) == (wire, ())
    sentence = message.sentence
    assert sentence.startswith(("quill ", "quill, every "))
    for value in (variant.identifier, variant.target if variant.target and len(variant.target) > 1 else None):
        assert value is None or value in sentence
    if variant.condition:
        assert f"{OPERATORS[variant.condition[1]]} " in sentence
        assert variant.condition[2] in sentence
    if variant.time:
        assert all(str(count) in sentence or unit in "smhdw" for count, unit in variant.time[1])
    if isinstance(variant.content, str):
        assert quote(variant.content) in sentence
    elif variant.content is not None:
        assert f"title = {quote(variant.content['t'])}" in sentence
        assert f"zz = {variant.content['zz']}" in sentence
    if 4 in variant.modifiers:
        assert "dry run" in sentence
    assert "".join(leaf.raw for leaf in leaves(reading.fields)) == wire


@for_each(range(100))
def test_fields_mean_the_same_in_any_order(seed: int) -> None:
    variant = Variant(seed)
    fields = variant.fields()
    variant.random.shuffle(fields)
    (message,) = dialects.decode(variant.write(fields)).messages
    assert observe(message) == variant.expect()


@for_each(range(60))
def test_statements_joined_and_lined_up_read_alike(seed: int) -> None:
    """The same statements by `;;` or on lines of their own give the same messages over one signature."""
    variants = [Variant(seed * 7 + number) for number in range(3)]
    single = [variant.write(variant.fields()).removesuffix(SIGNATURE) for variant in variants]
    joined = dialects.decode(";;".join(single) + SIGNATURE)
    lined = dialects.decode("\n".join(single) + SIGNATURE)
    expected = [variant.expect() for variant in variants]
    assert [observe(message) for message in joined.messages] == expected
    assert [observe(message) for message in lined.messages] == expected
    assert [message.part for message in joined.messages] == [1, 2, 3]
    assert joined.footer == lined.footer == {"version": "0.4", "source": "agent-lingua"}


@for_each([case for case in cases("valid") if case.dialect == "agent_lingua"])
def test_every_quotation_stands_at_its_characters(case: Any) -> None:
    """A segment that cites text, or the beginning of a key, names the span of that very text, on its own layer."""
    reading = case.decode()
    layers = {layer.id: layer.text for layer in reading.layers}
    for message in reading.messages:
        for segment in message.english:
            if segment.text.startswith("“") and segment.spans and "\\" not in layers[segment.spans[0][0]]:
                layer, start, end = segment.spans[0]
                assert segment.text[1:-1].removesuffix("…").replace("\\“", "“") in layers[layer][start:end]


WORST: dict[str, Callable[[int], str]] = {
    "joints": lambda n: "👽00" + ";;" * n,
    "joints that open nothing": lambda n: "👽16|%T~" + ";;a" * n,
    "fields": lambda n: "👽73" + "|" * n,
    "targets": lambda n: "👽73" + "|@x" * n,
    "statements": lambda n: "👽00;;" * n,
    "markers": lambda n: "👽" * n,
    "lines": lambda n: "👽00\n" * n,
    "continued Base64": lambda n: "👽73|@1|$aaaa\n" + "aaaa\n" * n + SIGNATURE,
    "continued raw text": lambda n: "👽13|$r:x\n" + "words and | more\n" * n + SIGNATURE,
    "modifiers": lambda n: "👽73" + "1" * n + "|@1",
    "open brackets": lambda n: "👽73|$j:" + base64_of("[" * n),
    "open braces written openly": lambda n: "👽73" + '|$j:{"a' * n,
    "escaped quotes": lambda n: "👽73|$j:" + base64_of('"' + '\\"' * n),
    "wide object": lambda n: "👽73|" + json_of({f"k{number}": number for number in range(n // 8)}),
    "wide list": lambda n: "👽73|" + json_of(list(range(n // 4))),
    "long text": lambda n: "👽73|$" + base64_of("word " * n),
    "signature names": lambda n: "👽73|$r:" + "lingua/ --" * n + SIGNATURE,
    "signature marks": lambda n: "👽73|$r:" + "--👽lingua/" * n + SIGNATURE,
    "blanks": lambda n: "👽73" + " " * n + "x" + " " * n,
    "blank lines": lambda n: "👽73\n" + "\n" * n + SIGNATURE,
    "mangled": lambda n: "ðŸ‘½ " + "ðŸ‘½Ã©" * n,
    "digits of time": lambda n: "👽42|~+" + "9" * n + "m",
    "units of time": lambda n: "👽42|~+" + "1d" * n,
    "error details": lambda n: "!E1" + "|x" * n + SIGNATURE,
    "prose": lambda n: "some words\n" * n + "👽00" + SIGNATURE,
}


@pytest.mark.long(seconds=7)
@for_each(WORST)
def test_time_grows_with_the_text_and_no_faster(name: str) -> None:
    """Without the collector of garbage, whose own work grows with everything else that is alive."""

    def measure(size: int) -> float:
        wire = WORST[name](size)
        times = []
        for _ in range(3):
            start = time.thread_time()
            reading = dialects.decode(wire, dialect="agent_lingua")
            assert reading.fields
            times.append(time.thread_time() - start)
        return statistics.median(times)

    gc.disable()
    try:
        small, large = measure(3_000), measure(30_000)
    finally:
        gc.enable()
    assert large < 40 * max(small, 0.002), f"{name}: {small:.4f} s for 3,000 and {large:.4f} s for 30,000"


def test_a_bomb_stops_within_its_bound() -> None:
    bomb = base64_of(zlib.compress(bytes(100 << 20), 9))
    taken = []
    for _ in range(3):  # The collector of garbage may have its turn in one of them.
        start = time.thread_time()
        reading = dialects.decode(f"👽738|@1|$z:{bomb}{SIGNATURE}")
        taken.append(time.thread_time() - start)
    assert min(taken) < 0.1
    assert codes_of(reading) == ["too-large"]
    assert reading.messages[0].content is None


def test_many_bombs_in_one_record_share_one_bound() -> None:
    bomb = base64_of(zlib.compress(random.Random(1).randbytes(8000) + bytes(1_000_000), 9))
    reading = dialects.decode(";;".join([f"👽73|@1|$z:{bomb}"] * 60))
    assert codes_of(reading).count("too-large") > 50
    assert sum(len(layer.text) for layer in reading.layers[1:]) <= 4 << 20


def test_a_thousand_statements_are_read_and_more_are_noted() -> None:
    reading = dialects.decode(";;".join(["👽00"] * 1200))
    assert len(reading.messages) == 1000
    assert "limit" in codes_of(reading)


def test_a_message_within_a_message_a_thousand_deep_ends() -> None:
    wire = "👽00"
    for _ in range(12):
        wire = "👽1B|@z|$" + base64_of(wire)
    reading = dialects.decode(wire)
    (nested,) = reading.messages[0].nested
    assert nested["native_act"] == "FWD"
    assert "nested" not in nested
    assert "nested-limit" in codes_of(reading)


def test_duplicate_keys_are_both_told() -> None:
    reading = dialects.decode("👽73|@1|$j:" + base64_of('{"t":"one","t":"two"}'))
    assert "title = “one”, title = “two”" in reading.messages[0].sentence
    assert dialects.encode(reading).wire == reading.wire


@for_each(["9007199254740993", "18446744073709551616", "9" * 4301, "1e400", "-0", "1.50"])
def test_numbers_keep_their_digits(digits: str) -> None:
    (message,) = dialects.decode("👽73|@1|$j:" + base64_of(f'{{"v":{digits}}}')).messages
    assert f"value = {digits}." in message.sentence


def test_a_lone_surrogate_is_shown_as_its_escape() -> None:
    reading = dialects.decode("👽73|@1|$j:" + base64_of('{"t":"a\\ud800b"}') + SIGNATURE)
    assert "title = “a\\ud800b”" in reading.messages[0].sentence
    assert dialects.encode(reading).wire == reading.wire


@for_each(
    [
        "the 👽 emoji in a sentence",
        "we saw 👽73|@1 in the log",
        "  👽73|@1|$aGk=",
        "^ caret",
        "^10|x",
        "!Error: it failed",
        "!E",
        "!EDIT",
        "!E23x|",
        "?Uk/co",
        "!er:pa",
        "write to ops@example.org",
    ]
)
def test_look_alikes_are_not_taken(text: str) -> None:
    assert "agent_lingua" not in {candidate.dialect for candidate in dialects.detect(text)}


@for_each(
    [
        ("👽73|@1|$aGk=", 0.9, 1),
        ("👽00", 0.9, 1),
        ("👽G3", 0.9, 1),
        ("👽 hello there", 0.5, 0.9),
        ("👽", 0.9, 1),
        ("^0\n--👽lingua/0.4@agent-lingua", 0.9, 1),
        ("!E1|x\n--👽lingua/0.4@agent-lingua", 0.9, 1),
        ("^0|$aGk=", 0.3, 0.499),
        ("^0", 0.3, 0.499),
        ("!E1", 0.3, 0.499),
        ("All is well.\n\n👽00", 0.7, 1),
        ("All is well.\n--👽lingua/0.4@agent-lingua", 0.7, 1),
    ]
)
def test_the_score_says_how_sure_it_is(text: str, least: float, most: float) -> None:
    found = next(each for each in dialects.detect(text) if each.dialect == "agent_lingua")
    assert least <= found.score <= most
    assert found.why


def test_an_unsigned_answer_is_settled_by_its_conversation() -> None:
    prior = [("👽06|@bob", dialects.Envelope(sender="ada"))]
    alone = dialects.decode("^3|#r-1")
    told = dialects.decode("^3|#r-1", prior=prior)
    assert told.dialect == "agent_lingua"
    assert told.messages[0].status == "queued"
    assert alone.candidates[0].score < 0.5


def replies_to(wire: str) -> list[tuple[str, str, str | None]]:
    (message,) = dialects.decode(wire, dialect="agent_lingua").messages
    return [(reply.whom, reply.basis, reply.value) for reply in LINGUA.replies(message)]


def test_responses_answer_by_correlation_and_else_by_turn() -> None:
    turn = ("latest-unanswered-of-other", "turn", None)
    assert replies_to("^0|#m-7") == [("correlation-id", "correlation", "m-7"), turn]
    assert replies_to("!E2W|#m-7") == [("correlation-id", "correlation", "m-7"), turn]
    assert replies_to("^0") == [turn]
    sealed = "$e:" + base64_of(bytes(12)) + ":" + base64_of(bytes(20))
    assert replies_to(f"^0|#s1|{sealed}") == [turn]
    assert replies_to("👽13|@bob|#m-7") == []
    assert replies_to("👽 hello") == []


def frame(log: str) -> list[str]:
    framed = dialects.read_log(log.encode())
    return [item.wire for item in framed if isinstance(item, dialects.LogRecord) and item.wire is not None]


@for_each(
    [
        ("👽00\n--👽lingua/0.4@agent-lingua\n👽06|@bob\n", ["👽00\n--👽lingua/0.4@agent-lingua", "👽06|@bob"]),
        ("👽00\n👽06|@bob\n", ["👽00", "👽06|@bob"]),
        ("👽00\n👽06|@b\n--👽lingua/0.4@agent-lingua\n", ["👽00\n👽06|@b\n--👽lingua/0.4@agent-lingua"]),
        ("👽06|@b\n^0|$aGk=\n--👽lingua/0.4@agent-lingua\n", ["👽06|@b", "^0|$aGk=\n--👽lingua/0.4@agent-lingua"]),
        ("👽73|$aGVs\nbG8=\n--👽lingua/0.4@agent-lingua\n", ["👽73|$aGVs\nbG8=\n--👽lingua/0.4@agent-lingua"]),
        ("👽73|$aGVsb\nG8=\nwords\n", ["👽73|$aGVsb\nG8=", "words"]),
        ("👽73|$aGVs\nthanks\n", ["👽73|$aGVs", "thanks"]),
        ("👽13|$r:a\nb c\n--👽lingua/0.4@agent-lingua\nz\n", ["👽13|$r:a\nb c\n--👽lingua/0.4@agent-lingua", "z"]),
        ("👽13|$r:a\nb c\n", ["👽13|$r:a", "b c"]),
        ("👽 hello\n--👽lingua/0.4@agent-lingua\n", ["👽 hello\n--👽lingua/0.4@agent-lingua"]),
        ("👽00 --👽lingua/0.4@agent-lingua\nx\n", ["👽00 --👽lingua/0.4@agent-lingua", "x"]),
        ("!E2W\n--👽lingua/0.4@agent-lingua\n!E1\n", ["!E2W\n--👽lingua/0.4@agent-lingua", "!E1"]),
    ]
)
def test_a_log_is_framed_into_records(log: str, records: list[str]) -> None:
    assert frame(log) == records


def test_a_record_of_another_dialect_is_written_with_its_losses() -> None:
    message = dialects.Message(
        performative="query", native_act="QRY", content="Which tide?", sender="ada", receivers=("bob",), turn=3
    )
    written = dialects.encode([message], "agent_lingua")
    assert written.wire == f"👽16|@bob|${base64_of('Which tide?')}{SIGNATURE}"
    assert {loss.name for loss in written.losses} == {"native_act", "sender", "turn"}
    again = dialects.decode(written.wire).messages[0]
    assert (again.performative, again.content, again.receivers) == ("query", "Which tide?", ("bob",))


@for_each(
    [
        ("request", "👽13"),
        ("subscribe", "👽17"),
        ("unsubscribe", "👽18"),
        ("handshake", "👽09"),
        ("reject", "^A"),
        ("done", "^0"),
        ("progress", "^1"),
        ("failure", "^9"),
        ("not-understood", "!E1"),
        ("inform", "👽 "),
    ]
)
def test_each_act_that_exists_can_be_written(act: str, opening: str) -> None:
    message = dialects.Message(performative=act, native_act="OTHER", content="north")
    wire = dialects.encode([message], "agent_lingua").wire
    assert wire.startswith(opening)
    again = dialects.decode(wire).messages[0]
    assert (again.performative, again.content) == (act, "north")


@for_each(["propose", "commit", "delegate", "cancel", "acknowledge", None])
def test_an_act_the_dialect_lacks_is_refused(act: str | None) -> None:
    with pytest.raises(dialects.EncodeError) as refused:
        dialects.encode([dialects.Message(part=2, performative=act, native_act="OTHER")], "agent_lingua")
    assert refused.value.part == 2


@for_each(["A", "H", "S", "7", "a|b", "a;b", "a\nb", " a", ""])
def test_a_name_that_the_wire_would_misread_is_lost_and_not_written(name: str) -> None:
    message = dialects.Message(performative="request", native_act="REQ", content="x", receivers=(name,))
    written = dialects.encode([message], "agent_lingua")
    assert "receivers" in {loss.name for loss in written.losses}
    assert dialects.decode(written.wire).messages[0].receivers == ()


@pytest.mark.parametrize("text", ["a\n👽00", "a\n--👽lingua/0.4@agent-lingua", ""])
def test_text_that_would_become_wire_is_refused(text: str) -> None:
    with pytest.raises(dialects.EncodeError):
        dialects.encode([dialects.Message(performative="inform", native_act="INF", content=text)], "agent_lingua")


PIECES = (
    "👽", "👽", "👽73", "👽13", "👽09", "👽08", "👽a1", "👽6A", "|", "|", "|@bob", "|@1", "@99x", "|#s1", "#", "|~+1d",
    "|~*", "~=1706889600", "|~@2024-02-03T15:00+08", "|%K>1", "|%P1/2", "%", "$", "|$", "|$j:", "|$z:", "|$r:", "|$e:",
    "|$x:", "aGk=", "aGk", "-_", "eyJ0IjoxfQ==", ":", "AAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", ";;",
    "\n", "\r\n", SIGNATURE, "—👽lingua/1@x", "^0", "^A", "^", "!E1", "!E2W", "!E", " ", "hello", "ðŸ‘½", "\ufe0f",
    "Ã©", "{", '["a"]', '"', "\\", "\ud800", "\x00", "\u202e", "7",
)  # fmt: skip


@for_each(range(12))
def test_pieces_in_any_order_are_read_whole(seed: int) -> None:
    """No order of the dialect's own pieces breaks reading, hides a character, or makes `encode` fail otherwise."""
    pick = random.Random(seed)
    for _ in range(250):
        wire = "".join(pick.choices(PIECES, k=pick.randint(1, 14)))
        reading = dialects.decode(wire, dialect="agent_lingua")
        assert "".join(leaf.raw for leaf in leaves(reading.fields)) == wire, ascii(wire)
        notes = [*reading.notes, *(note for message in reading.messages for note in message.notes)]
        spans = [note.span for note in notes if note.span is not None]
        for leaf in leaves(reading.fields):
            if leaf.name == "unread":
                assert any(span[0] == 0 and span[1] < leaf.span[2] and span[2] > leaf.span[1] for span in spans)
        lengths = {layer.id: len(layer.text) for layer in reading.layers}
        for message in reading.messages:
            for segment in (*message.english, *message.also, *message.gloss):
                spans.extend(segment.spans)
        assert all(0 <= start <= end <= lengths[layer] for layer, start, end in spans), ascii(wire)
        assert (reading.error is not None and reading.error.group == "malformed") == reading.is_malformed
        try:
            written = dialects.encode(reading)
        except dialects.EncodeError:
            continue
        assert written.wire or not wire.strip()


def test_every_note_has_a_vector_or_a_test() -> None:
    """A row of the table that nothing can bring about would be a promise nobody keeps."""
    seen = {note for case in cases("valid") for note in case.data["notes"]}
    seen |= {case.data["note"] for case in cases("malformed")}
    tested_elsewhere = {"agent_lingua.session-overused"}
    assert {kind.code for kind in NOTES} - tested_elsewhere <= seen


def test_the_glossary_explains_every_code() -> None:
    codes = {(term.kind, term.code) for term in LINGUA.glossary}
    assert {("domain", code) for code in HEX} | {("action", code) for code in HEX} <= codes
    assert {("modifier", str(code)) for code in range(10)} <= codes
    assert all(term.meaning for term in LINGUA.glossary)


@for_each(
    [
        ("|@bob|@S", "Someone tells itself (or bob: the target is given twice"),
        ("|@A|@bob|@S", "Someone tells itself (or everyone or bob: the target is given 3 times"),
        ("|#n-1|#n-2", "n-2 (or “n-1”: the identifier is given twice"),
        ("|~+1h|~+2h", "in 2 hours (or “+1h”: the time is given twice"),
        ("|$YQ==|$Yg==", "“b”; the payload is given twice, earlier as “YQ==”"),
    ]
)
def test_a_field_given_again_is_told_with_all_its_values(fields: str, said: str) -> None:
    """No document says which one counts, so no sentence may settle on one of them."""
    message = dialects.decode(f"👽54{fields}{SIGNATURE}").messages[0]
    assert said in message.sentence
    (note,) = [note for note in message.notes if note.code == "agent_lingua.repeated-field"][:1]
    assert "do not define which counts" in note.text


def test_a_board_given_again_stands_behind_its_noun() -> None:
    message = dialects.decode(f"👽73|@1|@tides{SIGNATURE}").messages[0]
    assert "on Moltbook's “tides” board (or general board: the target is given twice" in message.sentence


def test_a_signature_alone_says_what_is_missing() -> None:
    (message,) = dialects.decode("--👽lingua/0.4@agent-lingua").messages
    said = "Someone sends only a signature line, “--👽lingua/0.4@agent-lingua”; "
    expected = f"{said}no message, so no act and no state is said."
    assert message.sentence == expected


@pytest.mark.parametrize("wire", ["^0", "!E2W"])
def test_a_bare_answer_is_a_candidate_until_its_conversation_speaks_the_dialect(wire: str) -> None:
    def is_candidate(**how: Any) -> bool:
        notes = dialects.decode(wire, dialect="agent_lingua", **how).messages[0].notes
        return "agent_lingua.candidate" in [note.code for note in notes]

    assert is_candidate()
    assert not is_candidate(prior=[(f"👽00{SIGNATURE}", None)])


@for_each(["-0", "0.12345678901234567890", "1e-400", "1e999"])
def test_a_number_that_no_float_holds_keeps_its_digits(written: str) -> None:
    payload = '{"v":' + written + "}"
    wire = f"👽73|@1|$j:{base64.b64encode(payload.encode()).decode()}"
    (message,) = dialects.decode(wire, dialect="agent_lingua").messages
    assert message.content == {"v": written}
    assert [note.code for note in message.notes if note.code.endswith("number-range")]
    assert f"value = {written}" in message.sentence
    assert dialects.encode([message], "agent_lingua").wire == wire


def test_a_number_that_is_spelled_otherwise_is_a_number_and_keeps_its_spelling() -> None:
    wire = "👽73|@1|$j:" + base64.b64encode(b'{"v":1.50}').decode()
    (message,) = dialects.decode(wire, dialect="agent_lingua").messages
    assert message.content == {"v": 1.5}
    assert dialects.encode([message], "agent_lingua").wire == wire
