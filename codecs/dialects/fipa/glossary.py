"""The glossary of FIPA-ACL and KQML, made from the tables that decode and encode: acts, parameters and marks."""

from __future__ import annotations

from .._dialect import Term
from .tables import ACTS, FIPA, KQML_SLOTS, SLOTS, VOCABULARIES

_MARKS = (
    ("(", "start", "a message or a list starts"),
    (")", "end", "a message or a list ends"),
    (":", "parameter", "the name of a parameter follows"),
    ('"', "quote", "a text starts or ends"),
    ('\\"', "escaped quote", "a quote within a text"),
    ('#5"', "counted text", "a text of so many bytes follows, and no quote ends it"),
)

GLOSSARY = (
    *(
        Term(kind=f"act of {act.vocabulary}", code=act.name, name=act.name, meaning=act.use,
             cites=VOCABULARIES[act.vocabulary])
        for act in sorted(ACTS.values(), key=lambda act: act.vocabulary != FIPA)
    ),
    *(
        Term(kind="parameter", code=f":{slot.key}", name=slot.label, meaning=slot.use,
             cites="KQML 1997" if slot.key in KQML_SLOTS else "SC00061G §2")
        for slot in SLOTS.values()
    ),
    *(
        Term(kind="mark", code=code, name=name, meaning=meaning, cites="SC00070I §3")
        for code, name, meaning in _MARKS
    ),
)  # fmt: skip
