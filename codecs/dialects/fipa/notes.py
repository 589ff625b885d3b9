"""The notes of FIPA-ACL and KQML: one row for each way in which a text can leave its specification."""

from __future__ import annotations

from .._record import Group, NoteKind, Severity
from .tables import MAX_DEPTH, MAX_MESSAGES, MAX_PARAMETERS


def _kind(code: str, severity: Severity, group: Group, about: str, cites: str | None = None) -> NoteKind:
    return NoteKind(code=f"fipa.{code}", severity=severity, group=group, about=about, cites=cites)


_SYNTAX, _PARAMETERS, _ACTS = "SC00070I §3", "SC00061G §2", "SC00037J §3"

NO_MESSAGE = _kind("no-message", "error", "malformed", "There is no message in the text.", _SYNTAX)
UNCLOSED = _kind("unclosed", "error", "malformed", "A message has no closing bracket.", _SYNTAX)
UNCLOSED_TEXT = _kind("unclosed-text", "error", "malformed", "A quoted text has no closing quote.", _SYNTAX)
TOO_SHORT = _kind(
    "too-short", "error", "malformed", "Fewer bytes follow than a text of counted bytes says, or a cut character.",
    _SYNTAX,
)  # fmt: skip
UNKNOWN_ACT = _kind("unknown-act", "warning", "undecoded", "The act is in neither vocabulary.", _ACTS)
UNKNOWN_PARAMETER = _kind(
    "unknown-parameter", "warning", "undecoded", "A parameter is in no table, and its name does not begin with X-.",
    _PARAMETERS,
)  # fmt: skip
DUPLICATE = _kind("duplicate", "warning", "protocol", "A parameter stands twice; the first one is used.", _SYNTAX)
NO_VALUE = _kind("no-value", "warning", "protocol", "A parameter has no value, or an empty one.", _SYNTAX)
STRAY = _kind("stray", "warning", "undecoded", "A value stands without the name of a parameter.", _SYNTAX)
NO_AGENT = _kind("no-agent", "warning", "undecoded", "An agent is written so that it has no name.", _SYNTAX)
BARE_AGENT = _kind(
    "bare-agent", "notice", "protocol", "FIPA: an agent is a bare name and no agent-identifier, or stands in no set.",
    _SYNTAX,
)  # fmt: skip
BARE_CONTENT = _kind("bare-content", "notice", "protocol", "FIPA: the content stands without quotes.", _SYNTAX)
TIME = _kind("time", "warning", "undecoded", "The time for an answer cannot be read; it is kept as text.", _SYNTAX)
LOCAL_TIME = _kind("local-time", "notice", "assumption", "A time names no zone: its instant is not known.", _SYNTAX)
TOO_DEEP = _kind(
    "too-deep", "warning", "undecoded", f"Lists are taken apart {MAX_DEPTH} levels deep; what is deeper is text."
)
CONTENT_TOO_DEEP = _kind(
    "content-too-deep", "warning", "security", "Contents inside contents, deeper or more of them than are read in turn."
)
TOO_MANY_PARAMETERS = _kind(
    "too-many-parameters", "warning", "undecoded", f"Only the first {MAX_PARAMETERS} parameters of a message are read."
)
TOO_MANY_MESSAGES = _kind(
    "too-many-messages", "warning", "undecoded", f"Only the first {MAX_MESSAGES} messages of a record are read."
)

NOTES = (
    NO_MESSAGE,
    UNCLOSED,
    UNCLOSED_TEXT,
    TOO_SHORT,
    UNKNOWN_ACT,
    UNKNOWN_PARAMETER,
    DUPLICATE,
    NO_VALUE,
    STRAY,
    NO_AGENT,
    BARE_AGENT,
    BARE_CONTENT,
    TIME,
    LOCAL_TIME,
    TOO_DEEP,
    CONTENT_TOO_DEEP,
    TOO_MANY_PARAMETERS,
    TOO_MANY_MESSAGES,
)
