"""Notes on the words of a statement: unknown, divided, ambiguous, defined by a sender, changed between releases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .._record import Note
from .domain_atoms import TITLES
from .nodes import Node
from .notes import (
    AMBIGUOUS_WORD,
    DEFINED,
    DIFFERS,
    DIVIDED_WORD,
    NOT_FETCHED,
    REDEFINES,
    TOO_DEEP,
    UNKNOWN_DOMAIN,
    UNKNOWN_WORD,
    UNREAD,
)
from .settings import Setting
from .statements import Part
from .vocabulary import other_meanings
from .words import Scope, find_elsewhere, find_ever

# A message that repeats a fault a thousand times carries it this often: the field tree shows every place.
MOST = 50


def note_words(part: Part, nodes: Sequence[Node], scope: Scope, *, is_declared: bool) -> list[Note]:
    """The notes of one statement's words; a word that returns is noted once."""
    notes: list[Note] = []
    seen: set[tuple[str, str | None]] = set()
    depth = 0
    domain: str | None = None
    # A term that an error reports is cited, not used.
    cited = part.body[0] if part.form == "error" else -1
    for node in nodes:
        if cited >= 0 and node.span[1] - cited < len(node.text) + 7:
            continue
        if len(notes) >= MOST:
            break
        depth += (node.kind == "open") - (node.kind == "close")
        if depth == 11 and node.kind == "open":
            notes.append(TOO_DEEP.note("what lies deeper than ten brackets is shown as text", node.span))
        if node.kind == "domain":
            domain = node.text[:-1]
            if domain not in scope.vocabulary.names:
                notes.append(UNKNOWN_DOMAIN.note(f"this release has no domain {domain!r}", node.span))
            continue
        key = (node.text, domain)
        if key not in seen:
            seen.add(key)
            note = _note_node(node, domain, scope, is_declared)
            if note is not None:
                notes.append(note)
        domain = None
    return notes


def note_settings(settings: Sequence[Setting], scope: Scope) -> Iterator[Note]:
    """The notes of what a statement sets."""
    for setting in settings:
        span = (0, setting.start, setting.end)
        if setting.kind == "def":
            senses = scope.vocabulary.find(setting.name) or _first(scope, setting.name)
            if senses and str(setting.value).lower() not in senses:
                said = "/".join(senses)
                text = f"“{setting.name}” is {said!r} in the vocabulary; the sender defines it as {setting.raw}"
                yield REDEFINES.note(text, span)
        elif setting.kind in ("ns", "domain"):
            values = setting.value if isinstance(setting.value, list) else [setting.value]
            for value in values:
                known = scope.vocabulary.names.get(str(value))
                if value != "*" and known is None:
                    yield UNKNOWN_DOMAIN.note(f"this release has no domain {value!r}", span)
                elif known is not None and known not in scope.vocabulary.domains:
                    yield UNKNOWN_DOMAIN.note(f"the {TITLES[known]} domain has no atoms here", span)


def _first(scope: Scope, name: str) -> tuple[str, ...]:
    return next((found for domain in scope.domains if (found := scope.vocabulary.find(name, domain))), ())


def _note_node(node: Node, domain: str | None, scope: Scope, is_declared: bool) -> Note | None:
    if node.kind == "unread":
        return UNREAD.note(f"{node.text[:40]!r} has no meaning in this dialect", node.span)
    if node.kind == "value-url":
        return NOT_FETCHED.note(f"{node.text} is shown and never fetched", node.span)
    meaning = node.meaning
    if meaning is None:
        return None
    if meaning.entry is not None:
        where = f"in message {meaning.entry.position}" if meaning.entry.position is not None else "earlier"
        text = f"“{node.text}” means {str(meaning.entry.value)!r} because a sender defined it so {where}"
        return DEFINED.note(text, node.span)
    if meaning.basis == "unknown":
        return _note_unknown(node, domain, scope)
    if meaning.basis == "inferred":
        return DIVIDED_WORD.note(f"“{node.text}” is read as {node.says}", node.span)
    others = other_meanings(node.text.rpartition(":")[2], meaning.domain or "", scope.vocabulary.release)
    if not others or not meaning.senses:
        return None
    here = f"v{scope.vocabulary.release}"
    why = f"no version is declared, read with {here}" if not is_declared else f"read with {here}"
    return DIFFERS.note(f"“{node.text}” is “{'/'.join(meaning.senses)}” ({why}); it was {', '.join(others)}", node.span)


def _note_unknown(node: Node, domain: str | None, scope: Scope) -> Note:
    meaning = node.meaning
    if meaning is not None and meaning.readings:
        text = f"“{node.text}” could be {' or '.join(meaning.readings)}: it is not guessed"
        return AMBIGUOUS_WORD.note(text, node.span)
    release = scope.vocabulary.release
    name = scope.vocabulary.names.get(domain or "", "")
    atom = node.text.rpartition(":")[2]
    elsewhere = (*find_ever(atom, name), *find_elsewhere(atom, release))
    hint = f"; it is {', '.join(elsewhere[:4])}, not in force here" if elsewhere else ""
    where = f" of the {TITLES.get(name, name)} domain" if name else ""
    return UNKNOWN_WORD.note(f"“{node.text}” is no atom{where} of v{release}{hint}", node.span)
