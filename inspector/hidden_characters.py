"""Characters that a reader cannot see, and their names: controls, bidi marks, zero-width and private ones; lookalikes.

What renders as nothing, reorders its neighbours or has no agreed shape is shown as its code point instead. Joiners and
variation selectors inside an emoji are left alone: there they are seen by what they do.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
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
