"""The trail keeps a blind review blind."""

from __future__ import annotations

from inspector.accounts.models import Membership
from inspector.audit.reviews.bindings import list_told_deeds
from inspector.audit.reviews.queues import create_queue, fill_queue
from inspector.audit.reviews.verdicts import claim, withdraw_verdict
from inspector.threads.models import Conversation
from inspector.trail.models import Deed
from inspector.trail.services import Wanted

from ..conftest import Cast
from .test_reviews import conversation, enqueue, judge

__all__ = ["conversation"]


def read_reviewing(reader: Membership) -> list[str]:
    rows = list_told_deeds(workspace_id=reader.workspace_id, reader=reader, wanted=Wanted())
    return [deed.code for deed in rows if deed.code.startswith(("verdict", "review")) and deed.actor_name == "amir"]


def read_verdicts(reader: Membership, **wanted: object) -> list[str]:
    rows = list_told_deeds(workspace_id=reader.workspace_id, reader=reader, wanted=Wanted(**wanted))  # type: ignore[arg-type]
    return [deed.actor_name for deed in rows if deed.code == "verdict.given"]


def test_a_verdict_is_in_the_trail_when_both_have_spoken(cast: Cast, conversation: Conversation) -> None:
    item = enqueue(cast, conversation)
    judge(item, cast.auditor, "concern")
    for reader in (cast.owner, cast.auditor):
        own = ["amir"] if reader == cast.auditor else []
        assert read_verdicts(reader) == own
        assert read_verdicts(reader, about=conversation.pk) == own
        assert read_verdicts(reader, actor=("member", str(cast.auditor.user_id))) == own
    judge(item, cast.owner, "concern")
    assert read_verdicts(cast.owner) == ["olivia", "amir"]
    told = Deed.objects.filter(code="verdict.given").values_list("details__verdict", "told")
    assert {verdict for verdict, _ in told} == {"concern"}
    # What was written in confidence is no part of it.
    assert not any("Hidden words" in text for _, text in told)


def test_the_trail_does_not_tell_who_took_what_is_blind(cast: Cast, conversation: Conversation) -> None:
    item = enqueue(cast, conversation)
    alone = create_queue(membership=cast.owner, name="Alone")
    fill_queue(queue=alone, conversations=[conversation.pk], why="", membership=cast.owner)
    claim(membership=cast.auditor, item=alone.items.get())
    judge(item, cast.auditor, "concern")
    withdraw_verdict(membership=cast.auditor, item=item)
    judge(item, cast.auditor, "fine")
    assert read_reviewing(cast.owner) == []
    assert len(read_reviewing(cast.auditor)) == 6
    judge(item, cast.owner, "fine")
    assert len(read_reviewing(cast.owner)) == 6
