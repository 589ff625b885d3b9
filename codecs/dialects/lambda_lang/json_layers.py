"""A record inside JSON: its Lambda text becomes a layer of its own, and what the JSON adds stands beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .._english import quote, say_name
from .._record import Entry, Field, Layer, Message, Note, Reading, Segment, Span, Told, leaf, tile
from .json_forms import JsonForm, Member, NotJsonError
from .lifting import MAX_ID_LENGTH
from .notes import BROKEN_JSON, ENVELOPE_VERSION, JSON_FORM, LONG_ID, ODD_JSON, OWN_ENGLISH
from .vocabulary import NEWEST, load_vocabulary
from .wording import delimit

_INNER = 1
# The members of an object are noted up to this one; the field tree shows them all.
_MAX_NOTED = 100
_SYNTAX = frozenset(' \t\r\n\ufeff{}[]:,"')
_TITLES = {"pilot": "the pilot envelope", "tokens": "the JSON form of v0.9"}
_TEXT_KEYS = {"pilot": "lambda", "tokens": "tokens"}
# key of the JSON: (name of the record, what it says)
LIFTED = {
    "from": ("sender", "names the sender"),
    "sender": ("sender", "names the sender"),
    "to": ("receivers", "names the receiver"),
    "id": ("message_id", "has the message id"),
    "conversation": ("conversation_id", "belongs to the conversation"),
}
# key of the JSON: (label for people, what it means)
JSON_KEYS = {
    "type": ("type", "the form: “lambda” for the pilot envelope, else the type of the statement"),
    "version": ("version", "of the software that wrote the envelope; of the language in the form of v0.9"),
    "lambda": ("Lambda text", "the message itself, in the pilot envelope"),
    "tokens": ("tokens", "the message itself, token by token, in the form of v0.9"),
    "english": ("English of the sender's own", "a translation that the sender gives; shown, not checked"),
}


def wrap_reading(wire: str, form: JsonForm, inner: Reading) -> Reading:
    """The reading of the Lambda text as a reading of the JSON that it stands in."""
    messages = tuple(move_message(message) for message in inner.messages)
    if messages:
        messages = (_add_members(messages[0], form), *(_lift(message, form) for message in messages[1:]))
    declared = inner.version or (form.version if form.kind == "tokens" else None)
    vocabulary = load_vocabulary(declared).release if declared else inner.vocabulary
    return inner.replace(
        layers=(
            Layer(id=0, kind="wire", text=wire),
            Layer(id=_INNER, kind="json-string", text=form.text, of=_at(form)),
        ),
        tree=lambda: build_json_tree(wire, form, inner.fields),
        messages=messages,
        version=declared,
        vocabulary=vocabulary,
        notes=(*(_move_note(note) for note in inner.notes), *_note_form(wire, form, inner)),
        parsed=inner.parsed._replace(form=form),
    )


def read_broken(wire: str, fault: NotJsonError, *, parsed: Any) -> Reading:
    """An envelope that is no JSON: malformed, from the place where reading failed."""
    text = (
        f"the envelope stops being JSON at character {fault.offset + 1}: {fault.reason[:1].lower()}{fault.reason[1:]}"
    )
    note = BROKEN_JSON.note(text, (0, fault.offset, min(fault.offset + 1, len(wire))))
    return Reading(
        dialect="lambda_lang",
        layers=(Layer(id=0, kind="wire", text=wire),),
        tree=lambda: (leaf("text", "text that cannot be read", wire, 0, len(wire), value=wire),),
        messages=(Message(performative=None, content=wire, notes=(note,)),),
        parsed=parsed._replace(malformed=note),
    )


def wrap_told(wire: str, form: JsonForm, told: Told) -> Told:
    """What the Lambda text told, with every place of it on its layer, and what the JSON adds."""
    inner = told.reading
    messages = [move_message(message) for message in told.messages]
    if messages:
        first = messages[0]
        messages[0] = first.replace(also=(*first.also, *_say_members(wire, form)))
    entries = told.entries
    if form.kind == "tokens" and form.version and not any(entry.kind == "vocabulary" for entry in entries):
        entries = (Entry(kind="vocabulary", name="active", value=form.version), *entries)
    reading = inner.replace(tree=lambda: build_json_tree(wire, form, inner.fields))
    return told.replace(reading=reading, messages=tuple(messages), entries=entries)


def _at(form: JsonForm) -> Span:
    return (0, *form.at)


# What the JSON gives to the message.


def _add_members(message: Message, form: JsonForm) -> Message:
    key = _TEXT_KEYS[form.kind]
    held: dict[str, Any] = {}
    repeated: dict[str, list[Any]] = {}
    for member in form.members:
        if member.key in held:
            repeated.setdefault(member.key, []).append(held[member.key])
        held[member.key] = member.value
    if form.kind == "pilot":
        held.pop(key, None)
    attributes: dict[str, Any] = {**message.attributes, "json": held}
    if repeated:
        attributes["json_repeated"] = repeated
    return _lift(message.replace(attributes=attributes), form)


def _lift(message: Message, form: JsonForm) -> Message:
    """The names that the JSON gives, where the Lambda text is silent."""
    given = {}
    for member in form.members:
        name = LIFTED.get(member.key, ("", ""))[0]
        value = _read_names(member.value) if name == "receivers" else member.value
        if name == "message_id" and message.part > 1:
            continue
        is_named = isinstance(value, str) or (name == "receivers" and isinstance(value, tuple))
        if (
            name
            and is_named
            and value
            and not getattr(message, name)
            and not (name == "receivers" and message.broadcast)
        ):
            given[name] = value
    return message.replace(**given) if given else message


def _read_names(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    return tuple(values) if values and all(isinstance(name, str) and name for name in values) else ()


def _note_form(wire: str, form: JsonForm, inner: Reading) -> Iterator[Note]:
    text = f"the message stands in {_TITLES[form.kind]}: the English comes from its Lambda text"
    yield JSON_FORM.note(text, _at(form))
    seen: set[str] = set()
    for member in form.members[:_MAX_NOTED]:
        span = (0, member.key_at[0], member.value_at[1])
        if member.key in seen:
            yield ODD_JSON.note(f"the key {quote(member.key)} is given again: the last value stands", span)
        elif member.key == "id" and isinstance(member.value, str) and len(member.value) > MAX_ID_LENGTH:
            yield LONG_ID.note(f"the message id has {len(member.value):,} characters: it is kept whole", span)
        elif member.key == "english" and isinstance(member.value, str):
            yield OWN_ENGLISH.note("the English in the JSON is the sender's own: it is shown and not taken over", span)
        elif member.key in ("english", "version") and not _is_plain(member.value):
            yield ODD_JSON.note(f"the value of {quote(member.key)} is of the wrong kind", span)
        elif member.key == "type" and not form.is_known_type:
            yield ODD_JSON.note(f"the dialect has no type {_raw(wire, member)}", span)
        elif member.key == "version" and form.kind == "pilot" and inner.version is None and form.version:
            release = load_vocabulary(form.version).release
            if release != NEWEST:
                text = (
                    f"the envelope says version {form.version}; no header declares it for the words, so v{NEWEST} holds"
                )
                yield ENVELOPE_VERSION.note(text, span)
        elif member.key in LIFTED and (other := _find_other(member, inner)):
            text = f"the JSON {LIFTED[member.key][1]} {_raw(wire, member)}, its Lambda text {other}: the text's stands"
            yield ODD_JSON.note(text, span)
        seen.add(member.key)


def _find_other(member: Member, inner: Reading) -> str | None:
    """What the Lambda text names instead, where it and the JSON name different values."""
    name = LIFTED[member.key][0]
    said = getattr(inner.messages[0], name) if inner.messages else None
    value = _read_names(member.value) if name == "receivers" else member.value
    if not said or said == value:
        return None
    return ", ".join(said) if isinstance(said, tuple) else str(said)


def _is_plain(value: Any) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


# In words.


def _say_members(wire: str, form: JsonForm) -> Iterator[Segment]:
    for member in form.members:
        said = _say_member(wire, form, member)
        if said:
            yield Segment(text=said, spans=((0, member.key_at[0], member.value_at[1]),))


def _say_member(wire: str, form: JsonForm, member: Member) -> str | None:
    key, raw = member.key, _raw(wire, member)
    if key == _TEXT_KEYS[form.kind]:
        return None if member is form.find(key) else f"it gives {say_name(key)} {quote(raw)} before that"
    if key == "type" and form.is_known_type:
        return f"it stands in {_TITLES[form.kind]}"
    if key == "type":
        return f"it is of the type {delimit(raw)}, which the dialect does not have"
    if key == "version":
        return (
            f"it states the version {delimit(raw)} of its envelope"
            if form.kind == "pilot"
            else f"it speaks Lambda v{delimit(raw)}"
        )
    if key == "english":
        return f"it brings its own English {quote(raw)} (the sender's, not checked)"
    if key in LIFTED:
        return f"it {LIFTED[key][1]} {delimit(raw)}"
    return f"it gives {say_name(key)} = {delimit(raw)}"


def _raw(wire: str, member: Member) -> str:
    return wire[member.value_at[0] : member.value_at[1]]


# The field tree.


def build_json_tree(wire: str, form: JsonForm, inner: Sequence[Field]) -> tuple[Field, ...]:
    """The members of the JSON as fields; the Lambda text's own fields lie beneath it, on their layer."""
    moved = tuple(_move_field(field) for field in inner)
    text = form.find(_TEXT_KEYS[form.kind])
    fields = []
    for member in form.members:
        fields.append(leaf("key", "key", wire, *member.key_at, value=member.key))
        start, end = member.value_at
        if start == end and member is not text:
            continue
        label, meaning = JSON_KEYS.get(member.key, ("value", None))
        name = member.key if member.key in JSON_KEYS else "value"
        field = leaf(name, label, wire, start, end, value=member.value, meaning=meaning)
        if member is text:
            tokens = tuple(leaf("token", "token", wire, *place, value=token) for token, place in form.tokens)
            field = field.replace(children=(*tokens, *moved))
        fields.append(field)
    return tile(fields, wire, syntax=_SYNTAX)


# From the wire's layer to the inner one.


def _move_span(span: Span) -> Span:
    return (_INNER, span[1], span[2]) if span[0] == 0 else span


def _move_segments(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    return tuple(
        segment.replace(spans=tuple(_move_span(span) for span in segment.spans)) if segment.spans else segment
        for segment in segments
    )


def _move_note(note: Note) -> Note:
    return note.replace(span=_move_span(note.span)) if note.span else note


def move_message(message: Message) -> Message:
    """The message with every place that counted in the Lambda text on the layer of that text."""
    moved: dict[str, Any] = {
        name: _move_segments(segments) for name in ("english", "also", "gloss") if (segments := getattr(message, name))
    }
    if message.notes:
        moved["notes"] = tuple(_move_note(note) for note in message.notes)
    return message.replace(**moved) if moved else message


def _move_field(field: Field) -> Field:
    return field.replace(span=_move_span(field.span), children=tuple(_move_field(child) for child in field.children))
