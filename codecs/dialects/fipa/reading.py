"""Reading FIPA-ACL and KQML: a text into its record, and the conversation that it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from .._inner import Inner, TooDeepError, grow_inner, read_inner, veil
from .._places import hide, mask_fields
from .._record import Envelope, Identity, Layer, Message, Note, Reading
from .parsing import Call, Prose, Record, grow_tree, message_of, parse_record
from .tables import CONTENT_TOO_DEEP, VOCABULARIES

# The names of a malformed message that stand when one of its messages could be read in part.
_LIFTED = ("conversation_id", "sender", "receivers", "message_id", "parent_id")


class Opened(NamedTuple):
    """What reading keeps for telling: the contents that were read, by the index of their part, and what is secret."""

    inner: Mapping[int, Inner]
    hidden: Sequence[str]


def read(wire: str, envelope: Envelope | None = None) -> Reading:
    """The record of a text: one message for each call, and one inform for each stretch of prose. Never raises.

    What a content says in a dialect follows its call, as messages of their own.
    """
    record = parse_record(wire)
    version = record.calls[0].vocabulary if record.calls and record.calls[0].act and not record.error else None
    inner, notes = _read_contents(record)
    layers = (Layer(id=0, kind="wire", text=wire), *(layer for each in inner.values() for layer in each.layers))
    secrets, hidden = veil(inner.values(), layers)
    messages = (_malformed(wire, record),) if record.error else _messages_of(wire, record, inner, notes, envelope)
    return Reading(
        dialect="fipa",
        version=version,
        vocabulary=VOCABULARIES[version] if version else None,
        layers=layers,
        tree=lambda: mask_fields((*grow_tree(wire), *grow_inner(inner.values())), secrets),
        messages=tuple(hide(message, hidden) if hidden else message for message in messages),
        notes=record.notes,
        parsed=Opened(inner, hidden),
    )


def _read_contents(record: Record) -> tuple[dict[int, Inner], dict[int, Note]]:
    """By the index of their part, the contents that are in a dialect, read, and notes on those that are not read."""
    found: dict[int, Inner] = {}
    notes: dict[int, Note] = {}
    layer = 1
    for index, part in enumerate(() if record.error else record.parts):
        content = part.used().get("content") if isinstance(part, Call) else None
        if content is None or content.node is None or content.value is None:
            continue
        of = (0, content.node.start, content.node.end)
        try:
            inner = read_inner(content.value.text, layer=layer, of=of, kind="string", count=len(found))
        except TooDeepError:
            notes[index] = CONTENT_TOO_DEEP.note("a message inside this one is not read", of)
            continue
        if inner is not None:
            found[index] = inner
            layer += len(inner.reading.layers)
    return found, notes


def _messages_of(
    wire: str, record: Record, inner: Mapping[int, Inner], notes: Mapping[int, Note], envelope: Envelope | None
) -> Iterator[Message]:
    number = 1
    for index, part in enumerate(record.parts):
        if isinstance(part, Prose):
            yield Message(part=number, performative="inform", content=wire[part.start : part.end])
        else:
            outer = message_of(part, number)
            yield outer.replace(notes=(*outer.notes, notes[index])) if index in notes else outer
            if index in inner:
                if envelope is not None:
                    parties = {
                        "sender": outer.sender or envelope.sender,
                        "receivers": outer.receivers or envelope.receivers,
                    }
                    outer = outer.replace(**parties)
                each = inner[index]
                yield from each.place(each.fill(outer, is_heard=False), outer, number + 1)
                number += len(each.reading.messages)
        number += 1


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
