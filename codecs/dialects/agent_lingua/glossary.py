"""The glossary: every code, sigil and key with its plain meaning, from the tables that decode and encode."""

from __future__ import annotations

from collections.abc import Iterator

from .._dialect import Term
from .tables import (
    ACTIONS,
    BORROWED_OPERATORS,
    CONDITIONS,
    DOMAINS,
    DYNAMIC,
    ERRORS,
    GENERAL_TARGETS,
    IDIOMS,
    KEYS,
    LEVELS,
    MODIFIER_MEANINGS,
    MODIFIERS,
    OPERATORS,
    PREFIXES,
    SIGILS,
    SPELT_KEYS,
    STATUSES,
    SUBMOLTS,
    SUBTYPES,
    TIME_MEANINGS,
    TIME_SYMBOLS,
    UNITS,
)


def _terms() -> Iterator[Term]:
    for domain in DOMAINS.values():
        yield Term(kind="domain", code=domain.code, name=domain.name, meaning=domain.meaning, cites="0.4.0 Domains")
    for action in ACTIONS.values():
        yield Term(kind="action", code=action.code, name=action.name, meaning=action.meaning, cites="0.4.0 Actions")
    for code, meaning in IDIOMS.items():
        yield Term(
            kind="idiom",
            code=f"7{code}",
            name=ACTIONS[code].name,
            meaning=f"on Moltbook: {meaning}",
            cites="0.4.0 Examples",
        )
    for code, name in MODIFIERS.items():
        yield Term(kind="modifier", code=code, name=name, meaning=MODIFIER_MEANINGS[name], cites="0.4.0 Modifiers")
    for sigil, name in SIGILS.items():
        yield Term(kind="field", code=sigil, name=name, meaning=f"the {name} of a statement", cites="0.4.0 Syntax")
    for code, (kind, meaning) in GENERAL_TARGETS.items():
        yield Term(kind="target", code=f"@{code}", name=kind, meaning=meaning, cites="0.4.0 Targets")
    yield Term(kind="target", code="@0", name="self", meaning="the sender itself", cites="0.4.0 Targets")
    for code, name in SUBMOLTS.items():
        yield Term(
            kind="target", code=f"@{code}", name=name, meaning=f"the Moltbook board {name}", cites="0.4.0 Targets"
        )
    yield Term(
        kind="target", code=f"@{DYNAMIC}", name="dynamic", meaning="a board whose name follows", cites="0.4.0 Targets"
    )
    for symbol, kind in TIME_SYMBOLS.items():
        yield Term(kind="time", code=f"~{symbol}", name=kind, meaning=TIME_MEANINGS[symbol], cites="0.4.0 Time")
    for unit, (name, size) in UNITS.items():
        yield Term(kind="unit", code=unit, name=name, meaning=f"{size} seconds" if size > 1 else "1 second")
    for code, (name, words) in CONDITIONS.items():
        yield Term(
            kind="condition", code=f"%{code}", name=name, meaning=f"a condition on {words}", cites="0.4.0 Conditions"
        )
    for code, meaning in {**OPERATORS, **BORROWED_OPERATORS}.items():
        name = "operator" if code in OPERATORS else "operator, not in the table"
        yield Term(kind="operator", code=code, name=name, meaning=meaning, cites="0.4.0 Conditions")
    for letter, (kind, level, meaning) in PREFIXES.items():
        code = f"${letter}:" if letter else "$"
        yield Term(
            kind="payload", code=code, name=kind, meaning=f"{meaning}, security level {level}", cites="0.4.0 Payloads"
        )
    for status in STATUSES.values():
        yield Term(
            kind="status", code=f"^{status.code}", name=status.name, meaning=status.name, cites="0.4.0 Responses"
        )
    for code, name in ERRORS.items():
        yield Term(kind="error", code=f"!E{code}", name=name, meaning=name, cites="0.4.0 Errors")
    for code, name in SUBTYPES.items():
        yield Term(
            kind="error", code=f"!E2{code}", name=name, meaning=f"{name} permission denied", cites="0.4.0 Errors"
        )
    for letter, name in LEVELS.items():
        yield Term(kind="security level", code=letter, name=name, meaning=name, cites="references/security")
    for key, name in {**KEYS, **SPELT_KEYS}.items():
        yield Term(kind="key", code=key, name=name, meaning=f"the {name} in a JSON payload", cites="references/fields")


GLOSSARY: tuple[Term, ...] = tuple(_terms())
