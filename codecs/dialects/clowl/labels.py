"""What notes call a place in a message: the label of a known field, else its key in quotation marks."""

from __future__ import annotations

from .._english import quote
from .._positions import Path
from .tables import FIELDS

# What stands within these is found without their name: nobody looks for the task anywhere but in the body.
_UNSAID = frozenset({(), ("body",), ("body", "d"), ("semantic",), ("data",), ("semantic", "data")})


def say_field(path: Path) -> str:
    """A place in words: `the task`, `the key “x”`, `item 2 of the receiver`. The note's span shows where it is."""
    if not path:
        return "the message"
    step = path[-1]
    if isinstance(step, int):
        return f"item {step + 1} of {say_field(path[:-1])}"
    code = ".".join(str(step) for step in path)
    known = FIELDS.get(code) or FIELDS.get(code.removeprefix("semantic."))
    within = "" if path[:-1] in _UNSAID or (known and "." in code) else f" in {say_field(path[:-1])}"
    return f"the {known[0]}{within}" if known else f"the key {quote(step)}{within}"
