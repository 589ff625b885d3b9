"""`python -m dialects` as people call it, with bytes in and lines out: in a process of its own where that matters."""

from __future__ import annotations

import base64
import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dialects
from dialects.__main__ import main
from dialects.agent_lingua.contents import name_key
from tests.each import for_each

ROOT = Path(__file__).parents[2]
TAG = '@a3|f0|c1|S0|d1|T1|k1|t"x"#'
NAMES = ["index", "dialect", "version", "vocabulary", "candidates", "messages", "footer", "notes", "error"]


Runner = Callable[..., subprocess.CompletedProcess[bytes]]


def run_apart(*arguments: str | Path, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """The command in a process of its own, at its end."""
    return subprocess.run(
        [sys.executable, "-m", "dialects", *map(str, arguments)],
        input=given,
        capture_output=True,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "codecs"), "LC_ALL": "C"},
        timeout=120,
    )


def run_here(*arguments: str | Path, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """The same in this process: to start one takes longer than most of what is asked of it."""
    out, err = io.BytesIO(), io.BytesIO()
    with pytest.MonkeyPatch.context() as patch:
        for name, stream in (("stdin", io.BytesIO(given)), ("stdout", out), ("stderr", err)):
            patch.setattr(sys, name, io.TextIOWrapper(stream, "ascii", errors="surrogateescape", write_through=True))
        try:
            code = main([*map(str, arguments)])
        except SystemExit as end:
            code = int(end.code or 0)
        return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def run(*arguments: str | Path, given: bytes = b"", code: int = 0, start: Runner = run_here) -> str:
    """What the command prints; it must end with that code, and complain in one line at most."""
    done = start(*arguments, given=given)
    assert done.returncode == code, done.stderr.decode()
    assert done.stderr.count(b"\n") == (code == 2)
    return done.stdout.decode() + done.stderr.decode()


def lines_of(printed: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed.splitlines()]


@pytest.mark.parametrize("start", [run_here, run_apart])
def test_decode_prints_a_line_for_each_record_in_order(start: Runner) -> None:
    given = f"2026-11-21T09:00:00Z {TAG}\n\nhello \u2028 there\n".encode()
    shown = lines_of(run("decode", given=given, start=start))
    assert [list(line) for line in shown] == [NAMES, NAMES]
    assert [(line["index"], line["dialect"], line["error"]) for line in shown] == [
        (0, "nslip", None),
        (1, "prose", None),
    ]
    expected = dialects.decode(TAG, dialects.Envelope(at="2026-11-21T09:00:00Z", at_raw="2026-11-21T09:00:00Z"))
    assert shown[0]["messages"] == json.loads(json.dumps([message.to_dict() for message in expected.messages]))
    assert shown[1]["messages"][0]["content"] == "hello \u2028 there"


def test_the_tree_adds_fields_and_layers() -> None:
    [shown] = lines_of(run("decode", "--format", "tree", given=TAG.encode()))
    assert set(shown) == {*NAMES, "fields", "layers"}
    assert shown["layers"][0]["text"] == TAG


def test_english_and_gloss_are_lines_of_text() -> None:
    sentence = dialects.decode(TAG).messages[0].sentence
    assert (
        run("decode", "--format", "english", given=TAG.encode()) == f"Conversation 1:\n1. no time, turn 1: {sentence}\n"
    )
    assert run("decode", "--format", "gloss", given=b"hello") == "Someone writes plain text: “hello”.\n"


def test_text_cannot_steer_the_terminal_or_forge_a_line() -> None:
    given = json.dumps({"raw": "a\x1b[31m\nb\u202e\ud800"}).encode()
    assert run("decode", "--format", "english", given=given) == (
        "1. no time: Someone writes plain text: “a\u241b[31m\u240ab\\u202e\\ud800”. Caution: it holds characters that "
        "cannot be seen or that change the direction of text, the first U+202E.\n"
    )


@pytest.mark.parametrize("start", [run_here, run_apart])
def test_what_is_not_read_fully_is_told_and_counted(start: Runner) -> None:
    shown = lines_of(run("decode", given=b'one\nbad \xe9\n{"clowl":"0.2",\n', code=1, start=start))
    assert shown[1]["error"] == {"kind": "not-utf-8", "reason": "byte 0xe9 at offset 8 is not UTF-8", "offset": 8}
    assert shown[1]["messages"] == []
    assert shown[2]["error"]["kind"].startswith("clowl.")
    assert shown[2]["messages"][0]["performative"] is None


def test_a_dialect_can_be_forced() -> None:
    [shown] = lines_of(run("decode", "--dialect", "prose", given=TAG.encode()))
    assert shown["dialect"] == "prose"


def test_a_log_is_told_in_the_context_of_its_conversation() -> None:
    one = {"raw": '{def:foo="the secret door"}', "conversation": "a", "dialect": "lambda_lang"}
    log = [one, {"raw": "?foo", "conversation": "a", "dialect": "lambda_lang"}]
    log.append({"raw": "?foo", "conversation": "b", "dialect": "lambda_lang"})
    english = run("decode", "--format", "english", given="\n".join(map(json.dumps, log)).encode()).splitlines()
    assert "the secret door" in english[-3]
    assert "the secret door" not in english[-1]


def test_envelopes_carry_what_was_said_before() -> None:
    before = '{def:foo="the secret door"}'
    given = {"raw": "?foo", "dialect": "lambda_lang", "prior": [{"raw": before, "dialect": "lambda_lang"}]}
    lines = [given, {**given, "prior": []}, {"raw": TAG, "from": "5", "at": "2026-11-21T09:00:00Z"}]
    shown = lines_of(run("decode", "--envelopes", given="\n".join(map(json.dumps, lines)).encode()))
    sentences = ["".join(part["text"] for part in line["messages"][0]["english"]) for line in shown]
    assert "the secret door" in sentences[0]
    assert "the secret door" not in sentences[1]
    assert shown[2]["messages"][0]["sent_at"] == "2026-11-21T09:00:00Z"
    assert [note["code"] for note in shown[2]["notes"]] == ["envelope.disagrees"]


def test_envelopes_carry_keys() -> None:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    psk, nonce = bytes(range(32)), bytes(range(12))
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"s1").derive(psk)
    sealed = [base64.b64encode(part).decode() for part in (nonce, AESGCM(key).encrypt(nonce, b"meet at noon", None))]
    given = {"raw": f"👽137|#s1|$e:{sealed[0]}:{sealed[1]}"}
    keys = [{"session": "s1", "psk": base64.b64encode(psk).decode()}]
    lines = [given, {**given, "keys": keys}]
    shown = lines_of(run("decode", "--envelopes", given="\n".join(map(json.dumps, lines)).encode()))
    assert [line["messages"][0]["security"]["opened"] for line in shown] == [False, True]
    assert "meet at noon" in json.dumps(shown[1]["messages"])


@for_each(
    [
        "hello",
        "[1",
        "{}",
        '{"raw": 5}',
        '{"raw": "a", "prior": 5}',
        '{"raw": "a", "prior": [5]}',
        '{"raw": "a", "keys": [{"psk": "%"}]}',
        '{"raw": "a", "keys": [{"psk": 5}]}',
        '{"raw": "a", "keys": ["x"]}',
    ]
)
def test_what_is_no_envelope_is_one_failed_record(line: str) -> None:
    shown = lines_of(run("decode", "--envelopes", given=f'{{"raw": "a"}}\n{line}\n{{"raw": "b"}}\n'.encode(), code=1))
    assert [bool(one["error"]) for one in shown] == [False, True, False]
    assert shown[1]["error"]["kind"] == "envelope"


def test_detect_prints_the_candidates() -> None:
    shown = lines_of(run("detect", given=f"{TAG}\nhello".encode()))
    assert [line["dialect"] for line in shown] == ["nslip", "prose"]
    assert shown[0]["candidates"][0]["score"] > 0.5


def test_what_is_decoded_can_be_encoded() -> None:
    decoded = run("decode", given=f"{TAG}\nhello".encode())
    shown = lines_of(run("encode", "--dialect", "nslip", given=decoded.encode(), code=1))
    assert shown[0] == {"index": 0, "wire": TAG, "losses": [], "error": None}
    assert (shown[1]["wire"], shown[1]["error"]["kind"]) == (None, "encode")


def test_losses_are_named() -> None:
    message = json.dumps({"performative": "inform", "content": "hi", "sender": "ada"}).encode()
    [shown] = lines_of(run("encode", "--dialect", "prose", given=message))
    assert (shown["wire"], [loss["name"] for loss in shown["losses"]]) == ("hi", ["sender"])


@for_each(
    [
        ('{"messages": 5}', "a list of messages is needed @ $.messages"),
        ('{"sender": 5}', "this must be str | None @ $[0].sender"),
        ('{"target": {"raw": "x"}}', "Target needs name, kind @ $[0].target"),
        ('{"nothing": 1}', "Message has no such name @ $[0].nothing"),
        ('{"receivers": ["a", null]}', "this must be str @ $[0].receivers[1]"),
        ('{"progress": true}', "this must be int | float | None @ $[0].progress"),
        ("{", "not JSON"),
    ]
)
def test_what_is_no_record_says_where(given: str, reason: str) -> None:
    [shown] = lines_of(run("encode", "--dialect", "prose", given=given.encode(), code=1))
    assert reason in shown["error"]["reason"]


def test_list_names_every_dialect() -> None:
    assert [line.split("\t")[0] for line in run("list").splitlines()] == [
        dialect.slug for dialect in dialects.all_dialects()
    ]


@for_each(
    [
        (["decode", "--dialect", "klingon"], "there is no dialect 'klingon'"),
        (["decode", "--log", "--envelopes"], "not allowed with"),
        (["decode", "--format", "xml"], "invalid choice"),
        (["decode", "/no/such/file"], "/no/such/file: No such file or directory"),
        (["decode", "/"], "/: Is a directory"),
        (["encode"], "--dialect"),
        (["sing"], "invalid choice"),
        ([], "COMMAND"),
    ]
)
def test_wrong_usage_is_one_line_and_code_two(arguments: list[str], complaint: str) -> None:
    printed = run(*arguments, code=2, start=run_here if arguments else run_apart)
    assert printed.startswith("python -m dialects")
    assert complaint in printed


def test_files_follow_one_another_and_gzip_is_opened(tmp_path: Path) -> None:
    first, second = tmp_path / "a.log", tmp_path / "b.log.gz"
    first.write_text("one\ntwo")
    second.write_bytes(gzip.compress(b"three\n") + gzip.compress(b"four\n") + bytes(512))
    printed = run("decode", "--format", "english", first, second, "-", given=gzip.compress(b"five"))
    words = ["one", "two", "three", "four", "five"]
    told = [f"{number}. no time: Someone writes plain text: “{word}”." for number, word in enumerate(words, 1)]
    assert printed.splitlines() == told
    shown = lines_of(run("decode", first, second))
    assert [line["index"] for line in shown] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [(lambda packed: packed[:-20], "breaks off"), (lambda packed: packed + b"junk", "not a sound gzip stream")],
    ids=["cut", "junk behind it"],
)
def test_a_damaged_archive_gives_what_is_whole(tmp_path: Path, damage: Any, complaint: str) -> None:
    packed = tmp_path / "x.gz"
    packed.write_bytes(damage(gzip.compress(b"".join(b"line %d\n" % number for number in range(10_000)))))
    done = subprocess.run(
        [sys.executable, "-m", "dialects", "detect", packed],
        capture_output=True,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "codecs")},
        timeout=120,
    )
    assert done.returncode == 1
    assert done.stdout.count(b"\n") > 8_000
    assert complaint in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


def test_lines_come_out_while_the_input_is_still_open() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "dialects", "decode", "--format", "english"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "codecs")},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number, word in enumerate((b"one", b"two"), 1):
            process.stdin.write(word + b"\n")
            process.stdin.flush()
            told = f"{number}. no time: Someone writes plain text: “{word.decode()}”.\n"
            assert process.stdout.readline() == told.encode()
        process.stdin.close()
        assert process.wait(timeout=120) == 0


def tell(*records: dict[str, Any]) -> list[str]:
    given = "\n".join(json.dumps(record) for record in records).encode()
    return run("decode", "--format", "english", given=given).splitlines()


def make_clowl(
    mid: str, act: str, sender: str, receiver: str, pid: str | None = None, **details: Any
) -> dict[str, Any]:
    head = {"clowl": "0.2", "mid": mid, "ts": 1709078400, "p": act, "from": sender, "to": receiver, "cid": "c"}
    return {**head, "body": {"t": "burn", "d": details}, **({"pid": pid} if pid else {})}


ASKED = make_clowl("h-1", "REQ", "kim", "bob", eur=10)


def test_a_reply_names_the_message_that_it_answers() -> None:
    told = tell(ASKED, make_clowl("h-2", "DONE", "bob", "kim", "h-1"), make_clowl("h-3", "DONE", "bob", "kim", "h-9"))
    assert told[0] == "Conversation c:"
    assert told[2].endswith("that the task “burn” is done. In reply to message 1 (kim's request “burn”).")
    # It may come later: a log is told as it is read.
    assert "In reply to message h-9, which is not among the messages before it." in told[3]
    assert told[3].endswith("Its time is that of message 2 too: which was first is not known.")


def test_an_id_with_other_content_is_told_and_replies_to_it_are_doubtful() -> None:
    changed = make_clowl("h-1", "REQ", "kim", "bob", eur=10_000)
    told = tell(ASKED, changed, ASKED, make_clowl("h-2", "DONE", "bob", "kim", "h-1"))
    assert (
        "Caution: the id h-1 was used before, by message 1, with other content (eur = 10000 instead of 10)" in told[2]
    )
    assert "It repeats message 1 word for word." in told[3]
    assert "(kim's request “burn”); which of them is unknown." in told[4]


def test_what_is_inferred_is_told_as_inferred() -> None:
    told = tell(
        {"raw": '@a3|f0|c1|S0|d1|T1|k1|t"x"#', "at": "2026-11-21T09:00:00Z"},
        {"raw": "@a6|f0|c1|S1|d0|T2|k1#", "at": "2026-11-21T08:00:00Z"},
        {"raw": "@a7|f0|c1|S1|d0|T2|k1#", "at": "2026-11-21T08:00:00Z"},
    )
    assert told[1].startswith("1. 21 November 2026, 09:00:00 UTC, turn 1: The coordinator (agent 0) asks")
    assert (
        "Judging by the sequence, in reply to message 1 (agent 0's request “x”); the message itself does not say so."
        in told[2]
    )
    assert "Caution: its time is before that of message 1, which stands before it." in told[2]
    assert "turn 2 was used before, by message 2, with other content (a rejection instead of an acceptance)" in told[3]
    told = tell(
        {"raw": "@a3|f0|c1|S0|d1|T1|k1#"}, {"raw": "@a3|f0|c1|S1|d0|T1|k1#"},
        {"raw": "@a6|f0|c1|S1|d0|T2|k1#"}, {"raw": "@a3|f0|c1|S0|d1|T1|k2#"},
    )  # fmt: skip
    # Two that speak in one turn do not answer each other.
    assert "Judging" not in told[2]
    assert "Caution: turn 1 of this sender was message 1 already: a new run of the turns begins here." in told[4]


def test_a_clock_a_deadline_and_a_task_that_contradict_what_is_answered_are_told() -> None:
    late, early, answer = ASKED, make_clowl("h-2", "INF", "kim", "bob"), make_clowl("h-3", "DONE", "bob", "kim", "h-1")
    answer["body"] = {**answer["body"], "t": "keep"}
    told = tell(
        {**late, "ts": 1709078400}, {**early, "ts": 1709078380}, {**answer, "ts": 1709078390},
        {**say_lingua("👽46|~=2024-01-01T00:00:00Z|@1", "kim", "bob"), "at": "2024-03-01T00:00:00Z"},
    )  # fmt: skip
    assert "Caution: its time is before that of message 1, which it answers." in told[3]
    assert "Caution: it is about “keep”, and what it answers is about “burn”." in told[3]
    assert "1 January 2024, 00:00:00 UTC, was over when it was sent." in "".join(told)


def test_a_name_that_reads_like_more_is_told_to_be_one() -> None:
    told = tell(*(make_clowl(mid, "INF", "everyone, dora", "bob") for mid in ("m-1", "m-2")))
    assert "Note: “everyone, dora” is the name of one agent." in told[1]
    assert "is the name of one agent" not in told[2]


def test_of_what_is_not_read_no_reader_is_left_to_guess_what_it_answers() -> None:
    told = tell({"raw": "@aB|f0|c1|S0|d1|T1|k1#"})
    assert "sends the planner (agent 1) an act that nSLIP does not define (number 11), about task 1." in told[1]
    assert "Whether it answers a message cannot be told." in told[1]


def test_a_turn_used_for_another_act_is_told_in_words_and_not_by_its_code() -> None:
    told = tell(*({"raw": f"@a{act}|f0|c1|S0|d1|T1|k1#"} for act in ("3", "Z", "1")))
    assert "turn 1 was used before, by message 1, with other content (an unknown act instead of a request)" in told[2]
    assert "with other content (news instead of a request)" in told[3]


def test_a_truth_value_is_told_in_words_and_a_text_that_says_so_in_quotation_marks() -> None:
    told = tell(
        make_clowl("m-1", "INF", "kim", "bob", approved=True, word="no"),
        make_clowl("m-1", "INF", "kim", "bob", approved=False, word="no"),
    )
    assert "with approved = yes and word = “no”" in told[1]
    assert "with other content (approved = no instead of yes)" in told[2]


def test_an_answer_that_names_no_message_says_that_it_names_none() -> None:
    assert tell(make_clowl("m-1", "ACK", "kim", "bob"))[1].endswith(
        "(that is not yet agreement). It does not say which message it answers."
    )


def test_what_a_message_says_is_told_as_its_text_and_its_number_as_a_number() -> None:
    told = tell(say_lingua("👽13|@bob|#r2|$cGF5IDMy", "kim", "bob"), say_lingua("👽132|@bob|$cGF5IDMy", "kim", "bob"))
    assert "kim sends bob a message (its number is r2) with the text: “pay 32”." in told[1]
    assert "kim sends bob a message, without notification, with the text: “pay 32”." in told[2]


def say_lingua(raw: str, sender: str, receiver: str) -> dict[str, Any]:
    return {"raw": f"{raw}\n--👽lingua/0.4@agent-lingua", "from": sender, "to": receiver, "conversation": "c"}


def test_an_answer_that_names_nothing_names_all_that_it_could_answer() -> None:
    asked = [say_lingua("👽24|@bob|#/srv/a.gz", "kim", "bob"), say_lingua("👽16|@bob|$dGhlIHByaWNl", "kim", "bob")]
    told = tell(*asked, say_lingua("^1", "bob", "kim"))
    assert told[3].endswith(
        "Which message it answers cannot be told: message 1 (kim's request) or message 2 (kim's question); no "
        "answer to any of them is known."
    )
    told = tell(*asked, say_lingua("^A|#r99", "bob", "kim"))
    assert told[3].endswith(
        "In reply to message r99, which is not among the messages before it; judging by the sequence, perhaps to "
        "message 2 (kim's question)."
    )


def test_a_statement_to_who_asked_may_be_the_answer_and_later_lines_agree() -> None:
    def say(raw: str, sender: str, receiver: str) -> dict[str, Any]:
        return {"raw": raw, "from": sender, "to": receiver, "conversation": "c"}

    told = tell(
        say("?Uk/da", "kim", "bob"), say("!I-k/da", "eve", "kim"), say("!I-k/da", "bob", "kim"),
        say("!Ik", "bob", "kim"), say(">Ig/da", "kim", "bob"), say("<-", "bob", "kim"), say("<+", "bob", "kim"),
    )  # fmt: skip
    assert [number for number, line in enumerate(told) if "Whether it answers" in line] == [3]
    assert told[3].endswith("I do not know about data. Whether it answers message 1 (kim's question) cannot be told.")
    assert told[6].endswith(
        "Which message it answers cannot be told: message 1 (kim's question; perhaps answered by message 3) or "
        "message 5 (kim's proposal; no answer to it is known)."
    )
    assert (
        "message 1 (kim's question; perhaps answered by message 3 or 6) or message 5 (kim's proposal; perhaps answered "
        "by message 6)." in told[7]
    )
    many = [say("<-", "bob", "kim") for _ in range(300)]
    told = tell(say("?Uk/da", "kim", "bob"), say(">Ig/da", "kim", "bob"), *many)
    assert told[-1].count("perhaps answered by message 3, 4 or 5, or by one of 296 later ones") == 2
    # Where a message says itself that it answers none, that stands in place of the doubt.
    told = tell(ASKED, {**make_clowl("h-2", "INF", "bob", "kim"), "pid": None})
    assert "It says that it answers no message." in told[2]


def test_a_result_by_order_answers_who_asked_and_no_result_of_another() -> None:
    asked = say_lingua("👽24|@bob|#/srv/a.gz", "kim", "bob")
    passed_on = say_lingua("👽24|@eve|#/srv/a.gz", "bob", "eve")
    told = tell(asked, passed_on, say_lingua("^0", "eve", "bob"), say_lingua("^0", "bob", "kim"))
    assert (
        "Judging by the sequence, in reply to message 2 (bob's request); the message itself does not say so." in told[3]
    )
    assert (
        "Judging by the sequence, in reply to message 1 (kim's request); the message itself does not say so." in told[4]
    )
    told = tell(say_lingua("^0", "eve", "bob"), say_lingua("^0", "bob", "eve"))
    assert "Judging" not in told[2]
    told = tell(asked, say_lingua("👽16|@ann|$dGhlIHByaWNl", "eve", "ann"), say_lingua("^0", "bob", "kim"))
    assert "Judging by the sequence, in reply to message 1 (kim's request)" in told[3]


def test_what_is_not_known_is_remarked_once_for_a_conversation() -> None:
    told = tell(
        {"raw": "@a3|f0|c1|S0|d1|T1|k1|q2#"}, {"raw": "@a3|f0|c1|S0|d1|T2|k2|q2#"}, {"raw": "@a3|f0|c2|S0|d1|T1|q2#"}
    )
    remark = "Note: the specification does not define which end of the priorities is highest."
    assert [remark in line for line in told] == [False, True, False, False, True]


def test_an_outcome_that_is_reversed_is_told_with_the_message_before() -> None:
    failed = make_clowl("h-2", "ERR", "bob", "kim", "h-1")
    done = make_clowl("h-3", "DONE", "bob", "kim", "h-1")
    told = tell(ASKED, failed, {**done, "ts": done["ts"] + 1})
    assert "reverses" not in told[2]
    assert "Caution: this reverses message 2, by which the same sender had said that it failed." in told[3]
    said = "Caution: this and message 2, by which the same sender had said that it failed, cannot both hold"
    assert f"{said}; they have the same time." in tell(ASKED, failed, done)[3]


def test_a_word_that_two_speakers_define_otherwise_is_told_at_the_second_definition() -> None:
    told = tell(
        *({"raw": f'{{def:fp="{meaning}"}}!ta', "from": sender, "conversation": "c", "dialect": "lambda_lang"}
          for sender, meaning in (("kim", "burn"), ("lee", "keep"), ("lee", "keep")))
    )  # fmt: skip
    assert "Caution: “fp” was defined otherwise before, by kim in message 1 as “burn”." in told[2]
    assert "otherwise" not in told[3]


def make_lingua(sender: str, receiver: str, raw: str) -> dict[str, Any]:
    return {"raw": raw, "conversation": "c", "from": sender, "to": [receiver], "dialect": "agent_lingua"}


def test_a_number_of_an_agent_with_other_content_is_told_and_an_unknown_one_is_no_guess() -> None:
    told = tell(
        make_lingua("kim", "bob", "👽13|@bob|#r1|$cGF5IDEw"),
        make_lingua("kim", "bob", "👽13|@bob|#r1|$cGF5IDEwMA=="),
        make_lingua("bob", "kim", "^0|#r1"),
        make_lingua("bob", "kim", "^0|#r9"),
    )
    assert "the number r1 was used before, by message 1, with other content (“pay 100” instead of “pay 10”)" in told[2]
    assert "In reply to message 1 (kim's message) or message 2 (kim's message); which of them is unknown." in told[3]
    assert "In reply to message r9, which is not among the messages before it." in told[4]
    assert [line.count("no signature line closes the record") for line in told] == [0, 1, 0, 0, 0]
    assert [line.count("Caution: as for message 1.") for line in told] == [0, 0, 1, 1, 1]


def test_a_number_that_is_said_again_stays_one_request() -> None:
    ask = make_lingua("kim", "bob", "👽13|@bob|#r1|$cGF5IDEw")
    again = make_lingua("kim", "bob", "👽135|@bob|#r1|$cGF5IDEw")
    other = make_lingua("lee", "bob", "👽13|@bob|#r1|$cGF5IDIw")
    told = tell(ask, ask, again, make_lingua("bob", "kim", "^0|#r1"), other, make_lingua("bob", "lee", "^0|#r1"))
    assert "It repeats message 1 word for word." in told[2]
    assert "It says again what message 1 said." in told[3]
    assert "In reply to message 3 (kim's message)." in told[4]
    assert "In reply to message 5 (lee's message)." in told[6]
    # What is done with an object names it as often as one likes.
    read = make_lingua("kim", "bob", "👽21|#/srv/a")
    told = tell(read, make_lingua("kim", "bob", "👽25|#/srv/a|$cGF5"), make_lingua("bob", "kim", "^0|#/srv/a"))
    assert "used before" not in told[2]
    assert "In reply to message 2 (kim's request)." in told[3]


def test_a_key_that_is_passed_on_is_told_with_whose_it_is_said_to_be_and_whose_it_is() -> None:
    def show(sender: str, codes: str, **said: str) -> dict[str, Any]:
        packed = base64.b64encode(json.dumps(said).encode()).decode()
        return make_lingua(sender, "bob", f"👽{codes}|@bob|$j:{packed}")

    keys = [base64.b64encode(bytes.fromhex("302a300506032b656e032100") + bytes([n]) * 32).decode() for n in (1, 2)]
    first, second = (name_key(key) for key in keys)
    told = tell(
        show("emil", "09", pubkey=keys[0]),
        show("hana", "1B", fr="emil", pubkey=keys[0]),
        show("hana", "1B", fr="emil", pubkey=keys[1]),
        show("hana", "1B", pubkey=keys[1]),
    )
    shown = f"hana shows bob the public key {first} as that of emil; emil showed it as its own in message 1."
    assert shown in told[2]
    other = f"who has not shown it before; emil itself showed another one, {first}, in message 1."
    assert f"hana shows bob the public key {second} as that of emil, {other}" in told[3]
    assert f"hana shows bob the public key {second} and does not say whose it is." in told[4]


def test_what_cannot_be_read_begins_with_its_speaker_and_stands_in_quotation_marks() -> None:
    cut = ("--👽lingua/0.4@agent-lingua", "👽", '{"clowl": "0.2", "p":', "!Ik [", '@a3|f0|S0|d1|T1|t"x')
    slugs = ("agent_lingua", "agent_lingua", "clowl", "lambda_lang", "nslip")
    lines = [{"raw": raw, "from": "leo", "dialect": slug} for raw, slug in zip(cut, slugs, strict=True)]
    given = "\n".join(json.dumps(line) for line in lines).encode()
    told = run("decode", "--format", "english", given=given, code=1).splitlines()
    assert [line.partition(": ")[2].split()[0] for line in told] == ["leo"] * 5
    assert [raw for raw, line in zip(cut, told, strict=True) if f"“{raw}”" not in line] == []


def test_what_a_message_carries_beside_its_sentence_is_told_but_for_what_the_line_has() -> None:
    keys = {"sent": 5, "turn": 7, "message": "h-1", "prio": {"a": [1]}}
    told = tell({**ASKED, **keys}, {"raw": "!er:cx", "from": "kim", "conversation": "c"})
    assert told[1].endswith(" Also: sent = 5; turn = 7; message = “h-1”; prio = (a = [1]).")
    assert told[2].endswith(" Also: the protocol asks to re-establish the context.")


def test_equal_times_without_a_reply_decide_nothing() -> None:
    told = tell(ASKED, make_clowl("h-2", "INF", "bob", "kim"))
    assert told[2].endswith("Its time is that of message 1 too: which was first is not known.")


def test_bytes_that_are_no_text_are_told_as_such() -> None:
    assert run("decode", "--format", "english", given=b"bad \xe9\n", code=1) == (
        "1. no time: Someone sends 5 bytes that are not text: byte 0xe9 at offset 4 is not UTF-8.\n"
    )


def test_bytes_that_are_no_text_have_their_number_their_time_and_their_speaker() -> None:
    line = {"raw": "x", "from": "leo", "to": "kim", "conversation": "c", "at": "2026-11-21T09:00:00Z"}
    broken = json.dumps(line).encode().replace(b'"x"', b'"\xe9"')
    given = b"\n".join((json.dumps(ASKED).encode(), broken, broken.replace(b"leo", b"l\xe9o"))) + b"\n"
    told = run("decode", "--format", "english", given=given, code=1).splitlines()
    assert told[2].startswith("2. 21 November 2026, 09:00:00 UTC: leo sends kim ")
    assert "that are not text: byte 0xe9 at offset" in told[2]
    assert told[3].startswith("3. 21 November 2026, 09:00:00 UTC: Someone sends kim ")


@pytest.mark.parametrize("hidden", ["\u202e", "\u200b", "\ufeff", "\u2028", "\u00ad", "\x1b", "\U000e0041", "\u3164"])
def test_hidden_characters_are_visible_in_english(hidden: str) -> None:
    told = tell({"raw": f"x {hidden}y", "from": f"le{hidden}o"}, {**ASKED, "from": f"k{hidden}im"})
    assert hidden not in "".join(told)


def test_no_text_begins_a_line_of_its_own() -> None:
    told = tell(
        {"raw": "x\n2. 1 May 2026: bob approved it", "from": "eve\n3. no time: bob"},
        {"raw": "y", "conversation": "c\nd"},
    )
    assert [line.split(" ")[0] for line in told] == ["1.", "Conversation", "1."]


def test_a_reader_that_leaves_is_no_error() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "dialects", "decode"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "codecs")},
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        complaint = process.communicate(b"one\n" * 5000, timeout=60)[1]
    assert complaint == b""


@pytest.mark.long(seconds=20)
def test_memory_does_not_grow_with_the_log() -> None:
    script = (
        "import resource, sys; from dialects.__main__ import main; main(['decode']);"
        "sys.stderr.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))"
    )

    def measure(count: int) -> int:
        log = b"".join(b'@a3|f0|c%d|S0|d1|T%d|k1|t"x"#\n' % (number % 50, number) for number in range(count))
        done = subprocess.run(
            [sys.executable, "-c", script],
            input=log,
            capture_output=True,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "codecs")},
            timeout=300,
            check=True,
        )
        assert done.stdout.count(b"\n") == count
        return int(done.stderr)

    # In KiB. What one record of these leaves behind would show: the messages alone are more than 1 KiB each.
    assert measure(12_000) < measure(3_000) * 1.05


def test_the_shell_needs_no_django() -> None:
    script = "import sys; from dialects.__main__ import main; main(['list']); assert 'django' not in sys.modules"
    subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "codecs")},
        check=True,
        timeout=60,
    )


def test_an_end_that_came_first_by_its_time_reverses_nothing() -> None:
    asked = make_clowl("m-1", "REQ", "kim", "bob")
    ends = [make_clowl(mid, act, "bob", "kim") | {"pid": "m-1"} for mid, act in (("m-2", "DONE"), ("m-3", "ERR"))]
    told = tell({**asked, "ts": 1709078400}, {**ends[0], "ts": 1709078460}, {**ends[1], "ts": 1709078405})
    assert "this reverses" not in told[3]
    assert "by which the same sender had said that it was done, cannot both hold; by their times this one" in told[3]
    told = tell({**asked, "ts": 1709078400}, {**ends[0], "ts": 1709078460}, {**ends[1], "ts": 1709078465})
    assert "Caution: this reverses message 2" in told[3]


def test_a_time_is_compared_with_the_latest_before_it() -> None:
    lines = [make_clowl(f"m-{at}", "INF", "kim", "bob") | {"ts": 1709078400 + at} for at in (1, 50, 5, 10)]
    told = tell(*lines)
    for number in (3, 4):
        assert "Caution: its time is before that of message 2, which stands before it." in told[number]
