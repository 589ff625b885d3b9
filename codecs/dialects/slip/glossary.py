"""The glossary of SLIP, made from the tables that read and write: every anchor in both spellings, force and mark."""

from __future__ import annotations

from .._dialect import Term
from .reading import mean
from .tables import ANCHORS, FORCES, VOCABULARIES

_MARKS = (
    ("SLIP v1", "opening", "a message follows: sender, receiver, anchor and payload"),
    ("SLIP v3", "opening", "a message follows: sender, receiver, force, object and payload"),
    ("thread…", "thread", "the conversation, behind the anchor of SLIP v1: the rest of the word, which has a digit"),
    ("THOUGHT:", "thought", "a thought of the sender, on a line before its message"),
    ("QUANTIZE:", "choice", "the act that the sender chose, on the line before its message"),
)

GLOSSARY = (
    *(
        Term(kind="force", code=name, name=name, meaning=f"sends {force.noun}", cites="slipstream-v3.abnf")
        for name, force in FORCES.items()
    ),
    *(
        Term(kind=f"anchor of {version}", code=anchor.spell(version), name=f"0x{anchor.number:04X}",
             meaning=mean(anchor.words), cites=VOCABULARIES[version])
        for version in VOCABULARIES
        for anchor in ANCHORS
        if (anchor.is_v3 if version == "v3" else anchor.mnemonic)
    ),
    *(Term(kind="mark", code=code, name=name, meaning=meaning) for code, name, meaning in _MARKS),
)  # fmt: skip
