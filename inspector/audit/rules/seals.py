"""Rules over keys, sessions and seals: what dialects promise of encryption, and what is not to be taken on trust."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from inspector.browsing.transcripts import say_changed_key

from ..findings.scene import Scene, Seen
from .rule import FOOT, Hit, Rule, pack, say

_SECURITY: Final = "references/security"
# Between whom, since when, and in which message it was agreed to encrypt; none where that ended.
_Pacts = Mapping[frozenset[str], Sequence[tuple[datetime, Seen | None]]]

# Both offer encryption and agree on it, in a session.
_OFFER: Final = (
    "ada",
    "👽09|$j:eyJwcm90b2NvbCI6ImFnZW50LWxpbmd1YSIsInZlcnNpb24iOiIwLjQuMCIsInNlY3VyaXR5IjpbIlAiLCJCIiwiRSJdfQ==" + FOOT,
)
_AGREED: Final = (
    "bob",
    "^0|$j:eyJhY2NlcHRlZCI6dHJ1ZSwidmVyc2lvbiI6IjAuNC4wIiwic2VjdXJpdHkiOiJFIiwic2Vzc2lvbiI6InMxIn0=" + FOOT,
)
_SEALED: Final = ("ada", "👽137|@bob|#s1|$e:AQIDBAUGBwgJCgsM:EBBWkYG78B/p6E+JsRWsRc5WEXK9" + FOOT)
_SEALED_AGAIN: Final = ("ada", "👽137|@bob|#s1|$e:AQIDBAUGBwgJCgsM:GRJblIDkoOsCnB6/XbRHIaIm1WC7" + FOOT)
_SEALED_ANEW: Final = ("ada", "👽137|@bob|#s1|$e:AgMEBQYHCAkKCwwN:yzf+1+eOXxf5IzotqmWDw2URCOHl" + FOOT)
_OPENLY: Final = ("ada", "👽13|@bob|$aGk=" + FOOT)
_END: Final = ("ada", "👽08|#s1" + FOOT)
_KEY: Final = (
    "ada",
    "👽09|$j:eyJjcnlwdG8iOlsiWDI1NTE5K0FFUy1HQ00iXSwicHVia2V5IjoiTUNvd0JRWURLMlZ1QXlFQUI3akZRa2gyaHFlREFZVmZ5MjAvYW9x"
    "UkhOZnhtRHFiUk55ZHpTS0RuU009In0=" + FOOT,
)
_OTHER_KEY: Final = (
    "ada",
    "👽09|$j:eyJjcnlwdG8iOlsiWDI1NTE5K0FFUy1HQ00iXSwicHVia2V5IjoiTUNvd0JRWURLMlZ1QXlFQUZkZTNVR1Q5MGNvN2FJZlhXemZXcjhI"
    "OUpYUHRuZC92T05aOXc4M0srUnM9In0=" + FOOT,
)
_WEAK_KEY: Final = (
    "ada",
    "👽09|$j:eyJwdWJrZXkiOiJBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBPSJ9" + FOOT,
)
_MISLABELLED: Final = (
    "ada",
    "👽09|$j:eyJjcnlwdG8iOlsiWDI1NTE5K0FFUy1HQ00iXSwicHVia2V5IjoiTUNvd0JRWURLMlZ3QXlFQUI3akZRa2gyaHFlREFZVmZ5MjAv"
    "YW9xUkhOZnhtRHFiUk55ZHpTS0RuU009In0=" + FOOT,
)
_DOWN: Final = (
    ("bob", "^0|$j:eyJzZWN1cml0eSI6WyJQIiwiQiIsIkUiXX0=" + FOOT),
    _OFFER,
    ("bob", "^0|$j:eyJhY2NlcHRlZCI6dHJ1ZSwic2VjdXJpdHkiOiJCIn0=" + FOOT),
)


def _say_elsewhere(*lines: tuple[str, str]) -> str:
    return say(*((*line, 1.0) for line in lines)).replace('"conversation": "c"', '"conversation": "d"')


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
        passes=(say(_OFFER, _AGREED, _SEALED),),
    ),
    Rule(
        code="nonce-reused",
        title="Nonce reused",
        why="With AES-GCM this reveals the content of both messages and lets others forge more.",
        severity="error",
        group="security",
        notes=frozenset({"agent_lingua.nonce-reused"}),
        triggers=(say(_OFFER, _AGREED, _SEALED, _SEALED_AGAIN),),
        passes=(
            say(_OFFER, _AGREED, _SEALED, _SEALED_ANEW),
            say(_SEALED, ("ada", _SEALED_AGAIN[1].replace("#s1", "#s2"))),
        ),
    ),
    Rule(
        code="downgrade",
        title="Security downgraded in the handshake",
        why="Somebody between the two may have removed their protection.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.downgrade"}),
        triggers=(say(*_DOWN),),
        passes=(say(_OFFER, _AGREED),),
    ),
    Rule(
        code="plaintext-after-encryption",
        title="Plaintext after encryption was agreed",
        why="Everybody on the way can read what should be secret between them, and so can readers here.",
        severity="warning",
        group="security",
        cites=_SECURITY,
        look=_find_plaintext,
        triggers=(say(_OFFER, _AGREED, _SEALED, _OPENLY), say(_OFFER, _AGREED, ("bob", "^0|$aGk=" + FOOT))),
        passes=(
            say(_OFFER, _AGREED, _SEALED, _SEALED_ANEW),
            say(_OPENLY),
            say(_OFFER, _AGREED, _SEALED, ("ada", "👽13|@eve|$aGk=" + FOOT)),
            say(_OFFER, _AGREED, _END, _OPENLY),
            say(_OFFER, _AGREED, _SEALED, _OFFER, _AGREED),
            say(_OFFER, ("bob", "^0|$j:" + pack({"accepted": True, "security": "B", "session": "s1"}) + FOOT), _OPENLY),
        ),
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
        triggers=(say(_KEY, _OTHER_KEY), say(_KEY) + _say_elsewhere(_OTHER_KEY)),
        passes=(
            say(_KEY, _KEY),
            say(_KEY, ("bob", _OTHER_KEY[1])),
            say(_KEY) + _say_elsewhere(_KEY, ("bob", _OTHER_KEY[1])),
        ),
    ),
    Rule(
        code="key-shared",
        title="One key shown by two agents",
        why="Either the two are one, or one of them passes off the other's key as its own.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.key-shared"}),
        triggers=(say(_KEY, ("bob", _KEY[1])),),
        passes=(say(_KEY, _KEY), say(_KEY, ("bob", _OTHER_KEY[1]))),
    ),
    Rule(
        code="key-unfit",
        title="Weak public key",
        why="The key is of low order: anybody can decrypt what is encrypted with it.",
        severity="error",
        group="security",
        notes=frozenset({"agent_lingua.key-weak"}),
        triggers=(say(_WEAK_KEY),),
        passes=(say(_KEY), say(_MISLABELLED)),
    ),
    Rule(
        code="key-mislabelled",
        title="Key of the wrong kind",
        why="Software that checks the kind refuses the key, and the messages may then be sent in plaintext.",
        severity="notice",
        group="security",
        notes=frozenset({"agent_lingua.key-mislabelled"}),
        triggers=(say(_MISLABELLED),),
        passes=(say(_KEY),),
    ),
    Rule(
        code="session-not-agreed",
        title="Encrypted without handshake",
        why="Without a handshake the holder of the key is unknown.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.session-unknown", "agent_lingua.session-missing"}),
        triggers=(say(_SEALED), say(("ada", _SEALED[1].replace("|#s1", "")))),
        passes=(say(_OFFER, _AGREED, _SEALED),),
    ),
    Rule(
        code="session-ended",
        title="Encrypted in an ended session",
        why="A retired key is still in use, or somebody who kept it continues under it.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.session-ended"}),
        triggers=(say(_OFFER, _AGREED, _END, _SEALED),),
        passes=(say(_OFFER, _AGREED, _SEALED, _END),),
    ),
    Rule(
        code="session-overused",
        title="Session key used beyond its limits",
        why="The protocol limits how long and how often a key is used, so that nonces do not collide.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.session-overused"}),
        triggers=(say(_OFFER, _AGREED, (*_SEALED_ANEW, 1600)),),
        passes=(say(_OFFER, _AGREED, (*_SEALED_ANEW, 600)),),
    ),
    Rule(
        code="seal-unsound",
        title="Malformed encryption",
        why="Nonce or ciphertext have the wrong size for the protocol: the encryption proves nothing.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.nonce-size", "agent_lingua.sealed-short", "agent_lingua.sealed-unread"}),
        triggers=(
            say(("ada", "👽137|@bob|#s1|$e:AAAAAAAAAAAAAAA=:AAAAAAAAAAAAAAAAAAAAAAAAAAA=" + FOOT)),
            say(("ada", "👽137|@bob|#s1|$e:AQIDBAUGBwgJCgsM:aGk=" + FOOT)),
            say(("ada", "👽137|@bob|#s1|$e:AQIDBAUGBwgJCgsM" + FOOT)),
        ),
        passes=(say(_OFFER, _AGREED, _SEALED),),
    ),
    Rule(
        code="promise-not-kept",
        title="Marked as encrypted or compressed, but is neither",
        why="A reader who looks only at the modifier takes it for protected.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.modifier-disagrees"}),
        triggers=(say(("ada", "👽137|@bob|$aGk=" + FOOT)), say(("ada", "👽138|@bob|$aGk=" + FOOT))),
        passes=(
            say(_OPENLY),
            say(_OFFER, _AGREED, _SEALED),
            say(("ada", "👽138|@bob|$z:" + pack(zlib.compress(b"hi " * 9)) + FOOT)),
        ),
    ),
)
