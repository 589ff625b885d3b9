"""The sentence of each act: who asks whom for what, and with what outcome; and the words of plain messages by their
form: messages that differ in names and values alone are told alike.

For each form the teller is asked once, about a message with marks in place of its names and values. What it says is
kept with gaps at the marks, and further messages of that form are told by filling the gaps. So there is one wording,
the teller's; a test holds every sentence told by its form against the teller's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from .._denials import FAILED, Place, find_denial, fold_status
from .._english import holds_marks, join_words, quote, say_name, say_short_name
from .._json import Digits, write
from .._record import Message
from .parts import Piece
from .schema import Contradiction, find_contradiction, is_text
from .tables import CANCELLED, ERROR_CODES, MODES, name_error
from .telling import SOMEONE, Teller, Words, say_pair, say_value

# The documents' own examples call the text of a request or a search `q`.
_QUERY = {"q": "query"}
# Keys of the data that would read as if the message went to or came from somebody else.
_PARTIES = {key: f"the data's “{key}”" for key in ("target", "to", "for", "receiver", "recipient", "from", "sender")}


def tell(message: Message, piece: Piece) -> list[Words]:
    """The sentence of a message, in pieces."""
    if piece.kind != "object":
        return _tell_text(message, piece)
    teller = Teller(message, piece)
    teller.names = {**_QUERY, **_PARTIES} if is_text(teller.details.get("q")) else _PARTIES
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
    sender = SOMEONE if message.sender is None else say_name(message.sender)
    return [(sender, None), (f" {told[piece.kind]}", None), (quote(str(message.content)), ()), (".", None)]


def _tell_request(teller: Teller) -> None:
    teller.add((" asks ", teller.places.act))
    teller.say_receivers()
    teller.add((" to carry out ", teller.places.act))
    teller.say_topic()


def _tell_query(teller: Teller) -> None:
    teller.add((" asks ", teller.places.act))
    teller.say_receivers()
    teller.add((" for information on ", teller.places.act))
    teller.say_topic("", "something it does not name")
    if is_text(teller.details.get("q")):
        teller.say_detail(": ", "q")


def _tell_inform(teller: Teller) -> None:
    teller.add((" informs ", teller.places.act))
    teller.say_receivers()
    if teller.message.topic is None:
        teller.add((" about ", teller.places.act))
    teller.say_topic(", topic ", "something it does not name")


def _tell_acknowledge(teller: Teller) -> None:
    if refusing := find_contradiction("ACK", teller.details):
        teller.add((" answers ", teller.places.act))
        teller.say_receivers()
        teller.add((" on ", teller.places.act))
        teller.say_topic()
        teller.add((" and does not accept it", (*teller.places.details, *refusing[0])))
    elif getattr(teller.message, "answers_cancel", False) or fold_status(teller.details.get("status")) in CANCELLED:
        teller.add((" confirms to ", teller.places.act))
        teller.say_receivers()
        teller.add((" the receipt of the cancellation of ", teller.places.act))
        teller.say_topic()
    else:
        # The documents' "got it, proceeding" says that it arrived; whether it is taken on, no more than its data say.
        # It may be a result that arrived, or a question: the act alone does not say.
        teller.add((" confirms to ", teller.places.act))
        teller.say_receivers()
        teller.add((" the receipt of the message about ", teller.places.act))
        teller.say_topic()
        if not teller.details.keys() - {"eta"}:
            teller.add((" (that is not yet agreement)", teller.places.act))
    teller.say_detail(", with an ETA of ", "eta")


def _tell_failure(teller: Teller) -> None:
    message, path = teller.message, teller.places.details
    found = find_contradiction("ERR", teller.details)
    if found is not None and message.topic != "error":
        teller.add((" reports to ", teller.places.act))
        teller.say_receivers()
        teller.add((" an error in ", teller.places.act))
        teller.say_topic()
    elif message.topic == "error":
        teller.add((" reports ", teller.places.act))
        teller.add(("an error", teller.places.topic))
        teller.add((" to ", None))
        teller.say_receivers()
    else:
        teller.add((" reports to ", teller.places.act))
        teller.say_receivers()
        teller.add((" that ", None))
        teller.say_topic()
        teller.add((" failed", teller.places.act))
    code = teller.details.get("code")
    name = name_error(code) if is_text(code) else None
    if code is not None:
        teller.used.add("code")
        shown = say_name(code) if is_text(code) else say_value(code)
        teller.add((f": {shown}" + (f" (kind: {name})" if name else ""), (*path, "code")))
    teller.say_detail(", " if code is not None else ": ", "msg")
    teller.say_detail(", caused by ", "cascade_err")
    retry = teller.details.get("retry")
    if isinstance(retry, bool):
        teller.used.add("retry")
        teller.add(
            (
                ", and says that it may be retried" if retry else ", and says that it must not be retried",
                (*path, "retry"),
            )
        )
        row = ERROR_CODES.get(code) if is_text(code) else None
        if row is not None and row.is_retryable != retry:
            allowed = "may be" if row.is_retryable else "must not be"
            teller.add((f" (although by CLowl's table {row.code} {allowed} retried)", (*path, "code")))
    _say_contradiction(teller, found)


def _tell_delegation(teller: Teller) -> None:
    value = teller.details.get("delegation_mode")
    mode = MODES.get(value) if is_text(value) else None
    path = (*teller.places.details, "delegation_mode")
    if mode is not None:
        teller.used.add("delegation_mode")
        teller.add((mode.before, path))
        teller.say_topic()
        teller.add((mode.between, path))
        teller.say_receivers()
        teller.add((mode.after, path))
        return
    teller.add((" delegates ", teller.places.act))
    teller.say_topic()
    teller.add((" to ", None))
    teller.say_receivers()
    if value is None and teller.profile not in ("0.1", "0.2"):
        return
    if value is None:
        none = " (version 0.1 has none)" if teller.profile == "0.1" else ""
        teller.add((f" without saying in which mode{none}", teller.places.act))
    else:
        teller.used.add("delegation_mode")
        teller.add((f" in a mode that CLowl does not have, {say_value(value)}", path))


def _tell_done(teller: Teller) -> None:
    found = find_contradiction("DONE", teller.details)
    teller.add((" reports to ", teller.places.act))
    teller.say_receivers()
    teller.add((" that ", None))
    teller.say_topic()
    teller.add((" is done" if found is None else " has ended", teller.places.act))
    _say_contradiction(teller, found)


def _say_contradiction(teller: Teller, found: tuple[Place, Contradiction] | None) -> None:
    if found is None:
        return
    place, contradiction = found
    path, key = (*teller.places.details, *place), str(place[0])
    said = f", and its data say {contradiction.says}"
    if len(place) > 1:
        teller.add((said, path))
        return
    teller.used.add(key)
    teller.add((f"{said}: {say_pair(key, teller.details[key])}", path))


def _tell_cancel(teller: Teller) -> None:
    teller.add((" tells ", teller.places.act))
    teller.say_receivers()
    teller.add((" to cancel ", teller.places.act))
    teller.say_topic()
    teller.say_detail(", giving the reason ", "reason")


def _tell_progress(teller: Teller) -> None:
    if found := find_contradiction("PROG", teller.details):
        teller.add((" reports to ", teller.places.act))
        teller.say_receivers()
        teller.add((" on ", teller.places.act))
        teller.say_topic()
        _say_contradiction(teller, found)
        return
    teller.add((" tells ", teller.places.act))
    teller.say_receivers()
    teller.add((" that ", None))
    teller.say_topic()
    value = teller.details.get("pct")
    if isinstance(value, int | float) and not isinstance(value, bool):
        teller.used.add("pct")
        teller.add((f" is {write(value)}% done", (*teller.places.details, "pct")))
    else:
        teller.add((" is under way", teller.places.act))
    teller.say_detail(", noting ", "note")


def _tell_capabilities(teller: Teller) -> None:
    teller.add((" announces to ", teller.places.act))
    teller.say_receivers()
    if teller.message.topic == "capabilities":
        teller.add((" its capabilities", teller.places.topic))
    else:
        teller.add((" its capabilities", teller.places.act))
        teller.add((" under ", None))
        teller.say_topic("", "something it does not name")
    if teller.message.capabilities:
        teller.used.add("supports")
        names = join_words([quote(name) for name in teller.message.capabilities])
        teller.add((f": {names}", (*teller.places.details, "supports")))
    teller.say_detail(", speaking CLowl ", "clowl")


def _tell_unknown(teller: Teller) -> None:
    act = teller.message.native_act
    if act is None:
        teller.add((" sends ", None))
    else:
        teller.add((f" sends the act {quote(act)}, which CLowl does not have,", teller.places.act))
        teller.add((" to ", None))
        teller.say_receivers()
        teller.add((" about ", None))
        teller.say_topic("", "something it does not name")
        return
    teller.say_receivers()
    teller.add((" a message that names no act, about ", teller.places.act))
    teller.say_topic("", "something it does not name")


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
