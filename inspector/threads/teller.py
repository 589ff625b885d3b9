"""Telling: a record's message in English, in the context of its conversation, as the row that is stored.

What a conversation has established is looked up name by name, when it is asked for. It is noted what each telling
asked, and what its record changed (`dependencies`). The answers are kept as digests under a secret, so that nobody can
write a log in which two contexts look alike. A fact stands under the question for it, so that whether a message still
stands as it was told is answered by looking up what its telling asked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from dialects import Context, Entry, Message, Reading, Told, tell, to_json_type, to_shallow_json
from inspector.bounds import MAX_ANSWER_BYTES, fit_answer
from inspector.database import make_storable, write_array
from inspector.intake.models import Record
from inspector.intake.readings import conceal_told, hide_entry
from inspector.keyring.periods import leaves_unindexed

from . import terms
from .dependencies import ALL, DECODER_VERSION, KNOWN, POSITION, SIZE, View, make_question, seal, weigh
from .models import Message as MessageRow
from .models.packed_text import pack_text
from .terms import decide_flags, leave_out_texts, make_atoms, mark_workspace

_MODULUS: Final = 1 << 128
# Who asks more than this asks for too much, and so for everything.
_MAX_QUESTIONS: Final = 24
_write_plain: Final = json.JSONEncoder(separators=(",", ":")).encode


class Established(Context):
    """The context of the messages of a block, before which so many come."""

    def __init__(self, view: View, count_before: int = 0) -> None:
        self._view = view
        self._count_before = count_before
        # By the digest of a question, the digest of its answer, as far as it was looked up or changed.
        self._answers: dict[str, int] = {}
        self._looked_up: set[str] = set()
        # What the block has changed: kinds that it has forgotten, and the names whose meaning is another.
        self._forgotten_here: set[str] = set()
        self._changed: set[tuple[str, str]] = set()
        # Of the record being told: what it changed and asked, and the kinds that it has itself forgotten: what it asks
        # of them next is no answer of the conversation's.
        self._changes: list[list[Any]] = []
        self._asked: dict[str, int] = {}
        self._forgotten: set[str] = set()
        self._position = 1
        # What takes tokens out of what the record establishes.
        self._hide: Callable[[Entry], Entry] | None = None
        # By record id: what stands for a record wherever it is stored.
        self.identities: dict[str, str] = {}
        super().__init__()

    def find(self, kind: str, name: str, *, speaker: str | None = None) -> Entry | None:
        """The entry now in force, or None; with `speaker`, the latest that this speaker made."""
        question = make_question(kind, name)
        self._look_up(question)
        if kind not in self._forgotten:
            self._note(question)
        return super().find(kind, name, speaker=speaker)

    def find_each(self, kind: str, name: str) -> tuple[Entry, ...]:
        """The latest entry of each speaker, the oldest first: the answer to a question is of all of them."""
        self.find(kind, name)
        return super().find_each(kind, name)

    def knows(self, kind: str) -> bool:
        """Whether anything of a kind was ever established."""
        question = make_question(kind, None, KNOWN)
        if kind not in self._forgotten:
            self._note(question)
        return bool(self._answer(question))

    def all_of(self, kind: str) -> dict[str, Entry]:
        """Every entry in force of a kind, by name; those that were established first come first."""
        self._note(ALL)
        blocks: list[list[str]] = []
        for written in self._view.walk(("kind", kind)):
            blocks.insert(0, written["names"])
            if written["forgets"]:
                break
        for name in (name for names in blocks for name in names):
            self._look_up(make_question(kind, name))
        held = self._kinds.get(kind, {})
        order = dict.fromkeys([*(name for names in blocks for name in names), *held])
        return {name: held[name] for name in order if name in held}

    @property
    def size(self) -> int:
        """One where any name is established."""
        self._note(SIZE)
        return self._answer(SIZE)

    @property
    def position(self) -> int:
        """The one-based place of the message being told, in its conversation."""
        self._note(POSITION)
        return self._answer(POSITION)

    @position.setter
    def position(self, value: int) -> None:
        self._position = value

    def _note(self, question: str) -> None:
        if len(self._asked) == _MAX_QUESTIONS:
            self._asked[ALL] = self._answer(ALL)
        if len(self._asked) <= _MAX_QUESTIONS or question == POSITION:
            self._asked.setdefault(question, self._answer(question))

    def expect(self, questions: Iterable[str]) -> None:
        """Look up together what is about to be asked."""
        self._view.expect(("question", each) for each in questions if each not in (ALL, POSITION, SIZE))

    def _answer(self, question: str) -> int:
        if question == POSITION:
            return self._offset() + self._position
        if question == SIZE:
            return int(bool(self._latest) or bool(self._view.get(("any",))))
        if question == ALL:
            written = sum(int(each, 16) for each in self._view.walk(("all",)))
            return (written + self._sum_changed()) % _MODULUS
        self._look_up(question)
        return self._answers.get(question, 0)

    def _offset(self) -> int:
        self._view.note(("count",))
        return self._count_before

    def _sum_changed(self) -> int:
        changed = sum(_name_number(*each) ^ self._answers[make_question(*each)] for each in self._changed)
        return changed + sum(_name_number(kind) for kind in self._forgotten_here)

    def _look_up(self, question: str) -> None:
        """Take what earlier blocks say of a question, once."""
        if question in self._looked_up:
            return
        self._looked_up.add(question)
        written = self._view.get(("question", question))
        if written is None:
            return
        kind, *said = written
        if kind in self._forgotten_here:
            return
        forgotten = self._view.get(("forgotten", kind))
        if forgotten is not None and forgotten > self._view.find_border(("question", question)).hex():
            return
        if said:
            self._restore(kind, *said)
        else:
            self._answers[question] = 1

    def _restore(self, kind: str, name: str, entries: list[list[Any]]) -> None:
        held: dict[str | None, Entry] = {}
        for value, speaker, *more in entries:
            position, record, part, identity = more or (None, None, 0, "")
            held[speaker] = self._read_entry(kind, name, value, speaker, record, part, identity, position)
        self._latest[kind, name] = held
        self._kinds.setdefault(kind, {})[name] = next(reversed(held.values()))
        self._weigh(kind, name)

    def _read_entry(
        self, kind: str, name: str, value: Any, speaker: str | None, record: Any, part: int, identity: str, at: Any
    ) -> Entry:
        if record is not None:
            self.identities[record] = identity
        source = None if record is None else (record, part)
        return Entry(kind=kind, name=name, value=value, speaker=speaker, source=source, position=at)

    def _weigh(self, kind: str, name: str) -> None:
        """Bring the answer up to date that a name is, in the order in which its speakers spoke."""
        held = self._latest[kind, name].values()
        said = [[each.speaker, each.value, each.source, each.position] for each in held]
        self._answers[make_question(kind, name)] = weigh([kind, name, said])

    def add(self, entries: Iterable[Entry]) -> None:
        """Let these hold from here on; a later entry of the same kind and name replaces an earlier one."""
        for entry in entries:
            plain = _make_plain(entry if self._hide is None else self._hide(entry))
            kind, name = plain.kind, plain.name
            # That its dialect is spoken follows from every message; it need not be kept. Everything else is kept, also
            # what holds already: where the record stands elsewhere, it may not.
            if plain.source is not None or kind != "dialect":
                at = plain.position
                place = "here" if at is not None and at == self._offset() + self._position else at
                self._changes.append([kind, name, plain.value, plain.speaker, *self._write_source(plain), place])
            self._look_up(make_question(kind, name))
            held = self._latest.get((kind, name))
            if held and next(reversed(held.values())) == plain:
                continue
            super().add((plain,))
            known = make_question(kind, None, KNOWN)
            self._changed.add((kind, name))
            self._answers[known] = 1
            self._looked_up.add(known)
            self._weigh(kind, name)

    def remove(self, kind: str) -> None:
        """Forget a kind: the dialect's own reset."""
        self._changed = {each for each in self._changed if each[0] != kind}
        self._forgotten_here.add(kind)
        self._changes.append([kind])
        self._forgotten.add(kind)
        for name in self._kinds.get(kind, {}):
            self._answers.pop(make_question(kind, name), None)
        self._answers.pop(make_question(kind, None, KNOWN), None)
        super().remove(kind)

    def _write_source(self, entry: Entry) -> list[Any]:
        record, part = entry.source or (None, 0)
        return [record, part, self.identities.get(str(record), "") if record is not None else ""]

    def begin(self, *, record: str, identity: str, position: int, hide: Callable[[Entry], Entry] | None = None) -> None:
        """Begin to tell a record: nothing has been asked and nothing changed. `identity` stands for it by content,
        `position` is the one-based place of its first message in the block, `hide` takes its tokens out of what it
        establishes."""
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
        answers = tuple(self._asked[name] for name in asked)
        told_in = f"{DECODER_VERSION} {dialect} {','.join(asked)}={seal(answers)}"
        return (f"{told_in}+", _write_plain(changes)) if changes else (told_in, "")

    def allows(self, told_in: str, *, dialect: str, position: int) -> bool:
        """Whether what was told then would be told alike now, in this dialect and with the first message of its record
        at this one-based place in the block."""
        start = f"{DECODER_VERSION} {dialect} "
        if not told_in.startswith(start):
            return False
        asked, _, answers = told_in[len(start) :].rstrip("+").partition("=")
        self._position = position
        return answers == seal(tuple(self._answer(name) for name in asked.split(",") if name))

    def go_through(self, established: str, *, position: int) -> None:
        """Let hold again what a record established when it was told, in the place of telling it anew."""
        self._position = position
        for kind, *rest in json.loads(established):
            if not rest:
                self.remove(kind)
                continue
            name, value, speaker, record, part, identity, at = rest
            # A number is looked up only where an entry says where it was made.
            place = self._offset() + position if at == "here" else at
            self.add([self._read_entry(kind, name, value, speaker, record, part, identity, place)])
        self._changes = []

    def note(self) -> None:
        """Say what the block has established."""
        if self._view.is_only or not (self._changed or self._forgotten_here):
            return
        view = self._view
        kinds: dict[str, list[str]] = {kind: [] for kind in self._forgotten_here}
        for kind, name in sorted(self._changed):
            kinds.setdefault(kind, []).append(name)
            entries = [self._write_entry(each) for each in self._latest[kind, name].values()]
            view.put(("question", make_question(kind, name)), [kind, name, entries])
        for kind, names in kinds.items():
            is_forgotten = kind in self._forgotten_here
            view.put(("kind", kind), {"forgets": is_forgotten, "names": names})
            view.put(("question", make_question(kind, None, KNOWN)), [kind] if names else None)
            if is_forgotten:
                view.put(("forgotten", kind), view.border.hex())
        view.put(("any",), True)
        view.put(("all",), f"{self._sum_changed() % _MODULUS:x}")

    def _write_entry(self, entry: Entry) -> list[Any]:
        if entry.source is None and entry.position is None:
            return [entry.value, entry.speaker]
        return [entry.value, entry.speaker, entry.position, *self._write_source(entry)]


def _name_number(*name: str) -> int:
    """A number that a name is known by, the same in every process."""
    return int(make_question(*name), 16)


def _make_plain(entry: Entry) -> Entry:
    """The entry as it is when it has been stored and read again: containers as JSON has them."""
    source = (str(entry.source[0]), entry.source[1]) if entry.source is not None else None
    return entry.replace(value=to_json_type(entry.value), source=source)


# Made once: `json.dumps` makes a writer for each call. What was read is a tree: nobody need look for circles in it.
_write_json = json.JSONEncoder(
    ensure_ascii=True, separators=(",", ":"), default=to_shallow_json, check_circular=False
).encode

# Searches and lists take no more of a sentence; pages show it from the body.
MAX_SENTENCE: Final = 65_536
# An answer has room for as much again: the fields and the raw text.
MAX_BODY_BYTES: Final = MAX_ANSWER_BYTES // 2
_PIECE: Final = 2**20
_SEVERITY = {"info": 1, "notice": 2, "warning": 3, "error": 4}


class ToldRow(NamedTuple):
    """What telling writes of one message. `digest` is SHA-256 over what is told, whatever ids its sources have. `words`
    and `atoms` are literals of PostgreSQL, of a tsvector and of an array. `rule_flags` are those of the row alone."""

    severity: int
    is_sealed: bool
    english: str
    body: str
    words: str
    atoms: str
    rule_flags: int
    digest: bytes

    def list_told(self) -> tuple[object, ...]:
        """The values of the columns that hold what it is told as, but for the time."""
        body = pack_text(self.body)
        return (self.severity, self.is_sealed, self.english, body, self.words, self.atoms, self.digest)


def _digest_body(body: str, message: Message, identities: Mapping[str, str]) -> bytes:
    """The digest of a told body in which each cited record stands by its content and not by its id."""
    segments = (*message.english, *message.also, *message.gloss)
    for record in {str(segment.source[0]) for segment in segments if segment.source is not None}:
        body = body.replace(record, identities.get(record, record))
    digest = hashlib.sha256(f"{DECODER_VERSION}\n".encode())
    for start in range(0, len(body), _PIECE):  # A body may have a hundred megabytes: no copy of the whole is made.
        digest.update(body[start : start + _PIECE].encode())
    return digest.digest()


def make_body(given: Mapping[str, Any], reading: Reading, told: Told) -> dict[str, Any]:
    """The told message as its body has it: all names that are not absent, and the record's own notes."""
    body = given if "performative" in given else {**given, "performative": None}
    record = {
        "dialect": reading.dialect,
        "version": reading.version,
        "vocabulary": reading.vocabulary,
        "candidates": reading.candidates[:4],
        "footer": dict(reading.footer) if reading.footer else None,
        "from_envelope": reading.from_envelope,
        "notes": (*reading.notes, *told.notes),
        "decoder": DECODER_VERSION,
    }
    return {"message": body, "record": record}


def shorten_body(whole: Mapping[str, Any]) -> str:
    """The JSON text of a told body that is over the budget, with the beginnings of its texts and lists. What was left
    out stands in `cut`, and a sentence that was shortened ends with how much of it is not told. The digest of the
    message is made of the whole."""
    shown: dict[str, Any] = fit_answer(whole, MAX_BODY_BYTES)
    segments, told = shown["message"].get("english", []), whole["message"].get("english", ())
    left = sum(len(each.text) for each in told) - sum(len(each["text"]) for each in segments)
    if left:
        segments.append({"text": f" … and {left:,} more characters that are not told here.", "basis": "unknown"})
    return _write_json(shown)


def shorten_sentence(sentence: str) -> str:
    """A sentence as lists and searches have it: of a long one the beginning."""
    left = len(sentence) - MAX_SENTENCE
    return sentence if left <= 0 else f"{sentence[:MAX_SENTENCE]} … and {left:,} more characters"


def _make_row(
    message: Message, read: Message, record: Record, reading: Reading, told: Told, identities: Mapping[str, str]
) -> ToldRow:
    """The row of a message as told and as read; `identities` stand for the records that definitions come from."""
    notes = (*message.notes, *((*reading.notes, *told.notes) if message.part == 1 else ()))
    sentence, given = message.sentence, message.given()
    names = [message.sender, *message.receivers, message.topic, message.native_act, message.conversation_id]
    ids = [message.message_id, message.trace_id, message.task_id]
    texts = [sentence, *(segment.text for segment in message.also), *filter(None, (*names, *ids))]
    whole = make_body(given, reading, told)
    body = _write_json(whole)  # Canonical, and ASCII.
    severity = max((_SEVERITY[note.severity] for note in notes), default=0)
    atoms = make_atoms(reading, message, texts, given)
    mark = mark_workspace(record.workspace_id)
    # Of a sealed record a workspace can have no text in the index of search, which is in clear.
    is_unindexed = record.sealed_with_id is not None and leaves_unindexed(record.workspace_id)
    indexed = leave_out_texts(atoms) if is_unindexed else atoms
    return ToldRow(
        severity=severity,
        is_sealed=message.security.encrypted and not message.security.opened,
        english=make_storable(shorten_sentence(sentence)),
        body=body if len(body) <= MAX_BODY_BYTES else shorten_body(whole),
        words=make_storable(terms.write_vector(() if is_unindexed else texts, mark)),
        atoms=make_storable(write_array([mark + atom for atom in indexed])),
        rule_flags=decide_flags(record=record, read=read, severity=severity, english=sentence, atoms=atoms),
        digest=_digest_body(body, message, identities),
    )


class Telling(NamedTuple):
    """A record told: what was asked of its context, what it established there, and the row of each part."""

    told_in: str
    established: str
    rows: Mapping[int, ToldRow]


# By whose reading it is not told yet: what an earlier decoder has read is read anew.
NOT_TOLD = Telling(f"{DECODER_VERSION} ", "", {})


def tell_record(
    record: Record, reading: Reading, context: Established, *, position: int, is_alone: bool = False
) -> Telling:
    """Tell a record, read in the dialect that its conversation decides for it, in the context of what holds before it,
    and add to that what it establishes; `position` is the one-based place of its first message. Of one that is told
    alone, `NOT_TOLD` where anything that it asks may make a difference."""
    hide = partial(hide_entry, reading)
    context.begin(record=str(record.pk), identity=bytes(record.identity).hex(), position=position, hide=hide)
    # The dialect was decided by the order key; told in turns, a guess must not be guessed again.
    decided = reading.replace(candidates=())
    told = conceal_told(tell(decided, context), decided)
    if is_alone and (context.has_answered or told.entries):
        return NOT_TOLD
    read, ids = {message.part: message for message in reading.messages}, context.identities
    rows = {each.part: _make_row(each, read.get(each.part, each), record, reading, told, ids) for each in told.messages}
    return Telling(*context.end(reading.dialect), rows)


def tell_without_context(record: Record, reading: Reading) -> Telling:
    """Tell a record before its conversation is known."""
    context = Established(View())
    if reading.dialect != "prose":
        context.add([Entry(kind="dialect", name=reading.dialect, value=reading.dialect)])
    return tell_record(record, reading, context, position=1, is_alone=True)


def severity_of(reading: Reading, message: Message) -> int:
    """The gravest note of a message, as a number of `Message.Severity`, before it is told."""
    notes = (*message.notes, *(reading.notes if message.part == 1 else ()))
    return max((_SEVERITY[note.severity] for note in notes), default=MessageRow.Severity.NONE)
