"""CLowl beyond its vectors: generated messages, the two ways of reading, hostile texts, blocks, secrets, writing."""

from __future__ import annotations

import gc
import json
import random
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from typing import Any

import pytest
from hypothesis import strategies as st

import dialects
from dialects import _json as positions
from dialects._english import enclose, say_name
from dialects._record import leaves
from dialects.clowl import DIALECT, reading
from dialects.clowl.parts import divide
from dialects.clowl.telling import say_key
from tests.lanes import generated

from ..each import for_each
from ..timing import is_within
from .cases import Case, cases, plain
from .test_laws import assert_covers

WITH_LINES = [case for case in (*cases("valid"), *cases("malformed")) if "reference_lines" in case.data]

NAMES = ["planner", "scout", "Zoë", "ops-7", "東京", "a b", "x/y"]
TASKS = ["survey", "report.weekly", "naïve?", "deploy"]
ACTS = {
    "REQ": "request",
    "INF": "inform",
    "ACK": "acknowledge",
    "ERR": "failure",
    "DLGT": "delegate",
    "DONE": "done",
    "CNCL": "cancel",
    "QRY": "query",
    "PROG": "progress",
    "CAPS": "advertise",
}
DIGEST = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0"


def write_json(value: Any, space: str) -> str:
    """The test's own writer: nothing of the codec's."""
    if isinstance(value, dict):
        pairs = f",{space}".join(f'"{key}":{space}{write_json(inner, space)}' for key, inner in value.items())
        return f"{{{space}{pairs}{space}}}"
    if isinstance(value, list):
        return "[" + f",{space}".join(write_json(item, space) for item in value) + "]"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    return (
        {None: "null", True: "true", False: "false"}.get(value, str(value))
        if value in (None, True, False)
        else str(value)
    )


def make_message(seed: int) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """A record made first, the object that says it, and the words its telling must hold."""
    dice = random.Random(seed)
    act = dice.choice(list(ACTS))
    sender, receivers, topic = dice.choice(NAMES), dice.sample(NAMES, dice.randint(1, 3)), dice.choice(TASKS)
    second = dice.randrange(0, 86400)
    mid, cid = f"m{seed}", f"c-{seed % 7}"
    details: dict[str, Any] = {
        f"k{index}": dice.choice(["a “b”", 'q"q', "l1\nl2", 3.25, -7, "x"]) for index in range(2)
    }
    record: dict[str, Any] = {
        "performative": ACTS[act],
        "native_act": act,
        "topic": topic,
        "sender": sender,
        "message_id": mid,
        "conversation_id": cid,
        "sent_at": f"2024-02-28T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}Z",
        "sent_at_raw": str(1709078400 + second),
    }
    attributes: dict[str, Any] = {"clowl": "0.2"}
    if act == "ERR":
        details |= {"code": "E006", "msg": "no answer", "retry": True}
        failure = {"code": "E006", "message": "no answer", "retryable": True, "retry_after": None, "cause": None}
        record["error"] = failure
    elif act == "DLGT":
        details["delegation_mode"] = record["delegation"] = dice.choice(["transfer", "fork", "assist"])
    elif act == "PROG":
        details["pct"] = record["progress"] = dice.randint(0, 100)
    elif act == "CAPS":
        details["supports"] = record["capabilities"] = ["scan:net", "scan:host"]
    elif act == "ACK":
        details["eta"] = "90s"
    record["content"] = details
    data: dict[str, Any] = {
        "clowl": "0.2",
        "mid": mid,
        "ts": 1709078400 + second,
        "p": act,
        "from": sender,
        "cid": cid,
        "body": {"t": topic, "d": details},
    }
    if dice.random() < 0.2:
        data["to"], record["broadcast"] = "*", True
    else:
        data["to"] = receivers if len(receivers) > 1 else receivers[0]
        record["receivers"] = receivers
    for key, name in (("tid", "trace_id"), ("pid", "parent_id")):
        if dice.random() < 0.5:
            data[key] = record[name] = f"{key}-{seed}"
    if dice.random() < 0.4:
        data["ctx"] = {"ref": "docs/a.md", "inline": None, "hash": DIGEST}
        record["references"] = [{"ref": "docs/a.md", "hash": DIGEST, "inline": None}]
    if dice.random() < 0.4:
        data["det"] = attributes["det"] = dice.random() < 0.5
    record["attributes"] = attributes
    keys = list(data)
    dice.shuffle(keys)
    said = [sender, topic, *(["everyone"] if record.get("broadcast") else receivers)]
    said += [
        value if isinstance(value, str) else str(value) for value in details.values() if not isinstance(value, list)
    ]
    said = [words for words in said if words != "True"]
    said += [record[name] for name in ("parent_id", "trace_id", "message_id", "conversation_id") if name in record]
    return record, {key: data[key] for key in keys}, said


@for_each(WITH_LINES)
def test_the_reference_line_of_a_vector(case: Case) -> None:
    assert [message.reference_line for message in case.decode().messages] == case.data["reference_lines"]


@for_each(range(240))
def test_a_generated_message_is_read_as_it_was_made(seed: int) -> None:
    record, data, said = make_message(seed)
    wire = write_json(data, " " if seed % 3 == 0 else "")
    message = dialects.decode(wire).messages[0]
    assert plain(message) == record
    assert message.notes == ()
    told = message.sentence + " ".join(part.text for part in message.also)
    for words in said:
        assert enclose(words)[1] in told
    assert message.sentence.startswith(say_name(record["sender"]))
    assert message.sentence.endswith(".")
    assert {"".join(part.text for part in message.english)} == {message.sentence}


@for_each(range(120))
def test_both_ways_of_reading_agree(seed: int) -> None:
    wire = write_json(make_message(seed)[1], "")
    short = reading.read(wire)
    general = reading._read_parts(wire, divide(wire))
    assert isinstance(short.parsed, dict) or "\\" in wire, "an ordinary message is read the short way"
    assert short.messages == general.messages
    assert (short.version, short.vocabulary) == (general.version, general.vocabulary)
    assert short.fields == general.fields


members = st.sampled_from(
    ["clowl", "mid", "ts", "p", "from", "to", "cid", "body", "tid", "pid", "ctx", "det", "auth", "x"]
)
odd_values = st.recursive(
    st.sampled_from(["0.2", "REQ", "DLGT", "DONE", "req", "", "*", "x" * 129, "tok-5e6f7a8b", "a:b", "-0", '":'])
    | st.sampled_from([None, True, False, 0, -1, 1709078400, 1.5, 10**20]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["t", "d", "ref", "hash", "inline", "status", "clowl", "k"]), inner, max_size=3
        )
    ),
    max_leaves=5,
)
changes = st.dictionaries(members, odd_values, max_size=3)


@generated(500, seed=st.integers(0, 500), change=changes, dropped=st.sets(members, max_size=2))
def test_the_short_way_never_hides_what_the_general_way_would_note(
    seed: int, change: dict[str, Any], dropped: set[str]
) -> None:
    data = {key: value for key, value in ({**make_message(seed)[1], **change}).items() if key not in dropped}
    wire = json.dumps(data)
    short, general = reading.read(wire), reading._read_parts(wire, divide(wire))
    assert short.messages == general.messages
    told = DIALECT.tell(short, dialects.Context(), dialects.KeyList(()))
    for message in told.messages:
        assert message.sentence == "".join(part.text for part in message.english)
        assert message.reference_line is not None or message.native_act is None
        lengths = len(wire)
        assert all(
            0 <= span[1] <= span[2] <= lengths for part in (*message.also, *message.gloss) for span in part.spans
        )
    assert_covers(short)


@generated(300, seed=st.integers(0, 500), change=changes)
def test_what_is_written_reads_back_but_for_the_losses(seed: int, change: dict[str, Any]) -> None:
    before = dialects.decode(json.dumps({**make_message(seed)[1], **change, "clowl": "0.2"}))
    written = dialects.encode(before)
    again = dialects.decode(written.wire)
    lost = {loss.name for loss in written.losses}
    for one, other in zip(before.messages, again.messages, strict=True):
        first, second = plain(one), plain(other)
        assert {name for name in first.keys() | second.keys() if first.get(name) != second.get(name)} <= lost


# A repeated key is never read in silence, wherever it stands and however it is spaced.
@for_each(
    [
        '"p":"REQ","body":{"t":"x","d":{}},"p":"DONE"',
        '"p" :"REQ","p":"DONE","body":{"t":"x","d":{}}',
        '"p"\n:"REQ","p":"DONE","body":{"t":"x","d":{}}',
        '"p":"REQ","body":{"t":"x","d":{"k":1,"k":2}}',
        '"p":"REQ","body":{"t":"x","d":{"l":[{"k":1,"k":2}]}}',
        '"p":"REQ","body":{"t":"x","t":"y","d":{}}',
        '"p":"REQ","body":{"t":"x","d":{"k":"\\":","k" :1}}',
        '"p":"REQ","body":{"t":"x","d":{"a":"b : c","k":0,"k":0}}',
    ]
)
def test_a_repeated_key_is_always_noted(wire: str) -> None:
    wire = f'{{"clowl":"0.2","mid":"a","ts":1709078400,"from":"a","to":"b","cid":"c",{wire}}}'
    message = dialects.decode(wire).messages[0]
    assert "clowl.duplicate-key" in {note.code for note in message.notes}
    assert any("stood before" in part.text for part in message.also)


@for_each(
    ["9007199254740993", "9223372036854775808", "18446744073709551616", "9" * 4300, "9" * 5000, "-0", "1e400", "1.10"]
)
def test_numbers_keep_their_digits(digits: str) -> None:
    wire = (
        '{"clowl":"0.2","mid":"a","ts":1709078400,"p":"INF","from":"a","to":"b","cid":"c",'
        f'"body":{{"t":"x","d":{{"n":{digits}}}}}}}'
    )
    decoded = dialects.decode(wire)
    assert digits in decoded.messages[0].sentence
    assert dialects.encode(decoded).wire == wire


def test_a_number_of_5001_digits_is_malformed() -> None:
    decoded = dialects.decode('{"clowl":"0.2","ts":' + "9" * 5001 + "}")
    assert decoded.error is not None
    assert decoded.error.code == "clowl.number-too-long"


TOKEN = "tok-canary-93f1"
REST = '"p":"REQ","from":"a","to":"b","cid":"c"'
BODY = '"body":{"t":"x","d":{}}'


@for_each(
    [
        '{"clowl":"0.2","mid":"a","ts":1709078400,REST,"body":{"t":"x","d":{"h":"Bearer TOKEN"}},"auth":"TOKEN"}',
        '{"clowl":"0.2",REST,"body":{"t":"TOKEN","d":{}},"auth":["TOKEN"]}',
        '{"clowl":"0.2",REST,"body":"TOKEN","auth":{"k":{"deep":"TOKEN"}}}',
        '{"clowl":"0.2","auth":"x","auth":"TOKEN",REST,BODY}',
        '{"clowl":"0.2","auth":"TOKEN","auth":"x",REST,BODY}',
        '{"clowl":"0.2","auth":"TOKEN","p":"REQ"',
        '{"cl":"0.1",REST,BODY,"auth":"TOKEN"}',
        '{"clowl":"0.3.0","mid":"a","routing":{"from":"a"},"auth":{"issuer":"i","token":"TOKEN","scopes":["s"],'
        '"more":"TOKEN"},"semantic":{"p":"REQ","from":"a","to":"b","task":"t","data":{"x":"TOKEN"},"ctx":null}}',
        '// note TOKEN\n{"clowl":"0.2","auth":"TOKEN",REST,BODY}\nuse TOKEN now',
        '{"clowl":"0.2","auth":"TOKEN","p":"TOKEN","from":"a","to":["TOKEN"],"cid":"c",BODY,"TOKEN":1}',
        '{"p":"REQ","from":"a","to":"b","task":"x","data":{"was":{"clowl":"0.2","p":"REQ","auth":"TOKEN"}},"auth":"TOKEN"}',
        '{"clowl":"0.2",REST,"body":{"t":"x","d":{"was":{"clowl":"0.2","p":"REQ","auth":"TOKEN"}}}}',
    ]
)
def test_a_token_shows_nowhere_but_in_the_wire(wire: str) -> None:
    wire = wire.replace("REST", REST).replace("BODY", BODY).replace("TOKEN", TOKEN)
    decoded = dialects.decode(wire)
    shown = decoded.to_dict()
    shown.pop("layers")
    assert TOKEN not in json.dumps(shown)
    assert all(TOKEN not in (message.reference_line or "") for message in decoded.messages)
    assert any(leaf.is_masked for leaf in leaves(decoded.fields))
    assert_covers(decoded)


def ordinary(count: int) -> str:
    body = ",".join(f'"k{index}":"value {index}"' for index in range(count // 16))
    return (
        '{"clowl":"0.2","mid":"a","ts":1709078400,"p":"REQ","from":"a","to":"b","cid":"c",'
        f'"body":{{"t":"x","d":{{{body}}}}}}}'
    )


HOSTILE: dict[str, Callable[[int], str]] = {
    "ordinary": ordinary,
    "deep lists": lambda n: '{"clowl":"0.2","body":' + "[" * n,
    "deep objects": lambda n: '{"clowl":' * (n // 9),
    "spaced deep objects": lambda n: '{"clowl" :' * (n // 10),
    "open strings": lambda n: '{"clowl":"x' * (n // 11),
    "escaped quotes": lambda n: '{"clowl":"' + '\\"' * (n // 2),
    "backslashes": lambda n: '{"clowl":"' + "\\" * n,
    "wide lists": lambda n: '{"clowl":"0.2","p":"REQ","from":"a","to":[' + "[]," * (n // 3) + "[]]}",
    "unknown keys": lambda n: '{"clowl":"0.2",' + ",".join(f'"x{index}":1' for index in range(n // 9)) + "}",
    "repeated keys": lambda n: '{"clowl":"0.2"' + ',"p":"REQ"' * (n // 10) + "}",
    "commas": lambda n: '{"clowl":"0.2","p":"REQ"}' + "," * n,
    "brackets": lambda n: '{"clowl":"0.2","p":"REQ"}' + "]" * n,
    "list openers": lambda n: '{"clowl":"0.2","p":"REQ"}' + "[ {" * (n // 3),
    "broken lines": lambda n: '{"clowl":"0.2","p":"REQ"}' + '\n{"clowl":[1,1,1' * (n // 15),
    "many messages": lambda n: '{"clowl":"0.2","p":"REQ","auth":"tok-5e6f7a8b"}\n' * (n // 48),
    "prose": lambda n: "so {and " * (n // 8) + '{"clowl":"0.2","p":"REQ"}',
    "white space": lambda n: '{"clowl":"0.2","p":"REQ"}' + " " * n + "{",
    "comments": lambda n: "//\n" * (n // 3) + '{"clowl":"0.2","p":"REQ"}',
    "fences": lambda n: "```\n" * (n // 4) + '{"clowl":"0.2","p":"REQ"}',
    "control characters": lambda n: '{"clowl":"0.2","p":"' + "\t" * n + '"}',
    "digits": lambda n: '{"clowl":"0.2","ts":' + "9" * n + "}",
    "constants": lambda n: '{"clowl":"0.2","x":[' + "-1," * (n // 3) + "NaN]}",
    "half characters": lambda n: '{"clowl":"0.2","p":"' + "\\ud800" * (n // 6) + '"}',
    "tokens": lambda n: (
        '{"clowl":"0.2","p":"REQ","auth":[' + ",".join(f'"token{i:08d}"' for i in range(n // 16)) + "]}"
    ),
}


def measure(text: str) -> float:
    """Processor seconds for everything that is worked out of a text."""
    gc.disable()
    try:
        start = time.thread_time()
        told = DIALECT.tell(reading.read(text), dialects.Context(), dialects.KeyList(()))
        DIALECT.sniff(text)
        DIALECT.identify(text)
        for message in told.messages:
            assert message.english is not None
            assert message.also is not None
            assert message.gloss is not None
        assert told.reading.fields is not None
        return time.thread_time() - start
    finally:
        gc.enable()


@for_each(HOSTILE)
def test_time_grows_with_length_alone(name: str) -> None:
    small, large = HOSTILE[name](2_000), HOSTILE[name](20_000)

    def is_even() -> bool:
        return is_within(30 * max(min(measure(small) for _ in range(3)), 1e-4), lambda: measure(large))

    # The best of three measurements of either text, and of three such rounds two.
    first, second = is_even(), is_even()
    assert (first and second) or ((first or second) and is_even()), (
        f"{name}: ten times the text took thirty times as long"
    )


@for_each(HOSTILE)
def test_hostile_text_is_covered_whole(name: str) -> None:
    assert_covers(dialects.decode(HOSTILE[name](3_000), dialect="clowl"))


@pytest.mark.parametrize("depth", [101, 1_500, 100_000])
def test_deep_nesting_is_answered_at_once(depth: int) -> None:
    wire = '{"clowl":"0.2","mid":"a","body":{"t":"x","d":' + "[" * depth + "]" * depth + "}}"
    taken = []
    for _ in range(3):  # The collector of garbage may have its turn in one of them.
        start = time.thread_time()
        decoded = reading.read(wire)
        taken.append(time.thread_time() - start)
    assert min(taken) < 0.05
    assert decoded.error is not None
    assert decoded.error.code == "clowl.too-deep"


@pytest.mark.parametrize("depth", [1, 50, 97])
def test_nesting_within_the_limit_is_read(depth: int) -> None:
    wire = ordinary(0).replace('"d":{}', '"d":{"x":' + "[" * depth + "]" * depth + "}")
    assert dialects.decode(wire).error is None


# --- the log's blocks

PRETTY = json.dumps(make_message(3)[1], indent=2)


def frame(lines: list[str]) -> list[list[str]]:
    """Records of a text log, framed as the log's reader would: by `opens` and `feed`."""
    records: list[list[str]] = []
    index = 0
    while index < len(lines):
        block = DIALECT.opens(lines[index])
        taken = [lines[index]]
        index += 1
        while block is not None and index < len(lines):
            answer = block.feed(lines[index])
            if answer == "not":
                break
            taken.append(lines[index])
            index += 1
            if answer == "last":
                break
        if block is not None and not block.is_complete and block.lines_if_cut is not None:
            index -= len(taken) - block.lines_if_cut
            taken = taken[: block.lines_if_cut]
        records.append(taken)
    return records


def test_a_pretty_object_is_one_record() -> None:
    lines = PRETTY.split("\n")
    assert frame([*lines, *lines, "the end"]) == [lines, lines, ["the end"]]


def test_an_object_on_one_line_opens_nothing() -> None:
    assert DIALECT.opens(json.dumps(make_message(3)[1])) is None


def test_a_new_message_within_an_open_one_means_that_it_was_cut() -> None:
    lines, one = PRETTY.split("\n"), json.dumps({"clowl": "0.2", "p": "REQ"})
    assert frame([*lines[:6], one, "next"]) == [lines[:6], [one], ["next"]]


def test_a_line_that_is_no_json_ends_a_cut_object() -> None:
    lines = PRETTY.split("\n")
    assert frame([*lines[:5], "12:00 INFO restarted"]) == [lines[:5], ["12:00 INFO restarted"]]


def test_an_open_string_ends_at_its_line() -> None:
    assert frame(['{"clowl":"0.2","mid":"a', '{"clowl":"0.2"}']) == [['{"clowl":"0.2","mid":"a'], ['{"clowl":"0.2"}']]


def test_a_comment_stays_with_the_object_below_it() -> None:
    lines = ["// first", *PRETTY.split("\n")]
    assert frame([*lines, "// alone", "prose"]) == [lines, ["// alone"], ["prose"]]


def test_a_comment_stays_with_an_object_on_one_line() -> None:
    one = json.dumps({"clowl": "0.2", "p": "REQ"})
    assert frame(["// first", one, "prose"]) == [["// first", one], ["prose"]]


def test_a_fence_is_one_record_and_an_open_one_is_not() -> None:
    lines = ["```json", *PRETTY.split("\n"), "```"]
    assert frame([*lines, "after"]) == [lines, ["after"]]
    assert frame(["```json", "one", "two"]) == [["```json"], ["one"], ["two"]]


def test_a_pretty_list_is_one_record() -> None:
    lines = json.dumps([make_message(1)[1], make_message(2)[1]], indent=1).split("\n")
    assert frame([*lines, "after"]) == [lines, ["after"]]
    assert [message.part for message in dialects.decode("\n".join(lines)).messages] == [1, 2]


@for_each(["[INFO] started", "{def:x=1}", "plain", "", "}", "[1, 2", "@a|f0"])
def test_other_lines_open_no_block(line: str) -> None:
    assert DIALECT.opens(line) is None


# --- detection, replies, writing


@for_each(
    [
        ('{"clowl":"0.2","mid":"a"', 0.98),
        ('  {\n "p": "REQ", "clowl" : "0.2"}', 0.98),
        ('[{"cl":"0.1","p":"REQ"}]', 0.98),
        ('Look: {"clowl":"0.2","p":"REQ"}', 0.6),
        ('{"p":"REQ","from":"a","to":"b","task":"t","data":{},"ctx":null}', 0.85),
        ('{"p":"REQ","from":"a","to":"b","cid":"c","body":{}}', 0.75),
        # However long what stands between its keys is, and wherever else such keys stand.
        (f'{{"p":"REQ","mid":"{"m" * 9000}","from":"a","to":"b","body":{{}}}}', 0.75),
        (f'[{{"body":{{"d":"{"z" * 9000}"}},"from":"a","to":"b","cid":"{"c" * 1_000_000}","p":"REQ"}}]', 0.75),
        (f'{{"d":"\\"{"z" * 9000}\\\\","p":"REQ","from":"a","to":"b","task":"t"}}', 0.85),
        (f'{{"d":"{"z" * 9000}","o":{{"p":"REQ","from":"a","to":"b","cid":"c"}}}}', None),
        (f'{{"d":"{"z" * 9000}"}},{{"p":"REQ","from":"a","to":"b","cid":"c"}}', None),
        (f'{{"d":"{"z" * 9000},\\"p\\":1,\\"from\\":1,\\"to\\":1,\\"cid\\":1"}}', None),
        (f'{{"d":["{"z" * 9000}","p","from","to","cid","body"]}}', None),
        ('{"hello":"world"}', None),
        ('{"performative":"inform","sender":"a"}', None),
        ('the key "clowl" is required', None),
        ("{def:x=1}", None),
        ("[INFO] up", None),
    ]
)
def test_detection_scores_what_the_text_as_a_whole_is(wire: str, score: float | None) -> None:
    candidate = DIALECT.sniff(wire)
    assert (candidate.score if candidate else None) == score


def test_an_answer_without_a_parent_asks_for_the_latest_message_to_its_sender() -> None:
    def reply(wire: str) -> list[tuple[str, str]]:
        return [(reply.whom, reply.basis) for reply in DIALECT.replies(dialects.decode(wire).messages[0])]

    base = {"cl": "0.1", "from": "a", "to": "b", "cid": "c", "body": {"t": "x", "d": {}}}
    assert reply(json.dumps({**base, "p": "DONE"})) == [("latest-to-me", "turn"), ("previous", "adjacency")]
    assert reply(json.dumps({**base, "p": "REQ"})) == [("previous", "adjacency")]
    assert reply(json.dumps({**base, "p": "ACK", "pid": "m1"})) == [("message-id", "explicit")]
    assert reply(json.dumps({**base, "p": "REQ", "pid": None})) == []


def test_a_record_of_another_dialect_is_written_with_its_losses() -> None:
    message = dialects.Message(
        performative="failure",
        native_act="ERROR",
        content="disk full",
        sender="a3",
        receivers=("b1",),
        turn=4,
        error=dialects.Failure(code="io", retryable=False),
    )
    written = dialects.encode([message], "clowl")
    body = {"d": {"message": "disk full", "code": "io", "retry": False}}
    assert json.loads(written.wire) == {"clowl": "0.2", "p": "ERR", "from": "a3", "to": "b1", "body": body}
    assert {"turn", "native_act", "content"} <= {loss.name for loss in written.losses}


def test_text_alone_is_written_as_an_inform() -> None:
    written = dialects.encode(dialects.decode("The window opens at nine.", dialect="prose"), "clowl")
    body = {"d": {"message": "The window opens at nine."}}
    assert json.loads(written.wire) == {"clowl": "0.2", "p": "INF", "body": body}
    assert "content" in {loss.name for loss in written.losses}


@pytest.mark.parametrize("performative", ["propose", "handshake", "subscribe", None])
def test_an_act_that_clowl_lacks_cannot_be_written(performative: str | None) -> None:
    with pytest.raises(dialects.EncodeError):
        dialects.encode([dialects.Message(performative=performative, sender="a")], "clowl")


def test_nothing_cannot_be_written() -> None:
    with pytest.raises(dialects.EncodeError):
        dialects.encode([], "clowl")


def test_a_told_message_keeps_its_telling_when_names_are_given_anew() -> None:
    message = dialects.decode('{"clowl":"0.2","p":"REQ","to":"b","cid":"c","body":{"t":"x","d":{}}}').messages[0]
    named = message.replace(sender="gateway")
    assert named.sentence == "gateway asks b to carry out the task “x”."
    assert message == dialects.Message(**{name: getattr(message, name) for name in message._order})


@for_each(
    [
        ({"overdue_days": 30}, "with overdue days = 30."),
        ({"rows-lost": 0, "retryAfter": 5}, "with rows lost = 0 and retry after = 5."),
        ({"sha_SHA256": 1, "x": 2, "URL": 3}, "with sha SHA256 = 1, x = 2 and URL = 3."),
        ({"a_bit": 1, "aBit": 2}, "with a_bit = 1 and aBit = 2."),
        ({"search:web": 1, "two words": 2}, "with search:web = 1 and “two words” = 2."),
    ]
)
def test_a_key_of_several_words_is_told_in_words(details: dict[str, Any], said: str) -> None:
    wire = json.dumps(
        {"clowl": "0.2", "p": "INF", "from": "a", "to": "b", "cid": "c", "body": {"t": "x", "d": details}}
    )
    (message,) = dialects.decode(wire).messages
    assert message.sentence.endswith(said)
    assert message.content == details
    assert all(f"{say_key(f'body.d.{key}')} " in message.gloss_line for key in details)


def test_the_whole_of_a_shortened_hash_stands_beside_the_sentence() -> None:
    written = "0f1e2d3c" * 8
    context = json.dumps({"ref": "plan.md", "inline": None, "hash": written})
    wire = f'{{"clowl":"0.2","p":"INF","from":"a","to":"b","cid":"c","body":{{"t":"x","d":{{}}}},"ctx":{context}}}'
    (message,) = dialects.decode(wire).messages
    assert "with a SHA-256 that begins “0f1e2d3c”" in message.sentence
    assert written not in message.sentence
    (beside,) = [segment for segment in message.also if written in segment.text]
    ((_, start, end),) = beside.spans
    assert wire[start:end] == f'"hash": "{written}"'


def test_the_advice_names_the_machine_its_state_and_the_act() -> None:
    case = next(case for case in cases("valid") if case.data["id"] == "life-simple-flow")
    (note,) = case.decode().messages[0].notes
    assert "the lifecycle document takes no DONE for a task in state ACKNOWLEDGED" in note.text
    assert note.span is not None
    assert case.wire[note.span[1] : note.span[2]] == '"p":"DONE"'


@for_each([case for case in cases("malformed") if case.dialect == "clowl"])
def test_notes_speak_in_words_and_not_in_paths(case: Case) -> None:
    reading = case.decode()
    for note in (*reading.notes, *(note for message in reading.messages for note in message.notes)):
        assert "$" not in note.text


def test_a_reading_without_its_parse_is_told_all_the_same() -> None:
    wire = json.dumps(make_message(7)[1])
    stored = reading.read(wire).replace(parsed=None)
    told = DIALECT.tell(stored, dialects.Context(), dialects.KeyList(()))
    assert told.messages[0].sentence == dialects.decode(wire).messages[0].sentence


def test_every_span_of_a_name_shows_that_name() -> None:
    wire = write_json(make_message(5)[1], " ")
    message = dialects.decode(wire).messages[0]
    first = message.english[0]
    assert wire[first.spans[0][1] : first.spans[0][2]] == f'"{first.text}"'


def test_what_is_said_beside_the_sentence_shows_its_key() -> None:
    wire = '{"clowl":"0.2","mid":"a1","p":"REQ","urgency":"high"}'
    message = dialects.decode(wire).messages[0]
    shown = {part.text: wire[part.spans[0][1] : part.spans[0][2]] for part in (*message.also, *message.gloss)}
    assert shown["message a1"] == '"mid":"a1"'
    assert shown["urgency = “high”"] == shown[" · urgency high"] == '"urgency":"high"'


def test_the_glossary_holds_every_act_code_mode_and_field() -> None:
    codes = {term.code for term in DIALECT.glossary}
    assert set(ACTS) | {f"E{number:03d}" for number in range(1, 17)} | {"transfer", "fork", "assist", "mid"} <= codes
    assert all(term.meaning for term in DIALECT.glossary)


@for_each(product(["nslip", "lambda_lang", "agent_lingua", "prose"], ACTS))
def test_a_told_message_is_written_in_another_dialect_or_refused(slug: str, act: str) -> None:
    body = {"t": "deploy", "d": {"delegation_mode": "fork"} if act == "DLGT" else {"code": "E005", "msg": "no"}}
    told = dialects.decode(json.dumps({**make_message(3)[1], "p": act, "body": body}))
    with suppress(dialects.EncodeError):
        lost = {loss.name for loss in dialects.encode(told, slug).losses}
        assert lost <= set(dialects.Message._order)
        assert "conversation_id" in lost or slug == "nslip"


@for_each(ACTS)
def test_what_one_message_says_is_never_told_of_another_of_its_form(act: str) -> None:
    """Values that decide on the words, that are equal and spelled otherwise, and that look like gaps."""
    odd = ["0", "-0.0", "0.0", "0.00", "1", "true", "false", "null", '""', '"failed"', '"ok"', '"E002"', '"E006"', "[]"]
    odd += [
        "[1]",
        "[2]",
        '{"a":1}',
        '{"a":2}',
        '"fork"',
        '"assist"',
        '"50% %s"',
        '"\ufdd05\ufdd1"',
        "871782912000000005",
    ]
    for name in ("status", "success", "error", "errors", "pct", "eta", "q", "note", "code", "msg", "retry", "supports"):
        for value in odd:
            base = {"ERR": '"code":"E002","msg":"no"', "DLGT": '"delegation_mode":"fork"'}.get(act, '"x":"y"')
            wire = (
                f'{{"clowl":"0.2","mid":"m","ts":1709078400,"p":"{act}","from":"a%s","to":"b","cid":"c",'
                f'"body":{{"t":"x","d":{{{base},"{name}":{value}}}}}}}'
            )
            (message,) = dialects.decode(wire).messages
            said = message.sentence
            assert said == "".join(part.text for part in message.english)


def test_a_telling_in_very_many_pieces_keeps_every_word_and_ends_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    members = {f"k{number}": number for number in range(50)}
    wire = json.dumps({"clowl": "0.2", "p": "REQ", "from": "ada", "to": "bob", "body": {"t": "count", "d": members}})
    (whole,) = dialects.decode(wire).messages
    told = {name: getattr(whole, name) for name in ("english", "gloss")}
    monkeypatch.setattr("dialects.clowl.asides.MAX_SEGMENTS", 20)
    (cut,) = dialects.decode(wire).messages
    for name in ("english", "gloss"):
        segments, every = getattr(cut, name), told[name]
        assert (len(segments), len(every) > 21) == (21, True), name
        assert segments[:20] == every[:20]
        assert "".join(each.text for each in segments) == "".join(each.text for each in every)
        assert segments[20].spans == ((0, 0, len(wire)),)


def test_the_places_of_a_long_text_are_those_of_a_short_one(monkeypatch: pytest.MonkeyPatch) -> None:
    text = '{"a": 1, "b\\u0041" : [ "x", {"c": null, "a":[]} ], "a": "last", "e": {}}'

    def list_places() -> list[tuple[Any, ...]]:
        root = positions.place(text, 0, len(text))
        rows = [("$", root), *((path, node) for path, node in root.walk()), ("found", root.locate(("bA", 1, "c")))]
        return [
            (path, each.key, each.kind, each.key_start, each.key_end, each.start, each.end, len(each.members))
            for path, each in rows
            if each is not None
        ]

    short = list_places()
    assert len(short) == 10
    assert [text[start:end] for path, _, _, _, _, start, end, _ in short if path == ("a",)] == ["1", '"last"']
    monkeypatch.setattr(positions, "_LONG", 0)
    assert list_places() == short
