"""The tokens of a query: what each stretch of it is, how a value stands in quotation marks, and the error of one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_ENDS: Final = r'(?=[\s()"]|$)'
_QUOTED: Final = r'[^"\\]*(?:\\[\s\S][^"\\]*)*'
_PATTERNS: Final = (
    ("space", r"\s+"),
    ("open", r"\("),
    ("close", r"\)"),
    ("or", rf"(?:OR|\|\|){_ENDS}"),
    ("and", rf"(?:AND|&&){_ENDS}"),
    # A minus before a space is a sign to look for, like any other.
    ("not", rf"-(?=\S)|NOT{_ENDS}"),
    # What reads like an operator and is none.
    ("like", rf'(?i:or|and|not){_ENDS}|!(?=[\w"(])'),
    (
        "term",
        r'(?:(?P<name>[^\s":()]+):(?P<operator>>=|<=|>|<|=)?)?'
        rf'(?:"(?P<quoted>{_QUOTED})(?P<closing>"?)|(?P<bare>[^\s"()]+))?'
        # Behind a name, more values of which some stand in quotation marks.
        rf'(?(name)(?P<more>(?:(?<=,)"{_QUOTED}"(?:,[^\s"()]*)?|(?<="),[^\s"()]*)*))',
    ),
)
_VALUE: Final = re.compile(rf'"({_QUOTED})"|([^\s",]+)')
_ESCAPED: Final = re.compile(r'\\(["\\])')
_TOKEN: Final = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _PATTERNS))


class QueryError(Exception):
    """A query that cannot be understood: the sentence says what was meant, `start` and `end` where it stands.

    `instead`, where something near is known, is what could stand there in its place; `problem` is the sentence without
    the hint at it, for who offers it by other means.
    """

    def __init__(self, text: str, start: int, end: int, instead: str = "", *, hint: str = "") -> None:
        super().__init__(f"{text}; {hint}" if hint else text)
        self.problem = text
        self.start = start
        self.end = end
        self.instead = instead


def quote(value: str) -> str:
    """A value in quotation marks, as a query has it, whatever characters it holds."""
    return '"{}"'.format(value.replace("\\", "\\\\").replace('"', '\\"'))


def list_tokens(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    """The tokens of a query with their kinds: open, close, or, and, not, like, term. Spaces are left out.

    Raises:
        QueryError: for a character that cannot stand where it does.
    """
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found.end() == at:
            raise QueryError(f"{text[at]!r} cannot stand here", at, at + 1)
        kind = next(kind for kind, _ in _PATTERNS if found[kind] is not None)
        if kind != "space":
            yield kind, found
        at = found.end()


def unescape(quoted: str) -> str:
    """What stands between quotation marks, as it is meant."""
    return _ESCAPED.sub(r"\1", quoted)


def list_more(text: str) -> list[str]:
    """The further values behind a name, of which some stand in quotation marks."""
    return [unescape(one) or other for one, other in _VALUE.findall(text)]
