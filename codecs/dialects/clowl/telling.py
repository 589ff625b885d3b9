"""A message in words: the sentence, what it leaves out, and the gloss, each piece tied to the wire it came from.

A message is told as a list of pieces `(words, path)`, the path leading to the characters that justify the words.
The sentence needs the words alone; the places are looked up when somebody asks for segments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .._english import join_words, quote
from .._record import Message
from .json_text import write
from .parts import Piece, Profile
from .positions import Path
from .schema import failing_key, is_text
from .tables import ERROR_CODES, MODES, name_error

Words = tuple[str, Path | None]
SOMEONE = "someone"
_PLAIN_KEY = re.compile(r"[\w.:/-]+\Z")


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
    """A value of the wire in words: texts quoted, their characters untouched; numbers with their digits."""
    if type(value) is str:
        return f"“{value}”"
    if isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
        return f"[{', '.join([say_value(item) for item in value])}]"
    return quote(value) if is_text(value) else write(value, ", ", ": ")


def say_key(key: str) -> str:
    """A key as it is where it reads as one word, else quoted."""
    return key if _PLAIN_KEY.match(key) else quote(key)


class Teller:
    """One message being told; `told` are the words so far, `used` the details that they have covered."""

    def __init__(self, message: Message, piece: Piece) -> None:
        self.message = message
        self.piece = piece
        self.data: Mapping[str, Any] = piece.data
        self.profile: Profile = piece.profile or "0.2"
        self.places = PLACES[self.profile]
        self.told: list[Words] = []
        self.used: set[str] = set()
        content = message.content
        self.details: Mapping[str, Any] = content if isinstance(content, dict) and self._is_detailed() else {}

    def _is_detailed(self) -> bool:
        return isinstance(self.data.get(str(self.places.details[0])), dict)

    def say(self, words: str, path: Path | None = None) -> None:
        """Add words, with the path they come from; words of our own grammar have none."""
        self.told.append((words, path))

    def say_sender(self) -> None:
        """Who speaks: `someone` where nobody says."""
        self.say(self.message.sender or SOMEONE, self._first(self.places.sender))

    def say_receivers(self) -> None:
        """To whom: everyone, the names, or that none is named."""
        message = self.message
        path = self._first(self.places.receivers)
        if message.broadcast:
            named = f" and {join_words(message.receivers)}" if message.receivers else ""
            self.say(f"everyone{named}", path)
        elif message.receivers:
            self.say(join_words(message.receivers), path)
        else:
            self.say("a receiver it does not name", path)

    def _first(self, paths: tuple[Path, ...]) -> Path:
        return next((path for path in paths if self._has(path)), paths[0])

    def _has(self, path: Path) -> bool:
        value: Any = self.data
        for step in path:
            if not isinstance(value, Mapping) or step not in value:
                return False
            value = value[step]
        return True

    def say_topic(self, unnamed: str = "something it does not name") -> None:
        """The task, quoted."""
        topic = self.message.topic
        self.say(unnamed if topic is None else quote(topic), self.places.topic)

    def say_act(self, words: str) -> None:
        """Words that stand for the performative."""
        self.say(words, self.places.act)

    def take(self, key: str) -> Any:
        """The detail of that key, which is covered from here on; None where there is none."""
        self.used.add(key)
        return self.details.get(key)

    def say_detail(self, before: str, key: str, after: str = "") -> None:
        """A detail in words of its own, if it is there and not null; a null is left to the rest."""
        value = self.details.get(key)
        if value is not None:
            self.used.add(key)
            self.say(f"{before}{say_value(value)}{after}", (*self.places.details, key))

    def say_rest(self) -> None:
        """Every detail that has not been said, by its key."""
        rest = [key for key in self.details if key not in self.used]
        for index, key in enumerate(rest):
            link = ", with " if index == 0 else " and " if index == len(rest) - 1 else ", "
            self.say(f"{link}{say_key(key)} {say_value(self.details[key])}", (*self.places.details, key))
        content = self.message.content
        if content is not None and not isinstance(content, dict):
            path = self.places.details if self._has(self.places.details) else self.places.details[:-1]
            self.say(f", with the data {say_value(content)}", path)

    def say_context(self) -> None:
        """What the message leans on."""
        path = self.places.context
        parts = {"ref": path, "hash": path, "inline": path}
        if isinstance(self._value(path), dict):
            parts = {name: (*path, name) for name in parts}
        for reference in self.message.references:
            if reference.ref is not None:
                self.say(f", for context citing {quote(reference.ref)}", parts["ref"])
            if reference.hash is not None:
                link = " whose" if reference.ref is not None else ", for context citing what has the"
                verb = " must be" if reference.ref is not None else ""
                self.say(f"{link} SHA-256{verb} {reference.hash}", parts["hash"])
            if reference.inline is not None:
                self.say(f", giving the context inline as {quote(reference.inline)}", parts["inline"])

    def _value(self, path: Path) -> Any:
        value: Any = self.data
        for step in path:
            value = value.get(step) if isinstance(value, Mapping) else None
        return value

    def say_tail(self) -> None:
        """What any message may add: context, parent, determinism, a token."""
        message, attributes = self.message, self.message.attributes
        if message.references:
            self.say_context()
        if message.parent_id is not None:
            path = self.places.parent if self._has(self.places.parent) else ("trace", "pid")
            self.say(f", in reply to message {message.parent_id}", path)
        if attributes.get("det") is True:
            self.say(", and calls the result deterministic", ("det",))
        if message.security.claims:
            self.say(", carrying a token (unverified)", ("auth",))
        self.say(".")


def tell(message: Message, piece: Piece) -> list[Words]:
    """The sentence of a message, in pieces."""
    if piece.kind != "object":
        return _tell_text(message, piece)
    teller = Teller(message, piece)
    teller.say_sender()
    _TELLERS.get(message.native_act or "", _tell_unknown)(teller)
    teller.say_rest()
    teller.say_tail()
    return teller.told


def _tell_text(message: Message, piece: Piece) -> list[Words]:
    told = {
        "prose": "writes beside the message: ",
        "json": "sends JSON that is no CLowl message: ",
        "broken": "sends what cannot be read as CLowl: ",
    }
    return [(message.sender or SOMEONE, None), (f" {told[piece.kind]}", None), (quote(str(message.content)), ())]


def _tell_request(teller: Teller) -> None:
    teller.say_act(" asks ")
    teller.say_receivers()
    teller.say_act(" to carry out ")
    teller.say_topic()


def _tell_query(teller: Teller) -> None:
    teller.say_act(" asks ")
    teller.say_receivers()
    teller.say_act(" for information on ")
    teller.say_topic()


def _tell_inform(teller: Teller) -> None:
    teller.say_act(" informs ")
    teller.say_receivers()
    teller.say_act(" about ")
    teller.say_topic()


def _tell_acknowledge(teller: Teller) -> None:
    teller.say_act(" acknowledges ")
    teller.say_topic()
    teller.say(" to ")
    teller.say_receivers()
    teller.say_detail(", giving an ETA of ", "eta")


def _tell_failure(teller: Teller) -> None:
    message, path = teller.message, teller.places.details
    if message.topic == "error":
        teller.say_act(" reports ")
        teller.say("an error", teller.places.topic)
        teller.say(" to ")
        teller.say_receivers()
    else:
        teller.say_act(" reports to ")
        teller.say_receivers()
        teller.say(" that ")
        teller.say_topic()
        teller.say_act(" failed")
    code = teller.details.get("code")
    name = name_error(code) if is_text(code) else None
    if code is not None:
        teller.used.add("code")
        shown = f"{code}" if is_text(code) else say_value(code)
        teller.say(f": {shown}" + (f" ({name})" if name else ""), (*path, "code"))
    teller.say_detail(", " if code is not None else ": ", "msg")
    teller.say_detail(", caused by ", "cascade_err")
    retry = teller.details.get("retry")
    if isinstance(retry, bool):
        teller.used.add("retry")
        teller.say(
            ", and says that it may be retried" if retry else ", and says that it must not be retried", (*path, "retry")
        )
        row = ERROR_CODES.get(code) if is_text(code) else None
        if row is not None and row.is_retryable != retry:
            allowed = "may be" if row.is_retryable else "must not be"
            teller.say(f" (although by CLowl's table {row.code} {allowed} retried)", (*path, "code"))


def _tell_delegation(teller: Teller) -> None:
    value = teller.details.get("delegation_mode")
    mode = MODES.get(value) if is_text(value) else None
    path = (*teller.places.details, "delegation_mode")
    if mode is not None:
        teller.used.add("delegation_mode")
        teller.say(mode.before, path)
        teller.say_topic()
        teller.say(mode.between, path)
        teller.say_receivers()
        teller.say(mode.after, path)
        return
    teller.say_act(" delegates ")
    teller.say_topic()
    teller.say(" to ")
    teller.say_receivers()
    if value is None and teller.profile != "0.2":
        return
    if value is None:
        teller.say(" without saying in which mode", teller.places.act)
    else:
        teller.used.add("delegation_mode")
        teller.say(f" in a mode that CLowl does not have, {say_value(value)}", path)


def _tell_done(teller: Teller) -> None:
    key = failing_key(teller.details)
    teller.say_act(" reports to ")
    teller.say_receivers()
    teller.say(" that ")
    teller.say_topic()
    if key is None:
        teller.say_act(" is done")
        return
    teller.say_act(" has ended")
    teller.used.add(key)
    teller.say(f", but without success: {say_key(key)} {say_value(teller.details[key])}", (*teller.places.details, key))


def _tell_cancel(teller: Teller) -> None:
    teller.say_act(" tells ")
    teller.say_receivers()
    teller.say_act(" to cancel ")
    teller.say_topic()
    teller.say_detail(", giving the reason ", "reason")


def _tell_progress(teller: Teller) -> None:
    teller.say_act(" tells ")
    teller.say_receivers()
    teller.say(" that ")
    teller.say_topic()
    value = teller.details.get("pct")
    if isinstance(value, int | float) and not isinstance(value, bool):
        teller.used.add("pct")
        teller.say(f" is {write(value)}% done", (*teller.places.details, "pct"))
    else:
        teller.say_act(" is under way")
    teller.say_detail(", noting ", "note")


def _tell_capabilities(teller: Teller) -> None:
    teller.say_act(" announces to ")
    teller.say_receivers()
    if teller.message.topic == "capabilities":
        teller.say(" its capabilities", teller.places.topic)
    else:
        teller.say_act(" its capabilities")
        teller.say(" under ")
        teller.say_topic()
    if teller.message.capabilities:
        teller.used.add("supports")
        names = join_words([quote(name) for name in teller.message.capabilities])
        teller.say(f": {names}", (*teller.places.details, "supports"))
    teller.say_detail(", speaking CLowl ", "clowl")


def _tell_unknown(teller: Teller) -> None:
    act = teller.message.native_act
    if act is None:
        teller.say(" sends ")
    else:
        teller.say_act(f" sends the act {quote(act)}, which CLowl does not have,")
        teller.say(" to ")
        teller.say_receivers()
        teller.say(" about ")
        teller.say_topic()
        return
    teller.say_receivers()
    teller.say_act(" a message that names no act, about ")
    teller.say_topic()


_TELLERS: dict[str, Callable[[Teller], None]] = {
    "REQ": _tell_request,
    "QRY": _tell_query,
    "INF": _tell_inform,
    "ACK": _tell_acknowledge,
    "ERR": _tell_failure,
    "DLGT": _tell_delegation,
    "DONE": _tell_done,
    "CNCL": _tell_cancel,
    "PROG": _tell_progress,
    "CAPS": _tell_capabilities,
}
