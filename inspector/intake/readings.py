"""Readings of records: with what their delivery says of them, and without the tokens in them; and where the codecs say
that a secret stands. The record itself keeps every byte.

What a person says of a whole delivery (`Facts`) is which dialect it is in, and who speaks where nothing in the log says
so. These facts stand beside the log's own envelope, never in it: which record is new is decided without them, so that
the same log is the same records whatever was said of it. Wire and envelope win over them, save for the dialect, which
is an override. Of a record that several deliveries hold, the facts are those of the sighting with the smallest order
key among the deliveries that are not withdrawn.

A text without its masked characters is kept (`MaskedWire`): a search by whoever may not see secrets looks there.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dialects import (
    Candidate,
    Context,
    Entry,
    Envelope,
    Field,
    Keys,
    Note,
    NoteKind,
    Reading,
    Span,
    Told,
    choose_dialect,
    get_dialect,
    read,
    tell,
)
from inspector.tokens import MARKS, SHAPES, find_tokens, has_hint, hide_tokens

from .concealment import (
    NOTHING,
    Secrets,
    conceal_fields,
    find_overlapping,
    find_secrets,
    holds,
    join_spans,
    locate_secrets,
    may_be_escaped,
    walk_fields,
)
from .identity import read_envelope
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
            yield IN_CLEAR.note(
                f"looks like an exposed {name.removeprefix('a ')}{', in pieces' if of else ''}", of or at
            )


def conceal_told(told: Told, reading: Reading) -> Told:
    """What was told of a concealed reading, the tokens hidden in it and in what was opened on the way.

    Telling may have decided on another reading of the same text, or on another tree of it: that is concealed too.
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
            yield IN_CLEAR.note(f"looks like an exposed {name.removeprefix('a ')}, in pieces", span)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is said of one record: a dialect that is forced, a sender, receivers. None and () say nothing."""

    dialect: str | None = None
    sender: str | None = None
    receivers: tuple[str, ...] = ()

    def write(self) -> str:
        """The facts as canonical JSON text (ASCII), or the empty text where nothing is said."""
        said = {"dialect": self.dialect, "from": self.sender, "to": list(self.receivers)}
        given = {name: value for name, value in said.items() if value}
        return json.dumps(given, sort_keys=True, separators=(",", ":")) if given else ""

    @classmethod
    def load(cls, text: str) -> Facts:
        """The facts that `write` wrote."""
        said = json.loads(text) if text else {}
        return cls(dialect=said.get("dialect"), sender=said.get("from"), receivers=tuple(said.get("to", ())))


def facts_at(options: Mapping[str, Any], index: int) -> Facts:
    """What a delivery says of its record at that index.

    Args:
        options: the delivery's options; `dialect` is a slug, `speakers` has one name, or two that take turns, record
            by record, the first of them with the first record.
        index: the record's place in the delivery, from zero.
    """
    speakers = options.get("speakers") or []
    dialect = options.get("dialect")
    if len(speakers) == 2:
        return Facts(dialect=dialect, sender=speakers[index % 2], receivers=(speakers[1 - index % 2],))
    return Facts(dialect=dialect, sender=speakers[0] if speakers else None)


def read_with_facts(wire: str, envelope: str, facts: str, *, dialect: str | None = None) -> Reading:
    """Read a record's text with its own envelope and with what its delivery says. Never raises for any text.

    Tokens are hidden in what comes out: see `concealing`.

    Args:
        wire: the text.
        envelope: the log's own envelope, as `write_envelope` writes it.
        facts: as `Facts.write` writes them.
        dialect: a slug that forces the dialect over everything else.
    """
    own, said = read_envelope(envelope), Facts.load(facts)
    dialect = dialect or said.dialect
    reading = read(wire, own, dialect=dialect)
    if said.sender and not any(message.sender for message in reading.messages):
        # Who receives is only filled in where the record names nobody at all: a dialogue of others is not theirs.
        is_open = not any(message.receivers or message.broadcast for message in reading.messages)
        given = (own or Envelope()).replace(sender=said.sender)
        reading = read(wire, given.replace(receivers=said.receivers) if is_open else given, dialect=dialect)
    if said.dialect:
        # A guess gives way to what the conversation speaks; what a person said does not.
        chosen = Candidate(dialect=reading.dialect, score=1.0, why="chosen by the sender of the delivery")
        others = (candidate for candidate in reading.candidates if candidate.dialect != reading.dialect)
        reading = reading.replace(candidates=(chosen, *others))
    return conceal_reading(reading, around=envelope + facts)


MARK: Final = "\N{BULLET}"
# A longer record is not looked through: nobody knows then what it holds.
MAX_BYTES_LOOKED_THROUGH: Final = 128 * 1024


def _find_masked_leaves(fields: Iterable[Field]) -> Iterator[Span]:
    """The spans of the masked leaves of a tree."""
    stack = list(fields)
    while stack:
        field = stack.pop()
        if field.is_masked and not any(child.is_masked for child in field.children):
            yield field.span
        stack.extend(field.children)


def find_outer_secrets(reading: Reading) -> list[Span]:
    """What is to be masked in the text itself: its secrets, and every stretch that unpacks into one with a secret."""
    return _spread_secrets(reading)[0]


def _spread_secrets(reading: Reading) -> dict[int, list[Span]]:
    """By layer what is to be masked in it. A layer that was unpacked from a piece with a secret in it would show that
    piece again in the outer layers: there the whole stretch it came from is masked. Of a layer that was put together it
    is each piece that has some of the secret."""
    secrets: dict[int, list[Span]] = defaultdict(list)
    for span in _find_masked_leaves(reading.fields):
        secrets[span[0]].append(span)
    for layer in reversed(reading.layers):
        for outer in layer.find_outer(secrets.get(layer.id, ())):
            secrets[outer[0]].append(outer)
    return secrets


def mask(text: str, spans: Iterable[Span]) -> str:
    """The text with the characters of these spans as marks, one for each."""
    pieces, at = [], 0
    for _, start, end in sorted(spans, key=lambda span: (span[1], span[2])):
        start = max(at, start)
        if end > start:
            pieces += [text[at:start], MARK * (end - start)]
            at = end
    return "".join((*pieces, text[at:]))


def mask_layers(reading: Reading) -> list[str]:
    """The text of each layer of a reading with its secrets masked, the wire first."""
    secrets = _spread_secrets(reading)
    return [mask(layer.text, secrets.get(layer.id, ())) for layer in reading.layers]


def unfold_reading(reading: Reading, keys: Keys | None = None) -> Reading:
    """A concealed reading with the layers and fields that telling adds to it; with keys, also what they open."""
    told = conceal_told(tell(choose_dialect(reading, Context()), Context(), keys), reading)
    return reading.replace(
        layers=(*reading.layers, *told.layers), tree=lambda: (*reading.fields, *told.fields), messages=told.messages
    )


def find_masked(record: Record, reading: Reading) -> bytes | None:
    """The masked text of a record, which is read and concealed, as UTF-8; None where nothing of it is masked, empty
    where it is too long to be looked through, so that nothing in it is found by who may not see secrets."""
    if len(record.source) > MAX_BYTES_LOOKED_THROUGH:
        return b""
    # Reading has looked for tokens already; telling looks only into what it unpacks.
    if not (may_be_masked(reading) or get_dialect(reading.dialect).packs(reading.wire)):
        return None
    # The dialect was decided when it was read.
    spans = find_outer_secrets(unfold_reading(reading.replace(candidates=())))
    return mask(reading.wire, spans).encode("utf-8", "surrogatepass") if spans else None
