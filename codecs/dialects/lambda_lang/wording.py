"""The words for one token of the wire, and what is doubtful about it, in words of its own.

Nothing here joins words: that is done by `sentences`, where the wire joins them, and by `wordlists`, where it does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from .._english import join_words
from .lexicon import find_word
from .nodes import Node
from .protocol import CONTEXT_KEYS, MARKERS, TASK_KEYS
from .vocabulary import list_meanings

_FITS = {"'E": "n", "'V": "v", "'S": "a", "'M": "a"}
_PLACES = {"'2": 1, "'3": 2}
_DEGREES = {
    "^": ("high or important", "very high or important"),
    "_": ("low or trivial", "very low or trivial"),
    "+": ("more or positive", "much more or positive"),
    "-": ("less or negative", "much less or negative"),
}
PERSONS = {"I": "I", "U": "you", "X": "X", "0": "nothing"}


def say_word(node: Node) -> str:
    """A word by itself: all of its meanings, and "perhaps" where it was divided."""
    meaning = node.meaning
    if node.kind == "mixed":
        return f'unknown "{node.text}"'
    if meaning is not None and meaning.basis == "unknown":
        return f"{node.says} (perhaps {say_elsewhere(meaning.elsewhere)})" if meaning.elsewhere else node.says
    if meaning is None or meaning.entry is not None:
        return node.says
    if not meaning.senses:
        return {"past": "in the past", "future": "in the future"}.get(meaning.tense or "", "now")
    said = " or ".join(meaning.senses)
    if meaning.basis == "exact":
        return said
    divided = ", ".join(word for word in (said, meaning.tense, meaning.aspect) if word)
    others = f", or {say_elsewhere(meaning.elsewhere)}" if meaning.elsewhere else ""
    return f'"{node.text}" (perhaps {divided}{others})'


def say_elsewhere(elsewhere: Sequence[tuple[str, str]]) -> str:
    """What a word is elsewhere, with where: `"test" in code or "trust" in social`."""
    return join_words([f'"{said}" {where}' for said, where in elsewhere], last="or")


def say_others(node: Node, letter: str) -> str:
    """The meanings of a word beside the one that a sentence uses as `letter` says: `(or communicate)`."""
    meaning = node.meaning
    if meaning is None or len(meaning.senses) < 2:
        return ""
    # "exist" and "be" are one verb here: what follows it decides.
    used = next((sense for sense in meaning.senses if letter in find_word(sense).order), meaning.senses[0])
    others = [sense for sense in meaning.senses if sense != used and {sense, used} != {"exist", "be"}]
    return f" (or {' or '.join(others)})" if others else ""


def say_plural(node: Node) -> str:
    """A word that is counted: `tasks`; one of several meanings or none is said as it is."""
    noun = node.noun() if node.meaning is not None and len(node.meaning.senses) == 1 else None
    return (noun.many if noun.is_counted else noun.one) if noun else say_word(node)


def say_person(letter: str, *, is_all: bool) -> str:
    """One of the letters that stand for somebody: `you`, `all of you`, `an agent`."""
    if is_all:
        return {"I": "we", "U": "all of you", "X": "all X"}.get(letter, f"all {_KINDS.get(letter, letter)}s")
    return PERSONS.get(letter) or f"{'a' if letter == 'H' else 'an'} {_KINDS[letter]}"


# What stands in brackets after other words.
ASIDES: dict[str, Callable[[Node], str]] = {
    "emotion": lambda node: f" ({node.says})",
    "reference": lambda node: (
        f" (in answer to message {node.text[4:]})" if node.text.startswith("#id:") else f" (part {node.text[1:]})"
    ),
}
_KINDS = {"H": "human", "A": "agent"}
# arrow: what it stands for and may stand for else, between clauses, before a number, and between anything else.
ARROWS = {
    ">": (("therefore", "to, into, greater than"), ("greater than", "to, therefore"), ("to", "into, therefore")),
    "<": (("because", "from, of, on, less than"), ("less than", "from, because"), ("from", "of, on, because")),
}
# Signs that end what an arrow joins.
_ENDS = frozenset({">", "<", "=>", "<>", "..", ">>", "<<", ";", ",", "."})
# Tense, "can" and "not" stand before what somebody does.
_FRONTS = ("t", "m", "x")


def say_degree(text: str) -> str:
    """`^` is "high or important"; twice or thrice is "very"."""
    plain, strong = _DEGREES[text[0]]
    return strong if len(text) > 1 else plain


def say_text(value: object) -> str:
    """What a sender gave as a meaning, in quotes that it cannot end."""
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# One word, which can end no sentence, or a text in straight marks of its own.
_DELIMITED = re.compile(r'(?:[\w$%^*+~#&@=/:.-]*[\w$%^*+~#&@=/:-]|"(?:[^"\\]|\\.)*")\Z', re.DOTALL)


def delimit(written: str) -> str:
    """What is written, as it stands where it is one word or a quotation; else in marks that it cannot end."""
    return written if _DELIMITED.match(written) else say_text(written)


def say_amount(text: str) -> str:
    """`5+` is "5 (more or positive)": a modifier leaves the number whole."""
    if text[-1:] in ("+", "-"):
        return f"{text[:-1]} ({say_degree(text[-1])})"
    return text


def say_value(node: Node) -> str:
    """A value: an exact atom by all its meanings, anything else as it is written."""
    return " or ".join(node.meaning.senses) if node.kind == "value-word" and node.meaning is not None else node.says


def say_id(value: Node) -> str:
    """The value of `id=`; one that could be taken for a word of the sentence, as `be`, stands in quotes."""
    text = value.text
    return f'"{text}"' if len(text) <= _MAX_LIKE_A_WORD_LENGTH and text.isalpha() and text.islower() else text


_MAX_LIKE_A_WORD_LENGTH = 3


def say_key(node: Node) -> str:
    """The key of `key=…`. It is never divided: what has a tense is no name of a value."""
    if is_literal_key(node):
        return say_literal_key(node)
    if node.basis == "inferred":
        return f'unknown "{node.text}"'
    said, named = say_word(node), TASK_KEYS.get(node.text, "")
    # The forms of v0.6 use some atoms as keys with a name of their own.
    return said if node.entry or node.basis != "exact" or named.startswith(said) or not named else f"{said} or {named}"


def is_if(node: Node) -> bool:
    """Whether a word opens a condition."""
    return node.kind == "word" and node.meaning is not None and node.meaning.senses == ("if",)


def may_bear_id(node: Node) -> bool:
    """Whether an id behind a word is taken for the word's own: an error has none, it is that of what is in error."""
    return node.uses[:1] == "n" and not (node.meaning is not None and "error" in node.meaning.senses)


def is_percentage(node: Node | None) -> bool:
    """Whether a slash before the node joins it, as in `ta/50%`: "task, 50%"."""
    return node is not None and node.kind == "number" and node.text.rstrip("+-").endswith("%")


def say_literal_key(node: Node) -> str:
    """A key as it is written, with what the protocol's own blocks mean by it, if they do: `t` is a time."""
    named = CONTEXT_KEYS.get(node.text) if len(node.text) == 1 else None
    return f'"{node.text}" (perhaps "{named}")' if named else f'"{node.text}"'


def is_literal_key(node: Node) -> bool:
    """Whether a key is shown as it is written: a letter, `id`, or a word that names no thing."""
    if node.kind != "word" or node.entry is not None or node.basis != "exact":
        return False
    return len(node.text) == 1 or node.text == "id" or "n" not in node.uses


def is_compared(nodes: Sequence[Node], place: int) -> bool:
    """Whether a letter is compared with a number, as in `t>$7` and `t-$40`: it is a key then and no word."""
    node = nodes[place]
    if len(node.text) != 1 or place + 2 >= len(nodes) or not is_literal_key(node):
        return False
    sign = nodes[place + 1].text
    return (sign == "-" or sign in ARROWS) and nodes[place + 2].kind == "number"


def is_number_beside(nodes: Sequence[Node], place: int) -> bool:
    """Whether the node at `place` is a number that only a space parts from a word: the two are told together."""
    if place < 0 or nodes[place].kind not in ("number", "quantity"):
        return False
    after = [node for node in nodes[place + 1 : place + 5] if node.kind != "domain"]
    if len(after) < 2 or after[0].kind != "space" or after[1].kind != "word" or after[1].uses in _FRONTS:
        return False
    return len(after) < 3 or after[2].kind != "joiner" or after[2].text not in ("=", "-")


def read_arrow(nodes: Sequence[Node], place: int) -> tuple[str, str, bool]:
    """(what an arrow stands for, what else it may, whether it joins clauses that each have a verb)."""
    sign = nodes[place]
    after = [node for node in nodes[place + 1 : place + 7] if node.kind not in ("space", "domain")][:3]
    if after and after[0].kind == "joiner" and after[0].text in (".", "!"):
        return ARROWS[sign.text][0][0], "", True
    if _has_verb(nodes, place, -1) and _has_verb(nodes, place, 1):
        said, others = ARROWS[sign.text][0]
        does = [node for node in after if node.uses not in _FRONTS and node.text not in ("-", "!")]
        is_clear = len(does) > 1 and does[0].kind == "entity" and does[1].kind not in ("joiner", "close", "open")
        return said, "" if is_clear else others, True
    return *ARROWS[sign.text][1 if after and after[0].kind == "number" else 2], False


def _has_verb(nodes: Sequence[Node], place: int, step: int) -> bool:
    """Whether a word of the clause before or behind a place, as far as the next sign of its kind, is a verb."""
    while 0 <= (place := place + step) < len(nodes):
        node = nodes[place]
        if node.kind == "joiner" and node.text in _ENDS:
            return False
        if node.kind == "word" and (node.is_action or (node.entry is None and node.uses[:1] in ("v", "m"))):
            return True
    return False


def say_arrow(nodes: Sequence[Node], place: int) -> str:
    """An arrow and what else it may stand for: `to (or: into, therefore)`."""
    said, others, _ = read_arrow(nodes, place)
    return f"{said} (or: {others})" if others else said


def say_marker(node: Node, marker: str) -> str:
    """What a marker after a word says: `(as an entity)`, and which meaning it may want where none in force fits."""
    wanted = () if fits_marker(node, marker) else find_marked(node, marker)
    perhaps = f""", so perhaps "{'" or "'.join(wanted)}\"""" if wanted else ""
    return f" (marker {marker}: {MARKERS[marker[1]]}{perhaps})"


def say_marked(node: Node, marker: str) -> str:
    """A word whose marker asks for a meaning that only other releases have, first; empty where none of them has."""
    wanted = find_marked(node, marker)
    if fits_marker(node, marker) or not wanted:
        return ""
    asked = '" or "'.join(wanted)
    how = f'"{node.text}" marked {marker}, {MARKERS[marker[1]]}'
    return f'"{asked}" ({how}; without the marker "{say_word(node)}")'


def fits_marker(node: Node, marker: str) -> bool:
    """Whether a meaning in force is what the marker asks for."""
    meaning = node.meaning
    if meaning is None or not meaning.senses:
        return False
    if (place := _PLACES.get(marker)) is not None:
        return any(
            senses[place : place + 1] == meaning.senses for senses in list_meanings(node.text, meaning.domain or "")
        )
    wanted = _FITS.get(marker)
    return wanted is None or any(wanted in find_word(sense).order for sense in meaning.senses)


def find_marked(node: Node, marker: str) -> tuple[str, ...]:
    """The meanings of other releases that a marker may want."""
    domain = node.meaning.domain if node.meaning is not None else None
    listed: Sequence[tuple[str, ...]] = list_meanings(node.text, domain or "")
    if (place := _PLACES.get(marker)) is not None:
        return tuple(dict.fromkeys(senses[place] for senses in listed if len(senses) > place))
    wanted = _FITS.get(marker, "?")
    return tuple(dict.fromkeys(sense for senses in listed for sense in senses if wanted in find_word(sense).order))
