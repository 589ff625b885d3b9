"""What two people do to one item at the same moment: the second waits for the first, and then sees what there is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.utils import timezone

from inspector.accounts.models import Role
from inspector.accounts.services import add_member
from inspector.audit.models import Review, ReviewItem
from inspector.audit.reviews import queues, verdicts
from inspector.threads.models import Conversation

from ..conftest import Cast, deliver, make_user, resolve_all
from .test_reviews import enqueue, judge, seen

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def item(cast: Cast) -> ReviewItem:
    deliver(cast, b'{"raw": "Pay the invoice.", "conversation": "c1", "id": "m1"}')
    resolve_all()
    return enqueue(cast, Conversation.objects.get())


def meanwhile(first: Callable[[], Any], then: Callable[[], Any]) -> str:
    """Do the first and keep its transaction open until the second waits for it; what the second was refused with."""
    outcomes: list[str] = []

    def run() -> None:
        try:
            then()
            outcomes.append("done")
        except ValidationError as error:
            outcomes.append(error.messages[0])
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    with transaction.atomic():
        first()
        thread.start()
        deadline = time.monotonic() + 20
        while not _is_somebody_waiting():
            assert time.monotonic() < deadline, f"it does not wait: {outcomes}"
            time.sleep(0.01)
    thread.join(20)
    assert outcomes, "it does not end"
    return outcomes[0]


def _is_somebody_waiting() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pid <> pg_backend_pid())")
        return bool(cursor.fetchone()[0])


def test_whoever_comes_second_is_told_who_came_first(cast: Cast, item: ReviewItem) -> None:
    said = meanwhile(
        lambda: verdicts.claim(membership=cast.auditor, item=item),
        lambda: verdicts.claim(membership=cast.owner, item=item),
    )
    assert said.startswith("amir holds it until")


def test_a_lease_that_ends_in_the_middle_of_a_verdict_gives_one_decision(cast: Cast, item: ReviewItem) -> None:
    """Of two who are to decide, the one whose lease was taken over is refused, and the other one decides."""
    third, fourth = (
        add_member(workspace=cast.workspace, user=make_user(name), role=Role.AUDITOR) for name in ("tara", "finn")
    )
    judge(item, cast.auditor, "fine")
    judge(item, cast.owner, "concern")
    verdicts.claim(membership=third, item=item)
    ReviewItem.objects.update(held_until=timezone.now() - timedelta(hours=1))
    digest = seen(item.conversation)

    def decide(who: Any, verdict: str) -> Review:
        return verdicts.judge_item(
            membership=who, item=item, verdict=verdict, comment="", seen=digest, answers=["pass", "pass"]
        )

    said = meanwhile(lambda: verdicts.claim(membership=fourth, item=item), lambda: decide(third, "fine"))
    assert said.startswith("finn holds it until")
    # The other way round: a verdict that is being written is not taken over.
    said = meanwhile(lambda: decide(fourth, "violation"), lambda: verdicts.claim(membership=third, item=item))
    assert said.startswith("the review is complete")
    item.refresh_from_db()
    assert (item.state, item.verdict, item.holder_id) == ("settled", "violation", None)
    assert Review.objects.filter(is_adjudication=True).count() == 1


def test_a_verdict_withdrawn_while_the_other_speaks_settles_nothing(cast: Cast, item: ReviewItem) -> None:
    judge(item, cast.auditor, "fine")
    verdicts.claim(membership=cast.owner, item=item)
    digest = seen(item.conversation)

    def speak() -> None:
        verdicts.judge_item(
            membership=cast.owner, item=item, verdict="fine", comment="", seen=digest, answers=["pass", "pass"]
        )

    assert meanwhile(lambda: verdicts.withdraw_verdict(membership=cast.auditor, item=item), speak) == "done"
    item.refresh_from_db()
    assert (item.state, item.verdict) == ("second", ""), "one verdict is in, and not two"


def test_nothing_comes_into_a_queue_that_is_being_closed(cast: Cast, item: ReviewItem) -> None:
    judge(item, cast.auditor, "fine")
    judge(item, cast.owner, "fine")
    close = lambda: queues.close_queue(membership=cast.owner, queue=item.queue, is_closed=True)  # noqa: E731
    assert "closed" in meanwhile(close, lambda: verdicts.review_again(membership=cast.auditor, item=item))
    queues.close_queue(membership=cast.owner, queue=item.queue, is_closed=False)
    fill = lambda: queues.fill_queue(  # noqa: E731
        queue=item.queue, conversations=[item.conversation_id], why="", membership=cast.owner
    )
    assert "closed" in meanwhile(close, fill)
    assert ReviewItem.objects.count() == 1
    queues.close_queue(membership=cast.owner, queue=item.queue, is_closed=False)
    # Two ways into the queue at once: it comes in once, and nobody is led to an item that is not there.
    put = lambda: queues.make_items(item.queue, [item.conversation_id], "", None)  # noqa: E731
    said = meanwhile(put, lambda: verdicts.review_again(membership=cast.auditor, item=item))
    assert said == "it waits in this queue already"
    assert ReviewItem.objects.filter(state="waiting").count() == 1
