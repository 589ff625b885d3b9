"""Carriers: dialects that are objects of JSON and hold texts which are read in turn, down to the innermost characters.

A carrier's module says how a JSON value becomes drafts of messages. What a text inside says in a dialect becomes
messages of their own, placed after the one that carries them; each takes from it the names that its own wire leaves
open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from operator import add
from typing import Any, Final, Literal, NamedTuple, NoReturn

from ._carrier_telling import Opened, tell_carried
from ._dialect import Dialect, Reply, Term
from ._draft import Draft, nest
from ._english import quote
from ._errors import EncodeError
from ._events import find_data, is_mute
from ._inner import Inner, TooDeepError, grow_inner, grow_put_together, read_inner, veil
from ._json import JsonError, Loaded, Node, Path, Rules, load, make_list, place, read_key, skip_space
from ._places import Places, mask_fields
from ._record import (
    Candidate,
    Envelope,
    Field,
    Identity,
    Layer,
    LayerKind,
    Message,
    NoteKind,
    Piece,
    Reading,
    Span,
    leaf,
    tile,
)

RULES: Final = Rules(max_depth=64, allows_controls=True)
# Below this depth a value of the tree is one leaf.
UNFOLDED: Final = 12
# So much of a text is looked at to tell whether it may be a carrier's.
LOOKED_AT: Final = 4096
# So many notes on the text itself are kept: what a stream holds besides its own may be anything.
MAX_NOTES: Final = 64
# What a host or a proxy writes before an object on its line.
_PREFIX = re.compile(r"[^{\n]{0,200}?(?=\{)")
_SYNTAX = frozenset(" \t\r\n{}[]:,\ufeff")


class Carrier(NamedTuple):
    """What a carrier's module declares.

    Attributes:
        hint: what its texts hold near their beginning; of a text without it nothing else is looked at.
        recognise: how likely a JSON value is its own, and why; None where it is not.
        make: the drafts of a JSON value that was recognised, at least one.
        replies: as in `Dialect`, for messages of its own.
        labels: by path without indices (`params.message.parts.text`), or by the key alone, its label and its meaning.
        not_offered: the note on a called tool that is not in the list before it, where it has such lists.
        names_conversations_late: as in `Dialect`.
        version_of: the version that a JSON value of its own names or shows.
    """

    slug: str
    title: str
    summary: str
    specification: str
    hint: re.Pattern[str]
    recognise: Callable[[Any], tuple[float, str] | None]
    make: Callable[[Any], Sequence[Draft]]
    replies: Callable[[Message], Sequence[Reply]]
    labels: Mapping[str, tuple[str, str | None]]
    notes: tuple[NoteKind, ...] = ()
    not_offered: NoteKind | None = None
    glossary: tuple[Term, ...] = ()
    versions: tuple[str, ...] = ()
    names_conversations_late: bool = False
    version_of: Callable[[Any], str | None] = lambda data: None
    rank: int = 20


class _Kinds(NamedTuple):
    """The notes that every carrier has."""

    unreadable: NoteKind
    foreign: NoteKind
    around: NoteKind
    repeated: NoteKind
    too_deep: NoteKind
    broken: NoteKind


def make_dialect(carrier: Carrier) -> Dialect:
    """The dialect that a carrier is."""
    kinds = _make_kinds(carrier.slug)
    return Dialect(
        slug=carrier.slug,
        title=carrier.title,
        summary=carrier.summary,
        specification=carrier.specification,
        sniff=partial(_sniff, carrier),
        identify=partial(_identify, carrier),
        read=partial(_read, carrier, kinds),
        tell=partial(tell_carried, carrier.title, carrier.not_offered),
        encode=partial(_refuse, carrier.slug),
        versions=carrier.versions,
        replies=carrier.replies,
        notes=(*carrier.notes, *((carrier.not_offered,) if carrier.not_offered else ()), *kinds),
        glossary=carrier.glossary,
        has_objects=True,
        is_carrier=True,
        names_conversations_late=carrier.names_conversations_late,
        rank=carrier.rank,
    )


def _make_kinds(slug: str) -> _Kinds:
    def kind(
        name: str,
        severity: Literal["info", "warning", "error"],
        group: Literal["malformed", "undecoded", "protocol", "security"],
        about: str,
    ) -> NoteKind:
        return NoteKind(code=f"{slug}.{name}", severity=severity, group=group, about=about)

    return _Kinds(
        kind("unreadable", "error", "malformed", "The text is no JSON that can be read."),
        kind("foreign", "error", "malformed", "The JSON is of another kind."),
        kind("text-around", "info", "undecoded", "Text stands around the object; it is kept as it is."),
        kind("repeated-key", "warning", "protocol", "A key stands more than once in an object; the last is read."),
        kind("too-deep", "warning", "security", "Texts inside texts, deeper or more of them than are read in turn."),
        kind(
            "broken-event", "warning", "malformed", "The data of an event is broken; the others of its stream are read."
        ),
    )


def _refuse(slug: str, messages: Sequence[Message]) -> NoReturn:
    raise EncodeError(slug, "it is read and not written: write the message that it carries")


class _Text(NamedTuple):
    """The JSON of a text, each value with where it begins; several are the events of a stream, of which some may be
    broken."""

    values: list[tuple[int, Loaded]]
    broken: list[tuple[tuple[int, int], JsonError]]
    is_stream: bool = False

    def list_own(self, carrier: Carrier) -> list[tuple[int, Any, tuple[float, str]]]:
        """Those that are the carrier's: the number of each, what it holds, how likely it is its own, and why."""
        recognised = (
            (number, loaded.data, carrier.recognise(loaded.data)) for number, (_, loaded) in enumerate(self.values)
        )
        own = [(number, data, found) for number, data, found in recognised if found is not None]
        # A stream that holds more of something else is another's.
        return own if 2 * len(own) >= len(self.values) else []

    def list_gaps(self, size: int) -> Iterator[tuple[int, int]]:
        """What stands before, between and behind them."""
        ends = [0, *(loaded.end for _, loaded in self.values)]
        return zip(ends, [*(start for start, _ in self.values), size], strict=True)


def _load(wire: str) -> _Text:
    """The JSON of a text.

    Raises:
        JsonError: if it cannot be read.
    """
    stretches = find_data(wire)
    if stretches is None:
        return _Text([_load_object(wire)], [])
    text = _Text([], [], is_stream=True)
    for start, end in stretches:
        try:
            loaded = load(wire[start:end], 0, RULES)
        except JsonError as error:
            text.broken.append(((start, end), JsonError(error.kind, start + error.offset, error.reason)))
        else:
            loaded.end += start
            text.values.append((start, loaded))
    if not text.values:
        raise text.broken[0][1]
    return text


def _load_object(wire: str) -> tuple[int, Loaded]:
    start = skip_space(wire, 1 if wire.startswith("\ufeff") else 0)
    if not wire.startswith("{", start) and (found := _PREFIX.match(wire, start)):
        # A bracket may begin a list, or what a host writes before an object.
        if wire.startswith("[", start):
            try:
                return start, load(wire, start, RULES)
            except JsonError:
                return found.end(), load(wire, found.end(), RULES)
        start = found.end()
    return start, load(wire, start, RULES)


def _sniff(carrier: Carrier, wire: str) -> Candidate | None:
    if not carrier.hint.search(wire, 0, LOOKED_AT):
        return None
    try:
        own = _load(wire).list_own(carrier)
    except JsonError:
        return None
    score, why = max((found for _, _, found in own), default=(0.0, ""))
    return Candidate(dialect=carrier.slug, score=score, why=why) if own else None


def _identify(carrier: Carrier, wire: str) -> Identity:
    try:
        text = _load(wire)
    except JsonError:
        return Identity()
    own = text.list_own(carrier)
    if not own:
        return Identity()
    said = carrier.make(own[0][1])[0].columns
    # A stream is no message: none of its events names it.
    name = said.get("message_id") if len(text.values) == 1 else None
    return Identity(conversation=said.get("conversation_id"), id=name, time=said.get("sent_at"))


def _read(carrier: Carrier, kinds: _Kinds, wire: str, envelope: Envelope | None = None) -> Reading:
    try:
        text = _load(wire)
    except JsonError as error:
        return _read_malformed(carrier.slug, kinds.unreadable, error.reason, min(error.offset, len(wire)), wire)
    own = text.list_own(carrier)
    if not own:
        return _read_malformed(
            carrier.slug, kinds.foreign, f"the JSON is none of {carrier.title}", text.values[0][0], wire
        )
    roots = [place(wire, start, loaded.end, number=at) for at, (start, loaded) in enumerate(text.values)]
    places = Places(wire, roots[0] if len(roots) == 1 else make_list(roots))
    drafts = [
        draft if len(roots) == 1 else draft.move(partial(add, (number,)))
        for number, data, _ in own
        for draft in carrier.make(data)
    ]
    # As many as there are: all together they are no longer than the wire.
    for path in [path for draft in drafts for path in draft.opened]:
        places.open(path, RULES)
    inner = _read_contents(kinds, places, drafts)
    notes = [
        kinds.around.note("text stands beside the object", (0, first, last))
        for first, last in text.list_gaps(len(wire))
        if not _SYNTAX.issuperset(wire[first:last]) and not (text.is_stream and is_mute(wire[first:last]))
    ]
    numbers = {number for number, _, _ in own}
    notes += [
        kinds.around.note("an event of the stream is of another kind", (0, start, loaded.end))
        for number, (start, loaded) in enumerate(text.values)
        if number not in numbers
    ]
    notes += [kinds.broken.note(error.said, (0, *stretch)) for stretch, error in text.broken]
    repeated = next(((start, loaded) for start, loaded in text.values if loaded.repeated), None)
    if repeated:
        said = f"a key stands twice in one object: {quote(repeated[1].repeated[0])}"
        notes.append(kinds.repeated.note(said, (0, repeated[0], repeated[1].end)))
    layers = (
        Layer(id=0, kind="wire", text=wire),
        *places.layers,
        *(layer for each in inner.values() for layer in each.layers),
    )
    secrets, hidden = veil(inner.values(), layers)
    if hidden:
        for draft in drafts:
            draft.hide(hidden)
    messages = tuple(_place_messages(drafts, inner, places, envelope))
    put_together = tuple(_put_together(drafts, places, len(layers)))
    return Reading(
        dialect=carrier.slug,
        layers=(*layers, *put_together),
        tree=lambda: mask_fields(
            (
                *_grow(carrier.labels, wire, places.root, is_stream=text.is_stream),
                *(field for each in places.opened for field in _grow({}, each.text, each.node, each.layer)),
                *grow_inner(inner.values()),
                *map(grow_put_together, put_together),
            ),
            secrets,
        ),
        version=carrier.version_of(own[0][1]),
        candidates=tuple(filter(None, (_sniff(carrier, wire),))),
        messages=messages,
        notes=tuple(notes[:MAX_NOTES]),
        parsed=Opened(drafts, places, inner, hidden),
    )


def _read_malformed(slug: str, kind: NoteKind, text: str, offset: int, wire: str) -> Reading:
    parts = ((0, offset, "text", "up to where reading failed"), (offset, len(wire), "unread", "not readable"))
    return Reading(
        dialect=slug,
        layers=(Layer(id=0, kind="wire", text=wire),),
        tree=lambda: tuple(
            leaf(name, label, wire, first, last, value=wire[first:last])
            for first, last, name, label in parts
            if first < last
        ),
        messages=(Message(performative=None, content=wire, notes=(kind.note(text, (0, offset, len(wire))),)),),
    )


def _read_contents(kinds: _Kinds, places: Places, drafts: Sequence[Draft]) -> dict[Path, Inner]:
    """The texts that drafts carry or quote and that are in a dialect, read; by their paths."""
    found: dict[Path, Inner] = {}
    layer = len(places.layers) + 1
    for draft in drafts:
        for path in (*draft.carried, *draft.quoted):
            at = places.find(path)
            if at is None or path in found:
                continue
            node = at.node
            raw = at.text[node.start : node.end]
            text = draft.written.get(path) or (read_key(raw) if node.kind == '"' else raw)
            kind: LayerKind = "json-string" if node.kind == '"' else "json-value"
            try:
                inner = read_inner(text, layer=layer, of=(at.layer, node.start, node.end), kind=kind, count=len(found))
            except TooDeepError:
                draft.note(kinds.too_deep, "a message inside this one is not read", path)
                continue
            if inner is not None:
                found[path] = inner
                layer += len(inner.reading.layers)
    return found


def _place_messages(
    drafts: Sequence[Draft], inner: Mapping[Path, Inner], places: Places, envelope: Envelope | None
) -> Iterator[Message]:
    part, carrying = 1, Message()
    for draft in drafts:
        notes = tuple(kind.note(text, places.find_span(path)) for kind, text, path in draft.notes)
        nested = tuple(nest(*each[:2], None if each[2] is None else places.find_span(each[2])) for each in draft.nested)
        draft.part = part
        outer = Message(**draft.columns, part=part, notes=notes, nested=nested)
        if draft.dialect is not None:
            outer = _fill_carried(outer, carrying, draft)
        yield outer
        part += 1
        if draft.dialect is None:
            if envelope is not None:
                sender, receivers = outer.sender or envelope.sender, outer.receivers or envelope.receivers
                outer = outer.replace(sender=sender, receivers=receivers)
            carrying = outer
        for path, each in ((path, inner[path]) for path in draft.carried if path in inner):
            yield from each.place(each.fill(outer, is_heard=path in draft.heard), outer, part)
            part += len(each.reading.messages)


def _fill_carried(message: Message, carrying: Message, draft: Draft) -> Message:
    """A message that a draft is within the one before it, with who says it, or to whom it is said, as that one says."""
    hears = () if carrying.sender is None else (carrying.sender,)
    parties = {"receivers": hears} if draft.is_heard else {"sender": message.sender or carrying.sender}
    return message.replace(dialect=draft.dialect, carrier_part=carrying.part, **parties)


def _put_together(drafts: Iterable[Draft], places: Places, layer: int) -> Iterator[Layer]:
    """The texts of which several pieces stand in the record, in layers from that number on."""
    texts: list[list[tuple[str, Span, int]]] = []
    growing: dict[tuple[str, str], list[tuple[str, Span, int]]] = {}
    for draft in drafts:
        for each in draft.gathered:
            name = (each.kind, each.name)
            if each.is_first or name not in growing:
                texts.append([])
                growing[name] = texts[-1]
            if each.text and (span := places.find_span(each.path)) is not None:
                growing[name].append((each.text, span, draft.part))
    for number, held in enumerate((each for each in texts if len(each) > 1), start=layer):
        ends = [*accumulate(len(text) for text, _, _ in held)]
        pieces = tuple(
            Piece(end - len(text), end, span, part) for end, (text, span, part) in zip(ends, held, strict=True)
        )
        text = "".join(text for text, _, _ in held)
        whole = {"id": number, "kind": "put-together", "text": text, "of": pieces[-1].span}
        yield Layer.trust({**whole, "_pieces": pieces})


def _grow(
    labels: Mapping[str, tuple[str, str | None]], wire: str, root: Node, layer: int = 0, *, is_stream: bool = False
) -> tuple[Field, ...]:
    whole = Field(
        name="message",
        label="message",
        raw=wire[root.start : root.end],
        span=(layer, root.start, root.end),
        children=tuple(_grow_member(labels, wire, "", member, 1, layer) for member in root.members),
    )
    name, label = ("event", "lines of the stream") if is_stream else ("text", "text around the object")

    def name_gap(each: Field) -> Field:
        return each.replace(name=name, label=label) if each.name == "unread" else each

    # There is a note on what stands around the object.
    tiled = map(name_gap, tile([whole], wire, syntax=_SYNTAX, layer=layer))
    return tuple(each.replace(children=tuple(map(name_gap, each.children))) for each in tiled)


def _grow_member(
    labels: Mapping[str, tuple[str, str | None]], wire: str, above: str, member: Node, depth: int, layer: int
) -> Field:
    is_item = isinstance(member.key, int)
    path = above if is_item else f"{above}.{member.key}" if above else str(member.key)
    label, meaning = labels.get(path) or labels.get(str(member.key)) or (str(member.key), None)
    children: list[Field] = []
    if not is_item:
        children.append(leaf("key", "key", wire, member.key_start, member.key_end, value=member.key, layer=layer))
    value = None
    if member.members and depth < UNFOLDED:
        children.extend(_grow_member(labels, wire, path, inner, depth + 1, layer) for inner in member.members)
    elif member.end > member.start:
        value = member.read(wire, RULES) if member.kind in '"v' else wire[member.start : member.end]
        children.append(leaf("value", "value", wire, member.start, member.end, value=value, layer=layer))
    return Field(
        name=str(member.key),
        label=f"item {int(member.key) + 1}" if is_item else label,
        raw=wire[member.key_start : member.end],
        span=(layer, member.key_start, member.end),
        value=value,
        meaning=meaning,
        children=tuple(children),
    )
