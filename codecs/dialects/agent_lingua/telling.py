"""Telling a record in the context of its conversation: English, gloss, opened payloads, and what it establishes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .._context import Context, Keys
from .._english import Sentence, enclose, join_words
from .._record import Field, Layer, Message, Note, Reading, Segment, Told
from . import notes as kinds
from .circumstances import Sealed, code_span, tell_rest
from .contents import cite, name, show, tell_shortened
from .glosses import gloss_statement
from .packing import Opened, open_sealed
from .payloads import Layers, Payload, read_body
from .reading import Record, read_inner, read_record
from .sentences import tell_error, tell_response, tell_statement
from .sessions import Ledger, examine, is_addressed
from .statements import Statement
from .tables import ACTIONS, IDIOMS, PREFIXES, SOURCE
from .trees import inner_fields

_PLAIN_SIGNATURE = re.compile(rf"lingua/[0-9.]+@{SOURCE}\Z")
_TELLERS = {"statement": tell_statement, "response": tell_response, "error": tell_error}


def tell_record(reading: Reading, context: Context, keys: Keys) -> Told:
    """Tell every message of a record. Never raises for any reading of this dialect."""
    record: Record | None = reading.parsed
    if record is None:
        record = read_record(reading.wire).parsed
    layers = Layers(len(reading.layers))
    fields: list[Field] = []
    messages: list[Message] = []
    ledger = Ledger(context, Message())
    signature = _say_signature(reading, record)
    if not record.statements:
        return Told(reading=reading, messages=tuple(_tell_malformed(each, record) for each in reading.messages))
    last = max((message.part for message in reading.messages if "signature" in message.attributes), default=0)
    for message, statement in zip(reading.messages, record.statements, strict=False):
        closing = signature if message.part == last else None
        messages.append(_tell_message(message, statement, reading, keys, layers, fields, ledger, closing, record))
    return Told(
        reading=reading,
        messages=tuple(messages),
        layers=tuple(layers.found),
        fields=tuple(fields),
        entries=tuple(ledger.entries),
    )


def _say_signature(reading: Reading, record: Record) -> Segment | None:
    if not record.signatures or reading.footer is None:
        return None
    first = record.signatures[0]
    line = f"lingua/{reading.footer['version']}@{reading.footer['source']}"
    words = f"closed by the signature line {line if _PLAIN_SIGNATURE.match(line) else cite(line)}"
    return Segment(text=words, spans=((0, first.start, first.end),))


def _tell_malformed(message: Message, record: Record) -> Message:
    """A record that says nothing readable is shown as it is; of a signature alone, what is missing is said."""
    wire = message.content if isinstance(message.content, str) else ""
    span = (0, 0, len(wire))
    said = (Segment(text=cite(wire), spans=(span,), basis="unknown"),) if wire else ()
    sender = name(message.sender) if message.sender else "Someone"
    opening = Segment(text=f"{sender} sends what cannot be read as agent-lingua: ")
    english: tuple[Segment, ...] = (opening, *said, Segment(text=".")) if wire else ()
    if any(note.code == kinds.SIGNATURE_ALONE.code for note in message.notes):
        lines = "only a signature line" if len(record.signatures) == 1 else "only signature lines"
        sentence = Sentence().say(f"{sender} sends {lines}, ").say(cite(wire.strip()), span)
        english = sentence.say("; no message, so no act and no state is said.", basis="unknown").segments()
    return message.replace(english=english, gloss=said)


def _say_prose(message: Message, statement: Statement, record: Record) -> tuple[Segment, ...]:
    """Human text as it is; beside messages, with where it stands, so that it is not taken for one of them."""
    text = str(message.content)
    if statement.text is None or not text:
        return ()
    before, shown, after = enclose(show(text))
    said = Segment(text=shown, spans=((0, *statement.text),))
    others = [other for other in record.statements if other.kind != "prose"]
    who = name(message.sender) if message.sender else "Someone"
    if statement.kind != "prose" or not others:
        return (Segment(text=f"{who} writes plain text: {before}"), said, Segment(text=f"{after}."))
    where = "below" if statement.start >= others[-1].end else "between"
    where = "above" if statement.end <= others[0].start else where
    whole = "the message" if len(others) == 1 else "the messages"
    return (Segment(text=f"{who} writes plain text, {where} {whole}: {before}"), said, Segment(text=f"{after}."))


def _note_candidate(statement: Statement, record: Record, context: Context) -> list[Note]:
    """An answer with neither 👽 nor signature is one for certain only in a conversation that speaks the dialect."""
    if not statement.is_answer or record.signatures or any(other.marker for other in record.statements):
        return []
    if context.find("dialect", "agent_lingua") is not None:
        return []
    text = "no 👽 opens it: outside an agent-lingua conversation it may be no agent-lingua message"
    return [kinds.CANDIDATE.note(text, (0, statement.start, statement.end))]


def _note_inferred(statement: Statement, message: Message) -> Iterator[Note]:
    """What is read by the documents' idiom or by what the payload holds, and not by a code or an id."""
    if message.attributes.get("idiom"):
        action = ACTIONS[statement.action]
        text = f"action {action.code} is {action.name} ({action.meaning}) in the table; "
        yield kinds.IDIOM.note(f"{text}on Moltbook it is read as {IDIOMS[action.code]}", code_span(statement, 1))
    payload = statement.payload
    if payload is None:
        return
    is_whole = payload.sealed and payload.nonce is not None and len(payload.nonce) == 12
    if is_whole and not any(payload.nonce or b"") and not any(payload.sealed or b""):
        yield kinds.ZERO_BYTES.note("nonce, ciphertext and tag are all zero bytes", payload.span)
    if statement.kind != "response" or "identifier" in statement.standing or not isinstance(message.content, dict):
        return
    given = [key for key in ("accepted", "capabilities", "session", "learning") if key in message.content]
    if given and ("accepted" in given or "capabilities" in given):
        absent = [f"“{key}”" for key in ("accepted", "session") if key not in given]
        shown = [f"“{key}”" for key in given]
        gap = f"; no {join_words(absent, last='or')} is given" if absent else ""
        text = f"no correlation id: that it answers a handshake is inferred from {join_words(shown)}{gap}"
        yield kinds.ANSWER_INFERRED.note(text, payload.span)


def _tell_message(
    message: Message,
    statement: Statement,
    reading: Reading,
    keys: Keys,
    layers: Layers,
    fields: list[Field],
    ledger: Ledger,
    signature: Segment | None,
    record: Record,
) -> Message:
    gloss = gloss_statement(statement, reading.wire)
    if statement.text is not None:
        said = _say_prose(message, statement, record)
        return message.replace(english=said, also=(signature,) if signature else (), gloss=gloss)
    ledger.message, ledger.notes, ledger.as_offered = message, [], frozenset()
    examine(statement, message, ledger)
    notes: list[Note] = ledger.notes
    notes.extend(_note_candidate(statement, record, ledger.context))
    notes.extend(_note_inferred(statement, message))
    sealed = Sealed()
    payload = statement.payload
    if payload is not None and payload.kind == "encrypted":
        message, sealed = _open(message, payload, keys, layers, fields, notes)
    addressed = _address(message, ledger)
    if statement.kind == "response":
        english = tell_response(statement, addressed, sealed, ledger.as_offered, ledger.offered_in)
    else:
        english = _TELLERS[statement.kind](statement, addressed, sealed)
    rest = [*tell_rest(statement, message), *_tell_nested(message, payload)]
    if payload is not None:
        rest.extend(tell_shortened(sealed.inner or payload))
    if signature is not None:
        rest.append(signature)
    return message.replace(english=english, also=tuple(rest), gloss=gloss, notes=(*message.notes, *notes))


def _address(message: Message, ledger: Ledger) -> Message:
    """The message as its sentence takes it: where a target is an agent in this conversation, it is who is asked."""
    target = message.target
    if target is None or not is_addressed(message, ledger):
        return message
    return message.replace(target=target.replace(kind="agent"))


def _tell_nested(message: Message, payload: Payload | None) -> list[Segment]:
    """The messages inside a payload, each told beside the sentence that cites their text."""
    inner = read_inner(message.content) if message.nested and isinstance(message.content, str) else None
    if inner is None or payload is None:
        return []
    told = []
    for each, statement in zip(inner.messages, inner.parsed.statements, strict=True):
        teller = _TELLERS.get(statement.kind)
        said = "".join(part.text for part in teller(statement, each, Sealed())) if teller else cite(str(each.content))
        told.append(Segment(text=f"inside the payload: {said}", spans=(payload.span,)))
    return told


def _open(
    message: Message, payload: Payload, keys: Keys, layers: Layers, fields: list[Field], notes: list[Note]
) -> tuple[Message, Sealed]:
    """Open a sealed payload with a key from the keyring; without one it stays sealed."""
    session = message.security.session
    if payload.nonce is None or payload.sealed is None or len(payload.nonce) != 12 or len(payload.sealed) < 16:
        return message, Sealed()
    result = open_sealed(keys.find(session), session, payload.nonce, payload.sealed)
    if result.has_weak:
        text = "a key pair whose public key has low order was refused"
        notes.append(kinds.KEY_WEAK.note(text, payload.span))
    if result.plaintext is None:
        if result.tried:
            notes.append(kinds.NOT_AUTHENTIC.note(_say_failure(result), payload.span))
        return message, Sealed(failed=result.tried)
    inner = _read_plaintext(result.plaintext, payload, layers)
    notes.extend(inner.notes)
    fields.extend(inner_fields(inner, _every(layers)))
    attributes: Mapping[str, Any] = message.attributes
    if inner.hidden is not None:
        attributes = {**attributes, "bytes": inner.hidden}
    opened = message.replace(
        content=inner.content, attributes=attributes, security=message.security.replace(opened=True)
    )
    return opened, Sealed(inner=inner)


def _every(layers: Layers) -> tuple[Layer, ...]:
    return tuple(layers.found)


def _say_failure(result: Opened) -> str:
    whose = "held for this session" if result.is_bound else "held for any session"
    if result.tried == 1:
        return f"the authentication tag does not fit the key {whose}: no plaintext is shown"
    return f"the authentication tag fits none of the {result.tried} keys {whose}: no plaintext is shown"


def _read_plaintext(data: bytes, sealed: Payload, layers: Layers) -> Payload:
    """The opened bytes as a payload: by the prefix they begin with, else UTF-8 text, else bytes."""
    of = (sealed.of, sealed.body, sealed.end)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        shown = data.hex()
        layer = layers.add("plaintext", shown, of)
        payload = Payload("text", 0, len(shown), 0, shown, layer, hidden=shown)
        payload.note(kinds.NOT_TEXT, f"the {len(data)} bytes opened are not UTF-8 text: shown as hex")
        return payload
    layer = layers.add("plaintext", text, of)
    letter = text[:1] if text[1:2] == ":" and text[:1] in ("j", "z", "r") else ""
    body = text[2:] if letter else text
    kind = PREFIXES[letter][0]
    payload = Payload(kind, 0, len(text), 2 if letter else 0, text, layer)
    if letter in ("j", "z"):
        read_body(payload, body, layers)
    else:
        payload.kind = "text"
        payload.content, payload.text, payload.layer = body, body, layer
    return payload
