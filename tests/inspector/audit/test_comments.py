"""Comments: bound to characters and bytes, never edited, resolved and taken back in sight, and counted."""

from __future__ import annotations

import hashlib
import json

import pytest
from django.core.exceptions import PermissionDenied, ValidationError

from inspector.audit.comments import (
    MAX_QUOTED,
    MAX_WORDS_LENGTH,
    count_comments,
    find_commented,
    list_comments,
    list_threads,
    reply,
    turn,
    withdraw,
    write_comment,
)
from inspector.audit.models.reviews import Comment, CommentTurn
from inspector.intake.withdrawals import withdraw_delivery
from inspector.threads.models import Message
from inspector.threads.selectors import find_message
from inspector.trail.models import Deed
from tests.inspector.conftest import Cast, deliver, deliver_one, resolve_all

pytestmark = pytest.mark.django_db

WIRE = (
    '{"clowl":"0.2","mid":"a😀","p":"REQ","from":"oscar","to":"radar","cid":"c",'
    '"auth":{"issuer":"gate","token":"hunter2"},"body":{"t":"x"}}'
)


@pytest.fixture
def message(cast: Cast) -> Message:
    return deliver_one(cast, WIRE)


def write(cast: Cast, message: Message, piece: str = "a😀", words: str = "Who is this?") -> Comment:
    start = WIRE.index(piece)
    return write_comment(membership=cast.auditor, message=message, start=start, end=start + len(piece), words=words)


def test_it_is_bound_to_characters_and_bytes(cast: Cast, message: Message) -> None:
    comment = write(cast, message)
    comment.refresh_from_db()
    assert comment.quoted_text == "a😀" == WIRE[comment.start : comment.end]
    assert bytes(comment.source_sha256) == hashlib.sha256(WIRE.encode()).digest()
    assert not comment.is_restricted
    assert write(cast, message, "hunter2").is_restricted
    assert write(cast, message, '"token":"hunter2"').is_restricted


def test_half_a_character_is_quoted_as_it_is(cast: Cast) -> None:
    deliver(cast, json.dumps({"raw": "a \ud800 b\0", "from": "x", "dialect": "prose"}).encode())
    resolve_all()
    message = find_message(workspace=cast.workspace, message_id=Message.objects.get().pk)
    assert message is not None
    wire = message.record.wire_text
    comment = write_comment(membership=cast.auditor, message=message, start=0, end=len(wire), words="\0 odd")
    comment.refresh_from_db()
    assert comment.quoted_text == wire == "a \ud800 b\0"
    assert comment.words == "␀ odd"


def test_what_is_refused(cast: Cast, message: Message) -> None:
    length = len(WIRE)
    for start, end in ((0, 0), (5, 4), (-1, 3), (0, length + 1)):
        with pytest.raises(ValidationError, match="the record has the characters"):
            write_comment(membership=cast.auditor, message=message, start=start, end=end, words="w")
    for words in ("  ", "w" * (MAX_WORDS_LENGTH + 1)):
        with pytest.raises(ValidationError):
            write_comment(membership=cast.auditor, message=message, start=0, end=1, words=words)
    assert length < MAX_QUOTED
    for membership in (cast.viewer, cast.stranger):
        with pytest.raises(PermissionDenied):
            write_comment(membership=membership, message=message, start=0, end=1, words="w")
    assert not Comment.objects.exists()


def test_a_thread_says_who_did_what(cast: Cast, message: Message) -> None:
    comment = write(cast, message)
    said = reply(membership=cast.owner, comment=comment, message=message, words="A test agent.")
    turn(membership=cast.owner, comment=comment, kind="resolved")
    turn(membership=cast.owner, comment=comment, kind="resolved")
    assert count_comments(conversation=message.conversation) == {}
    turn(membership=cast.auditor, comment=comment, kind="reopened")
    assert count_comments(conversation=message.conversation) == {(message.record_id, 1): 1}
    with pytest.raises(PermissionDenied):
        withdraw(membership=cast.auditor, comment=comment, reply_id=said.pk)
    withdraw(membership=cast.owner, comment=comment, reply_id=said.pk)
    with pytest.raises(ValidationError, match="taken back before"):
        withdraw(membership=cast.owner, comment=comment, reply_id=said.pk)
    for membership in (cast.viewer, cast.stranger):
        with pytest.raises(PermissionDenied):
            turn(membership=membership, comment=comment, kind="resolved")
        with pytest.raises(PermissionDenied):
            reply(membership=membership, comment=comment, message=message, words="w")
    (thread,) = list_threads(message=message)
    assert [(each.kind, each.by.username) for each in thread.turns] == [
        ("reply", "olivia"), ("resolved", "olivia"), ("reopened", "amir"), ("withdrawn", "olivia")
    ]  # fmt: skip
    assert thread.withdrawals.keys() == {said.pk}
    withdraw(membership=cast.auditor, comment=comment)
    for act in (
        lambda: turn(membership=cast.auditor, comment=comment, kind="reopened"),
        lambda: reply(membership=cast.auditor, comment=comment, message=message, words="w"),
        lambda: withdraw(membership=cast.auditor, comment=comment),
    ):
        with pytest.raises(ValidationError):
            act()
    assert CommentTurn.objects.count() == 5
    deeds = Deed.objects.filter(code__startswith="comment.").order_by("sequence")
    assert [deed.code.removeprefix("comment.") for deed in deeds] == [
        *("written", "answered", "resolved", "reopened", "withdrawn", "withdrawn")
    ]
    assert not any("Who is this?" in f"{deed.told} {deed.details}" for deed in deeds)
    assert Comment.objects.get().words == "Who is this?"


def test_lists_narrow_and_pass_over_what_is_hidden(cast: Cast, message: Message) -> None:
    first, second = write(cast, message), write(cast, message, "oscar")
    turn(membership=cast.auditor, comment=first, kind="resolved")
    workspace = cast.workspace
    assert list_comments(workspace=workspace) == [second, first]
    assert list_comments(workspace=workspace, state="open", conversation=message.conversation) == [second]
    assert list_comments(workspace=workspace, after=(second.created_at, second.pk)) == [first]
    assert list_comments(workspace=cast.stranger.workspace) == []
    assert find_commented([first, second]) == {first.pk: message, second.pk: message}
    withdraw_delivery(
        membership=cast.auditor,
        delivery=message.record.sightings.get().delivery,
        reason="r",  # type: ignore[attr-defined]
    )
    resolve_all()
    assert find_commented([first, second]) == {}
