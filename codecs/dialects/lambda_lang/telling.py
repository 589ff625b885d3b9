"""Telling: each statement in English, in the context of its conversation."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .._context import Context, Keys
from .._english import escape, quote, say_name
from .._record import Message, Note, Reading, Segment, Told
from .contexts import Setting, Standing
from .doubts import note_block
from .fields import build_tree
from .frames import frame, is_said, say_beside, say_carried
from .json_layers import wrap_told
from .notes import DOMAIN_LETTER, EMPTY_BODY, UNCLOSED
from .reading import MAX_CHARACTERS, Parsed, read
from .remarks import note_depth, note_settings
from .sayings import gloss_part, make_segment, make_segments, say_part
from .statements import Part
from .vocabulary import NEWEST, Vocabulary, load_vocabulary, other_domains, title_domain
from .words import Scope

_STATES = "!~"
# What a statement carries is said behind it. Only its own id, and the domain by which its words are told already, are
# said beside it.
_BESIDE = frozenset({"id", "inline"})


def tell(reading: Reading, context: Context, keys: Keys) -> Told:
    """The record's messages with their English, and what they establish. Never raises for any reading."""
    parsed = reading.parsed
    if not isinstance(parsed, Parsed):
        parsed = read(reading.wire, reading.envelope).parsed
    if parsed.form is not None:
        return wrap_told(reading.wire, parsed.form, _tell_text(reading, parsed, context))
    return _tell_text(reading, parsed, context)


def _tell_text(reading: Reading, parsed: Parsed, context: Context) -> Told:
    """The record's messages told; every place counts in the text that was parsed."""
    if parsed.malformed is not None or not parsed.parts:
        unread = tuple(_tell_malformed(message, parsed) for message in reading.messages)
        return Told(reading=_with_tree(reading, parsed, [], load_vocabulary(NEWEST)), messages=unread)
    standing = Standing(context, reading.version)
    scopes: list[Scope] = []
    told = []
    # A header, an address or another form of the protocol before the first statement is evidence enough.
    has_form = any(item.kind != "speaker" for item in parsed.parts[0].items)
    conditions = _pair_conditions(parsed) if len(parsed.parts) > 1 else {}
    for part, settings, message in zip(parsed.parts, parsed.settings, reading.messages, strict=False):
        clashes = tuple(standing.note_clashes(settings)) if settings else ()
        standing.establish(message, settings)
        scope = standing.scope(message.attributes.get("domain"))
        scopes.append(scope)
        message = _tell_message(parsed.text, part, settings, message, scope, standing, has_form=has_form)
        if clashes:
            message = message.replace(notes=(*message.notes, *clashes))
        if conditions and (said := conditions.get(message.part)):
            message = message.replace(english=(*message.english, Segment(text=f" This is {said}.")))
        told.append(message)
    settled = _with_tree(reading, parsed, scopes, standing.vocabulary)
    if reading.version or standing.is_declared:
        settled = settled.replace(vocabulary=standing.vocabulary.release)
    return Told.trust({"reading": settled, "messages": tuple(told), "entries": tuple(standing.entries)})


_IF = re.compile(r"if(?=[\s\[(])")
_THEN = re.compile(r"(?<![a-z:])(?:th|tn)(?![a-z])")


def _pair_conditions(parsed: Parsed) -> dict[int, str]:
    """What a part that is a condition alone, and the order that it belongs to, say of each other, by part.

    A condition behind an order belongs to that one, any other to the order that follows it.
    """
    said: dict[int, str] = {}
    parts = parsed.parts
    for place, part in enumerate(parts):
        body = parsed.text[part.body[0] : part.body[1]] if part.symbol[:1] in _STATES and part.symbol else ""
        if not _IF.match(body) or _THEN.search(body):
            continue
        order = next((at for at in (place - 1, place + 1) if 0 <= at < len(parts) and parts[at].symbol == "."), None)
        if order is not None and order + 1 not in said:
            said[place + 1] = f"the condition of the order in part {order + 1}"
            said[order + 1] = f"ordered on the condition of part {place + 1}"
    return said


def _with_tree(reading: Reading, parsed: Parsed, scopes: list[Scope], vocabulary: Vocabulary) -> Reading:
    """The reading with the tree of the text that was parsed, its words as they are understood now."""
    settled = {name: value for name, value in reading.__dict__.items() if name != "fields"}
    settled["tree"] = lambda: build_tree(parsed.text, parsed.parts, vocabulary, scopes)
    return Reading.trust(settled)


def _tell_malformed(message: Message, parsed: Parsed) -> Message:
    note, wire = parsed.malformed, parsed.text
    who = say_name(message.sender) if message.sender else "Someone"
    # Why it cannot be read is a caution of its own.
    said = [Segment(text=f"{who} sends what cannot be read as Λ Lambda.")]
    said.extend(_tell_before(wire, note))
    if wire:
        whole = (0, 0, len(wire))
        also = (Segment(text=f"as it stands: {quote(wire)}", spans=(whole,), basis="unknown"),)
        gloss = (Segment(text=wire, spans=(whole,), basis="unknown"),)
        return message.replace(english=tuple(said), also=also, gloss=gloss)
    return message.replace(english=tuple(said))


def _tell_before(wire: str, note: Note | None) -> Iterator[Segment]:
    """What can be read of a text that is cut off: all before the quote or bracket that never closes."""
    end = note.span[1] if note is not None and note.span is not None and note.code == UNCLOSED.code else 0
    head = read(wire[:end]) if 0 < end <= MAX_CHARACTERS else None
    if head is None or not isinstance(head.parsed, Parsed) or head.parsed.malformed or head.parsed.form:
        return
    lead = " Before that it reads, cut off as it is: "
    for message in _tell_text(head, head.parsed, Context()).messages:
        if all(one.code != EMPTY_BODY.code for one in message.notes):
            yield Segment(text=lead)
            yield from message.english
            lead = " "


def _tell_message(
    text: str,
    part: Part,
    settings: tuple[Setting, ...],
    message: Message,
    scope: Scope,
    standing: Standing,
    *,
    has_form: bool,
) -> Message:
    saying = say_part(text, part, settings, message, scope, standing)
    english = saying.english
    for each in english:
        if not each.text.isascii():
            english = tuple([_keep_inside(each, text) for each in english])
            break
    before, first = frame(saying.act, part, message, english[0].text)
    if before is not None:
        if first != english[0].text:
            english = (english[0].replace(text=first), *english[1:])
        english = (make_segment(before), *english)
    said = saying.said
    if part.form != "context" and (settings or part.items):
        carried = [each for each in settings if each.kind not in _BESIDE and not is_said(each, said)]
        english = (*english, *make_segments(say_carried(part, carried, message, scope.vocabulary.names)))
        said |= {f"{setting.kind}@{setting.start}" for setting in carried}
    told = {**message.__dict__, "english": english, "gloss": gloss_part(text, part, saying.gloss)}
    if settings or part.items or part.checksum or message.error is not None:
        told["also"] = make_segments(say_beside(part, settings, message, said, scope.vocabulary.names))
    notes = (*message.notes, *saying.notes)
    if settings:
        notes = (*message.notes, *note_settings(settings, scope), *_note_letters(settings, standing), *saying.notes)
    if part.form == "context" and (message.native_act == "data" or not settings):
        if all(item.kind == "block" for item in part.items):
            notes = (note_block(part, is_data=message.native_act == "data"), *notes)
    elif saying.weakness is not None and not has_form:
        notes = (saying.weakness, *notes)
    for item in part.items:
        if item.kind == "block":
            notes = (*notes, *note_depth(text[item.start : item.end], item.start))
    if notes:
        told["notes"] = notes
    return Message.trust(told)


def _keep_inside(segment: Segment, text: str) -> Segment:
    """A segment in which no mark of the wire, or of a definition, opens or ends a quotation; our own marks do."""
    if segment.text.isascii():
        return segment
    is_ours = segment.source is None and all(text[start:end].isascii() for _, start, end in segment.spans)
    return segment if is_ours else segment.replace(text=escape(segment.text))


def _note_letters(settings: tuple[Setting, ...], standing: Standing) -> Iterator[Note]:
    """A letter that names another domain in another release, where no version is declared."""
    if standing.is_declared:
        return
    release = standing.vocabulary.release
    for setting in settings:
        if setting.kind not in ("ns", "domain", "inline"):
            continue
        for name in setting.value if isinstance(setting.value, list) else [setting.value]:
            others = other_domains(str(name), "", release)
            if others:
                known = standing.vocabulary.names.get(str(name))
                here = f"is the {title_domain(known)} domain" if known else "names no domain"
                text = f"no version is declared, so “{name}” {here} (v{release}); it was {' and '.join(others)}"
                yield DOMAIN_LETTER.note(text, (0, setting.start, setting.end))
