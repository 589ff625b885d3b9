"""A stored conversation as English alone: the same lines at every door, nothing known left out, nothing forged."""

from __future__ import annotations

import base64
import html
import json
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from dialects import make_visible
from inspector.audit.models import Finding
from inspector.browsing.transcripts import write_text
from inspector.exports import forms
from inspector.intake.withdrawals import withdraw_delivery
from inspector.threads.models import Conversation, Message
from inspector.threads.selectors import read_body
from tests.codecs.test_forgery import HOSTILE, LIE, unquoted
from tests.inspector.conftest import Cast, deliver, resolve_all, take_in
from tests.inspector.exports.conftest import ask, make, read

from .conftest import page_of, shows

START = 1795251600
ASK = "\N{EXTRATERRESTRIAL ALIEN}13|@bob|#r1|$"


def say(number: int, act: str, sender: str, receiver: str, **said: object) -> bytes:
    record = {"clowl": "0.2", "mid": f"m{number}", "ts": START + number, "p": act, "from": sender, "to": receiver}
    return json.dumps({**record, "cid": "c", "body": {"t": "burn", "d": {"eur": 10}}, **said}).encode() + b"\n"


def find() -> Conversation:
    return Conversation.objects.get(native_id="c")


def print_text(client: Client, query: str = "") -> str:
    response = client.get(f"{reverse('pages:conversation-text', args=['acme', find().pk])}{query}")
    assert response.status_code == 200
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    return response.content.decode()


DOORS = (
    "text",
    "line",
    "list",
    "message",
    "copied",
    "arrow",
    "drawn",
    "page",
    "hit",
    "context",
    "jsonl",
    "csv",
    "html",
)


def read_doors(viewer: Client, client: Client, token: str, message: Message) -> dict[str, str]:
    """All that each page and each call says that prints the English of a message."""

    def ask_api(name: str, *ids: object, **query: Any) -> Any:
        address = reverse(f"api:{name}", args=ids)
        return client.get(address, query, headers={"authorization": f"Bearer {token}"}).json()

    def look(name: str, *ids: object, **query: Any) -> str:
        page = viewer.get(page_of(f"{name}", *ids), query)
        assert page.status_code == 200
        return page.content.decode()

    about, own = message.conversation_id, str(message.pk)
    lines = ask_api("conversation", about)["messages"]
    listed = ask_api("messages", limit=100)["results"]
    arrows = ask_api("sequence", about, alike="apart")["arrows"]
    row = look("sequence", about).partition('id="as-table"')[2].partition(f"/{own}/")[2].partition("</tr>")[0]
    hits = look("search", q="after:2000-01-01").partition(f'id="hit-{own}"')[2].partition("</li>")[0]
    lit = look("around", message.pk).partition('aria-current="true"')[2].partition("</li>")[0]
    found = {
        # Of what stands before the message the threads know.
        "text": write_text(conversation=message.conversation, offset=int(own != lines[0]["id"])),
        "line": next(each["line"] for each in lines if each["id"] == own),
        "list": next(each["english"] for each in listed if each["id"] == own),
        "message": ask_api("message", message.pk)["english"],
        "copied": json.loads(look("message-json", message.pk))["english"],
        "arrow": next(each["cautions"] for each in arrows if own in each["messages"]),
        "drawn": row,
        "page": look("message", message.pk),
        "hit": hits,
        "context": lit,
    }
    return {door: html.unescape(said) for door, said in found.items()}


def read_files(cast: Cast, conversation: Conversation, *forms: str) -> dict[str, str]:
    """All that each file of a conversation says."""
    files = {
        form: read(make(ask(cast, form=form, conversation_id=conversation.pk))).decode()
        for form in forms or ("jsonl", "csv", "html")
    }
    told = (each for line in files.get("jsonl", "").splitlines() for each in json.loads(line)["inspected"]["messages"])
    files["jsonl"] = " ".join(each["english"] for each in told)
    return {form: html.unescape(said.replace('""', '"')) for form, said in files.items()}


def count_told(cast: Cast, viewer: Client, client: Client, token: str, message: Message, words: str) -> dict[str, int]:
    found = read_doors(viewer, client, token, message) | read_files(cast, message.conversation)
    return {door: found[door].count(words) for door in DOORS}


def test_a_line_has_number_time_speaker_answer_and_cautions(cast: Cast, viewer: Client) -> None:
    double = {"body": {"t": "burn", "d": {"eur": 10_000}}}
    lines = [
        say(1, "REQ", "kim", "bob"),
        say(2, "DONE", "bob", "kim", pid="m1"),
        say(3, "DONE", "bob", "kim", pid="gone"),
        say(4, "REQ", "kim", "bob", mid="m1", **double),
    ]
    take_in(cast, b"".join(lines))
    told = print_text(viewer).splitlines()
    assert told[0] == "Conversation c:"
    assert told[1].startswith("1. 21 November 2026, 09:00:01 UTC: kim asks bob to carry out the task “burn”")
    assert "which is not in this record." in told[3]
    assert "Caution: the id m1 was used before, by message 1, with other content (eur = 10000 instead of 10)" in told[4]


def test_a_reply_is_told_with_the_number_and_the_words_of_what_it_answers(cast: Cast, viewer: Client) -> None:
    take_in(
        cast,
        say(1, "REQ", "kim", "bob") + say(2, "ERR", "bob", "kim", pid="m1") + say(3, "DONE", "bob", "kim", pid="m1"),
    )
    told = print_text(viewer).splitlines()
    assert "In reply to message 1 (kim's request “burn”)." in told[2]
    assert "Caution: this reverses message 2, by which the same sender had said that it failed." in told[3]
    # A window that begins later names what stands before it.
    later = print_text(viewer, "?offset=1").splitlines()
    assert later[1].startswith("2. ")
    assert "In reply to message 1 (kim's request “burn”)." in later[1]


def test_a_window_knows_what_stands_before_it(cast: Cast, viewer: Client) -> None:
    lines = [
        say(1, "REQ", "kim", "bob"),
        say(2, "ERR", "bob", "kim", pid="m1"),
        say(3, "INF", "lee", "kim"),
        say(4, "INF", "kim", "bob", ts=START + 3),
        say(5, "DONE", "bob", "kim", pid="m1", body={"t": "pay", "d": {}}),
        say(6, "ACK", "bob", "kim", pid="m5", ts=START + 4),
        # Statements to whoever asked, one of which says that it answers nothing, and an answer that names nothing.
        say(7, "QRY", "eve", "ned"),
        say(8, "INF", "ned", "eve", pid=None),
        say(9, "INF", "ned", "eve"),
        say_lambda(10, "kim", "?Uk/da"),
        say_lambda(11, "kim", ">Ig/da"),
        say_lambda(12, "bob", "<-", "kim"),
        say_lambda(13, "bob", "<+", "kim"),
    ]
    take_in(cast, b"".join(lines), is_examined=False)
    whole = print_text(viewer).splitlines()[1:]
    told: tuple[str, ...] = (
        "this reverses message 2",
        "it is about “pay”",
        "Its time is that of message",
        "which it answers",
    )
    told += (
        "It says that it answers no message.",
        "Whether it answers message 7 (eve's question “burn”) cannot be told",
    )
    told += ("perhaps answered by message 12",)
    assert [sum(words in line for line in whole) for words in told] == [1] * 7
    assert sum("Which message it answers cannot be told: message 10" in line for line in whole) == 2
    for offset in range(1, len(lines)):
        assert print_text(viewer, f"?offset={offset}").splitlines()[1:] == whole[offset:]


def test_a_number_used_for_two_things_is_told_found_and_answered_by_nobody(cast: Cast, viewer: Client) -> None:
    said = [("kim", f"{ASK}cGF5IDEw"), ("kim", f"{ASK}cGF5IDEwMA=="), ("bob", "^0|#r1")]
    lines = [
        {"raw": raw, "from": sender, "to": ["bob" if sender == "kim" else "kim"], "conversation": "c", "at": START + at}
        for at, (sender, raw) in enumerate(said)
    ]
    take_in(cast, b"".join(json.dumps({**line, "dialect": "agent_lingua"}).encode() + b"\n" for line in lines))
    told = print_text(viewer).splitlines()
    assert "the number r1 was used before, by message 1, with other content" in told[2]
    assert "In reply to message 1 (kim's message) or message 2 (kim's message); which of them is unknown." in told[3]
    # Where they stand before a window, how many they are is told.
    later = print_text(viewer, "?offset=2").splitlines()[1]
    assert "In reply to message r1; in this conversation 2 messages bear that id." in later
    finding = find().findings.get(rule="ambiguous-parent")
    assert "which one is unknown: in this conversation 2 messages bear that id." in finding.text
    page = viewer.get(page_of("conversation", find().pk)).content.decode()
    assert page.count(">message 1</a>") == 2


@pytest.mark.parametrize("dialect", ["agent_lingua", "nslip"])
def test_a_number_or_turn_used_again_is_told_and_found_without_an_answer(
    cast: Cast, viewer: Client, client: Client, token: str, dialect: str
) -> None:
    raws = {
        "agent_lingua": [f"{ASK}cGF5IDEw", f"{ASK}cGF5IDEwMA=="],
        "nslip": ["@a3|f0|c1|S0|T1|k1#", "@a3|f0|c1|S0|T1|k2#"],
    }
    lines = [
        {"raw": raw, "conversation": "c", "at": START + at, "dialect": dialect, "id": f"{at}"}
        | ({"from": "kim", "to": ["bob"]} if dialect == "agent_lingua" else {})
        for at, raw in enumerate(raws[dialect])
    ]
    take_in(cast, b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    first, second = Message.objects.order_by("place")
    finding = second.conversation.findings.get(rule="reused-number")
    assert list(finding.list_related()) == [(first.record_id, first.part)]
    # Also where the first one stands before the window, and in lists.
    text = write_text(conversation=second.conversation, offset=1)
    listed = client.get("/api/v1/messages", headers={"authorization": f"Bearer {token}"}).json()["results"]
    for told in (text, next(each["english"] for each in listed if each["id"] == str(second.pk))):
        assert told.count("used before by its sender, with other content") == 1
    assert not any("used before" in each["english"] for each in listed if each["id"] == str(first.pk))


def test_an_id_used_again_with_other_content_is_told_wherever_the_first_stands(
    cast: Cast, viewer: Client, client: Client, token: str
) -> None:
    first = deliver(cast, say(1, "REQ", "ann", "bob", mid="m1", body={"t": "pay", "d": {"eur": 10}}))
    take_in(cast, say(2, "REQ", "ann", "bob", mid="m1", body={"t": "pay", "d": {"eur": 10000}}))
    second = Message.objects.order_by("place")[1]

    caution = "the id m1 was used before, by message 1, with other content (eur = 10000 instead of 10)"
    assert count_told(cast, viewer, client, token, second, caution) == dict.fromkeys(DOORS, 1)
    # It depends on nothing that was noted when it came: what is hidden uses no id.
    withdraw_delivery(membership=cast.auditor, delivery=first, reason="It was sent by mistake.")
    resolve_all()
    assert not any(count_told(cast, viewer, client, token, second, "was used before").values())


def test_no_name_and_no_text_forges_a_line_at_any_door(cast: Cast, viewer: Client) -> None:
    for number, hostile in enumerate(HOSTILE):
        body = {"t": hostile, "d": {"note": hostile, hostile: hostile}}
        said = {"body": body, "cid": f"c{number}"}
        first = say(1, "REQ", hostile, "bob", mid=hostile, **said)
        deliver(cast, first + say(2, "INF", hostile, "bob", pid=hostile, **said))
    resolve_all()
    for number, hostile in enumerate(HOSTILE):
        conversation = Conversation.objects.get(native_id=f"c{number}")
        text = write_text(conversation=conversation)
        told = text.splitlines()
        assert [re.match(r"\d+\. ", line) is not None for line in told] == [False, True, True], text
        assert LIE in text
        assert not any(LIE in unquoted(line) for line in told), (hostile, text)
        page = viewer.get(page_of("conversation", conversation.pk)).content.decode()
        assert page.count('<article class="message"') == 2


def test_the_api_prints_the_lines_of_the_text(cast: Cast, viewer: Client, client: Client, token: str) -> None:
    take_in(cast, say(1, "REQ", "kim", "bob") + say(2, "DONE", "bob", "kim", pid="m1", extra=1))
    answer = client.get(f"/api/v1/conversations/{find().pk}", headers={"authorization": f"Bearer {token}"}).json()
    assert [each["line"] for each in answer["messages"]] == print_text(viewer).splitlines()[1:]


def test_every_warning_and_notice_is_told_at_every_door(
    cast: Cast, viewer: Client, client: Client, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        say(1, "ACK", "kim", "bob", pid="gone", body={"t": "burn", "d": {"accepted": False, "file": "a\u202eb"}}),
        say(2, "REQ", "kim", "bob", extra=1, ctx={"hash": "zz"}),
        json.dumps({"raw": f"{ASK}cGF5", "from": "kim", "to": ["bob"], "conversation": "c"}).encode() + b"\n",
        json.dumps({"raw": '@a3|f0|c1|S0|T1|t"open', "conversation": "c"}).encode() + b"\n",
    ]
    take_in(cast, b"".join(lines))
    checked = 0
    files = {each: read_files(cast, each) for each in Conversation.objects.all()}
    # Of a message that is too long for cells the record is not taken apart, and its cautions are told all the same.
    monkeypatch.setattr(forms, "_MAX_CELL_LENGTH", 10)
    files = {each: said | {"short": read_files(cast, each, "csv")["csv"]} for each, said in files.items()}
    for message in Message.objects.select_related("conversation"):
        doors = read_doors(viewer, client, token, message) | files[message.conversation]
        page = viewer.get(page_of("conversation", message.conversation_id)).content.decode()
        row = page.partition(f'id="m-{message.pk.hex}"')[2].partition("</article>")[0]
        shown = html.unescape(re.sub(r"<[^>]*>", "", row)).casefold()
        rows = read_body(message)
        shared = rows["record"].get("notes") or () if message.part == 1 else ()
        for note in (*(rows["message"].get("notes") or ()), *shared):
            if note["severity"] == "info":
                continue
            checked += 1
            words = note["text"].rstrip(".")
            # A page of a message and a report list its notes.
            missing = [
                door for door, said in doors.items() if door not in ("page", "html")
                and make_visible(f"Caution: {words}.") not in make_visible(said)
            ]  # fmt: skip
            assert not missing, (words, doors)
            assert words in doors["html"]
            assert words in re.sub(r"<[^>]*>", "", doors["page"])
            assert words.casefold() in shown or f"message/{message.pk}" in row, words
    assert checked > 3


def test_a_withdrawn_message_is_not_named_by_its_answer(cast: Cast, viewer: Client) -> None:
    delivery = deliver(cast, say(1, "REQ", "kim", "bob", body={"t": "secret plan", "d": {}}))
    take_in(cast, say(2, "INF", "bob", "kim", pid="m1"))
    assert "secret plan" in print_text(viewer)
    withdraw_delivery(membership=cast.auditor, delivery=delivery, reason="wrong file")
    resolve_all()
    text = print_text(viewer)
    shows(text, "In reply to message m1, which is not in this record.", never=["secret plan"])


def say_lambda(number: int, sender: str, wire: str, receiver: str = "bob") -> bytes:
    said = {"raw": wire, "from": sender, "to": [receiver], "conversation": "c", "dialect": "lambda_lang"}
    return json.dumps(said | {"at": START + number}).encode() + b"\n"


def offer(number: int, sender: str, key: int, conversation: str = "c") -> bytes:
    shown = base64.b64encode(bytes.fromhex("302a300506032b656e032100") + bytes([key]) * 32).decode()
    packed = base64.b64encode(json.dumps({"crypto": ["X25519+AES-GCM"], "pubkey": shown}).encode()).decode()
    said = {
        "raw": f"\N{EXTRATERRESTRIAL ALIEN}09|$j:{packed}",
        "from": sender,
        "to": ["bob"],
        "conversation": conversation,
    }
    return json.dumps(said | {"dialect": "agent_lingua", "at": START + number}).encode() + b"\n"


def test_keys_shown_at_one_time_in_two_conversations_are_told_of_each_and_one_shown_twice_hides_none(
    cast: Cast,
) -> None:
    for key, name in ((2, "c"), (1, "other"), (2, "again")):
        take_in(cast, offer(3, "kim", key, name))
    held = Finding.objects.filter(rule="key-changed", holds=True).values_list("conversation__native_id", "text")
    told = {name: text.split(" (")[0].rpartition(" ")[2] for name, text in held}
    assert told.pop("other") in ("c", "again")
    assert told == {"c": "other", "again": "other"}


# What contradicts an earlier message: its log, and the rule that finds it.
CONTRADICTIONS = {
    "an id with other content": (
        say(1, "REQ", "kim", "bob") + say(2, "REQ", "kim", "bob", mid="m1"),
        "conflicting-duplicate",
    ),
    "a key that changed": (offer(1, "kim", 1) + offer(2, "kim", 2), "key-changed"),
    "a key of two agents": (offer(1, "kim", 3) + offer(2, "lee", 3), "key-shared"),
    "a word with two meanings": (
        say_lambda(1, "kim", '{def:av="reject"}!ta') + say_lambda(2, "bob", "!Iav/pp"),
        "word-redefined",
    ),
    "two definitions of a word": (
        say_lambda(1, "kim", '{def:zq="reject"}!ta') + say_lambda(2, "lee", '{def:zq="sign"}!ta'),
        "defined-otherwise",
    ),
    "an outcome that was reversed": (
        say(0, "REQ", "kim", "bob") + say(1, "ERR", "bob", "kim", pid="m0") + say(2, "DONE", "bob", "kim", pid="m0"),
        "",
    ),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_contradiction_is_told_found_and_one_click_from_the_other_message(
    name: str, cast: Cast, viewer: Client
) -> None:
    log, rule = CONTRADICTIONS[name]
    take_in(cast, log)
    *_, first, last = sorted(find().messages.all(), key=lambda message: message.order_time)
    number = len(find().messages.all()) - 1
    told = print_text(viewer).splitlines()[-1]
    assert f"message {number}" in told, told
    page = viewer.get(page_of("conversation", find().pk)).content.decode()
    row = page[page.index(f'id="m-{last.pk.hex}"') :]
    assert f'<a href="#m-{first.pk.hex}">message {number}</a>' in row[: row.index("</article>")], told
    if rule:
        assert rule in {finding.rule for finding in find().findings.all()}


def test_a_key_that_is_another_than_in_another_conversation_is_told_found_and_one_click_apart(
    cast: Cast, viewer: Client, client: Client, token: str
) -> None:
    """Whatever comes first, and until what showed the other key is withdrawn."""
    take_in(cast, offer(3, "kim", 2) + offer(4, "kim", 2) + offer(5, "lee", 9))
    assert not find().findings.filter(rule="key-changed").exists()
    deliver(cast, offer(9, "kim", 2, "later"))
    early = take_in(cast, offer(1, "kim", 1, "early"))
    other = Message.objects.get(conversation__native_id="early")
    first, *_ = Message.objects.filter(conversation=find()).order_by("place")
    finding = find().findings.get(rule="key-changed", holds=True)
    assert (finding.record_id, list(finding.list_related())) == (first.record_id, [(other.record_id, 1)])
    caution = "Caution: kim's public key is another one than in conversation early (21 November 2026, 09:00:01 UTC): "

    assert count_told(cast, viewer, client, token, first, caution) == dict.fromkeys(DOORS, 1)
    page = viewer.get(page_of("conversation", find().pk)).content.decode()
    row = page[page.index(f'id="m-{first.pk.hex}"') :]
    assert page_of("message", other.pk) in row[: row.index("</article>")]
    assert page_of("message", other.pk) in read_doors(viewer, client, token, first)["page"]
    withdraw_delivery(membership=cast.auditor, delivery=early, reason="It was sent by mistake.")
    resolve_all()
    assert not find().findings.filter(rule="key-changed", holds=True).exists()
    assert not any(count_told(cast, viewer, client, token, first, "is another one than in").values())


def name_conversation(number: int, *lines: bytes) -> bytes:
    """A conversation of its own, with its agents."""
    log = b"".join(lines).decode()
    for name in ("c", "kim", "bob"):
        log = log.replace(f'"{name}"', f'"{name}{number}"')
    return log.encode()


def test_where_a_sentence_stands_without_its_cautions_a_mark_says_that_there_are_some(
    cast: Cast, viewer: Client, client: Client, token: str
) -> None:
    """Whatever they come from: a long sentence, a row, an arrow, a title."""
    long = {"body": {"t": "burn", "d": {"text": "word " * 1200}}}
    logs = {
        "": (say(1, "REQ", "kim", "bob"), say(2, "DONE", "bob", "kim", pid="m1")),
        "a note of its own": (say(1, "REQ", "kim", "bob"), say(2, "REQ", "kim", "bob", extra=1, **long)),
        "an id with other content": (say(1, "REQ", "kim", "bob"), say(2, "REQ", "kim", "bob", mid="m1", **long)),
        "an outcome that was reversed": (
            say(0, "REQ", "kim", "bob"), say(1, "ERR", "bob", "kim", pid="m0"), say(2, "DONE", "bob", "kim", pid="m0"),
        ),
        "another key": (offer(1, "kim", 1), offer(2, "kim", 2, "early"), offer(3, "kim", 1)),
        "a statement to whoever asked": (say(1, "QRY", "kim", "bob"), say(2, "INF", "bob", "kim")),
        "one that answers nothing": (say(1, "QRY", "kim", "bob"), say(2, "INF", "bob", "kim", pid=None)),
    }  # fmt: skip
    take_in(cast, b"".join(name_conversation(at, *lines) for at, lines in enumerate(logs.values())), is_examined=False)
    for at, name in enumerate(logs):
        conversation = Conversation.objects.get(native_id=f"c{at}")
        last, count = conversation.messages.order_by("-place")[0], conversation.message_count
        doors = read_doors(viewer, client, token, last)

        def look(name: str, *ids: object, **query: Any) -> str:
            return html.unescape(viewer.get(page_of(f"{name}", *ids), query).content.decode())

        about = conversation.pk
        places = {
            "tree": look("conversation-tree", about).partition(f"row-{last.pk.hex}")[2].partition("</tr>")[0],
            "sequence": look("sequence", about).partition(f'id="s-{count}"')[2].partition("</a>")[0],
            "mermaid": look("sequence-mermaid", about).replace("#40;", "(").replace("#41;", ")").splitlines()[-1],
        }
        if name != "an outcome that was reversed":
            places["title"] = doors["page"].partition("<h1")[2].partition("</h1>")[0]
        if name in ("", "a note of its own", "an id with other content", "another key"):
            places["palette"] = json.loads(look("palette", q=last.pk))["items"][0]["title"]
        if len(last.english) > 300 or not name:
            places |= {door: doors[door] for door in ("hit", "context")}
        marked = {place for place, said in places.items() if "(caution)" in said}
        is_doubtful = name not in ("", "one that answers nothing")
        assert marked == ({*places} if is_doubtful else set()), (name, places["sequence"])
        assert bool(doors["arrow"]) is is_doubtful, name
        if name == "a statement to whoever asked":
            doubt = f"Whether it answers message 1 (kim{at}'s question “burn”) cannot be told."
            row = look("conversation", about).partition(f'id="m-{last.pk.hex}"')[2].partition("</article>")[0]
            missing = [door for door, said in {**doors, "row": row}.items() if doubt not in said]
            # Lists show messages from anywhere, and no others beside them.
            assert missing == ["list", "message", "copied", "hit", "context"]
