"""Finding tags: where `@…#` stands in a text, with quotes respected, and which pieces each tag is made of.

Every regular expression here is possessive: none can backtrack, so a scan is linear in the text. A tag opens at
an `@` only where its first fields look like a header; an address or a mention opens none.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .._record import NoteKind
from .tables import ACTS, ALPHABET, FRAMES, MAX_TAGS, SLOTS, UNCLOSED, UNCLOSED_QUOTE

# White space of any script, and the byte order mark.
SPACES = "".join(sign for sign in map(chr, range(0x3001)) if sign.isspace()) + "\ufeff"

# Characters that set tags apart and mean nothing: white space, list marks, brackets, quotes, fences.
SEPARATORS = frozenset(SPACES + ",;.`'\"\\*->()[]{}|")

# What stands within quotes that are escaped, as a program's source or a log encoded twice has them: up to the next
# `\"`. A backslash of the text is doubled there, so `\\\"` is a quote within it.
_ESCAPED_BODY = r'(?>(?:[^\\]++|\\\\(?>(?:\\["\\])?)|\\[^"\\])*)'
ESCAPED_TEXT = re.compile(rf'\\"({_ESCAPED_BODY})\\"')

# A piece and the mark after it: `|`, `#` and `@` inside quotes are text; a lone `"` is a quote that stays open. An
# escaped quote that opens a value closes any that stands open before it: at most one is followed in vain.
_PIECE = re.compile(
    rf'((?>(?:\s*+[^|#"@\\\s]?+\\"{_ESCAPED_BODY}\\")?)[^|#"@]*+(?>(?:"(?>(?:[^"\\]++|\\.)*)"[^|#"@]*+)*))([|#"@]?)',
    re.DOTALL,
)

# Where a tag may open, and what may stand before its first field: v0.0 writes `@|a3`.
OPENER = re.compile(r'@[|\s]{0,8}+[A-Za-z"]')

# A number that no word of a language looks like: one digit of base 62, or several that begin with a decimal one.
_NUMBER = r"(?:[0-9A-Za-z](?![0-9A-Za-z])|[0-9][0-9A-Za-z]{1,10})"

# A header field: its prefix in the first group where its number is of that kind, else in the second. Codes of acts
# and frames are short.
_HEADER_FIELD = re.compile(
    r"\s*+(?:([af](?=(?:[0-9]{1,3}|[A-Za-z])(?![0-9A-Za-z]))"
    rf"|[cSdTst](?={_NUMBER}))|([cSdTst]))[0-9A-Za-z]{{1,11}}+\s*+\Z"
)

# The acts and frames of the tables, as they are written.
_CODES = {f"a{ALPHABET[code]}" for code in ACTS} | {f"f{code}" for code in FRAMES}

# How far from its `@` a header is looked for, in fields and in characters; digits that no number has do not count.
_FIELDS_TRIED = 12
_CHARACTERS_TRIED = 512
_ENDLESS_NUMBER = re.compile(r"[0-9A-Za-z]{33,}+")

_FIELD = rf'[{"".join(SLOTS)}](?:{_NUMBER}|"(?>(?:[^"\\]++|\\.)*)")'

# A text that is one tag from end to end, at least two fields long, each field known and plain.
_WHOLE = re.compile(rf"\s*+@\|*+{_FIELD}(?>(?:\|++(?>(?:{_FIELD})?))+)#\s*+\Z", re.DOTALL)


class Tag(NamedTuple):
    """A tag in a text: text[start:end] is `@…#`, `pieces` are the spans between its separators.

    Where the frame or a quote stays open, `fault` says which and `fault_at` where; `end` is then where reading
    stopped, and the incomplete piece is left out.
    """

    start: int
    end: int
    pieces: tuple[tuple[int, int], ...]
    fault: NoteKind | None = None
    fault_at: int = 0


def find_tags(text: str) -> tuple[Tag, ...]:
    """The tags of a text, in order, at most one more than `MAX_TAGS`; one that stays open is the last."""
    if _WHOLE.match(text):
        return (scan_tag(text, text.index("@")),)
    found: list[Tag] = []
    at = 0
    while len(found) <= MAX_TAGS and (opener := OPENER.search(text, at)):
        at = opener.end()
        if has_header(text, opener.start()):
            tag = scan_tag(text, opener.start())
            found.append(tag)
            at = tag.end
            if tag.fault:
                break
    return tuple(found)


def has_header(text: str, at: int) -> bool:
    """Whether the `@` there opens a tag: its first fields hold so much of a header that no words could be meant.

    Enough are the act and another header field; any three; a code of the tables and two whose numbers could be
    words; or any two and two such.
    """
    plain: set[str] = set()
    loose: set[str] = set()
    has_code = False
    pieces = _PIECE.finditer(text, at + 1, _find_end_of_trial(text, at + 1))
    for piece, _ in zip(pieces, range(_FIELDS_TRIED), strict=False):
        header = _HEADER_FIELD.match(text, piece.start(1), piece.end(1))
        if header:
            has_code = has_code or header[0].strip() in _CODES
            (plain if header[1] else loose).add(header[1] or header[2])
            if len(plain) > (1 if "a" in plain else 2):
                return True
            if len(plain) + len(loose) > (2 if has_code else 3) and (has_code or len(plain) > 1):
                return True
        if piece[2] != "|":
            return False
    return False


def _find_end_of_trial(text: str, start: int) -> int:
    """How far a header is looked for: a number that is far too long hides nothing of what follows it.

    Only the digits before the next `@` are passed over, so that each is for one opener alone and time stays linear.
    """
    end = start + _CHARACTERS_TRIED
    for _ in range(_FIELDS_TRIED):
        opener = text.find("@", start, end)
        found = _ENDLESS_NUMBER.search(text, start, end if opener < 0 else opener)
        number = _ENDLESS_NUMBER.match(text, found.start()) if found else None
        if number is None:
            break
        start = number.end()
        end += len(number[0])
    return end


def scan_tag(text: str, start: int) -> Tag:
    """The tag that opens at `start`. An `@` within it is text unless another tag opens there."""
    pieces: list[tuple[int, int]] = []
    begin = start + 1
    stop = begin
    for piece in _PIECE.finditer(text, begin):
        stop, mark = piece.end(1), piece[2]
        if mark == "@":
            if has_header(text, stop):
                break
            continue
        if mark == '"':
            return Tag(start, len(text), tuple(pieces), UNCLOSED_QUOTE, stop)
        if mark == "":
            break
        pieces.append((begin, stop))
        begin = stop + 1
        if mark == "#":
            return Tag(start, begin, tuple(pieces))
    return Tag(start, stop, tuple(pieces), UNCLOSED, stop)
