"""Reading FIPA-ACL and KQML: a text into its record, and the conversation that it names."""

from __future__ import annotations

from functools import partial

from .._record import Envelope, Identity, Layer, Message, Reading
from .parsing import Prose, Record, parse_record
from .placing import message_of
from .tables import VOCABULARIES
from .tree import grow_tree

# The names of a malformed message that stand when one of its messages could be read in part.
_LIFTED = ("conversation_id", "sender", "receivers", "message_id", "parent_id")


def read(wire: str, envelope: Envelope | None = None) -> Reading:
    """The record of a text: one message for each call, and one inform for each stretch of prose. Never raises."""
    record = parse_record(wire)
    version = record.calls[0].vocabulary if record.calls and record.calls[0].act and not record.error else None
    return Reading(
        dialect="fipa",
        version=version,
        vocabulary=VOCABULARIES[version] if version else None,
        layers=(Layer(id=0, kind="wire", text=wire),),
        tree=partial(grow_tree, wire),
        messages=(_malformed(wire, record),) if record.error else _messages_of(wire, record),
        notes=record.notes,
    )


def _messages_of(wire: str, record: Record) -> tuple[Message, ...]:
    return tuple(
        Message(part=index, performative="inform", content=wire[part.start : part.end])
        if isinstance(part, Prose)
        else message_of(part, index)
        for index, part in enumerate(record.parts, 1)
    )


def _malformed(wire: str, record: Record) -> Message:
    """One message without an act; what its only call says for certain of who, to whom and where still stands."""
    notes = () if record.error is None else (record.error,)
    if len(record.calls) != 1:
        return Message(performative=None, content=wire, notes=notes)
    found = message_of(record.calls[0], 1).__dict__
    lifted = {name: found[name] for name in _LIFTED if name in found}
    return Message(performative=None, content=wire, notes=(*notes, *record.calls[0].notes), **lifted)


def identify(wire: str) -> Identity:
    """The conversation and the id that the first message names."""
    for message in read(wire).messages:
        if message.conversation_id is not None or message.message_id is not None:
            return Identity(conversation=message.conversation_id, id=message.message_id)
    return Identity()
