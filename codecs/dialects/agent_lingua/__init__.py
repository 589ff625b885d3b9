"""agent-lingua (👽): two hex codes, fields behind sigils, Base64 payloads, responses, errors and a signature line.

Specification: agent-lingua 0.4.0 (SKILL.md) with its field table, handshake and security documents. The normalised
record cannot hold the order of fields, the spelling of Base64 and the line breaks between statements: writing a
record back gives the canonical ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from .._dialect import Dialect, Reply, never
from .._record import Identity, Message
from .contents import say_key
from .detection import open_block, sniff
from .encoding import encode_messages, is_answer
from .glossary import GLOSSARY
from .notes import NOTES
from .payloads import may_pack
from .reading import read_record
from .tables import SPECIFICATION
from .telling import tell_record


def _identify(wire: str) -> Identity:
    """Conversation, id and time are never on the wire."""
    return Identity()


def _find_parents(message: Message) -> Sequence[Reply]:
    """A response or an error answers by its correlation id, else by turn; a statement answers nothing.

    By turn where it has none; and where nobody bears it, what bears no other (the threads see to that).
    """
    ways: list[Reply] = []
    if message.parent_id is not None:
        ways.append(Reply(whom="message-id", basis="explicit", why="it names its parent", value=message.parent_id))
    if not is_answer(message):
        return ways
    if message.correlation_id is not None:
        why = f"it carries the correlation id {message.correlation_id}"
        ways.append(Reply(whom="correlation-id", basis="correlation", why=why, value=message.correlation_id))
    lacks = "no correlation id" if message.correlation_id is None else "a correlation id that nobody bears"
    why = f"it carries {lacks}; the other party's latest unanswered statement is taken"
    ways.append(Reply(whom="latest-unanswered-of-other", basis="turn", why=why))
    return ways


# In these an identifier numbers what is said to an agent; elsewhere it names what is acted on.
_NUMBERED = frozenset({"SYS", "MSG", "EXC"})


def _is_numbered(message: Message) -> bool:
    has_number = message.object_id is not None and message.content is not None
    return has_number and message.attributes.get("domain") in _NUMBERED and not is_answer(message)


DIALECT = Dialect(
    slug="agent_lingua",
    title="agent-lingua",
    summary="Statements behind a 👽: hex codes for domain and action, fields behind sigils, Base64 or sealed payloads.",
    specification=SPECIFICATION,
    versions=("0.1", "0.2", "0.3", "0.4"),
    sniff=sniff,
    identify=_identify,
    read=read_record,
    tell=tell_record,
    encode=encode_messages,
    replies=_find_parents,
    numbers=_is_numbered,
    asks_what_waits=True,
    opens=open_block,
    masks=never,
    packs=may_pack,
    notes=NOTES,
    glossary=GLOSSARY,
    key_names=("pubkey", "fingerprint"),
    say_key=say_key,
    # What is sent or posted need ask for nothing, whatever the table of acts makes of it.
    nouns={"PST": "message"},
)
