"""What search finds a message by: words with their places, and exact terms. Independent of the database's locale.

PostgreSQL's own parser drops emoji and punctuation and depends on the locale, so words are cut here, on Unicode's
rules, and handed over as a finished tsvector. The workspace is one more lexeme of every message, always asked for.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

INDEXED_CHARACTERS: Final = 200_000
_LONGEST_WORD: Final = 400
_MOST_PLACES: Final = 16_000
_MOST_PLACES_OF_WORD: Final = 250
# A tsvector has at most 1 MiB of lexemes with their places; what lies beyond is not found by words.
_MOST_VECTOR_BYTES: Final = 900_000
_WORD: Final = re.compile(r"\w+")
_HUMPS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_+|(?<=[a-zA-Z])(?=\d)")
_GLYPH_CATEGORIES: Final = frozenset({"So", "Sm", "Sk", "Sc"})


def fold(word: str) -> str:
    """A word as it is compared: compatibility forms and case folded."""
    if word.isascii():
        return word.lower()[:_LONGEST_WORD]
    return unicodedata.normalize("NFKC", word).casefold()[:_LONGEST_WORD]


def split_words(text: str) -> list[tuple[str, ...]]:
    """The words of a text in order; each place holds every form that is found there.

    A word of several humps or underscored parts is found whole and by each part: `("refactorauth", "refactor",
    "auth")`. A phrase is a phrase of whole words, or of parts.
    """
    return [find_forms(word) if len(word) < _LONG_WORD else cut_forms(word) for word in find_words(text)]


def cut_forms(word: str) -> tuple[str, ...]:
    """A word as it is compared, and its parts where it has several."""
    whole = fold(word)
    if word.isalpha() and word.islower():
        return (whole,)
    parts = [fold(part) for part in _HUMPS.split(word) if part]
    return tuple(dict.fromkeys((whole, *parts))) if len(parts) > 1 else (whole,)


# The words of a log are few, and most of them are short.
_LONG_WORD: Final = 40
find_forms = lru_cache(maxsize=32_768)(cut_forms)


def find_words(text: str) -> list[str]:
    """The words of a text as they stand in it, without their parts."""
    return _WORD.findall(text[:INDEXED_CHARACTERS])


def workspace_term(workspace_id: object) -> str:
    """The lexeme that keeps one workspace's messages apart in both indexes."""
    return f"~{workspace_id}"


def quote_lexeme(word: str) -> str:
    """A word as a quoted lexeme of a tsvector or tsquery literal."""
    if not word.isalnum():
        word = word.replace("\\", "\\\\").replace("'", "''").replace("\x00", "\u2400")
    return f"'{word}'"


def write_vector(texts: Iterable[str], workspace_id: object) -> str:
    """A tsvector literal of the texts' words with their places, and the workspace's lexeme."""
    places: dict[str, list[str]] = {}
    at = size = 0
    for text in texts:
        for forms in split_words(text):
            at += 1
            for form in forms:
                where = places.get(form)
                if where is None:
                    size += len(form.encode()) + 4
                    if size > _MOST_VECTOR_BYTES:
                        break
                    where = places[form] = []
                elif size > _MOST_VECTOR_BYTES:
                    break
                if at < _MOST_PLACES and len(where) < _MOST_PLACES_OF_WORD:
                    where.append(str(at))
                    size += 2
        at += 1  # No phrase reaches from one text into the next.
    lexemes = [quote_lexeme(workspace_term(workspace_id))]
    for word, where in places.items():
        lexemes.append(f"{quote_lexeme(word)}:{','.join(where)}" if where else quote_lexeme(word))
    return " ".join(lexemes)


def find_glyphs(*texts: str) -> set[str]:
    """The emoji, symbols and ideographs of these texts, each findable on its own."""
    signs = set().union(*(text[:INDEXED_CHARACTERS] for text in texts))
    return {sign for sign in signs if is_glyph(sign)}


@lru_cache(maxsize=32_768)
def is_glyph(sign: str) -> bool:
    """Whether a character means something by itself: a symbol, or a letter of a script written without spaces."""
    if sign.isascii():
        return sign in "$+<=>^`|~"
    category = unicodedata.category(sign)
    return category in _GLYPH_CATEGORIES or (category == "Lo" and unicodedata.east_asian_width(sign) in "WF")


def term(name: str, value: object) -> str:
    """An exact term: a name of the record and one of its values, folded and bounded."""
    return f"{name}={fold(str(value))}".replace("\x00", "\u2400")
