"""A log of SLIP through the product: its threads are conversations, its answers are linked, and its words are told."""

from __future__ import annotations

from inspector.threads.models import Conversation, Message, Task

from ..conftest import Cast, deliver, resolve_all

LOG = """SLIP v1 desk shelf RequestTask thread7 count aisle 6
SLIP v1 shelf desk AskClarify thread7 which side
SLIP v1 desk shelf InformResult thread7 north
SLIP v1 shelf desk InformComplete thread7 412
THOUGHT: The count is wrong.
QUANTIZE: [ACTION=evaluate | POLARITY=negative] -> EvalReject
SLIP: SLIP v1 desk shelf EvalReject thread7 recount
SLIP v1 desk till RequestReview thread8 prices
SLIP v1 till desk Reject thread8 closed
"""
LINKS = {
    "count aisle 6": "",
    "which side": "",
    "north": "which side",
    "412": "north",
    "recount": "412",
    "prices": "",
    "closed": "prices",
}


def test_a_log_of_slip_becomes_its_threads(cast: Cast) -> None:
    deliver(cast, LOG.encode())
    resolve_all(is_examined=False)
    threads = Conversation.objects.order_by("native_id").values_list("native_id", "message_count")
    assert list(threads) == [("7", 5), ("8", 2)]
    messages = {message.pk: message for message in Message.objects.all()}
    assert {message.dialect for message in messages.values()} == {"slip"}
    said = {pk: next(words for words in LINKS if f"“{words}”" in message.english) for pk, message in messages.items()}
    assert {said[pk]: said.get(message.parent, "") for pk, message in messages.items()} == LINKS
    assert {message.parent_basis for message in messages.values() if message.parent} == {"turn"}
    (rejection,) = (message for pk, message in messages.items() if said[pk] == "recount")
    assert (rejection.performative, rejection.status) == ("evaluate", "rejected")
    assert rejection.english.startswith("desk tells shelf that it rejects what it evaluated")
    # Whoever asked is not content with what was reported as done.
    states = {said[task.request]: task.state for task in Task.objects.filter(act="request")}
    assert states == {"count aisle 6": "in-progress", "prices": "failed"}
