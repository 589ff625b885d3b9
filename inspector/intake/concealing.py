"""Concealing: a record's reading without the tokens in it; the record itself keeps every byte.

Reading is the one door through which a text comes into the product, so it is here that tokens are hidden: in every
name of every message, in notes, in the envelope, and as masked leaves of the field tree, by which pages, exports and
the API mask the wire itself. What telling adds is concealed after it. Everything later (columns, English, search,
titles, agents, tasks, exports) is made of what has been concealed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from dialects import Entry, Note, NoteKind, Reading, Span, Told, get_dialect
from inspector.tokens import MARKS, SHAPES, find_tokens, has_hint, hide_tokens

from .concealment import (
    NOTHING,
    Secrets,
    find_overlapping,
    find_secrets,
    holds,
    join_spans,
    locate_secrets,
    may_be_escaped,
)
from .masked_fields import conceal_fields, walk_fields
from .models import Record

IN_CLEAR: Final = NoteKind(
    code="inspector.token-in-clear",
    severity="warning",
    group="security",
    about="What looks like a secret stands in the message in clear. It is masked here, and the record keeps it.",
)
_ALIAS: Final = re.compile(re.escape(MARKS) + "[0-9a-f]{8}")
NAMES: Final = tuple(shape.name for shape in SHAPES)


def conceal_reading(reading: Reading, *, around: str = "") -> Reading:
    """The reading without tokens; the same one where it holds none.

    Args:
        reading: as a dialect read it, its envelope applied.
        around: what the log and its delivery say around the text, as JSON.
    """
    secrets = find_secrets(reading, around)
    return reading if secrets is NOTHING else _conceal(reading, secrets)


def may_hold_secret(wire: str, around: str, *, dialect: str) -> bool:
    """Whether anything of a record may be masked; where it says no, nothing is. Cheap, for it reads nothing.

    It asks for less than `find_secrets` does of the one layer that is there, and for what the dialect masks by itself.

    Args:
        wire: the text.
        around: what the log and its delivery say around the text, as JSON.
        dialect: the slug of the one in which the text would be read.
    """
    spoken = get_dialect(dialect)
    return has_hint(wire) or may_be_escaped(wire) or has_hint(around) or spoken.packs(wire) or spoken.masks(wire)


def may_be_masked(reading: Reading) -> bool:
    """Whether the field tree of a concealed reading may have masked leaves; where it says no, it has none.

    The tree, which costs much more than the reading, is not asked for.
    """
    return _secrets_of(reading) is not NOTHING or get_dialect(reading.dialect).masks(reading.wire)


class ConcealedReading(Reading):
    """A reading whose tokens are hidden; it knows them, so that what is told of it can be concealed too."""

    _carried = frozenset({"_secrets"})


def _secrets_of(reading: Reading) -> Secrets:
    found: Secrets = vars(reading).get("_secrets", NOTHING)
    return found


def _conceal(reading: Reading, secrets: Secrets) -> Reading:
    fields = reading.fields
    plain: Reading = reading.plain() if hasattr(reading, "plain") else reading
    given = {name: value for name, value in vars(plain).items() if name in Reading._names}
    for name in ("messages", "notes", "envelope", "footer", "version", "vocabulary", "candidates"):
        given[name] = secrets.hide_all(getattr(plain, name))
    if not any(note.code == IN_CLEAR.code for note in given["notes"]):
        given["notes"] = (*given["notes"], *_note_clear(reading, secrets))
    given["tree"] = lambda: conceal_fields(fields, secrets)
    return ConcealedReading.trust({**given, "_secrets": secrets})


def _note_clear(reading: Reading, secrets: Secrets) -> Iterator[Note]:
    """A note for each kind of token in clear. What a dialect has a place for, and masks itself, is not in clear."""
    known: dict[int, list[Span]] = {}
    for each in walk_fields(reading.fields):
        if each.is_masked and not each.children:
            known.setdefault(each.span[0], []).append(each.span)
    joined = {layer: join_spans(spans) for layer, spans in known.items()}
    last = {layer.id: layer.of for layer in reading.layers if layer.kind == "put-together"}
    for name in NAMES:
        places = [span for span, shape in secrets.stands if shape == name]
        seen = [
            span
            for span in places
            if not any(holds(each, span) for each in find_overlapping(joined.get(span[0], ()), span))
        ]
        if seen or (not places and name in secrets.texts.values()):
            at = min(seen) if seen else None
            of = last.get(at[0]) if at else None
            yield IN_CLEAR.note(f"looks like an exposed {name}{', in pieces' if of else ''}", of or at)


def conceal_told(told: Told, reading: Reading) -> Told:
    """What was told of a concealed reading, the tokens hidden in it and in what was opened on the way.

    Telling may have settled on another reading of the same text, or on another tree of it: that is concealed too.
    """
    secrets = _secrets_of(reading)
    texts: dict[str, str] = {}
    for layer in told.layers:
        if has_hint(layer.text):
            texts |= {layer.text[each.start : each.end]: each.name for each in find_tokens(layer.text)}
    if secrets is NOTHING and not texts:
        return told.replace(notes=(*told.notes, *noted)) if (noted := tuple(_note_pieces(told, secrets))) else told
    whole = locate_secrets(secrets.texts | texts, (*reading.layers, *told.layers))
    return told.replace(
        reading=told.reading if told.reading is reading else _conceal(told.reading, whole),
        messages=whole.hide_all(told.messages),
        fields=conceal_fields(told.fields, whole),
        notes=whole.hide_all((*told.notes, *_note_pieces(told, secrets))),
        entries=whole.hide_all(told.entries),
    )


def _note_pieces(told: Told, secrets: Secrets) -> Iterator[Note]:
    """A note for each kind of token that came in pieces, none of which shows it: at the last of them. What was opened
    with a key is in clear for nobody else."""
    found: dict[str, Span | None] = {}
    for layer in told.layers:
        if layer.kind == "put-together":
            found |= {each.name: layer.of for each in find_tokens(layer.text)} if has_hint(layer.text) else {}
            # What was put together of earlier records has its alias already.
            found |= {"secret": layer.of} if _ALIAS.search(layer.text) else {}
    for name, span in found.items():
        if name not in secrets.texts.values():
            yield IN_CLEAR.note(f"looks like an exposed {name}, in pieces", span)


def conceal_around(reading: Reading, around: str) -> str:
    """What stands around the text of a concealed reading, as JSON, without its tokens."""
    secrets = _secrets_of(reading)
    if not around or secrets is NOTHING:
        return around
    said = json.loads(around)
    hidden = secrets.hide_all(said)
    return around if hidden == said else json.dumps(hidden, sort_keys=True, separators=(",", ":"))


def hide_entry(reading: Reading, entry: Entry) -> Entry:
    """What a record establishes, without its tokens and without those that it has put together with others."""
    secrets = _secrets_of(reading)
    if isinstance(entry.value, str) and has_hint(entry.value):
        entry = entry.replace(value=hide_tokens(entry.value))
    return (
        entry
        if secrets is NOTHING
        else entry.replace(name=secrets.hide(entry.name), value=secrets.hide_all(entry.value))
    )


def has_tokens(record: Record) -> bool:
    """Whether the bytes of a record hold a token anywhere, also where no message is made of them."""
    text = bytes(record.source).decode("utf-8", "replace")
    return bool(find_tokens(text)) or (has_hint(record.envelope) and bool(find_tokens(record.envelope)))
