"""Comments on the page of a message, in the transcript and in their list: with scripts off, for each role, masked."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from inspector.audit.comments import reply, turn, withdraw, write_comment
from inspector.audit.models.reviews import Comment
from inspector.intake.withdrawals import withdraw_delivery
from inspector.threads.models import Message
from inspector.threads.selectors import find_message
from tests.inspector.conftest import Cast, deliver_one, resolve_all
from tests.inspector.keyring import conftest as keyring

from .conftest import page_of, read, shows

pytestmark = pytest.mark.django_db
kek = keyring.kek
sealed = keyring.sealed

WIRE = (
    '{"clowl":"0.2","mid":"a😀b","p":"REQ","from":"oscar","to":"radar","cid":"c",'
    '"auth":{"issuer":"gate","token":"hunter2-hunter2"},"body":{"t":"x"}}'
)
COMMENTS = page_of("comments")


@pytest.fixture
def message(cast: Cast) -> Message:
    return deliver_one(cast, WIRE)


def message_page(message: Message, query: str = "") -> str:
    return page_of("message", message.pk) + query


def write(cast: Cast, message: Message, piece: str, words: str) -> Comment:
    start = message.record.wire_text.index(piece)
    return write_comment(membership=cast.auditor, message=message, start=start, end=start + len(piece), words=words)


def test_a_selected_piece_is_commented_without_a_script(auditor: Client, viewer: Client, message: Message) -> None:
    start = WIRE.index("oscar")
    page = read(auditor, message_page(message, f"?span=0:{start}-{start + 5}"))
    assert f'name="start" type="number" inputmode="numeric" min="0" max="{len(WIRE)}" value="{start}"' in page
    form = {"start": start, "end": start + 5, "words": "<b>who\u202e?</b>"}
    address = page_of("write-comment", message.pk)
    assert viewer.post(address, form).status_code == 403
    refused = auditor.post(address, form | {"end": start})
    assert refused.status_code == 422
    assert "the record has the characters 0 to" in " ".join(refused.content.decode().split()).lower()
    assert "&lt;b&gt;who" in refused.content.decode()
    assert auditor.post(address, form | {"end": "²"}).status_code == 422
    kept = auditor.post(address, form)
    comment = Comment.objects.get()
    assert kept["Location"] == message_page(message, f"?span=0:{start}-{start + 5}#comment-{comment.pk.hex}")
    shown = read(viewer, kept["Location"])
    shows(
        shown,
        "<q><code>oscar</code></q>",
        "&lt;b&gt;who",
        "U+202E",
        f'data-span="0:{start}-{start + 5}" tabindex="0" class="is-lit"',
        never=["<b>who", "Your comment", 'value="withdrawn"', "Resolve"],
    )
    transcript = read(viewer, page_of("conversation", message.conversation_id))
    shows(transcript, f"{message_page(message)}#comments", "1 open comment<")
    lasting = viewer.get(page_of("comment", comment.pk))
    assert lasting["Location"] == kept["Location"]


def test_what_is_done_about_it_is_shown_with_who_and_when(
    owner: Client, auditor: Client, viewer: Client, message: Message, cast: Cast
) -> None:
    comment = write(cast, message, "radar", "Is it ours?")
    act = page_of("act-on-comment", comment.pk)
    assert viewer.post(act, {"act": "resolved"}).status_code == 403
    owner.post(act, {"act": "reply", "words": "It is."})
    owner.post(act, {"act": "resolved"})
    page = read(viewer, message_page(message))
    assert page.index("Is it ours?") < page.index("It is.") < page.index("<strong>olivia</strong> resolved it")
    assert "No open comments" in read(viewer, COMMENTS)
    assert "Is it ours?" in read(viewer, f"{COMMENTS}?state=resolved")
    auditor.post(act, {"act": "reopened"})
    said = read(viewer, COMMENTS)
    shows(said, "1 reply", "Is it ours?")
    assert "Is it ours?" in read(viewer, f"{COMMENTS}?conversation={message.conversation_id}")
    assert viewer.get(f"{COMMENTS}?conversation=nonsense").status_code == 404
    assert "There is no such reply" not in read(auditor, auditor.post(act, {"act": "edit"})["Location"].split("#")[0])
    auditor.post(act, {"act": "withdrawn"})
    for who, sees in ((viewer, False), (auditor, True)):
        page = read(who, message_page(message))
        assert "amir withdrew this" in page
        assert ("Is it ours?" in page) is sees
    assert "Is it ours?" not in read(viewer, f"{COMMENTS}?state=all")


def test_words_about_masked_characters_are_for_those_who_may_see_them(
    auditor: Client, viewer: Client, message: Message, cast: Cast
) -> None:
    comment = write(cast, message, '"hunter2-hunter2"', "It begins with hun.")
    reply(membership=cast.owner, comment=comment, message=message, words="And ends with er2.")
    for address in (message_page(message), f"{COMMENTS}?state=all"):
        theirs, ours = read(viewer, address), read(auditor, address)
        assert "hunter2" not in theirs + ours
        shows(theirs, never=["It begins", "And ends"])
        assert "It begins" in ours
        assert "•••" in theirs


def test_what_was_said_of_an_opened_message_stays_with_who_may_read_it(
    cast: Cast, auditor: Client, viewer: Client, sealed: list[Message]
) -> None:
    before = find_message(workspace=cast.workspace, message_id=sealed[0].pk)
    assert before is not None
    open_comment = write(cast, before, before.record.wire_text[:4], "Said while it was sealed.")
    keyring.add(cast)
    write(cast, before, before.record.wire_text[:4], "Direct debits failed.")
    reply(membership=cast.auditor, comment=open_comment, message=before, words="The mandates expired.")
    for address in (message_page(before), COMMENTS):
        theirs = read(viewer, address)
        shows(theirs, "Said while it was sealed.", never=["Direct debits failed.", "mandates expired"])
    assert "The mandates expired." in read(auditor, message_page(before))


def test_a_comment_says_when_the_reading_is_another(viewer: Client, message: Message, cast: Cast) -> None:
    comment = write(cast, message, "oscar", "A name.")
    assert "told otherwise" not in read(viewer, message_page(message))
    Message.objects.update(english="Somebody asks for something.")
    assert "The English was reworded since this was written" in read(viewer, message_page(message))
    Comment.objects.filter(pk=comment.pk).update(part=7)
    assert "It was written about part 7 of this record" in read(viewer, message_page(message))
    Comment.objects.filter(pk=comment.pk).update(quoted=b"owner", source_sha256=b"0" * 32)
    page = read(viewer, message_page(message))
    shows(page, "These are not the bytes it was written about.", never=["<q><code>"])


def test_what_is_hidden_with_its_message_is_not_told(viewer: Client, message: Message, cast: Cast) -> None:
    comment = write(cast, message, "oscar", "A name.")
    delivery = message.record.sightings.get().delivery  # type: ignore[attr-defined]
    withdraw_delivery(membership=cast.auditor, delivery=delivery, reason="wrong file")
    resolve_all()
    page = read(viewer, COMMENTS)
    shows(page, "hidden with its message", never=["A name."])
    assert viewer.get(page_of("comment", comment.pk))["Location"] == f"{COMMENTS}?state=all"


def test_the_list_pages_by_keyset(viewer: Client, message: Message, cast: Cast) -> None:
    for number in range(30):
        comment = write(cast, message, "oscar", f"words-{number}.")
        if number % 2:
            turn(membership=cast.auditor, comment=comment, kind="resolved")
    withdraw(membership=cast.auditor, comment=comment)
    first = read(viewer, f"{COMMENTS}?state=all")
    older = re.search(r'rel="next" href="([^"]+)"', first)
    assert older is not None
    second = read(viewer, COMMENTS + older[1].replace("&amp;", "&"))
    seen = [int(each) for each in re.findall(r"words-(\d+)[.]", first + second)]
    assert sorted(seen) == list(range(29))
    assert viewer.get(f"{COMMENTS}?before=nonsense").status_code == 404


def test_characters_chosen_within_a_piece_are_found(auditor: Client, message: Message) -> None:
    start = WIRE.index('"a😀b"')
    asked = message_page(message, f"?span=0:{start}-{start + 5}&chosen=")
    found = read(auditor, asked + "😀", **{"HX-Request": "true"})
    assert f'data-comment-from="{start + 2}" data-comment-to="{start + 3}"' in found
    whole = read(auditor, asked + "zebra", **{"HX-Request": "true"})
    assert f'data-comment-from="{start}" data-comment-to="{start + 5}"' in whole
