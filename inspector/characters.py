"""Characters that deceive: those that a reader cannot see, with their names (controls, bidi marks, zero-width and
private ones); and names that can be taken for one another, or are odd by themselves, each with the reason in words.

What renders as nothing, reorders its neighbours or has no agreed shape is shown as its code point instead. Joiners and
variation selectors inside an emoji are left alone: there they are seen by what they do.

Two names are confusable where they look alike (letters of other scripts, digits for letters, hidden characters, upper
and lower case), or where one is a slip of the pen away from the other. Every name is reduced to a skeleton, and names
of one skeleton are alike; a slip is found by what is left of a skeleton when one character is taken out. So the work
grows with the length of the names and not with the number of their pairs. Beyond `MAX_CHARACTERS` a name is looked at
by its beginning alone. Numbered series are told apart by people at a glance: names that differ in a digit, or in a part
of one character, as `worker-1` and `worker-2`, `agent-a` and `agent-b`, are no slips.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from dialects import HIDDEN_CLASS

HIDDEN = re.compile(HIDDEN_CLASS)
HIDDEN_BLOCK = re.compile(HIDDEN_CLASS + "+")
# Equal ones in a row; the first group is the character.
HIDDEN_RUN = re.compile(rf"({HIDDEN_CLASS})\1*")

# Controls have no name in the Unicode Character Database, but their pictures do: U+241B is SYMBOL FOR ESCAPE.
_PICTURES = {**{code: 0x2400 + code for code in range(0x20)}, 0x7F: 0x2421}
_KINDS = {"Cc": "control", "Cs": "lone surrogate", "Co": "private use", "Cn": "not a character"}
_JOINER = "\u200d"
_SELECTORS = "\ufe0e\ufe0f"
_KEYCAP = "\u20e3"


def is_hidden(text: str, at: int) -> bool:
    """Whether the character at this index cannot be seen where it stands."""
    return HIDDEN.match(text, at) is not None and not _is_inside_emoji(text, at)


def _is_inside_emoji(text: str, at: int) -> bool:
    character, before, after = text[at], text[at - 1 : at], text[at + 1 : at + 2]
    if not before:
        return False
    if character in _SELECTORS:
        return _is_pictograph(before) or (before in "#*0123456789" and after == _KEYCAP)
    if character == _JOINER:
        return (_is_pictograph(before) or before in _SELECTORS) and bool(after) and _is_pictograph(after)
    return False


def _is_pictograph(character: str) -> bool:
    is_skin_tone = "\U0001f3fb" <= character <= "\U0001f3ff"
    return is_skin_tone or (unicodedata.category(character) in ("So", "Sm") and not HIDDEN.match(character))


def code_of(character: str) -> str:
    """The code point as `U+200B`."""
    return f"U+{ord(character):04X}"


def name_of(character: str) -> str:
    """The character's name in words; where it has none, its kind."""
    picture = _PICTURES.get(ord(character))
    if picture is not None:
        return unicodedata.name(chr(picture)).removeprefix("SYMBOL FOR ").lower()
    return unicodedata.name(character, _KINDS.get(unicodedata.category(character), "unnamed")).lower()


def spell_hidden(text: str) -> str:
    """The text with each hidden character as `[U+200B]`: for attributes and titles, where no badge can stand."""
    return HIDDEN.sub(
        lambda match: match[0] if _is_inside_emoji(text, match.start()) else f"[{code_of(match[0])}]",
        text,
    )


# Letters that cannot be told from Latin ones by their shape, by what they look like; Cyrillic, Greek and Armenian.
_SHAPES: Final = {
    "a": "\u0430", "c": "\u0441", "d": "\u0501", "e": "\u0435", "h": "\u04bb", "i": "\u0456", "j": "\u0458",
    "o": "\u043e\u03bf\u0585", "p": "\u0440", "q": "\u051b", "s": "\u0455", "w": "\u051d", "x": "\u0445", "y": "\u0443",
    "A": "\u0410\u0391", "B": "\u0412\u0392", "C": "\u0421", "E": "\u0415\u0395", "H": "\u041d\u0397",
    "I": "\u0406\u0399", "J": "\u0408", "K": "\u041a\u039a", "M": "\u041c\u039c", "N": "\u039d", "O": "\u041e\u039f",
    "P": "\u0420\u03a1", "S": "\u0405", "T": "\u0422\u03a4", "X": "\u0425\u03a7", "Y": "\u03a5", "Z": "\u0396",
}  # fmt: skip
LOOKALIKES: Final[Mapping[str, str]] = {other: letter for letter, others in _SHAPES.items() for other in others}
# Marks of direction, of no width, and tags.
UNSEEN: Final = "[\u200b-\u200f\u202a-\u202e\u2060-\u2069\u00ad\ufeff\U000e0000-\U000e007f]"
# A Latin letter beside one that looks like one.
MIXED: Final = f"[A-Za-z][{''.join(LOOKALIKES)}]|[{''.join(LOOKALIKES)}][A-Za-z]"
_find_unseen: Final = re.compile(UNSEEN).search
_find_either: Final = re.compile(f"{UNSEEN}|{MIXED}").search


def has_deceptive(text: str) -> bool:
    """Whether a text holds marks that are not seen, or letters of two kinds that look alike side by side."""
    return not text.isascii() and _find_either(text) is not None


def has_unseen(text: str) -> bool:
    """Whether a text holds marks that are not seen."""
    return not text.isascii() and _find_unseen(text) is not None


MAX_CHARACTERS: Final = 64
# Shorter names differ in a letter by nature.
MIN_SLIP_LENGTH: Final = 5
# Of names that are all alike so many are compared each with each; a whole series shares what is left of its names.
MAX_SHARING: Final = 30

# Letters that look like a Latin letter, by what they look like; small letters, for names are folded first.
_LOOKALIKES: Final = {
    "a": "аαɑ",
    "b": "ьƅ",
    "c": "сϲᴄ",
    "d": "ԁɗ",
    "e": "еєҽɛ",
    "g": "ɡց",
    "h": "һհ",
    "i": "іıɩιӏ",
    "j": "јϳ",
    "k": "кκ",
    "l": "ⅼ",
    "m": "мⅿ",
    "n": "пηո",
    "o": "оοσօ",
    "p": "рρ",
    "q": "ԛգ",
    "r": "гᴦ",
    "s": "ѕꜱ",
    "t": "тτ",
    "u": "υսʋ",
    "v": "νѵ",
    "w": "ѡԝω",
    "x": "хχ",
    "y": "уүγ",
    "z": "ᴢ",
}
_LOOK: Final = str.maketrans(
    {other: letter for letter, others in _LOOKALIKES.items() for other in others}
    # A digit for a letter, and the letters that stand upright.
    | {"0": "o", "1": "l", "i": "l", "|": "l"}
    | dict.fromkeys(_LOOKALIKES["i"], "l")
)
_PAIRS: Final = (("rn", "m"), ("vv", "w"), ("cl", "d"))
_SCRIPTS: Final = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE")
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|[\W_]+")


@dataclass(frozen=True, slots=True)
class Likeness:
    """Another name that a name can be taken for, and why."""

    name: str
    why: str


def make_skeleton(name: str) -> str:
    """What a name looks like, whatever it is made of: compatibility forms, no marks, one letter for those alike."""
    plain = unicodedata.normalize("NFKD", name[:MAX_CHARACTERS].casefold())
    kept = "".join(sign for sign in plain if unicodedata.category(sign) not in ("Mn", "Me", "Cf", "Cc", "Cs", "Co"))
    look = " ".join(kept.split()).translate(_LOOK)
    for pair, one in _PAIRS:
        look = look.replace(pair, one)
    return look


def find_oddities(name: str) -> list[str]:
    """What is odd about a name by itself, as what follows "it": hidden characters, mixed scripts, outer spaces."""
    found = []
    hidden = [sign for sign in name if unicodedata.category(sign) in ("Cf", "Cc", "Cs", "Co", "Zl", "Zp")]
    if hidden:
        found.append(f"holds a character that cannot be seen ({_name(hidden[0])})")
    if name != name.strip():
        found.append("begins or ends with a space")
    scripts = list(dict.fromkeys(script for sign in name[:MAX_CHARACTERS] if (script := _find_script(sign))))
    if len(scripts) > 1:
        rarest = min(scripts, key=lambda script: sum(_find_script(sign) == script for sign in name))
        sign = next(sign for sign in name if _find_script(sign) == rarest)
        words = " and ".join(script.title() for script in scripts)
        found.append(f"mixes {words} letters ({_name(sign)} among them)")
    return found


def find_likenesses(names: Iterable[str]) -> Mapping[str, Sequence[Likeness]]:
    """For each of these names the others that it can be taken for, each with the reason in words.

    Args:
        names: the names as the wire has them; equal ones count once.
    """
    ordered = sorted(set(names))
    skeletons = {name: make_skeleton(name) for name in ordered}
    found: dict[str, dict[str, str]] = defaultdict(dict)
    by_skeleton: dict[str, list[str]] = defaultdict(list)
    for name in ordered:
        by_skeleton[skeletons[name]].append(name)
    for alike in by_skeleton.values():
        for name in alike[:MAX_SHARING]:
            for other in alike[:MAX_SHARING]:
                if name != other:
                    found[name][other] = _say_likeness(name, other)
    for name, other, why in _find_slips(by_skeleton):
        found[name].setdefault(other, why)
        found[other].setdefault(name, why)
    return {
        name: tuple(Likeness(other, why) for other, why in sorted(others.items())) for name, others in found.items()
    }


def _find_slips(by_skeleton: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str, str]]:
    left: dict[str, list[str]] = defaultdict(list)
    for skeleton in by_skeleton:
        if len(skeleton) >= MIN_SLIP_LENGTH:
            for rest in {skeleton, *(skeleton[:at] + skeleton[at + 1 :] for at in range(len(skeleton)))}:
                left[rest].append(skeleton)
    seen = set()
    for alike in left.values():
        for one, other in combinations(alike[:MAX_SHARING], 2):
            pair = (by_skeleton[one][0], by_skeleton[other][0])
            if pair not in seen:
                seen.add(pair)
                if why := _find_slip(*pair):
                    yield *pair, why


def _find_slip(name: str, other: str) -> str:
    """How two names differ by one letter put in, left out, changed, or swapped with its neighbour; else empty."""
    one, two = name.casefold(), other.casefold()
    start = 0
    while start < min(len(one), len(two)) and one[start] == two[start]:
        start += 1
    end = 0
    while end < min(len(one), len(two)) - start and one[-1 - end] == two[-1 - end]:
        end += 1
    mine, others = one[start : len(one) - end], two[start : len(two) - end]
    if any(sign.isdigit() for sign in mine + others) or not (mine + others).isalnum():
        return ""
    if len(mine) == 2 and mine == others[::-1]:
        return "differs by two letters that are swapped"
    # A part of one character is a number by another name.
    is_one = max(len(mine), len(others)) == 1 and all(_find_part(text, start) > 1 for text in (name, other))
    return "differs by one letter" if is_one else ""


def _find_part(name: str, at: int) -> int:
    """The length of the part of a name (between signs, or from hump to hump) in which a character stands."""
    begin = 0
    for gap in _HUMP.finditer(name):
        if gap.start() >= at + 1 or (gap.start() == gap.end() == at + 1):
            return gap.start() - begin
        begin = gap.end()
    return len(name) - begin


def _say_likeness(name: str, other: str) -> str:
    if name.casefold() == other.casefold():
        return "differs in upper and lower case alone"
    if oddities := find_oddities(name):
        return f"looks alike, and this one {oddities[0]}"
    if oddities := find_oddities(other):
        return f"looks alike, and that one {oddities[0]}"
    for mine, theirs in zip(name.casefold(), other.casefold(), strict=False):
        if mine != theirs:
            return f"looks alike: {_name(mine)} here, {_name(theirs)} there"
    return "looks alike"


def _find_script(sign: str) -> str | None:
    if sign.isascii():
        return "LATIN" if sign.isalpha() else None
    first = unicodedata.name(sign, "").partition(" ")[0]
    return first if first in _SCRIPTS else None


def _name(sign: str) -> str:
    return f"U+{ord(sign):04X} {unicodedata.name(sign, 'without a name').lower()}"
