"""A log of FIPA-ACL taken in: messages over lines, answers linked by in-reply-to, and tasks that go their way."""

from __future__ import annotations

from inspector.intake.models import Record
from inspector.threads.models import Message, Task

from ..conftest import Cast, take_in


def write(act: str, sender: str, receiver: str, ids: str, *, content: str = "(grind 40)", where: str = "sale") -> str:
    """A message as an agent platform prints it."""
    return (
        f"({act}\n :sender  ( agent-identifier :name {sender}@host )\n"
        f" :receiver  (set ( agent-identifier :name {receiver}@host ) )\n"
        f' :content  "{content}"\n {ids} :language  fipa-sl :protocol  fipa-request\n'
        f" :conversation-id  {where} )\n"
    )


LOG = "".join(
    (
        write("REQUEST", "buyer", "mill", ":reply-with b1"),
        write("REQUEST", "buyer", "mill", ":reply-with b2"),
        write("AGREE", "mill", "buyer", ":reply-with m1 :in-reply-to b1"),
        write("REFUSE", "mill", "buyer", ":in-reply-to b2"),
        write("INFORM", "mill", "buyer", ":in-reply-to b1", content="(done (grind 40))"),
        write("FAILURE", "mill", "buyer", ":in-reply-to b9", where="other"),
    )
)


def test_answers_are_linked_by_what_they_reply_to(cast: Cast) -> None:
    take_in(cast, LOG.encode())
    assert Record.objects.count() == 6
    found = list(Message.objects.order_by("order_index"))
    assert {each.dialect for each in found} == {"fipa"}
    acts = {each.pk: (each.native_act, each.native_id) for each in found}
    answered = {each.native_act: acts[each.parent] for each in found if each.parent}
    assert answered == {"agree": ("request", "b1"), "refuse": ("request", "b2"), "inform": ("request", "b1")}
    assert {each.parent_basis for each in found if each.parent} == {"explicit"}
    states = Task.objects.filter(conversation__native_id="sale").values_list("state", flat=True)
    assert sorted(states) == ["done", "failed"]
