"""nSLIP: compact tags `@a3|f0|c1|S0|d1|T1|k1|t"refactor_auth"#` between numbered agents.

Specification: the nSLIP protocol skill of SLIPCore 0.1; the lower-case header of v0.0 is read too.

A tag names act, frame, conversation, sender, receiver and turn, and up to nine slots, in numbers of base 62 and
quoted texts. It has no time, no id and no parent: who answers whom is inferred from the turns. The record cannot
hold two things of a tag: a second field of a kind, which only a note shows, and how a number was spelt.
"""

from __future__ import annotations

from collections.abc import Sequence

from .._dialect import Dialect, Reply, never, no_reply
from .._record import Message
from .detection import opens, sniff
from .reading import identify, read
from .tables import AGENTS, GLOSSARY, NOTES
from .telling import tell
from .writing import encode


def replies(message: Message) -> Sequence[Reply]:
    """The ways to the message that this one answers: a parent from the envelope, the turns, else what went before."""
    explicit = no_reply(message)
    if message.native_act is None or message.sender is None:
        return explicit
    matter = "names no task either" if message.task_id is None else f"is about task {message.task_id} too"
    why = f"it is the latest earlier turn sent to agent {message.sender} that {matter}"
    return (
        *explicit,
        Reply(whom="latest-to-me", basis="turn", why=why),
        Reply(whom="previous", basis="adjacency", why="it is the latest earlier turn"),
    )


DIALECT = Dialect(
    slug="nslip",
    title="nSLIP",
    summary="Compact tags between numbered agents: act, frame, conversation, turn and a few slots.",
    specification="nSLIP protocol skill, SLIPCore 0.1",
    versions=("0.1", "0.0"),
    sniff=sniff,
    identify=identify,
    read=read,
    tell=tell,
    encode=encode,
    replies=replies,
    opens=opens,
    masks=never,
    packs=never,
    orders_by_turn=True,
    numbers_agents=True,
    notes=NOTES,
    glossary=GLOSSARY,
    agents=AGENTS,
)
