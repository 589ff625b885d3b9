"""Relay: `~WORD sender>receiver number text~`, five words for short errands. Specification: this file.

The normalised record holds all of it: the word is the act, the number the id of the task.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dialects import (
    Candidate,
    Context,
    Dialect,
    Encoded,
    EncodeError,
    Envelope,
    Field,
    Identity,
    Keys,
    Layer,
    Loss,
    Message,
    NoteKind,
    Reading,
    Reply,
    Segment,
    Term,
    Told,
    enclose,
    leaf,
    never,
    say_name,
)

# The word, its act, what it means, and its sentence up to the text.
_WORDS = (
    ("ASK", "request", "asks for an errand", "asks {receiver} to run errand {task}"),
    ("GO", "accept", "takes an errand on", "takes errand {task} on for {receiver}"),
    ("WAIT", "progress", "is not done yet", "tells {receiver} that errand {task} takes longer"),
    ("DONE", "done", "has run the errand", "tells {receiver} that errand {task} is done"),
    ("FAIL", "failure", "could not run the errand", "tells {receiver} that errand {task} failed"),
)
_ACTS = {word: act for word, act, _, _ in _WORDS}
_SENTENCES = {word: sentence for word, _, _, sentence in _WORDS}
_MESSAGE = re.compile(r"~(?P<word>[A-Z]{2,4}) (?P<sender>\w+)>(?P<receiver>\w+) (?P<task>\d{1,9}) (?P<text>[^~\n]*)~")
_LABELS = {"word": "act", "sender": "sender", "receiver": "receiver", "task": "errand", "text": "text"}

UNREAD = NoteKind(
    code="relay.unread",
    severity="error",
    group="malformed",
    about="A text that begins as a relay message and has not its form, or a word that is none of the five.",
)

OWN_ERRAND = NoteKind(
    code="relay.own-errand",
    severity="notice",
    group="sequence",
    about="An agent asks itself to run an errand: nobody else may have seen it.",
)


def _match(wire: str) -> re.Match[str] | None:
    found = _MESSAGE.fullmatch(wire)
    return found if found and found["word"] in _ACTS else None


def _sniff(wire: str) -> Candidate | None:
    if _match(wire):
        return Candidate(dialect="relay", score=0.9, why="it has the form of a relay message")
    if wire.startswith(tuple(f"~{word} " for word in _ACTS)):
        return Candidate(dialect="relay", score=0.6, why="it begins as a relay message")
    return None


def _read(wire: str, envelope: Envelope | None) -> Reading:
    layers = (Layer(id=0, kind="wire", text=wire),)
    found = _match(wire)
    if found is None:
        note = UNREAD.note("this has not the form of a relay message", (0, 0, len(wire)))
        return Reading(
            dialect="relay",
            layers=layers,
            tree=lambda: (Field(name="text", label="text", raw=wire, span=(0, 0, len(wire))),) if wire else (),
            messages=(Message(performative=None, content=wire, notes=(note,)),),
        )
    notes = ()
    if found["word"] == "ASK" and found["sender"] == found["receiver"]:
        notes = (OWN_ERRAND.note("it asks itself", (0, found.start("sender"), found.end("receiver"))),)
    message = Message(
        performative=_ACTS[found["word"]],
        native_act=found["word"],
        sender=found["sender"],
        receivers=(found["receiver"],),
        task_id=found["task"],
        content=found["text"],
        notes=notes,
    )
    return Reading(dialect="relay", layers=layers, tree=lambda: _grow(wire, found), messages=(message,))


def _grow(wire: str, found: re.Match[str]) -> tuple[Field, ...]:
    """The five parts and the signs between them: together every character of the wire."""
    fields, at = [], 0
    for name, label in _LABELS.items():
        start, end = found.span(name)
        fields.append(leaf("sign", "sign", wire, at, start))
        if start < end:
            fields.append(leaf(name, label, wire, start, end, value=found[name]))
        at = end
    return (*fields, leaf("sign", "sign", wire, at, len(wire)))


def _tell(reading: Reading, context: Context, keys: Keys) -> Told:
    return Told(reading=reading, messages=tuple(_say(message, reading.wire) for message in reading.messages))


def _say(message: Message, wire: str) -> Message:
    found = _match(wire)
    sender = say_name(message.sender) if message.sender else "Someone"
    before, text, after = enclose(message.content)
    if found is None:
        lead = f"{sender} sends what cannot be read as relay: {before}"
        return message.replace(
            english=(Segment(text=lead), Segment(text=text, spans=((0, 0, len(wire)),)), Segment(text=f"{after}."))
        )
    sentence = _SENTENCES[found["word"]].format(receiver=say_name(found["receiver"]), task=found["task"])
    said = [Segment(text=f"{sender} {sentence}", spans=((0, found.start("word"), found.end("task")),))]
    if text:
        said += [
            Segment(text=f": {before}"),
            Segment(text=text, spans=((0, *found.span("text")),)),
            Segment(text=after),
        ]
    return message.replace(english=(*said, Segment(text=".")))


def _reply(message: Message) -> Sequence[Reply]:
    if message.native_act in (None, "ASK"):
        return ()
    return (Reply(whom="latest-to-me", basis="turn", why="it is about the errand it was asked to run"),)


def _encode(messages: Sequence[Message]) -> Encoded:
    words = {act: word for word, act in _ACTS.items()}
    if len(messages) != 1 or messages[0].performative not in words:
        raise EncodeError("relay", "one message of the five acts can be written")
    (message,) = messages
    receivers = ",".join(message.receivers)
    word = words[message.performative]
    wire = f"~{word} {message.sender}>{receivers} {message.task_id} {message.content}~"
    if _match(wire) is None:
        raise EncodeError("relay", "a sender, one receiver, a number and a text of one line are needed", message.part)
    lost = message.given().keys() - _HELD
    return Encoded(
        wire=wire, losses=tuple(Loss(name=name, part=message.part, reason="no place") for name in sorted(lost))
    )


_HELD = {"part", "performative", "native_act", "sender", "receivers", "task_id", "content", "english", "notes"}

DIALECT = Dialect(
    slug="relay",
    title="Relay",
    summary="Five words for short errands.",
    specification="examples/relay",
    sniff=_sniff,
    identify=lambda wire: Identity(),
    read=_read,
    tell=_tell,
    encode=_encode,
    replies=_reply,
    masks=never,
    packs=never,
    notes=(UNREAD, OWN_ERRAND),
    glossary=tuple(Term(kind="act", code=word, name=act, meaning=meaning) for word, act, meaning, _ in _WORDS),
)
