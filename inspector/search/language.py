"""The search language: a query as a tree of terms, each with its place, and errors that suggest; and its values that
have an order: times, numbers and severities, read with errors that say how to write them. No database.

    refactor "exact phrase" pre* dialect:nslip,clowl -reviewed:yes (from:oscar OR to:oscar) severity:>=warning

Terms are ANDed, with or without `AND` or `&&` between them; `OR` or `||` gives alternatives and binds less than AND;
`-` or `NOT ` before a term or a group means not. Operators in small letters are refused: a word that reads like one is
searched for in quotation marks. A comma gives alternatives of one name. `*` after a word is a prefix. `>` `>=` `<` `<=`
after a name compare, and `=` takes its value as the wire says it. “Typographic” quotation marks are as good, where
there are no others. Within quotation marks `\\"` and `\\\\` are `"` and
`\\`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from difflib import get_close_matches
from typing import Final

from django.utils import timezone

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
_TYPOGRAPHIC: Final = str.maketrans("“”„", '"""')
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
    # As English is printed. Beside straight ones they are text.
    text = text if '"' in text else text.translate(_TYPOGRAPHIC)
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


MAX_CHARACTERS: Final = 2000
MAX_TERMS: Final = 40
MAX_DEPTH: Final = 12
# An error lists at most so many of the values that exist.
MAX_NAMED: Final = 50
# Behind a name: the value as the wire says it, and nobody who is only called so.
LITERAL: Final = "="
_JOINED: Final = re.compile(r"\|\||&&")


@dataclass(frozen=True, slots=True)
class Term:
    """One term: words (name is None) or a name with its alternatives; where it stands in the query.

    `operator` is empty, or one of `>`, `>=`, `<`, `<=`, `=`.
    """

    name: str | None
    values: tuple[str, ...]
    is_negated: bool
    is_phrase: bool
    is_prefix: bool
    start: int
    end: int
    operator: str = ""

    @property
    def text(self) -> str:
        """What is asked for, where it is no list."""
        return ",".join(self.values)


@dataclass(frozen=True, slots=True)
class Group:
    """Terms and groups of which all must hold, or any."""

    parts: tuple[Term | Group, ...]
    is_any: bool = False
    is_negated: bool = False


Node = Term | Group


def list_terms(node: Node) -> Iterator[Term]:
    """Every term of a query, in its order."""
    stack = [node]
    while stack:
        at = stack.pop()
        if isinstance(at, Term):
            yield at
        else:
            stack.extend(reversed(at.parts))


def parse(
    text: str,
    *,
    names: Iterable[str],
    is_path: Callable[[str], bool] = lambda name: False,
    literals: Collection[str] = (),
) -> Group:
    """The tree of a query; an empty one is a group without parts.

    Args:
        text: the query as typed.
        names: the names that may be filtered by.
        is_path: whether a name that is none of them may be, as in `attributes.det`.
        literals: the names that take `=`; behind any other it is the beginning of the value.

    Raises:
        QueryError: for an unknown name, an empty value, an open quotation mark or parenthesis, or too long a query.
    """
    if len(text) > MAX_CHARACTERS:
        raise QueryError(f"a query has at most {MAX_CHARACTERS} characters", MAX_CHARACTERS, len(text))
    reader = _Reader(text, list(names), is_path, literals)
    group = reader.read_any(0)
    if reader.token is not None:
        start = reader.token.start()
        raise QueryError("this parenthesis closes none: take it away, or put ( before", start, start + 1)
    return group if isinstance(group, Group) and not group.is_any and not group.is_negated else Group((group,))


class _Reader:
    """Goes through the tokens of a query, one ahead."""

    def __init__(self, text: str, names: list[str], is_path: Callable[[str], bool], literals: Collection[str]) -> None:
        self._text, self._names, self._is_path, self._literals = text, names, is_path, literals
        self._count = 0
        self._tokens = list_tokens(text)
        self._kind, self.token = self._advance()

    def _advance(self) -> tuple[str, re.Match[str] | None]:
        return next(self._tokens, ("end", None))

    def _next(self) -> re.Match[str]:
        found = self.token
        if found is None:  # pragma: no cover (its callers have looked)
            raise QueryError("the query ends here", len(self._text), len(self._text))
        self._kind, self.token = self._advance()
        return found

    def read_any(self, depth: int) -> Node:
        """Alternatives, up to a closing parenthesis or the end."""
        found = [self._read_all(depth)]
        while self._kind == "or":
            sign = self._next()
            found.append(self._read_all(depth))
            for side, where in ((found[-2], "before"), (found[-1], "after")):
                if isinstance(side, Group) and not side.parts:
                    raise QueryError(f"{sign[0]} needs a term {where} it", *sign.span())
        return found[0] if len(found) == 1 else Group(tuple(found), is_any=True)

    def _read_all(self, depth: int) -> Node:
        parts: list[Node] = []
        while self._kind not in ("end", "close", "or"):
            if self._kind == "and":
                joint = self._next()
                if not parts or self._kind in ("end", "close", "or", "and"):
                    raise QueryError(f"{joint[0]} needs a term {'after' if parts else 'before'} it", *joint.span())
            sign = self._next() if self._kind == "not" else None
            parts.append(self._read_one(depth, sign))
        return parts[0] if len(parts) == 1 and depth else Group(tuple(parts))

    def _read_one(self, depth: int, sign: re.Match[str] | None) -> Node:
        kind = self._kind
        if kind == "open":
            return self._read_group(depth, is_negated=sign is not None)
        if kind == "like":
            raise _refuse_likeness(self._next())
        if sign is not None and kind != "term":
            raise QueryError(f"{'NOT' if sign[0] == 'NOT' else 'a minus'} needs a term after it", *sign.span())
        self._count += 1
        found = self._next()
        start = sign.start() if sign else found.start()
        if self._count > MAX_TERMS:
            raise QueryError(f"a query has at most {MAX_TERMS} terms", start, len(self._text))
        return self._make_term(found, start, is_negated=sign is not None)

    def _read_group(self, depth: int, *, is_negated: bool) -> Node:
        start, end = self._next().span()
        if depth == MAX_DEPTH:
            raise QueryError(f"parentheses stand at most {MAX_DEPTH} deep", start, end)
        inner = self.read_any(depth + 1)
        if self._kind != "close":
            raise QueryError("this parenthesis is not closed: add ) behind what belongs to it", start, end)
        end = self._next().end()
        if isinstance(inner, Group) and not inner.parts:
            raise QueryError("there is nothing between these parentheses", start, end)
        return Group((inner,), is_negated=True) if is_negated else inner

    def _make_term(self, found: re.Match[str], start: int, *, is_negated: bool) -> Term:
        name, quoted, bare = found["name"], found["quoted"], found["bare"]
        end = found.end()
        if quoted is not None and not found["closing"]:
            hint = 'the quotation mark is not closed: add " at the end of the phrase'
            raise QueryError(f"{hint}, or write \\\\ for a backslash" if "\\" in quoted else hint, start, end)
        if bare is not None and (joint := _JOINED.search(bare)):
            hint = (
                f'{joint[0]} joins two terms with spaces around it; in quotation marks it is text, as in "a{joint[0]}b"'
            )
            raise QueryError(f"{joint[0]} stands within a word here", start, end, hint=hint)
        if name is not None:
            name = self._check_name(name, found, start)
        value, operator = unescape(quoted) if quoted is not None else bare, found["operator"] or ""
        if operator == LITERAL and name not in self._literals:
            value, operator = f"{operator}{value or ''}", ""
        if value == "-" and quoted is None:
            raise QueryError("a minus needs a term after it", start, end)
        if not value:
            raise QueryError(f"{name}: needs a value" if name else "a term is missing here", start, end)
        is_prefix = quoted is None and value.endswith("*") and len(value) > 1
        value = value[:-1] if is_prefix else value
        values = tuple(part for part in value.split(",") if part) if name and quoted is None else (value,)
        if found["more"]:
            values, is_prefix = (*values, *filter(None, list_more(found["more"]))), False
        if not values:
            raise QueryError(f"{name}: needs a value", start, end)
        return Term(name, values, is_negated, quoted is not None, is_prefix, start, end, operator)

    def _check_name(self, name: str, found: re.Match[str], start: int) -> str:
        if name in self._names or self._is_path(name):
            return name
        written = self._text[start : found.end()]
        if not name.endswith(".") and self._is_path(f"{name}.x"):
            hint = f"{name}: holds names of its own; say which, as in {name}.x:1"
            raise QueryError(hint, start, found.end())
        close = find_close(name, self._names)
        hint = f"did you mean {close}:?" if close else f"names are {', '.join(self._names)}"
        instead = written.replace(f"{name}:", f"{close}:", 1) if close else ""
        raise QueryError(f"unknown field “{name}:”", start, found.end(), instead, hint=hint)


def _refuse_likeness(found: re.Match[str]) -> QueryError:
    """The error for what reads like an operator: it says how that is written, and how the text itself is."""
    if found[0] == "!":
        hint = 'did you mean a minus, as in -word? text that begins so stands in quotation marks, as in "!word"'
        return QueryError("! is no operator", *found.span(), "-", hint=hint)
    right = found[0].upper()
    hint = f'did you mean {right}? the word itself stands in quotation marks: "{found[0]}"'
    return QueryError(f"{found[0]} is no operator as it is written", *found.span(), right, hint=hint)


def check_value(term: Term, allowed: Iterable[str]) -> None:
    """Refuse a value that can never be found.

    Raises:
        QueryError: for a value that is not allowed, with the nearest one that is.
    """
    choices = list(allowed)
    for value in term.values:
        if value.casefold() not in choices:
            close = find_close(value, choices)
            more = " and others" if len(choices) > MAX_NAMED else ""
            hint = f"did you mean {close}?" if close else f"values are {', '.join(choices[:MAX_NAMED])}{more}"
            sign = "-" if term.is_negated else ""
            better = ",".join(_write(close if one == value else one) for one in term.values) if close else ""
            instead = f"{sign}{term.name}:{term.operator}{better}" if close else ""
            raise QueryError(f"{term.name}: has no {value!r}", term.start, term.end, instead, hint=hint)


def _write(value: str) -> str:
    return quote(value) if re.search(r'[\s,:()"]', value) else value


def find_close(text: str, choices: Sequence[str]) -> str:
    """What was probably meant: the one choice that begins so, else the one most like it; empty where none is near."""
    low = text.casefold()
    begun = [choice for choice in choices if choice.startswith(low)]
    return begun[0] if len(begun) == 1 else next(iter(get_close_matches(low, choices, n=1)), "")


SEVERITIES: Final = ("none", "info", "notice", "warning", "error")
_AGO: Final = re.compile(r"(\d{1,6})(s|m|h|d|w)")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_NUMBER: Final = re.compile(r"-?\d{1,18}(\.\d{1,9})?")

# A day of a query is a day where its reader lives.
zone_of_query: ContextVar[tzinfo] = ContextVar("zone_of_query", default=UTC)


def read_time(term: Term) -> datetime:
    """The instant that a term names: `2026-11-21`, `2026-11-21T09:30`, with a zone or in the reader's, or `7d` ago.

    Raises:
        QueryError: for anything else.
    """
    value = ",".join(term.values)
    ago = _AGO.fullmatch(value)
    try:
        if ago:
            return timezone.now() - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        found = datetime.fromisoformat(value)
        return found if found.tzinfo else found.replace(tzinfo=zone_of_query.get())
    except (ValueError, OverflowError):
        hint = "write a day as 2026-11-21, a time as 2026-11-21T09:30, or how long ago as 30m, 12h, 7d, 2w"
        raise QueryError(f"{term.name}: {value!r} is no time; {hint}", term.start, term.end) from None


def read_number(term: Term) -> str:
    """The number of a term, as digits.

    Raises:
        QueryError: for anything else.
    """
    (value, *more) = term.values
    if more or not _NUMBER.fullmatch(value):
        raise QueryError(f"{term.name}: {','.join(term.values)!r} is no number", term.start, term.end)
    return value


def is_number(value: str) -> bool:
    """Whether a value is written as a number that can be compared."""
    return _NUMBER.fullmatch(value) is not None


def read_severity(value: str) -> int:
    """The rank of a severity that is one of `SEVERITIES`."""
    return SEVERITIES.index(value.casefold())
