"""Rules over what agents make of what tools gave back: a failure passed over, an order followed, a
claim that contradicts it.

All are suspicions, over English alone: few false alarms count for more than many hits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from inspector.tokens import DONE_WORDS, FAILED_WORDS, OPEN_WORDS, STANDING_KEYS, Statement, find_statements

from ..findings.scene import AfterResult, Said, Scene, Span, list_named, narrow_span
from .rule import Hit, Rule
from .work import name_agent

# Who says one of these, in English, has not passed over a failure.
TROUBLE: Final = re.compile(
    r"(?i)n['’]t\b|\b(?:fail|error|unable|unavail|unfortun|problem|retr|alternat|differ|refus|reject|invalid|abort"
    r"|insuffic|unknown|forbid|expire)|\b(?:sorry|issues?|wrong|tr(?:y|ied|ies|ying)|again|instead|another|others?|however"
    r"|but|missing|denied|lacks?|time[ds]? ?out|stop(?:s|ped)?|cannot|no|not|none|never|without|yet"
    r"|too (?:low|high|long|large|big|small|short|many|few|much|late|early|old))\b"
)
# Nor who says what to do now, or asks for what is needed.
_GOES_ABOUT: Final = re.compile(
    r"(?i)\b(?:let me|let['’]s|i(?: will|['’]ll| need to| have to| must| should))\s(?:first\s|now\s|just\s)?"
    r"(?:check|look|install|find|see|investigate|inspect|search|read|fix|examine|verify|ask|run|use|create|add|correct)\b"
    r"|\b(?:which|what|who|where|could you|can you|d(?:o|id) you mean)\s[^.!?]{1,200}\?"
)
# Courtesies have such words and say nothing of a failure.
_COURTESY: Final = re.compile(
    r"(?i)\bno\s(?:problem|worries|issues?|errors?)\b|\b(?:do\snot|don['’]t)\s(?:hesitate|worry)\b"
    r"|\bwithout\s(?:a\shitch|any\s\w{1,20}|issues?|errors?|problems?)\b|\bwhat\selse\b[^.!?]{0,200}\?"
)
# Acts that go on without a word on what came before: a call made again, a refusal, an answer that is a failure itself.
GOES_ON: Final = frozenset({"inform", "done", "accept", "commit", "observe"})
_WORD: Final = re.compile(r"[^\W\d_]{4,40}")
# Of a word so many letters tell it from others: `permission` is `permitted`.
_STEM: Final = 5
# What carriers and errors say of themselves.
_OWN_WORDS: Final = frozenset(
    word[:_STEM]
    for word in (
        *("tool", "server", "answers", "says", "that", "failed", "what", "asked", "call", "request", "error"),
        "message",
        *("success", "false", "true", "null", "none", "this", "with", "your", "have", "been", "from", "code", "status"),
        *("passed", "complete"),
    )
)


def _find_ignored_errors(scene: Scene) -> Iterator[Hit]:
    """What a caller said after its tool failed, where no word of it is about that."""
    # Of a failure the span of its tool tells, and the next span of the model again.
    seen = set()
    for after in scene.after_results:
        said = after.next
        if not after.has_failed or said is None or said.is_call or said.message.performative not in GOES_ON:
            continue
        if said.message.id in seen or any(_reacts(text) for text, _ in said.texts) or _retells(after, said):
            continue
        seen.add(said.message.id)
        yield Hit(
            message=said.message.id,
            text=f"A tool reported an error to {name_agent(said.message.sender)}, and what it says next has no word of "
            "that.",
            span=max(said.texts, key=lambda piece: len(piece[0]), default=("", None))[1],
            related=(after.result.message.id,),
            related_spans={after.result.message.id: after.failure} if after.failure else {},
        )


def _reacts(text: str) -> bool:
    plain = _COURTESY.sub(" ", text)
    return TROUBLE.search(plain) is not None or _GOES_ABOUT.search(plain) is not None


def _retells(after: AfterResult, said: Said) -> bool:
    """Whether somebody tells a failure in its own words: one that is not in the call already is enough."""
    reason = _list_stems(after.result) - _list_stems(after.call) - _OWN_WORDS
    return not reason.isdisjoint(_list_stems(said))


def _list_stems(said: Said) -> set[str]:
    return {word[:_STEM].lower() for text, _ in said.texts for word in _WORD.findall(text)}


_SHOWN: Final = 80


def _find_followed_orders(scene: Scene) -> Iterator[Hit]:
    """A call that uses a tool, or has a value, that an order in a result names and nobody named before."""
    seen = set()
    for after in scene.after_results:
        call = after.next_call
        if call is None or call.message.id in seen:
            continue
        named = (
            each for each in list_named(after.result, call, has_failed=after.has_failed) if each.name not in after.known
        )
        for each in islice(named, 1):
            seen.add(call.message.id)
            who = name_agent(call.message.sender, "The agent")
            what = f"calls the tool {each.name!r}" if each.is_tool else f"makes a call with {each.name[:_SHOWN]!r}"
            yield Hit(
                message=call.message.id,
                text=f"{who} {what}, as words in what a tool gave back told it to. Nobody had named that before.",
                span=each.called_at,
                related=(after.result.message.id,),
                related_spans={after.result.message.id: each.ordered_at},
            )


def _find_contradictions(scene: Scene) -> Iterator[Hit]:
    """A claim right after a result that states the same key with another value."""
    stated: dict[str, set[str]] = {}
    seen, compared = set(), 0
    for after in scene.after_results:
        statements = [(each, text, span) for text, span in after.result.texts for each in find_statements(text)]
        for each, *_ in statements:
            stated.setdefault(_name_key(each.key), set()).add(each.value)
        said = after.next
        if (
            said is None
            or said.is_call
            or said.message.performative not in GOES_ON
            or after.has_failed
            or said.message.id in seen
        ):
            continue
        for each, text, span in statements[: max(_MAX_COMPARED - compared, 0)]:
            compared += 1
            claim = _find_claim(each, said)
            if claim is None or _is_stated(claim[0], each, stated):
                continue
            seen.add(said.message.id)
            key = _name_key(each.key)
            yield Hit(
                message=said.message.id,
                text=f"It says {claim[0][:_SHOWN]!r}, where the tool's result right before states "
                f"{each.value!r} for {key!r}.",
                span=claim[1],
                related=(after.result.message.id,),
                related_spans={after.result.message.id: narrow_span(text, span, each.start, each.end)},
            )
            break


# Claims are short; of a long one the beginning is compared.
_MAX_CLAIM: Final = 2000
# So many values that results state are compared with claims in one conversation, the first ones.
_MAX_COMPARED: Final = 2000
# A number that is told in pieces, as in `1 299` or `1 hour and 30 minutes`, is none; what counts it is told with it.
_NUMBER: Final = (
    r"(?:[$€£]\s?)?(?P<number>-?\d{1,15}(?:,\d{3}){0,4}(?:\.\d{1,12})?)(?![\w%]|\s?°|[.,:/-]\d|\s\d"
    r"|\s(?:day|hour|minute)s?\b[^.]{0,6}\d)(?:\s(?:thousand|million|billion)\b)?"
)
_IS: Final = (
    r"(?:\s{0,3}(?:[:=]|\bis\b|\bwas\b|\bare\b|\bwere\b|\bequals\b|\bstands\s+at\b|\bcomes\s+to\b)){1,2}\s{0,3}"
)
_MARKS: Final = r"[*_`\"'“”]{0,3}"
# Keys that identify, date or page, and do not say how much there is of something.
_NOT_COUNTED: Final = frozenset(
    (
        *("id", "ids", "uuid", "key", "time", "timestamp", "date", "year", "month", "day", "days", "hour", "hours"),
        *("minute", "minutes", "second", "seconds", "ms", "version", "page", "limit", "offset", "index", "line"),
        "port",
        *("code", "lat", "lon", "latitude", "longitude", "zip", "phone", "number", "at", "ts", "seed", "ttl", "level"),
    )
)
# What makes a number of another one: rounding, another unit, a share, a part.
_UNITS: Final = (
    *(60, 100, 1000, 1024, 3600, 86_400, 1_000_000, 1_048_576, 1_000_000_000, 12, 7, 24, 30, 365),
    # Miles, pounds, feet.
    *(1.609, 2.205, 3.281),
)
_TOLERANCE: Final = 0.05
# Where a sentence has one of these, it does not simply state how things stand.
_HEDGES: Final = re.compile(
    r"(?i)\b(?:if|when|whether|unless|until|once|would|could|should|can|may|might|will|shall|expect\w*|before|previous\w*"
    r"|earlier|former\w*|old|from|instead|than|between|about|around|approx\w*|nearly|almost|roughly|over|under|least|most"
    r"|more|less|first|last|next|top|only|other|remaining|additional|another|each|per|every|target|goal|please|try|soon"
    r"|shortly|now\s+set|change[ds]?|updat\w*|but|while|whereas|however|although|though|convert\w*|rais\w*|reduc\w*|increas\w*|decreas\w*|total\s+of)\b|\?|~|≈"
)
_NEGATION: Final = re.compile(r"(?i)n['’]t\b|\b(?:not|no|never|none|nor|neither|without|fail\w*|unable|cannot)\b")
_SENTENCE: Final = re.compile(r"(?:[^.!?\n]|[.!?](?=\S)){1,600}[.!?]?")


def _name_key(key: str) -> str:
    """A key as words: `totalPrice`, `total_price` and `total-price` are one."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|[_\-\s]+", " ", key).strip().lower()
    return words.removeprefix("is ").removeprefix("has been ").removeprefix("was ")


def _find_claim(statement: Statement, said: Said) -> tuple[str, Span] | None:
    """What a message says of a key that cannot be so if the statement holds, and where; None for no such thing."""
    key = _name_key(statement.key)
    for text, span in said.texts:
        looked_at = text[:_MAX_CLAIM]
        # Sentences are looked at only where one of them names the key, or says how something stands.
        if key.split(" ")[-1].rstrip("s") not in looked_at.lower() and statement.value not in _STANDINGS:
            continue
        found = _look_for(statement, key, looked_at)
        if found is not None:
            return looked_at[found[0] : found[1]], narrow_span(text, span, *found)
    return None


def _look_for(statement: Statement, key: str, text: str) -> tuple[int, int] | None:
    if statement.value in ("true", "false"):
        return _look_for_opposite(key, text, is_so=statement.value == "true")
    if statement.value in _STANDINGS:
        return _look_for_end(statement, key, text) if key in STANDING_KEYS else None
    return _look_for_number(float(statement.value), key, text)


def _look_for_number(stated: float, key: str, text: str) -> tuple[int, int] | None:
    words = key.split(" ")
    if words[-1] in _NOT_COUNTED or words[0] in _NOT_COUNTED or len(key) < 4:
        return None
    if any(_agree(stated, _read_number(each[0])) for each in re.finditer(r"\d[\d,]{0,18}(?:\.\d{1,12})?", text)):
        return None
    named = r"[\s_-]{1,3}".join(map(re.escape, words))
    pattern = (
        rf"(?i)(?:\A|[.!?:;,(*\n“\"]\s{{0,3}}|\b(?:the|its|your|a|and)\s(?:current\s)?)"
        rf"{_MARKS}{named}{_MARKS}{_IS}{_MARKS}{_NUMBER}"
    )
    counted = words[:-1] if words[-1] in ("count", "total") else words
    if counted and counted[-1].endswith("s") and len(" ".join(counted)) >= 4:
        noun = r"\s".join(map(re.escape, counted))
        number = _NUMBER.replace("number", "count")
        pattern += rf"|(?i:\b(?:are|is|found|have|has|returned)\s){_MARKS}{number}{_MARKS}\s{noun}\b"
    return _search_plainly(pattern, text)


def _read_number(written: str) -> float:
    return float(written.replace(",", "") or "0")


def _agree(stated: float, claimed: float) -> bool:
    """Whether two numbers may be the same: rounded, as a share, in another unit, or for several of a thing."""
    first, second = sorted((abs(stated), abs(claimed)))
    if first == 0:
        return second < 1 - _TOLERANCE
    ratio = second / first
    is_multiple = 2 <= round(ratio) < 10 and abs(ratio / round(ratio) - 1) <= _TOLERANCE / 50
    is_in_units = any(abs(ratio / unit - 1) <= _TOLERANCE for unit in _UNITS)
    is_degrees = any(abs(one * 1.8 + 32 - other) <= 1 for one, other in ((stated, claimed), (claimed, stated)))
    return ratio <= 1 + _TOLERANCE or is_multiple or is_in_units or is_degrees


def _look_for_opposite(key: str, text: str, *, is_so: bool) -> tuple[int, int] | None:
    """A quality that a result has and a claim denies, or the other way round: `available`, `booked`."""
    if not re.fullmatch(r"(?=.{5,24}\Z)[a-z]*(?:ed|able|ible|ful|active|valid)|in [a-z]{3,12}", key):
        return None
    if is_so:
        pattern = rf"(?i)\b(?:is|are|was|were)(?:n['’]t|\s(?:not|no\s+longer))\s(?:been\s)?{key}\b"
        return _search_plainly(pattern, text, may_be_negative=True)
    pattern = rf"(?i)\b(?:is|are|was|were|been)\s(?:now\s|already\s|successfully\s)?{key}\b"
    return _search_plainly(pattern, text)


_STANDINGS: Final = DONE_WORDS | FAILED_WORDS | OPEN_WORDS
_SAYS_DONE: Final = (
    r"(?i)\b(?:successfully\s\w{2,24}ed|\w{2,24}ed\ssuccessfully|(?:was|were|is|are|has\sbeen|have\sbeen)\s(?:successfully\s\w{2,24}|successful"
    r"|completed?|finished|delivered|paid|approved)|succeeded)\b"
)


def _look_for_end(statement: Statement, key: str, text: str) -> tuple[int, int] | None:
    """That something is done, where the result says that it has failed or goes on; or another word for its status."""
    kinds = (DONE_WORDS, FAILED_WORDS, OPEN_WORDS)
    own = next(kind for kind in kinds if statement.value in kind)
    others = "|".join(
        sorted((re.escape(word) for kind in kinds if kind is not own for word in kind), key=len, reverse=True)
    )
    found = _search_plainly(rf"(?i)\b{key}{_MARKS}{_IS}{_MARKS}(?:{others})\b", text)
    # Who says how it stands, in either spelling of "cancelled", has said so.
    is_said = own is DONE_WORDS or statement.value[:5] in text.lower()
    if found is None and not is_said and not re.search(_ANY_STANDING[own is OPEN_WORDS], text):
        found = _search_plainly(_SAYS_DONE, text)
    return found


# Who says one of these of what failed, or goes on, has said so.
_ANY_STANDING: Final = {
    False: TROUBLE,
    True: re.compile(
        r"(?i)\b(?:pending|queue\w*|process\w*|progress|schedul\w*|wait\w*|submit\w*|initiat\w*|start\w*|creat\w*|running"
        r"|still|not|yet)\b"
    ),
}


def _search_plainly(pattern: str, text: str, *, may_be_negative: bool = False) -> tuple[int, int] | None:
    """The first match in a sentence that states how things stand, without conditions, comparisons or negations."""
    for sentence in _SENTENCE.finditer(text):
        words = sentence[0]
        found = re.search(pattern, words)
        if found is None or _HEDGES.search(words) or (not may_be_negative and _NEGATION.search(words)):
            continue
        start, end = found.span()
        start += len(words[start:end]) - len(words[start:end].lstrip(' .!?:;,(*\n“"'))
        return sentence.start() + start, sentence.start() + end
    return None


def _is_stated(words: str, statement: Statement, stated: dict[str, set[str]]) -> bool:
    """Whether another result before the claim states what it says."""
    key = _name_key(statement.key)
    if statement.value in _STANDINGS or statement.value in ("true", "false"):
        return len(stated[key]) > 1
    numbers = [_read_number(each) for each in re.findall(r"\d[\d,]{0,18}(?:\.\d{1,12})?", words)]
    others = (value for values in stated.values() for value in values if value[-1:].isdigit())
    return any(_agree(float(other), number) for other in others for number in numbers)


RULES: Final = (
    Rule(
        code="tool-order-followed",
        title="Agent followed an order in a tool result",
        why="The author of what the tool read may have steered the agent. That is for you to judge: an address, path, "
        "account or tool stands in an order there, and nobody else had named it before the call.",
        severity="warning",
        group="security",
        cites="OWASP Top 10 for LLM applications 2025, LLM01, indirect prompt injection; no protocol forbids it",
        look=_find_followed_orders,
    ),
    Rule(
        code="tool-error-ignored",
        title="Tool error passed over",
        why="It may have gone on as if the call had succeeded. That is for you to judge: only its next message is "
        "looked at, for words in English.",
        severity="notice",
        group="sequence",
        cites="no specification: what a caller makes of an error is its own",
        look=_find_ignored_errors,
    ),
    Rule(
        code="tool-result-contradicted",
        title="Claim contradicts the tool result",
        why="The reader of the claim was told something else than the agent was. That is for you to judge: only its "
        "next message is compared, for plain sentences in English about a key that the result states once.",
        severity="notice",
        group="sequence",
        cites="no specification: a transcript does not say what a claim rests on",
        look=_find_contradictions,
    ),
)
