"""The glossary of nSLIP, made from the tables that decode and encode: every act, frame, field, agent and mark."""

from __future__ import annotations

from .._dialect import Term
from .tables import ACTS, AGENTS, ALPHABET, FRAMES, SLOTS

_MARKS = (
    ("@", "start", "a tag starts"),
    ("#", "end", "a tag ends, where it stands outside quotes"),
    ("|", "separator", "the next field follows, where it stands outside quotes"),
    ('"', "quote", "a text starts or ends"),
    ('\\"', "escaped quote", "a quote within a text"),
    ("\\\\", "escaped backslash", "a backslash within a text"),
)

GLOSSARY = (
    *(
        Term(kind="act", code=f"a{ALPHABET[act.code]}", name=act.name, meaning=act.use, cites="Acts (speech acts)")
        for act in ACTS.values()
    ),
    *(
        Term(kind="frame", code=f"f{frame.code}", name=frame.name, meaning=frame.use, cites="Frame Types")
        for frame in FRAMES.values()
    ),
    *(
        Term(
            kind="header" if slot.is_header else "slot",
            code=slot.prefix,
            name=slot.name,
            meaning=slot.use,
            cites="Header Fields (required)" if slot.is_header else "Slot Fields (optional)",
        )
        for slot in SLOTS.values()
    ),
    *(
        Term(kind="agent", code=number, name=name, meaning=f"the {name}, by convention", cites="Agent IDs (convention)")
        for number, name in AGENTS.items()
    ),
    *(
        Term(kind="mark", code=code, name=name, meaning=meaning, cites="Message Structure")
        for code, name, meaning in _MARKS
    ),
)
