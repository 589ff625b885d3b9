"""What a dialect is: one frozen object that a dialect's module ends with, holding its tables and functions; the
registry of all of them, each found by its module; and the ranking of a text by all of them.

Every module or package beside this one whose name has no leading underscore is a dialect's home and must end with
`DIALECT = Dialect(...)` under its own name. Another package brings dialects by entry points of the group `dialects`:
each is named by its slug and names the object. A missing or repeated declaration stops the start.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from typing import Literal, Protocol

from ._context import Context, Keys
from ._errors import RegistryError, UnknownDialectError
from ._json import is_json
from ._record import Candidate, Encoded, Envelope, Identity, Message, NoteKind, Reading, Told
from ._value import Value

# Which earlier message a reply answers. The threads look it up; a dialect only says which question to ask.
Whom = Literal[
    "message-id",  # the message whose id is `value`, in the conversation, else the trace, else the channel
    "correlation-id",  # the statement whose correlation id, object id or message id is `value`
    "request-elsewhere",  # the request of that correlation id, of the same source, that names no conversation
    "latest-to-me",  # the latest earlier turn whose receiver is this sender and which shares the task
    "latest-of-other",  # the latest message of another sender, said to this one or to nobody by name
    "latest-unanswered-of-other",  # the latest such statement in the same dialect that nothing has answered yet
    "previous",  # the message before this one: it follows, and is never drawn as an answer
]


class Reply(Value):
    """One way to find the message that a message answers; tried in the order given."""

    whom: Whom
    basis: Literal["explicit", "correlation", "turn", "adjacency"]
    why: str
    value: str | None = None


class Term(Value):
    """One row of a dialect's glossary: an act, field, code or atom with its plain-English meaning."""

    kind: str
    code: str
    name: str
    meaning: str
    cites: str | None = None


class Block(Protocol):
    """A record that may span several lines of a text log, fed line by line after its first.

    Attributes:
        is_complete: whether the lines taken so far are a whole record.
        lines_if_cut: how many lines the record has when the log ends, or another record opens, before it is
            complete; None for all that were taken.
    """

    is_complete: bool
    lines_if_cut: int | None

    def feed(self, line: str) -> Literal["more", "last", "not"]:
        """Whether this next line belongs to the record and more may follow, ends it, or is not part of it."""
        ...


def no_block(line: str) -> Block | None:
    """The answer of a dialect whose records never span lines."""
    return None


def no_reply(message: Message) -> Sequence[Reply]:
    """The answer of a dialect whose messages cite nothing but their explicit parent."""
    if message.parent_id is None:
        return ()
    return (Reply(whom="message-id", basis="explicit", why="it names its parent", value=message.parent_id),)


def always(wire: str) -> bool:
    """The answer of a dialect that has not looked: every wire may."""
    return True


def never(wire: str) -> bool:
    """The answer of a dialect of which no wire does."""
    return False


def no_key(shown: str, written: str) -> tuple[str, str]:
    """The answer of a dialect in which no keys are shown."""
    return shown, written


def no_number(message: Message) -> bool:
    """The answer of a dialect whose messages bear no number beside their id."""
    return False


class Dialect(Value):
    """Everything the rest of the product knows of a dialect.

    `slug` is its file name, its vector file's name, its part of a URL and its value in the database.
    `sniff` scores a text from 0 to 1 and says why, or returns None; it looks at no more than it must.
    `identify` finds conversation, id and time where the wire carries them, cheaply.
    `read`, `identify` and `tell` never raise, whatever the text; `encode` raises `EncodeError` alone.
    `masks` says cheaply whether `read` may mask characters of a wire by itself, and `packs` whether it may unpack a
    layer from it. Neither may say no where it does: whoever asks shows the wire without reading it.
    `opens` says whether a line opens a block of several lines; `replies` names the ways to the parent; `numbers` says
    whether the object id of a message is its own number, which names that one statement in the answer to it.
    `has_objects` where a message may be an object of JSON: no other dialect is looked for in one.
    `is_carrier` where its messages hold texts that are read in turn; such a dialect is read and never written.
    `agents` are the names that agents bear by convention, by their name on the wire: a label for people and no more.
    `key_names` are the names of a message's content under which its sender shows a key of its own; of a name and a key
    `say_key` says what that is called, and how it is told from others.
    `topics_are_tasks` where the topic of a message names its task, so that an answer has that of its request.
    `orders_by_turn` where the turn of a message orders it within its conversation, before its time does.
    `asks_what_waits` where `replies` may ask for the `latest-unanswered-of-other`: what waits is kept for it alone.
    `numbers_agents` where its parties are numbers, which the log around a message may have names for.
    `has_own_words` where the content of a message is in words of the dialect, whose meaning its English alone tells.
    `names_conversations_late` where the answer to a message may be the first to name their conversation: neither can
    then be said to be without the other.
    `nouns` are what a message is called where another speaks of it, by its act, where its performative says too much.
    """

    slug: str
    title: str
    summary: str
    specification: str
    sniff: Callable[[str], Candidate | None]
    identify: Callable[[str], Identity]
    read: Callable[[str, Envelope | None], Reading]
    tell: Callable[[Reading, Context, Keys], Told]
    encode: Callable[[Sequence[Message]], Encoded]
    versions: tuple[str, ...] = ()
    # A plain function as a default would be read from the class as a method.
    replies: Callable[[Message], Sequence[Reply]] = staticmethod(no_reply)
    numbers: Callable[[Message], bool] = staticmethod(no_number)
    opens: Callable[[str], Block | None] = staticmethod(no_block)
    masks: Callable[[str], bool] = staticmethod(always)
    packs: Callable[[str], bool] = staticmethod(always)
    orders_by_turn: bool = False
    asks_what_waits: bool = False
    has_objects: bool = False
    is_carrier: bool = False
    topics_are_tasks: bool = False
    numbers_agents: bool = False
    has_own_words: bool = False
    names_conversations_late: bool = False
    notes: tuple[NoteKind, ...] = ()
    glossary: tuple[Term, ...] = ()
    agents: Mapping[str, str] = {}
    key_names: tuple[str, ...] = ()
    say_key: Callable[[str, str], tuple[str, str]] = staticmethod(no_key)
    nouns: Mapping[str, str] = {}
    # What a detector should try first costs least; ties in score go to the dialect with the lower rank.
    rank: int = 10


@cache
def all_dialects() -> tuple[Dialect, ...]:
    """Every dialect, in the order of its rank and slug; prose is last."""
    package = __name__.rpartition(".")[0]
    home = import_module(package)
    found: dict[str, Dialect] = {}
    for module in iter_modules(home.__path__):
        if not module.name.startswith("_"):
            declared = getattr(import_module(f"{package}.{module.name}"), "DIALECT", None)
            found[module.name] = _check(declared, module.name, f"{package}.{module.name}")
    for point in list_installed("dialects"):
        if point.name in found:
            raise RegistryError(f"{point.value} calls itself {point.name!r}, which there is already")
        found[point.name] = _check(point.load(), point.name, point.value)
    return tuple(sorted(found.values(), key=lambda dialect: (dialect.rank, dialect.slug)))


def _check(declared: object, name: str, home: str) -> Dialect:
    if not isinstance(declared, Dialect):
        raise RegistryError(f"{home} declares no DIALECT")
    if declared.slug != name:
        raise RegistryError(f"{home} calls itself {declared.slug!r}")
    return declared


@cache
def list_installed(group: str) -> tuple[EntryPoint, ...]:
    """The entry points that other packages have under a group, in the order of their names."""
    return tuple(sorted(entry_points(group=group), key=lambda point: point.name))


def digest_installed(group: str) -> str:
    """What tells the entry points that are installed under a group, with the versions of their packages, from others:
    a full stop and eight characters, or nothing where none is installed."""
    said = [
        f"{point.name} {point.dist.name if point.dist else ''} {point.dist.version if point.dist else ''}"
        for point in list_installed(group)
    ]
    return f".{hashlib.sha256(chr(10).join(said).encode()).hexdigest()[:8]}" if said else ""


@cache
def _by_slug() -> dict[str, Dialect]:
    return {dialect.slug: dialect for dialect in all_dialects()}


def get_dialect(slug: str) -> Dialect:
    """The dialect of that slug.

    Raises:
        UnknownDialectError: if there is none.
    """
    try:
        return _by_slug()[slug]
    except KeyError:
        raise UnknownDialectError(slug, tuple(_by_slug())) from None


def title_of(slug: str) -> str:
    """A dialect as people write it; the slug itself where there is no such dialect, or none any more."""
    found = _by_slug().get(slug)
    return found.title if found else slug


# A dialect that is this sure has seen its own frame from end to end; none other can claim the same text.
_CERTAIN = 0.98


def detect(wire: str) -> tuple[Candidate, ...]:
    """The dialects a text may be in, likeliest first. Never raises.

    A score is from 0 to 1; ties go to the lower rank. Where one is certain no further dialect is asked, else prose is
    among them: any text is at least text. Of JSON only the dialects are asked whose messages are objects of it.
    """
    found: list[Candidate] = []
    is_object: bool | None = None
    for dialect in all_dialects():
        if not dialect.has_objects:
            is_object = is_json(wire) if is_object is None else is_object
            if is_object:
                continue
        candidate = dialect.sniff(wire)
        if candidate is not None:
            found.append(candidate)
            if candidate.score >= _CERTAIN:
                break
    return tuple(sorted(found, key=lambda candidate: -candidate.score))
