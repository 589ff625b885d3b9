"""What a message is found by: the terms of search, and flags for the rules.

Terms are words with their places, exact terms, and the spans of time in which a message lies. PostgreSQL's own parser
drops emoji and punctuation and depends on the locale, so words are cut here, on Unicode's rules, and handed over as a
finished tsvector. By the spans beside the words the index finds the newest messages of a word without looking at the
others, and by the sample it tells when to look for them.

Rule flags are bits of the row: what a message shows that a rule may have to look at; most show nothing and are not
read. What a row says by itself is decided when it is told; what it takes others to see (`nodes`) is added when it
is placed. A bit says where to look, and not that anything is found there: it may stay where what it said has gone, and
may never be missing. What placing remarks on (an id that was not received, a circle) is in columns of its own.
"""

from __future__ import annotations

import base64
import re
import unicodedata
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from enum import IntFlag
from functools import lru_cache
from typing import Any, Final

from django.contrib.postgres.fields import ArrayField
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Func, Q, TextField
from django.db.models.sql.compiler import SQLCompiler

from dialects import Message, Reading
from inspector.characters import has_deceptive, has_unseen
from inspector.intake.models import Record
from inspector.tokens import find_orders, is_result, may_state

INDEXED_CHARACTERS: Final = 200_000
_MAX_WORD: Final = 400
_MAX_PLACES: Final = 16_000
_MAX_PLACES_OF_WORD: Final = 250
# A tsvector has at most 1 MiB of lexemes with their places; what lies beyond is not found by words.
_MAX_VECTOR_BYTES: Final = 900_000
_WORD: Final = re.compile(r"\w+")
_HUMPS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_+|(?<=[a-zA-Z])(?=\d)")
_ASCII_GLYPHS: Final = frozenset("$+<=>^`|~")
_GLYPH_CATEGORIES: Final = frozenset({"So", "Sm", "Sk", "Sc"})


def fold(word: str) -> str:
    """A word as it is compared: compatibility forms and case folded."""
    if word.isascii():
        return word.lower()[:_MAX_WORD]
    return unicodedata.normalize("NFKC", word).casefold()[:_MAX_WORD]


# The lexemes of short words: a dictionary of our own, because a call for each word of a log is what costs.
_lexemes: Final[dict[str, tuple[str, ...]]] = {}
_MAX_LEXEMES: Final = 8_192
_LONG_WORD: Final = 40


def _find_lexemes(word: str) -> tuple[str, ...]:
    """A word as it is compared and its parts, where it has several, quoted: `refactorAuth` is found by each."""
    parts = [] if word.isalpha() and word.islower() else [part for part in _HUMPS.split(word) if part]
    forms = [word, *parts] if len(parts) > 1 else [word]
    lexemes = tuple(dict.fromkeys(quote_lexeme(fold(form)) for form in forms))
    if len(word) < _LONG_WORD:
        if len(_lexemes) >= _MAX_LEXEMES:
            _lexemes.clear()
        _lexemes[word] = lexemes
    return lexemes


def find_words(text: str) -> list[str]:
    """The words of a text as they stand in it, without their parts."""
    return _WORD.findall(text[:INDEXED_CHARACTERS])


def quote_lexeme(word: str) -> str:
    """A word as a quoted lexeme of a tsvector or tsquery literal."""
    if not word.isalnum():
        word = word.replace("\\", "\\\\").replace("'", "''").replace("\x00", "\u2400")
    return f"'{word}'"


def write_vector(texts: Iterable[str], mark: str) -> str:
    """A tsvector literal of the texts' words with their places; each word begins with the mark of the workspace."""
    places: dict[str, list[str]] = {}
    known, start = _lexemes, f"'{mark}"
    at = size = 0
    for text in texts:
        for word in find_words(text):
            at += 1
            for lexeme in known.get(word) or _find_lexemes(word):
                where = places.get(lexeme)
                if where is None:
                    size += len(mark) + len(lexeme.encode()) + 2
                if size > _MAX_VECTOR_BYTES:
                    break
                if where is None:
                    where = places[lexeme] = []
                if at < _MAX_PLACES and len(where) < _MAX_PLACES_OF_WORD:
                    where.append(str(at))
                    size += 2
        at += 1  # No phrase reaches from one text into the next.
    return " ".join([start + lexeme[1:] + (f":{','.join(where)}" if where else "") for lexeme, where in places.items()])


def find_glyphs(*texts: str) -> set[str]:
    """The emoji, symbols and ideographs of these texts, each findable on its own."""
    found: set[str] = set()
    for text in texts:
        text = text[:INDEXED_CHARACTERS]
        if text.isascii():
            found |= _ASCII_GLYPHS.intersection(text)
        else:
            found.update(sign for sign in set(text) if is_glyph(sign))
    return found


@lru_cache(maxsize=8192)
def is_glyph(sign: str) -> bool:
    """Whether a character means something by itself: a symbol, or a letter of a script written without spaces."""
    if sign.isascii():
        return sign in _ASCII_GLYPHS
    category = unicodedata.category(sign)
    return category in _GLYPH_CATEGORIES or (category == "Lo" and unicodedata.east_asian_width(sign) in "WF")


# What the messages of a log say is much the same, but for their ids.
@lru_cache(maxsize=4096)
def _find_term(name: str, text: str) -> str:
    return f"{name}={fold(text)}".replace("\x00", "\u2400")


def term(name: str, value: object) -> str:
    """An exact term: a name of the record and one of its values, folded and bounded."""
    text = str(value)
    return (_find_term if len(text) < _LONG_WORD else _find_term.__wrapped__)(name, text)


# The characters with which each word and each exact term of a workspace begins, in the rows and in the indexes. A word
# that is common elsewhere costs nobody time, so that no search tells how often strangers use it: the workspace is part
# of each entry of the indexes of search, and not one more condition beside it.
MARK_CHARACTERS: Final = 4


def mark_workspace(workspace_id: uuid.UUID) -> str:
    """The last three bytes of a workspace's id in base 64. Two workspaces may have the same: the query set's own filter
    decides."""
    return base64.b64encode(workspace_id.bytes[13:]).decode()


# A message of many values has its first ones in the index; all of them stand on its page.
MAX_VALUES: Final = 120
MAX_VALUE_CHARACTERS: Final = 120
MAX_DEPTH: Final = 4

# Names that stand in the index under a name of their own, and those that are no fact but a way of telling.
_SINGLE: Final = ("sender", "native_act", "conversation_id", "trace_id", "task_id", "message_id", "topic", "status")
_MORE: Final = (
    *("object_id", "parent_id", "parent_task_id", "correlation_id", "result_id", "delegation", "frame"),
    *("turn", "run", "progress", "score"),
)
_LISTS: Final = {"modifiers": "modifier", "capabilities": "capability", "path": "path"}
# Names whose presence alone is worth asking for.
PRESENT: Final = (
    *("deadline", "schedule", "condition", "error", "progress", "priority", "score", "parent_id", "content"),
    "references",
)


def make_atoms(reading: Reading, message: Message, texts: Sequence[str], given: Mapping[str, Any]) -> list[str]:
    """The exact terms of a message as told, in order. `texts` are what its words are taken from, whose glyphs are terms
    too, `given` its names that are not absent."""
    found = {term("dialect", message.dialect or reading.dialect)}
    if message.dialect:
        found.add(term("carrier", reading.dialect))
    found.add(term("performative", message.performative or "malformed"))
    for name in _SINGLE:
        value = getattr(message, name)
        if value not in (None, ""):
            found.add(term(name, value))
    found.update(term("receiver", name) for name in message.receivers)
    if message.broadcast:
        found.add(term("receiver", "*"))
    for count, (name, value) in enumerate(_list_more(reading, message, given)):
        if count == MAX_VALUES:
            break
        found.add(term(name, value if len(value) <= MAX_VALUE_CHARACTERS else value[:MAX_VALUE_CHARACTERS]))
    found.update(f"glyph={glyph}" for glyph in find_glyphs(reading.wire, *texts))
    return sorted(found)


def leave_out_texts(atoms: Iterable[str]) -> list[str]:
    """The exact terms without what a message's texts say: without its glyphs and the values of its content."""
    return [atom for atom in atoms if not atom.startswith(("glyph=", "attributes.", "content."))]


def _list_more(reading: Reading, message: Message, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in PRESENT:
        if name in given:
            yield "has", name
    for name, value in (("version", reading.version), ("vocabulary", reading.vocabulary)):
        if value:
            yield name, value
    for name in _MORE:
        if name in given:
            yield name, write_value(given[name])
    for name, atom in _LISTS.items():
        for value in given.get(name, ()):
            yield atom, str(value)
    # Who is asked for a tool finds a message within which it is called, too.
    for each in message.nested:
        yield from flatten("attributes.tool", each.get("attributes", {}).get("tool"))
    yield from _list_groups(message, given)
    notes = (*message.notes, *(reading.notes if message.part == 1 else ()))
    for note in {note.code: note for note in notes}.values():
        yield "note", note.code
        yield "group", note.group
    for name in ("attributes", "content"):
        if isinstance(given.get(name), Mapping):
            yield from flatten(name, given[name])


def _list_groups(message: Message, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The names that hold a value of several names each."""
    if message.target is not None:
        yield "target", message.target.name
    if message.priority is not None:
        yield "priority", write_value(message.priority.raw if message.priority.rank is None else message.priority.rank)
    if message.error is not None:
        for name in ("code", "retryable", "cause"):
            value = getattr(message.error, name)
            if value is not None:
                yield f"error.{name}", write_value(value)
    for definition in message.defines:
        yield "defines", definition.name
    for reference in message.references:
        if reference.ref:
            yield "reference", reference.ref
    if "security" in given:
        for name in ("encrypted", "opened", "session", "verified"):
            value = getattr(message.security, name)
            if value not in (None, False):
                yield f"security.{name}", write_value(value)
        for claim in message.security.claims:
            yield "security.claim", claim


def write_value(value: Any) -> str:
    """A value as it is compared: JSON's words for truth, numbers without a fraction of zero."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def flatten(name: str, value: Any) -> Iterable[tuple[str, str]]:
    """The single values below a name, each with its path: `attributes.det`, `content.items`."""
    stack: list[tuple[str, Any, int]] = [(name, value, 0)]
    while stack:
        path, held, depth = stack.pop()
        if isinstance(held, Mapping):
            if depth < MAX_DEPTH:
                stack.extend((f"{path}.{inner}", each, depth + 1) for inner, each in reversed(list(held.items())))
        elif isinstance(held, (list, tuple)):
            if depth < MAX_DEPTH:
                stack.extend((path, each, depth + 1) for each in reversed(held))
        elif held is not None and held != "" and len(path) <= MAX_VALUE_CHARACTERS:
            yield path, write_value(held)


# So many last bits of the number of seconds since 1970 say nothing in which span of a size one lies.
SIZES: Final = (7, 13, 19, 25)
# One message of so many is in the sample: those whose ids, which are random at their end, end with so many zero bits.
SAMPLED: Final = 512
SAMPLE: Final = "sample"


class Spans(Func):
    """The entries of a message: of each size the span in which it lies, and whether it is in the sample."""

    output_field = ArrayField(TextField())

    def __init__(self) -> None:
        super().__init__(F("workspace_id"), F("order_time"), F("id"))

    def as_sql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, *given: Any, **more: Any
    ) -> tuple[str, tuple[()]]:
        """An array that is the same for a row whoever asks: an index takes no other."""
        workspace, moment, own = (compiler.compile(each)[0] for each in self.get_source_expressions())
        mark = f"ENCODE(SUBSTRING(UUID_SEND({workspace}) FROM 14), 'base64')"
        second = f"FLOOR(EXTRACT(EPOCH FROM {moment} AT TIME ZONE 'UTC'))::bigint"
        spans = ", ".join(f"{mark} || '{bits}:' || ({second} >> {bits})" for bits in SIZES)
        end = f"SUBSTRING(UUID_SEND({own}) FROM 13)"
        return (
            f"ARRAY[{spans}] || CASE WHEN {end} < '\\x{2**32 // SAMPLED:08x}'::bytea"
            f" THEN ARRAY[{mark} || '{SAMPLE}'] ELSE '{{}}'::text[] END",
            (),
        )


# A clock may be off by so much before an auditor wants to know.
CLOCK_SKEW: Final = timedelta(minutes=5)
# From this severity on a note is looked at.
MIN_SEVERITY: Final = 2
# Under which kinds a decoder says what was offered and agreed of sessions, as its entries are stored.
OF_SESSIONS: Final = ("handshake", "session")
# Under which it says which key an agent showed as its own, by the name that the key had.
OF_KEYS: Final = {"pubkey": "public-key", "fingerprint": "fingerprint"}
_STARTS_OF_SESSIONS: Final = tuple(f'["{kind}",' for kind in (*OF_SESSIONS, *OF_KEYS.values()))

_SEALED: Final = term("security.encrypted", "true")

_LEANING: Final = frozenset({term("has", "references"), term("has", "condition")})


class RuleFlag(IntFlag):
    """What a message shows; a column of 16 bits holds them."""

    # It has been decided what its row shows.
    DECIDED = 1
    # Its decoder noted something of at least `MIN_SEVERITY`.
    NOTED = 1 << 1
    # It leans on a context, or on a condition.
    LEANING = 1 << 2
    FAILED = 1 << 3
    SEALED = 1 << 4
    # Its record established something of a session, or a key of its sender.
    AGREEING = 1 << 5
    # Its sentence or its sender holds signs that deceive.
    WRITTEN = 1 << 6
    # Its time is later than the moment at which it was received.
    FUTURE = 1 << 7
    # Another record of its conversation bears its id.
    DOUBLE = 1 << 8
    # It answers what is later than itself.
    EARLY = 1 << 9
    # It came by a key whose agents have other names than its sender.
    STRANGE = 1 << 10
    # It accepts or evaluates something.
    JUDGING = 1 << 11
    # It is what a tool gave back, and tells its reader what to do.
    ORDERING = 1 << 12
    # It is what a tool gave back, and states a value that a claim may contradict.
    STATING = 1 << 13
    # Its number or its turn was its sender's before, for other content.
    REUSED = 1 << 14


# The acts that judge what somebody did or proposed.
JUDGEMENTS: Final = ("accept", "evaluate")
# Placed with a remark, or citing what was not received.
ODD: Final = (
    Q(parent_key__isnull=False, parent__isnull=True)
    | Q(parent_why__contains="circle")
    | Q(parent_why__startswith="it names itself")
)
# The rows that show something: what the index of flags holds.
FLAGGED: Final = ~Q(sights=RuleFlag.DECIDED.value) | ODD


def decide_flags(*, record: Record, read: Message, severity: int, english: str = "", atoms: Sequence[str] = ()) -> int:
    """What a row shows by itself, but for what its record established. `read` is the message before it was told: its
    act and its sender are those of the row. `english` and `atoms` are its sentence and exact terms, where it has been
    told."""
    flags = RuleFlag.DECIDED.value
    if severity >= MIN_SEVERITY:
        flags |= RuleFlag.NOTED.value
    if read.performative == "failure":
        flags |= RuleFlag.FAILED.value
    if read.performative in JUDGEMENTS:
        flags |= RuleFlag.JUDGING.value
    if not _LEANING.isdisjoint(atoms):
        flags |= RuleFlag.LEANING.value
    if _SEALED in atoms:
        flags |= RuleFlag.SEALED.value
    if has_deceptive(english) or has_unseen(read.sender or ""):
        flags |= RuleFlag.WRITTEN.value
    if english and is_result(read.performative, read.native_act):
        if next(find_orders(english), None) is not None:
            flags |= RuleFlag.ORDERING.value
        if may_state(english):
            flags |= RuleFlag.STATING.value
    if record.order_basis != "receipt" and record.order_time > record.created_at + CLOCK_SKEW:
        flags |= RuleFlag.FUTURE.value
    return flags


def decide_established(established: str) -> int:
    """What a row shows by what its record established, as it is stored."""
    return RuleFlag.AGREEING.value if any(start in established for start in _STARTS_OF_SESSIONS) else 0
