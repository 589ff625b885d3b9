"""Rules over what words mean (a sender's own meanings against the vocabulary, contexts that are not there), and over
what the decoders could and could not read.
"""

from __future__ import annotations

from typing import Final

from dialects import all_dialects

from ..findings.scene import TOOL_FAILURES
from .rule import Rule, select_notes

_TWICE: Final = frozenset(
    {
        *("clowl.duplicate-key", "nslip.duplicate", "lambda_lang.repeated-key", "fipa.duplicate"),
        *("agent_lingua.duplicate-key", "agent_lingua.repeated-field"),
    }
)
_OF_OFFERS: Final = frozenset(
    note.code for each in all_dialects() for note in each.notes if note.code.endswith(".tool-not-offered")
)
_OF_DEPTH: Final = frozenset(f"{each.slug}.too-deep" for each in all_dialects() if each.is_carrier)
_OF_RETRIES: Final = frozenset({"clowl.retry-disagrees"})
_FAILING: Final = frozenset({"clowl.done-failing", "clowl.act-denied", "agent_lingua.success-disagrees"})
_REFUSING: Final = frozenset({"clowl.ack-refusing"})
_OF_DELEGATION: Final = frozenset({"clowl.delegation-mode"})
_OF_TIME: Final = frozenset({"clowl.time", "agent_lingua.time-implausible"})
_OF_PARTIES: Final = frozenset({"clowl.parties-disagree"})
DENIED_RULE: Final = "done-but-failed"
# What has a rule of its own.
_ELSEWHERE: Final = _TWICE | _OF_RETRIES | _FAILING | _REFUSING | _OF_DELEGATION | _OF_TIME | _OF_PARTIES | _OF_OFFERS


RULES: Final = (
    Rule(
        code="word-redefined",
        title="Term redefined",
        why="From here on the English follows the sender's meaning. Others may understand the opposite.",
        severity="warning",
        group="assumption",
        notes=frozenset({"lambda_lang.redefines-atom"}),
    ),
    Rule(
        code="defined-otherwise",
        title="Term defined in two ways",
        why="Two meanings of one word stand in the conversation. Who reads it may follow the other one.",
        severity="warning",
        group="assumption",
        notes=frozenset({"lambda_lang.defined-otherwise"}),
    ),
    Rule(
        code="gloss-differs",
        title="Sender's gloss contradicts the vocabulary",
        why="The sender's meaning and the vocabulary's differ; one of the two misleads.",
        severity="notice",
        group="assumption",
        notes=frozenset({"lambda_lang.gloss-differs"}),
    ),
    Rule(
        code="malformed",
        title="Unreadable message",
        why="The content is unknown. Its receiver may have understood something else.",
        severity="error",
        group="malformed",
        notes=select_notes(group="malformed", severities=["error"]),
    ),
    Rule(
        code="undecoded",
        title="Message partly undecoded",
        why="The English quotes this part unread: it may change the meaning of the message.",
        severity="notice",
        group="undecoded",
        notes=select_notes(group="undecoded", severities=["warning", "error"], but=["agent_lingua.sealed-unread"]),
    ),
    Rule(
        code="against-specification",
        title="Protocol violation",
        why="Software that follows the specification may refuse it or read it differently.",
        severity="notice",
        group="protocol",
        notes=select_notes(group="protocol", severities=["warning"], but=_ELSEWHERE),
    ),
    Rule(
        code="said-twice",
        title="Duplicate field, two readings possible",
        why="Two programs may read two different messages from these bytes. This is a known way to bypass a check.",
        severity="warning",
        group="protocol",
        notes=_TWICE,
    ),
    Rule(
        code="impossible-time",
        title="Impossible time in the message",
        why="The time is not used for ordering, and conclusions from it (a deadline, who was first) are unreliable.",
        severity="notice",
        group="sequence",
        notes=_OF_TIME,
    ),
    Rule(
        code="parties-disagree",
        title="Routing and message disagree on the parties",
        why="Either the message was delivered to the wrong party, or one of the two names is false.",
        severity="warning",
        group="security",
        notes=_OF_PARTIES,
    ),
    Rule(
        code=DENIED_RULE,
        title="Outcome denied by its data",
        why="A receiver that looks only at the act takes a failure for a success, or the reverse.",
        severity="warning",
        group="protocol",
        notes=_FAILING,
    ),
    Rule(
        code="refused-in-acknowledgement",
        title="Acknowledged without accepting",
        why="A receiver that looks only at the act believes that the work has begun.",
        severity="warning",
        group="protocol",
        notes=_REFUSING,
    ),
    Rule(
        code="no-delegation-mode",
        title="Delegated without a mode",
        why="It is unclear who owes the result: the delegator, the delegate, or both.",
        severity="notice",
        group="protocol",
        notes=_OF_DELEGATION,
    ),
    Rule(
        code="retry-disagrees",
        title="Retry advice contradicts the error code",
        why="One agent may retry forever or give up too soon, because the two disagree.",
        severity="notice",
        group="protocol",
        notes=_OF_RETRIES,
    ),
    Rule(
        code="tool-failed",
        title="Failed tool call",
        why="What follows may rest on a result that was never there.",
        severity="notice",
        group="protocol",
        notes=TOOL_FAILURES,
    ),
    Rule(
        code="tool-not-offered",
        title="Called tool was not offered",
        why="The list of tools before it does not have it. The agent made it up, or was told of it elsewhere.",
        severity="warning",
        group="protocol",
        notes=_OF_OFFERS,
    ),
    Rule(
        code="inside-unread",
        title="Message inside a message, unread",
        why="It stands deeper than is read: the log holds more than is told here.",
        severity="warning",
        group="security",
        notes=_OF_DEPTH,
    ),
)
