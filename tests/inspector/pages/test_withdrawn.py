"""A cited message that was received and is withdrawn: every page says so, and none guesses."""

from __future__ import annotations

from typing import Any

from django.test import Client

from inspector.audit.models import Finding
from inspector.intake.withdrawals import take_back, withdraw_delivery
from inspector.threads.models import Message
from tests.inspector.conftest import Cast, resolve_all, take_in

from .conftest import page_of, read, shows

SECRET = "the launch code is 4711"


def clowl(mid: str, act: str, sender: str, receiver: str, *, at: int, pid: str = "") -> bytes:
    cited = f'"pid":"{pid}",' if pid else ""
    words = f'"body":{{"t":"x","d":{{"say":"{SECRET if not pid else "on it"}"}}}}'
    return (
        f'{{"clowl":"0.2","mid":"{mid}","ts":{1795251600 + at},{cited}"p":"{act}","from":"{sender}",'
        f'"to":"{receiver}","cid":"claim",{words}}}\n'
    ).encode()


def open_all(client: Client) -> dict[str, str]:
    """The pages that show the reply, by their names."""
    reply = Message.objects.get(native_id="m13")
    conversation = reply.conversation_id
    return {
        "transcript": read(client, page_of("conversation", conversation)),
        "by time": read(client, page_of("conversation", conversation) + "?order=time"),
        "tree": read(client, page_of("conversation-tree", conversation)),
        "sequence": read(client, page_of("sequence", conversation)),
        "message": read(client, page_of("message", reply.pk)),
    }


def make_reply(cast: Cast) -> Any:
    """Message 10 by assessor, and 13 in another delivery, by which it follows up on its own words to intake."""
    first = take_in(cast, clowl("m10", "INF", "assessor", "intake", at=0), name="first.log")
    take_in(cast, clowl("m13", "INF", "assessor", "intake", at=60, pid="m10"), name="second.log")
    return first


def test_what_is_withdrawn_was_received_and_nothing_is_guessed_of_it(viewer: Client, cast: Cast) -> None:
    first = make_reply(cast)
    shown = Message.objects.get(native_id="m10")
    withdraw_delivery(membership=cast.auditor, delivery=first, reason="the wrong file")
    resolve_all()
    pages = open_all(viewer)
    for page in pages.values():
        missing = ["was not received", ">not received<", "m10 not received", "Upload the log"]
        shows(page, "withdrawn", never=[*missing, "Most likely", SECRET])
    assert "May be incomplete: 1 missing or withdrawn parent" in pages["transcript"]
    for name in ("transcript", "by time"):
        shows(pages[name], "m10 was received and is withdrawn.", "amir withdrew it", page_of("message", shown.pk))
    assert "m10 was received and is withdrawn" in pages["sequence"]
    assert f'<a href="{page_of("message", shown.pk)}">' in pages["message"]
    assert "m10</bdi> was received and is withdrawn" in pages["tree"]
    assert not Finding.objects.filter(rule="missing-message", holds=True).exists()


def test_what_is_shown_again_is_a_parent_and_what_never_came_is_missing(viewer: Client, cast: Cast) -> None:
    first = make_reply(cast)
    withdraw_delivery(membership=cast.auditor, delivery=first, reason="the wrong file")
    resolve_all()
    take_back(membership=cast.auditor, delivery=first, reason="the right one")
    resolve_all()
    for page in open_all(viewer).values():
        assert "withdrawn" not in page
    take_in(cast, clowl("m14", "INF", "assessor", "intake", at=90, pid="lost"))
    page = open_all(viewer)["transcript"]
    shows(page, "lost was not received.", never=["is withdrawn"])
    assert Finding.objects.filter(rule="missing-message", holds=True).count() == 1


def test_of_several_withdrawn_messages_of_one_id_none_is_named(viewer: Client, cast: Cast) -> None:
    first = make_reply(cast)
    other = take_in(cast, clowl("m10", "REQ", "stranger", "intake", at=5), name="other.log")
    for delivery in (first, other):
        withdraw_delivery(membership=cast.auditor, delivery=delivery, reason="the wrong file")
    resolve_all()
    page = open_all(viewer)["transcript"]
    shows(page, "m10 was received and is withdrawn.", never=["Its own page"])


def test_another_channels_withdrawn_message_is_not_what_is_cited(viewer: Client, cast: Cast) -> None:
    from inspector.accounts.services import ensure_channel

    lab = ensure_channel(workspace=cast.workspace, name="lab")
    first = take_in(cast, clowl("m10", "INF", "assessor", "intake", at=0), name="first.log", channel=lab)
    take_in(cast, clowl("m13", "INF", "assessor", "intake", at=60, pid="m10"), name="second.log")
    withdraw_delivery(membership=cast.auditor, delivery=first, reason="the wrong file")
    resolve_all()
    assert "m10 was not received." in open_all(viewer)["transcript"]


def test_who_sent_what_is_missing_is_guessed_only_where_the_answer_says_so(viewer: Client, cast: Cast) -> None:
    take_in(cast, clowl("m13", "ACK", "assessor", "intake", at=60, pid="lost"))
    shows(open_all(viewer)["transcript"], "Most likely from", "before")
    take_in(cast, clowl("m14", "INF", "assessor", "intake", at=61, pid="gone"))
    page = open_all(viewer)["transcript"]
    assert page.count("Most likely from") == 1
    assert page.count("Most likely before") == 1
