"""What stands in the words that a tool gave back: orders to whoever reads them, and values that a claim can contradict.

Both are looked for in English alone, in the beginning of a text, and with patterns whose repetitions are bounded.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, NamedTuple

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
