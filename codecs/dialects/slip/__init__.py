"""SLIP: lines such as `SLIP v1 alice bob RequestReview auth` and `SLIP v3 alice bob Request Review auth`.

Specification: SLIP v1 is the wire of slipcore 2 (slip-spec 2.0, UCR 1.0.0), SLIP v3 that of slipcore 3
(slipstream-v3.abnf, UCR 3.0.0); there is no v2. A line names sender, receiver and act, v1 also a thread; there is
no time, no id and no parent. The normalised record cannot hold how much white space stood between the words of a
line, nor a mark `SLIP:` before a line without a thought.
"""

from __future__ import annotations

from collections.abc import Sequence

from .._dialect import Dialect, Reply, never, no_reply
from .._record import Message
from .glossary import GLOSSARY
from .lines import opens, sniff
from .reading import identify, read
from .tables import NOTES
from .telling import tell
from .writing import encode

# The acts that speak to something said before; all others may open a matter of their own.
_ANSWERS = frozenset({"accept", "reject", "acknowledge", "commit", "done", "progress", "evaluate", "failure", "inform"})
_WHY = "it names no message; the latest that was said to its sender, by its receiver if that said any, is taken"


def replies(message: Message) -> Sequence[Reply]:
    """The ways to the message that this one answers: a parent from the envelope, else the other's latest message."""
    act = message.native_act
    if act is None or act.startswith("Fallback") or message.performative not in _ANSWERS:
        return no_reply(message)
    return (*no_reply(message), Reply(whom="latest-of-other", basis="turn", why=_WHY))


DIALECT = Dialect(
    slug="slip",
    title="SLIP",
    summary="Lines of plain words: sender, receiver, an act of a shared table, and a payload. The successor of nSLIP.",
    specification="slip-spec 2.0 (SLIP v1), slipstream-v3.abnf (SLIP v3)",
    versions=("3", "1"),
    sniff=sniff,
    identify=identify,
    read=read,
    tell=tell,
    encode=encode,
    replies=replies,
    opens=opens,
    masks=never,
    packs=never,
    notes=NOTES,
    glossary=GLOSSARY,
)
