"""CLowl: JSON messages with typed performatives, in the versions v0.1, v0.2 and the v0.3 drafts.

Specification: spec-v0.1, spec-v0.2 with its JSON Schema, the drafts CLowl-S and coordination envelope of v0.3, and the
reference library clowl 0.2.0. The normalised record cannot hold a token (it is masked), the order and spacing of
keys, or the earlier values of a repeated key in their places. Which state a task is in follows from a conversation
and is worked out where conversations are; here is only said where a published state machine would refuse a step.
"""

from __future__ import annotations

from collections.abc import Sequence

from .._context import Context, Keys
from .._dialect import Dialect, Reply, never
from .._record import Message, Reading, Told
from .asides import ToldMessage, tell_message, tell_plain
from .notes import LIFECYCLE, NOTES
from .parts import may_mask, open_block, sniff
from .reading import identify, read
from .tables import GLOSSARY
from .telling import Lifecycle
from .writing import encode


def _tell(reading: Reading, context: Context, keys: Keys) -> Told:
    parsed = reading.parsed
    lifecycle = Lifecycle(context)
    if type(parsed) is dict:
        (message,) = reading.messages
        told = _advise(tell_plain(message, reading.wire, parsed), lifecycle)
        return Told.trust({"reading": reading, "messages": (told,), "entries": lifecycle.entries})
    if type(parsed) is not tuple or len(parsed) != len(reading.messages):
        # A reading that was not made here, or made anew from storage, is read again for its parts.
        again = read(reading.wire)
        messages = reading.messages if len(reading.messages) == len(again.messages) else again.messages
        return _tell(reading.replace(messages=messages, parsed=again.parsed), context, keys)
    messages = tuple(
        _advise(tell_message(message, piece), lifecycle)
        for message, piece in zip(reading.messages, parsed, strict=True)
    )
    return Told(reading=reading, messages=messages, entries=lifecycle.entries)


def _advise(told: ToldMessage, lifecycle: Lifecycle) -> ToldMessage:
    """The message with what decides on its words, and with a note where a published state machine would refuse it."""
    if lifecycle.answers_cancel(told):
        told = told.answer_cancel()
    advice = lifecycle.follow(told)
    if advice is None:
        return told
    return told.replace(notes=(*told.notes, LIFECYCLE.note(advice, told.place_of_act())))


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
    sniff=sniff,
    identify=identify,
    read=read,
    tell=_tell,
    encode=encode,
    versions=("0.1", "0.2", "0.3"),
    replies=_reply,
    topics_are_tasks=True,
    opens=open_block,
    masks=may_mask,
    packs=never,
    notes=NOTES,
    glossary=GLOSSARY,
    has_objects=True,
    rank=5,
)
