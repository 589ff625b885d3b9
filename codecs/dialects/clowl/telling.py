"""A message in words: the sentence, what it leaves out, and the gloss, each piece tied to the wire it came from; and
what CLowl's two published state machines would say to a step: advice, since they disagree with one another.

A message is told as a list of pieces `(words, path)`, the path leading to the characters that justify the words. The
sentence needs the words alone; the places are looked up when somebody asks for segments.

The lifecycle document follows one task, the TypeScript library one conversation. The specification's own flows are
wider than both, so a refusal by either is never a fault of the message. A step is judged only where the work was seen
to begin (to the library a DLGT goes on with work that began elsewhere); after its first refusal a machine no longer
mirrors the work, and says nothing more of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from .._context import Context
from .._english import TRUTHS, join_words, quote, say_name
from .._json import Path, write
from .._record import Entry, Message
from .parts import Piece, Profile
from .schema import is_text

Words = tuple[str, Path | None]
SOMEONE = "Someone"
_PLAIN_KEY = re.compile(r"[\w.:/-]+\Z")
# `overdue_days`, `rows-lost` and `retryAfter` are several words.
_WORDS_KEY = re.compile(r"[A-Za-z][a-z0-9]*+(?:[_-][A-Za-z0-9]++|[A-Z][a-z0-9]++)+\Z")
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+")
# A hash or a long text is told by its beginning in the sentence; the whole of it stands beside the sentence.
_SHOWN_OF_HASH = 8
_MAX_TEXT_LENGTH = 240
_SHOWN_OF_TEXT = 80


class Places(NamedTuple):
    """Where the columns of a version stand in its objects."""

    act: Path
    sender: tuple[Path, ...]
    receivers: tuple[Path, ...]
    topic: Path
    details: Path
    parent: Path
    context: Path


PLACES: dict[Profile, Places] = {
    "0.2": Places(("p",), (("from",),), (("to",),), ("body", "t"), ("body", "d"), ("pid",), ("ctx",)),
    "semantic": Places(("p",), (("from",),), (("to",),), ("task",), ("data",), ("pid",), ("ctx",)),
    "coordination": Places(
        ("semantic", "p"),
        (("routing", "from"), ("semantic", "from")),
        (("routing", "to"), ("routing", "broadcast"), ("semantic", "to")),
        ("semantic", "task"),
        ("semantic", "data"),
        ("trace", "parent_mid"),
        ("semantic", "ctx"),
    ),
}
PLACES["0.1"] = PLACES["0.2"]


def say_value(value: Any) -> str:
    """A value of the wire in words: texts quoted, numbers with their digits, what is nested in brackets."""
    kind = type(value)
    if kind is str:
        return quote(value)
    if kind is int:
        return str(value)
    if kind is bool:
        return TRUTHS["true" if value else "false"]
    if isinstance(value, list):
        return f"[{', '.join([say_value(item) for item in value])}]"
    if isinstance(value, dict):
        return f"({', '.join([say_pair(key, item) for key, item in value.items()])})"
    written = quote(value) if is_text(value) else write(value)
    return TRUTHS.get(written, written)


def say_pair(key: str, value: Any) -> str:
    """A key with its value: `eur = 10`."""
    return f"{say_key(key)} = {say_value(value)}"


def say_key(key: str) -> str:
    """A key as it is where it reads as one word, else quoted."""
    return key if key.isascii() and _PLAIN_KEY.match(key) else say_name(key)


@lru_cache(maxsize=4096)
def say_key_in_words(key: str) -> str:
    """A key as an English reader would say it: `overdue_days` is "overdue days"; an abbreviation keeps its capitals."""
    if not _WORDS_KEY.match(key):
        return say_key(key)
    words = _WORD.findall(key)
    return " ".join([words[0], *(word if word.isupper() else word.lower() for word in words[1:])])


def is_long_hash(written: str) -> bool:
    """Whether the sentence tells only the beginning of a hash."""
    return len(written) > 2 * _SHOWN_OF_HASH


def is_long_text(written: str) -> bool:
    """Whether the sentence tells only the beginning of a text given as context."""
    return len(written) > _MAX_TEXT_LENGTH


def _say_hash(written: str) -> str:
    return (
        f"a SHA-256 that begins {quote(written[:_SHOWN_OF_HASH])}"
        if is_long_hash(written)
        else f"the SHA-256 {quote(written)}"
    )


def _say_text(written: str) -> str:
    if not is_long_text(written):
        return f"the text {quote(written)}"
    return f"a text of {len(written):,} characters that begins {quote(written[:_SHOWN_OF_TEXT])}"


class Teller:
    """One message being told; `told` are the words so far, `used` the details that they have covered.

    `add` appends words with the path that they come from; words of our own grammar have none. `names` are what the
    act calls details that would not explain themselves.
    """

    names: Mapping[str, str] = {}

    def __init__(self, message: Message, piece: Piece) -> None:
        self.message = message
        self.piece = piece
        self.data: Mapping[str, Any] = piece.data
        self.profile: Profile = piece.profile or "0.2"
        self.places = PLACES[self.profile]
        self.told: list[Words] = []
        self.add = self.told.append
        self.used: set[str] = set()
        content = message.content
        self.details: Mapping[str, Any] = content if isinstance(content, dict) and self._is_detailed() else {}

    def _is_detailed(self) -> bool:
        return isinstance(self.data.get(str(self.places.details[0])), dict)

    def say_sender(self) -> None:
        """Who speaks: `someone` where nobody says."""
        sender = self.message.sender
        self.add((SOMEONE if sender is None else say_name(sender), self._first(self.places.sender)))

    def say_receivers(self) -> None:
        """To whom: everyone, the names, or that none is named."""
        message = self.message
        path = self._first(self.places.receivers)
        names = join_words([say_name(name) for name in message.receivers])
        if message.broadcast:
            named = f" and {names}" if names else ""
            self.add((f"everyone{named}", path))
        elif message.receivers:
            self.add((names, path))
        else:
            self.add(("a receiver it does not name", path))

    def _first(self, paths: tuple[Path, ...]) -> Path:
        if len(paths) == 1:
            return paths[0]
        return next((path for path in paths if self._has(path)), paths[0])

    def _has(self, path: Path) -> bool:
        value: Any = self.data
        for step in path:
            if not isinstance(value, Mapping) or step not in value:
                return False
            value = value[step]
        return True

    def say_topic(self, noun: str = "the task ", unnamed: str = "a task it does not name") -> None:
        """The task, quoted."""
        topic = self.message.topic
        self.add((unnamed if topic is None else f"{noun}{quote(topic)}", self.places.topic))

    def say_detail(self, before: str, key: str, after: str = "") -> None:
        """A detail in words of its own, if it is there and not null; a null is left to the rest."""
        value = self.details.get(key)
        if value is not None:
            self.used.add(key)
            self.add((f"{before}{say_value(value)}{after}", (*self.places.details, key)))

    def say_rest(self) -> None:
        """Every detail that has not been said, by its key."""
        rest = [key for key in self.details if key not in self.used]
        names = [self.names.get(key) or say_key_in_words(key) for key in rest]
        if len(set(names)) < len(names):
            # Two keys must not read alike.
            names = [say_key(key) for key in rest]
        for index, key in enumerate(rest):
            link = ", with " if index == 0 else " and " if index == len(rest) - 1 else ", "
            self.add((f"{link}{names[index]} = {say_value(self.details[key])}", (*self.places.details, key)))
        content = self.message.content
        if content is not None and not isinstance(content, dict):
            path = self.places.details if self._has(self.places.details) else self.places.details[:-1]
            self.add((f", with the data {say_value(content)}", path))

    def say_context(self) -> None:
        """What the message leans on, in a clause of its own: neither outcome nor reason may seem to hang on it."""
        path = self.places.context
        parts = {"ref": path, "hash": path, "inline": path}
        if isinstance(self._value(path), dict):
            parts = {name: (*path, name) for name in parts}
        link = "; as context it"
        for reference in self.message.references:
            if reference.ref is not None:
                self.add((f"{link} cites {quote(reference.ref)}", parts["ref"]))
                link = " and"
            if reference.hash is not None:
                cites = "" if reference.ref is not None else f"{link} cites something"
                self.add((f"{cites} with {_say_hash(reference.hash)}", parts["hash"]))
                link = " and"
            if reference.inline is not None:
                self.add((f"{link} gives {_say_text(reference.inline)}", parts["inline"]))
                link = " and"

    def _value(self, path: Path) -> Any:
        value: Any = self.data
        for step in path:
            value = value.get(step) if isinstance(value, Mapping) else None
        return value

    def say_tail(self) -> None:
        """What any message may add: parent, determinism, a token, and its context last."""
        message, attributes = self.message, self.message.attributes
        if message.parent_id is not None:
            path = self.places.parent if self._has(self.places.parent) else ("trace", "pid")
            self.add((f", in reply to message {say_name(message.parent_id)}", path))
        if attributes.get("det") is True:
            self.add((", marked deterministic (det true)", ("det",)))
        if message.security.claims:
            self.add(("; it carries a token (unverified)", ("auth",)))
        if message.references:
            self.say_context()
        self.add((".", None))


Machine = Mapping[str, Mapping[str, str]]

_OPENERS = frozenset({"REQ", "DLGT", "QRY"})

# state-machine document: state -> act -> next state. A task enters when it is sent. Waiting and running out of time
# are no acts, so no message leads there; an act that is not named anywhere here is no event of a task.
DOCUMENT: Machine = {
    "DISPATCHED": {"ACK": "ACKNOWLEDGED", "CNCL": "CANCELLED"},
    "ACKNOWLEDGED": {"PROG": "RUNNING", "CNCL": "CANCELLED"},
    "RUNNING": {"PROG": "RUNNING", "DONE": "COMPLETED", "ERR": "FAILED", "CNCL": "CANCELLED"},
    "COMPLETED": {},
    "FAILED": {},
    "CANCELLED": {},
}
_BEGINNERS = _OPENERS | {"INF", "CAPS"}
_ENDS = {"DONE": "COMPLETED", "ERR": "FAILED", "CNCL": "CANCELLED"}
# The library's table, seen from the one who asks. `ERR` that may be retried is an event of its own; QRY is none.
LIBRARY: Machine = {
    "IDLE": {"REQ": "REQUESTED", "INF": "IDLE", "CAPS": "IDLE"},
    "REQUESTED": {"ACK": "ACKNOWLEDGED", "ERR, to be retried": "RETRYING", **_ENDS},
    "ACKNOWLEDGED": {"PROG": "IN_PROGRESS", "DLGT": "DELEGATED", "ERR, to be retried": "RETRYING", **_ENDS},
    "IN_PROGRESS": {"PROG": "IN_PROGRESS", "ERR, to be retried": "RETRYING", **_ENDS},
    "DELEGATED": {"ACK": "DELEGATED", "PROG": "DELEGATED", "ERR, to be retried": "RETRYING", **_ENDS},
    "RETRYING": {"REQ": "REQUESTED", "CNCL": "CANCELLED"},
    "COMPLETED": {},
    "FAILED": {},
    "CANCELLED": {},
}
_DOCUMENT_EVENTS = frozenset(act for acts in DOCUMENT.values() for act in acts)
_LIBRARY_EVENTS = frozenset(act for acts in LIBRARY.values() for act in acts)
# In place of a state: the machine has refused a step, and is asked no more.
_LEFT = ""

_CONVERSATION, _TASK, _LATEST, _CANCEL = "clowl-conversation", "clowl-task", "clowl-latest-task", "clowl-cancel"


class Lifecycle:
    """The steps of one record against what its conversation has seen; `entries` are the states that it leads to."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._has_begun = context.knows(_CONVERSATION) or context.knows(_TASK)
        self._own: dict[tuple[str, str, str | None], Entry] = {}

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The states after the steps taken here."""
        return tuple(self._own.values())

    def answers_cancel(self, message: Message) -> bool:
        """Whether it acknowledges a cancellation: it names one, or names nothing and its task is cancelled."""
        if message.native_act != "ACK":
            return False
        if message.parent_id is not None:
            return self._find(_CANCEL, message.parent_id) is not None
        task = self._find_task(message) if self._own or self._has_begun else None
        return task is not None and self._find(_TASK, task) == "CANCELLED"

    def follow(self, message: Message) -> str | None:
        """Take one step; what the machines that would refuse it say, in words, or None."""
        act = message.native_act
        is_seen = self._has_begun or self._own
        if act == "CNCL" and message.message_id is not None:
            self._keep(_CANCEL, message.message_id, act)
        # Most messages come alone or in the middle: where nothing was seen to begin, nothing is looked up.
        if act is None or not (is_seen or act in _BEGINNERS):
            return None
        told = (*self._follow_conversation(message, act), *self._follow_task(message, act))
        if not told:
            return None
        return f"{' and '.join(told)}; this is advice, for CLowl's two published state machines disagree"

    def _follow_conversation(self, message: Message, act: str) -> Sequence[str]:
        conversation, failure = message.conversation_id, message.error
        event = "ERR, to be retried" if act == "ERR" and failure is not None and failure.retryable else act
        if conversation is None or event not in _LIBRARY_EVENTS:
            return ()
        state = self._find(_CONVERSATION, conversation)
        if state is None and message.parent_id is None and act in LIBRARY["IDLE"]:
            state = "IDLE"
        if not state:
            return ()
        following = LIBRARY[state].get(event, _LEFT)
        self._keep(_CONVERSATION, conversation, following)
        return () if following else (f"the TypeScript library takes no {event} in a conversation in state {state}",)

    def _follow_task(self, message: Message, act: str) -> Sequence[str]:
        if act in _OPENERS:
            self._open_task(message)
            return ()
        task = self._find_task(message) if act in _DOCUMENT_EVENTS else None
        state = self._find(_TASK, task) if task is not None else None
        if task is None or not state:
            return ()
        following = DOCUMENT[state].get(act, _LEFT)
        self._keep(_TASK, task, following)
        return () if following else (f"the lifecycle document takes no {act} for a task in state {state}",)

    def _open_task(self, message: Message) -> None:
        """A task is known by its own id, else by the message that opened it; and as the latest of the two parties."""
        if message.sender is None or len(message.receivers) != 1 or message.broadcast:
            return
        (receiver,) = message.receivers
        task = message.task_id or message.message_id or f"{message.sender} {receiver}"
        self._keep(_TASK, task, "DISPATCHED")
        self._keep(_LATEST, receiver, task, speaker=message.sender)

    def _find_task(self, message: Message) -> str | None:
        """The task by its id, by the message answered, else the latest between the two: told of by either party."""
        for name in (message.task_id, message.parent_id):
            if name is not None and self._find(_TASK, name) is not None:
                return name
        if message.sender is None or len(message.receivers) != 1:
            return None
        (receiver,) = message.receivers
        if message.native_act == "CNCL":
            return self._find(_LATEST, receiver, speaker=message.sender)
        return self._find(_LATEST, message.sender, speaker=receiver)

    def _find(self, kind: str, name: str, speaker: str | None = None) -> str | None:
        entry = self._own.get((kind, name, speaker))
        # Nothing else was kept before the first conversation or task, but that something is cancelled.
        if entry is None and (self._has_begun or kind is _CANCEL):
            entry = self._context.find(kind, name, speaker=speaker)
        return None if entry is None else entry.value

    def _keep(self, kind: str, name: str, value: str, speaker: str | None = None) -> None:
        entry = Entry.trust({"kind": kind, "name": name, "value": value, "speaker": speaker})
        self._own[kind, name, speaker] = entry
