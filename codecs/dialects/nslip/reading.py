"""Reading nSLIP: a text into its record, and the conversation that it names."""

from __future__ import annotations

from functools import partial

from .._record import Envelope, Identity, Layer, Message, Reading, WireReading
from .detection import USUAL
from .fields import read_number
from .parsing import Prose, Record, parse_record
from .placing import message_of
from .plain import read_plain
from .tables import VOCABULARY
from .tree import grow_tree

# The names of a malformed message that stand when its tag could be read in part.
_LIFTED = ("conversation_id", "sender", "receivers", "turn")


def read(wire: str, envelope: Envelope | None = None) -> Reading:
    """The record of a text: one message a tag, and one inform for each stretch of prose around. Never raises."""
    plain = read_plain(wire)
    if plain is not None:
        return PlainReading.of(wire, (Message.trust(plain),))
    record = parse_record(wire)
    messages = (_malformed(wire, record),) if record.error else _messages_of(wire, record)
    return Reading(
        dialect="nslip",
        version=_version_of(record),
        vocabulary=VOCABULARY,
        layers=(Layer(id=0, kind="wire", text=wire),),
        tree=partial(grow_tree, wire),
        messages=messages,
        notes=record.notes,
    )


class PlainReading(WireReading):
    """The reading of one tag in its plain spelling."""

    dialect = "nslip"
    version = "0.1"
    vocabulary = VOCABULARY

    grow = staticmethod(grow_tree)


def _version_of(record: Record) -> str | None:
    """The version whose header the tags bear, the newest among them; None where the text cannot be read."""
    if record.error:
        return None
    return "0.0" if all(tag.is_legacy for tag in record.tags) else "0.1"


def _messages_of(wire: str, record: Record) -> tuple[Message, ...]:
    return tuple(
        Message(part=index, performative="inform", content=wire[part.start : part.end])
        if isinstance(part, Prose)
        else message_of(part, index)
        for index, part in enumerate(record.parts, 1)
    )


def _malformed(wire: str, record: Record) -> Message:
    """One message without an act; what its only tag says for certain of who, to whom and where still stands."""
    notes = () if record.error is None else (record.error,)
    if len(record.tags) != 1:
        return Message(performative=None, content=wire, notes=notes)
    found = message_of(record.tags[0], 1)
    lifted = {name: found.__dict__[name] for name in _LIFTED if name in found.__dict__}
    return Message(performative=None, content=wire, notes=found.notes, **lifted)


def identify(wire: str) -> Identity:
    """The conversation that the first tag names, as decimal text."""
    usual = USUAL.match(wire)
    if usual and wire[-1] == "#" and wire.count("@") == 1:
        return Identity(conversation=str(read_number(usual[1])))
    found = (message.conversation_id for message in read(wire).messages)
    return Identity(conversation=next((name for name in found if name is not None), None))
