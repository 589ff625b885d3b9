"""A record of a carrier in words: what it carries is told first, then each message with that in its sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ._context import Context, Keys
from ._draft import Draft, Gathered, Piece, nest
from ._english import enclose, join_words, say_name
from ._inner import Contents, Inner, say_inner
from ._json import JsonError, Path, Rules, load_whole, read_key
from ._places import Places, hide
from ._record import Entry, Message, Note, NoteKind, Reading, Segment, Span, Told


class Opened(NamedTuple):
    """What reading keeps for telling: the drafts, where everything stands, the texts that were read, by path, and what
    nothing told may hold."""

    drafts: Sequence[Draft]
    places: Places
    inner: Mapping[Path, Inner]
    hidden: Sequence[str]


def tell_carried(title: str, not_offered: NoteKind | None, reading: Reading, context: Context, keys: Keys) -> Told:
    """A carrier's record, told. Never raises."""
    if reading.parsed is None:
        return Told(reading=reading, messages=tuple(_tell_malformed(title, message) for message in reading.messages))
    return _Telling(reading, context, keys, not_offered).tell()


def _tell_malformed(title: str, message: Message) -> Message:
    sender = "Someone" if message.sender is None else say_name(message.sender)
    wire = str(message.content)
    before, text, after = enclose(wire)
    said = Segment(text=text, spans=((0, 0, len(wire)),))
    opening = Segment(text=f"{sender} sends what cannot be read as {title}: {before}")
    return message.replace(english=(opening, said, Segment(text=f"{after}.")))


# What a list of tools establishes: their names in JSON, or that they are not known, or not all of them.
_TOOLS: Final = "tools"
_UNKNOWN, _PAGED = "unknown", "paged"
_MAX_TOOLS, _MAX_TOOLS_LENGTH = 500, 20_000
# So much is put together of a text that comes in pieces, and is kept in stretches of so much.
_MAX_GATHERED, _STRETCH = 20_000, 500
_RULES: Final = Rules(max_depth=64, allows_controls=True)


def _is_json(text: str) -> bool:
    try:
        load_whole(text, _RULES)
    except JsonError:
        return False
    return True


class _Telling:
    """A record being told."""

    def __init__(self, reading: Reading, context: Context, keys: Keys, not_offered: NoteKind | None) -> None:
        opened: Opened = reading.parsed
        self._reading, self._opened, self._context = reading, opened, context
        self._not_offered = not_offered
        self._contents = Contents(reading, context, keys)
        self._entries = self._contents.entries
        # The last of them under each kind and name, as far as they were looked at.
        self._known: dict[tuple[str, str], Entry] = {}
        self._known_size = 0
        self._put_together: list[tuple[str, Span]] = []
        # What telling notes on the message that is being told, and the calls that it finds in it.
        self._noted: list[Note] = []
        self._nested: list[Mapping[str, Any]] = []

    def tell(self) -> Told:
        """The record, told."""
        messages: list[Message] = []
        waiting = iter(self._reading.messages)
        for draft in self._opened.drafts:
            outer = next(waiting)
            part = outer.part + 1
            said: dict[Path, list[Message]] = {}
            for path in draft.carried:
                inner = self._opened.inner.get(path)
                if inner is None:
                    continue
                placed = [next(waiting) for _ in inner.reading.messages]
                said[path] = self._contents.tell(inner, outer, placed)
                part += len(placed)
            messages.append(self._tell_own(draft, outer, said))
            for told in said.values():
                messages.extend(told)
        # Layers of their own, so that what is secret in them is found; behind all that are there without a context.
        known = {layer.text for layer in self._reading.layers if layer.kind == "put-together"}
        for text, span in self._put_together:
            if text not in known:
                self._contents.add_text(text, span)
        return Told(
            reading=self._reading,
            messages=tuple(messages),
            layers=tuple(self._contents.layers),
            fields=tuple(self._contents.fields),
            entries=self._list_latest(),
        )

    def _list_latest(self) -> tuple[Entry, ...]:
        """What the record established, without what it replaced itself: of a stream that is nearly all."""
        latest: dict[tuple[str, str, str | None], Entry] = {}
        for entry in self._entries:
            name = (entry.kind, entry.name, entry.speaker)
            latest.pop(name, None)
            latest[name] = entry
        return tuple(latest.values())

    def _establish(self, kind: str, name: str, value: str, message: Message) -> None:
        source, position = (self._context.record, message.part), self._context.position
        self._entries.append(
            Entry(kind=kind, name=name, value=value, speaker=message.sender, source=source, position=position)
        )

    def _gather(self, piece: Gathered, message: Message) -> None:
        """Add a piece to its text, which is kept in stretches, so that a further piece writes little anew."""
        known = None if piece.is_first else self._find(piece.kind, piece.name)
        number, length, is_whole = json.loads(str(known.value)) if known else (0, 0, piece.is_first)
        text = piece.text[: max(_MAX_GATHERED - length, 0)]
        if known and (before := self._find(f"{piece.kind}-text", f"{number} {piece.name}")):
            if len(str(before.value)) + len(text) <= _STRETCH:
                text = f"{before.value}{text}"
            else:
                number += 1
        value = json.dumps([number, length + len(piece.text), is_whole])
        self._establish(piece.kind, piece.name, value, message)
        self._establish(f"{piece.kind}-text", f"{number} {piece.name}", text, message)

    def _tell_gathered(self, piece: Piece, span: Span) -> Iterator[Segment]:
        """The text that was put together, in the place of its last piece."""
        kind, name = piece.name
        known = self._find(kind, name)
        if known is None:
            return
        number, length, is_whole = json.loads(str(known.value))
        held = [self._find(f"{kind}-text", f"{at} {name}") for at in range(number + 1)]
        if not is_whole and all(each.source[0] == self._context.record for each in held if each and each.source):
            yield Segment(text="; its earlier pieces are not known here")
            return
        text = "".join(str(each.value) for each in held if each is not None)
        if not text:
            return
        self._put_together.append((text, span))
        if piece.invalid is not None and not _is_json(text):
            self._noted.append(piece.invalid.note("put together, the pieces are no whole JSON", span))
        beginning = "" if is_whole else ", without the beginning"
        end = f", up to {_MAX_GATHERED:,} characters" if length > _MAX_GATHERED else ""
        tool = self._find(*piece.tool) if piece.tool is not None else None
        self._nested.append(nest("request" if piece.tool else "inform", str(tool.value) if tool else None, span))
        yield Segment(text=f"{piece.words}{beginning}{end}: ")
        before, said, after = enclose(text)
        source = next((each.source for each in held if each is not None), None)
        yield from (Segment(text=before), Segment(text=said, spans=(span,), source=source), Segment(text=after))

    def _find(self, kind: str, name: str) -> Entry | None:
        """What was established last under a name, by this record or before it."""
        # A stream asks for every piece: none of what it established is looked through again.
        for entry in self._entries[self._known_size :]:
            self._known[entry.kind, entry.name] = entry
        self._known_size = len(self._entries)
        return self._known.get((kind, name)) or self._context.find(kind, name)

    def _tell_own(self, draft: Draft, message: Message, said: Mapping[Path, list[Message]]) -> Message:
        for each in draft.gathered:
            self._gather(each, message)
        segments: list[Segment] = []
        for piece in draft.pieces:
            is_ended = piece.words == "." and len(segments) > 1 and segments[-2].text.endswith(".")
            # What is told inside the marks ends the sentence.
            segments.extend(() if is_ended else self._tell_piece(piece, message, said, draft.written))
        asked = [(*draft.asked, message.receivers[0])] if draft.asked and len(message.receivers) == 1 else []
        for kind, name, words in (*draft.entries, *asked, *self._list_tools(draft, message)):
            self._establish(kind, name, words, message)
        noted, self._noted = self._noted, []
        nested, self._nested = self._nested, []
        notes = (*message.notes, *noted, *self._look_for_tool(draft, message))
        return message.replace(english=tuple(segments), notes=notes, nested=(*message.nested, *nested))

    def _list_tools(self, draft: Draft, message: Message) -> Iterator[tuple[str, str, str]]:
        """What a list of tools establishes; of a list in pages it is not known which tools there are."""
        if draft.offer is None:
            return
        owner = (message.sender or "") if draft.offer.is_of_side else ""
        before, names = self._find(_TOOLS, owner), draft.offer.names
        is_paged = not draft.offer.is_whole or (before is not None and before.value == _PAGED)
        value = _UNKNOWN if names is None else _PAGED if is_paged or len(names) > _MAX_TOOLS else json.dumps([*names])
        yield _TOOLS, owner, value if len(value) <= _MAX_TOOLS_LENGTH else _PAGED
        if owner:
            # A call that does not say to whom it goes may go to either of two that list tools.
            other = self._find(_TOOLS, "")
            yield _TOOLS, "", value if other is None or other.speaker == message.sender else _UNKNOWN

    def _look_for_tool(self, draft: Draft, message: Message) -> Iterator[Note]:
        """That a called tool is not among those that were listed, where they were."""
        if draft.called is None or self._not_offered is None:
            return
        name, path, is_of_side = draft.called
        owner = message.receivers[0] if is_of_side and message.receivers else ""
        listed = self._find(_TOOLS, owner)
        if listed is not None and listed.value not in (_PAGED, _UNKNOWN) and name not in json.loads(str(listed.value)):
            text = f"the tool {say_name(name)} is not in the list of tools that was given before"
            yield self._not_offered.note(text, self._opened.places.find_span(path))

    def _tell_piece(
        self, piece: Piece, message: Message, said: Mapping[Path, list[Message]], written: Mapping[Path, str]
    ) -> Iterator[Segment]:
        span = None if piece.path is None else self._opened.places.find_span(piece.path)
        spans = () if span is None else (span,)
        if piece.kind == "content":
            if span is not None and piece.path is not None:
                yield from self._tell_content(span, message.part, said.get(piece.path), written.get(piece.path))
        elif piece.kind == "gathered":
            if span is not None:
                yield from self._tell_gathered(piece, span)
        elif piece.kind == "sender" and message.sender is None and (entry := self._find(*piece.name)) is not None:
            yield Segment(text=say_name(str(entry.value)), spans=spans, basis="inferred", source=entry.source)
        elif piece.kind == "sender" and message.sender:
            yield Segment(text=say_name(message.sender), spans=spans)
        elif piece.kind == "receivers" and message.receivers:
            yield Segment(text=join_words([say_name(name) for name in message.receivers]), spans=spans)
        elif piece.kind == "known" and (entry := self._find(*piece.name)) is not None:
            yield Segment(text=str(entry.value), spans=spans, source=entry.source)
        elif piece.words:
            yield Segment(text=piece.words, spans=spans)

    def _tell_content(
        self, span: Span, part: int, said: Sequence[Message] | None, written: str | None
    ) -> Iterator[Segment]:
        """What a text inside says, or the text itself; marks that it cannot end stand around either."""
        after = "”"
        if said is None:
            raw = self._reading.layers[span[0]].text[span[1] : span[2]]
            held = hide(written or (read_key(raw) if raw.startswith('"') else raw), self._opened.hidden)
            before, text, after = enclose(held)
            yield Segment(text=before)
            yield Segment(text=text, spans=(span,))
        else:
            yield from say_inner(said, part, span)
        yield Segment(text=after)
