"""What a conversation knows of its sessions, keys and nonces, and the notes that follow from it.

Specification: references/handshake and references/security. Entries are public facts only: who offered which levels,
which session was agreed or ended, which public key an agent showed, which nonce was used. No key lives here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from .._context import Context
from .._english import join_words, say_name
from .._record import Entry, Message, Note, Span
from . import notes as kinds
from .contents import cite, is_partial, name_key, shorten
from .messages import deny_success, is_session_end
from .packing import ED25519_PREFIX, is_weak, read_public_key, strip_prefix
from .payloads import Payload
from .statements import Statement
from .tables import LEVELS

MAX_SESSION_MESSAGES = 1000
MAX_SESSION_HOURS = 24
OFFER, SESSION, PUBLIC_KEY, FINGERPRINT, NONCE = "security", "session", "public-key", "fingerprint", "nonce"
SESSION_USE = "session-use"
_ANSWERED = "handshake"
_LATEST, _BEFORE, _OWNER = "offer", "offer-before", "key-owner"
_ORDER = list(LEVELS)
# What an answer to an offer says again where it agrees to it.
_AGREED = ("protocol", "version", "spec", "capabilities", "crypto")


class Ledger:
    """The facts of one message against its conversation: entries to add, and notes to make."""

    def __init__(self, context: Context, message: Message) -> None:
        self.context = context
        self.message = message
        self.entries: list[Entry] = []
        self.notes: list[Note] = []
        # The keys whose values are those of the offer that this message accepts, and which message made it.
        self.as_offered: frozenset[str] = frozenset()
        self.offered_in = ""

    def keep(self, kind: str, name: str, value: Any) -> None:
        """Establish a fact from here on, at once: later parts of the same record see it."""
        entry = Entry(
            kind=kind,
            name=name,
            value=value,
            speaker=self.message.sender,
            source=(self.context.record, self.message.part),
            position=self.context.position,
        )
        self.entries.append(entry)

    def find(self, kind: str, name: str) -> Entry | None:
        """The fact now in force, from this record or from the conversation."""
        own = next((entry for entry in reversed(self.entries) if (entry.kind, entry.name) == (kind, name)), None)
        return own or self.context.find(kind, name)


def examine(statement: Statement, message: Message, ledger: Ledger) -> None:
    """Note what this message means for the security of its conversation, and keep what it establishes."""
    payload = statement.payload
    if payload is not None and payload.kind == "encrypted":
        _examine_sealed(statement, message, payload, ledger)
    if is_session_end(statement):
        _end_session(statement, ledger)
    content = payload.content if payload is not None else None
    if payload is None or not isinstance(content, dict):
        return
    if statement.kind == "response":
        _examine_success(statement, content, payload, ledger)
    if statement.kind == "statement" and (statement.domain, statement.action) == ("0", "9"):
        _examine_offer(content, payload, message, ledger)
    elif statement.kind == "response":
        _examine_answer(statement, content, payload, message, ledger)
    else:
        _examine_passed_on(content, payload, message, ledger)


def _examine_success(statement: Statement, content: Mapping[str, Any], payload: Payload, ledger: Ledger) -> None:
    if denies := deny_success(statement, content):
        text = f"it says success (^{statement.status}), but its data say {denies}"
        ledger.notes.append(kinds.SUCCESS_DISAGREES.note(text, _place(payload)))


def _examine_passed_on(content: Mapping[str, Any], payload: Payload, message: Message, ledger: Ledger) -> None:
    """A key outside of a handshake: whose it is said to be, who showed it before, and which one that agent showed."""
    written = content.get("pubkey")
    if not isinstance(written, str) or not written or is_partial(written):
        return
    key, given = name_key(written), content.get("fr", content.get("from"))
    claimed = given if isinstance(given, str) and given else None
    owner = ledger.find(_OWNER, key)
    if owner is not None and owner.value == message.sender and claimed in (None, owner.value):
        return
    who = say_name(message.sender) if message.sender else "someone"
    whom = f" {join_words([say_name(each) for each in message.receivers])}" if message.receivers else ""
    text = f"{who} shows{whom} the public key {key}" + (f" as that of {say_name(claimed)}" if claimed else "")
    if owner is not None:
        text += f"; {say_name(owner.value)} showed it as its own {_in_message(owner)}"
    else:
        text += ", who has not shown it before" if claimed else " and does not say whose it is"
    other = ledger.find(PUBLIC_KEY, claimed or message.sender or "")
    if other is not None and name_key(other.value) != key:
        text += f"; {say_name(other.name)} itself showed another one, {name_key(other.value)}, {_in_message(other)}"
    ledger.notes.append(kinds.KEY_PASSED_ON.note(text, _place(payload)))


def _place(payload: Payload) -> Span:
    return (payload.of, payload.start, payload.end)


def _examine_sealed(statement: Statement, message: Message, payload: Payload, ledger: Ledger) -> None:
    part = statement.standing.get("identifier")
    if part is None:
        return
    session, span = part.value, (0, part.start, part.end)
    known = ledger.find(SESSION, session)
    if known is None:
        text = f"no handshake that agreed session {say_name(session)} was received before this message"
        ledger.notes.append(kinds.SESSION_UNKNOWN.note(text, span))
    elif known.value.get("state") == "ended":
        text = f"session {say_name(session)} was ended {_in_message(known)}"
        ledger.notes.append(kinds.SESSION_ENDED.note(text, span))
    _count_use(session, known, message, ledger, span)
    if payload.nonce is None:
        return
    name = f"{session}/{payload.nonce.hex()}"
    used = ledger.find(NONCE, name)
    if used is not None:
        text = f"the nonce was used before in session {say_name(session)}, {_in_message(used)}"
        ledger.notes.append(kinds.NONCE_REUSED.note(text, _place(payload)))
    ledger.keep(NONCE, name, payload.nonce.hex())


def _count_use(session: str, known: Entry | None, message: Message, ledger: Ledger, span: Span) -> None:
    """Count the messages on one session key, and the hours since the first; a new agreement starts anew."""
    use = ledger.find(SESSION_USE, session)
    agreed = known.value.get("agreement") if known is not None else None
    held = use.value if use is not None and use.value.get("agreement") == agreed else {}
    count = int(held.get("messages", 0)) + 1
    first = held.get("first_at") or (known.value.get("agreed_at") if known is not None else None) or message.sent_at
    if count == MAX_SESSION_MESSAGES + 1:
        text = f"session {say_name(session)} has carried more than {MAX_SESSION_MESSAGES} messages on one key"
        ledger.notes.append(kinds.SESSION_OVERUSED.note(text, span))
    was_old = bool(held.get("is_old"))
    is_old = was_old or _is_older(first, message.sent_at)
    if is_old and not was_old:
        text = f"session {say_name(session)} has been in use for more than {MAX_SESSION_HOURS} hours"
        ledger.notes.append(kinds.SESSION_OVERUSED.note(text, span))
    use_now = {"messages": count, "first_at": first, "agreement": agreed, "is_old": is_old}
    ledger.keep(SESSION_USE, session, use_now)


def _is_older(first: str | None, at: str | None) -> bool:
    if not first or not at:
        return False
    age = datetime.fromisoformat(at) - datetime.fromisoformat(first)
    return age > timedelta(hours=MAX_SESSION_HOURS)


def _in_message(entry: Entry) -> str:
    return f"in message {entry.position}" if entry.position is not None else "in an earlier message"


def _end_session(statement: Statement, ledger: Ledger) -> None:
    session = statement.standing["identifier"].value
    known = ledger.find(SESSION, session)
    held = dict(known.value) if known is not None else {}
    ledger.keep(SESSION, session, held | {"state": "ended"})


def _levels(content: Mapping[str, Any]) -> list[str]:
    said = content.get("security")
    letters = said if isinstance(said, list) else []
    return [letter for letter in letters if isinstance(letter, str) and letter in LEVELS]


def _examine_offer(content: Mapping[str, Any], payload: Payload, message: Message, ledger: Ledger) -> None:
    levels = _levels(content)
    if levels:
        ledger.keep(OFFER, message.sender or "", levels)
        latest = ledger.find(_ANSWERED, _LATEST)
        if latest is not None and latest.value["by"] != message.sender:
            ledger.keep(_ANSWERED, _BEFORE, latest.value)
        said = {key: digest for key in _AGREED if (digest := _digest(content.get(key)))}
        place = {"by": message.sender, "in": ledger.context.position}
        ledger.keep(_ANSWERED, _LATEST, {"levels": levels, **place, "said": said})
    crypto = content.get("crypto")
    named = crypto if isinstance(crypto, list) else [crypto]
    is_x25519 = any(isinstance(name, str) and "X25519" in name for name in named) or crypto is None
    _examine_key(content, payload, message, ledger, is_x25519=is_x25519)


def _examine_answer(
    statement: Statement, content: Mapping[str, Any], payload: Payload, message: Message, ledger: Ledger
) -> None:
    levels = _levels(content)
    if levels:
        ledger.keep(OFFER, message.sender or "", levels)
    if "accepted" not in content:
        return
    is_accepted = content.get("accepted")
    if (is_accepted is True) != (statement.status == "0") and isinstance(is_accepted, bool):
        text = f"the status is ^{statement.status}, and accepted is {str(is_accepted).lower()}"
        ledger.notes.append(kinds.ANSWER_DISAGREES.note(text, _place(payload)))
    crypto = content.get("crypto")
    _examine_key(content, payload, message, ledger, is_x25519=crypto is None or "X25519" in str(crypto))
    if is_accepted is not True:
        return
    offer = _find_offer(message, ledger)
    if offer is not None:
        said = offer.value.get("said", {})
        ledger.as_offered = frozenset(key for key in said if said[key] == _digest(content.get(key)))
        ledger.offered_in = _say_offered_in(offer)
    level = content.get("security")
    if isinstance(level, str) and level in LEVELS:
        _examine_level(level, payload, message, ledger)
    session = content.get("session")
    if isinstance(session, str) and session:
        agreement = f"{ledger.context.position}/{message.part}"
        value = {"state": "agreed", "level": level, "agreed_at": message.sent_at, "agreement": agreement}
        ledger.keep(SESSION, session, value)


def _examine_level(level: str, payload: Payload, message: Message, ledger: Ledger) -> None:
    """A level below the best that both sides offered is a downgrade; below one side's, worth knowing.

    Where both sent offers, the answerer's own is not the one it answers.
    """
    offer = _find_offer(message, ledger)
    if offer is None:
        return
    where = _say_offered_in(offer)
    asked = offer.value["levels"]
    by = say_name(offer.value["by"]) if offer.value["by"] else "the other side"
    own_name = say_name(message.sender) if message.sender else "the answering side"
    agreed = f"{own_name} agrees on {LEVELS[level]} only"
    own = ledger.find(OFFER, message.sender or "") if message.sender != offer.value["by"] else None
    both = [letter for letter in _ORDER if letter in asked and own is not None and letter in own.value]
    if both and _ORDER.index(both[-1]) > _ORDER.index(level):
        text = f"{by} ({where}) and {own_name} both offered {LEVELS[both[-1]]}, and yet {agreed}"
        ledger.notes.append(kinds.DOWNGRADE.note(text, _place(payload)))
        return
    best = max(asked, key=_ORDER.index)
    if own is None and _ORDER.index(best) > _ORDER.index(level):
        extra = "" if level in asked else ", which was not offered"
        text = f"{by} offered {LEVELS[best]} ({where}), and {agreed}{extra}; what {own_name} can do is not known"
        ledger.notes.append(kinds.BELOW_OFFER.note(text, _place(payload)))


def _find_offer(message: Message, ledger: Ledger) -> Entry | None:
    """The offer that an answer is to: where both sent one, not the answerer's own."""
    offer = ledger.find(_ANSWERED, _LATEST)
    if offer is not None and message.sender is not None and offer.value["by"] == message.sender:
        offer = ledger.find(_ANSWERED, _BEFORE)
    return offer


def _say_offered_in(offer: Entry) -> str:
    return f"in message {offer.value['in']}" if "in" in offer.value else _in_message(offer)


def _digest(value: Any) -> str:
    """What tells whether an answer has the value of the offer; a list of one is that one."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    written = json.dumps(value, sort_keys=True, default=str)
    return "" if value is None else hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _examine_key(
    content: Mapping[str, Any], payload: Payload, message: Message, ledger: Ledger, *, is_x25519: bool
) -> None:
    written = content.get("pubkey")
    if isinstance(written, str) and written:
        key = read_public_key(written)
        is_ed25519 = key.startswith(ED25519_PREFIX) if key else written.startswith("MCowBQYDK2VwAyE")
        if is_ed25519 and is_x25519:
            text = "the key is offered for X25519, but its prefix says Ed25519"
            ledger.notes.append(kinds.KEY_MISLABELLED.note(text, _place(payload)))
        if key is not None and is_weak(strip_prefix(key)):
            text = "the public key is a point of low order: no secret can be agreed with it"
            ledger.notes.append(kinds.KEY_WEAK.note(text, _place(payload)))
        if is_partial(written):
            text = "the public key is only partly shown: it cannot be compared with another"
            ledger.notes.append(kinds.KEY_PARTIAL.note(text, _place(payload)))
        else:
            _trust_first(PUBLIC_KEY, "public key", written, payload, message, ledger)
            _claim_key(name_key(written), payload, message, ledger)
    fingerprint = content.get("fingerprint")
    if isinstance(fingerprint, str) and fingerprint:
        _trust_first(FINGERPRINT, "key fingerprint", fingerprint, payload, message, ledger)


def _trust_first(kind: str, words: str, value: str, payload: Payload, message: Message, ledger: Ledger) -> None:
    """Trust on first use: an agent's key that differs from the one it showed before is noted."""
    if message.sender is None:
        return
    known = ledger.find(kind, message.sender)
    if known is not None and known.value != value:
        one, other = (
            cite(shorten(kind, each)) if kind == FINGERPRINT else name_key(each) for each in (value, known.value)
        )
        whose = f"{say_name(message.sender)}'s {words}"
        text = f"{whose} is another one than {_in_message(known)}: {one} here, {other} there"
        ledger.notes.append(kinds.KEY_CHANGED.note(text, _place(payload)))
    ledger.keep(kind, message.sender, value)


def _claim_key(fingerprint: str, payload: Payload, message: Message, ledger: Ledger) -> None:
    """A key is its first owner's; that another agent shows it too is noted."""
    if message.sender is None:
        return
    owner = ledger.find(_OWNER, fingerprint)
    if owner is None:
        ledger.keep(_OWNER, fingerprint, message.sender)
    elif owner.value != message.sender:
        names = f"{say_name(message.sender)} shows the public key {fingerprint}"
        text = f"{names} that {say_name(owner.value)} showed {_in_message(owner)}"
        ledger.notes.append(kinds.KEY_SHARED.note(text, _place(payload)))


def is_addressed(message: Message, ledger: Ledger) -> bool:
    """Whether a named target is an agent here, whatever its domain says: it receives this, or has shown what it can do.

    Of others that have spoken nothing is kept: each message would then hang on all before it.
    """
    target = message.target
    if target is None or target.raw != target.name or target.kind not in ("object", "place"):
        return False
    return target.name in message.receivers or ledger.find(OFFER, target.name) is not None
