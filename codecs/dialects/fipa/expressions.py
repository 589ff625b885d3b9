"""Expressions: words, quoted texts, texts of counted bytes, and lists of them, read with a stack and never deeper.

Every regular expression here is possessive: none can backtrack, so a scan is linear in the text. White space is what
SC00070I says: every character up to the space.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from .._record import NoteKind
from .notes import TOO_SHORT, UNCLOSED, UNCLOSED_TEXT
from .tables import FIPA, KQML, MAX_DEPTH

SPACE = r"[\x00-\x20]"
SPACES = "".join(map(chr, range(0x21)))

# A bracket, a quote, the count of a text of counted bytes, the name of a parameter, or a word.
TOKEN = re.compile(
    rf'{SPACE}*+(?:(\()|(\))|(")|#([0-9]{{1,9}}+)"|(:[^\x00-\x20()"]*+)|([^\x00-\x20()":][^\x00-\x20()]*+))'
)

# What stands within quotes: in FIPA a backslash escapes the quote and nothing else, in KQML any character.
INSIDE = {
    FIPA: re.compile(r'(?>(?:[^"\\]++|\\"?)*)'),
    KQML: re.compile(r'(?>(?:[^"\\]++|\\.)*)', re.DOTALL),
}
_ESCAPED = {FIPA: re.compile(r'\\(")'), KQML: re.compile(r"\\(.)", re.DOTALL)}


class Node(NamedTuple):
    """One expression: text[start:end] is how it is written, `value` the text that it stands for.

    The value of a list is its characters. A list that is too deep, `deep`, has no items.
    """

    kind: Literal["word", "key", "text", "bytes", "list", "deep"]
    start: int
    end: int
    value: str
    items: tuple[Node, ...] = ()


class Fault(NamedTuple):
    """Where and why an expression does not end."""

    kind: NoteKind
    at: int


class Frame(NamedTuple):
    """The items of a list, the index after its bracket, and the fault that left it open."""

    items: tuple[Node, ...]
    end: int
    fault: Fault | None = None


def read_items(text: str, at: int, vocabulary: str, opened_at: int) -> Frame:
    """The expressions from `at` up to the bracket that closes the list around them, which opened at `opened_at`."""
    stack: list[tuple[int, list[Node]]] = [(opened_at, [])]
    skipped: list[int] = []
    while True:
        token = TOKEN.match(text, at)
        if token is None:
            return Frame(tuple(stack[0][1]), len(text), Fault(UNCLOSED, opened_at))
        at = token.end()
        found: Node | None = None
        if token[1]:
            if skipped or len(stack) > MAX_DEPTH:
                skipped.append(at - 1)
            else:
                stack.append((at - 1, []))
        elif token[2]:
            if skipped:
                start = skipped.pop()
                found = None if skipped else Node("deep", start, at, text[start:at])
            else:
                start, items = stack.pop()
                if not stack:
                    return Frame(tuple(items), at)
                found = Node("list", start, at, text[start:at], tuple(items))
        elif token[3] or token[4]:
            node = _read_quoted(text, at, vocabulary) if token[3] else _read_counted(text, token.start(4) - 1, at)
            if isinstance(node, Fault):
                return Frame(tuple(stack[0][1]), node.at, node)
            at, found = node.end, node
        else:
            kind: Literal["key", "word"] = "key" if token[5] else "word"
            found = Node(kind, token.start(token.lastindex or 0), at, token[token.lastindex or 0])
        if found is not None and not skipped:
            stack[-1][1].append(found)


def _read_quoted(text: str, at: int, vocabulary: str) -> Node | Fault:
    """The text whose quote opens before `at`."""
    inside = INSIDE[vocabulary].match(text, at)
    end = inside.end() if inside else at
    if text[end : end + 1] != '"':
        return Fault(UNCLOSED_TEXT, at - 1)
    return Node("text", at - 1, end + 1, _ESCAPED[vocabulary].sub(r"\1", text[at:end]))


def _read_counted(text: str, start: int, at: int) -> Node | Fault:
    """The text of so many bytes of UTF-8 as the number from `start` to `at` says."""
    size = int(text[start + 1 : at - 1])
    if size > 4 * (len(text) - at):
        return Fault(TOO_SHORT, start)
    held = text[at : at + size].encode("utf-8", "surrogatepass")[:size]
    try:
        value = held.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return Fault(TOO_SHORT, start)
    if len(held) < size:
        return Fault(TOO_SHORT, start)
    return Node("bytes", start, at + len(value), value)


def read_expression(text: str, vocabulary: str) -> Node | None:
    """The one expression that a text is from end to end, or None."""
    items, end, fault = read_items(f"{text})", 0, vocabulary, 0)
    is_one = fault is None and end == len(text) + 1 and len(items) == 1
    return items[0] if is_one and items[0].end - items[0].start == len(text) else None
