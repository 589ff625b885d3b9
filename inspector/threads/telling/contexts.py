"""The context that a conversation is told in, which notes what each telling asked of it.

A told message says in one line of text what its telling asked and was answered (`told_in`), and in JSON what it
established (`established`). It is told again only where an answer would be another one now: re-telling stops where
contexts agree, and passes over what has nothing to do with what changed.

    2.3 clowl 5d1c0b7f,90aa41e2=<digest>+

After the version of the decoders and the dialect: what was asked, each name as a short digest, and a digest of all
answers. A line ends in `+` where the record established something: then that is kept with it, and is gone through
again in the place of telling.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Set
from functools import cache, lru_cache
from typing import Any

from django.conf import settings

from dialects import SHAPE_VERSION, Context, Entry, to_json_type

# Raised when a decoder reads or tells what is stored otherwise than before: the sweep then has every record read anew.
DECODER_VERSION = f"8.{SHAPE_VERSION}"

_MODULUS = 1 << 128


# What is asked beside entries: where the message stands, and whether anything is established.
POSITION, SIZE = "position", "size"
# Who asks for too much asks for everything.
ALL = "all"
# Added to a question, it asks whether there are any of a kind.
KNOWN = "known"
# Who asks more than this asks for too much.
_MOST_QUESTIONS = 24


# Writers that are made once: `json.dumps` makes one for each call.
_write_sorted = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
_write_plain = json.JSONEncoder(separators=(",", ":")).encode


@cache
def _key() -> bytes:
    return hashlib.sha256(b"threads.contexts" + settings.SECRET_KEY.encode()).digest()


def _digest(text: str, size_bytes: int) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size_bytes, key=_key()).digest()


# Every message of a dialect asks much the same.
@lru_cache(maxsize=1024)
def make_question(kind: str, name: str | None = None, *more: str) -> str:
    """A short name for what can be asked: an entry of a kind, all of them, or whether there are any."""
    return _digest(json.dumps([kind, name, *more]), 12).hex()


def name_secret() -> str:
    """What tells digests that were made under this secret from those of another one."""
    return _digest("secret", 12).hex()


def _weight(said: list[Any]) -> int:
    return int.from_bytes(_digest(_write_sorted(said), 16))


@lru_cache(maxsize=1024)
def _seal_answers(answers: tuple[int, ...]) -> str:
    return _digest(repr(answers), 12).hex()


def _seal(answers: Iterable[int]) -> str:
    return _seal_answers(tuple(answers))


class TrackedContext(Context):
    """A context that knows what was asked of it while one record was told, and what that record changed.

    The answers are kept as digests, so that to compare them with those of another time costs no more than asking
    anew. They are made under a secret, so that nobody can write a log in which two contexts look alike.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        # By the digest of a question, the digest of its answer: names by themselves, and kinds as a whole.
        self._answers: dict[str, int] = {}
        # How many names of a kind are established; and of each name, as the how manieth of its kind it was.
        self._counts: dict[str, int] = {}
        self._ranks: dict[tuple[str, str], int] = {}
        self._changes: list[list[Any]] = []
        self._asked: dict[str, int] = {}
        # Kinds that the record itself has forgotten: what it asks of them next is no answer of the conversation's.
        self._forgotten: set[str] = set()
        self._position = 1
        # What takes tokens out of what the record establishes.
        self._hide: Callable[[Entry], Entry] | None = None
        # By record id: what stands for a record wherever it is stored.
        self.identities: dict[str, str] = {}
        super().__init__(entries)

    # What dialects ask, each answer noted as it was before the record that asks.

    def find(self, kind: str, name: str, *, speaker: str | None = None) -> Entry | None:
        """The entry now in force, or None; with `speaker`, the latest that this speaker made."""
        if kind not in self._forgotten:
            self._note(make_question(kind, name))
        return super().find(kind, name, speaker=speaker)

    def knows(self, kind: str) -> bool:
        """Whether anything of a kind was ever established."""
        if kind not in self._forgotten:
            self._note(make_question(kind, None, KNOWN))
        return super().knows(kind)

    def all_of(self, kind: str) -> dict[str, Entry]:
        """Every entry in force of a kind, by name, in the order in which the names were first established."""
        if kind not in self._forgotten:
            self._note(make_question(kind))
        return super().all_of(kind)

    @property
    def size(self) -> int:
        """How many names are established. Only whether there are any counts as asked."""
        self._note(SIZE)
        return self.names

    @property
    def names(self) -> int:
        """How many names are established, where that is not asked for a telling."""
        return sum(self._counts.values())

    @property
    def position(self) -> int:
        """The one-based place of the message being told."""
        self._note(POSITION)
        return self._position

    @position.setter
    def position(self, value: int) -> None:
        self._position = value

    def _note(self, question: str) -> None:
        if len(self._asked) == _MOST_QUESTIONS:
            self._asked[ALL] = self._answer(ALL)
        if len(self._asked) <= _MOST_QUESTIONS or question == POSITION:
            self._asked.setdefault(question, self._answer(question))

    def _answer(self, question: str) -> int:
        if question == POSITION:
            return self._position
        if question == SIZE:
            return int(bool(self._counts))
        if question == ALL:
            return _weight([[kind, self._answers[make_question(kind)]] for kind in sorted(self._counts)])
        return self._find_answer(question)

    def _find_answer(self, question: str) -> int:
        """The digest of the answer about a name or a kind; 0 where nothing is established."""
        return self._answers.get(question, 0)

    def expect(self, questions: Iterable[str]) -> None:
        """Have these answered together where that costs less: they are about to be asked."""

    # What changes it, each change kept.

    def add(self, entries: Iterable[Entry]) -> None:
        """Let these hold from here on; a later entry of the same kind and name replaces an earlier one."""
        for entry in entries:
            plain = _make_plain(entry if self._hide is None else self._hide(entry))
            # That its dialect is spoken follows from every message; it need not be kept. Everything else is kept, also
            # what holds already: where the record stands elsewhere, it may not.
            if plain.source is not None or plain.kind != "dialect":
                self._changes.append(self._write_change(plain))
            held = self._find_held(plain.kind, plain.name)
            if held and next(reversed(held.values())) == plain:
                continue
            super().add((plain,))
            self._weigh(plain.kind, plain.name)

    def remove(self, kind: str) -> None:
        """Forget a kind: the dialect's own reset."""
        self._changes.append([kind])
        self._forgotten.add(kind)
        if self._counts.pop(kind, None) is None:
            return
        for name in self._kinds.get(kind, {}):
            self._answers.pop(make_question(kind, name), None)
            del self._ranks[kind, name]
        self._answers.pop(make_question(kind), None)
        self._answers.pop(make_question(kind, None, KNOWN), None)
        super().remove(kind)

    def _find_held(self, kind: str, name: str) -> dict[str | None, Entry] | None:
        """The entries in force of a name, by speaker."""
        return self._latest.get((kind, name))

    def _weigh(self, kind: str, name: str) -> None:
        """Bring the answers up to date that an entry changes."""
        rank = self._ranks.get((kind, name))
        if rank is None:
            rank = self._ranks[kind, name] = self._counts[kind] = self._counts.get(kind, 0) + 1
        question, whole = make_question(kind, name), make_question(kind)
        before = self._answers.get(question)
        self._answers[make_question(kind, None, KNOWN)] = 1
        after = self._weigh_name(kind, name)
        # The order in which names were established can decide what a dialect finds.
        total = self._answers.get(whole, 0) + _weight([rank, after])
        self._answers[whole] = (total - (_weight([rank, before]) if before is not None else 0)) % _MODULUS

    def _weigh_name(self, kind: str, name: str) -> int:
        """Bring the answer up to date that a name by itself is, in the order in which its speakers spoke."""
        held = self._latest[kind, name]
        said = [[each.speaker, each.value, each.source, each.position] for each in held.values()]
        self._answers[make_question(kind, name)] = weight = _weight([kind, name, said])
        return weight

    def _write_change(self, entry: Entry) -> list[Any]:
        record, part = entry.source or (None, 0)
        identity = self.identities.get(str(record), "") if record is not None else ""
        at = None if entry.position is None else "here" if entry.position == self._position else entry.position
        return [entry.kind, entry.name, entry.value, entry.speaker, record, part, identity, at]

    # One record at a time.

    def begin(self, *, record: str, identity: str, position: int, hide: Callable[[Entry], Entry] | None = None) -> None:
        """Begin to tell a record: nothing has been asked and nothing changed.

        Args:
            record: its id.
            identity: what stands for it by content.
            position: the one-based place of its first message.
            hide: takes the record's tokens out of what it establishes.
        """
        self.record, self._position, self._hide = record, position, hide
        self.identities[record] = identity
        self._changes, self._asked, self._forgotten = [], {}, set()

    @property
    def has_answered(self) -> bool:
        """Whether anything that was asked since `begin` is something that a conversation decides."""
        return any(answer for question, answer in self._asked.items() if question != SIZE)

    def end(self, dialect: str) -> tuple[str, str]:
        """What the telling since `begin` asked, and what it established; as they are stored with the message."""
        changes, self._changes, self._hide = self._changes, [], None
        if not any(change[4:5] == [self.record] for change in changes):
            self.identities.pop(self.record, None)
        asked = sorted(self._asked if ALL not in self._asked else self._asked.keys() & {ALL, POSITION, SIZE})
        told_in = f"{DECODER_VERSION} {dialect} {','.join(asked)}={_seal(self._asked[name] for name in asked)}"
        return (f"{told_in}+", _write_plain(changes)) if changes else (told_in, "")

    def allows(self, told_in: str, *, dialect: str, position: int) -> bool:
        """Whether what was told then would be told alike now.

        Args:
            told_in: what the telling asked.
            dialect: the dialect that the record is placed in now.
            position: the one-based place of its first message now.
        """
        start = f"{DECODER_VERSION} {dialect} "
        if not told_in.startswith(start):
            return False
        asked, _, seal = told_in[len(start) :].rstrip("+").partition("=")
        self._position = position
        return seal == _seal(self._answer(name) for name in asked.split(",") if name)

    def go_through(self, established: str, *, position: int) -> None:
        """Let hold again what a record established when it was told, in the place of telling it anew."""
        self._position = position
        for kind, *rest in json.loads(established):
            if not rest:
                self.remove(kind)
                continue
            name, value, speaker, record, part, identity, at = rest
            if record is not None:
                self.identities[record] = identity
            source = None if record is None else (record, part)
            place = position if at == "here" else at
            self.add([Entry(kind=kind, name=name, value=value, speaker=speaker, source=source, position=place)])
        self._changes = []


def list_established(established: str) -> Iterator[str]:
    """The questions for the entries that a record established."""
    for kind, *rest in json.loads(established):
        if rest:
            yield make_question(kind, rest[0])


def questions_of(told_in: str) -> frozenset[str]:
    """The digests of what a telling asked of its context, as `asks_for` takes them."""
    return frozenset(list_asked(told_in)) - {POSITION, SIZE}


def list_asked(told_in: str) -> Iterator[str]:
    """All that a telling asked: as `questions_of`, and `POSITION` and `SIZE`."""
    return (name for name in told_in.rpartition(" ")[2].rstrip("+").partition("=")[0].split(",") if name)


def asks_for(asked: Set[str], kind: str, name: str) -> bool:
    """Whether a telling asked for an entry: for itself, for all of its kind, or for everything."""
    return ALL in asked or make_question(kind, name) in asked or make_question(kind) in asked


def is_common(told_in: str) -> bool:
    """Whether many messages are told so: nothing was asked that could set them apart."""
    return len(told_in) < 80


def has_established(told_in: str) -> bool:
    """Whether a record that was told so established something."""
    return told_in.endswith("+")


def _make_plain(entry: Entry) -> Entry:
    """The entry as it is when it has been stored and read again: containers as JSON has them."""
    plain = to_json_type(entry.value)
    source = (str(entry.source[0]), entry.source[1]) if entry.source is not None else None
    return Entry(
        kind=entry.kind,
        name=entry.name,
        value=plain,
        speaker=entry.speaker,
        source=source,
        position=entry.position,
    )
