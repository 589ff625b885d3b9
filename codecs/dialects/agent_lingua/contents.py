"""What a payload says, as part of a sentence: text in quotes, JSON by its members, what is sealed by its size; and what
the keys and codes of JSON mean, by the standard field table and the names that handshakes spell out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from .._english import TRUTHS, Sentence, join_words, quote, say_instant, say_name, say_seconds
from .._json import Node, place, skip_space
from .._record import Segment, Span
from .._time import instant_of_seconds
from . import notes as kinds
from .packing import read_public_key
from .payloads import RULES, Payload
from .tables import DOMAINS, KEYS, LEVELS, SPELT_KEYS


def label_of(key: str) -> str:
    """The label of a known key, or the key itself: a key is expanded only where the table has it."""
    return KEYS.get(key) or SPELT_KEYS.get(key) or key


def say_label(key: str, value: Any) -> str:
    """The label as a sentence says it, before its value."""
    if key == "security" and isinstance(value, list) and len(value) > 1:
        return f"{label_of(key)}s"
    return _SAID.get(key) or label_of(key)


# Where the table gives two words for a key, the one that fits any value.
_SAID = {"p": "count"}


def meaning_of(key: str | None, value: Any) -> str | None:
    """What a value means where its key says that it is a code or a time, in English."""
    if key == "capabilities" and isinstance(value, list):
        named = [domain.meaning for code in value if isinstance(code, str) and (domain := DOMAINS.get(code))]
        return ", ".join(named) if len(named) == len(value) and named else None
    if key == "security":
        letters = value if isinstance(value, list) else [value]
        levels = [LEVELS[letter] for letter in letters if isinstance(letter, str) and letter in LEVELS]
        return ", ".join(levels) if len(levels) == len(letters) and levels else None
    if key in ("ts", "ex") and isinstance(value, (int, float)):
        instant = instant_of_seconds(value)
        return say_instant(datetime.fromisoformat(instant)) if instant else None
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**12:
        if key == "du":
            return say_seconds(value)
        if key == "sz":
            return f"{value} byte{'' if value == 1 else 's'}"
    return None


MAX_SAID_MEMBERS = 200
_MAX_SAID_DEPTH = 3
# Longer payloads that could not be read are said by their size here, and verbatim beside the sentence.
_MAX_VERBATIM = 200
_SURROGATE = re.compile("[\ud800-\udfff]")


def show(text: str) -> str:
    """The text with lone surrogates, which no file can hold, as the escapes they were written with."""
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def cite(text: str) -> str:
    """The text as a quotation."""
    return quote(show(text))


def name(text: str) -> str:
    """A name or an id: as it is where it reads as one word, else as a quotation."""
    return say_name(show(text))


def shorten(key: str | None, text: str) -> str:
    """A hash by its first characters, for nobody reads the rest in a sentence; any other text as it is.

    `tell_shortened` says beside the sentence what is left out here.
    """
    found = _KEY.match(text) if key == "fingerprint" else _HASH.match(text)
    return f"{found[1]}…" if found else text


def name_key(written: str) -> str:
    """A public key by a fingerprint of its own: the first characters of all keys of a kind are the same."""
    key = read_public_key(written)
    return hashlib.sha256(written.encode("utf-8", "surrogatepass") if key is None else key).hexdigest()[:8]


def say_key(shown: str, written: str) -> tuple[str, str]:
    """What a key is called that is shown under a name, and how it is told from others."""
    return (
        ("key fingerprint", cite(shorten(shown, written)))
        if shown == "fingerprint"
        else ("public key", name_key(written))
    )


def is_partial(written: str) -> bool:
    """Whether a key is only partly shown, and so cannot be compared with another."""
    return "…" in written or "..." in written


# Fingerprints, and hashes under any name: `SHA256:`, where it stands, is kept.
_KEY = re.compile(r"((?>(?:[A-Za-z0-9-]{1,16}+:)?)\S{8})\S{16,}+\Z")
_HASH = re.compile(r"((?>(?:[A-Za-z0-9-]{1,16}+:)?)[0-9A-Fa-f]{8})[0-9A-Fa-f]{32,}+\Z")


def tell_shortened(payload: Payload) -> Iterator[Segment]:
    """What the sentence shortened, in full, one phrase each."""
    text = payload.text
    if text is None:
        return
    if not payload.is_json:
        if shorten(None, text) != text:
            yield Segment(text=f"the payload in full: {cite(text)}", spans=(_text_span(payload),))
        return
    at = _place_of(payload, text)
    yield from _tell_shortened(at, at.root.members, None, 0)


def _tell_shortened(at: _Place, held: Sequence[Node], above: str | None, depth: int) -> Iterator[Segment]:
    for member in held[:MAX_SAID_MEMBERS]:
        own = member.key if isinstance(member.key, str) else None
        key = own or above
        if member.kind == '"':
            value = at.read(member)
            if not is_partial(value) if _is_key(own, value) else shorten(own, value) != value:
                label = " ".join(([_say_name_of_key(key, None)] if key else []) + ([] if own else ["item"]))
                yield Segment(text=f"{label} in full: {cite(value)}", spans=(at.span(member.start, member.end),))
        elif member.kind in "{[" and depth < _MAX_SAID_DEPTH:
            yield from _tell_shortened(at, member.members, key, depth + 1)


def _is_key(key: str | int | None, value: Any) -> bool:
    return key == "pubkey" and isinstance(value, str) and bool(value)


def say_payload(
    sentence: Sentence, payload: Payload, *, skip: frozenset[str] = frozenset(), named: str | None = None
) -> None:
    """Add what a payload says.

    `skip` names members of its JSON that the sentence has said already; `named` is the one whose label it has said,
    which is not said again where that member comes first.
    """
    if payload.kind == "encrypted" and payload.text is None and payload.hidden is None:
        return
    if payload.kind == "zlib" and (payload.text is not None or payload.hidden is not None):
        as_json = " as JSON" if payload.is_json and payload.text is not None else ""
        container = "" if any(note.code == kinds.OTHER_CONTAINER.code for note in payload.notes) else " (zlib)"
        sentence.say(f", its payload compressed{container}, opened here{as_json}", payload.span)
    if payload.is_json and payload.text is not None:
        _say_json(sentence, payload, skip, named)
    elif payload.text is not None:
        span = _text_span(payload)
        is_raw = payload.kind == "raw"
        if payload.text:
            sentence.say(", in plaintext: " if is_raw else ": ").say(cite(shorten(None, payload.text)), span)
        else:
            sentence.say(", with an empty payload", payload.span)
    elif payload.hidden is not None:
        size = len(payload.hidden) // 2
        words = f", with {say_bytes(size)} that {'is' if size == 1 else 'are'} not text, in hex "
        sentence.say(words, payload.span).say(payload.hidden, payload.span, basis="unknown")
        if payload.kind == "text" and payload.written != payload.hidden and len(payload.written) <= _MAX_VERBATIM:
            # A short word that nobody encoded may be Base64, too.
            sentence.say(" (as written: ").say(cite(payload.written), payload.span).say(")")
    else:
        _say_unread(sentence, payload)


def _text_span(payload: Payload) -> Span:
    if payload.layer == payload.of:
        return (payload.of, payload.body, payload.end)
    return (payload.layer, 0, len(payload.text or ""))


_UNREAD = {"zlib": "compressed payload", "json": "JSON payload", "text": "payload", "unknown": "payload"}


def _say_unread(sentence: Sentence, payload: Payload) -> None:
    what = _UNREAD.get(payload.kind, "payload")
    is_plain = any(note.code == kinds.NOT_BASE64.code for note in payload.notes)
    fault = "is not Base64" if is_plain else "could not be read"
    if len(payload.written) > _MAX_VERBATIM:
        words = f", with a {what} of {len(payload.written)} characters that {fault}"
        sentence.say(words, payload.span, basis="unknown")
        return
    sentence.say(f", with a {what} that {fault}, as written: ")
    sentence.say(cite(payload.written), payload.span, basis="unknown")


def is_too_long_to_cite(payload: Payload) -> bool:
    """Whether an unread payload was said by its size alone."""
    is_read = payload.text is not None or payload.hidden is not None or payload.sealed is not None
    return not is_read and len(payload.written) > _MAX_VERBATIM


def _say_json(sentence: Sentence, payload: Payload, skip: frozenset[str], named: str | None) -> None:
    text = payload.text or ""
    at = _place_of(payload, text)
    root = at.root
    if root.kind not in "{[":
        said = cite(text.strip()) if root.kind == '"' else text.strip()
        sentence.say(": ").say(said, at.span(root.start, len(text.rstrip())))
        return
    held = [member for member in root.members if member.key not in skip]
    if not held:
        if not skip:
            kind = "object" if root.kind == "{" else "list"
            sentence.say(f", with an empty JSON {kind}", at.span(0, len(text)))
        return
    is_apart = root.kind == "[" or held[0].key == named
    sentence.say(": " if is_apart else ", with ")
    _say_members(sentence, at, held, 0, named)


class _Place:
    """A JSON text, its layer, and where on the layer it begins."""

    def __init__(self, text: str, layer: int, base: int) -> None:
        self.text, self.layer, self.base = text, layer, base
        self.root = place(text, skip_space(text), len(text))

    def read(self, node: Node) -> Any:
        return node.read(self.text, RULES)

    def span(self, start: int, end: int) -> Span:
        return (self.layer, self.base + start, self.base + end)


def _place_of(payload: Payload, text: str) -> _Place:
    is_on_wire = payload.layer == payload.of and payload.kind != "encrypted"
    return _Place(text, payload.layer, payload.body if is_on_wire else 0)


def _say_members(sentence: Sentence, at: _Place, held: Sequence[Node], depth: int, named: str | None = None) -> None:
    for index, member in enumerate(held):
        if index == MAX_SAID_MEMBERS:
            sentence.say(f" and {len(held) - index} more, as written: ")
            first, last = member.key_start, held[-1].end
            sentence.say(cite(at.text[first:last]), at.span(first, last))
            return
        if index:
            sentence.say(", ")
        is_named = index == 0 and member.key == named
        if isinstance(member.key, str) and not is_named:
            said = _say_name_of_key(member.key, at.read(member))
            sentence.say(f"{said} = ", at.span(member.key_start, member.key_end))
        _say_value(sentence, at, member, depth)


def _say_name_of_key(key: str, value: Any) -> str:
    """The table's words for a key that it has, else the key itself: one is told from the other."""
    label = say_label(key, value)
    return name(label) if label == key else label


def _say_value(sentence: Sentence, at: _Place, member: Node, depth: int) -> None:
    key = member.key if isinstance(member.key, str) else None
    value, written, span = at.read(member), at.text[member.start : member.end], at.span(member.start, member.end)
    coded = _say_codes(key, value)
    if coded is not None:
        sentence.say(coded, span)
    elif _is_key(key, value) and is_partial(value):
        sentence.say(cite(value), span).say(" (only a part of a key)", span)
    elif _is_key(key, value):
        sentence.say(f"a key with the fingerprint {name_key(value)}", span)
    elif member.kind == '"':
        sentence.say(cite(shorten(key, value)), span)
    elif member.kind in "{[":
        inner = member.members if depth < _MAX_SAID_DEPTH else ()
        if not inner:
            sentence.say(cite(written) if depth >= _MAX_SAID_DEPTH else "".join(written.split()), span)
            return
        is_plain_list = member.kind == "[" and not any(each.kind in "{[" for each in inner)
        if is_plain_list and len(inner) <= MAX_SAID_MEMBERS:
            _say_list(sentence, at, inner)
            return
        opening, closing = ("(", ")") if member.kind == "{" else ("[", "]")
        sentence.say(opening)
        _say_members(sentence, at, inner, depth + 1)
        sentence.say(closing)
    else:
        sentence.say(_say_plain(key, value, written), span)


def _say_plain(key: str | None, value: Any, written: str) -> str:
    """A number with its meaning, a truth value in words, or null."""
    meaning = meaning_of(key, value)
    if meaning is None:
        return TRUTHS.get(written, written)
    return meaning if meaning.startswith(f"{written} ") else f"{written} ({meaning})"


def _say_list(sentence: Sentence, at: _Place, inner: Sequence[Node]) -> None:
    """Add plain values as a person lists them: `1, 2 and 3`."""
    for index, member in enumerate(inner):
        if index:
            sentence.say(" and " if index == len(inner) - 1 else ", ")
        _say_value(sentence, at, member, _MAX_SAID_DEPTH)


def _say_codes(key: str | None, value: Any) -> str | None:
    """Domain codes and security letters of a handshake, with their meanings."""
    if key == "capabilities":
        table = {code: domain.meaning for code, domain in DOMAINS.items()}
    elif key == "security":
        table = LEVELS
    else:
        return None
    codes = value if isinstance(value, list) else [value]
    if not codes or not all(isinstance(code, str) for code in codes):
        return None
    return join_words([f"{table[code]} ({code})" if code in table else cite(code) for code in codes])


def say_sealed(sentence: Sentence, payload: Payload, session: str | None, session_span: Span | None) -> None:
    """Add that a payload is sealed: in which session, and how large it is."""
    if payload.sealed is None:
        sentence.say(", with an encrypted payload", payload.span)
        if session is not None:
            sentence.say(" of session ").say(name(session), session_span)
        if len(payload.written) > _MAX_VERBATIM:
            sentence.say(f" of {len(payload.written)} characters that cannot be read", payload.span, basis="unknown")
        else:
            sentence.say(" that cannot be read: ").say(cite(payload.written), payload.span, basis="unknown")
        return
    if session is not None:
        sentence.say("; its payload is sealed, in session ", payload.span).say(name(session), session_span)
    else:
        sentence.say("; its payload is sealed, in a session it does not name", payload.span)
    say_sizes(sentence, payload)


def say_sizes(sentence: Sentence, payload: Payload) -> None:
    """Add the sizes of nonce, ciphertext and tag."""
    (first, middle), (second, last) = payload.parts
    nonce, size = len(payload.nonce or b""), payload.size_bytes or 0
    sentence.say(": nonce ").say(say_bytes(nonce), (payload.of, first, middle))
    if len(payload.sealed or b"") < 16:
        words = f"{say_bytes(len(payload.sealed or b''))} of ciphertext, too few for a tag"
        sentence.say(", ").say(words, (payload.of, second, last))
    else:
        sentence.say(", ciphertext ").say(say_bytes(size), (payload.of, second, last)).say(" and tag 16 bytes")


def say_bytes(count: int) -> str:
    """`1 byte`, `12 bytes`."""
    return f"{count} byte{'' if count == 1 else 's'}"
