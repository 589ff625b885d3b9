"""Tokens in text: the one table of what a secret looks like, and how it is found and hidden; and what stands in the
words that a tool gave back: orders to whoever reads them, and values that a claim can contradict.

Each shape of a secret is a pattern that begins at a border and goes on with possessive repetitions, so that no text
makes it look at a character more than a few times. A repeated group is an atomic group instead: before 3.11.5 Python
matches possessive repetitions of what can be matched in several ways wrongly. A few literal hints say cheaply that a
text has nothing of the kind, which is so of nearly all. What is found is hidden behind an alias: marks, and a short
digest under this installation's key, by which the same token is known again and nothing else of it. Placeholders of
manuals are no tokens.

Orders and values are looked for in English alone, in the beginning of a text, and with patterns whose repetitions are
bounded.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, NamedTuple

from django.conf import settings

MARKS: Final = "••••••"
_ALIAS_DIGITS: Final = 8


class Shape(NamedTuple):
    """What one kind of token looks like.

    `name` is said of it to people. `hints` are texts, in small letters, one of which any text with such a token has.
    The group `token` of the pattern is what is secret; all of it where there is no such group.
    """

    name: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]


class Token(NamedTuple):
    """A token in a text: text[start:end], and the name of its shape."""

    start: int
    end: int
    name: str


# What stands before a token is no letter, digit or other character of one.
_BORDER: Final = r"(?<![A-Za-z0-9_-])"
# Before a prefix that nobody writes by chance, a line below or a hyphen may stand: `agent-AKIA…`.
_LETTER_BORDER: Final = r"(?<![A-Za-z0-9])"
# Words that are called like a secret; what follows one of them and a sign is the secret.
_KEYS: Final = (
    r"(?:passw(?:or)?d|passphrase|passcode|pwd|secret|credential|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|signing[_-]?key|account[_-]?key|shared[_-]?key|encryption[_-]?key"
    r"|(?:auth|access|refresh|session|bearer|bot|id|api|csrf|deploy|personal)[_-]?token)"
)
_OF_KEYS: Final = ("pass", "pwd", "secret", "credential", "key", "token")
# Those of a text, after which anything may follow.
_QUOTE: Final = r"(?>(?:\\{0,7}[\"'])?)"
# What is written where a secret would stand: a variable, a placeholder, a word about it, an alias of ours.
_STAND_IN: Final = (
    r"(?![•*xX.\u2026_-]{3,}|[$%<{\[]|(?:your|my|the|example|changeme|redacted|removed|hidden|masked|placeholder|dummy"
    r"|none|null|nil|true|false|undefined|required|optional|missing|invalid|expired|incorrect|unknown|string|text"
    r"|rotated|revoked|rotation|changed|policy|manager|management|vault|field|prompt|hash)\b(?![A-Za-z_-]{0,64}+[0-9])"
    r"|https?:|/[A-Za-z]{2,12}/|\\u2022)"
)
_EXAMPLE: Final = r"(?![A-Z0-9]{9}EXAMPLE)"

# What stands in quotes, up to a quote that no escape is before; where there is none, up to the first. In a text of JSON
# within another (`deep`) a quote is an escape already, and its escape another one; within one more (`deeper`) it ends
# at the first that is escaped alike. A text that was cut has no closing quote: then it goes on to the end of the line,
# or of the text around it. As each quote closes one of its kind that is open, nothing is looked at more than a few
# times. What is longer than a repeated group may be, which takes memory for each turn, ends at any quote.
_QUOTED: Final = (
    r"(?:(?(deeper)(?!)|(?(deep)(?>(?:\\\\(?:\\[^\r\n]|[^\r\n\\])|(?!(?P=quote)|\\\\)[^\r\n]){6,8192})(?=(?P=quote))"
    r"|(?>(?:\\[^\r\n]|(?!(?P=quote))[^\r\n\\]){6,8192})(?=(?P=quote))))"
    r"|(?>(?:(?!(?P=quote))[^\r\n]){6,8192})(?=(?P=quote))"
    r"|(?>(?:(?!(?P=quote))[^\r\n\"]){6,8192})(?=[\r\n\"]|\Z)"
    r"|[^\r\n\"'\\]{6,}+)"
)


_NAME: Final = r"(?i:" + _KEYS + r"(?>(?:[_-]?(?:access|value|id|key|1|2)){0,2}))"
# In quotes it may hold anything; without, one word with something in it that words have not.
_VALUE: Final = (
    r"(?:(?P<quote>(?:(?P<deeper>\\{2,7})|(?P<deep>\\)?)[\"'])(?i:" + _STAND_IN + r")(?P<quoted>" + _QUOTED + r")"
    r"|(?i:" + _STAND_IN + r")(?=[A-Za-z_./:-]{0,64}+[0-9!@#$%^*+=~?])"
    r"(?P<plain>[^\s\"'\\|;,<>{}()\[\]&`“”„’«»]{6,}+))"
)


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


SHAPES: Final = (
    Shape(
        "private key",
        ("-----",),
        # Its end is not asked for: a key that was cut short is a key.
        _compile(
            r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}?PRIVATE KEY[A-Z ]{0,10}+-----(?>(?:[A-Za-z0-9+/=\s\\:,.]|-(?!----))*)"
            r"(?>(?:-----END [A-Z0-9 ]{0,60}+-----)?)"
        ),
    ),
    Shape(
        "JSON web token",
        ("eyj",),
        _compile(
            _BORDER + r"eyJ[A-Za-z0-9_-]{8,}+\.(?:eyJ[A-Za-z0-9_-]{4,}+(?>(?:\.[A-Za-z0-9_-]*+)?)"
            r"|[A-Za-z0-9_-]*+(?:\.[A-Za-z0-9_-]{8,}+){3})"
        ),
    ),
    Shape(
        "cloud access key",
        ("akia", "asia", "aiza", "ya29.", "gocspx-", "q~", "ltai", "dop_v1_", "sig="),
        _compile(
            _LETTER_BORDER + r"(?:(?:AKIA|ASIA)" + _EXAMPLE + r"[0-9A-Z]{16}+|AIza[0-9A-Za-z_-]{35}+"
            r"|ya29\.[0-9A-Za-z_-]{20,}+|GOCSPX-[0-9A-Za-z_-]{20,}+|LTAI[0-9A-Za-z]{12,}+|dop_v1_[0-9a-f]{32,}+"
            r"|[0-9A-Za-z_~.-]{3}[0-9]Q~[0-9A-Za-z_~.-]{31,}+|(?<=[?&;])sig=(?P<token>[0-9A-Za-z%+/]{40,}+=*+))"
        ),
    ),
    Shape(
        "code host or chat token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "npm_", "pypi-", "hooks.slack.com/"),
        _compile(
            _LETTER_BORDER + r"(?:gh[pousr]_[A-Za-z0-9]{30,}+|github_pat_[A-Za-z0-9_]{22,}+|glpat-[A-Za-z0-9_.-]{20,}+"
            r"|xox[abeprs]-[A-Za-z0-9-]{10,}+|npm_[A-Za-z0-9]{30,}+|pypi-[A-Za-z0-9_-]{50,}+"
            r"|hooks\.slack\.com/(?:services|workflows)/(?P<token>[A-Za-z0-9/_-]{20,}+))"
        ),
    ),
    Shape(
        "service API key",
        ("sk-", "sk_", "rk_", "hf_", "sg.", "aci_", "whsec_"),
        _compile(
            _LETTER_BORDER
            + r"(?:sk-(?=[A-Za-z_-]{0,40}+[0-9])[A-Za-z0-9_-]{20,}+|(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,}+"
            r"|hf_[A-Za-z0-9]{30,}+|SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+|aci_[0-9a-f]{12}_[0-9a-f]{64})"
        ),
    ),
    Shape(
        "a bearer token",
        ("bearer", "authorization"),
        _compile(
            r"(?:(?:\b[Bb]earer|\bBEARER)[ \t]{1,4}+(?=[A-Za-z._~+/-]*+[0-9])"
            r"|(?:[Aa]uthorization|AUTHORIZATION)"
            + _QUOTE
            + r"\s{0,4}+[:=]\s{0,4}+"
            + _QUOTE
            + r"(?:[Bb]earer|[Bb]asic|[Tt]oken|[Dd]igest|[Nn]egotiate|ApiKey)[ \t]{1,4}+)"
            + r"(?P<token>[A-Za-z0-9._~+/-]{12,}+=*+)"
        ),
    ),
    Shape(
        "a cookie",
        ("cookie",),
        _compile(
            r"\b(?:[Ss]et-)?[Cc]ookie" + _QUOTE + r"\s{0,3}+[:=]\s{0,3}+" + _QUOTE + r"(?=[^\s=;,\"'\\]{1,64}+=)"
            r"(?P<token>[^\r\n\"'\\]{8,4096}+)"
        ),
    ),
    Shape(
        "a password in an address",
        ("://",),
        _compile(
            r"(?<=://)[^\s/?#:@\"'<>|\\]{0,128}+:"
            + _STAND_IN
            + r"(?P<token>[^\s/?#@\"'<>|\\{}]{1,4096}+)@(?=[A-Za-z0-9\[])"
        ),
    ),
    Shape(
        "a password or key by its name",
        _OF_KEYS,
        _compile(
            _NAME + r"(?:>(?i:" + _STAND_IN + r")(?P<element>[^<>\r\n]{6,4096}+)(?=</[\w:.-]{0,40}(?i:" + _KEYS + r"))"
            r"|" + _QUOTE + r"\s{0,3}+(?::=|=>|=|:)\s{0,3}+" + _VALUE + r")"
        ),
    ),
    # The same as a flag of a command, where its value may stand behind a space.
    Shape(
        "a password or key by its name",
        _OF_KEYS,
        _compile(r"--(?:[A-Za-z]{1,20}-){0,3}" + _NAME + r"[ \t]{1,3}+" + _VALUE),
    ),
)
_HINTS: Final = tuple(dict.fromkeys(hint for shape in SHAPES for hint in shape.hints))
_GROUPS: Final = ("token", "quoted", "plain", "element")


def has_hint(text: str) -> bool:
    """Whether a text may hold a token; without, it holds none. Cheap."""
    small = text.lower()
    # A loop is twice as fast as a generator here, and this is asked of every message.
    for hint in _HINTS:  # noqa: SIM110
        if hint in small:
            return True
    return False


def find_tokens(text: str) -> list[Token]:
    """The tokens in a text, in order; none overlaps another."""
    small = text.lower()
    found = [token for shape in SHAPES if any(hint in small for hint in shape.hints) for token in _find(shape, text)]
    kept: list[Token] = []
    for token in sorted(found, key=lambda each: (each.start, -each.end)):
        if kept and token.start < kept[-1].end:
            if token.end > kept[-1].end:
                kept[-1] = kept[-1]._replace(end=token.end)
        else:
            kept.append(token)
    return kept


def _find(shape: Shape, text: str) -> Iterator[Token]:
    for match in shape.pattern.finditer(text):
        groups = match.groupdict()
        name = next((name for name in _GROUPS if groups.get(name) is not None), None)
        start, end = match.span(name) if name else match.span()
        if MARKS not in text[start:end]:
            yield Token(start, end, shape.name)


def alias_of(token: str) -> str:
    """What stands for a token: the same for the same token here, and of no use to whoever sees it."""
    key = hashlib.sha256(b"tokens" + settings.SECRET_KEY.encode()).digest()
    return MARKS + hmac.new(key, token.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:_ALIAS_DIGITS]


def hide_tokens(text: str) -> str:
    """The text with an alias in the place of each token; the text itself where it holds none."""
    if not has_hint(text):
        return text
    pieces, at = [], 0
    for token in find_tokens(text):
        pieces += [text[at : token.start], alias_of(text[token.start : token.end])]
        at = token.end
    return "".join((*pieces, text[at:])) if pieces else text


# By what its carrier calls what a tool gave back.
_RESULT: Final = re.compile(r"tool|function|observation|result|tool_result|execute_tool|\w+_(?:tool_result|output)")
_ENDED: Final = ("done", "failure")
# By what their carriers call the pieces of a stream.
PIECE: Final = r"^(chunk|text|thinking|refusal|reasoning\w*|\w+_delta|content_block_\w+|message_\w+|response\..+)$"
# So much of a text is looked at.
MAX_LOOKED_AT: Final = 65_536
# An order is read up to the end of its sentence, and what overrides other orders beyond that, but no further than this.
_MAX_ORDER: Final = 400
_MAX_ORDERS: Final = 50
_MAX_STATEMENTS: Final = 60


def is_result(performative: str | None, native_act: str | None) -> bool:
    """Whether a message is what a tool gave back, by its act and its carrier's word for it."""
    return performative in _ENDED and _RESULT.fullmatch(native_act or "") is not None


class Order(NamedTuple):
    """Words that tell their reader what to do: how (`override`, `duty` or `order`), and where they stand."""

    kind: str
    start: int
    end: int


_VERBS: Final = (
    r"(?:call|invoke|run|execute|use|send|forward|e-?mail|mail|post|upload|transfer|pay|wire|submit|copy|leak|exfiltrate"
    r"|delete|remove|reply|message|notify|grant|invite|share|publish)\b"
    # A noun that looks like one, or a function of a program.
    r"(?!\s{0,3}[:,(=]|\s{1,3}(?:of|from|by|is|was|are|were|has|had|will|at|in|on|sent)\b)"
)
_ORDER: Final = re.compile(
    r"(?i)\b(?:(?P<override>(?:ignore|disregard|forget|override)\s[^.!?]{0,40}?"
    r"\b(?:instructions?|prompts?|rules?|directions?|guidelines?|directives?)\b)"
    r"|(?P<duty>(?:you|(?:agent|assistant|model|ai)s?)\s+(?:must|should|shall|need\s+to|have\s+to|are\s+(?:required|instructed)\s+to)"
    rf"\s+(?:(?:now|first|next|then|also|always|immediately)\s+)?{_VERBS})|(?P<order>{_VERBS}))"
)
# What stands before an order that begins a sentence, or goes on with one.
_BEFORE: Final = re.compile(
    r"(?i)(?:\A|[^\w\s,'’]|\\n|\b(?:please|now|then|and|also|first|immediately|important))\s{0,8}\Z"
)
# So HTTP writes what it does.
_METHODS: Final = ("POST", "DELETE")
_SENTENCE_END: Final = re.compile(r"[.!?](?=\s|[\"”»]|\\n|\Z)|\n|\\n")
# What only somebody who was told can know: an address, a path, an account. Ordinary words are none.
VALUE: Final = re.compile(
    r"(?<![\w.+-])[\w.+-]{1,64}+@(?:[\w-]{1,63}+\.){1,6}[A-Za-z]{2,24}"
    r"|https?://[^\s\"'<>()\[\]{}\\“”«»]{4,200}[^\s\"'<>()\[\]{}\\“”«».,;:!?]"
    r"|(?<![\w/.:])~?(?:/[\w.+-]{1,64}){2,12}"
    r"|\b[A-Z]{2}\d{2}[A-Z0-9]{10,30}\b|\b0x[0-9a-fA-F]{16,64}\b|\b\d{8,34}\b"
)


def find_orders(text: str) -> Iterator[Order]:
    """The orders in a text; of those that only begin with a verb, those that name an address, a path or an account."""
    looked_at, reached, count = text[:MAX_LOOKED_AT], 0, 0
    places: _Places | None = None
    for found in _ORDER.finditer(looked_at):
        start, kind = found.start(), str(found.lastgroup)
        if (
            start < reached
            or found[0] in _METHODS
            or (kind == "order" and not _BEFORE.search(looked_at, max(start - 20, 0), start))
        ):
            continue
        places = places or _find_places(looked_at)
        end = min(start + _MAX_ORDER, len(looked_at))
        if kind != "override":
            end = min(end, _find_next(places.ends, found.end(), end))
        if kind == "order" and _find_next(places.values, start, end) >= end:
            continue
        yield Order(kind, start, end)
        reached, count = end, count + 1
        if count == _MAX_ORDERS:
            return


class _Places(NamedTuple):
    """Where sentences end and values begin; found once, for an order may seem to begin at every verb."""

    ends: list[int]
    values: list[int]


def _find_places(text: str) -> _Places:
    return _Places(
        [*(each.start() for each in _SENTENCE_END.finditer(text))], [each.start() for each in VALUE.finditer(text)]
    )


def _find_next(places: list[int], start: int, otherwise: int) -> int:
    at = bisect_left(places, start)
    return places[at] if at < len(places) else otherwise


class Statement(NamedTuple):
    """A value that a result states of a key: `true`, `false`, a number, or a word for how something stands."""

    key: str
    value: str
    start: int
    end: int


# How something stands that is over or goes well, has failed, or is not over.
DONE_WORDS: Final = frozenset(
    {
        "ok",
        "success",
        "succeeded",
        "successful",
        "done",
        "complete",
        "completed",
        "finished",
        "paid",
        "approved",
        "delivered",
    }
)
FAILED_WORDS: Final = frozenset(
    {
        "error",
        "failed",
        "failure",
        "rejected",
        "declined",
        "denied",
        "refused",
        "cancelled",
        "canceled",
        "expired",
        "unpaid",
    }
)
OPEN_WORDS: Final = frozenset({"pending", "queued", "processing", "in_progress", "in progress", "scheduled", "waiting"})
STANDING_KEYS: Final = frozenset({"status", "state", "outcome"})
_STANDING: Final = "|".join(sorted(map(re.escape, DONE_WORDS | FAILED_WORDS | OPEN_WORDS), key=len, reverse=True))
_STATEMENT: Final = re.compile(
    r'"(?P<key>[A-Za-z][\w -]{0,47})"\s{0,8}:\s{0,8}'
    rf'(?P<value>true\b|false\b|-?\d{{1,18}}(?:\.\d{{1,12}})?(?![\w.])|"(?i:{_STANDING})")'
    r"|^[ \t]{0,8}(?P<name>[A-Za-z][\w -]{0,47}?)[ \t]{0,8}[:=][ \t]{0,8}"
    rf"(?P<said>true|false|-?\d{{1,18}}(?:\.\d{{1,12}})?|(?i:{_STANDING}))[ \t]{{0,8}}\r?$",
    re.MULTILINE,
)

_MAY_STATE: Final = re.compile(rf'[A-Za-z_"][ \t]{{0,8}}[:=][ \t]{{0,8}}(?:true|false|-?\d|"?(?i:{_STANDING}))')


def may_state(text: str) -> bool:
    """Whether a text may hold statements; where it says no, it holds none. Quick."""
    return _MAY_STATE.search(text, 0, 2 * MAX_LOOKED_AT) is not None


def find_statements(text: str) -> list[Statement]:
    """What a result states, as members of JSON or line by line; of a key that it states more than once, nothing."""
    found: dict[str, Statement | None] = {}
    for each in _STATEMENT.finditer(text[:MAX_LOOKED_AT]):
        key, value = each["key"] or each["name"], (each["value"] or each["said"]).strip('"').lower()
        if len(found) == _MAX_STATEMENTS and key not in found:
            break
        found[key] = None if key in found else Statement(key, value, *each.span())
    return [each for each in found.values() if each is not None]
