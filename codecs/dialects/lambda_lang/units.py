"""A clause's nodes grouped into units: noun phrases, verbs, adjectives, key and value, and what joins them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .._record import Basis, Span
from .nodes import Node
from .protocol import ENTITIES
from .words import Meaning


class Piece(NamedTuple):
    """Words with the places they came from; `source` is the message that gave a meaning."""

    text: str
    spans: tuple[Span, ...] = ()
    basis: Basis = "exact"
    source: tuple[Any, int] | None = None


class Unit(NamedTuple):
    """A part of a clause.

    Attributes:
        kind: np, verb, adj, adv, kv, num, conj, neg, slash, more, rel, is, tense, modal, join, list, text.
        pieces: its English where that does not depend on its neighbours.
        node: the word it rests on.
        person: for a noun phrase, first, second, plural or third.
        is_agent: whether it names one who acts by itself.
        is_bare: whether it is a plain run of nouns that another noun may still follow.
        value: for `kv`, the pieces of the value.
    """

    kind: str
    pieces: tuple[Piece, ...] = ()
    node: Node | None = None
    person: str = "third"
    is_agent: bool = False
    is_bare: bool = False
    value: tuple[Piece, ...] = ()


Tell = Callable[[Sequence[Node]], list[Piece]]
Define = Callable[[Node], list[Piece]]
_QUANTITY = {"$": "the number of", "@": "each", "%": "most"}
_NOT_ATTRIBUTED = frozenset({"value-text", "value-number", "value-word", "value-quote", "value-url"})


class Grouping:
    """Groups one clause; `tell` tells what is inside brackets and blocks, `define` a word a sender defined."""

    def __init__(self, nodes: Sequence[Node], mood: str, tell: Tell, define: Define) -> None:
        self.nodes = [node for node in nodes if node.kind not in ("space", "marker")]
        self.ends = [node.span[2] for node in self.nodes]
        self.mood = mood
        self.tell = tell
        self.define = define
        self.units: list[Unit] = []
        self.has_subject = False
        self.has_verb = False
        self.at = 0
        self.pending: tuple[Span, ...] = ()

    def group(self) -> list[Unit]:
        """The units of the clause, in order."""
        while self.at < len(self.nodes):
            self._take()
        return self.units

    # What lies around the node in hand.

    def _peek(self, by: int = 1) -> Node | None:
        return self.nodes[self.at + by] if self.at + by < len(self.nodes) else None

    def _is_joined(self, by: int = 0) -> bool:
        """Whether the node touches the one after it."""
        place = self.at + by
        return place + 1 < len(self.nodes) and self.ends[place] == self.nodes[place + 1].span[1]

    def _is_key(self, by: int = 0) -> bool:
        """Whether the node is the key of `key=…` or of `key-=…`."""
        node = self._peek(by)
        if node is None or node.kind not in ("word", "mixed", "name", "term") or not self._is_joined(by):
            return False
        after = self._peek(by + 1)
        if after is not None and after.text == "-":
            after = self._peek(by + 2)
        return after is not None and after.kind == "joiner" and after.text == "="

    def _last(self) -> str:
        return self.units[-1].kind if self.units else ""

    def _add(self, unit: Unit) -> None:
        self.units.append(unit)
        self.pending = ()

    def _piece(self, text: str, node: Node, basis: Basis | None = None) -> Piece:
        spans = (*self.pending, node.span)
        self.pending = ()
        return Piece(text, spans, basis or node.basis)

    # One unit at a time.

    def _take(self) -> None:
        node = self.nodes[self.at]
        if node.kind == "domain":
            self.pending = (node.span,)
            self.at += 1
        elif node.kind in ("open", "block"):
            self._take_group(node)
        elif node.kind == "joiner":
            self._take_joiner(node)
        elif self._is_key():
            self._take_pair()
        elif node.kind == "number":
            self._take_number(node)
        elif node.kind in ("star", "quantity"):
            self._take_phrase()
        elif node.kind in ("emotion", "reference", "close"):
            self._add(Unit("text", (Piece(_ASIDES[node.kind](node), (node.span,)),)))
            self.at += 1
        else:
            self._take_word(node)

    def _take_word(self, node: Node) -> None:
        simple = {"t": "tense", "m": "modal", "x": "neg"}.get(node.uses)
        if simple:
            self._add(Unit(simple, (self._piece("", node),), node))
            self.at += 1
        elif self.wants_verb(node):
            piece = self._piece("", node)
            if self._last() == "slash" and len(self.units) > 1 and self.units[-2].kind == "modal":
                piece = piece._replace(spans=(*self.units.pop().pieces[0].spans, *piece.spans))
            self._add(Unit("verb", (piece,), node))
            self.has_verb = True
            self.at += 1
        elif node.is_action and self._is_done_here():
            self._take_action(node)
        elif node.kind == "word" and (form := self._other_form(node)):
            self._add(Unit(form[0], (self._piece(f" {form[1]}", node),), node))
            if form[0] == "join":
                self.has_subject = self.has_verb = False
            self.at += 1
        else:
            self._take_phrase()

    def _is_done_here(self) -> bool:
        """Whether a defined word stands where a verb does: after its subject, or at the head of a command."""
        if self.has_verb or self._last() in ("slash", "conj", "rel", "is", "kv", "num"):
            return False
        return self.has_subject or self.mood == "request"

    def _take_action(self, node: Node) -> None:
        """A defined word in a verb's place: what its definition says is done."""
        spans = (*self.pending, node.span)
        does = Node("word", node.text, node.span, "do", "v", Meaning("inferred", senses=("do",)))
        self._add(Unit("verb", (Piece("", spans, "inferred"),), does))
        self._add(Unit("np", tuple(self.define(node)), node))
        self.has_verb = True
        self.at += 1

    def _other_form(self, node: Node) -> tuple[str, str] | None:
        """Adjective, adverb or joining word, where that is what the word is here."""
        joins = node.joins()
        if joins and not (self._last() == "slash" and "n" in node.uses):
            return "join", joins
        if adverb := (node.adverb() if node.uses[:1] == "d" else None):
            return "adv", adverb
        adjective = node.adjective() if "a" in node.uses else None
        if adjective is None or (self._is_followed_by_noun() and (self.has_verb or not self.has_subject)):
            return None
        after_be = self._last() == "slash" and len(self.units) > 1 and self._is_be(self.units[-2])
        if node.uses[0] == "a" or after_be or "n" not in node.uses:
            return "adj", adjective
        return None

    @staticmethod
    def _is_be(unit: Unit) -> bool:
        return unit.node is not None and unit.node.meaning is not None and "be" in unit.node.meaning.senses

    def _is_followed_by_noun(self) -> bool:
        after = self._peek()
        if after is None or self._is_key(1):
            return False
        if after.kind == "domain":
            after = self._peek(2)
        return after is not None and after.uses[:1] in ("n", "q") and after.kind != "joiner"

    def wants_verb(self, node: Node) -> bool:
        """Whether a word that can be a verb is one here."""
        if node.kind != "word" or "v" not in node.uses or node.entry:
            return False
        if "n" not in node.uses and "a" not in node.uses:
            return True
        last = self._last()
        if last == "conj" and len(self.units) > 1 and self.units[-2].kind == "verb":
            return True
        if last == "slash" and len(self.units) > 1 and self.units[-2].kind == "modal":
            return True
        if last in ("slash", "more", "is") or (last == "verb" and node.uses[0] != "v"):
            return False
        if last == "neg":
            if self.mood == "request" and len(self.units) == 1:
                return True
            return self.has_subject and not self.has_verb
        if not self.has_subject:
            if self.mood == "request" and not self.has_verb:
                return node.uses[0] == "v" or not self._is_followed_by_verb()
            after = self._peek()
            return node.uses[0] == "v" and after is not None and after.uses[:1] != "a" and not self.has_verb
        if self.has_verb:
            return False
        subject = next((unit for unit in self.units if unit.kind == "np"), None)
        is_bare = subject is not None and subject.is_bare
        return node.uses[0] == "v" or (not is_bare and "a" not in node.uses)

    def _is_followed_by_verb(self) -> bool:
        after = self._peek()
        return after is not None and after.kind == "word" and after.uses[:1] == "v"

    # Noun phrases.

    def _take_phrase(self) -> None:
        pieces: list[Piece] = []
        is_plural, has_article = False, True
        node = self.nodes[self.at]
        if node.kind in ("star", "quantity"):
            is_one = node.text == "1"
            is_plural = not is_one
            has_article = False
            pieces.append(self._piece(f" {node.says}", node))
            self.at += 1
            if not self._is_noun_here():
                self._finish_phrase(pieces, "third" if is_one else "plural", is_agent=True, is_bare=False)
                return
        elif node.kind == "joiner":
            pieces.append(self._piece(f" {_QUANTITY[node.text]}", node))
            is_plural, has_article = node.text != "@", False
            self.at += 1
        self._read_nouns(pieces, is_plural=is_plural, has_article=has_article)

    def _is_noun_here(self) -> bool:
        node = self._peek(0)
        if node is not None and node.kind == "domain":
            node = self._peek(1)
        if node is None or "n" not in node.uses or self._is_key() or node.kind in _NOT_ATTRIBUTED:
            return False
        return node.uses[0] == "n"

    def _read_nouns(self, pieces: list[Piece], *, is_plural: bool, has_article: bool) -> None:
        node = self.nodes[self.at]
        if node.kind == "domain":
            self.pending = (node.span,)
            self.at += 1
            node = self.nodes[self.at]
        if node.kind == "entity":
            self._read_entity(node, pieces, is_plural=is_plural, has_article=has_article)
            return
        noun = node.noun() if node.kind == "word" else None
        if node.entry is not None:
            pieces.extend(self.define(node))
            self.at += 1
            self._finish_phrase(pieces, "plural" if is_plural else "third", is_agent=True, is_bare=False)
            return
        if noun is None and not (node.kind == "word" and (node.verb() or node.adjective())):
            pieces.append(self._piece(f" {node.says}", node))
            self.at += 1
            self._finish_phrase(pieces, "plural" if is_plural else "third", is_agent=False, is_bare=False)
            return
        run = self._read_run()
        head = run[-1][0].noun()
        is_counted = head.is_counted if head else False
        article = " the" if has_article and is_counted else ""
        if self.units and self.units[-1].kind == "neg" and not (self.has_subject and not self.has_verb):
            article = ""
        for index, (word, spans) in enumerate(run):
            said = _say_noun(word, is_plural=is_plural and index == len(run) - 1)
            pieces.append(Piece(f"{article if index == 0 else ''} {said}", spans, word.basis))
        if self._is_key() and self.nodes[self.at].text == "id" and article:
            pieces[-len(run)] = pieces[-len(run)]._replace(text=pieces[-len(run)].text.removeprefix(" the"))
        person = "plural" if is_plural and is_counted else "third"
        self._finish_phrase(pieces, person, is_agent=bool(head and head.is_agent), is_bare=not is_plural)

    def _read_run(self) -> list[tuple[Node, tuple[Span, ...]]]:
        """Adjectives before a noun and nouns in a row: `new node`, `node heartbeat`."""
        run: list[tuple[Node, tuple[Span, ...]]] = []
        while self.at < len(self.nodes):
            node = self.nodes[self.at]
            if node.kind == "domain":
                if run and self._is_verb_after_domain():
                    break
                self.pending = (node.span,)
                self.at += 1
                continue
            if node.kind != "word" or node.entry or node.basis != "exact" or self._is_key():
                break
            if run and node.uses[0] != "n":
                break
            if node.uses[0] in ("t", "m", "x", "o", "j", "d") and run:
                break
            run.append((node, (*self.pending, node.span)))
            self.pending = ()
            self.at += 1
        if not run:
            node = self.nodes[self.at]
            run.append((node, (*self.pending, node.span)))
            self.pending = ()
            self.at += 1
        return run

    def _is_verb_after_domain(self) -> bool:
        after = self._peek()
        return after is not None and after.uses[:1] != "n"

    def _read_entity(self, node: Node, pieces: list[Piece], *, is_plural: bool, has_article: bool) -> None:
        person, said = _PERSONS.get(node.text, ("third", ENTITIES[node.text]))
        spans: tuple[Span, ...] = (*self.pending, node.span)
        self.pending = ()
        after = self._peek()
        if after is not None and after.kind == "star" and self._is_joined():
            spans = (*spans, after.span)
            person, said = {"I": ("plural", "we"), "U": ("plural", "all of you")}.get(
                node.text, ("plural", f"all {said}s")
            )
            self.at += 1
        elif node.text in "HA":
            said = f"{said}s" if is_plural else f"{'a' if node.text == 'H' else 'an'} {said}" if has_article else said
            person = "plural" if is_plural else "third"
        pieces.append(Piece(f" {said}", spans))
        self.at += 1
        self._finish_phrase(pieces, person, is_agent=True, is_bare=False)

    def _finish_phrase(self, pieces: list[Piece], person: str, *, is_agent: bool, is_bare: bool) -> None:
        if self._is_key() and self.nodes[self.at].text == "id":
            is_bare = False
            pieces.extend(self._read_id())
        self._add(Unit("np", tuple(pieces), None, person, is_agent, is_bare))
        if not self.has_verb:
            self.has_subject = True

    def _read_id(self) -> list[Piece]:
        """`id=alpha`, and `&id=beta` after it."""
        pieces: list[Piece] = []
        lead = ""
        while self._is_key() and self.nodes[self.at].text == "id":
            key, value = self.nodes[self.at], self._peek(2)
            if value is None or not value.kind.startswith("value-"):
                break
            pieces.append(Piece(f"{lead} {value.text}", (key.span, value.span)))
            self.at += 3
            join = self._peek(0)
            if (
                join is None
                or join.text not in ("&", "|")
                or not self._is_key(1)
                or self.nodes[self.at + 1].text != "id"
            ):
                break
            lead = f" {join.says}"
            self.at += 1
        return pieces

    # The rest.

    def _take_pair(self) -> None:
        key = self.nodes[self.at]
        is_negated = self.nodes[self.at + 1].text == "-"
        equals = self.nodes[self.at + (2 if is_negated else 1)]
        spans = (*self.pending, key.span)
        noun = key.noun()
        said = noun.one if noun else (key.says if key.kind in ("word", "term") else key.text)
        if key.kind == "word" and key.basis == "inferred":
            # A key is never divided: what has a tense is no name of a value.
            said = f'unknown "{key.text}"'
        elif key.kind == "word" and noun is None and (verb := key.verb()):
            said = verb.gerund
        named = tuple(self.define(key)) if key.entry is not None else (Piece(f" {said}", spans, key.basis),)
        self.at += 3 if is_negated else 2
        value = self._peek(0)
        if value is not None and value.kind.startswith("value-"):
            pieces = [Piece(f" {_say_value(value)}", (equals.span, value.span), value.basis)]
            if value.entry is not None:
                pieces = self.define(value)
            self.at += 1
        elif value is not None and value.span[1] == equals.span[2] and value.kind in ("open", "block"):
            pieces = self._read_group(value)
        else:
            pieces = [Piece(" (no value)", (equals.span,))]
        if is_negated:
            pieces.insert(0, Piece(" not equal to", (self.nodes[self.at - 1].span,)))
        self._add(Unit("kv", named, key, value=tuple(pieces)))

    def _take_number(self, node: Node) -> None:
        pieces = [self._piece(f" {say_amount(node.says)}", node)]
        slash, other = self._peek(1), self._peek(2)
        if slash is not None and slash.text == "/" and other is not None and other.kind == "number":
            pieces.append(Piece(" of", (slash.span,)))
            pieces.append(Piece(f" {say_amount(other.says)}", (other.span,)))
            self.at += 2
        self.at += 1
        if self._last() in ("slash", "kv") or not self._is_noun_here():
            self._add(Unit("num", tuple(pieces)))
            return
        self._read_nouns(pieces, is_plural=node.says != "1", has_article=False)

    def _take_group(self, node: Node) -> None:
        pieces = self._read_group(node)
        self._add(Unit("list" if node.kind == "open" else "text", tuple(pieces)))
        if not self.has_verb and self._last() != "text" and len(self.units) == 1:
            self.has_subject = True

    def _read_group(self, node: Node) -> list[Piece]:
        if node.kind == "block":
            self.at += 1
            return self.tell([node])
        depth, first = 0, self.at
        while self.at < len(self.nodes):
            kind = self.nodes[self.at].kind
            depth += (kind == "open") - (kind == "close")
            self.at += 1
            if depth == 0:
                break
        return self.tell(self.nodes[first : self.at])

    def _take_joiner(self, node: Node) -> None:
        text = node.text
        after = self._peek()
        is_joined = self._is_joined()
        if text in _QUANTITY and after is not None and is_joined:
            self._take_quantity()
            return
        self.at += 1
        if text == "/":
            unit = Unit("slash", (Piece("", (node.span,)),), node)
        elif text in ("&", "|"):
            unit = Unit("conj", (Piece(f" {node.says}", (node.span,)),), node)
        elif text in ("-", "!"):
            if after is not None and is_joined and after.kind == "number" and self.units:
                unit = Unit("text", (Piece(" less", (node.span,)),))
            elif after is not None and is_joined and (after.kind != "joiner" or after.text[0] in "^_+"):
                unit = Unit("neg", (Piece("", (node.span,)),), node)
            else:
                self._negate_last(node)
                return
        elif text == "+" and is_joined and after is not None and after.kind != "joiner":
            unit = Unit("more", (Piece(" more", (node.span,)),), node)
        elif text[0] in "^_+":
            unit = Unit("adj", (Piece(f" {_say_degree(text)}", (node.span,)),), node)
        elif text == "'":
            unit = Unit("rel", (Piece(" that", (node.span,)),), node)
            self.has_verb = False
        elif text == ":":
            unit = Unit("is", (Piece("", (node.span,)),), node)
        elif text == "?" and after is None and self.mood == "query":
            unit = Unit("text", (Piece("", (node.span,)),), node)
        else:
            unit = Unit("text", (Piece(f" {_SAID.get(text, node.says)}", (node.span,)),), node)
        self._add(unit)

    def _negate_last(self, node: Node) -> None:
        """`cg-`: a minus after a word negates that word."""
        if self.units and self.units[-1].kind == "np":
            last = self.units[-1]
            first = last.pieces[0]
            plain = Piece(f" {first.text.strip().removeprefix('the ')}", first.spans, first.basis, first.source)
            self.units[-1] = last._replace(pieces=(Piece(" no", (node.span,)), plain, *last.pieces[1:]), is_bare=False)
        else:
            self._add(Unit("text", (Piece(" (negative)", (node.span,)),), node))

    def _take_quantity(self) -> None:
        node = self.nodes[self.at]
        self.at += 1
        if self._is_noun_here():
            self.at -= 1
            self._take_phrase()
            return
        self._add(Unit("text", (Piece(f" {_QUANTITY[node.text]}", (node.span,)),), node))


_PERSONS = {"I": ("first", "I"), "U": ("second", "you"), "X": ("third", "X"), "0": ("third", "nothing")}
_SAID = {"=": "equal to", "?": "(in question)", "**": "(emphasised)", "~": "about", "#": "(about the exchange)"}
_ASIDES = {
    "emotion": lambda node: f" ({node.says})",
    "close": lambda node: f" {node.text}",
    "reference": lambda node: (
        f" (in answer to message {node.text[4:]})" if node.text.startswith("#id:") else f" (part {node.text[1:]})"
    ),
}


def say_amount(text: str) -> str:
    """`5+` is "5 or more", `5-` is "5 or less"."""
    if text[-1:] in ("+", "-"):
        return f"{text[:-1]} or {'more' if text[-1] == '+' else 'less'}"
    return text


def _say_degree(text: str) -> str:
    word = {"^": "high", "_": "low", "+": "more"}[text[0]]
    return f"{'very ' * (len(text) > 1)}{word}" if text[0] != "+" else word


def _say_noun(node: Node, *, is_plural: bool) -> str:
    noun = node.noun()
    if noun:
        return noun.many if is_plural and noun.is_counted else noun.one
    adjective = node.adjective()
    if adjective:
        return adjective
    verb = node.verb()
    return verb.gerund if verb else node.says


def _say_value(node: Node) -> str:
    """A value in words: an exact atom has its meaning, a verb as what is going on."""
    if node.kind == "value-word" and node.meaning is not None:
        if node.uses[:1] == "a":
            return node.adjective() or node.says
        if node.uses[:1] == "v" and (verb := node.verb()):
            return verb.gerund
        noun = node.noun()
        return noun.one if noun else node.says
    return node.says
