"""The rules: what an auditor must look at, each a declared object. `RULES` has them all, by code.

Another package brings rules by entry points of the group `inspector.rules`, each of which names a sequence of them; a
code that there is already stops the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Final

from dialects import digest_installed, list_installed

from . import decoding, placing, security, tools, work
from .rule import Hit, Rule

__all__ = ["BY_NOTE", "MIDDLE_RANK", "RANKS", "RULES", "VERSION", "Hit", "Rule", "name_rule"]

INSTALLED: Final = "inspector.rules"
# Raised when a rule changes what it finds: conversations are then examined again, in the background, as they are when a
# package brings rules, or another version of them.
VERSION: Final = f"22{digest_installed(INSTALLED)}"


def _gather() -> Mapping[str, Rule]:
    modules = (security, placing, work, tools, decoding)
    brought: Iterable[Iterable[Rule]] = (point.load() for point in list_installed(INSTALLED))
    found: dict[str, Rule] = {}
    for rule in chain.from_iterable(chain((module.RULES for module in modules), brought)):
        if found.setdefault(rule.code, rule) is not rule:
            raise ValueError(f"there are two rules {rule.code!r}")
    return found


RULES: Final = _gather()


def name_rule(code: str) -> str:
    """The title of a rule; the code of one that is not here any more."""
    return RULES[code].title if code in RULES else code


# Within one severity these come first, in this order, and what could not be read comes last.
_FIRST: Final = (
    "token-in-clear",
    "end-taken-back",
    "unapproved",
    "nonce-reused",
    "word-redefined",
    "unanswered",
    "missing-message",
)
_LAST: Final = ("malformed", "undecoded")
RANKS: Final[Mapping[str, int]] = {
    **{code: rank for rank, code in enumerate(_FIRST)},
    **dict.fromkeys(_LAST, len(_FIRST) + 1),
}
MIDDLE_RANK: Final = len(_FIRST)
# Which rule gathers a note.
BY_NOTE: Final[Mapping[str, Rule]] = {code: rule for rule in RULES.values() for code in rule.notes}
