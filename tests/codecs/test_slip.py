"""What no table of SLIP vectors can hold: the reference's reading, translations, look-alikes, blocks, hostile input."""

from __future__ import annotations

import time

import pytest
import slipcore
from hypothesis import strategies as st

import dialects
from dialects.slip.tables import ANCHORS, MAX_LINES, Anchor
from tests.each import for_each
from tests.lanes import generated
from tests.timing import is_within

from .test_laws import assert_covers

SLIP = dialects.get_dialect("slip")
UCR = slipcore.create_base_ucr()

names = st.text("abcXYZ019", min_size=1, max_size=20)
wires_v3 = st.builds(
    lambda *words: " ".join(["SLIP", "v3", *words[:-1], *words[-1]]),
    names,
    names,
    st.sampled_from([force.value for force in slipcore.ForceToken]),
    st.sampled_from(sorted(slipcore.CORE_OBJECTS)) | names,
    st.lists(names | st.just("pay.load"), max_size=22),
)


@generated(800, wire=wires_v3)
def test_a_line_reads_as_in_the_reference_and_what_that_refuses_is_noted(wire: str) -> None:
    (message,) = dialects.decode(wire, dialect="slip").messages
    try:
        expected = slipcore.parse_slip(wire)
    except slipcore.SlipError:
        assert [note for note in message.notes if note.severity == "warning"]
        return
    held = message.references[0].ref if message.references else None
    read = (message.sender, message.receivers, message.native_act, message.content or "", held)
    act, payload = f"{expected.force} {expected.obj}", " ".join(expected.payload)
    assert read == (expected.src, (expected.dst,), act, payload, expected.fallback_ref)
    assert not [note for note in message.notes if note.severity == "warning"]


def test_the_anchors_are_the_reference_s() -> None:
    ours = {(anchor.number, anchor.force, anchor.object) for anchor in ANCHORS if anchor.is_v3}
    assert ours == {(anchor.index, anchor.force, anchor.obj) for anchor in UCR}
    assert {anchor.mnemonic for anchor in ANCHORS if anchor.mnemonic} == set(slipcore.V2_TO_V3)


@for_each([anchor for anchor in ANCHORS if anchor.mnemonic and anchor.mnemonic != "EvalReject"])
def test_every_other_anchor_of_v1_is_written_in_v3_as_by_the_reference(anchor: Anchor) -> None:
    assert migrate(anchor.mnemonic) == "SLIP v3 a b " + " ".join(slipcore.V2_TO_V3[anchor.mnemonic])


def migrate(mnemonic: str) -> str:
    (message,) = dialects.decode(f"SLIP v1 a b {mnemonic}").messages
    return dialects.encode([message.replace(attributes={"slip": "v3"})], "slip").wire


def test_a_rejection_of_v1_is_one_in_v3() -> None:
    assert migrate("EvalReject") == "SLIP v3 a b Eval Reject"
    assert slipcore.V2_TO_V3["EvalReject"] == ("Eval", "Review")
    for wire in ("SLIP v1 a b EvalReject", migrate("EvalReject")):
        (message,) = dialects.decode(wire).messages
        assert (message.status, message.sentence) == ("rejected", "a tells b that it rejects what it evaluated.")


@for_each(
    [
        ("@a7|f0|c1|S0|d1|T2#", "SLIP v3 0 1 Reject Generic", 7),
        ("@a6|f0|c1|S0|d1|T2#", "SLIP v3 0 1 Accept Generic", 6),
        ('@a8|f3|c1|S0|d1|T2|u"rejected"#', "SLIP v3 0 1 Eval Reject", 8),
        ("@a8|f3|c1|S0|d1|T2#", "SLIP v3 0 1 Eval Generic", 8),
        ("@a3|f0|c1|S0|d1|T2#", "SLIP v3 0 1 Request Task", 3),
        ("@a3|f4|c1|S0|d1|T2#", "SLIP v3 0 1 Request Generic", 3),
        ("@a9|f0|c1|S0|d1|T2#", "SLIP v3 0 1 Error Generic", 9),
        ("@aA|f4|c1|S0|d1|T2#", "SLIP v3 0 1 Meta Generic", 10),
        *((f"@a{act}|f2|c1|S0|d1|T2#", f"SLIP v3 0 1 {force} Generic", act)
          for act, force in enumerate(("Observe", "Inform", "Ask"))),
        ("@a4|f1|c1|S0|d1|T2#", "SLIP v3 0 1 Propose Plan", 4),
        ("@a5|f0|c1|S0|d1|T2#", "SLIP v3 0 1 Commit Task", 5),
    ]
)  # fmt: skip
def test_nslip_and_slip_keep_each_other_s_acts(tag: str, line: str, act: int) -> None:
    written = dialects.encode(dialects.decode(tag), "slip")
    assert written.wire == line
    assert {"conversation_id", "turn"} <= {loss.name for loss in written.losses}
    (message,) = dialects.decode(written.wire).messages
    again = dialects.encode([message.replace(conversation_id="1", turn=2)], "nslip").wire
    digit = "0123456789A"[act]
    assert again.startswith(f"@a{digit}|")
    assert ('u"rejected"' in again) == ("rejected" in tag)


@for_each(["a b", "", "thread 7", "x" * 31, "too_slow"])
def test_a_topic_that_no_token_can_hold_is_a_loss_and_never_cut(topic: str) -> None:
    message = dialects.Message(performative="reject", native_act="REJECT", sender="0", receivers=("1",), topic=topic)
    written = dialects.encode([message], "slip")
    assert "topic" in {loss.name for loss in written.losses}
    assert written.wire in ("SLIP v3 0 1 Reject Generic", f"SLIP v3 0 1 Reject Generic {topic}")


LINE = dialects.Message(performative="accept", native_act="Accept", sender="a", receivers=("b",))


@for_each(
    [
        (LINE.replace(sender=None), "sender is missing"),
        (LINE.replace(sender="a b"), "no name"),
        (LINE.replace(receivers=("b", "c")), "exactly one receiver"),
        (LINE.replace(performative="subscribe"), "no act for subscribe"),
        (LINE.replace(performative=None), "no act for an unread message"),
        (dialects.Message(performative="inform", content="hello"), "no act to write"),
        (LINE.replace(attributes={"slip": "v1"}, native_act="Odd"), "would not be read back"),
    ]
)
def test_what_no_line_can_say_is_refused(message: dialects.Message, reason: str) -> None:
    with pytest.raises(dialects.EncodeError, match=reason):
        dialects.encode([message], "slip")


@for_each(
    [
        "SLIP v1 is a great protocol",
        "SLIP v3 makes requests short.",
        "We use SLIP v1 alice bob RequestReview here.",
        "slip v1 a b Accept",
        "SLIP 1 a b Accept",
        "SLIPv1 a b Accept",
        "SLIP over the serial line, and HiSLIP",
        '{"text": "SLIP v1 a b Accept"}',
    ]
)
def test_look_alikes_are_not_taken_for_slip(text: str) -> None:
    assert dialects.decode(text).dialect == "prose"


def test_in_a_conversation_that_speaks_slip_a_doubtful_line_is_slip() -> None:
    wire = "SLIP v3 a b request Plan"
    assert dialects.decode(wire).dialect == "prose"
    assert dialects.decode(wire, prior=[("SLIP v3 b a Ask Status", None)]).dialect == "slip"


@for_each(
    [
        ("THOUGHT: late\nQUANTIZE: x -> AskStatus\nSLIP: SLIP v1 a b AskStatus\nSLIP v1 b a Accept\n", [3, 1]),
        ("QUANTIZE: x -> AskStatus\nSLIP: SLIP v1 a b AskStatus\n", [2]),
        ("THOUGHT: late\nSLIP v1 a b Accept\n", [2]),
        ("THOUGHT: late\nhello\nSLIP v1 a b Accept\n", [1, 1, 1]),
    ]
)
def test_a_thought_and_its_line_are_one_record_of_a_log(log: str, lengths: list[int]) -> None:
    records = [item for item in dialects.read_log(log.encode()) if isinstance(item, dialects.LogRecord)]
    assert [record.wire.count("\n") + 1 for record in records] == lengths


@for_each(
    [
        ("SLIP v1 b a Accept", True),
        ("SLIP v1 b a InformComplete", True),
        ("SLIP v1 b a EvalReject", True),
        ("SLIP v3 b a Meta Ack", True),
        ("SLIP v1 b a RequestTask", False),
        ("SLIP v1 b a AskClarify", False),
        ("SLIP v1 b a ObserveState", False),
        ("SLIP v1 b a Fallback hello", False),
    ]
)
def test_an_answer_seeks_the_latest_message_of_the_other(wire: str, is_answer: bool) -> None:
    (message,) = dialects.decode(wire).messages
    assert [reply.whom for reply in SLIP.replies(message)] == ["latest-of-other"] * is_answer


def test_identity_is_the_thread_alone() -> None:
    assert dialects.identify("SLIP v1 a b AskStatus\nSLIP v1 a b InformStatus thread42 x").conversation == "42"
    assert dialects.identify("SLIP v3 a b Ask Status thread42") == dialects.Identity()


def test_a_record_of_too_many_lines_keeps_the_rest_as_text() -> None:
    reading = dialects.decode("SLIP v1 a b Accept\n" * (MAX_LINES + 2))
    assert len(reading.messages) == MAX_LINES + 1
    assert [note.code for note in reading.notes] == ["slip.too-many-lines"]
    assert_covers(reading)


WORST = {
    "lines": lambda n: "SLIP v1 a b Accept\n" * n,
    "cut-lines": lambda n: "SLIP v1\n" * n,
    "tokens": lambda n: "SLIP v3 a b Inform Result" + " x" * n,
    "threads": lambda n: "SLIP v1 a b Accept " + "thread" * n,
    "spaces": lambda n: "SLIP v1 a b Accept" + " " * n + "x",
    "leads": lambda n: "THOUGHT: x\nQUANTIZE: x\n" * n + "SLIP v1 a b Accept",
    "arrows": lambda n: "QUANTIZE: " + "-> a " * n + "\nSLIP v1 a b Accept",
    "forces": lambda n: "QUANTIZE: " + "Force=A " * n + "\nSLIP v1 a b Accept",
    "quotes": lambda n: 'SLIP v1 a b Fallback "' + '\\"' * n,
}


def measure(wire: str) -> float:
    """Processor seconds to read, tell and unfold a text; other work only adds to them."""
    start = time.thread_time()
    SLIP.identify(wire)
    SLIP.sniff(wire)
    told = SLIP.tell(SLIP.read(wire, None), dialects.Context(), dialects.NoKeys())
    assert told.reading.fields
    return time.thread_time() - start


@for_each(WORST)
def test_time_grows_linearly(name: str) -> None:
    short, long = WORST[name](1_000), WORST[name](10_000)
    assert is_within(40 * min(measure(short) for _ in range(5)) + 0.02, lambda: measure(long), tries=5)
