"""Signs that deceive a reader: marks that change how a text is seen without being seen, and letters that look Latin.

As classes of regular expressions, which Python and PostgreSQL read alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

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
