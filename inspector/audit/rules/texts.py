"""Rules over what stands in the text of a message (secrets, signs that deceive, addresses, data made to do harm), and
over who speaks: names that can be taken for another's, and keys under which others speak.
"""

from __future__ import annotations

import unicodedata
import zlib
from collections.abc import Iterator
from typing import Final

from inspector.characters import LOOKALIKES, find_likenesses, find_oddities
from inspector.intake.readings import IN_CLEAR, NAMES

from ..findings.scene import Scene
from .rule import FOOT, Hit, Rule, pack, say

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


def _zip(text: str) -> str:
    return "z:" + pack(zlib.compress(text.encode()))


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
        code="token-in-clear",
        title="Exposed secret",
        why="Every reader of this log can act in the name of the secret's owner. Revoke the secret.",
        severity="error",
        group="security",
        look=_find_tokens,
        triggers=(
            say(("ada", "Use AKIA" + "ABCDEFGHIJKLMNOP" + " for the bucket.")),
            say(("ada", '@a3|f0|c1|S0|d1|T1|t"postgres://ada:hunter' + '2@db/orders"#')),
            say(("ada", "-----BEGIN RSA PRIVATE " + "KEY-----")),
            say(("ada", "👽13|@bob|$j:" + pack({"password": "Tr0ub4dor&" + "3x!"}) + FOOT)),
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
        title="Invisible characters",
        why="Direction marks and zero-width characters make a text look like another.",
        severity="warning",
        group="security",
        notes=frozenset({"text.hidden"}),
        look=_find_hidden,
        triggers=(
            say(("ada", "pay bo\u202eb now")),
            say(("ada", '@a3|f0|c1|S0|d1|T1|t"no\u200bw"#')),
            say(("ada", "👽13|@bob|$r:no\u200bw" + FOOT)),
        ),
        passes=(
            say(("ada", "pay bob now 👨\u200d👩\u200d👧")),
            say(("ada", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 and \u0915\u094d\u200d\u0937")),
            say(("ada", "\u05e9\u05dc\u05d5\u05dd\u200f (1)")),
            say(("ada", "for 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f too")),
        ),
    ),
    Rule(
        code="letters-alike",
        title="Look-alike letters in a word",
        why="It looks like another word: a search for that word misses it, and a reader may trust the wrong name.",
        severity="warning",
        group="security",
        look=_find_mixed,
        triggers=(say(("ada", "Log in at p\u0430ypal now.")), say(("ada", "Ask \u0412ob, not Eve."))),
        passes=(
            say(("ada", "Log in at paypal now.")),
            say(
                (
                    "ada",
                    "\u041f\u0440\u0438\u0432\u0435\u0442 from Moscow, \u0430 then IT-\u043e\u0442\u0434\u0435\u043b.",
                )
            ),
            say(("ada", "5 \u03bcs at \u0394T = 3 K, with \u03b1x and k\u03a9.")),
            say(("ada", "\u039f\u03bb\u03b1 \u03ba\u03b1\u03bb\u03ac, says the Greek.")),
            say(("\u0435ve", "Good morning."), ("ada", "Hello \u0435ve, how are you?")),
        ),
    ),
    Rule(
        code="foreign-source",
        title="Signature line names a foreign source",
        why="It points readers to a foreign specification. Nothing is fetched from there.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.foreign-source"}),
        triggers=(say(("ada", "👽00\n--👽lingua/0.4@https://example.org/spec")),),
        passes=(say(("ada", "👽00" + FOOT)),),
    ),
    Rule(
        code="bomb",
        title="Decompression bomb",
        why="It is built to overload its readers. It was not unpacked here.",
        severity="warning",
        group="security",
        notes=frozenset({"agent_lingua.too-large", "agent_lingua.nested-limit"}),
        triggers=(
            say(
                (
                    "ada",
                    "👽73|@1|$z:eNrtwTEBAAAAwqD1T20ND6AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                    "AAAAAAAAAAvgzqYAAB" + FOOT,
                )
            ),
            say(("ada", f"👽13|@bob|${_zip(_zip(_zip('hi')))}" + FOOT)),
        ),
        passes=(say(("ada", f"👽13|@bob|${_zip('hi ' * 9)}" + FOOT)),),
    ),
    Rule(
        code="sender-not-of-key",
        title="Sender not allowed for its API key",
        why="The key's holder used a foreign name, or somebody else uses the key.",
        severity="error",
        group="security",
        look=_find_strangers,
        passes=(say(("ada", "pay bob now")),),
    ),
    Rule(
        code="names-alike",
        title="Look-alike agent names",
        why="Somebody may speak under a name that looks like another agent's.",
        severity="warning",
        group="security",
        look=_find_names,
        triggers=(
            say(("planner", "pay bob now"), ("pl\u0430nner", "yes")),
            say(("planner", "pay bob now"), ("plannre", "yes")),
            say(("r\u200badar", "pay bob now")),
        ),
        passes=(
            say(("worker-1", "pay bob now"), ("worker-2", "yes")),
            say(("agent-a", "pay bob now"), ("agent-b", "yes")),
            say(("planner", "pay bob now"), ("scanner", "yes")),
        ),
    ),
)
