"""The tables of nSLIP: acts, frames, fields and conventional agents; decoding, English and encoding share them.

Specification: the nSLIP protocol skill of SLIPCore 0.1. Section names in `cites` are its headings.
"""

from __future__ import annotations

from typing import Literal

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
