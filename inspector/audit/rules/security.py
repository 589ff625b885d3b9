"""Rules over keys, sessions and seals (what dialects promise of encryption, and what is not to be taken on trust), over
what stands in the text of a message (secrets, signs that deceive, data made to do harm), and over who speaks.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from inspector.browsing.transcripts import say_changed_key
from inspector.characters import LOOKALIKES, find_likenesses, find_oddities
from inspector.intake.readings import IN_CLEAR, NAMES

from ..findings.scene import Scene, Seen
from .rule import Hit, Rule

_SECURITY: Final = "references/security"
# Between whom, since when, and in which message it was agreed to encrypt; none where that ended.
_Pacts = Mapping[frozenset[str], Sequence[tuple[datetime, Seen | None]]]


def _find_plaintext(scene: Scene) -> Iterator[Hit]:
    """The first message of each pair that is open after one was sealed between the two, or after they agreed on it."""
    sealed: dict[frozenset[str], Seen] = {}
    for message in scene.sealed:
        for receiver in _list_receivers(scene, message):
            sealed.setdefault(frozenset((message.sender, receiver)), message)
    pacts = _list_pacts(scene)
    shaking = {message.id for message in scene.open if message.performative == "handshake"}
    shaking |= {message.id for message, _ in scene.pacts}
    told = set()
    for message in scene.open:
        # An offer of encryption, and the answer to it, cannot be sealed.
        if message.id in shaking or message.parent in shaking:
            continue
        for receiver in _list_receivers(scene, message):
            pair = frozenset((message.sender, receiver))
            before, did = sealed.get(pair), "encrypted before"
            if before is None or before.at >= message.at:
                before, did = _find_pact(pacts.get(pair, ()), message.at), "had agreed to encrypt"
            if before is None or pair in told or before.dialect != message.dialect:
                continue
            told.add(pair)
            yield Hit(
                message=message.id,
                text=f"{message.sender or 'Somebody'} and {receiver} {did}, and this payload is not sealed.",
                detail=receiver,
                related=(before.id,),
            )


def _list_receivers(scene: Scene, message: Seen) -> Sequence[str]:
    """To whom it is; what names nobody is to the other where two agents talk."""
    others = [name for name in scene.conversation.agents if name != message.sender]
    return message.receivers or (others if len(others) == 1 else ())


def _list_pacts(scene: Scene) -> _Pacts:
    pacts: dict[frozenset[str], list[tuple[datetime, Seen | None]]] = defaultdict(list)
    offered, sessions = "", dict[str, frozenset[str]]()
    for message, entries in scene.pacts:
        for kind, name, value, *_ in entries:
            if not isinstance(value, dict):
                continue
            if kind == "handshake":
                offered = value.get("by") or ""
            elif value.get("state") == "agreed" and value.get("level") == "E" and offered:
                sessions[name] = frozenset((offered, message.sender))
                pacts[sessions[name]].append((message.at, message))
            elif name in sessions:
                pacts[sessions.pop(name)].append((message.at, None))
    return pacts


def _find_pact(pacts: Sequence[tuple[datetime, Seen | None]], at: datetime) -> Seen | None:
    """The message in which what was in force at a moment was agreed."""
    return next((message for since, message in reversed(pacts) if since < at), None)


def _find_rekeyed(scene: Scene) -> Iterator[Hit]:
    for each in scene.rekeyed:
        yield Hit(message=each.message, text=say_changed_key(each), detail=each.name, related=(each.other,))


def _find_refused(scene: Scene) -> Iterator[Hit]:
    for message in scene.refused:
        yield Hit(message=message.id, text="The key that is held for its session does not open it.")


_SHOWN: Final = 4


def _find_hidden(scene: Scene) -> Iterator[Hit]:
    for message, signs in scene.hidden:
        names = ", ".join(f"U+{ord(sign):04X} {unicodedata.name(sign, 'unnamed').lower()}" for sign in signs[:_SHOWN])
        more = f" and {len(signs) - _SHOWN} more" if len(signs) > _SHOWN else ""
        yield Hit(message=message.id, text=f"It holds characters that cannot be seen: {names}{more}.")


def _find_tokens(scene: Scene) -> Iterator[Hit]:
    """What reading noted of each message; a finding for each kind of secret."""
    for noted in scene.noted:
        for note in noted.notes:
            if note["code"] == IN_CLEAR.code:
                name = next((name for name in NAMES if name in note["text"]), "")
                yield Hit(
                    message=noted.message.id,
                    text=f"{note['text'][:1].upper()}{note['text'][1:]}.",
                    span=tuple(note["span"]) if note.get("span") else None,
                    detail=name,
                )


def _find_mixed(scene: Scene) -> Iterator[Hit]:
    for message, words in scene.mixed:
        shown = []
        for word in words[:_SHOWN]:
            sign = next(sign for sign in word if sign in LOOKALIKES)
            name = f"U+{ord(sign):04X} {unicodedata.name(sign).lower()}"
            shown.append(f"{word!r} looks like {word.translate(_AS_LATIN)!r}, and holds {name}")
        more = f"; and {len(words) - _SHOWN} more" if len(words) > _SHOWN else ""
        yield Hit(message=message.id, text="; ".join(shown) + more + ".")


_AS_LATIN: Final = str.maketrans(dict(LOOKALIKES))


def _find_strangers(scene: Scene) -> Iterator[Hit]:
    for message, key in scene.strangers:
        yield Hit(
            message=message.id, text=f"It came by the key {key!r}, whose agents are not called {message.sender!r}."
        )


def _find_names(scene: Scene) -> Iterator[Hit]:
    """Names of one conversation that can be taken for one another, and names that are odd by themselves."""
    if scene.first is None:
        return
    names = [name for name in scene.conversation.agents if name]
    for name in sorted(names):
        for oddity in find_oddities(name)[:1]:
            yield Hit(message=scene.first.id, text=f"The name {name!r} {oddity}.", detail=f"odd {name}")
    for name, likenesses in sorted(find_likenesses(names).items()):
        for likeness in likenesses:
            if name < likeness.name:
                yield Hit(
                    message=scene.first.id,
                    text=f"{name!r} can be taken for {likeness.name!r}: it {likeness.why}.",
                    detail=f"like {name} {likeness.name}",
                )


RULES: Final = (
    Rule(
        code="not-authentic",
        title="Encrypted message fails authentication",
        why="It was altered on the way or encrypted with a key that was not agreed. Its content is unreliable.",
        severity="error",
        group="security",
        notes=frozenset({"agent_lingua.not-authentic"}),
        cites=_SECURITY,
        look=_find_refused,
    ),
    Rule(
        code="nonce-reused",
        title="Nonce reused",
        why="With AES-GCM this reveals the content of both messages and lets others forge more.",
        severity="error",
        group="security",
        notes=frozenset({"agent_lingua.nonce-reused"}),
    ),
    Rule(
        code="downgrade",
        title="Security downgraded in the handshake",
        why="Somebody between the two may have removed their protection.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.downgrade"}),
    ),
    Rule(
        code="plaintext-after-encryption",
        title="Plaintext after encryption was agreed",
        why="Everybody on the way can read what should be secret between them, and so can readers here.",
        severity="warning",
        group="security",
        cites=_SECURITY,
        look=_find_plaintext,
    ),
    Rule(
        code="key-changed",
        title="Agent's key changed",
        why="Unless the change was announced, somebody else may be using that name from here on.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.key-changed"}),
        cites=_SECURITY,
        look=_find_rekeyed,
    ),
    Rule(
        code="key-shared",
        title="One key shown by two agents",
        why="Either the two are one, or one of them passes off the other's key as its own.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.key-shared"}),
    ),
    Rule(
        code="key-unfit",
        title="Weak public key",
        why="The key is of low order: anybody can decrypt what is encrypted with it.",
        severity="error",
        group="security",
        notes=frozenset({"agent_lingua.key-weak"}),
    ),
    Rule(
        code="key-mislabelled",
        title="Key of the wrong kind",
        why="Software that checks the kind refuses the key, and the messages may then be sent in plaintext.",
        severity="notice",
        group="security",
        notes=frozenset({"agent_lingua.key-mislabelled"}),
    ),
    Rule(
        code="session-not-agreed",
        title="Encrypted without handshake",
        why="Without a handshake the holder of the key is unknown.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.session-unknown", "agent_lingua.session-missing"}),
    ),
    Rule(
        code="session-ended",
        title="Encrypted in an ended session",
        why="A retired key is still in use, or somebody who kept it continues under it.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.session-ended"}),
    ),
    Rule(
        code="session-overused",
        title="Session key used beyond its limits",
        why="The protocol limits how long and how often a key is used, so that nonces do not collide.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.session-overused"}),
    ),
    Rule(
        code="seal-unsound",
        title="Malformed encryption",
        why="Nonce or ciphertext have the wrong size for the protocol: the encryption proves nothing.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.nonce-size", "agent_lingua.sealed-short", "agent_lingua.sealed-unread"}),
    ),
    Rule(
        code="promise-not-kept",
        title="Marked as encrypted or compressed, but is neither",
        why="A reader who looks only at the modifier takes it for protected.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.modifier-disagrees"}),
    ),
    Rule(
        code="token-in-clear",
        title="Exposed secret",
        why="Every reader of this log can act in the name of the secret's owner. Revoke the secret.",
        severity="error",
        group="security",
        look=_find_tokens,
    ),
    Rule(
        code="hidden-characters",
        title="Invisible characters",
        why="Direction marks and zero-width characters make a text look like another.",
        severity="warning",
        group="security",
        notes=frozenset({"text.hidden"}),
        look=_find_hidden,
    ),
    Rule(
        code="letters-alike",
        title="Look-alike letters in a word",
        why="It looks like another word: a search for that word misses it, and a reader may trust the wrong name.",
        severity="warning",
        group="security",
        look=_find_mixed,
    ),
    Rule(
        code="foreign-source",
        title="Signature line names a foreign source",
        why="It points readers to a foreign specification. Nothing is fetched from there.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.foreign-source"}),
    ),
    Rule(
        code="bomb",
        title="Decompression bomb",
        why="It is built to overload its readers. It was not unpacked here.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.too-large", "agent_lingua.nested-limit"}),
    ),
    Rule(
        code="sender-not-of-key",
        title="Sender not allowed for its API key",
        why="The key's holder used a foreign name, or somebody else uses the key.",
        severity="error",
        group="security",
        look=_find_strangers,
    ),
    Rule(
        code="names-alike",
        title="Look-alike agent names",
        why="Somebody may speak under a name that looks like another agent's.",
        severity="warning",
        group="security",
        look=_find_names,
    ),
)
