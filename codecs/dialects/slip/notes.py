"""The notes of SLIP: one row for each way in which a line can leave the specification."""

from __future__ import annotations

from .._record import Group, NoteKind, Severity
from .tables import MAX_LINES, MAX_REFERENCE, MAX_TOKENS


def _kind(code: str, severity: Severity, group: Group, about: str, cites: str | None = None) -> NoteKind:
    return NoteKind(code=f"slip.{code}", severity=severity, group=group, about=about, cites=cites)


_V1, _WIRE, _INVARIANTS = "slip-spec 2.0 §3", "slipstream-v3.abnf", "spec-00-invariants"

NO_LINE = _kind("no-line", "error", "malformed", "No line of the text begins as SLIP.", _WIRE)
TOO_SHORT = _kind("too-short", "error", "malformed", "A line ends before its act.", _WIRE)
CUT_LINE = _kind(
    "cut-line", "warning", "undecoded", "A line among others ends before its act; it is kept as text.", _WIRE
)
VERSION = _kind("version", "warning", "undecoded", "The version is neither v1 nor v3.", _INVARIANTS)
FORM = _kind("form", "warning", "protocol", "The act is spelt as in the other version.", _INVARIANTS)
UNKNOWN_ACT = _kind(
    "unknown-act", "warning", "undecoded", "The act is in no table; it may be an installation's own.", _V1
)
INDEX = _kind("index", "warning", "undecoded", "The act is a number, and which table it counts in is not said.", _V1)
MISSING_OBJECT = _kind("missing-object", "warning", "protocol", "The act is a force without an object.", _INVARIANTS)
NO_ANCHOR = _kind("no-anchor", "info", "undecoded", "The table holds the force, and not with this object.", _INVARIANTS)
NAME = _kind(
    "name", "warning", "protocol", "The name of an agent has other characters or more than it may.", _INVARIANTS
)
TOKEN = _kind("token", "warning", "protocol", "A token of the payload is not 1 to 30 letters and digits.", _INVARIANTS)
TOO_MANY_TOKENS = _kind(
    "too-many-tokens", "warning", "protocol", f"The payload has more than {MAX_TOKENS} tokens.", _INVARIANTS
)
NO_REFERENCE = _kind("no-reference", "warning", "protocol", "A fallback does not say where its words are.", _INVARIANTS)
REFERENCE = _kind(
    "reference",
    "warning",
    "protocol",
    f"A fallback's reference is not 1 to {MAX_REFERENCE} letters and digits.",
    _INVARIANTS,
)
THREAD_WORD = _kind(
    "thread-word",
    "notice",
    "assumption",
    "A word that begins with “thread” is read as a word and names no thread.",
    _V1,
)
CHOICE = _kind("choice", "warning", "protocol", "The act announced before the line is another one than the line's.")
TOO_MANY_LINES = _kind("too-many-lines", "warning", "undecoded", f"Only the first {MAX_LINES:,} lines are read.")

NOTES = (
    *(NO_LINE, TOO_SHORT, CUT_LINE, VERSION, FORM, UNKNOWN_ACT, INDEX, MISSING_OBJECT, NO_ANCHOR, NAME, TOKEN),
    *(TOO_MANY_TOKENS, NO_REFERENCE, REFERENCE, THREAD_WORD, CHOICE, TOO_MANY_LINES),
)
