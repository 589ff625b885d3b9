"""What reading a CLowl message can notice: one row for each kind of note."""

from __future__ import annotations

from .._record import Group, NoteKind, Severity


def _kind(name: str, severity: Severity, group: Group, about: str, cites: str | None = None) -> NoteKind:
    return NoteKind(code=f"clowl.{name}", severity=severity, group=group, about=about, cites=cites)


EMPTY = _kind("empty", "error", "malformed", "There is no text to read.")
NOT_JSON = _kind("not-json", "error", "malformed", "The text opens as CLowl and is not JSON.", "RFC 8259")
TOO_DEEP = _kind("too-deep", "error", "malformed", "The nesting is deeper than 100 levels and is not read.")
NUMBER_TOO_LONG = _kind("number-too-long", "error", "malformed", "A number has more than 5,000 digits.")
NOT_CLOWL = _kind("not-clowl", "error", "malformed", "The text has none of the keys that make a CLowl message.")
PART_NOT_READ = _kind("part-not-read", "error", "undecoded", "One part of the record is not JSON; the others are read.")

MISSING = _kind("missing", "warning", "protocol", "A required field is missing.", "clowl-schema required")
UNKNOWN_KEY = _kind(
    "unknown-key", "warning", "protocol", "A key that the schema does not have; kept.", "clowl-schema properties"
)
PROBABLY_MEANT = _kind(
    "probably-meant", "warning", "assumption", "A foreign key that probably stands for a real one; not read as it."
)
WRONG_TYPE = _kind("wrong-type", "warning", "protocol", "A field holds another type than it must.", "clowl-schema type")
TOO_LONG = _kind("too-long", "warning", "protocol", "A field is longer than it may be.", "clowl-schema maxLength")
EMPTY_FIELD = _kind("empty-field", "warning", "protocol", "A required field is there and empty.", "spec-v0.2 §3")
PATTERN = _kind(
    "pattern", "warning", "protocol", "A value does not have the form it must have.", "clowl-schema pattern"
)
VERSION = _kind(
    "version", "warning", "protocol", "The version is not one this text can be checked against (E014).", "spec-v0.2 §7"
)
VERSION_INFERRED = _kind(
    "version-inferred", "notice", "assumption", "No version is given; it was read by the keys it has.", "spec-v0.2 §3"
)
UNKNOWN_ACT = _kind("unknown-act", "warning", "protocol", "The performative is none of CLowl's.", "spec-v0.2 §4")
ACT_CASE = _kind("act-case", "warning", "protocol", "The performative is not in capitals.", "spec-v0.2 §4")
ACT_OF_ANOTHER_VERSION = _kind(
    "act-of-another-version", "warning", "protocol", "The performative is not one of this version's.", "spec-v0.1 §4"
)
NO_RECEIVER = _kind("no-receiver", "warning", "protocol", "The list of receivers is empty.", "clowl-schema minItems")
RECEIVER_TWICE = _kind("receiver-twice", "notice", "protocol", "A receiver is named more than once.")
TIME = _kind("time", "warning", "protocol", "The time is not plausible and orders nothing.", "spec-v0.2 §3")
DELEGATION_MODE = _kind(
    "delegation-mode", "warning", "protocol", "A delegation names no mode, or one that is none.", "spec-v0.2 §4"
)
ERROR_CODE = _kind("error-code", "warning", "protocol", "The error code is in no table.", "spec-v0.2 §7")
RETRY_DISAGREES = _kind(
    "retry-disagrees", "warning", "protocol", "The message and the table disagree on a retry.", "spec-v0.2 §7"
)
DONE_FAILING = _kind(
    "done-failing",
    "warning",
    "protocol",
    "It says DONE, and its data say that it failed or is not done.",
    "spec-v0.2 §4",
)
ACK_REFUSING = _kind(
    "ack-refusing", "warning", "protocol", "It says ACK, and its data say that it does not accept.", "spec-v0.2 §4"
)
ACT_DENIED = _kind(
    "act-denied", "warning", "protocol", "It says PROG or ERR, and its data say the contrary.", "spec-v0.2 §4"
)
PROGRESS = _kind("progress", "warning", "protocol", "The percentage is not a number from 0 to 100.", "spec-v0.2 §4")
CAPABILITIES = _kind("capabilities", "warning", "protocol", "The capabilities are not a list of names.", "spec-v0.2 §4")
PARTIES_DISAGREE = _kind(
    "parties-disagree", "warning", "protocol", "The routing and the message inside name different parties."
)
STATE = _kind("state", "warning", "protocol", "The state is none of the nine.", "clowl-coordination state")
DUPLICATE_KEY = _kind(
    "duplicate-key", "warning", "protocol", "A key stands more than once; the last is read.", "RFC 8259 §4"
)
CONTROL_CHARACTER = _kind(
    "control-character", "warning", "protocol", "A string holds a raw control character.", "RFC 8259 §7"
)
STRAY_COMMA = _kind("stray-comma", "notice", "protocol", "A comma stands where no list needs it.", "RFC 8259 §2")
UNCLOSED_LIST = _kind("unclosed-list", "warning", "protocol", "A list of messages is not closed, or never opened.")
EXACT_NUMBER = _kind("exact-number", "info", "protocol", "A number is kept as text, for the sake of its digits.")
NUL = _kind("nul", "info", "security", "A string holds the character U+0000.")
SURROGATE = _kind("surrogate", "notice", "protocol", "A string holds half a character (a lone surrogate).")
TOKEN = _kind("token", "info", "security", "It carries a token; nothing here verifies it.", "spec-v0.2 §3")
CONTEXT_TEXT = _kind(
    "context-text", "notice", "deprecated", "The context is a text, as in v0.1 and the v0.2 draft.", "spec-v0.1 §5"
)
TRACE_KEYS = _kind(
    "trace-keys", "notice", "deprecated", "The trace uses tid and pid, as in the draft's example.", "architecture-v0.3"
)
PROSE_AROUND = _kind("prose-around", "info", "undecoded", "Text stands around the message; it is a part of its own.")
FOREIGN_OBJECT = _kind(
    "foreign-object", "info", "undecoded", "A JSON value that is no CLowl message stands beside one."
)
FENCED = _kind("fenced", "info", "protocol", "The message stands in a code fence.")
COMMENT = _kind("comment", "info", "protocol", "A comment stands beside the message.")
BYTE_ORDER_MARK = _kind("byte-order-mark", "info", "protocol", "The text begins with a byte order mark.")
LIFECYCLE = _kind(
    "lifecycle",
    "info",
    "sequence",
    "One of the two published state machines would refuse this step; they disagree, so it is advice.",
    "state-machine; clowl-ts",
)
MORE = _kind("more", "info", "protocol", "There is more to note than is listed: the list ends after 64.")

NOTES = tuple(kind for kind in list(globals().values()) if isinstance(kind, NoteKind))
