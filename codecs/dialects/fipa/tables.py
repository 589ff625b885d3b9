"""The tables of FIPA-ACL and KQML: acts and parameters; decoding, English and encoding share them, and the glossary is
made of them. And the notes: one row for each way in which a text can leave its specification.

Specifications: FIPA SC00037J (the acts), SC00061G (the parameters), SC00070I (their form as text); Labrou and Finin, "A
Proposal for a new KQML Specification", 1997, with the older names of 1993.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from .._dialect import Term
from .._record import Group, NoteKind, Severity

FIPA, KQML = "FIPA-ACL", "KQML"
VOCABULARIES = {FIPA: "FIPA SC00037J", KQML: "KQML 1997"}

# Lists within lists are taken apart so deeply, and no more messages of one record, nor parameters of one message.
MAX_DEPTH = 32
MAX_MESSAGES = 10_000
MAX_PARAMETERS = 200


class Act(NamedTuple):
    """A communicative act. `verb` is its predicate before the content, `{whom}` the receivers."""

    name: str
    vocabulary: str
    performative: str
    use: str
    verb: str


_FIPA_ACTS = (
    ("accept-proposal", "accept", "accepts a proposal that was made before", "accepts a proposal of {whom}"),
    ("agree", "accept", "agrees to do what was asked", "agrees with {whom} to do"),
    ("cancel", "cancel", "no longer wants what it asked for", "tells {whom} that it no longer wants done"),
    ("cfp", "request", "calls for proposals to do something", "calls on {whom} for proposals to do"),
    ("confirm", "inform", "says that something is true of which the receiver was not sure",
     "confirms to {whom} that this is true"),
    ("disconfirm", "inform", "says that something is false that the receiver believes or holds likely",
     "tells {whom} that this is not true"),
    ("failure", "failure", "tried to do something, and failed", "tells {whom} that it tried and failed"),
    ("inform", "inform", "says that something is true", "informs {whom}"),
    ("inform-if", "inform", "says whether something is true", "tells {whom} whether this is true"),
    ("inform-ref", "inform", "says what a description stands for", "tells {whom} what fits"),
    ("not-understood", "not-understood", "did not understand what the receiver did",
     "tells {whom} that it did not understand"),
    ("propagate", "delegate", "asks to take a message and to pass it on",
     "asks {whom} to take this message as said to it, and to pass it on"),
    ("propose", "propose", "proposes to do something, on conditions", "proposes to {whom} to do"),
    ("proxy", "delegate", "asks to send a message to others", "asks {whom} to choose agents and to send them"),
    ("query-if", "query", "asks whether something is true", "asks {whom} whether this is true"),
    ("query-ref", "query", "asks what a description stands for", "asks {whom} what fits"),
    ("refuse", "reject", "refuses to do something, with the reason", "tells {whom} that it refuses to do"),
    ("reject-proposal", "reject", "rejects a proposal that was made before", "rejects a proposal of {whom}"),
    ("request", "request", "asks to do something", "asks {whom} to do"),
    ("request-when", "request", "asks to do something once a condition holds",
     "asks {whom} to do, once a condition holds"),
    ("request-whenever", "request", "asks to do something each time a condition comes to hold",
     "asks {whom} to do, each time a condition comes to hold"),
    ("subscribe", "subscribe", "asks for what a description stands for, now and at each change",
     "asks {whom} to say, now and at each change, what fits"),
)  # fmt: skip

_KQML_ACTS = (
    ("ask-if", "query", "asks whether something is true for the receiver", "asks {whom} whether this is true"),
    ("ask-one", "query", "asks for one answer", "asks {whom} for one answer to"),
    ("ask-all", "query", "asks for all answers together", "asks {whom} for all answers to"),
    ("ask-about", "query", "asks for all that is known about something", "asks {whom} for all it knows about"),
    ("stream-all", "query", "asks for all answers, one after another", "asks {whom} for all answers, one by one, to"),
    ("stream-about", "query", "asks for all that is known about something, one after another",
     "asks {whom} for all it knows, one by one, about"),
    ("evaluate", "query", "asks to simplify an expression", "asks {whom} to evaluate"),
    ("eos", "control", "ends a stream of answers", "tells {whom} that its stream of answers ends"),
    ("tell", "inform", "says that something is true for the sender", "tells {whom} that this is true for it"),
    ("untell", "inform", "says that something is no longer, or not, known to the sender",
     "tells {whom} that it does not hold as true"),
    ("deny", "inform", "says that something is false for the sender", "tells {whom} that this is not true for it"),
    ("reply", "inform", "gives the answer expected", "answers {whom}"),
    ("insert", "request", "asks to add something to what the receiver holds", "asks {whom} to take up as true"),
    ("uninsert", "request", "asks to undo an insertion", "asks {whom} to undo the taking up of"),
    ("delete-one", "request", "asks to remove one fact that fits", "asks {whom} to delete one fact that fits"),
    ("delete-all", "request", "asks to remove all facts that fit", "asks {whom} to delete all facts that fit"),
    ("undelete", "request", "asks to undo a deletion", "asks {whom} to undo the deletion of"),
    ("achieve", "request", "asks to make something true", "asks {whom} to make true"),
    ("unachieve", "request", "asks to undo what was achieved", "asks {whom} to undo what made true"),
    ("advertise", "advertise", "says which messages the sender can deal with", "tells {whom} that it can deal with"),
    ("unadvertise", "control", "takes an advertisement back", "tells {whom} that it can no longer deal with"),
    ("monitor", "subscribe", "asks for a stream of updates", "asks {whom} for updates on"),
    ("error", "not-understood", "says that a message was in error", "tells {whom} that its message was in error"),
    ("sorry", "failure", "understood a message, and has no answer", "tells {whom} that it has no answer"),
    ("standby", "control", "asks to be told when an answer is ready", "asks {whom} to say when it is ready to answer"),
    ("ready", "control", "says that an answer is ready", "tells {whom} that it is ready to answer"),
    ("next", "control", "asks for the next answer", "asks {whom} for its next answer"),
    ("rest", "control", "asks for the other answers", "asks {whom} for its other answers"),
    ("discard", "control", "wants no more answers", "tells {whom} that it wants no more answers"),
    ("generator", "control", "asks for a stream of answers that waits", "asks {whom} to hold answers ready to"),
    ("register", "handshake", "makes an agent known by its name", "registers with {whom}"),
    ("unregister", "control", "takes a registration back", "takes its registration with {whom} back"),
    ("forward", "delegate", "asks to pass a message on", "asks {whom} to pass on"),
    ("broadcast", "delegate", "asks to pass a message on to everyone known", "asks {whom} to pass on to all it knows"),
    ("transport-address", "control", "says where an agent can be reached", "tells {whom} where it can be reached"),
    ("pipe", "control", "asks to send later messages on", "asks {whom} to send later messages on"),
    ("break", "control", "ends a pipe", "asks {whom} to end a pipe"),
    *((f"broker{of}", "delegate", f"asks to have {whom} deal with a message, and to pass on what comes back",
       f"asks {{whom}} to have {whom} deal with this and to pass the answer on")
      for of, whom in (("", "another"), ("-one", "one other"), ("-all", "all others who can"))),
    *((f"recommend{of}", "query", f"asks for the name of {whom} who can deal with a message",
       f"asks {{whom}} to name {whom} who can deal with")
      for of, whom in (("", "another"), ("-one", "one"), ("-all", "all"))),
    *((f"recruit{of}", "delegate", f"asks to have {whom} deal with a message and answer the sender itself",
       f"asks {{whom}} to have {whom} deal with this and answer it directly")
      for of, whom in (("", "another"), ("-one", "one other"), ("-all", "all others who can"))),
)  # fmt: skip

ACTS = {
    name: Act(name, vocabulary, performative, use, verb)
    for vocabulary, rows in ((KQML, _KQML_ACTS), (FIPA, _FIPA_ACTS))
    for name, performative, use, verb in rows
}

# In these protocols of FIPA a plain inform is inform-done or inform-result: the last step of the work.
WORK_PROTOCOLS = frozenset(
    {"fipa-request", "fipa-request-when", "fipa-contract-net", "fipa-iterated-contract-net", "fipa-propose"}
)

# What a value is read as: one agent, several, a text, a name or id, or a time.
Shape = Literal["agent", "agents", "text", "word", "time"]


class Slot(NamedTuple):
    """A parameter. `place` is the name of the message that it fills, or of the attribute where `is_attribute`."""

    key: str
    shape: Shape
    place: str
    label: str
    use: str
    is_attribute: bool = False


# In the order in which a message is written (SC00061G; SC00070I §3). The last ones are of KQML alone.
SLOTS = {
    slot.key: slot
    for slot in (
        Slot("sender", "agent", "sender", "sender", "the agent who says it"),
        Slot("receiver", "agents", "receivers", "receiver", "the agents to whom it is said"),
        Slot("reply-to", "agents", "reply_to", "reply-to", "the agents to whom answers are to go", True),
        Slot("content", "text", "content", "content", "the matter of the act"),
        Slot("language", "word", "language", "language", "the language of the content", True),
        Slot("encoding", "word", "encoding", "encoding", "the encoding of the content", True),
        Slot("ontology", "word", "ontology", "ontology", "the vocabulary of the content", True),
        Slot("protocol", "word", "protocol", "protocol", "the interaction protocol that it is a step of", True),
        Slot("conversation-id", "word", "conversation_id", "conversation", "the conversation"),
        Slot("reply-with", "word", "message_id", "reply-with", "the id by which an answer is to name this message"),
        Slot("in-reply-to", "word", "parent_id", "in-reply-to", "the id of the message answered"),
        Slot("reply-by", "time", "deadline", "reply-by", "the latest time for an answer"),
        Slot("name", "word", "name", "name", "the name that is registered", True),
        Slot("from", "word", "from", "from", "the sender of the message that is passed on", True),
        Slot("to", "word", "to", "to", "the receiver of the message that is passed on", True),
        Slot("comment", "text", "comment", "comment", "a remark in words", True),
        Slot("code", "word", "code", "code", "the code of an error", True),
        Slot("force", "word", "force", "force", "permanent, or open to be taken back", True),
        Slot("aspect", "text", "aspect", "aspect", "the part of the content that is wanted", True),
    )
}
KQML_SLOTS = frozenset({"name", "from", "to", "comment", "code", "force", "aspect"})
# What only a message of an agent has: by one of these a list that begins with an act is told from other lists.
TELLING = tuple(key for key in SLOTS if key not in KQML_SLOTS)


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
