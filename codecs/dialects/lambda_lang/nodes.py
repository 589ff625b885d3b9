"""The tokens of a body as nodes: each with its meaning, its English uses, and where it stands; and pieces, words with
the places on the wire that justify them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from .._english import quote
from .._record import Basis, Entry, Span
from .lexicon import Noun, Verb, Word, find_word
from .protocol import DEMONSTRATIVES, EMOTIONS, ENTITIES, ERRORS, JOINERS, MARKERS, QUANTIFIERS
from .statements import Token, scan_body
from .words import Meaning, Scope

_MARKED = {"'E": "n", "'V": "v", "'S": "a", "'M": "a"}
_SECOND = {"'2": 1, "'3": 2}
# Marks that are read by a rule, and could be something else.
_INFERRED = frozenset({"modal", "demonstrative"})


class Node(NamedTuple):
    """A token with what it stands for.

    Attributes:
        kind: the token's kind; `word` covers the words of the vocabulary.
        text: its characters.
        span: its place.
        says: what it stands for, literally; the gloss.
        uses: the letters of its parts of speech, the usual one first; `o` for what only joins.
        meaning: how a word was understood.
        mark: which mark of a single release was read here, if one was; `other` is what it would be else.
    """

    kind: str
    text: str
    span: Span
    says: str
    uses: str = ""
    meaning: Meaning | None = None
    mark: str = ""
    other: str = ""

    @property
    def basis(self) -> Basis:
        """How sure the meaning is."""
        if self.mark in _INFERRED:
            return "inferred"
        return self.meaning.basis if self.meaning else "exact"

    @property
    def entry(self) -> Entry | None:
        """The sender's definition, if one holds."""
        return self.meaning.entry if self.meaning else None

    @property
    def is_action(self) -> bool:
        """Whether it is a defined word that the vocabulary has as a verb."""
        return self.meaning is not None and self.meaning.is_action

    def verb(self) -> Verb | None:
        """The verb among its meanings."""
        return next((word.verb for word in self._words() if word.verb), None)

    def noun(self) -> Noun | None:
        """The noun among its meanings."""
        return next((word.noun for word in self._words() if word.noun), None)

    def adjective(self) -> str | None:
        """The adjective among its meanings."""
        return next((word.adjective for word in self._words() if word.adjective), None)

    def adverb(self) -> str | None:
        """The adverb among its meanings."""
        return next((word.adverb for word in self._words() if word.adverb), None)

    def joins(self) -> str | None:
        """The joining word among its meanings."""
        return next((word.joins for word in self._words() if word.joins), None)

    def _words(self) -> Iterator[Word]:
        return (find_word(sense) for sense in (self.meaning.senses if self.meaning else ()))


def list_nodes(text: str, start: int, end: int, scope: Scope) -> list[Node]:
    """The nodes of a body, spaces included; `marks.read_nodes` reads the marks among them."""
    nodes: list[Node] = []
    domain: str | None = None
    group: list[str | None] = []
    key = ""
    for token in scan_body(text, start, end):
        if token.kind == "domain":
            domain = scope.vocabulary.names.get(token.text[:-1], token.text[:-1])
            nodes.append(Node("domain", token.text, _span(token), ""))
            continue
        if token.kind == "open":
            group.append(domain if domain else (group[-1] if group else None))
        elif token.kind == "close" and group:
            group.pop()
        named = domain or (group[-1] if group else None)
        node = _read_node(token, scope, named, key, nodes)
        if token.kind == "marker" and nodes and nodes[-1].kind == "word":
            nodes[-1] = _mark(nodes[-1], token.text)
        nodes.append(node)
        if token.kind in ("word", "mixed"):
            key = token.text
        domain = None
    return nodes


def read_lose(nodes: Sequence[Node]) -> tuple[list[Node], Node] | None:
    """The nodes with `lo-` read as the one mark that v0.8 has for "lose", and the minus that it takes; None without."""
    for place, node in enumerate(nodes[:-1]):
        sign = nodes[place + 1]
        if node.text != "lo" or node.kind != "word" or node.meaning is None or node.entry is not None:
            continue
        if sign.text != "-" or sign.kind != "joiner" or (place + 2 < len(nodes) and nodes[place + 2].text == "="):
            continue
        meaning = node.meaning._replace(senses=("lose",))
        lose = _word_node(node.text, (0, node.span[1], sign.span[2]), meaning)
        # What stands behind the mark is a word of its own: a space parts them as it would after any other word.
        gap = Node("space", "", (0, sign.span[2], sign.span[2]), "")
        return [*nodes[:place], lose, gap, *nodes[place + 2 :]], sign
    return None


def remake(node: Node, meaning: Meaning) -> Node:
    """The word with another meaning."""
    return _word_node(node.text, node.span, meaning)


def _span(token: Token) -> Span:
    return (0, token.start, token.end)


def _mark(node: Node, marker: str) -> Node:
    """The word as its marker says: as an entity, a verb, a state, or in its second or third meaning."""
    meaning = node.meaning
    if meaning is None:
        return node
    place = _SECOND.get(marker)
    if place is not None and len(meaning.senses) > place:
        return _word_node(node.text, node.span, meaning._replace(senses=(meaning.senses[place],)))
    wanted = _MARKED.get(marker)
    fitting = tuple(sense for sense in meaning.senses if wanted and wanted in find_word(sense).order)
    if not fitting:
        return node
    return _word_node(node.text, node.span, meaning._replace(senses=fitting))._replace(uses=wanted or node.uses)


def _read_node(token: Token, scope: Scope, domain: str | None, key: str, before: list[Node]) -> Node:
    kind, text, span = token.kind, token.text, _span(token)
    if kind == "demonstrative":
        return Node("name", text, span, DEMONSTRATIVES[text], "n", mark="demonstrative")
    if kind == "word":
        return _word_node(text, span, scope.resolve(text, domain))
    if kind == "value-text" and key != "id" and text.isascii() and text.islower() and text.isalpha():
        return _value_node(text, span, scope.resolve(text), kind)
    if kind == "value-domain":
        name, _, atom = text.partition(":")
        meaning = scope.resolve(atom, scope.vocabulary.names.get(name, name))
        return _value_node(text, span, meaning, kind)
    said = _LITERALS.get(kind)
    return Node(kind, text, span, said(text) if said else text, _USES.get(kind, ""))


def _value_node(text: str, span: Span, meaning: Meaning, kind: str) -> Node:
    """What stands after `=`: an exact atom has its meaning, anything else is literal and never divided."""
    if meaning.basis == "exact" and (meaning.senses or meaning.entry):
        return _word_node(text, span, meaning)._replace(kind="value-word")
    if kind == "value-domain":
        return Node("value-text", text, span, f'unknown "{text}"', "n", meaning)
    return Node("value-text", text, span, text, "n")


def _word_node(text: str, span: Span, meaning: Meaning) -> Node:
    if meaning.entry is not None:
        says, uses = quote(meaning.entry.value), "n"
    elif meaning.basis == "unknown":
        says, uses = f'unknown "{text}"', "n"
    elif not meaning.senses:
        says, uses = meaning.tense or text, "t"
    else:
        says = " + ".join(word for word in (meaning.tense, "/".join(meaning.senses), meaning.aspect) if word)
        uses = "".join(find_word(sense).order for sense in meaning.senses)
        if (meaning.tense or meaning.aspect) and not (meaning.senses[0] == "can" and not meaning.aspect):
            uses = "v"
        elif meaning.senses[0] in ("can", "not", "never", "number of"):
            uses = "m" if meaning.senses[0] == "can" else "x"
    return Node("word", text, span, says, uses, meaning)


def _say_number(text: str) -> str:
    return text.replace("$", "")


_LITERALS: dict[str, Callable[[str], str]] = {
    "entity": lambda text: ENTITIES[text],
    "star": lambda text: "all",
    "nothing": lambda text: "nothing",
    "quantity": lambda text: QUANTIFIERS[text],
    "number": _say_number,
    "value-number": _say_number,
    "value-symbol": lambda text: "high",
    "joiner": lambda text: JOINERS.get(text) or JOINERS.get(text[:1], text),
    "emotion": lambda text: EMOTIONS[text],
    "marker": lambda text: MARKERS[text[1]],
    "error": lambda text: f"error: {ERRORS[text[3:]].name}" if text[3:] in ERRORS else f'error: unknown "{text[3:]}"',
    "left": lambda text: '"..." (something left out)',
    "passive": lambda text: "in the passive (v0.3)",
    "term": lambda text: f'the definition of "{text[4:]}"',
    "space": lambda text: "",
}
_USES = {
    "entity": "n",
    "star": "q",
    "quantity": "q",
    "number": "#",
    "nothing": "n",
    "mixed": "n",
    "name": "n",
    "quote": "n",
    "paraphrase": "n",
    "term": "n",
    "error": "n",
    "escape": "n",
    "unread": "n",
    "value-quote": "n",
    "value-url": "n",
    "value-number": "#",
    "value-text": "n",
    "value-symbol": "a",
    "joiner": "o",
}


def find_before(nodes: Sequence[Node], place: int, *passed: str) -> Node | None:
    """The nearest node before a place whose kind is none of these; without a copy of those before it."""
    return next((node for at in range(place - 1, -1, -1) if (node := nodes[at]).kind not in passed), None)


class Piece(NamedTuple):
    """Words with the places they came from; `source` is the message that gave a meaning."""

    text: str
    spans: tuple[Span, ...] = ()
    basis: Basis = "exact"
    source: tuple[Any, int] | None = None


# Tells what stands in brackets or in a block.
Tell = Callable[[Sequence[Node]], list[Piece]]
# Tells a word that a sender defined.
Define = Callable[[Node], list[Piece]]
