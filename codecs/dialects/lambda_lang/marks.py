"""Marks that single releases define, found among the nodes of a body: modal letters, "this", and glosses in brackets.

v0.3 has letters before a subject for must, should, want and may, `$` for "this", and `~v~` for the passive; v0.8
has a gloss in brackets behind an atom. No later release takes them back, and none of them is without doubt: most
of the letters are atoms too, and `$` counts. So each is read, marked as inferred, and noted with the other reading.
"""

from __future__ import annotations

import re

from .._english import quote
from .._record import Note
from .nodes import Node, list_nodes, remake
from .notes import DEMONSTRATIVE, GLOSS, GLOSS_OTHER, MODAL, PASSIVE
from .protocol import MODALS
from .vocabulary import histories
from .words import Scope

# Behind these another clause begins.
_JOINERS = frozenset({">", "=>", "<", "<>", "..", ">>", "<<", "<->", ";", ",", "."})
_FRONTS = frozenset("tmx")
_GLOSSED = re.compile(r"\(([A-Za-z][A-Za-z \-]{0,63})\)")


def read_nodes(text: str, start: int, end: int, scope: Scope) -> list[Node]:
    """The nodes of a body, spaces included, with the marks among them read."""
    nodes = list_nodes(text, start, end, scope)
    has_sign = text.find("$", start, end) >= 0 or text.find("(", start, end) >= 0
    if not has_sign and not any(node.text in MODALS for node in nodes):
        return nodes
    is_request = start > 0 and text[start - 1] == "."
    kinds = {node.kind for node in nodes}
    if "open" in kinds and "word" in kinds:
        nodes = _read_glosses(text, nodes, scope)
    settled = []
    before: Node | None = None
    for place, node in enumerate(nodes):
        if node.text in MODALS and node.kind == "word" and not is_request and _leads_clause(before):
            node = _read_modal(node, nodes, place)
        elif node.text == "$" and node.kind == "joiner":
            node = _read_this(node, nodes, place, scope)
        settled.append(node)
        before = node if node.kind != "space" else before
    return settled


def _leads_clause(before: Node | None) -> bool:
    return before is None or before.kind == "open" or (before.kind == "joiner" and before.text in _JOINERS)


def _read_modal(node: Node, nodes: list[Node], place: int) -> Node:
    """`mIt`: a letter joined to a subject that does something is a modal, else it stays the atom that it is."""
    after = [held for held in nodes[place + 1 : place + 6] if held.kind != "star"]
    if not after or after[0].kind != "entity" or after[0].span[1] != node.span[2] or node.entry is not None:
        return node
    does = [held for held in after[1:] if held.uses not in _FRONTS and held.text not in ("-", "!")][:1]
    if not does or does[0].kind != "word" or ("v" not in does[0].uses and does[0].basis == "exact"):
        return node._replace(mark="modal-not")
    said = MODALS[node.text][0]
    return node._replace(kind="modality", says=f"{said} (v0.3)", uses="", meaning=None, mark="modal", other=node.says)


def _read_this(node: Node, nodes: list[Node], place: int, scope: Scope) -> Node:
    """`$` is "this" where nothing stands behind it that could be counted."""
    after = nodes[place + 1] if place + 1 < len(nodes) else None
    if after is not None and after.kind not in ("space", "close", "joiner", "emotion"):
        is_verb = after.kind == "word" and (after.uses[:1] == "v" or after.uses in _FRONTS) and after.entry is None
        if not is_verb:
            is_old = scope.vocabulary.release == "0.1" and after.kind == "word"
            return node._replace(mark="counts") if is_old else node
    return node._replace(kind="name", says="this", uses="n", mark="demonstrative")


def _read_glosses(text: str, nodes: list[Node], scope: Scope) -> list[Node]:
    """`de(decide)`: English in brackets right behind an atom settles its meaning."""
    settled: list[Node] = []
    until = 0
    for node in nodes:
        if node.span[1] < until:
            continue
        found = _GLOSSED.match(text, node.span[1]) if node.kind == "open" and settled else None
        word = _find_glossed(settled, node.span[1]) if found else None
        if found is None or word is None or not _is_english(found[1], word, scope):
            settled.append(node)
            continue
        until = found.end()
        span = (0, node.span[1], until)
        meanings = _list_meanings(word, scope)
        said = found[1].strip().lower()
        if word.meaning is not None and said in meanings:
            is_current = said in word.meaning.senses
            made = remake(word, word.meaning._replace(senses=(said,), basis="exact", readings=()))
            while settled[-1] is not word:
                settled.pop()
            mark = "gloss" if is_current else "gloss-other"
            settled[-1] = made._replace(span=(0, word.span[1], until), mark=mark, other=word.says)
        else:
            says = f"(glossed by the sender: {quote(found[1])})"
            settled.append(
                node._replace(kind="gloss", text=found[0], span=span, says=says, mark="gloss-own", other=word.says)
            )
    return settled


def _find_glossed(settled: list[Node], at: int) -> Node | None:
    """The word that ends where the bracket opens, its marker between them or not."""
    last = settled[-1]
    if last.kind == "marker" and last.span[2] == at and len(settled) > 1:
        at, last = last.span[1], settled[-2]
    return last if last.kind == "word" and last.span[2] == at and last.entry is None and not last.mark else None


def _is_english(gloss: str, word: Node, scope: Scope) -> bool:
    """Whether what stands in brackets is a gloss, and no group of atoms."""
    if gloss.strip().lower() in _list_meanings(word, scope):
        return True
    words = gloss.replace("-", " ").split()
    return any(len(part) > 2 and scope.resolve(part.lower()).basis == "unknown" for part in words) and not (
        any(scope.resolve(part).basis == "exact" and len(part) < 3 for part in words[:1])
    )


def _list_meanings(word: Node, scope: Scope) -> frozenset[str]:
    """Everything that an atom means or meant, in any release."""
    domain = (word.meaning.domain if word.meaning else None) or ""
    history = histories().get(domain, {}).get(word.text, ())
    ever = {sense for _, meaning in history if meaning for sense in meaning.split("/")}
    return frozenset(ever | set(word.meaning.senses if word.meaning else ()))


def note_mark(node: Node, scope: Scope) -> Note | None:
    """The note that a mark earns: how it is read, and how else it could be."""
    release = scope.vocabulary.release
    other = f"“{node.other}”"
    if node.mark == "modal":
        text = f"“{node.text}” before a subject is read as {node.says}; as an atom it would be {other}"
        return MODAL.note(text, node.span)
    if node.mark == "modal-not":
        said = MODALS[node.text][0]
        text = f"“{node.text}” is read as the atom “{node.says}”; v0.3 has it before a subject for “{said}”"
        return MODAL.note(text, node.span)
    if node.mark == "demonstrative":
        text = f"“{node.text}” is read as “{node.says}” (v0.3); before a word it is “the number of”"
        return DEMONSTRATIVE.note(text, node.span)
    if node.mark == "counts":
        text = "“$” before a word is read as “the number of”; v0.3 also has it for “this”"
        return DEMONSTRATIVE.note(text, node.span)
    if node.kind == "passive":
        return PASSIVE.note("“~v~” is read as the passive, which v0.3 alone defines", node.span)
    if node.mark == "gloss":
        return GLOSS.note(f"the sender glosses “{node.text}” as “{node.says}”, which the vocabulary has", node.span)
    if node.mark == "gloss-other":
        text = f"the sender glosses “{node.text}” as “{node.says}”; v{release} has {other}: the gloss is taken"
        return GLOSS_OTHER.note(text, node.span)
    if node.mark == "gloss-own":
        has = "does not know the word" if node.other.startswith("unknown") else f"has {other}"
        text = f"the sender glosses this as {node.text}; no release has that meaning, v{release} {has}"
        return GLOSS_OTHER.note(text, node.span)
    return None
