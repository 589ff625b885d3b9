"""The tables of nSLIP: acts, frames, fields and conventional agents; decoding, English and encoding share them, and the
glossary is made of them. And the notes: one row for each way in which a wire can leave the specification.

Specification: the nSLIP protocol skill of SLIPCore 0.1. Section names in `cites` are its headings.

`cites` names a heading of the nSLIP protocol skill.
"""

from __future__ import annotations

from typing import Literal

from .._dialect import Term
from .._record import Group, NoteKind, Severity
from .._value import Value

# The act and frame tables, and so the meaning of every message, are those of this version.
VOCABULARY = "0.1"

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

# The largest number read: a signed word of 64 bits. It takes eleven digits; ten always fit.
MAX_NUMBER = 2**63 - 1
MAX_NUMBER_LENGTH = 11

# A tag with more fields, or a record with more tags, is not written by any agent in good faith.
MAX_FIELDS = 200
MAX_TAGS = 10_000


class Act(Value):
    """A speech act. `verb` is its predicate, `{whom}` the receiver; `article` picks the frame's noun after it."""

    code: int
    name: str
    performative: str
    use: str
    verb: str
    article: Literal["a", "the"]


# Section "Acts (speech acts)".
ACTS = {
    act.code: act
    for act in (
        Act(
            code=0,
            name="OBSERVE",
            performative="observe",
            use="reports new information about the world or its state",
            verb="reports to {whom} what it sees of",
            article="the",
        ),
        Act(
            code=1,
            name="INFORM",
            performative="inform",
            use="states derived information or a belief",
            verb="informs {whom} of",
            article="a",
        ),
        Act(
            code=2,
            name="ASK",
            performative="query",
            use="asks for information",
            verb="asks {whom} for information about",
            article="the",
        ),
        Act(
            code=3,
            name="REQUEST",
            performative="request",
            use="asks for a task or an operation",
            verb="asks {whom} for",
            article="a",
        ),
        Act(
            code=4,
            name="PROPOSE",
            performative="propose",
            use="proposes a plan or an option",
            verb="proposes to {whom}",
            article="a",
        ),
        Act(
            code=5,
            name="COMMIT",
            performative="commit",
            use="commits to a plan or a task",
            verb="tells {whom} that it commits to",
            article="the",
        ),
        Act(
            code=6,
            name="ACCEPT",
            performative="accept",
            use="accepts a plan or a request",
            verb="tells {whom} that it accepts",
            article="the",
        ),
        Act(
            code=7,
            name="REJECT",
            performative="reject",
            use="rejects a plan or a request",
            verb="tells {whom} that it rejects",
            article="the",
        ),
        Act(
            code=8,
            name="EVAL",
            performative="evaluate",
            use="evaluates a plan or a result",
            verb="gives {whom} its evaluation of",
            article="the",
        ),
        Act(
            code=9,
            name="ERROR",
            performative="failure",
            use="reports an error",
            verb="reports to {whom} an error in",
            article="the",
        ),
        Act(
            code=10,
            name="META",
            performative="control",
            use="updates the protocol or the capabilities",
            verb="sends {whom} a protocol or capability update about",
            article="the",
        ),
    )
}


class Frame(Value):
    """A frame type. `a` and `the` are its nouns (empty: the task itself); `link` ties the task to the noun."""

    code: int
    name: str
    use: str
    a: str
    the: str
    link: str


# Section "Frame Types".
FRAMES = {
    frame.code: frame
    for frame in (
        Frame(code=0, name="TASK", use="the definition or status of a task", a="", the="", link=""),
        Frame(code=1, name="PLAN", use="a plan with steps", a="a plan", the="the plan", link="for"),
        Frame(
            code=2,
            name="OBSERVATION",
            use="an observation about the environment",
            a="an observation",
            the="the observation",
            link="on",
        ),
        Frame(
            code=3,
            name="EVALUATION",
            use="an evaluation of something",
            a="an evaluation",
            the="the evaluation",
            link="of",
        ),
        Frame(
            code=4,
            name="CONTROL",
            use="the protocol itself",
            a="the protocol",
            the="the protocol",
            link="for",
        ),
    )
}

# Where act and frame say the same thing twice, or need another word between them, the pair has words of its own:
# (verb, noun before the task).
PAIRS = {
    (0, 2): ("reports to {whom}", "an observation"),
    (1, 0): ("informs {whom} about", ""),
    (1, 1): ("informs {whom} about", "the plan"),
    (1, 4): ("informs {whom} about", "the protocol"),
    (3, 0): ("asks {whom} to do", ""),
    (3, 4): ("asks {whom} for", "a protocol operation"),
    (4, 0): ("proposes to {whom} to do", ""),
    (4, 4): ("proposes to {whom}", "a protocol option"),
    (5, 4): ("tells {whom} that it commits to", "the protocol operation"),
    (6, 4): ("tells {whom} that it accepts", "the protocol operation"),
    (7, 4): ("tells {whom} that it rejects", "the protocol operation"),
    (8, 3): ("gives {whom}", "its evaluation"),
    (9, 4): ("reports to {whom} an error", "at the protocol level"),
    (10, 4): (
        "sends {whom}",
        "a protocol-control message (META, frame CONTROL: protocol or capability update)",
    ),
}

# The names an agent bears by convention: section "Agent IDs (convention)". A channel can name them otherwise.
AGENTS = {"0": "coordinator", "1": "planner", "2": "executor", "3": "critic"}


class Slot(Value):
    """A field of the tag, header fields included. `name` is the specification's; `field` names it in our tree."""

    prefix: str
    name: str
    field: str
    label: str
    use: str
    is_header: bool = False
    is_text: bool = False


# Sections "Header Fields (required)" and "Slot Fields (optional)", in the order in which a tag is written.
SLOTS = {
    slot.prefix: slot
    for slot in (
        Slot(prefix="a", name="act", field="act", label="act", use="the speech act", is_header=True),
        Slot(prefix="f", name="frame", field="frame", label="frame", use="the frame type", is_header=True),
        Slot(
            prefix="c",
            name="conv_id",
            field="conversation",
            label="conversation",
            use="the conversation or session",
            is_header=True,
        ),
        Slot(prefix="S", name="src", field="sender", label="sender", use="the source agent", is_header=True),
        Slot(prefix="d", name="dst", field="receiver", label="receiver", use="the destination agent", is_header=True),
        Slot(prefix="T", name="turn", field="turn", label="turn", use="the turn's number", is_header=True),
        Slot(prefix="g", name="GOAL_ID", field="goal", label="goal", use="the goal that the work serves"),
        Slot(prefix="k", name="TASK_ID", field="task", label="task", use="the task"),
        Slot(prefix="p", name="PARENT_TASK_ID", field="parent_task", label="parent task", use="the task above it"),
        Slot(prefix="r", name="RESULT_ID", field="result", label="result", use="the result"),
        Slot(prefix="q", name="PRIORITY", field="priority", label="priority", use="the priority, 1 to 3"),
        Slot(prefix="s", name="SCORE", field="score", label="score", use="the score, 0 to 10"),
        Slot(prefix="u", name="STATUS", field="status", label="status", use="a short status text", is_text=True),
        Slot(prefix="e", name="ERROR_CODE", field="error", label="error code", use="the error's number"),
        Slot(prefix="t", name="TAG", field="tag", label="tag", use="a short text that names the matter", is_text=True),
    )
}
HEADER = "afcSdT"

# A range that the specification states for a slot: lowest, highest.
RANGES = {"q": (1, 3), "s": (0, 10)}


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
