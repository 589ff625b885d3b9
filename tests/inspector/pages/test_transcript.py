"""The transcript on the way from rows to page: masks, replies, days, runs, windows, and what it costs."""

from __future__ import annotations

import json
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from inspector.threads.models import Conversation, Message
from tests.inspector.audit.rule_logs.writing import clowl
from tests.inspector.audit.rule_logs.writing import say as say_wires
from tests.inspector.conftest import Cast, deliver, take_in

from .conftest import page_of, shows

START = 1795251600


def say(number: int, **said: object) -> bytes:
    """A CLowl line of the conversation `c`; each answers the one before, if it does not say otherwise."""
    record = {
        "clowl": "0.2",
        "mid": f"m{number}",
        "ts": START + number,
        "pid": f"m{number - 1}" if number else None,
        "p": "INF" if number % 2 else "REQ",
        "from": "oscar",
        "to": "radar",
        "cid": "c",
        "body": {"t": "search", "d": {"q": f"question {number}"}},
    }
    return json.dumps({**record, **said}).encode() + b"\n"


def open_conversation(client: Client, **query: str) -> str:
    conversation = Conversation.objects.get(native_id="c")
    response = client.get(page_of("conversation", conversation.pk), query)
    assert response.status_code == 200
    return response.content.decode()


@pytest.mark.parametrize("role", ["viewer", "auditor", "owner"])
def test_a_secret_is_masked_wherever_its_message_is_shown(
    role: str, cast: Cast, request: pytest.FixtureRequest
) -> None:
    take_in(cast, say(0, auth={"issuer": "gate", "token": "hunter2-hunter2"}))
    client: Client = request.getfixturevalue(role)
    message = Message.objects.get()
    pages = {
        "conversation": open_conversation(client),
        "message": client.get(page_of("message", message.pk)).content.decode(),
        "search": client.get(page_of("search"), {"q": "question"}).content.decode(),
        "search for it": client.get(page_of("search"), {"q": "hunter2"}).content.decode(),
    }
    assert "question 0" in pages["search"].replace("<mark>", "").replace("</mark>", "")
    for name, page in pages.items():
        assert "hunter2-hunter2" not in page, name
    assert 'class="masked"' in pages["conversation"]
    assert "secrets masked" in pages["message"]
    raw = client.get(page_of("raw", message.record_id))
    assert raw.status_code == (403 if role == "viewer" else 200)


def test_queries_do_not_grow_with_the_rows(viewer: Client, cast: Cast, unhurried: None) -> None:
    counts = []
    for number in (3, 60):
        take_in(cast, *(say(index) for index in range(number)))
        with CaptureQueriesContext(connection) as queries:
            open_conversation(viewer)
            viewer.get(page_of("search"), {"q": "question"})
            viewer.get(page_of("conversations"))
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_a_long_conversation_is_shown_in_windows(viewer: Client, cast: Cast) -> None:
    take_in(cast, *(say(index) for index in range(230)))
    first, last = open_conversation(viewer), open_conversation(viewer, offset="200")
    assert first.count('class="message"') == 50
    assert "50 of 230 messages" in " ".join(first.split())
    (later,) = re.findall(r'rel="next" href="\?from=([^"]+)"', first)
    shown = [
        re.findall(r'id="(m-[^"]+)"', open_conversation(viewer, **at)) for at in ({"from": later}, {"offset": "50"})
    ]
    assert len(shown[0]) == 50
    assert shown[0] == shown[1]
    assert "Show earlier messages" not in first
    assert last.count('class="message"') == 30
    assert "Show earlier messages" in last
    assert "End of the conversation" in last
    assert open_conversation(viewer, offset="5000").count('class="message"') == 0
    assert open_conversation(viewer, order="time", offset="220").count('class="message"') == 10


def test_what_is_deeper_than_the_page_can_indent_is_counted(viewer: Client, cast: Cast) -> None:
    take_in(cast, *(say(index) for index in range(12)))
    page = open_conversation(viewer)
    shows(page, "3 levels deeper", never=['data-depth="9"'])


def test_a_new_day_is_named_once(viewer: Client, cast: Cast) -> None:
    take_in(cast, say(0), say(1), say(2, ts=START + 86_400))
    days = re.findall(r'class="day"><time[^>]*>([^<]*)', open_conversation(viewer, order="time"))
    assert len(days) == 2


def test_time_is_counted_from_what_is_answered(viewer: Client, cast: Cast) -> None:
    take_in(cast, say(0), say(1, ts=START + 50), say(2, ts=START + 60, pid="m0"))
    assert "+1 min" in open_conversation(viewer)
    assert "+10 s" in open_conversation(viewer, order="time")


def test_an_inferred_answer_is_dashed_and_says_why(viewer: Client, cast: Cast) -> None:
    take_in(cast, b'@a3|f0|c1|S0|d1|T1|k1|t"plan"#\n@a4|f0|c1|S1|d0|T2|k1|t"safe"#\n')
    conversation = Conversation.objects.get()
    page = viewer.get(page_of("conversation", conversation.pk)).content.decode()
    found = re.search(r'<p class="reply" data-basis="inferred">(.*?)</p>', page, re.DOTALL)
    assert found is not None
    assert "probably answers" in found[1]
    assert "inferred:" in found[1]


def test_a_very_long_wire_stands_on_its_own_page(viewer: Client, cast: Cast) -> None:
    take_in(cast, say(0, body={"t": "search", "d": {"q": "word " * 30_000}}))
    page = open_conversation(viewer)
    assert "150.2 kB: open the message" in page
    assert len(page) < 300_000
    message = viewer.get(page_of("message", Message.objects.get().pk)).content.decode()
    assert "more characters are not on this page." in message


def test_a_window_shows_so_many_bytes_of_records_and_the_smallest_first(viewer: Client, cast: Cast) -> None:
    sizes = [95, 20, 95, 95, 95, 95, 95]
    take_in(cast, *(say(at, body={"t": "x", "d": {"q": "x" * 1000 * size}}) for at, size in enumerate(sizes)))
    conversation = Conversation.objects.get(native_id="c")
    for page in (
        open_conversation(viewer),
        viewer.get(page_of("conversation-raw", conversation.pk)).content.decode(),
    ):
        assert page.count("kB: open the message") == 1
        assert "20.2 kB: open the message" not in page


def test_one_who_talks_to_himself_or_to_everyone_is_shown_so(viewer: Client, cast: Cast) -> None:
    take_in(cast, say(0, to="oscar"), say(1, to="*"))
    page = open_conversation(viewer)
    shows(page, "to itself", "everyone")


def test_a_conversation_without_a_name_is_called_by_what_it_opens_with(viewer: Client, cast: Cast) -> None:
    take_in(cast, b"Good morning from the night shift.\n")
    page = viewer.get(page_of("conversations")).content.decode()
    assert "Good morning from the night shift." in page


def test_a_record_too_large_to_unfold_says_so_and_stays_masked(viewer: Client, auditor: Client, cast: Cast) -> None:
    take_in(cast, say(0, auth={"token": "hunter2-hunter2"}, body={"t": "x", "d": {"q": "word " * 450_000}}))
    message = Message.objects.get()
    address = page_of("message", message.pk)
    page = viewer.get(address).content.decode()
    shows(page, "too much to unfold on a page", never=["hunter2"])
    assert len(page) < 400_000
    raw = page_of("raw", message.record_id)
    assert raw not in page
    assert viewer.get(raw).status_code == 403
    assert raw in auditor.get(address).content.decode()


@pytest.mark.long(seconds=20)
def test_no_page_grows_with_what_a_machine_sends(viewer: Client, cast: Cast) -> None:
    deliver(cast, say(0, body={"t": "x", "d": {f"key{index}": index for index in range(7_000)}}))
    take_in(cast, "\u202e\u200b".encode() * 200_000 + b"\n", name="hidden.log")
    for message in Message.objects.all():
        page = viewer.get(page_of("message", message.pk)).content.decode()
        assert len(page) < 2_000_000
    assert (
        "more fields are not on this page"
        in viewer.get(page_of("message", Message.objects.get(dialect="clowl").pk)).content.decode()
    )


@pytest.mark.parametrize(
    ("log", "words", "headline"),
    [
        (
            say_wires(
                ("ada", "@a3|f0|c1|S0|d1|T1|k6#"),
                ("bob", "@a7|f1|c1|S1|d0|T2|k6#"),
                ("bob", '@a1|f1|c1|S1|d0|T3|k6|u"done"#'),
            ),
            "done, after refusing (1 min later)",
            "Reported done after it was refused",
        ),
        (
            clowl("m1", "REQ", "oscar", "radar")
            + clowl("m2", "DONE", "radar", "oscar", minute=1, pid="m1")
            + clowl("m3", "ERR", "radar", "oscar", minute=7, pid="m1", code="E004", msg="no"),
            "failed, after it was reported done (6 min later)",
            "Reported failed after it was reported done",
        ),
        (
            clowl("m1", "REQ", "oscar", "radar")
            + clowl("m2", "ERR", "radar", "oscar", minute=1, pid="m1", code="E004", msg="no", retry=False)
            + clowl("m3", "DONE", "radar", "oscar", minute=7, pid="m1"),
            "done, after failing (6 min later)",
            "Reported done after it failed",
        ),
    ],
)
def test_an_end_that_was_taken_back_is_amber_and_named(
    auditor: Client, cast: Cast, log: str, words: str, headline: str
) -> None:
    take_in(cast, log.encode())
    conversation = Conversation.objects.get()
    page = auditor.get(page_of("conversation", conversation.pk)).content.decode()
    start = page.index('<dl class="answers"')
    answers = page[start : page.index("</dl>", start)]
    assert re.search(rf'data-state="waiting">.*{re.escape(words)}</span>', answers), answers
    shows(answers, f"{headline}</a>", never=['data-state="done"', "noted nothing"])
    listed = auditor.get(page_of("conversations")).content.decode().partition("<tbody")[2]
    assert re.search(rf'data-state="waiting">.*?{re.escape(words.partition(" (")[0])}</span>', listed), listed
    assert 'data-state="done"' not in listed
    tasks = auditor.get(page_of("conversation-tasks", conversation.pk)).content.decode()
    story = tasks[tasks.index('<section class="tasks frame"') :].partition("<details")[0]
    assert len(re.findall(rf'data-state="waiting">.*?{re.escape(words)}</span>', story)) == 2, story
    assert 'data-state="done"' not in story
