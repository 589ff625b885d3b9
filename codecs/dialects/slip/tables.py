"""The tables of SLIP: forces, anchors and their spellings; reading, English and writing share them. And its notes: one
row for each way in which a line can leave the specification.

Specification: the UCR of slipcore, 1.0.0 for SLIP v1 and 3.0.0 for SLIP v3. The act of an anchor comes from its words
and never from its coordinates, in which an acceptance and a rejection are both commitments.
"""

from __future__ import annotations

from typing import NamedTuple

from .._record import Group, NoteKind, Severity

# The table that gives the anchors of a version their meaning.
VOCABULARIES = {"v1": "UCR 1.0.0", "v3": "UCR 3.0.0"}
NEWEST = "v3"

# A record with more lines is not written by any agent in good faith.
MAX_LINES = 10_000
# The longest reference and the most tokens of a payload that SLIP v3 allows.
MAX_REFERENCE = 16
MAX_TOKENS = 20


class Force(NamedTuple):
    """What a sender does: the shared act, and the noun of a message whose anchor no table holds."""

    performative: str
    noun: str


FORCES = {
    "Observe": Force("observe", "an observation"),
    "Inform": Force("inform", "a piece of information"),
    "Ask": Force("query", "a question"),
    "Request": Force("request", "a request"),
    "Propose": Force("propose", "a proposal"),
    "Commit": Force("commit", "a commitment"),
    "Eval": Force("evaluate", "an evaluation"),
    "Meta": Force("control", "a message about the exchange itself"),
    "Accept": Force("accept", "an acceptance"),
    "Reject": Force("reject", "a rejection"),
    "Error": Force("failure", "a report of an error"),
    "Fallback": Force("inform", "words outside the vocabulary"),
}


class Anchor(NamedTuple):
    """A meaning that the UCR numbers: its force and object, the shared act, and its words, `{whom}` the receiver.

    `status` is how it says that something stands. `mnemonic` is its spelling in SLIP v1, empty where v1 has none;
    `is_v3` whether the table of SLIP v3 holds it.
    """

    number: int
    force: str
    object: str
    performative: str
    words: str
    status: str | None = None
    mnemonic: str = ""
    is_v3: bool = True

    def spell(self, version: str) -> str:
        """The act as a line of that version has it: one token, or force and object."""
        pair = f"{self.force} {self.object}"
        return pair if version == NEWEST else self.mnemonic or pair


_ANCHORS = (
    Anchor(0x01, "Observe", "State", "observe", "reports to {whom} the state that it sees"),
    Anchor(0x02, "Observe", "Change", "observe", "reports to {whom} a change that it sees"),
    Anchor(0x03, "Observe", "Error", "observe", "reports to {whom} an error that it sees"),
    Anchor(0x10, "Inform", "Result", "inform", "gives {whom} a result"),
    Anchor(0x11, "Inform", "Status", "inform", "tells {whom} how its work stands"),
    Anchor(0x12, "Inform", "Complete", "done", "tells {whom} that its work is complete"),
    Anchor(0x13, "Inform", "Blocked", "inform", "tells {whom} that it is blocked", "blocked"),
    Anchor(0x14, "Inform", "Progress", "progress", "tells {whom} of the progress of its work"),
    Anchor(0x20, "Ask", "Clarify", "query", "asks {whom} what is meant"),
    Anchor(0x21, "Ask", "Status", "query", "asks {whom} how the work stands"),
    Anchor(0x22, "Ask", "Permission", "query", "asks {whom} for permission to go on"),
    Anchor(0x23, "Ask", "Resource", "query", "asks {whom} whether a resource is available"),
    Anchor(0x30, "Request", "Task", "request", "asks {whom} to do a task"),
    Anchor(0x31, "Request", "Plan", "request", "asks {whom} to make a plan"),
    Anchor(0x32, "Request", "Review", "request", "asks {whom} to review work"),
    Anchor(0x33, "Request", "Help", "request", "asks {whom} for help"),
    Anchor(0x34, "Request", "Cancel", "cancel", "asks {whom} to cancel the work"),
    Anchor(0x35, "Request", "Priority", "request", "asks {whom} to change a priority"),
    Anchor(0x36, "Request", "Resource", "request", "asks {whom} for a resource"),
    Anchor(0x40, "Propose", "Plan", "propose", "proposes to {whom} a plan"),
    Anchor(0x41, "Propose", "Change", "propose", "proposes to {whom} a change"),
    Anchor(0x42, "Propose", "Alternative", "propose", "proposes to {whom} another way"),
    Anchor(0x43, "Propose", "Rollback", "propose", "proposes to {whom} to undo changes"),
    Anchor(0x50, "Commit", "Task", "commit", "tells {whom} that it commits to a task"),
    Anchor(0x51, "Commit", "Deadline", "commit", "tells {whom} that it commits to a deadline"),
    Anchor(0x52, "Commit", "Resource", "commit", "tells {whom} that it commits resources"),
    Anchor(0x60, "Eval", "Approve", "evaluate", "tells {whom} that it approves what it evaluated", "approved"),
    # SLIP v3 gave this number to another anchor. Translating by number would turn the rejection into "under review".
    Anchor(
        0x61, "Eval", "Reject", "evaluate", "tells {whom} that it rejects what it evaluated", "rejected", is_v3=False
    ),
    Anchor(0x61, "Eval", "Review", "evaluate", "tells {whom} that its evaluation is under way", "under review"),
    Anchor(0x62, "Eval", "NeedsWork", "evaluate", "tells {whom} that what it evaluated needs more work", "needs work"),
    Anchor(0x63, "Eval", "Complete", "evaluate", "tells {whom} that what it evaluated is complete", "complete"),
    Anchor(
        0x64, "Eval", "Blocked", "evaluate", "tells {whom} that what it evaluated is blocked", "blocked", is_v3=False
    ),
    Anchor(0x70, "Meta", "Ack", "acknowledge", "confirms to {whom} that a message arrived"),
    Anchor(0x71, "Meta", "Sync", "control", "sends {whom} a ping to keep in step"),
    Anchor(0x72, "Meta", "Handoff", "delegate", "hands responsibility over to {whom}"),
    Anchor(0x73, "Meta", "Escalate", "control", "escalates the matter to {whom}"),
    Anchor(0x74, "Meta", "Abort", "cancel", "tells {whom} to abort the current operation"),
    Anchor(0x80, "Accept", "Generic", "accept", "tells {whom} that it accepts what was proposed or asked"),
    Anchor(0x81, "Reject", "Generic", "reject", "tells {whom} that it rejects what was proposed or asked"),
    Anchor(
        0x82, "Accept", "Condition", "accept", "tells {whom} that it accepts on a condition", "accepted on a condition"
    ),
    Anchor(0x83, "Meta", "Defer", "control", "tells {whom} that it puts the decision off"),
    Anchor(0x90, "Error", "Generic", "failure", "reports to {whom} an error"),
    Anchor(0x91, "Error", "Timeout", "failure", "reports to {whom} that an operation ran out of time"),
    Anchor(0x92, "Error", "Resource", "failure", "reports to {whom} that a resource is not available"),
    Anchor(0x93, "Error", "Permission", "failure", "reports to {whom} that permission was denied"),
    Anchor(0x94, "Error", "Validation", "failure", "reports to {whom} that validation failed"),
    Anchor(0xFF, "Fallback", "Generic", "inform", "writes to {whom} in plain words"),
)

# What SLIP v1 does not spell as force and object in one.
_MNEMONICS = {
    ("Accept", "Generic"): "Accept",
    ("Reject", "Generic"): "Reject",
    ("Accept", "Condition"): "AcceptWithCondition",
    ("Meta", "Defer"): "Defer",
    ("Fallback", "Generic"): "Fallback",
    ("Eval", "Review"): "",
}

ANCHORS = tuple(
    anchor._replace(mnemonic=_MNEMONICS.get((anchor.force, anchor.object), anchor.force + anchor.object))
    for anchor in _ANCHORS
)
PAIRS = {(anchor.force, anchor.object): anchor for anchor in ANCHORS}
MNEMONICS = {anchor.mnemonic: anchor for anchor in ANCHORS if anchor.mnemonic}

# The force and object that an act of another dialect is written with, where its force alone does not say it.
OBJECTS = {
    "acknowledge": ("Meta", "Ack"),
    "cancel": ("Request", "Cancel"),
    "delegate": ("Meta", "Handoff"),
    "done": ("Inform", "Complete"),
    "progress": ("Inform", "Progress"),
}


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
