"""Λ Lambda: short statements of atoms, a type symbol in front, and a protocol of acknowledgements and errors.

Specification: Λ Language v0.6, communication protocol; the vocabularies are those of releases 0.1 to 2.0. A
declared `@vX.Y` selects the vocabulary; none declared means v2.0. The normalised record holds each statement as
one message; it has no place for which of several spellings of white space stood between them.
"""

from __future__ import annotations

from .._dialect import Dialect, Reply, never
from .._record import Message
from .detection import open_block, sniff
from .doubts import DOUBT_NOTES
from .encoding import encode
from .glossary import make_glossary
from .json_forms import may_be_form
from .notes import FORM_NOTES, NOTES
from .reading import identify, read
from .telling import tell
from .vocabulary import SPOKEN

_ANSWERS = frozenset({"acknowledge", "not-understood", "failure"})
_TURN = Reply(whom="latest-of-other", basis="turn", why="it answers the other party's latest message")


def find_replies(message: Message) -> tuple[Reply, ...]:
    """How the message that this one answers is found: by its id, by its chunk, else by turn."""
    found: list[Reply] = []
    if message.parent_id is not None:
        why = f"it names message {message.parent_id}"
        found.append(Reply(whom="message-id", basis="explicit", why=why, value=message.parent_id))
    chunk = message.correlation_id
    if message.performative == "acknowledge" and chunk is not None and chunk.startswith("#"):
        why = f"it acknowledges chunk {chunk[1:]}"
        found.append(Reply(whom="correlation-id", basis="explicit", why=why, value=chunk))
    if message.performative in _ANSWERS or message.native_act in ("<->", "#h<"):
        found.append(_TURN)
    return tuple(found)


DIALECT = Dialect(
    slug="lambda_lang",
    title="Λ Lambda",
    summary="Terse statements of one- and two-letter atoms behind a type symbol, with a conversation protocol.",
    specification="Λ Language v0.6, communication protocol; vocabularies of v0.1 to v2.0",
    sniff=sniff,
    identify=identify,
    read=read,
    tell=tell,
    encode=encode,
    versions=SPOKEN,
    replies=find_replies,
    opens=open_block,
    masks=never,
    packs=may_be_form,
    notes=(*NOTES, *FORM_NOTES, *DOUBT_NOTES),
    glossary=make_glossary(),
    has_objects=True,
    has_own_words=True,
    rank=40,
)
