"""What search finds a message by: words with their places, and exact terms. Independent of the database's locale.

PostgreSQL's own parser drops emoji and punctuation and depends on the locale, so words are cut here, on Unicode's
rules, and handed over as a finished tsvector.
"""

from __future__ import annotations

import base64
import re
import unicodedata
import uuid
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from django.contrib.postgres.fields import ArrayField
from django.db.models import F, Func, Q, TextField, Value

INDEXED_CHARACTERS: Final = 200_000
_MAX_WORD: Final = 400
_MAX_PLACES: Final = 16_000
_MAX_PLACES_OF_WORD: Final = 250
# Texts of so many characters together cannot reach these bounds, whatever folding makes of a character; of ASCII,
# which folding leaves as long as it is, they may be more.
_FEW_CHARACTERS: Final = 8_000
_FEW_ASCII_CHARACTERS: Final = 30_000
# A tsvector has at most 1 MiB of lexemes with their places; what lies beyond is not found by words.
_MAX_VECTOR_BYTES: Final = 900_000
_WORD: Final = re.compile(r"\w+")
_HUMPS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_+|(?<=[a-zA-Z])(?=\d)")
_ASCII_GLYPHS: Final = frozenset("$+<=>^`|~")
_GLYPH_CATEGORIES: Final = frozenset({"So", "Sm", "Sk", "Sc"})


def fold(word: str) -> str:
    """A word as it is compared: compatibility forms and case folded."""
    if word.isascii():
        return word.lower()[:_MAX_WORD]
    return unicodedata.normalize("NFKC", word).casefold()[:_MAX_WORD]


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
find_forms = lru_cache(maxsize=4096)(cut_forms)


# The forms of short words, quoted: a dictionary of our own, because a call for each word of a log is what costs.
_lexemes: Final[dict[str, tuple[str, ...]]] = {}
_MAX_LEXEMES: Final = 8_192


def _find_lexemes(word: str) -> tuple[str, ...]:
    lexemes = tuple(map(quote_lexeme, cut_forms(word)))
    if len(word) < _LONG_WORD:
        if len(_lexemes) >= _MAX_LEXEMES:
            _lexemes.clear()
        _lexemes[word] = lexemes
    return lexemes


def find_words(text: str) -> list[str]:
    """The words of a text as they stand in it, without their parts."""
    return _WORD.findall(text[:INDEXED_CHARACTERS])


def quote_lexeme(word: str) -> str:
    """A word as a quoted lexeme of a tsvector or tsquery literal."""
    if not word.isalnum():
        word = word.replace("\\", "\\\\").replace("'", "''").replace("\x00", "\u2400")
    return f"'{word}'"


def write_vector(texts: Iterable[str], mark: str) -> str:
    """A tsvector literal of the texts' words with their places; each word begins with the mark of the workspace."""
    texts = list(texts)
    size = sum(map(len, texts)) + len(texts)
    if size <= _FEW_CHARACTERS or (size <= _FEW_ASCII_CHARACTERS and all(map(str.isascii, texts))):
        return _write_short_vector(texts, mark)
    places: dict[str, list[str]] = {}
    at = size = 0
    for text in texts:
        for forms in split_words(text):
            at += 1
            for form in forms:
                where = places.get(form)
                if where is None:
                    size += len(mark) + len(form.encode()) + 4
                    if size > _MAX_VECTOR_BYTES:
                        break
                    where = places[form] = []
                elif size > _MAX_VECTOR_BYTES:
                    break
                if at < _MAX_PLACES and len(where) < _MAX_PLACES_OF_WORD:
                    where.append(str(at))
                    size += 2
        at += 1  # No phrase reaches from one text into the next.
    lexemes = []
    for word, where in places.items():
        lexeme = quote_lexeme(mark + word)
        lexemes.append(f"{lexeme}:{','.join(where)}" if where else lexeme)
    return " ".join(lexemes)


def _write_short_vector(texts: Iterable[str], mark: str) -> str:
    """The same for texts so short that they are within every bound but that of the places of one word."""
    places: dict[str, list[int]] = {}
    known = _lexemes
    at = 0
    for text in texts:
        for word in _WORD.findall(text):
            at += 1
            for lexeme in known.get(word) or _find_lexemes(word):
                where = places.get(lexeme)
                if where is None:
                    places[lexeme] = [at]
                else:
                    where.append(at)
        at += 1
    lexemes = []
    for lexeme, where in places.items():
        one = len(where) == 1
        lexemes.append(f"'{mark}{lexeme[1:]}:{where[0] if one else ','.join(map(str, where[:_MAX_PLACES_OF_WORD]))}")
    return " ".join(lexemes)


def find_glyphs(*texts: str) -> set[str]:
    """The emoji, symbols and ideographs of these texts, each findable on its own."""
    found: set[str] = set()
    for text in texts:
        text = text[:INDEXED_CHARACTERS]
        if text.isascii():
            found |= _ASCII_GLYPHS.intersection(text)
        else:
            found.update(sign for sign in set(text) if is_glyph(sign))
    return found


@lru_cache(maxsize=8192)
def is_glyph(sign: str) -> bool:
    """Whether a character means something by itself: a symbol, or a letter of a script written without spaces."""
    if sign.isascii():
        return sign in _ASCII_GLYPHS
    category = unicodedata.category(sign)
    return category in _GLYPH_CATEGORIES or (category == "Lo" and unicodedata.east_asian_width(sign) in "WF")


def term(name: str, value: object) -> str:
    """An exact term: a name of the record and one of its values, folded and bounded."""
    text = str(value)
    return find_term(name, text) if len(text) < _LONG_WORD else make_term(name, text)


def make_term(name: str, text: str) -> str:
    """The same of a value that is a text."""
    return f"{name}={fold(text)}".replace("\x00", "\u2400")


# What the messages of a log say is much the same, but for their ids.
find_term = lru_cache(maxsize=4096)(make_term)


# The characters with which each word and each exact term of a workspace begins, in the rows and in the indexes. A word
# that is common elsewhere costs nobody time, so that no search tells how often strangers use it: the workspace is part
# of each entry of the indexes of search, and not one more condition beside it.
MARK_CHARACTERS: Final = 4


def mark_workspace(workspace_id: uuid.UUID) -> str:
    """The last three bytes of a workspace's id in base 64.

    Two workspaces may have the same; what is found is then still that of one of them, by the query set's own filter.
    """
    return base64.b64encode(workspace_id.bytes[13:]).decode()


class _Marked(Func):
    """An array of one term with the mark of the row's workspace, as `mark_workspace` makes it."""

    template = "ARRAY[ENCODE(SUBSTRING(UUID_SEND(%(expressions)s]"
    arg_joiner = ") FROM 14), 'base64') || "
    output_field = ArrayField(TextField())


def has_term(wanted: str) -> Q:
    """Messages that have this exact term, of whichever workspace; no index serves it."""
    return Q(atoms__contains=_Marked(F("workspace_id"), Value(wanted)))
