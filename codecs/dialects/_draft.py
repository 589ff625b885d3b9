"""One message of a carrier in the making: its columns, its words with what justifies them, and the texts it carries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ._english import quote
from ._json import Path
from ._places import hide
from ._record import NoteKind, Span


class Piece(NamedTuple):
    """Words of a draft, or the place of what is known only when it is told."""

    words: str
    path: Path | None
    kind: Literal["words", "sender", "receivers", "known", "content", "gathered"] = "words"
    name: tuple[str, str] = ("", "")
    invalid: NoteKind | None = None
    tool: tuple[str, str] | None = None


class Offer(NamedTuple):
    """Tools that were listed, or None where it is no longer known which there are.

    `is_whole` is whether no others are on a further page. `is_of_side` is whether they are the tools of the side that
    sends the list, and not of the conversation.
    """

    names: Sequence[str] | None
    is_whole: bool = True
    is_of_side: bool = False


class Gathered(NamedTuple):
    """A text that is a piece of a longer one: under which kind and name that is put together, if it begins it, and
    where it stands."""

    kind: str
    name: str
    text: str
    is_first: bool
    path: Path


def nest(performative: str, tool: str | None, span: Span | None) -> Mapping[str, Any]:
    """An act within a message, as its `nested` has it: by the names of a message, and where its text stands."""
    named = {"attributes": {"tool": tool}} if tool else {}
    return {"performative": performative, **named, **({"span": span} if span else {})}


class Draft:
    """A message in the making. A path leads from the root of the JSON to what it is about.

    Args:
        performative: what its act is among those that all dialects share.
        native_act: the act as the carrier calls it.
        columns: other names of `Message`; what is empty counts as absent.
    """

    def __init__(self, performative: str, native_act: str | None, **columns: Any) -> None:
        given = {"performative": performative, "native_act": native_act, **columns}
        self.columns = {name: value for name, value in given.items() if value not in (None, "", (), {}, [])}
        self.pieces: list[Piece] = []
        self.notes: list[tuple[NoteKind, str, Path]] = []
        self.entries: list[tuple[str, str, str]] = []
        self.gathered: list[Gathered] = []
        # Of a request, under which kind and name an answer without a sender finds who was asked.
        self.asked: tuple[str, str] | None = None
        self.opened: list[Path] = []
        # What is done within it: an act, its tool where it calls one, and where its text stands.
        self.nested: list[tuple[str, str | None, Path | None]] = []
        self.heard: set[Path] = set()
        # Texts that are read for what is secret in them alone.
        self.quoted: list[Path] = []
        # Values that the wire does not write as plain JSON, as that: they are read and shown so.
        self.written: dict[Path, str] = {}
        # Of a message that the last one before it without a dialect of its own carries: the dialect that it is in, and
        # whether the sender of that one hears it. Which part of the record it is, reading says.
        self.dialect: str | None = None
        self.is_heard = False
        self.part = 1
        self.offer: Offer | None = None
        # A tool that is called: its name, where that stands, and whether it is one of whoever receives the call.
        self.called: tuple[str, Path, bool] | None = None

    def say(self, words: str, path: Path | None = None) -> Draft:
        """Append words of our own, or words for what stands at a path: a name quoted by `say_name` or `quote`."""
        self.pieces.append(Piece(words, path))
        return self

    def say_sender(self, otherwise: str, path: Path | None = None, *, asked: tuple[str, str] = ("", "")) -> Draft:
        """Append who speaks, by the name that the object or the log gives, else in other words.

        Args:
            otherwise: those words.
            path: what says who speaks.
            asked: the kind and name under which a request keeps whom it was sent to: who answers it is believed to be.
        """
        self.pieces.append(Piece(otherwise, path, "sender", asked))
        return self

    def say_receivers(self, otherwise: str, path: Path | None = None) -> Draft:
        """Append to whom, by the names that the object or the log gives, else in other words."""
        self.pieces.append(Piece(otherwise, path, "receivers"))
        return self

    def recall(self, kind: str, name: str, otherwise: str, path: Path | None = None) -> Draft:
        """Append the words that an earlier message established under a kind and a name, else others."""
        self.pieces.append(Piece(otherwise, path, "known", (kind, name)))
        return self

    def carry(self, path: Path, *, is_heard: bool = False) -> Draft:
        """Append the text or the object at a path: as what it says in its dialect, else between quotation marks.

        Args:
            path: where it stands.
            is_heard: whether the sender of the message hears it, and does not say it.
        """
        self.pieces.append(Piece("", path, "content"))
        if is_heard:
            self.heard.add(path)
        return self

    def quote(self, text: str, path: Path) -> Draft:
        """Append the text at a path as what was said before: it is quoted, and no message anew."""
        self.quoted.append(path)
        return self.say(quote(text), path)

    def open(self, path: Path) -> Draft:
        """Read the text at a path as JSON of its own layer: what stands in it is then found by longer paths."""
        self.opened.append(path)
        return self

    def gather(self, kind: str, name: str, text: str, path: Path = (), *, is_first: bool = False) -> Draft:
        """Add the text at a path to the one that is put together under a kind and a name, or begin that."""
        self.gathered.append(Gathered(kind, name, text, is_first, path))
        return self

    def nest(self, performative: str, path: Path | None, *, tool: str | None = None) -> Draft:
        """Let the text at a path, if any, be an act within the message: a call of a tool, its result, or words."""
        self.nested.append((performative, tool, path))
        return self

    def say_gathered(
        self,
        kind: str,
        name: str,
        path: Path,
        words: str = "; its pieces put together",
        *,
        invalid: NoteKind | None = None,
        tool: tuple[str, str] | None = None,
    ) -> Draft:
        """Append these words and the text that was put together, the last piece of which stands there; if there is any.

        Args:
            kind: and the name, under which the pieces were gathered.
            path: of the last piece.
            words: what it is.
            invalid: the note that it gets where it should be JSON and is none.
            tool: of arguments, under which kind and name the tool was established that they are for.
        """
        self.pieces.append(Piece(words, path, "gathered", (kind, name), invalid, tool))
        return self

    def note(self, kind: NoteKind, text: str, path: Path = ()) -> Draft:
        """Add a note on what stands at a path."""
        self.notes.append((kind, text, path))
        return self

    def establish(self, kind: str, name: str, words: str) -> Draft:
        """Let later messages of the conversation recall these words."""
        self.entries.append((kind, name, words))
        return self

    def move(self, lead: Callable[[Path], Path]) -> Draft:
        """Let its paths lead from another root, or through what the wire puts around values."""
        self.pieces = [each if each.path is None else each._replace(path=lead(each.path)) for each in self.pieces]
        self.notes = [(kind, text, lead(path)) for kind, text, path in self.notes]
        self.opened = [lead(path) for path in self.opened]
        self.gathered = [each._replace(path=lead(each.path)) for each in self.gathered]
        self.nested = [(act, tool, path if path is None else lead(path)) for act, tool, path in self.nested]
        self.heard = {lead(path) for path in self.heard}
        self.quoted = [lead(path) for path in self.quoted]
        self.written = {lead(path): text for path, text in self.written.items()}
        if self.called is not None:
            name, path, is_of_side = self.called
            self.called = (name, lead(path), is_of_side)
        return self

    def hide(self, hidden: Sequence[str]) -> None:
        """Leave these texts out of everything that was said: they are secret where they stand."""
        self.columns = {name: hide(value, hidden) for name, value in self.columns.items()}
        self.pieces = [piece._replace(words=hide(piece.words, hidden)) for piece in self.pieces]
        self.notes = [(kind, hide(text, hidden), path) for kind, text, path in self.notes]
        self.entries = [(kind, name, hide(words, hidden)) for kind, name, words in self.entries]
        self.gathered = [each._replace(text=hide(each.text, hidden)) for each in self.gathered]
        self.nested = [(performative, hide(tool, hidden), path) for performative, tool, path in self.nested]
        self.written = {path: hide(text, hidden) for path, text in self.written.items()}
        if self.offer is not None and self.offer.names is not None:
            self.offer = self.offer._replace(names=[hide(name, hidden) for name in self.offer.names])
        if self.called is not None:
            self.called = (hide(self.called[0], hidden), *self.called[1:])

    @property
    def carried(self) -> tuple[Path, ...]:
        """The paths of the texts that it carries."""
        paths = (piece.path for piece in self.pieces if piece.kind == "content" and piece.path is not None)
        return tuple(dict.fromkeys(paths))
