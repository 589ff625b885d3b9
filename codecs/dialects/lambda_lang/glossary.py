"""The glossary: every type, form, error, joiner, letter and atom with its meaning, from the tables that decode."""

from __future__ import annotations

from collections.abc import Iterator

from .._dialect import Term
from .json_forms import TYPES_BY_NAME
from .json_layers import JSON_KEYS
from .protocol import (
    ACKS,
    ASPECTS,
    COUNTER,
    DEMONSTRATIVES,
    EMOTIONS,
    ENTITIES,
    ERRORS,
    FLOOR,
    HANDSHAKES,
    JOINERS,
    MARKERS,
    MODALS,
    OLD_ASPECTS,
    QUANTIFIERS,
    TASK_KEYS,
    TENSES,
    TRUST,
    TYPES,
    Act,
)
from .vocabulary import TITLES, History, histories


def make_glossary() -> tuple[Term, ...]:
    """Every row of every table, in the order in which a reader meets them."""
    return (*_protocol_terms(), *_json_terms(), *_letter_terms(), *_atom_terms())


def _act_terms(kind: str, acts: dict[str, Act]) -> Iterator[Term]:
    for code, act in acts.items():
        yield Term(kind=kind, code=code, name=act.name, meaning=act.meaning, cites=act.cites)


def _protocol_terms() -> Iterator[Term]:
    yield from _act_terms("type", TYPES)
    yield from _act_terms("acknowledgement", ACKS)
    yield Term(kind="acknowledgement", code="<->…", name=COUNTER.name, meaning=COUNTER.meaning, cites=COUNTER.cites)
    yield from _act_terms("floor", FLOOR)
    yield from _act_terms("handshake", HANDSHAKES)
    for code, error in ERRORS.items():
        yield Term(kind="error", code=f"!er:{code}", name=error.name, meaning=error.remedy, cites=error.cites)
    for code, (name, meaning) in TRUST.items():
        yield Term(kind="trust", code=f"{code}:", name=name, meaning=meaning, cites="v0.6 §7.3")
    for code, meaning in TASK_KEYS.items():
        yield Term(
            kind="key", code=code, name=meaning, meaning=f"in a task or status block: {meaning}", cites="v0.6 §6"
        )


def _json_terms() -> Iterator[Term]:
    for name, symbol in TYPES_BY_NAME.items():
        meaning = f"in the JSON form of v0.9: {TYPES[symbol].meaning if symbol in TYPES else ACKS[symbol].meaning}"
        yield Term(kind="JSON type", code=name, name=f"type {symbol}", meaning=meaning, cites="v0.9 §7.1")
    for key, (label, meaning) in JSON_KEYS.items():
        yield Term(kind="JSON key", code=key, name=label, meaning=meaning, cites="v0.9 §7.1")


def _letter_terms() -> Iterator[Term]:
    tables = (
        ("entity", ENTITIES),
        ("joiner", JOINERS),
        ("quantity", QUANTIFIERS),
        ("emotion", EMOTIONS),
        ("tense", TENSES),
        ("aspect", ASPECTS | {letter: f"{said} (v0.3)" for letter, said in OLD_ASPECTS.items()}),
        ("modal", {letter: f"{said} (v0.3)" for letter, (said, *_) in MODALS.items()}),
        ("demonstrative", {sign: f"{said} (v0.3)" for sign, said in DEMONSTRATIVES.items()}),
        ("voice", {"~v~": "the passive (v0.3)"}),
        ("marker", {f"'{letter}": meaning for letter, meaning in MARKERS.items()}),
    )
    for kind, table in tables:
        for code, meaning in table.items():
            yield Term(kind=kind, code=code, name=meaning, meaning=meaning, cites="v0.1 to v0.8")


def _atom_terms() -> Iterator[Term]:
    for domain, table in histories().items():
        kind = f"{TITLES[domain]} atom" if domain else "atom"
        for atom, history in table.items():
            last = next((meaning for _, meaning in reversed(history) if meaning), "")
            yield Term(kind=kind, code=atom, name=last, meaning=_say_history(history), cites=f"v{history[0][0]}")


def _say_history(history: History) -> str:
    if len(history) == 1:
        return f"{history[0][1]}".replace("/", " or ")
    said = [f"{(meaning or 'withdrawn').replace('/', ' or ')} from v{release}" for release, meaning in history]
    return ", ".join(said)
