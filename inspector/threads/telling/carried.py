"""The context of a conversation as it is carried over its end, and gone on with there.

Of each kind of entries the latest are carried: no more than some hundreds, however many were ever established. The
others stand on the shelf of the conversation (`shelves`), from where they are fetched by the questions that they
answer. So are those that are changed, for the answer about a whole kind is a sum over its names: to add to it, what a
name stood for until then has to be known. That a question finds nothing on the shelf proves that there is nothing.
"""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from typing import Any, Final

from dialects import Entry

from ..reads import Key
from ..uncertainty import UncertainError
from .contexts import ALL, KNOWN, SIZE, TrackedContext, make_question, name_secret
from .shelves import Shelf, ShelvedRow

# Of a kind of which more than this is to be carried, half as much is carried on, and the rest goes on the shelf.
MOST_NAMES: Final = 400
MOST_CHARACTERS: Final = 16 * 1024

Carried = dict[str, Any]
_Name = tuple[str, str]
_write = json.JSONEncoder(separators=(",", ":")).encode


class CarriedContext(TrackedContext):
    """A context of which a part may be on the shelf of its conversation. What is asked for is fetched from there."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._shelf: Shelf | None = None
        # By kind of which names are on the shelf: from which place on its rows hold.
        self._since: dict[str, bytes] = {}
        # Questions that the shelf does not answer.
        self._absent: set[str] = set()
        # The names that are not on the shelf as they stand, those that changed last at the end.
        self._fresh: dict[_Name, None] = {}
        self._shelved: list[ShelvedRow] = []
        super().__init__(entries)

    @property
    def started(self) -> bytes:
        """The place where it was gone on with; none where it is known from the beginning."""
        return self._shelf.border if self._shelf is not None else b""

    @property
    def has_shelved(self) -> bool:
        """Whether there is something to be put on the shelf."""
        return bool(self._shelved)

    # What is asked and changed, fetched before.

    def find(self, kind: str, name: str, *, speaker: str | None = None) -> Entry | None:
        """The entry now in force, or None; with `speaker`, the latest that this speaker made."""
        self._look_for(kind, name)
        return super().find(kind, name, speaker=speaker)

    def all_of(self, kind: str) -> dict[str, Entry]:
        """Every entry in force of a kind, by name, in the order in which the names were first established."""
        if len(self._kinds.get(kind, ())) < self._counts.get(kind, 0):
            self._fetch_all(kind)
        entries = super().all_of(kind)
        return dict(sorted(entries.items(), key=lambda item: self._ranks[kind, item[0]]))

    def remove(self, kind: str) -> None:
        """Forget a kind: the dialect's own reset."""
        for name in self._kinds.get(kind, ()):
            self._fresh.pop((kind, name), None)
        self._since.pop(kind, None)
        super().remove(kind)

    def expect(self, questions: Iterable[str]) -> None:
        """Fetch what answers these questions together: they are about to be asked."""
        self._fetch(each for each in questions if each != ALL)

    def _find_answer(self, question: str) -> int:
        self._fetch((question,))
        return super()._find_answer(question)

    def _find_held(self, kind: str, name: str) -> dict[str | None, Entry] | None:
        self._look_for(kind, name)
        return super()._find_held(kind, name)

    def _weigh(self, kind: str, name: str) -> None:
        super()._weigh(kind, name)
        self._fresh.pop((kind, name), None)
        self._fresh[kind, name] = None

    def list_differences(self, other: CarriedContext) -> set[Key]:
        """The questions that this and another one answer otherwise; both were resumed alike, and neither was written.

        Raises:
            UncertainError: where one of them has forgotten what was on the shelf.
        """
        if self._since != other._since:
            raise UncertainError
        names = [make_question(kind, name) for kind, name in self._fresh.keys() | other._fresh.keys()]
        for each in (self, other):
            each.expect(names)
        kinds = self._counts.keys() | other._counts.keys()
        wholes = {make_question(kind) for kind in kinds}
        asked = {*names, *wholes, *(make_question(kind, None, KNOWN) for kind in kinds)}
        differing = {each for each in asked if self._find_answer(each) != other._find_answer(each)}
        if not wholes.isdisjoint(differing):
            differing.add(ALL)
        if bool(self._counts) != bool(other._counts):
            differing.add(SIZE)
        return {("context", question) for question in differing}

    # The shelf.

    def list_shelved_kinds(self) -> Set[str]:
        """The kinds of which whoever asks for a name that is not carried asks the shelf."""
        return self._since.keys()

    def list_new(self, other: CarriedContext, kinds: Set[str], since: bytes) -> list[ShelvedRow]:
        """The names of these kinds that stand here and not in another one that was resumed alike, for the shelf.

        Args:
            other: the other one.
            kinds: of the names.
            since: the place from which they are to hold.
        """
        new = [(kind, name) for kind, name in self._fresh if kind in kinds]
        return [
            _make_shelved(kind, self._write_name(kind, name), since)
            for kind, name in new
            if not other._find_answer(make_question(kind, name))
        ]

    def miss(self, questions: Set[str]) -> None:
        """Let these find nothing on the shelf: it answers them, and was not always able to."""
        self._absent |= questions

    def _look_for(self, kind: str, name: str) -> None:
        if not self._since:
            return
        question = make_question(kind, name)
        if kind in self._since:
            self._fetch((question,))
        else:
            self._absent.add(question)

    def _fetch(self, questions: Iterable[str]) -> None:
        """Take from the shelf what answers these questions, where it is not known yet."""
        if not self._since or self._shelf is None:
            return
        wanted = {each for each in questions if each not in self._answers and each not in self._absent}
        if not wanted:
            return
        self._absent |= wanted
        for kind, since, said in self._shelf.find(wanted):
            # What a kind stood for before it was forgotten stays on the shelf, and holds no more.
            if kind in self._since and since >= self._since[kind]:
                self._restore(kind, *said)

    def _fetch_all(self, kind: str) -> None:
        for each, since, said in self._shelf.find_all() if self._shelf is not None else ():
            is_held = each == kind and kind in self._since and since >= self._since[kind]
            if is_held and (kind, said[0]) not in self._latest:
                self._restore(kind, *said)
        if len(self._kinds[kind]) != self._counts[kind]:
            raise UncertainError

    # What is carried, and what is put on the shelf.

    def write(self, border: bytes) -> Carried:
        """What is carried over the end of a conversation, as JSON takes it; the rest is for `take_shelved`.

        Args:
            border: the place that the next message has at least.
        """
        carried: dict[str, list[list[Any]]] = defaultdict(list)
        for kind, name in self._fresh:
            carried[kind].append(self._write_name(kind, name))
        for kind, names in carried.items():
            if len(names) > MOST_NAMES or len(_write(names)) > MOST_CHARACTERS:
                self._put_aside(kind, names, border)
        kinds = {
            kind: [number, self._answers[make_question(kind)], self._write_since(kind), carried.get(kind, [])]
            for kind, number in self._counts.items()
        }
        return {"secret": name_secret(), "border": border.hex(), "kinds": kinds}

    def _write_since(self, kind: str) -> str | None:
        since = self._since.get(kind)
        return None if since is None else since.hex()

    def take_shelved(self) -> list[ShelvedRow]:
        """What is to be put on the shelf."""
        shelved, self._shelved = self._shelved, []
        return shelved

    @classmethod
    def resume(cls, written: Carried, conversation_id: uuid.UUID) -> CarriedContext:
        """The context that `write` wrote.

        Raises:
            UncertainError: if its digests were made under another secret.
        """
        if written["secret"] != name_secret():
            raise UncertainError
        context = cls()
        context._shelf = Shelf(conversation_id, bytes.fromhex(written["border"]))
        for kind, (number, total, since, names) in written["kinds"].items():
            context._counts[kind], context._kinds[kind] = number, {}
            context._answers |= {make_question(kind): total, make_question(kind, None, KNOWN): 1}
            if since is not None:
                context._since[kind] = bytes.fromhex(since)
            for said in names:
                context._restore(kind, *said)
                context._fresh[kind, said[0]] = None
        return context

    def _put_aside(self, kind: str, names: list[list[Any]], border: bytes) -> None:
        """Leave the latest of these names, and note the others for the shelf."""
        left = characters = 0
        for said in reversed(names):
            characters += len(_write(said))
            if left >= MOST_NAMES // 2 or characters > MOST_CHARACTERS // 2:
                break
            left += 1
        aside = len(names) - left
        for said in names[:aside]:
            self._shelved.append(_make_shelved(kind, said, border))
            del self._fresh[kind, said[0]]
        del names[:aside]
        self._since.setdefault(kind, border)

    def _write_name(self, kind: str, name: str) -> list[Any]:
        """A name as `_restore` takes it: itself, as the how manieth of its kind it came, and what each speaker said."""
        return [name, self._ranks[kind, name], [self._write_entry(each) for each in self._latest[kind, name].values()]]

    def _write_entry(self, entry: Entry) -> list[Any]:
        if entry.source is None and entry.position is None:
            return [entry.value, entry.speaker]
        record, part = entry.source or (None, 0)
        identity = self.identities.get(str(record), "") if record is not None else ""
        return [entry.value, entry.speaker, entry.position, record, part, identity]

    def _restore(self, kind: str, name: str, rank: int, entries: list[list[Any]]) -> None:
        held = {}
        for value, speaker, *more in entries:
            position, record, part, identity = more or (None, None, 0, "")
            if record is not None:
                self.identities[record] = identity
            source = None if record is None else (record, part)
            held[speaker] = Entry(kind=kind, name=name, value=value, speaker=speaker, source=source, position=position)
        self._latest[kind, name] = held
        self._kinds[kind][name] = next(reversed(held.values()))
        self._ranks[kind, name] = rank
        self._weigh_name(kind, name)


def _make_shelved(kind: str, said: Sequence[Any], since: bytes) -> ShelvedRow:
    return make_question(kind, said[0]), since, _write([kind, *said])
