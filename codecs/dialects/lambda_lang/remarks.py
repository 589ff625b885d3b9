"""Notes on the words of a statement: what is unknown, divided, defined by a sender, or means more than one thing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .._english import quote
from .._record import Note
from .blocks import MAX_DEPTH, parse_block
from .contexts import Setting
from .marks import note_mark
from .nodes import Node, find_before
from .notes import (
    AMBIGUOUS_WORD,
    DEFINED,
    DIFFERS,
    DIVIDED_WORD,
    MARKED,
    NOT_FETCHED,
    OTHER_DOMAIN,
    REDEFINES,
    THEREFORE,
    TOO_DEEP,
    TWO_MEANINGS,
    UNKNOWN_DOMAIN,
    UNKNOWN_WORD,
    UNREAD,
)
from .statements import Part
from .vocabulary import TITLES, other_domains, other_meanings, title_domain
from .wording import ARROWS, find_marked, fits_marker, read_arrow, say_marked
from .words import Scope, find_elsewhere, find_ever, find_withdrawn

# A message that repeats a fault a thousand times carries it this often: the field tree shows every place.
MAX_REMARKS = 50


def note_words(part: Part, nodes: Sequence[Node], scope: Scope, *, is_declared: bool) -> list[Note]:
    """The notes of one statement's words; a word that returns is noted once."""
    notes: list[Note] = []
    seen: set[tuple[str, str | None]] = set()
    depth = 0
    domain: str | None = None
    # A term that an error reports is cited, not used.
    cited = part.body[0] if part.form == "error" else -1
    for place, node in enumerate(nodes):
        if cited >= 0 and node.span[1] - cited < len(node.text) + 7:
            continue
        if len(notes) >= MAX_REMARKS:
            break
        depth += (node.kind == "open") - (node.kind == "close")
        if depth == 11 and node.kind == "open":
            notes.append(TOO_DEEP.note(_DEEP, node.span))
        if node.kind == "space":
            continue
        if node.kind == "block":
            notes.extend(note_depth(node.text, node.span[1]))
            continue
        if node.kind == "domain":
            domain = node.text[:-1]
            word = nodes[place + 1].text if place + 1 < len(nodes) and nodes[place + 1].kind == "word" else ""
            note = _note_domain(node, word, scope)
            if note is not None and (note.text, None) not in seen:
                seen.add((note.text, None))
                notes.append(note)
            continue
        if node.kind == "joiner" and not node.mark:
            degree = _DEGREES.get(node.text[0])
            if degree and (degree, None) not in seen:
                seen.add((degree, None))
                notes.append(TWO_MEANINGS.note(degree, node.span))
            returns = node.text == "<" and part.symbol in (">", "<->")
            if node.text in ARROWS and not returns and read_arrow(nodes, place)[1]:
                notes.append(_note_arrow(nodes, place))
            continue
        if node.kind == "marker" and place:
            notes.extend(_note_marker(nodes[place - 1], node, scope))
        key = (node.text, domain)
        if node.kind == "mixed" and part.form != "list" and key not in seen:
            notes.append(
                UNKNOWN_WORD.note(f"“{node.text}” is not in the vocabulary: its meaning is unknown", node.span)
            )
        if node.mark or node.kind == "passive":
            notes.extend(filter(None, (note_mark(node, scope),)))
        elif key not in seen:
            seen.add(key)
            is_key = place + 1 < len(nodes) and nodes[place + 1].text == "="
            after = nodes[place + 1] if place + 1 < len(nodes) else None
            is_marked = after is not None and after.kind == "marker" and bool(say_marked(node, after.text))
            told = _note_node(node, domain, scope, is_declared=is_declared, is_key=is_key)
            notes.extend([_set_before_marker(note) for note in told] if is_marked else told)
        domain = None
    return notes


_DEEP = "content deeper than ten brackets is shown as text"


def note_depth(text: str, start: int) -> list[Note]:
    """That a block, which starts at `start`, is nested deeper than is read."""
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return []
    held = [parse_block(text, 0, len(text))]
    while held:
        node = held.pop()
        if node.kind == "deep":
            return [TOO_DEEP.note(_DEEP, (0, start + node.start, start + node.end))]
        held.extend(node.items)
    return []


_DEGREES = {
    "^": "“^” means “high” or “important”: nothing written says which",
    "_": "“_” means “low” or “trivial”: nothing written says which",
}


def _note_arrow(nodes: Sequence[Node], place: int) -> Note:
    """What an arrow stands for and between which words, since it may join these two alone."""
    sign = nodes[place]
    said, others, is_between = read_arrow(nodes, place)
    *more, last = others.split(", ")
    where = "between clauses" if is_between else "before a number" if said.endswith("than") else "between things"
    text = f"{where} “{sign.text}” is read as “{said}”; senders also write it for "
    text += f"{', '.join(f'“{other}”' for other in more)} or “{last}”"
    before = find_before(nodes, place, "space")
    after = next((node for node in nodes[place + 1 :] if node.kind != "space"), None)
    if before is not None and after is not None:
        text += f"; here it stands between “{before.text}” and “{after.text}”"
    return THEREFORE.note(text, sign.span)


def _note_domain(node: Node, atom: str, scope: Scope) -> Note | None:
    name = node.text[:-1]
    if name not in scope.vocabulary.names:
        return UNKNOWN_DOMAIN.note(f"this release has no domain {quote(str(name))}", node.span)
    others = other_domains(name, atom, scope.vocabulary.release)
    if not others:
        return None
    here = title_domain(scope.vocabulary.names[name])
    text = f"“{node.text}” is the {here} domain in v{scope.vocabulary.release}; it was {' and '.join(others)}"
    return OTHER_DOMAIN.note(text, node.span)


def _note_marker(word: Node, marker: Node, scope: Scope) -> Iterator[Note]:
    if word.kind == "word" and not fits_marker(word, marker.text):
        text = f"the marker {marker.text} asks for “{word.text}” {marker.says}; v{scope.vocabulary.release} has only"
        wanted = " or ".join(f"“{sense}”" for sense in find_marked(word, marker.text))
        rests = f": the reading {wanted} rests on the marker alone" if wanted else ""
        yield MARKED.note(f"{text} “{word.says}”{rests}", marker.span)


def _set_before_marker(note: Note) -> Note:
    """A word whose marker is followed is read otherwise: what its atom means is told as such."""
    if note.code != DIFFERS.code:
        return note
    return DIFFERS.note(f"without its marker {note.text}", note.span)


def note_settings(settings: Sequence[Setting], scope: Scope) -> Iterator[Note]:
    """The notes of what a statement sets."""
    for setting in settings:
        span = (0, setting.start, setting.end)
        if setting.kind == "def":
            senses = scope.vocabulary.find(setting.name) or _first(scope, setting.name)
            if senses and str(setting.value).lower() not in senses:
                said = "/".join(senses)
                meant = quote(str(setting.value))
                text = f"“{setting.name}” is “{said}” in the vocabulary; the sender defines it as {meant}"
                yield REDEFINES.note(text, span)
        elif setting.kind in ("ns", "domain"):
            values = setting.value if isinstance(setting.value, list) else [setting.value]
            for value in values:
                known = scope.vocabulary.names.get(str(value))
                if value not in ("*", "cr") and known is None:
                    yield UNKNOWN_DOMAIN.note(f"this release has no domain {quote(str(value))}", span)
                elif known is not None and known not in scope.vocabulary.domains:
                    yield UNKNOWN_DOMAIN.note(f"the {TITLES[known]} domain has no atoms here", span)


def _first(scope: Scope, name: str) -> tuple[str, ...]:
    return next((found for domain in scope.domains if (found := scope.vocabulary.find(name, domain))), ())


def _note_node(node: Node, domain: str | None, scope: Scope, *, is_declared: bool, is_key: bool) -> Iterator[Note]:
    if node.kind == "unread":
        yield UNREAD.note(f"{quote(node.text[:40])} has no meaning in this dialect", node.span)
    elif node.kind == "value-url":
        yield NOT_FETCHED.note(f"{quote(node.text)} is shown and never fetched", node.span)
    meaning = node.meaning
    if meaning is None:
        return
    if meaning.entry is not None:
        said = f"{quote(node.text)} means {quote(meaning.entry.value)}"
        text = f"{said} because a sender defined it so, not by the vocabulary"
        yield DEFINED.note(text, node.span)
    elif meaning.basis == "unknown" or (is_key and meaning.basis == "inferred"):
        yield _note_unknown(node, domain, scope)
    elif meaning.basis == "inferred":
        text = f"“{node.text}” is not in the vocabulary; it was divided, and may mean {node.says}"
        yield DIVIDED_WORD.note(text, node.span)
    else:
        yield from _note_meanings(node, domain, scope, is_declared)


def _note_meanings(node: Node, domain: str | None, scope: Scope, is_declared: bool) -> Iterator[Note]:
    """What else an exact atom means, meant, or would mean outside the domain in force."""
    meaning = node.meaning
    if meaning is None or not meaning.senses:
        return
    release = scope.vocabulary.release
    atom = node.text.rpartition(":")[2]
    if len(meaning.senses) > 1 and meaning.senses != ("exist", "be"):
        said = " or ".join(f"“{sense}”" for sense in meaning.senses)
        yield TWO_MEANINGS.note(f"“{atom}” means {said}: nothing written says which", node.span)
    others = other_meanings(atom, meaning.domain or "", release)
    if others:
        why = "" if is_declared else ", as no version is declared"
        said = "” or “".join(meaning.senses)
        text = f"“{atom}” is read as “{said}” (v{release}{why}); it was {', '.join(others).replace('/', ' or ')}"
        yield DIFFERS.note(text, node.span)
    if domain is None and meaning.domain is None and (elsewhere := find_withdrawn(atom, release, scope.domains)):
        yield OTHER_DOMAIN.note(f"history: “{atom}” was also {', '.join(elsewhere)}; not in force here", node.span)
    elif domain is None and meaning.domain is not None and (core := scope.vocabulary.find(atom)):
        text = f"“{atom}” is read in the {title_domain(meaning.domain)} domain, which is in force;"
        yield OTHER_DOMAIN.note(f"{text} elsewhere it is “{' or '.join(core)}”", node.span)


def _note_unknown(node: Node, domain: str | None, scope: Scope) -> Note:
    meaning = node.meaning
    if meaning is not None and meaning.readings:
        text = f"“{node.text}” could be divided into {' or '.join(meaning.readings)}: it is not guessed"
        return AMBIGUOUS_WORD.note(text, node.span)
    release = scope.vocabulary.release
    name = scope.vocabulary.names.get(domain or "", "")
    atom = node.text.rpartition(":")[2]
    core = scope.vocabulary.find(atom) if name else ()
    in_core = (f"“{' or '.join(core)}” outside the domains",) if core else ()
    elsewhere = (
        *find_ever(atom, name),
        *in_core,
        *(f"“{said}” {where}" for said, where in find_elsewhere(atom, release)),
    )
    hint = f"; elsewhere it is {', '.join(elsewhere[:4])}" if elsewhere else ""
    where = f"the {TITLES.get(name, name)} words" if name else "the vocabulary"
    return UNKNOWN_WORD.note(f"“{node.text}” is not in {where} of v{release}: its meaning is unknown{hint}", node.span)
