"""Reviews by the API: what anybody may know of them, with a key of the scope for it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from inspector.accounts.services import create_api_key
from inspector.audit.services import claim, create_queue, fill_queue, judge_item
from inspector.threads.models import Conversation
from tests.inspector.conftest import Cast, deliver, settle_all

pytestmark = pytest.mark.django_db


def test_a_blind_review_is_blind_here_too(cast: Cast, token: str) -> None:
    deliver(cast, b'{"raw": "Pay the invoice.", "conversation": "c1", "id": "m1"}')
    settle_all()
    conversation = Conversation.objects.get()
    queue = create_queue(membership=cast.owner, name="Two", reviewers=2, criteria=["Is it so?"])
    fill_queue(queue=queue, conversations=[conversation.pk], why="by hand", membership=cast.owner)
    item = queue.items.get()
    # Not even a key that the first reviewer made knows what they said.
    key = create_api_key(workspace=cast.workspace, name="k", scopes=["review"], created_by=cast.auditor.user)[1]
    client = Client(headers={"Authorization": f"Bearer {key}"})

    def read(name: str, *args: Any, **query: Any) -> Any:
        answer = client.get(reverse(f"api:{name}", args=args), query)
        assert answer.status_code == 200, answer.content
        return answer.json()

    def judge(who: Any) -> None:
        claim(membership=who, item=item)
        judge_item(
            membership=who,
            item=item,
            verdict="concern",
            comment="Hm.",
            seen=bytes(conversation.settled_digest or b""),
            answers=["fail"],
        )

    judge(cast.auditor)
    [shown] = read("review-items", queue.pk, state="second")["results"]
    assert (shown["state"], shown["verdict"], shown["holder"]) == ("second", None, None)
    assert read("review-item", item.pk)["verdicts"] == []
    judge(cast.owner)
    assert read("review-items", queue.pk)["results"] == []
    [shown] = read("review-items", queue.pk, state="done")["results"]
    assert shown["verdict"] == "concern"
    first, second = read("review-item", item.pk)["verdicts"]
    assert (first["reviewer"], second["reviewer"]) == ("amir", "olivia")
    assert (first["answers"], first["standing"]) == ([{"criterion": "Is it so?", "answer": "fail"}], "holds")
    assert len(first["digest"]) == 64
    [counted] = read("review-queues")["results"]
    assert (counted["name"], counted["open"], counted["settled"]) == ("Two", 0, 1)
    reader = Client(headers={"Authorization": f"Bearer {token}"})
    assert reader.get(reverse("api:review-queues")).status_code == 403
