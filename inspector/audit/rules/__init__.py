"""The rules: what an auditor must look at, each a declared object. `RULES` has them all, by code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from . import approval, claims, decoding, grounds, meaning, placing, seals, senders, texts, tools, work
from .rule import Hit, Rule

__all__ = ["BY_NOTE", "MIDDLE_RANK", "RANKS", "RULES", "VERSION", "Hit", "Rule"]

# Raised when a rule changes what it finds: conversations are then examined again, in the background.
VERSION: Final = 18
RULES: Final[Mapping[str, Rule]] = {
    rule.code: rule
    for module in (seals, texts, senders, placing, grounds, work, approval, tools, claims, meaning, decoding)
    for rule in module.RULES
}
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
