"""What stands after the verb of a sentence: to whom, what, and how."""

from __future__ import annotations

from collections.abc import Sequence

from .._record import Span
from .lexicon import Verb
from .nodes import Node
from .pieces import Define, Tell
from .things import Things
from .verbs import TAKES_TO
from .wording import ARROWS, ASIDES, is_percentage, say_arrow, say_degree


class Complements(Things):
    """Takes what stands after the verb; a False says that the clause is of a shape that is not told."""

    def __init__(self, nodes: Sequence[Node], mood: str, tell: Tell, define: Define) -> None:
        super().__init__(nodes, tell, define)
        self.mood = mood
        self.negation: tuple[str, tuple[Span, ...]] = ("", ())
        self.verb: Verb | None = None

    def _tell_more(self) -> bool:
        node = self.nodes[self.at]
        if node.kind == "joiner":
            return self._tell_sign(node)
        if node.kind == "block":
            self.at += 1
            self.pieces.extend(self.tell_group([node]))
            return True
        if node.kind in ("emotion", "reference"):
            self.at += 1
            self._say(ASIDES[node.kind](node), node.span)
            return True
        if node.uses == "t" and node.entry is None and node.meaning is not None:
            self.at += 1
            said = {"past": "in the past", "future": "in the future"}.get(node.meaning.tense or "", "now")
            self._say(f" {said}", node.span)
            return True
        if node.kind == "open":
            return self._take_object()
        # A thing without a sign before it is what is done something to, unless it may as well say how all stands.
        after = self._peek()
        return self._stands_after_verb() and after is not None and not _is_state(after) and self._take_object()

    def _stands_after_verb(self) -> bool:
        """Whether nothing but the verb, a sign or what belongs to the verb stands right before."""
        before = self.nodes[self.at - 1]
        if before.kind == "marker" and self.at > 1:
            before = self.nodes[self.at - 2]
        return before.kind == "joiner" or (
            before.kind == "word" and self.verb is not None and before.verb() is self.verb
        )

    def _tell_sign(self, node: Node) -> bool:
        text = node.text
        self.at += 1
        after = self._peek()
        is_behind = text in "+-" and (after is None or after.kind == "joiner") and not self._is_lose(node)
        if text[0] in "^_" or is_behind:
            self._say(f" ({say_degree(text)})", node.span)
            return True
        if text == "?" and after is None:
            return self.mood == "query"
        if after is None:
            return False
        if text in ARROWS:
            self._say(f" {say_arrow(self.nodes, self.at - 1)}", node.span)
            return self._take_object()
        if text == "/" and is_percentage(after):
            self._say(",", node.span)
            return self._take_object()
        if text == "/":
            about = self.verb.about if self.verb is not None and self._is_after_verb() else ""
            if after.kind == "word" and self._chains(after):
                return self._tell_chained(node)
            if about:
                self._say(f" {about}", node.span)
            elif self._is_after_verb():
                self.pending = (node.span,)
            else:
                self._say(" of", node.span)
            return self._take_object()
        if text == "&" or text == "|":
            self._say(f" {node.says}", node.span)
            return self._take_object()
        if text == "+" or text == "-":
            return self._tell_more_or_less(node, after)
        return False

    def _is_after_verb(self) -> bool:
        """Whether the sign in hand stands right after the verb."""
        before = self.nodes[self.at - 2]
        return before.verb() is self.verb or before.uses == "m" or before.kind == "marker"

    def _tell_more_or_less(self, node: Node, after: Node) -> bool:
        if node.text == "-" and after.kind == "word" and after.uses == "v" and self._wants_to():
            self.negation = ("not", (node.span,))
            return self._tell_chained(node)
        if after.kind != "word" or after.basis != "exact" or after.entry is not None or self._is_lose(node):
            return False
        self._say(
            " more" if node.text == "+" else " less", node.span, basis="exact" if node.text == "+" else "inferred"
        )
        return self._take_noun(has_article=False)

    def _is_lose(self, sign: Node) -> bool:
        """`lo-`, which v0.8 has for "lose"."""
        return sign.text == "-" and self.at > 1 and self.nodes[self.at - 2].text == "lo"

    def _wants_to(self) -> bool:
        return self.verb is not None and self.verb.base in TAKES_TO

    def _chains(self, after: Node) -> bool:
        return after.uses[:1] == "v" and after.entry is None and self._wants_to() and after.verb() is not None

    def _tell_chained(self, node: Node) -> bool:
        """`Aw/s`: "wants to speak"."""
        held = self._next()
        verb = held.verb()
        if verb is None or held.basis != "exact":
            return False
        negated = "not " if self.negation[0] else ""
        self._say(f" {negated}to {verb.base}", node.span, held.span)
        self.negation, self.verb = ("", ()), verb
        self._tell_doubt(held, "v")
        return True


def _is_state(node: Node) -> bool:
    """Whether a word names a thing and a state alike, as "success" does."""
    return node.kind == "word" and "a" in node.uses and "n" in node.uses
