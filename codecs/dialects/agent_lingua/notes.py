"""Every note agent-lingua can make: code, severity, group, what it is about, and the section it cites."""

from __future__ import annotations

from .._record import Group, NoteKind, Severity


def _row(name: str, severity: Severity, group: Group, about: str, cites: str) -> NoteKind:
    return NoteKind(code=f"agent_lingua.{name}", severity=severity, group=group, about=about, cites=cites)


_SYNTAX = "0.4.0 Syntax Structure"
_PAYLOAD = "0.4.0 Payload Encoding"
_TIME = "0.4.0 Time Encoding"
_CONDITION = "0.4.0 Condition Encoding"
_TARGET = "0.4.0 Target Encoding"
_RESPONSE = "0.4.0 Response Format"
_SIGNATURE = "0.4.0 Protocol Signature"
_SECURITY = "references/security"
_HANDSHAKE = "references/handshake"

# What cannot be read at all.
BARE_MARKER = _row("bare-marker", "error", "malformed", "A 👽 with nothing after it says nothing.", _SYNTAX)
SIGNATURE_ALONE = _row("signature-alone", "error", "malformed", "A signature with no message above it.", _SIGNATURE)
UNREADABLE_RESPONSE = _row(
    "unreadable-response", "error", "malformed", "A response whose status is missing.", _RESPONSE
)
UNREADABLE_ERROR = _row(
    "unreadable-error", "error", "malformed", "An error whose type is missing.", "0.4.0 Error Codes"
)

# Syntax.
STRAY_MARKER = _row("stray-marker", "warning", "protocol", "A 👽 with nothing after it beside other parts.", _SYNTAX)
NOT_A_STATEMENT = _row(
    "not-a-statement",
    "warning",
    "protocol",
    "Fields after a 👽 that is not followed by two codes: kept as human text.",
    _SYNTAX,
)
NO_MARKER = _row("no-marker", "notice", "protocol", "Text without 👽 taken for agent-lingua: kept as text.", _SYNTAX)
MARKER_LEFT_OUT = _row("marker-left-out", "warning", "protocol", "A statement after ;; without its 👽.", _SYNTAX)
MARKED_RESPONSE = _row("marked-response", "notice", "protocol", "A response or error that carries a 👽.", _RESPONSE)
UNKNOWN_DOMAIN = _row("unknown-domain", "warning", "undecoded", "A domain code outside the table.", "0.4.0 Domains")
UNKNOWN_ACTION = _row("unknown-action", "warning", "undecoded", "An action code outside the table.", "0.4.0 Actions")
UNKNOWN_STATUS = _row("unknown-status", "warning", "undecoded", "A status code outside the table.", _RESPONSE)
UNKNOWN_ERROR = _row(
    "unknown-error", "warning", "undecoded", "An error type or subtype outside the table.", "0.4.0 Error Codes"
)
UNDOCUMENTED_STATUS = _row(
    "undocumented-status",
    "info",
    "protocol",
    "^A is used by the handshake but missing from the status table.",
    _RESPONSE,
)
LOWER_CASE = _row("lower-case", "notice", "assumption", "A code in lower case, read as its capital.", _SYNTAX)
UNKNOWN_FIELD = _row("unknown-field", "warning", "undecoded", "A field whose sigil the grammar does not have.", _SYNTAX)
REPEATED_FIELD = _row(
    "repeated-field", "warning", "protocol", "A field given twice; no rule says which one counts.", _SYNTAX
)
REPEATED_MODIFIER = _row("repeated-modifier", "notice", "protocol", "A modifier given twice.", "0.4.0 Modifiers")
EMPTY_FIELD = _row("empty-field", "notice", "protocol", "Nothing between two separators, or after a sigil.", _SYNTAX)
EMPTY_STATEMENT = _row("empty-statement", "warning", "protocol", "Nothing beside a ;; that joins.", _SYNTAX)
FIELD_ORDER = _row("field-order", "info", "protocol", "Fields in another order than the grammar's.", _SYNTAX)
JOINT_INSIDE = _row(
    "joint-inside", "warning", "assumption", "A ;; that opens no statement stays in its field.", _SYNTAX
)
BROKEN_LINE = _row("broken-line", "notice", "protocol", "A statement broken over several lines.", _SYNTAX)
LIMIT = _row("limit", "warning", "undecoded", "More statements, fields or modifiers than the decoder reads.", _SYNTAX)
MOJIBAKE = _row("mojibake", "warning", "undecoded", "A 👽 mangled by a wrong character set, repaired.", _SYNTAX)

# Fields.
TARGET_ASSUMED = _row("target-assumed", "notice", "assumption", "A named target taken for an agent.", _TARGET)
TARGET_NUMBER = _row("target-number", "notice", "assumption", "A number that names no target here.", _TARGET)
TARGET_UNNAMED = _row("target-unnamed", "notice", "protocol", "@99 promises a name and gives none.", _TARGET)
TIME_UNREAD = _row("time-unread", "warning", "undecoded", "A time outside the grammar, kept as written.", _TIME)
TIME_COMPOUND = _row("time-compound", "info", "protocol", "A time of several units, as the examples have it.", _TIME)
TIME_IMPLAUSIBLE = _row("time-implausible", "warning", "protocol", "An exact time outside 2000 to 2100.", _TIME)
TIME_WITHOUT_ZONE = _row("time-without-zone", "notice", "assumption", "A time without a zone, taken as UTC.", _TIME)
CONDITION_UNREAD = _row("condition-unread", "warning", "undecoded", "A condition outside the grammar.", _CONDITION)
OPERATOR_BORROWED = _row("operator-borrowed", "warning", "assumption", "An operator the table lacks.", _CONDITION)

# Payloads.
ODD_BASE64 = _row(
    "odd-base64", "notice", "protocol", "Base64 in the URL-safe alphabet, without padding or with breaks.", _PAYLOAD
)
NOT_BASE64 = _row("not-base64", "warning", "undecoded", "A payload that is not Base64: shown as written.", _PAYLOAD)
NOT_TEXT = _row("not-text", "warning", "undecoded", "Bytes that are not UTF-8: shown as hex.", _PAYLOAD)
NOT_JSON = _row("not-json", "warning", "undecoded", "A JSON payload that is not JSON: shown as text.", _PAYLOAD)
BARE_JSON = _row("bare-json", "warning", "protocol", "JSON written openly where Base64 is required.", _PAYLOAD)
DUPLICATE_KEY = _row("duplicate-key", "warning", "protocol", "A JSON key given twice: both are shown.", _PAYLOAD)
NUMBER_RANGE = _row(
    "number-range", "notice", "undecoded", "A number kept as text, for the sake of its digits.", _PAYLOAD
)
TOO_DEEP = _row("too-deep", "warning", "undecoded", "JSON nested deeper than 64: kept as text.", _PAYLOAD)
NOT_ZLIB = _row("not-zlib", "warning", "undecoded", "A compressed payload that cannot be unpacked.", _PAYLOAD)
OTHER_CONTAINER = _row("other-container", "notice", "protocol", "Compressed as gzip or raw deflate.", _PAYLOAD)
TRAILING_DATA = _row("trailing-data", "warning", "undecoded", "Bytes after the end of compressed data.", _PAYLOAD)
TOO_LARGE = _row("too-large", "warning", "security", "Compressed data that unpacks past the bounds.", _PAYLOAD)
NESTED_LIMIT = _row("nested-limit", "warning", "security", "Payloads nested deeper than is opened.", _PAYLOAD)
INNER_JSON = _row("inner-json", "info", "assumption", "Compressed text that is JSON, told as JSON.", _PAYLOAD)
UNKNOWN_PREFIX = _row("unknown-prefix", "warning", "undecoded", "A payload prefix outside the table.", _PAYLOAD)
BOUNDARY = _row("boundary", "notice", "assumption", "Raw text: where it ends is uncertain.", _PAYLOAD)

# Signatures.
UNSIGNED = _row("unsigned", "notice", "protocol", "A message without the protocol's signature line.", _SIGNATURE)
FOREIGN_SOURCE = _row(
    "foreign-source", "warning", "security", "A signature that names another source: never fetched.", _SIGNATURE
)
ODD_SIGNATURE = _row("odd-signature", "notice", "protocol", "A signature not written as the documents do.", _SIGNATURE)
UNKNOWN_VERSION = _row("unknown-version", "notice", "protocol", "A version these tables do not cover.", _SIGNATURE)
AFTER_SIGNATURE = _row(
    "after-signature", "warning", "protocol", "Text below the signature that closes the record.", _SIGNATURE
)

# Security.
PLAINTEXT = _row("plaintext", "notice", "security", "A payload in plaintext ($r:, for debugging only).", _SECURITY)
MODIFIER_DISAGREES = _row(
    "modifier-disagrees", "warning", "security", "Modifier 7 or 8 promises more than the prefix.", _SECURITY
)
MODIFIER_MISSING = _row(
    "modifier-missing", "info", "protocol", "A compressed payload without modifier 8.", "0.4.0 Modifiers"
)
CANDIDATE = _row(
    "candidate",
    "info",
    "assumption",
    "An answer without 👽 and signature, outside a conversation in agent-lingua.",
    _RESPONSE,
)
IDIOM = _row(
    "idiom", "info", "assumption", "An action read by Moltbook's idiom, against the action table.", "0.4.0 Actions"
)
ANSWER_INFERRED = _row(
    "answer-inferred", "info", "assumption", "That it answers a handshake is inferred: no id says so.", _HANDSHAKE
)
ZERO_BYTES = _row("zero-bytes", "info", "security", "Nonce and ciphertext are nothing but zero bytes.", _SECURITY)
SESSION_MISSING = _row("session-missing", "warning", "security", "An encrypted message without #session.", _SECURITY)
SESSION_UNKNOWN = _row(
    "session-unknown", "warning", "security", "An encrypted message in a session never agreed here.", _SECURITY
)
SESSION_ENDED = _row("session-ended", "warning", "security", "An encrypted message in an ended session.", _SECURITY)
SESSION_OVERUSED = _row(
    "session-overused", "warning", "security", "Over 1000 messages or 24 hours on one session key.", _SECURITY
)
NONCE_REUSED = _row("nonce-reused", "warning", "security", "A nonce used twice in one session.", _SECURITY)
NONCE_SIZE = _row("nonce-size", "warning", "security", "A nonce that is not 12 bytes long.", _SECURITY)
SEALED_SHORT = _row("sealed-short", "warning", "security", "Ciphertext shorter than its tag.", _SECURITY)
SEALED_UNREAD = _row(
    "sealed-unread", "warning", "undecoded", "An encrypted payload not of two Base64 parts.", _SECURITY
)
NOT_AUTHENTIC = _row(
    "not-authentic", "error", "security", "No key held opens it: the authentication tag does not fit.", _SECURITY
)
DOWNGRADE = _row("downgrade", "warning", "security", "A level agreed below the offer of both sides.", _SECURITY)
BELOW_OFFER = _row("below-offer", "notice", "security", "A level agreed below the offer of one side.", _SECURITY)
KEY_CHANGED = _row("key-changed", "warning", "security", "An agent's public key or fingerprint changed.", _SECURITY)
KEY_SHARED = _row("key-shared", "warning", "security", "Two agents show the same public key.", _SECURITY)
KEY_PARTIAL = _row(
    "key-partial", "notice", "security", "A public key is only partly shown: it cannot be compared.", _SECURITY
)
KEY_PASSED_ON = _row(
    "key-passed-on", "notice", "security", "A public key outside of a handshake: it may be another's.", _SECURITY
)
SUCCESS_DISAGREES = _row(
    "success-disagrees", "warning", "protocol", "A status of success, and a payload that says it failed.", _RESPONSE
)
KEY_MISLABELLED = _row(
    "key-mislabelled", "warning", "security", "A key called X25519 whose prefix says Ed25519.", _SECURITY
)
KEY_WEAK = _row("key-weak", "warning", "security", "A public key of low order: it agrees on no secret.", _SECURITY)
ANSWER_DISAGREES = _row(
    "answer-disagrees", "warning", "protocol", "A status and an `accepted` that contradict each other.", _HANDSHAKE
)

NOTES: tuple[NoteKind, ...] = tuple(value for value in list(globals().values()) if isinstance(value, NoteKind))
