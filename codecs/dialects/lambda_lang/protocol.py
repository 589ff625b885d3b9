"""The fixed forms of Λ Lambda: types, acknowledgements, floor, errors, trust, joiners and the keys of blocks."""

from __future__ import annotations

from .._value import Value


class Act(Value):
    """A form that is an act: its name, its performative, what it says in the speaker's own person.

    `verb` is how the act is told when the speaker is known: `oscar asks radar`.
    """

    name: str
    performative: str
    verb: str
    meaning: str
    says: str = ""
    status: str | None = None
    cites: str = "v0.6 §1.1"


TYPES = {
    "?": Act(name="question", performative="query", verb="asks", meaning="asks for information"),
    "!": Act(name="statement", performative="inform", verb="tells", meaning="states something"),
    ".": Act(name="command", performative="request", verb="instructs", meaning="asks that something be done"),
    "~": Act(name="uncertain statement", performative="inform", verb="tells", meaning="states it as uncertain"),
    "#": Act(name="remark", performative="inform", verb="tells", meaning="says something about the exchange"),
    ">": Act(name="offer", performative="propose", verb="offers", meaning="offers something"),
}
UNTYPED = Act(name="untyped statement", performative="inform", verb="tells", meaning="a statement without a type")

ACKS = {
    "<": Act(
        name="acknowledged",
        performative="acknowledge",
        verb="answers",
        meaning="acknowledged",
        says="Acknowledged",
        cites="v0.6 §2.4",
    ),
    "<+": Act(
        name="acknowledged, agree",
        performative="acknowledge",
        verb="answers",
        meaning="acknowledged, and agreed",
        says="Acknowledged, I agree",
        status="agreed",
        cites="v0.6 §2.4",
    ),
    "<-": Act(
        name="acknowledged, disagree",
        performative="acknowledge",
        verb="answers",
        meaning="acknowledged, but not agreed",
        says="Acknowledged, I disagree",
        status="disagreed",
        cites="v0.6 §2.4",
    ),
    "<?": Act(
        name="acknowledged, need clarification",
        performative="acknowledge",
        verb="answers",
        meaning="acknowledged, but not clear",
        says="Acknowledged (not a question), I need clarification",
        status="unclear",
        cites="v0.6 §2.4",
    ),
    "<!": Act(
        name="acknowledged, urgent response coming",
        performative="acknowledge",
        verb="answers",
        meaning="acknowledged, an urgent response is coming",
        says="Acknowledged, my urgent response is coming",
        status="urgent",
        cites="v0.6 §2.4",
    ),
    "<->": Act(
        name="acknowledged, disagree",
        performative="acknowledge",
        verb="answers",
        meaning="acknowledged, but not agreed",
        says="Acknowledged, I disagree",
        status="disagreed",
        cites="v0.6 §6.3",
    ),
    "<ctx": Act(
        name="context accepted",
        performative="acknowledge",
        verb="answers",
        meaning="acknowledged, and the context is accepted",
        says="Acknowledged, I accept the context",
        status="agreed",
        cites="v0.6 §2.2",
    ),
}
COUNTER = Act(
    name="counter-offer",
    performative="propose",
    verb="answers",
    meaning="declines an offer and makes another",
    says="As a counter-offer, ",
    status="disagreed",
    cites="v0.6 §6.3",
)

FLOOR = {
    ">>": Act(
        name="taking the floor",
        performative="control",
        verb="tells",
        meaning="takes the floor",
        says="I take the floor",
        cites="v0.6 §2.3",
    ),
    "<<": Act(
        name="yielding the floor",
        performative="control",
        verb="tells",
        meaning="yields the floor",
        says="I yield the floor, it is your turn",
        cites="v0.6 §2.3",
    ),
    "><": Act(
        name="interjection",
        performative="control",
        verb="tells",
        meaning="interjects a quick note",
        says="I interject a quick note",
        cites="v0.6 §2.3",
    ),
    "--": Act(
        name="continuation",
        performative="control",
        verb="tells",
        meaning="continues, still its turn",
        says="I continue, it is still my turn",
        cites="v0.6 §2.3",
    ),
}

HANDSHAKES = {
    "#h": Act(
        name="handshake",
        performative="handshake",
        verb="tells",
        meaning="opens a handshake",
        says="I open a handshake",
        cites="v0.6 §2.1",
    ),
    "#h<": Act(
        name="handshake reply",
        performative="handshake",
        verb="answers",
        meaning="answers a handshake",
        says="I answer the handshake",
        cites="v0.6 §2.1",
    ),
}


class ErrorName(Value):
    """An error code: its name, its performative, and what the protocol says to do about it."""

    name: str
    performative: str
    remedy: str
    cites: str = "v0.6 §3.1"


ERRORS = {
    "pa": ErrorName(
        name="parse error", performative="not-understood", remedy="the protocol asks to resend with clarification"
    ),
    "un": ErrorName(
        name="unknown term", performative="not-understood", remedy="the protocol asks to request a definition"
    ),
    "cx": ErrorName(
        name="context mismatch", performative="failure", remedy="the protocol asks to re-establish the context"
    ),
    "to": ErrorName(name="timeout", performative="failure", remedy="the protocol asks to retry or abort"),
    "ov": ErrorName(
        name="overflow, too complex", performative="failure", remedy="the protocol asks to simplify the message"
    ),
    "ve": ErrorName(
        name="version mismatch",
        performative="failure",
        remedy="the two sides speak different versions",
        cites="v0.9",
    ),
    "am": ErrorName(
        name="ambiguous term", performative="failure", remedy="the term has more than one meaning", cites="v0.9"
    ),
    "mi": ErrorName(name="missing part", performative="failure", remedy="a part did not arrive", cites="v0.9"),
}

# word on the wire: (claim that the record keeps, what it means)
TRUST = {
    "pub": ("public", "marked public: anyone may read it"),
    "prv": ("private", "marked private: for the addressed agents only"),
    "sig": ("signed", "marked as signed: the sender is claimed to be verified"),
}

ENTITIES = {"I": "I", "U": "you", "H": "human", "A": "agent", "X": "X (unknown)", "*": "all", "0": "nothing"}

# symbol: (name of the leaf, what it stands for word by word)
JOINERS = {
    "/": "about or of",
    "&": "and",
    "|": "or",
    ">": "therefore or to",
    "<": "because or from",
    "=>": "therefore",
    "<>": "however",
    ">>": "consider",
    "<<": "in summary",
    "..": "furthermore",
    ";": "then",
    ",": ",",
    ".": "·",
    "+": "more",
    "-": "not or less",
    "^": "high",
    "_": "low",
    "=": "equal to",
    "@": "each",
    "%": "most",
    "$": "number of",
    "'": "that",
    ":": "is",
    "#": "about the exchange",
    "~": "about",
    "!": "not",
    "?": "question",
    "**": "emphasis",
    "<->": "disagree",
}

QUANTIFIERS = {"1": "one", "2": "two", "3": "a few", "9": "many"}

EMOTIONS = {":)": "happy", ":(": "sad", ":o": "surprised", ":?": "confused", ":|": "neutral"}

MARKERS = {
    "E": "as an entity",
    "V": "as a verb",
    "S": "as a state",
    "M": "as a modifier",
    "R": "as a relation",
    "2": "in its second meaning",
    "3": "in its third meaning",
}

TENSES = {"p": "past", "n": "now", "u": "future"}
ASPECTS = {"z": "ongoing", "d": "done"}
# v0.3 has three more, which no later release repeats: they are read where an old release is declared.
OLD_ASPECTS = {"h": "habitual", "i": "beginning", "f": "ending"}

# The keys of a `{…}` block that set context, with what they say.
CONTEXT_KEYS = {
    "def": "definition",
    "ns": "namespace",
    "topic": "topic",
    "v": "version",
    "ver": "version",
    "id": "message id",
    "ctx": "context",
    "t": "time",
    "grp": "group",
    "mbr": "members",
    "auth": "authentication",
    "enc": "encryption",
    "trust": "trust level",
    "vocab": "vocabulary",
    "lang": "language",
    "doc": "document",
}

# The keys of task parameters and status blocks, as the v0.6 forms use them.
TASK_KEYS = {
    "pr": "priority",
    "ti": "timeout",
    "bl": "blocked by",
    "ne": "needs",
    "re": "results",
    "st": "status",
    "ta": "task",
    "n": "name",
}
# Letters of v0.3 before a subject: the modal, what it says of the sentence behind it, how it asks for that.
MODALS = {
    "m": ("must", "it is necessary that", "is it necessary that"),
    "s": ("should", "it should be that", "should it be that"),
    "w": ("want", "it is wanted that", "is it wanted that"),
    "y": ("may", "it is permitted that", "is it permitted that"),
}
DEMONSTRATIVES = {"$": "this", "$$": "that", "$^": "the former", "$_": "the latter"}
