"""CLowl: JSON messages with typed performatives, in the versions v0.1, v0.2 and the v0.3 drafts.

Specification: spec-v0.1, spec-v0.2 with its JSON Schema, the drafts CLowl-S and coordination envelope of v0.3, and the
reference library clowl 0.2.0. The normalised record cannot hold a token (it is masked), the order and spacing of
keys, or the earlier values of a repeated key in their places. Which state a task is in follows from a conversation
and is worked out where conversations are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .._context import Context, Keys
from .._dialect import Dialect, Reply
from .._record import Candidate, Message, Reading, Told
from .blocks import open_block
from .notes import NOTES
from .plain import build
from .reading import identify, read, take_whole
from .tables import GLOSSARY
from .told import tell_message
from .writing import encode

_VERSIONED = Candidate(dialect="clowl", score=0.98, why="an object with CLowl's version key")
_COORDINATED = Candidate(dialect="clowl", score=0.95, why="an object with the keys of the coordination envelope")
_SEMANTIC = Candidate(dialect="clowl", score=0.85, why="an object with the keys of CLowl-S")
_UNVERSIONED = Candidate(dialect="clowl", score=0.75, why="an object with CLowl's keys and no version")
_WITHIN = Candidate(dialect="clowl", score=0.6, why="an object with CLowl's version key within other text")

_VERSION_KEY = re.compile(r'"(?:clowl|cl)"[ \t\r\n]*+:')
_HEAD = re.compile(r"\ufeff?(?:[ \t\r\n]++|//[^\n]*+\n|```[a-z]*+[ \t\r]*+\n|\[(?=[ \t\r\n]*+\{))*+\{")
_WITHIN_TEXT = re.compile(r'\{[ \t\r\n]*+"(?:clowl|cl)"[ \t\r\n]*+:')
_MARKS = frozenset("{[/`\ufeff \t\r\n")
# So far into a text the keys of its first object are looked for; a version key may stand anywhere in it.
_NEAR = 4_096


def _sniff(wire: str) -> Candidate | None:
    if wire[:9] == '{"clowl":':
        return _VERSIONED
    if wire[:1] in _MARKS and _HEAD.match(wire):
        return _sniff_object(wire)
    if '"clowl"' in wire or '"cl"' in wire:
        return _WITHIN if _WITHIN_TEXT.search(wire) else None
    return None


def _sniff_object(wire: str) -> Candidate | None:
    if _VERSION_KEY.search(wire):
        return _VERSIONED
    near = wire[:_NEAR]
    if '"semantic"' in near and '"routing"' in near:
        return _COORDINATED
    if '"p"' not in near:
        return None
    if '"task"' in near and '"from"' in near and '"to"' in near and '"cid"' not in near:
        return _SEMANTIC
    held = sum(key in near for key in ('"from"', '"to"', '"cid"', '"body"', '"mid"'))
    return _UNVERSIONED if held >= 3 else None


def _tell(reading: Reading, context: Context, keys: Keys) -> Told:
    parsed = reading.parsed
    if type(parsed) is dict:
        told = tell_message(reading.messages[0], take_whole(reading.wire, parsed))
        return build(Told, {"reading": reading, "messages": (told,)})
    return Told(reading=reading, messages=tuple(map(tell_message, reading.messages, parsed)))


_ANSWERS = frozenset({"ACK", "ERR", "DONE", "PROG"})


def _reply(message: Message) -> Sequence[Reply]:
    """A parent id is explicit; an answer without one follows the latest message to its sender (spec-v0.1 section 8)."""
    if message.parent_id is not None:
        return (Reply(whom="message-id", basis="explicit", why="it names its parent", value=message.parent_id),)
    if "pid" in message.attributes:
        return ()
    follows = Reply(whom="previous", basis="adjacency", why="it follows in the same conversation")
    if message.native_act not in _ANSWERS:
        return (follows,)
    why = f"{message.native_act} answers, and names no parent: taken as the answer to the latest message to its sender"
    return (Reply(whom="latest-to-me", basis="turn", why=why), follows)


DIALECT = Dialect(
    slug="clowl",
    title="CLowl",
    summary="JSON messages with typed performatives between named agents.",
    specification="CLowl spec-v0.1, spec-v0.2 and clowl-schema, v0.3 drafts (CLowl-S, coordination); clowl 0.2.0",
    sniff=_sniff,
    identify=identify,
    read=read,
    tell=_tell,
    encode=encode,
    versions=("0.1", "0.2", "0.3"),
    replies=_reply,
    opens=open_block,
    notes=NOTES,
    glossary=GLOSSARY,
    rank=5,
)
