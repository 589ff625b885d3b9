"""Rules over what the decoders could and could not read."""

from __future__ import annotations

from typing import Final

from .logs import FOOT, clowl, pack, say
from .rule import Rule, select_notes

_TWICE: Final = frozenset(
    {
        *("clowl.duplicate-key", "nslip.duplicate", "lambda_lang.repeated-key"),
        *("agent_lingua.duplicate-key", "agent_lingua.repeated-field"),
    }
)
_OF_RETRIES: Final = frozenset({"clowl.retry-disagrees"})
_FAILING: Final = frozenset({"clowl.done-failing"})
_OF_DELEGATION: Final = frozenset({"clowl.delegation-mode"})
_OF_TIME: Final = frozenset({"clowl.time", "agent_lingua.time-implausible"})
_OF_PARTIES: Final = frozenset({"clowl.parties-disagree"})
# What has a rule of its own.
_ELSEWHERE: Final = _TWICE | _OF_RETRIES | _FAILING | _OF_DELEGATION | _OF_TIME | _OF_PARTIES
_REQUEST: Final = clowl("m1", "REQ", "oscar", "radar")
_ROUTED: Final = (
    '{"clowl":"0.3.0","mid":"018f2a3b-4c5d-7e6f-8a9b-0c1d2e3f4a5b","task_id":"018f2a3b-4c5d-7e6f-8a9b-0c1d2e3f4a5c",'
    '"state":"RUNNING","ts":1795118400,"trace":{"trace_id":"tr-1","parent_task_id":"pt-1","parent_mid":"a0"},'
    '"routing":{"from":"warden","to":"scout","broadcast":false},"auth":{"issuer":"gate","scopes":["read"]},'
    '"semantic":{"p":"REQ","from":"planner","to":"scout","task":"survey","data":{"q":"ports"},"ctx":null}}\n'
)

RULES: Final = (
    Rule(
        code="malformed",
        title="A message that no dialect reads",
        why="What was said here is not known. Whoever received it may have read something else into it.",
        severity="error",
        group="malformed",
        notes=select_notes(group="malformed", severities=["error"]),
        triggers=(say(("ada", '@a3|f0|c1|S0|d1|T1|t"never closed')), say(("ada", "👽"))),
        passes=(say(("ada", '@a3|f0|c1|S0|d1|T1|t"closed"#')), "Just a line of prose.\n"),
    ),
    Rule(
        code="undecoded",
        title="A part of a message that is not decoded",
        why="The English leaves this part as it is written: it may change what the message means.",
        severity="notice",
        group="undecoded",
        notes=select_notes(group="undecoded", severities=["warning", "error"], but=["agent_lingua.sealed-unread"]),
        triggers=(say(("ada", "@a3|f0|c1|S0|d1|T1|z9#")),),
        passes=(say(("ada", "@a3|f0|c1|S0|d1|T1|k4#")),),
    ),
    Rule(
        code="against-specification",
        title="A message that breaks its dialect's rules",
        why="Software that follows the specification may refuse it, or read it otherwise than it is told here.",
        severity="notice",
        group="protocol",
        notes=select_notes(group="protocol", severities=["warning"], but=_ELSEWHERE),
        triggers=(_REQUEST.replace('"to": "radar"', '"to": []'),),
        passes=(_REQUEST,),
    ),
    Rule(
        code="said-twice",
        title="A field that stands twice, with room for two readings",
        why="Two programs may read two different messages from these bytes. It is a known way past a check.",
        severity="warning",
        group="protocol",
        notes=_TWICE,
        triggers=(
            _REQUEST.replace('"p": "REQ"', '"p": "REQ", "p": "DONE"'),
            say(("ada", '@a3|f0|f1|c1|S0|d1|T1|t"go"#')),
            say(("ada", "!It{st:done,st:failed}")),
            say(("ada", "👽13|@bob|@eve|$aGk=" + FOOT)),
            say(("ada", "👽13|@bob|$j:" + pack(b'{"ok": true, "ok": false}') + FOOT)),
        ),
        passes=(clowl("m1", "REQ", "oscar", "radar", p="p"), say(("ada", "👽13|@bob|$aGk=" + FOOT))),
    ),
    Rule(
        code="impossible-time",
        title="A time on the wire that cannot be",
        why="It orders nothing, and whatever rests on it (a deadline, who was first) cannot be relied on.",
        severity="notice",
        group="sequence",
        notes=_OF_TIME,
        triggers=(_REQUEST.replace('"ts": ', '"ts": -'), say(("ada", "👽13|@bob|~@1024-02-03T15:00+08|$aGk=" + FOOT))),
        passes=(_REQUEST, say(("ada", "👽13|@bob|~@2026-02-03T15:00+08|$aGk=" + FOOT))),
    ),
    Rule(
        code="parties-disagree",
        title="Routing and message name different parties",
        why="Either the message was carried to somebody it was not written for, or one of the two names is false.",
        severity="warning",
        group="security",
        notes=_OF_PARTIES,
        triggers=(_ROUTED,),
        passes=(_ROUTED.replace("warden", "planner"),),
    ),
    Rule(
        code="done-but-failed",
        title="It says done, and its result says that it failed",
        why="Whoever acts on the act alone takes a failure for a success.",
        severity="warning",
        group="protocol",
        notes=_FAILING,
        triggers=(clowl("m1", "DONE", "radar", "oscar", status="failed"),),
        passes=(clowl("m1", "DONE", "radar", "oscar", status="completed"),),
    ),
    Rule(
        code="no-delegation-mode",
        title="Handed over without saying how",
        why="Nobody can tell who owes the result: whoever handed it over, whoever took it, or both.",
        severity="notice",
        group="protocol",
        notes=_OF_DELEGATION,
        triggers=(clowl("m1", "DLGT", "oscar", "radar"),),
        passes=(clowl("m1", "DLGT", "oscar", "radar", delegation_mode="transfer"),),
    ),
    Rule(
        code="retry-disagrees",
        title="Message and catalogue disagree on a retry",
        why="One agent may try again for ever, or give up too soon, what the other counts as the opposite.",
        severity="notice",
        group="protocol",
        notes=_OF_RETRIES,
        triggers=(clowl("m1", "ERR", "radar", "oscar", code="E002", msg="no key", retry=True),),
        passes=(clowl("m1", "ERR", "radar", "oscar", code="E002", msg="no key", retry=False),),
    ),
)
