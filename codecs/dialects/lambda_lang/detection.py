"""Detection: how likely a text is Λ Lambda. It is weak by nature, so it asks for a form and for known words. And blocks
over several lines: a `{…}` that stays open, and a table whose rows follow.

A header or a protocol form is strong evidence. A type symbol alone is not: `?`, `!` and `.` open sentences, commands
and other dialects' lines. There at least six of ten words must be exact atoms, where a divided word does not count and
a word that is also English counts only among others that are not.
"""

from __future__ import annotations

import re
from typing import Literal

from .._dialect import Block
from .._record import Candidate
from .json_forms import NotJsonError, find_form, judge, may_be_form
from .vocabulary import DOMAINS, NAMES, NEWEST, histories, load_vocabulary

# No more of a text than this is looked at.
LOOKED_AT = 2048
_STRONG = re.compile(
    r"@v\d+(?:\.\d+)*(?:#h<?|#id:[\w.\-]+|(?=\s*[?!~<>#@{\[|]|\s*\.[A-Za-z]))|@v\d+(?:\.\d+)+(?=\s*\Z)"
    r"|@sig:[A-Za-z0-9\-]+:\S+(?=\s|$)|@vocab:\S+\Z"
    r"|@msg:[\w.\-]+#\d+/\d+(?=\s|$)"
    r"|!er:(?:pa|un|cx|to|ov|ve|am|mi)(?![A-Za-z0-9])"
    r"|\{(?:def|ns|topic|grp|vocab):[^}]|\{(?:ctx|v):[^}\s]*[,}]|\{(?:enc|auth|trust):[A-Za-z0-9/_\-]+\}"
)
_ADDRESSED = re.compile(
    r"(?:@v[\w.]*#(?:h<?|id:?[\w.\-]*)(?=\s+[?!.~])|@(?:[A-Za-z][\w\-]*\*?|\*)(?:,@?[A-Za-z][\w\-]*\*?){0,99}:"
    r"|[A-Z][\w\-]*(?:>[A-Z][\w\-]*){1,99}:|@[a-z][a-z0-9]{0,11}(?=\s+[?!.~])|@\*(?=\s)|(?:>>|<<|><)(?=\s+[?!.~@{])"
    r"|(?:pub|prv|sig|[acemosv]|cd|sc|em|so|vb|emo|soc|evo|a2a):(?=[?!.~]))\s*"
)
_LABEL = re.compile(
    r"(?:[Λλ]:?\s+)?"
    r"(?:[A-Za-z][\w\-]{0,63}(?:[ \t]*->[ \t]*(?:[A-Za-z][\w\-]{0,63}|\*))?:[ \t]+(?=[?!.~<>@{\[|ΛλA-Z\-]))?"
    r"(?:[Λλ]:?\s+)?"
)
_EXACT = {
    "<": 0.5,
    "<+": 0.8,
    "<-": 0.75,
    "<?": 0.75,
    "<!": 0.75,
    "<->": 0.6,
    "<ctx": 0.95,
    ">>": 0.5,
    "<<": 0.5,
    "><": 0.6,
    "--": 0.4,
}
_NAMED_ACK = re.compile(r"<(?:#\d{1,9}|[+\-?!]?#id:[\w.\-]+)(?:\s+<[+\-?!]?)?\Z")
_OPENER = re.compile(r"(?:\?+!?|!+|~+|\.|#|>|<(?:[+?!]|->?)?)(?=[A-Za-z0-9*$%^_\-+@\"'(\[{&]|~v~)")
# What stands in quotes is not the dialect's, whatever it looks like.
_QUOTATION = r"\"(?:[^\"\\]|\\.)*\"|(?<![A-Za-z0-9])'[^'\n]+'(?![A-Za-z0-9])"
_QUOTED = re.compile(_QUOTATION)
_TOKEN = re.compile(
    _QUOTATION + r"|\[n\d+\]|(?<=[a-z])(?:'[EVSMR23])?\([A-Za-z][A-Za-z \-]{2,63}\)|~v~"
    r"|=[A-Za-z0-9_./:\-]+|#id:[\w.\-]+|\{[^{}]*\}"
    r"|(?P<domain>(?:a2a|[a-z]{1,3}):)?(?P<word>[a-z]+)(?P<rest>[0-9][A-Za-z0-9]*)?|(?P<entity>[IUHAX](?![A-Z0-9]))|(?P<capital>[A-Z][A-Za-z0-9]*)"
)
_STRUCTURE = re.compile(
    r"[IUHAX*][-/]?[a-z*\[]|[a-z*]/[A-Za-z*\[]|[a-z]=\S|\$\d|[a-zIUHAX][&|][a-zIUHAX]|[a-z][<>][A-Za-z*]|\b(?:a|c|e|m|o|s|v):[a-z]{2}\b"
)
# What joins words and is no part of an English one.
_JOINED = re.compile(r"[a-z]=\S|\$\d|[a-zIUHAX][&|<>][a-zIUHAX*]|[IUHAX*][a-z]+/[a-z*]|\A(?:a|c|e|m|o|s|v):[a-z]{2}\b")
# Atoms that are also English words: by themselves they prove nothing.
_ENGLISH = frozenset(
    [
        "am",
        "an",
        "as",
        "at",
        "be",
        "do",
        "en",
        "ex",
        "go",
        "ha",
        "he",
        "hi",
        "id",
        "if",
        "in",
        "it",
        "me",
        "my",
        "no",
        "of",
        "oh",
        "ok",
        "on",
        "op",
        "or",
        "pa",
        "re",
        "so",
        "to",
        "un",
        "up",
        "us",
        "we",
        "a",
        "i",
    ]
)
_OPENS_ENGLISH = re.compile(
    r"[?!.~>]+(?:(?:A[mnst]|Are|I[fnst]|H[ei]|U[ps])\s+[a-zA-Z]+|(?:Ah|Ha|Hm|Uh)(?![\w/]))[^=/$^]*\Z"
)
_SWITCH = re.compile(r"@([a-z][a-z0-9]{0,11}|\*)(?:\s+[a-z]{1,3}){0,9}\s*\Z")
_HEADED = re.compile(r"@v\d+(?:\.\d+)+\s+")
_FLAG = re.compile(r"\s--?[a-z]")
_LONGER = re.compile(r"[a-z]{2}|[a-z][IUHA](?![A-Za-z0-9])|[IUHA]'[a-z]")
_SHELL = re.compile(r"[!.~#]*(?:\.?/|~/)|!\[|#!|\.\s|\?\s|!\s|~\s")


def _known_words() -> frozenset[str]:
    vocabulary = load_vocabulary(NEWEST)
    return frozenset(vocabulary.core) | {"p", "n", "u", "z"}


_KNOWN = _known_words()
_EVER = frozenset(histories()[""])
_BY_NAME = {
    name: frozenset(atom for held, key, *_ in NAMES if held == name and key in DOMAINS for atom in histories()[key])
    for name, *_ in NAMES
}


def sniff(wire: str) -> Candidate | None:
    """The score of a text, with the reason, or None where nothing speaks for the dialect."""
    if may_be_form(wire):
        return _sniff_json(wire)
    text = wire[:LOOKED_AT].strip()
    if not text:
        return None
    first = text[0]
    label = _LABEL.match(text) if first.isalpha() else None
    rest = text[label.end() :] if label else text
    is_marked = bool(label) and first in "Λλ"
    score, why = _score(rest)
    if is_marked and score:
        score, why = max(score, 0.9), f"the label Λ, {why}"
    if score < 0.05:
        return None
    return Candidate(dialect="lambda_lang", score=round(score, 2), why=why)


def _sniff_json(wire: str) -> Candidate | None:
    try:
        form = find_form(wire)
    except NotJsonError as fault:
        why = f"opens as the pilot envelope and stops being JSON at character {fault.offset + 1}"
        return Candidate(dialect="lambda_lang", score=0.8, why=why)
    if form is None:
        return None
    score, why = judge(form, _sniff_inner)
    return Candidate(dialect="lambda_lang", score=score, why=why)


def _sniff_inner(text: str) -> float:
    candidate = None if may_be_form(text) else sniff(text)
    return candidate.score if candidate else 0.0


def _score(text: str) -> tuple[float, str]:
    if not text:
        return 0.0, ""
    strong = _STRONG.match(text)
    if strong:
        return 0.95, "a header or protocol form of the dialect"
    headed = _HEADED.match(text)
    if headed:
        count, exact, plain, longest, _ = _count(text[headed.end() :], _KNOWN)
        if count and exact >= 0.6 * count and exact > plain and not longest:
            return 0.8, "a version, and known atoms without a type"
        return 0.25, "possibly Lambda: a version, and words that are none of the dialect"
    known = _EXACT.get(text)
    if known is not None:
        return known, "exactly a protocol form"
    if _NAMED_ACK.match(text):
        return 0.85, "acknowledges a message or a chunk by name"
    first_line = text.split("\n", 1)[0].rstrip()
    if text.startswith("||") and first_line.endswith("||") and first_line.count("|") > 4 and text[2] != "|":
        return 0.6, "a table between double bars"
    if text[0] == "{":
        return _score_block(text)
    if text[0] == "[" or _SHELL.match(text):
        return (0.1, "possibly a list") if text[0] == "[" and text.endswith("]") else (0.0, "")
    switched = _SWITCH.match(text)
    if switched and (switched[1] == "*" or switched[1] in _BY_NAME):
        return 0.2, "possibly Lambda: a switch of the domain, without a type behind it"
    bonus, place, words = 0.0, 0, _KNOWN
    while (addressed := _ADDRESSED.match(text, place)) and addressed.end() > place:
        bonus, place = 0.1, addressed.end()
        words |= _BY_NAME.get(addressed[0].strip().strip("@:"), frozenset())
    return _score_statement(text[place:], bonus, words)


_DATA_KEY = re.compile(r"\{\s*([a-z]{1,3}):(?!//)\s*(?=[\[{\"A-Za-z0-9$^])")

_BEFORE_STATEMENT = re.compile(r"(?:\{[a-z]{1,5}:[^{}\"\n]{1,1024}\}\s{0,3})+(?=[?!.~])")


def _score_block(text: str) -> tuple[float, str]:
    before = _BEFORE_STATEMENT.match(text)
    if before:
        score, why = _score_statement(text[before.end() :], 0.1, _KNOWN)
        if score >= 0.4:
            return score, why
    found = _DATA_KEY.match(text)
    if found is None:
        is_plain = re.match(r"\{[a-z]\w*:[^\"\s{}]+[,}]", text)
        return (0.35, "possibly a block of the dialect") if is_plain and text.endswith("}") else (0.0, "")
    if found[1] in _EVER and text.rstrip().endswith("}"):
        return 0.45, "a block whose first key is an atom"
    return 0.2, "possibly a block of the dialect"


def _score_statement(text: str, bonus: float, known: frozenset[str]) -> tuple[float, str]:
    opener = _OPENER.match(text)
    if opener is None and text[:1] == "<" and text[:2] not in ("<<", "<>"):
        opener = re.match(r"<(?=[a-z]{1,3}\Z)", text)
    if _OPENS_ENGLISH.match(text):
        return 0.2, "possibly Lambda: it opens as an English sentence does"
    bare = _QUOTED.sub('""', text) if '"' in text or "'" in text else text
    if "](" in bare[:80] or _FLAG.search(bare) or "</" in bare or "/>" in bare:
        return 0.0, ""
    if opener is None and bonus and (floor := _EXACT.get(text)):
        return floor, "exactly a protocol form"
    words, exact, plain, longest, unknown_opening = _count(text, known)
    total = words + longest
    if total == 0 and not (opener and re.match(r".[A-Z*](?![a-z])", text)):
        if opener and re.fullmatch(r'[!?.~]"(?:[^"\\]|\\.)*"', text):
            return 0.35, "a type symbol and a quotation"
        return (0.15, "possibly Lambda: no words to judge") if opener and len(text) < 12 else (0.0, "")
    share = exact / total if total else 1.0
    structured = bool(_STRUCTURE.search(text))
    if opener is None:
        if share >= 0.6 and (structured or bonus) and not longest:
            joined = 0.05 if _JOINED.search(text) else bonus / 2
            return 0.2 + joined, "possibly Lambda: no type symbol, but known words"
        return 0.0, ""
    if share < 0.6 or longest > exact or unknown_opening:
        if (structured or exact) and not unknown_opening and not longest:
            return 0.25, "possibly Lambda, of which too few words are known"
        return (0.2, "possibly Lambda: a form before it, but no known atoms") if bonus and not longest else (0.0, "")
    if not structured and exact <= plain:
        # Only words that are English too: a sentence or a command, not evidence.
        return 0.2, "possibly Lambda: its atoms are also English words"
    if not structured and not _LONGER.search(text):
        # Single letters among signs are what any bytes come to.
        return 0.2, "possibly Lambda: single letters, and nothing joins them"
    percent = round(100 * share)
    score = 0.55 + 0.3 * (share - 0.6) / 0.4 + (0.1 if structured else 0.0) + bonus
    if not structured and exact - plain < 2:
        score = 0.45 + bonus
    return min(score, 0.95), f"type prefix {opener[0]}, {percent} % of its words are atoms"


def _count(text: str, known: frozenset[str]) -> tuple[int, int, int, int, bool]:
    """(short words, exact ones, exact ones that are English too, long unknown words, opens with a foreign word)."""
    words = exact = plain = longest = 0
    opens_foreign = False
    for found in _TOKEN.finditer(text):
        word = found["word"]
        if word is None:
            if found["capital"] and len(found[0]) > 2 and not found[0].isupper():
                longest += 1
            continue
        domain = (found["domain"] or "")[:-1]
        if found["rest"]:
            words += 1
            continue
        is_exact = word in _BY_NAME.get(domain, ()) if domain else word in known
        if domain in ("er", "def"):
            is_exact = True
        if is_exact:
            exact += 1
            plain += word in _ENGLISH and not domain
        elif len(word) > 4:
            longest += 1
        elif domain and domain not in _BY_NAME:
            exact += domain in _KNOWN
        if is_exact or len(word) <= 4:
            words += 1
        if found.start() <= 2 and not is_exact and text[found.end() : found.end() + 2] == " @":
            opens_foreign = True
    return words, exact, plain, longest, opens_foreign


# A block that is not closed after so many lines is not one.
MAX_LINES = 400
_OPENS = re.compile(
    r"\s*(?:[A-Za-z][\w\-]{0,63}(?:[ \t]*->[ \t]*(?:[A-Za-z][\w\-]{0,63}|\*))?:[ \t]+)?"
    r"(?:@\S+[ \t]*)?(?:[?!.~<>][A-Za-z0-9/*$^_\-:]{0,80})?"
    r"\{\s*(?:[a-z]\w{0,31}\s*:(?!//).*)?\Z"
)
_BRACE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]')


def _count_braces(line: str) -> int:
    return sum({"{": 1, "}": -1}.get(found[0], 0) for found in _BRACE.finditer(line))


class BraceBlock:
    """A statement whose braces are still open at the end of its first line."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.lines = 1
        self.is_complete = False
        # An unclosed block is its first line alone: the lines after it are records of their own.
        self.lines_if_cut: int | None = 1

    def feed(self, line: str) -> Literal["more", "last", "not"]:
        """Whether the next line belongs to the block."""
        self.lines += 1
        if self.lines > MAX_LINES:
            return "not"
        self.depth += _count_braces(line)
        if self.depth <= 0:
            self.is_complete = True
            return "last"
        return "more"


class TableBlock:
    """A table whose rows may stand on lines of their own."""

    is_complete = True
    lines_if_cut: int | None = None

    def feed(self, line: str) -> Literal["more", "last", "not"]:
        """Rows begin and end with double bars."""
        row = line.strip()
        return "more" if row.startswith("||") and row.endswith("||") and len(row) > 4 else "not"


def open_block(line: str) -> Block | None:
    """The block that a line opens, or None: a brace of this dialect left open, or a table."""
    row = line.strip()
    if row.startswith("||") and row.endswith("||") and len(row) > 4:
        return TableBlock()
    if "{" not in row:
        return None
    depth = _count_braces(row)
    if depth <= 0 or not _OPENS.match(row):
        return None
    # A bare brace is JSON more often than not: without a type it must name its first key, unquoted.
    if row.startswith("{") and not re.match(r"\{\s*[a-z]\w{0,31}\s*:", row):
        return None
    return BraceBlock(depth)
