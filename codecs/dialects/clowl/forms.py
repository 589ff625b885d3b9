"""The words of plain messages by their form: messages that differ in names and values alone are told alike.

For each form the teller is asked once, about a message with marks in place of its names and values. What it says is
kept with gaps at the marks, and further messages of that form are told by filling the gaps. So there is one wording,
the teller's; a test holds every sentence told by its form against the teller's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from .._denials import FAILED, find_denial
from .._english import holds_marks, join_words, say_short_name
from .._json import Digits
from .._record import Message
from .parts import Piece
from .sentences import tell
from .telling import say_value

# So many forms are kept, of so many details at most; a message of any other is told by the teller itself.
_MAX_FORMS = 4096
_MAX_DETAILS = 24

_ERRORS = ("error", "errors")
# Details whose values decide on the words; of all others only the type does.
_DECIDING: Mapping[str, Sequence[str]] = {
    "ERR": ("code", "retry"),
    "DLGT": ("delegation_mode",),
    "DONE": _ERRORS,
    "ACK": _ERRORS,
    "CAPS": ("supports",),
}
_TOPICS = frozenset({"error", "capabilities"})
# A letter of no alphabet in use: a mark must read as a name, and is found again by it.
_MARK = re.compile("\u01c1([0-9]+)\u01c1")
# A mark that is a number: so high that nothing else in a sentence of marks holds it.
_NUMBERED = 871_782_912_000_000_000
_SENDER, _RECEIVERS, _TOPIC, _PARENT, _FIRST_DETAIL = range(5)


class Form(NamedTuple):
    """Words with gaps, and which of a message's values fill them, in order."""

    words: str
    choose: Callable[[Sequence[str | None]], Any]


_forms: dict[tuple[Any, ...], Form | None] = {}
_UNKNOWN = Form("", itemgetter(0))


def say_plain(message: Message, data: Mapping[str, Any], wire: str) -> str | None:
    """The sentence of a plain message by its form; None where its form is not kept.

    Args:
        message: a message that was read the short way.
        data: its object.
        wire: its text; of one in ASCII without a backslash no value can hold a mark that ends its quotation.
    """
    held, body = message.__dict__, data["body"]
    details: Mapping[str, Any] = body["d"]
    topic = body["t"]
    act, sender, parent = held.get("native_act"), held.get("sender"), held.get("parent_id")
    if "references" in held or sender is None or len(details) > _MAX_DETAILS:
        return None
    if held.get("content") is not details or held.get("topic") is not topic or act != data["p"]:
        return None  # It is no longer what its text says.
    # It is told by what its values say; one that refuses is none of these.
    if act == "ACK" and find_denial(details, FAILED):
        return None
    values = details.values()
    receivers = held.get("receivers")
    key = (
        act,
        (*details, *map(type, values)),
        topic if topic in _TOPICS else None,
        receivers is None,
        parent is None,
        data.get("det"),
        tuple([_decide(details.get(name)) for name in _DECIDING.get(act or "", ())]),
    )
    form = _forms.get(key, _UNKNOWN)
    if form is _UNKNOWN:
        form = _keep(key, message, data)
    if form is None:
        return None
    words, choose = form
    if (not wire.isascii() or "\\" in wire) and any(holds_marks(one) for one in (topic, *values) if type(one) is str):
        return None  # What holds quotation marks stands between others.
    filled: str = words % choose(
        [
            say_short_name(sender),
            receivers
            and (
                say_short_name(receivers[0]) if len(receivers) == 1 else join_words([*map(say_short_name, receivers)])
            ),
            topic,
            parent and say_short_name(parent),
            *[value if type(value) is str else say_value(value) for value in values],
        ]
    )
    return filled


def _decide(value: Any) -> Any:
    """A value as part of a key, by what it is written as: two that are spelled otherwise are equal as numbers."""
    return value if value is None or type(value) in (str, bool) else say_value(value)


def _keep(key: tuple[Any, ...], message: Message, data: Mapping[str, Any]) -> Form | None:
    if len(_forms) >= _MAX_FORMS:
        return None
    form = _forms[key] = _make(message, data)
    return form


def _make(message: Message, data: Mapping[str, Any]) -> Form | None:
    deciding = _DECIDING.get(message.native_act or "", ())
    details = {
        name: value if name in deciding or value is None else _mark(place, value)
        for place, (name, value) in enumerate(message.content.items(), _FIRST_DETAIL)
    }
    given: dict[str, Any] = {"sender": _write(_SENDER), "content": details}
    if message.receivers:
        given["receivers"] = (_write(_RECEIVERS),)
    if message.topic not in _TOPICS:
        given["topic"] = _write(_TOPIC)
    if message.parent_id is not None:
        given["parent_id"] = _write(_PARENT)
    piece = Piece("", "object", 0, 0)
    piece.data, piece.profile = {**data, "body": {"t": message.topic, "d": details}}, "0.2"
    words = "".join([words for words, _ in tell(message.replace(**given), piece)])
    for place, value in enumerate(details.values(), _FIRST_DETAIL):
        if type(value) is int:
            words = words.replace(str(value), _write(place))
    places = [int(found[1]) for found in _MARK.finditer(words)]
    if sorted(places) != sorted(set(_places_of(given, details))) or len(places) < 2:
        return None
    return Form(_MARK.sub("%s", words.replace("%", "%%")), itemgetter(*places))


def _mark(place: int, value: Any) -> Any:
    """A value of the same type, as far as words go, that the sentence can be searched for."""
    if type(value) is str:
        return _write(place)
    return _NUMBERED + place if type(value) is int else Digits(_write(place))


def _write(place: int) -> str:
    return f"\u01c1{place}\u01c1"


def _places_of(given: Mapping[str, Any], details: Mapping[str, Any]) -> Iterable[int]:
    """The marks that must be found, each once."""
    names = {"sender": _SENDER, "receivers": _RECEIVERS, "topic": _TOPIC, "parent_id": _PARENT}
    yield from (place for name, place in names.items() if name in given)
    for place, value in enumerate(details.values(), _FIRST_DETAIL):
        if value in (_write(place), _NUMBERED + place):
            yield place
