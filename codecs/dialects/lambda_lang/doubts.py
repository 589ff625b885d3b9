"""Notes on what a statement leaves open: whether it is Λ Lambda at all, errors without a form, keys, empty values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .._record import Note, NoteKind
from .nodes import Node, find_before
from .statements import Part
from .wording import is_compared, is_literal_key, is_number_beside, say_marked, say_word

POSSIBLE = NoteKind(
    code="lambda_lang.possible-only",
    severity="notice",
    group="assumption",
    about="Too few words of the vocabulary, or no type: by itself the text is only possibly Λ Lambda.",
    cites="v0.6 §1.1",
)
ERROR_WORD = NoteKind(
    code="lambda_lang.error-word",
    severity="notice",
    group="protocol",
    about="An error is stated by the word alone, not in the protocol's form, so it carries no code.",
    cites="v0.6 §3.1",
)
EMPTY_VALUE = NoteKind(
    code="lambda_lang.empty-value",
    severity="warning",
    group="protocol",
    about="A key has an equals sign and nothing after it.",
    cites="v0.6 §5.1",
)
LITERAL_KEY = NoteKind(
    code="lambda_lang.literal-key",
    severity="info",
    group="assumption",
    about="A key whose atom names no thing, or is one letter: it is shown as it is written.",
    cites="v0.6 §5.1",
)
NOT_DEFINING = NoteKind(
    code="lambda_lang.not-defining",
    severity="notice",
    group="assumption",
    about="A definition outside the form {def:…}: it is told as a statement and changes no meaning.",
    cites="v0.4",
)
SUPPLIED_VERB = NoteKind(
    code="lambda_lang.supplied-verb",
    severity="notice",
    group="assumption",
    about="No verb stands after “can”; “(use)” is supplied, as the specification's own translation does.",
    cites="v0.6 §2.1",
)
CLOSING_MARK = NoteKind(
    code="lambda_lang.closing-mark",
    severity="info",
    group="protocol",
    about="A question mark closes a statement that is a question already.",
    cites="v0.6 §1.1",
)
SLASHED_NUMBER = NoteKind(
    code="lambda_lang.slashed-number",
    severity="info",
    group="assumption",
    about="Two numbers with a slash between them are read as so many of so many.",
    cites="v0.3",
)
NUMBER_BESIDE = NoteKind(
    code="lambda_lang.number-beside",
    severity="info",
    group="assumption",
    about="A number stands between two words: it is told with the word after it, and could belong to the one before.",
    cites="v0.5 §3",
)
DOUBT_NOTES = (
    POSSIBLE,
    ERROR_WORD,
    EMPTY_VALUE,
    LITERAL_KEY,
    NOT_DEFINING,
    SUPPLIED_VERB,
    CLOSING_MARK,
    SLASHED_NUMBER,
    NUMBER_BESIDE,
)

_STATES = ("!", "~", "")
_MAX_PAIRS = 4
_OUTCOMES = frozenset({("success",), ("complete",)})
_NAMED = frozenset({"word", "mixed", "name", "term"})
_SOMEBODY = frozenset({"entity", "term"})
# Before an error that is stated stands nothing, or what is in error: no verb, nobody, and no arrow.
_NO_SUBJECT = frozenset({"entity", "number", "quantity", "star", "open"})


def find_weakness(part: Part, nodes: Sequence[Node]) -> Note | None:
    """That a typed statement has too few known words to be more than possibly of this dialect.

    An untyped one has a note of its own, and what has a protocol form is of the dialect by that.
    """
    if part.form not in ("statement", "offer") or not nodes:
        return None
    words = known = 0
    has_quote = has_somebody = False
    for node in nodes:
        kind = node.kind
        if kind == "word" or kind == "mixed":
            words += 1
            known += kind == "word" and node.basis == "exact"
        elif kind == "quote":
            has_quote = True
        has_somebody = has_somebody or kind in _SOMEBODY
    span = (0, part.symbol_at[0], part.body[1])
    if not words and has_somebody:
        return None
    if not words:
        why = "a quoted text and no word of the vocabulary" if has_quote else "no word of the vocabulary"
    elif known < 0.6 * words:
        are = "is" if known == 1 else "are"
        why = f"{known} of its {words} words {are} in the vocabulary" if known else "no word is in the vocabulary"
    else:
        return None
    return POSSIBLE.note(f"possible Lambda only (low): {why}", span)


def say_apart(nodes: Sequence[Node], mood: str) -> str:
    """What is not written where words stand side by side: a verb to order or to ask with, or what joins them."""
    what = {"request": "order", "query": "question"}.get(mood)
    words = [node for node in nodes if node.kind in ("word", "mixed")]
    if what is None or any("v" in node.uses or "m" in node.uses for node in words) or _has_marked_verb(nodes):
        return f"the words stand side by side without a link{_say_outcome(nodes)}"
    is_known = all(node.basis != "unknown" and node.kind == "word" for node in words)
    return f"no {'' if is_known else 'known '}verb is written: the {what} is not named"


def _has_marked_verb(nodes: Sequence[Node]) -> bool:
    """Whether a marker makes a verb of a word: `se'V`."""
    return any(
        node.text == "'V" and node.kind == "marker" and place > 0 and bool(say_marked(nodes[place - 1], node.text))
        for place, node in enumerate(nodes)
    )


def _say_outcome(nodes: Sequence[Node]) -> str:
    """Of what the last word of an outcome is said: likely of a thing right before it, else open; empty without one."""
    place = next((at for at in range(len(nodes) - 1, -1, -1) if _is_outcome(nodes[at])), None)
    if place is None:
        return ""
    before = find_before(nodes, place, "space", "domain")
    if before is not None and before.kind in ("number", "quantity"):
        return ""
    said = say_word(nodes[place])
    if before is not None and before.kind == "word" and before.basis == "exact" and before.uses[:1] == "n":
        return f"; that “{said}” is said of “{say_word(before)}” is likely"
    return f"; what “{said}” is said of is open"


def _is_outcome(node: Node) -> bool:
    return node.kind == "word" and node.meaning is not None and node.meaning.senses in _OUTCOMES


def note_number(nodes: Sequence[Node]) -> Note | None:
    """That a number between two words may belong to the one before it, where words stand side by side."""
    found = [
        (nodes[place - 2], nodes[place])
        for place in range(2, len(nodes))
        if is_number_beside(nodes, place) and nodes[place - 1].kind == "space" and nodes[place - 2].kind in _NAMED
    ]
    if not found:
        return None
    said = " or ".join(f"“{number.text}” belongs to “{word.text}”" for word, number in found[:_MAX_PAIRS])
    text = f"a number is told with the word after it; that {said} is possible too"
    return NUMBER_BESIDE.note(text, (0, found[0][0].span[1], found[-1][1].span[2]))


def note_block(part: Part, *, is_data: bool) -> Note:
    """That a block alone may be anything."""
    span = (0, part.items[0].start, part.items[-1].end)
    why = "a block of data alone" if is_data else "{} alone, which may also be an empty JSON object"
    return POSSIBLE.note(f"possible Lambda only (low): {why}", span)


def note_doubts(part: Part, nodes: Sequence[Node]) -> Iterator[Note]:
    """What a statement leaves open, in the order of its words; what returns is noted once."""
    seen: set[str] = set()
    may_state = part.form in ("statement", "untyped") and part.symbol[:1] in _STATES
    last: Node | None = None
    for place, node in enumerate(nodes):
        if node.kind == "space":
            continue
        if may_state and node.text == "er" and (last is None or _is_apart(nodes, place)):
            yield from _note_error(node)
        last = node
        may_state = may_state and node.kind not in _NO_SUBJECT and node.text not in (">", "<", "er")
        if node.kind in _NAMED and node.text not in seen and (found := list(_note_key(nodes, place))):
            seen.add(node.text)
            yield from found
        if node.kind == "number" and place + 2 < len(nodes) and nodes[place + 2].kind == "number":
            second = nodes[place + 2]
            if nodes[place + 1].text == "/":
                text = f"“{node.text}/{second.text}” is read as “{node.says} of {second.says}”"
                yield SLASHED_NUMBER.note(text, (0, node.span[1], second.span[2]))
    if part.symbol[:1] == "?" and last is not None and last.kind == "joiner" and last.text[0] == "?":
        yield CLOSING_MARK.note("the “?” at the end adds nothing: the one in front asks already", last.span)


def _is_apart(nodes: Sequence[Node], place: int) -> bool:
    """Whether a space and something that is no verb stand before."""
    before = nodes[place - 2] if place > 1 and nodes[place - 1].kind == "space" else None
    return before is not None and (before.kind.startswith("value-") or before.uses[:1] == "n")


def _note_error(node: Node) -> Iterator[Note]:
    if node.meaning is not None and "error" in node.meaning.senses:
        text = "an error is stated, but not in the protocol's form !er:…, so no error code is given"
        yield ERROR_WORD.note(text, node.span)


def _note_key(nodes: Sequence[Node], place: int) -> Iterator[Note]:
    node = nodes[place]
    if is_compared(nodes, place):
        yield _note_literal(node)
        return
    equals = place + 1
    if equals < len(nodes) and nodes[equals].text == "-":
        equals += 1
    if equals >= len(nodes) or nodes[equals].kind != "joiner" or nodes[equals].text != "=":
        return
    if node.kind == "term":
        text = "this stands not in the form {def:…}: nothing is defined for the conversation by it"
        yield NOT_DEFINING.note(text, node.span)
    value = nodes[equals + 1] if equals + 1 < len(nodes) else None
    has_value = value is not None and (value.kind.startswith("value-") or value.kind in ("open", "block"))
    if not has_value:
        yield EMPTY_VALUE.note(f"nothing stands after “{node.text}=”", nodes[equals].span)
    if is_literal_key(node) and (node.text != "id" or not has_value):
        yield _note_literal(node)


def _note_literal(node: Node) -> Note:
    word = f"as a word it is “{say_word(node)}”"
    return LITERAL_KEY.note(f"“{node.text}” stands as a key; {word}; what it measures is not written", node.span)
