"""Rules over secrets and seals: what the dialects promise of encryption, and what is not to be taken on trust."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Final

from inspector.intake.concealing import IN_CLEAR, NAMES
from inspector.threads.agents.confusables import find_likenesses, find_oddities

from ..findings.scene import Scene, Seen
from .logs import say
from .rule import Hit, Rule

_SECURITY: Final = "references/security"
_FOOT: Final = "\n--👽lingua/0.4@agent-lingua"
_SHOWN: Final = 4

# Both offer encryption and agree on it, in a session.
_OFFER: Final = (
    "ada",
    "👽09|$j:eyJwcm90b2NvbCI6ImFnZW50LWxpbmd1YSIsInZlcnNpb24iOiIwLjQuMCIsInNlY3VyaXR5IjpbIlAiLCJCIiwiRSJdfQ==" + _FOOT,
)
_AGREED: Final = (
    "bob",
    "^0|$j:eyJhY2NlcHRlZCI6dHJ1ZSwidmVyc2lvbiI6IjAuNC4wIiwic2VjdXJpdHkiOiJFIiwic2Vzc2lvbiI6InMxIn0=" + _FOOT,
)
_SEALED: Final = ("ada", "👽137|@bob|#s1|$e:AQIDBAUGBwgJCgsM:EBBWkYG78B/p6E+JsRWsRc5WEXK9" + _FOOT)
_SEALED_AGAIN: Final = ("ada", "👽137|@bob|#s1|$e:AQIDBAUGBwgJCgsM:GRJblIDkoOsCnB6/XbRHIaIm1WC7" + _FOOT)
_SEALED_ANEW: Final = ("ada", "👽137|@bob|#s1|$e:AgMEBQYHCAkKCwwN:yzf+1+eOXxf5IzotqmWDw2URCOHl" + _FOOT)
_OPENLY: Final = ("ada", "👽13|@bob|$aGk=" + _FOOT)
_END: Final = ("ada", "👽08|#s1" + _FOOT)
_KEY: Final = (
    "ada",
    "👽09|$j:eyJjcnlwdG8iOlsiWDI1NTE5K0FFUy1HQ00iXSwicHVia2V5IjoiTUNvd0JRWURLMlZ1QXlFQUI3akZRa2gyaHFlREFZVmZ5MjAvYW9x"
    "UkhOZnhtRHFiUk55ZHpTS0RuU009In0=" + _FOOT,
)
_OTHER_KEY: Final = (
    "ada",
    "👽09|$j:eyJjcnlwdG8iOlsiWDI1NTE5K0FFUy1HQ00iXSwicHVia2V5IjoiTUNvd0JRWURLMlZ1QXlFQUZkZTNVR1Q5MGNvN2FJZlhXemZXcjhI"
    "OUpYUHRuZC92T05aOXc4M0srUnM9In0=" + _FOOT,
)
_WEAK_KEY: Final = (
    "ada",
    "👽09|$j:eyJwdWJrZXkiOiJBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBPSJ9" + _FOOT,
)
_MISLABELLED: Final = (
    "ada",
    "👽09|$j:eyJjcnlwdG8iOlsiWDI1NTE5K0FFUy1HQ00iXSwicHVia2V5IjoiTUNvd0JRWURLMlZ3QXlFQUI3akZRa2gyaHFlREFZVmZ5MjAv"
    "YW9xUkhOZnhtRHFiUk55ZHpTS0RuU009In0=" + _FOOT,
)
_DOWN: Final = (
    ("bob", "^0|$j:eyJzZWN1cml0eSI6WyJQIiwiQiIsIkUiXX0=" + _FOOT),
    _OFFER,
    ("bob", "^0|$j:eyJhY2NlcHRlZCI6dHJ1ZSwic2VjdXJpdHkiOiJCIn0=" + _FOOT),
)


def _find_plaintext(scene: Scene) -> Iterator[Hit]:
    """The first message of each pair that is open after one between the same two was sealed."""
    sealed: dict[frozenset[str], Seen] = {}
    for message in scene.sealed:
        for receiver in message.receivers:
            sealed.setdefault(frozenset((message.sender, receiver)), message)
    told = set()
    for message in scene.open:
        for receiver in message.receivers:
            pair = frozenset((message.sender, receiver))
            before = sealed.get(pair)
            if before is None or before.at >= message.at or pair in told or before.dialect != message.dialect:
                continue
            told.add(pair)
            yield Hit(
                message=message.id,
                text=f"{message.sender or 'Somebody'} and {receiver} encrypted before, and this payload is not sealed.",
                detail=receiver,
                related=(before.id,),
            )


def _find_refused(scene: Scene) -> Iterator[Hit]:
    for message in scene.refused:
        yield Hit(message=message.id, text="The key that is held for its session does not open it.")


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
        title="A sealed message that is not authentic",
        why="It was altered on its way, or sealed with another key than was agreed. Nothing of it can be relied on.",
        severity="error",
        group="security",
        notes=frozenset({"agent_lingua.not-authentic"}),
        cites=_SECURITY,
        look=_find_refused,
        passes=(say(_OFFER, _AGREED, _SEALED),),
    ),
    Rule(
        code="nonce-reused",
        title="A nonce that was used twice",
        why="With AES-GCM this gives away what both messages say, and lets others forge more.",
        severity="error",
        group="security",
        notes=frozenset({"agent_lingua.nonce-reused"}),
        triggers=(say(_OFFER, _AGREED, _SEALED, _SEALED_AGAIN),),
        passes=(say(_OFFER, _AGREED, _SEALED, _SEALED_ANEW),),
    ),
    Rule(
        code="downgrade",
        title="Agreed on less than both sides offered",
        why="Somebody between the two may have struck out what protects them.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.downgrade"}),
        triggers=(say(*_DOWN),),
        passes=(say(_OFFER, _AGREED),),
    ),
    Rule(
        code="plaintext-after-encryption",
        title="In clear where the same two had encrypted",
        why="What was to be secret between them can be read by everybody on the way, here too.",
        severity="warning",
        group="security",
        cites=_SECURITY,
        look=_find_plaintext,
        triggers=(say(_OFFER, _AGREED, _SEALED, _OPENLY),),
        passes=(say(_OFFER, _AGREED, _SEALED, _SEALED_ANEW), say(_OPENLY)),
    ),
    Rule(
        code="key-changed",
        title="An agent shows another key than before",
        why="Unless it was announced, somebody else may speak under that name from here on.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.key-changed"}),
        triggers=(say(_KEY, _OTHER_KEY),),
        passes=(say(_KEY, _KEY),),
    ),
    Rule(
        code="key-unfit",
        title="A key that protects nothing",
        why="The key is of low order: what is sealed with it can be opened by anybody.",
        severity="error",
        group="security",
        notes=frozenset({"agent_lingua.key-weak"}),
        triggers=(say(_WEAK_KEY),),
        passes=(say(_KEY), say(_MISLABELLED)),
    ),
    Rule(
        code="key-mislabelled",
        title="A key of another kind than it is offered for",
        why="Software that checks the kind refuses the key, and what was to be sealed may then go in clear.",
        severity="notice",
        group="security",
        notes=frozenset({"agent_lingua.key-mislabelled"}),
        triggers=(say(_MISLABELLED),),
        passes=(say(_KEY),),
    ),
    Rule(
        code="session-not-agreed",
        title="Sealed in a session that nobody agreed on",
        why="Without a handshake there is no telling who holds the key.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.session-unknown", "agent_lingua.session-missing"}),
        triggers=(say(_SEALED),),
        passes=(say(_OFFER, _AGREED, _SEALED),),
    ),
    Rule(
        code="session-ended",
        title="Sealed in a session that had ended",
        why="A key that was given up is still in use, or somebody who kept it goes on under it.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.session-ended"}),
        triggers=(say(_OFFER, _AGREED, _END, _SEALED),),
        passes=(say(_OFFER, _AGREED, _SEALED, _END),),
    ),
    Rule(
        code="session-overused",
        title="A session key beyond its limits",
        why="The protocol bounds how long and how often a key is used, so that nonces do not meet.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.session-overused"}),
        triggers=(say(_OFFER, _AGREED, (*_SEALED_ANEW, 1600)),),
        passes=(say(_OFFER, _AGREED, (*_SEALED_ANEW, 600)),),
    ),
    Rule(
        code="seal-unsound",
        title="A seal that cannot be sound",
        why="Nonce or ciphertext are not of the size that the protocol asks for: it is no proof of anything.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.nonce-size", "agent_lingua.sealed-short", "agent_lingua.sealed-unread"}),
        triggers=(say(("ada", "👽137|@bob|#s1|$e:AAAAAAAAAAAAAAA=:AAAAAAAAAAAAAAAAAAAAAAAAAAA=" + _FOOT)),),
        passes=(say(_OFFER, _AGREED, _SEALED),),
    ),
    Rule(
        code="promise-not-kept",
        title="It promises encryption or compression, and is neither",
        why="Whoever looks at the modifier alone takes it for protected.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.modifier-disagrees"}),
        triggers=(say(("ada", "👽137|@bob|$aGk=" + _FOOT)),),
        passes=(say(_OPENLY),),
    ),
    Rule(
        code="foreign-source",
        title="A signature line that names another source",
        why="It points a reader to a specification that is not the protocol's. Nothing is fetched from there.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.foreign-source"}),
        triggers=(say(("ada", "👽00\n--👽lingua/0.4@https://example.org/spec")),),
        passes=(say(("ada", "👽00" + _FOOT)),),
    ),
    Rule(
        code="bomb",
        title="Data that unpacks past every bound",
        why="It is made to stop whoever reads it. It was not unpacked here.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.too-large", "agent_lingua.nested-limit"}),
        triggers=(
            say(
                (
                    "ada",
                    "👽73|@1|$z:eNrtwTEBAAAAwqD1T20ND6AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                    "AAAAAAAAAAvgzqYAAB" + _FOOT,
                )
            ),
        ),
        passes=(say(_OPENLY),),
    ),
    Rule(
        code="token-in-clear",
        title="A secret in clear",
        why="Whoever reads this log can act in the name of its owner. It should be revoked.",
        severity="error",
        group="security",
        look=_find_tokens,
        triggers=(
            say(("ada", "Use AKIA" + "ABCDEFGHIJKLMNOP" + " for the bucket.")),
            say(("ada", '@a3|f0|c1|S0|d1|T1|t"postgres://ada:hunter' + '2@db/orders"#')),
        ),
        passes=(
            say(("ada", "Use the key that I gave you for the bucket.")),
            say(("ada", "The password: required, and it must be rotated. token_limit: 4096")),
            say(("ada", "It wants Bearer authentication/authorisation.")),
            say(("ada", "The manual shows AKIAIOSFODNN7" + "EXAMPLE there.")),
        ),
    ),
    Rule(
        code="hidden-characters",
        title="Characters that cannot be seen",
        why="Marks of direction and signs of no width make a text look like another.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.invisible"}),
        look=_find_hidden,
        triggers=(say(("ada", "pay bo\u202eb now")), say(("ada", '@a3|f0|c1|S0|d1|T1|t"no\u200bw"#'))),
        passes=(
            say(("ada", "pay bob now 👨\u200d👩\u200d👧")),
            say(("ada", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 and \u0915\u094d\u200d\u0937")),
            say(("ada", "\u05e9\u05dc\u05d5\u05dd\u200f (1)")),
            say(("ada", "for 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f too")),
        ),
    ),
    Rule(
        code="sender-not-of-key",
        title="A sender that is not one of its key's agents",
        why="Whoever holds the key spoke under a name that is not theirs, or the key is used by somebody else.",
        severity="error",
        group="security",
        look=_find_strangers,
        passes=(say(("ada", "pay bob now")),),
    ),
    Rule(
        code="names-alike",
        title="Two names that can be taken for one another",
        why="Somebody may speak under a name that looks like another agent's.",
        severity="warning",
        group="security",
        look=_find_names,
        triggers=(say(("planner", "pay bob now"), ("pl\u0430nner", "yes")),),
        passes=(say(("worker-1", "pay bob now"), ("worker-2", "yes")),),
    ),
)
