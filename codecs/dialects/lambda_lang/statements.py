"""A record cut into statements: what stands before each, its type, and where its body lies; and the tokens of a body:
every character belongs to exactly one.

    [HEADER]{CONTEXT}[TYPE]<BODY>[CHECKSUM]

Several statements may share a record: a space, a line break or a semicolon separates them where a type symbol follows.
Cutting is one pass; the only thing that stops it is a quote or bracket that never closes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from .vocabulary import NAMES


class Item(NamedTuple):
    """Something that stands before a statement: its kind, where it stands, and what it holds."""

    kind: str
    start: int
    end: int
    data: Any = None


class Part(NamedTuple):
    """One statement: its items, its form, its type symbol and body as ranges, and its checksum if it has one."""

    items: tuple[Item, ...]
    form: str
    symbol: str
    symbol_at: tuple[int, int]
    body: tuple[int, int]
    checksum: tuple[int, int, int] | None = None


class UnclosedError(Exception):
    """A quote or bracket that never closes, at `offset`: the record cannot be cut further."""

    def __init__(self, offset: int, opener: str) -> None:
        super().__init__(opener)
        self.offset = offset
        self.opener = opener


_SPACE = re.compile(r"\s*")
_NAME = r"[A-Za-z][A-Za-z0-9_\-]{0,63}"
_LABEL = re.compile(r"[Λλ](?::|(?=\s|[?!.~<>#@{\[|]|$))")
_SPEAKER = re.compile(rf"({_NAME})(?:[ \t]*->[ \t]*({_NAME}|\*))?:(?=[ \t]+[?!.~<>#@{{\[|\-Λλ]|[ \t]+[A-Z]\w*>[A-Z])")
_HEADER = re.compile(
    r"@v(\d{1,8}(?:\.\d{1,8}){0,3})(#h<|#h(?![A-Za-z0-9]))?(?:#id:([\w.\-]+))?(#h<|#h(?![A-Za-z0-9]))?"
)
# What opens as a header does; one that is not a whole header is broken, and sets nothing.
_HEADLIKE = re.compile(r"@v[\w.]*#(?:h<?(?![A-Za-z0-9])|id\b:?[\w.\-]*)(?:#(?:h<?(?![A-Za-z0-9])|id\b:?[\w.\-]*))*")
_CHUNK = re.compile(r"@msg:([\w.\-]+)#(\d{1,9})/(\d{1,9})")
_SIGNATURE = re.compile(r"@sig:([A-Za-z0-9\-]+):(\S+)")
_VOCABULARY = re.compile(r"@vocab:(\S+)")
_ADDRESS = re.compile(rf"@((?:{_NAME}\*?|\*)(?:,@?{_NAME}\*?)*):(?=\s|[?!.~<>#{{\[@(]|$)")
_DOMAIN = re.compile(r"@([a-z][a-z0-9]{0,11}|\*|\$)(?=[\s?!.~<>#{]|$)")
_RELAY = re.compile(r"[A-Z][A-Za-z0-9_\-]{0,63}(?:>[A-Z][A-Za-z0-9_\-]{0,63})+:")
_TRUST = re.compile(r"(pub|prv|sig):")
_INLINE = re.compile(r"([a-z][a-z0-9]{0,2}):(?=[?!.~])")
_FLOOR = re.compile(r"(>>|<<|><|--)(?=\s|$)")
_ACK = re.compile(r"<(?:ctx(?![a-z])|->|#\d{1,9}|[+\-?!])?")
# One acknowledgement may follow another: `<#3 <+`.
_ACK_AGAIN = re.compile(r"\s+(?=<(?:[+\-?!]|->|#\d{1,9}|ctx)?(?:\s|\Z))")
_TYPE = re.compile(r"\?+!?|!+|(?:~(?!v~))+|\.(?!\.)|#(?!#)")
_ERROR = re.compile(r"!er:([a-z]{2})(?![a-z0-9])")
_CHECKSUM = re.compile(r"\[n(\d{1,9})\]\Z")
_INTEREST = re.compile(r'\\.|"|:\)|:\((?=\s|\Z)|[\[({]|[\])}]|;(?=[?!.~][A-Za-z*$])|\s+', re.DOTALL)
_QUOTE = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_STARTER = re.compile(
    r'[?!~]+(?=[A-Za-z0-9*$"(\[{^+\-_@])|\.(?=[A-Za-z*$@])|(?:>>|<<|><|--)(?=\s|$)'
    r"|@(?:v\d|v[\w.]*#(?:h|id)\b|msg:|sig:|vocab:|\*|[A-Z][\w,*@\-]*:|[a-z][a-z0-9]{0,11}[ \t]+[?!.~])"
    r"|\{(?:def|ns|topic|ctx|grp|auth|enc|trust|vocab):"
)
_ESTABLISHING = re.compile(r"\{(?:def|ns|topic):")
_LINE_STARTER = re.compile(r"[<>#@{]|\|\||(?:pub|prv|sig):|[A-Za-z][\w\-]{0,63}: ?[?!.~<>]")
_TABLE = re.compile(r"\|\|[^\n]*(?:\n[ \t]*\|\|[^\n]*)*")
_RESERVED = frozenset({"pub", "prv", "sig", "msg", "vocab", "v"})
_CLOSERS = {"]": "[", ")": "(", "}": "{"}


def cut_record(text: str) -> tuple[list[Part], list[int]]:
    """The statements of a record, and the places of closing brackets that nothing opened.

    Raises:
        UnclosedError: at the first quote or bracket that never closes.
    """
    parts: list[Part] = []
    strays: list[int] = []
    at = _skip(text, 0)
    while at < len(text):
        part, at = _cut_part(text, at, is_first=not parts, strays=strays)
        parts.append(part)
        at = _skip(text, at)
    return parts, strays


def _skip(text: str, at: int) -> int:
    if at >= len(text) or not text[at].isspace():
        return at
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _cut_part(text: str, at: int, *, is_first: bool, strays: list[int]) -> tuple[Part, int]:
    items, at = _cut_items(text, at, is_first=is_first)
    if at >= len(text):
        return Part(tuple(items), "context", "", (at, at), (at, at)), at
    sealed = bool(items) and any(item.kind == "block" and text.startswith("{enc:", item.start) for item in items)
    form, symbol, start, body = _find_form(text, at, sealed=sealed, after_items=bool(items))
    # What a block right behind the type establishes holds as if it stood before the type.
    while form == "statement" and _ESTABLISHING.match(text, body):
        items.append(Item("block", body, find_close(text, body)))
        body = _skip(text, items[-1].end)
    if form == "floor":
        return Part(tuple(items), form, symbol, (start, body), (body, body)), body
    if form == "table":
        return Part(tuple(items), form, symbol, (start, start), (start, body)), body
    end = body if form == "ack" and _ACK_AGAIN.match(text, body) else _find_end(text, body, strays)
    while end > body and text[end - 1].isspace():
        end -= 1
    found = _CHECKSUM.search(text, max(body, end - 14), end) if text[end - 1] == "]" else None
    if found and found.start() == body:
        # A bracket that is the whole body is a list, no count of one.
        found = None
    checksum = (found.start(), end, int(found[1])) if found else None
    last = found.start() if found else end
    return Part(tuple(items), form, symbol, (start, start + len(symbol)), (body, last), checksum), end


def _find_form(text: str, at: int, *, sealed: bool, after_items: bool) -> tuple[str, str, int, int]:
    """(form, symbol, where it starts, where its body starts; for a floor or a table, where it ends)."""
    first = text[at]
    floor = _FLOOR.match(text, at) if first in "><-" else None
    if floor:
        return "floor", floor[1], at, floor.end()
    if first == "<" and not text.startswith(("<<", "<>"), at):
        ack = _ACK.match(text, at)
        end = ack.end() if ack else at + 1
        return "ack", text[at:end], at, end
    if first == ">" and not text.startswith(">>", at):
        return "offer", ">", at, at + 1
    if first == "!" and _ERROR.match(text, at):
        return "error", "!", at, at + 1
    if text.startswith("||", at):
        table = _TABLE.match(text, at)
        return "table", "", at, table.end() if table else len(text)
    if first == "[" and sealed:
        return "sealed", "", at, at
    found = _TYPE.match(text, at)
    if found:
        return "statement", found[0], at, found.end()
    if first == "[" and not after_items:
        return "list", "", at, at
    return "untyped", "", at, at


def _cut_items(text: str, at: int, *, is_first: bool) -> tuple[list[Item], int]:
    items: list[Item] = []
    while at < len(text):
        item = _find_item(text, at, is_first=is_first and all(item.kind in ("label", "speaker") for item in items))
        if item is None:
            break
        items.append(item)
        at = _skip(text, item.end)
    return items, at


def _find_item(text: str, at: int, *, is_first: bool) -> Item | None:
    first = text[at]
    if first == "{":
        return Item("block", at, find_close(text, at))
    if first == "@":
        return _find_at_item(text, at)
    if first in "Λλ" and is_first:
        found = _LABEL.match(text, at)
        return Item("label", at, found.end()) if found else None
    if "a" <= first <= "z":
        trust = _TRUST.match(text, at)
        if trust:
            return Item("trust", at, trust.end(), trust[1])
        inline = _INLINE.match(text, at)
        if inline:
            return Item("inline", at, inline.end(), inline[1])
    if "A" <= first <= "Z":
        relay = _RELAY.match(text, at)
        if relay:
            return Item("relay", at, relay.end(), tuple(relay[0][:-1].split(">")))
    if is_first and first.isascii() and first.isalpha():
        speaker = _SPEAKER.match(text, at)
        if speaker and speaker[1] not in _RESERVED:
            return Item("speaker", at, speaker.end(), (speaker[1], speaker[2]))
    return None


def _find_at_item(text: str, at: int) -> Item | None:
    header = _HEADER.match(text, at)
    headlike = _HEADLIKE.match(text, at)
    if headlike and (header is None or header.end() < headlike.end()):
        return Item("broken-header", at, headlike.end(), headlike[0])
    if header:
        return Item("header", at, header.end(), (header[1], header[2] or header[4], header[3]))
    chunk = _CHUNK.match(text, at)
    if chunk:
        return Item("chunk", at, chunk.end(), (chunk[1], int(chunk[2]), int(chunk[3])))
    signature = _SIGNATURE.match(text, at)
    if signature:
        return Item("signature", at, signature.end(), (signature[1], signature[2]))
    vocabulary = _VOCABULARY.match(text, at)
    if vocabulary:
        return Item("vocabulary", at, vocabulary.end(), vocabulary[1])
    address = _ADDRESS.match(text, at)
    if address and address[1] not in ("msg", "sig", "vocab"):
        return Item("address", at, address.end(), tuple(name.lstrip("@") for name in address[1].split(",")))
    domain = _DOMAIN.match(text, at)
    if domain:
        return Item("domain", at, domain.end(), domain[1])
    return None


def find_close(text: str, at: int) -> int:
    """The place after the bracket that closes the one at `at`.

    Raises:
        UnclosedError: if it, or a quote inside it, never closes.
    """
    stack: list[int] = []
    place = at
    while True:
        found = _INTEREST.search(text, place)
        if found is None:
            raise UnclosedError(stack[-1] if stack else at, text[stack[-1] if stack else at])
        mark = found[0]
        place = found.end()
        if mark == '"':
            place = _close_quote(text, found.start())
        elif mark in "[({":
            stack.append(found.start())
        elif mark in "])}" and len(mark) == 1 and stack and text[stack[-1]] == _CLOSERS[mark]:
            stack.pop()
            if not stack:
                return place


def _close_quote(text: str, at: int) -> int:
    quote = _QUOTE.match(text, at)
    if quote is None:
        raise UnclosedError(at, '"')
    return quote.end()


def _find_end(text: str, at: int, strays: list[int]) -> int:
    """Where the body that starts at `at` ends: before the next statement, or with the text."""
    stack: list[int] = []
    place = at
    while True:
        found = _INTEREST.search(text, place)
        if found is None:
            break
        mark = found[0]
        place = found.end()
        if mark == '"':
            place = _close_quote(text, found.start())
        elif mark in "[({":
            stack.append(found.start())
        elif mark in "])}":
            if stack and text[stack[-1]] == _CLOSERS[mark]:
                stack.pop()
            else:
                strays.append(found.start())
        elif mark == ";":
            if not stack:
                return found.end()
        elif mark[0].isspace() and not stack and starts_statement(text, place, is_new_line="\n" in mark):
            return found.start()
    if stack:
        raise UnclosedError(stack[-1], text[stack[-1]])
    return len(text)


def starts_statement(text: str, at: int, *, is_new_line: bool) -> bool:
    """Whether a statement starts at `at`, which white space stands before."""
    return bool(_STARTER.match(text, at) or (is_new_line and _LINE_STARTER.match(text, at)))


class Token(NamedTuple):
    """A stretch of a body: its kind and its range in the text."""

    kind: str
    start: int
    end: int
    text: str


_UNIT = r"(?:%|(?:ms|s|min|m|h|d|kb|mb|gb|tb|KB|MB|GB|TB|k|K|M|G|x)(?![A-Za-z0-9]))?"
_TOKEN = re.compile(
    rf"""(?P<space>\s+)
|(?P<term>def:[A-Za-z]\w*)
|(?P<error>er:[a-z]{{2}}(?![a-z0-9]))
|(?P<domain>(?:a2a|[a-z]{{1,3}}):(?=[a-z(]))
|(?P<mixed>[a-z]+(?=[0-9])[A-Za-z0-9]+)
|(?P<word>[a-z]+)
|(?P<entity>[IUHAX](?![A-Z0-9]))
|(?P<name>[A-Z][A-Za-z0-9]*)
|(?P<quantity>[1239](?=[A-Za-z*]))
|(?P<nothing>0(?![0-9.:%A-Za-z]))
|(?P<number>\$?\d+(?:[.:]\d+)*{_UNIT}(?:[+\-](?=\Z|[\s)\]}},;]))?)
|(?P<quote>"(?:[^"\\]|\\.)*")
|(?P<escape>\\.)
|(?P<reference>\#id:[\w.\-]+|\#\d{{1,9}})
|(?P<emotion>:[()|?](?![A-Za-z0-9])|:o(?![A-Za-z0-9]))
|(?P<paraphrase>(?<![A-Za-z0-9\])])'[^'"\n\[({{]+'(?![A-Za-z0-9]))
|(?P<marker>'[EVSMR23](?![A-Za-z0-9]))
|(?P<passive>~v~)
|(?P<left>\.\.\.)
|(?P<demonstrative>\$(?:\$(?!\d)|[\^_](?![\^_])))
|(?P<star>\*(?!\*))
|(?P<open>[\[(])
|(?P<close>[\])])
|(?P<joiner><->|=>|<>|>>|<<|\.\.|\*\*|\^+|_+|!+|\?+|~+|\#\#|[/&|><;,.+\-=@%$':\#])
|(?P<unread>[^\s\w"\\\[\](){{}}/&|><;,.+\-=@%$':\#^!?~*]+|.)""",
    re.VERBOSE | re.DOTALL,
)
_VALUE = re.compile(
    r"""(?P<quote>"(?:[^"\\]|\\.)*")
|(?P<url>[a-z][a-z0-9+.\-]{1,15}://(?:[^\s"<>{}\[\]|\\]|\\[^\s"<>{}\[\]|])+)
|(?P<number>[+\-]?\$?\d+(?:[.:]\d+)*(?:/\$?\d+(?:[.:]\d+)*)?(?:%|[A-Za-z]{1,3})?(?![A-Za-z0-9_]|[.:\-][A-Za-z0-9]))
|(?P<domain>(?:a2a|[a-z]{1,3}):[a-z]+(?![A-Za-z0-9]))
|(?P<text>[A-Za-z0-9_]+(?:[.\-:][A-Za-z0-9_]+)*)
|(?P<symbol>\^+)""",
    re.VERBOSE | re.DOTALL,
)
_DOMAIN_NAMES = frozenset(name for name, *_ in NAMES)


def scan_body(text: str, start: int, end: int) -> Iterator[Token]:
    """The tokens of text[start:end], in order and without gaps.

    Kinds are the group names of the token table, and `block` for `{…}`, `value` for what stands after `=`
    (of the kinds `value-quote`, `value-url`, `value-number`, `value-domain`, `value-text`, `value-symbol`).
    The brackets of the text are known to close: it was cut by `cut_record`, which sees the same escapes and quotes.
    """
    at = start
    while at < end:
        if text[at] == "{":
            close = find_close(text, at)
            yield Token("block", at, close, text[at:close])
            at = close
            continue
        found = _TOKEN.match(text, at, end)
        if found is None:
            yield Token("unread", at, at + 1, text[at])
            at += 1
            continue
        kind, last = found.lastgroup or "unread", found.end()
        if kind == "domain" and found[0][:-1] not in _DOMAIN_NAMES:
            # Not a domain: the word stands alone, and the colon after it is a joiner.
            kind, last = "word", last - 1
        yield Token(kind, at, last, text[at:last])
        at = last
        if kind == "joiner" and found[0] == "=":
            value = _VALUE.match(text, at, end)
            if value:
                yield Token(f"value-{value.lastgroup}", at, value.end(), value[0])
                at = value.end()
