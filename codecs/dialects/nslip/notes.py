"""The notes of nSLIP: one row for each way in which a wire can leave the specification.

`cites` names a heading of the nSLIP protocol skill.
"""

from __future__ import annotations

from .._record import Group, NoteKind, Severity
from .tables import MAX_FIELDS, MAX_TAGS


def _kind(code: str, severity: Severity, group: Group, about: str, cites: str | None = None) -> NoteKind:
    return NoteKind(code=f"nslip.{code}", severity=severity, group=group, about=about, cites=cites)


_STRUCTURE, _HEADER_TABLE, _SLOT_TABLE = "Message Structure", "Header Fields (required)", "Slot Fields (optional)"
_NUMBERS, _STRINGS = "Integers: Base62", "Strings: Quoted"

NO_TAG = _kind("no-tag", "error", "malformed", "There is no tag in the text.", _STRUCTURE)
UNCLOSED = _kind("unclosed", "error", "malformed", "A tag has no closing # outside quotes.", _STRUCTURE)
UNCLOSED_QUOTE = _kind("unclosed-quote", "error", "malformed", "A quoted text has no closing quote.", _STRINGS)
NO_HEADER = _kind(
    "no-header", "error", "malformed", "None of the six header fields of a tag can be read.", _HEADER_TABLE
)
LEGACY_HEADER = _kind(
    "legacy-header",
    "notice",
    "deprecated",
    "Legacy lower-case header (v0.0): the first unquoted s is the sender, the first unquoted t the turn.",
    _HEADER_TABLE,
)
MISSING_HEADER = _kind("missing-header", "warning", "protocol", "A required header field is missing.", _HEADER_TABLE)
DUPLICATE = _kind("duplicate", "warning", "protocol", "A field stands twice; the first one is used.", _STRUCTURE)
UNKNOWN_PREFIX = _kind(
    "unknown-prefix", "warning", "undecoded", "A field has a prefix that the tables do not hold.", _SLOT_TABLE
)
UNKNOWN_ACT = _kind("unknown-act", "warning", "undecoded", "The act's code is not in the table.", "Acts (speech acts)")
UNKNOWN_FRAME = _kind("unknown-frame", "warning", "undecoded", "The frame's code is not in the table.", "Frame Types")
EMPTY_VALUE = _kind("empty-value", "warning", "protocol", "A field has a prefix and no value.", "Value Encoding")
EMPTY_FIELD = _kind("empty-field", "warning", "protocol", "There is nothing between two separators.", _STRUCTURE)
UNQUOTED = _kind("unquoted", "warning", "protocol", "A text stands without quotes; it is kept as text.", _STRINGS)
QUOTED_NUMBER = _kind(
    "quoted-number", "warning", "undecoded", "A quoted text stands where a number belongs.", "Value Encoding"
)
NOT_A_NUMBER = _kind(
    "not-a-number", "warning", "undecoded", "A fraction, a negative or another text is no base62 number.", _NUMBERS
)
TOO_LARGE = _kind("too-large", "warning", "undecoded", "A number does not fit in 64 bits; its text is kept.", _NUMBERS)
LEADING_ZEROS = _kind("leading-zeros", "info", "protocol", "A number is written with leading zeros.", _NUMBERS)
BARE_TEXT = _kind(
    "bare-text", "notice", "assumption", "A quoted text without a prefix is read as the tag.", _SLOT_TABLE
)
UNKNOWN_ESCAPE = _kind(
    "unknown-escape", "warning", "protocol", "A backslash stands before neither a quote nor a backslash.", _STRINGS
)
ESCAPED_QUOTES = _kind(
    "escaped-quotes",
    "notice",
    "assumption",
    'Quotation marks are escaped, as in a program\'s source: \\" is read as ".',
    _STRINGS,
)
AFTER_QUOTE = _kind("after-quote", "warning", "undecoded", "Characters follow a closing quote.", _STRINGS)
SPACE = _kind("space", "warning", "protocol", "White space stands around a field.", _STRUCTURE)
OUT_OF_RANGE = _kind("out-of-range", "warning", "protocol", "A priority or a score is out of its range.", _SLOT_TABLE)
TOO_MANY_FIELDS = _kind(
    "too-many-fields", "warning", "undecoded", f"Only the first {MAX_FIELDS} fields of a tag are read.", _STRUCTURE
)
TOO_MANY_TAGS = _kind(
    "too-many-tags", "warning", "undecoded", f"Only the first {MAX_TAGS} tags of a record are read.", _STRUCTURE
)

NOTES = (
    NO_TAG,
    UNCLOSED,
    UNCLOSED_QUOTE,
    NO_HEADER,
    LEGACY_HEADER,
    MISSING_HEADER,
    DUPLICATE,
    UNKNOWN_PREFIX,
    UNKNOWN_ACT,
    UNKNOWN_FRAME,
    EMPTY_VALUE,
    EMPTY_FIELD,
    UNQUOTED,
    QUOTED_NUMBER,
    NOT_A_NUMBER,
    TOO_LARGE,
    LEADING_ZEROS,
    BARE_TEXT,
    UNKNOWN_ESCAPE,
    ESCAPED_QUOTES,
    AFTER_QUOTE,
    SPACE,
    OUT_OF_RANGE,
    TOO_MANY_FIELDS,
    TOO_MANY_TAGS,
)
