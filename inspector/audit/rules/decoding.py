"""Rules over what words mean (a sender's own meanings against the vocabulary, contexts that are not there), and over
what the decoders could and could not read.
"""

from __future__ import annotations

import json
from typing import Final

from dialects import all_dialects

from ..findings.scene import TOOL_FAILURES
from .rule import FOOT, Rule, clowl, pack, say, select_notes
from .tools import ask_model, run_tool, trace

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
# What has a rule of its own.
_ELSEWHERE: Final = _TWICE | _OF_RETRIES | _FAILING | _REFUSING | _OF_DELEGATION | _OF_TIME | _OF_PARTIES | _OF_OFFERS
_REQUEST: Final = clowl("m1", "REQ", "oscar", "radar")
_ROUTED: Final = (
    '{"clowl":"0.3.0","mid":"018f2a3b-4c5d-7e6f-8a9b-0c1d2e3f4a5b","task_id":"018f2a3b-4c5d-7e6f-8a9b-0c1d2e3f4a5c",'
    '"state":"RUNNING","ts":1795118400,"trace":{"trace_id":"tr-1","parent_task_id":"pt-1","parent_mid":"a0"},'
    '"routing":{"from":"warden","to":"scout","broadcast":false},"auth":{"issuer":"gate","scopes":["read"]},'
    '"semantic":{"p":"REQ","from":"planner","to":"scout","task":"survey","data":{"q":"ports"},"ctx":null}}\n'
)


def _span_with(tool: str) -> str:
    offered: list[dict[str, object]] = [{"type": "function", "name": "search", "parameters": {}}]
    return trace(ask_model("Find it.", {"name": tool, "arguments": {}}, offers=offered))


_INSIDE: Final = "@a3|f0|c1|S0|d1|T1|k4#"
# A message in each of the other carriers.
_CARRIERS: Final = (
    json.dumps({"role": "user", "content": _INSIDE}),
    json.dumps({"kind": "message", "role": "user", "messageId": "m", "parts": [{"kind": "text", "text": _INSIDE}]}),
    json.dumps(
        {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "name": "execute_tool send"}
        | {"startTimeUnixNano": "1795118400000000000"}
        | {"attributes": [{"key": "gen_ai.tool.call.arguments", "value": {"stringValue": _INSIDE}}]}
    ),
)


def _answer(result: str) -> str:
    return f'{{"jsonrpc":"2.0","id":1,"result":{result}}}'


def _fold(text: str, times: int) -> str:
    """A text inside calls of a tool, one inside the other."""
    for _ in range(times):
        params = {"name": "send", "arguments": {"text": text}}
        text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    return text


def _list_and_call(tool: str, *, next_page: bool = False) -> str:
    """A server lists one tool, and a client calls one."""
    listed = {"tools": [{"name": "search", "inputSchema": {}}], **({"nextCursor": "2"} if next_page else {})}
    params = {"name": tool, "arguments": {}}
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
    return say(("ada", _answer(json.dumps(listed))), ("bob", json.dumps(call)))


def _chat_with(tool: str) -> str:
    """A chat that offers one tool, and in which the assistant calls one."""
    call = {"id": "c1", "type": "function", "function": {"name": tool, "arguments": "{}"}}
    said = [{"role": "user", "content": "go"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    offered = [{"type": "function", "function": {"name": "search", "parameters": {}}}]
    return say(("ada", json.dumps({"model": "m", "messages": said, "tools": offered})))


RULES: Final = (
    Rule(
        code="word-redefined",
        title="Term redefined",
        why="From here on the English follows the sender's meaning. Others may understand the opposite.",
        severity="warning",
        group="assumption",
        notes=frozenset({"lambda_lang.redefines-atom"}),
        triggers=(say(("ada", '{def:ok="failed"}'), ("ada", "!st/ok")),),
        passes=(say(("ada", '{def:zq="the tea order"}'), ("ada", "!st/ok")),),
    ),
    Rule(
        code="defined-otherwise",
        title="Term defined in two ways",
        why="Two meanings of one word stand in the conversation. Who reads it may follow the other one.",
        severity="warning",
        group="assumption",
        notes=frozenset({"lambda_lang.defined-otherwise"}),
        triggers=(
            say(("ada", '{def:zq="burn"}!ta'), ("bob", '{def:zq="keep"}!ta')),
            say(("ada", '{def:zq="burn"}!ta'), ("ada", '{def:zq="keep"}!ta')),
        ),
        passes=(say(("ada", '{def:zq="burn"}!ta'), ("bob", '{def:zq="burn"}!ta'), ("bob", "!Iav/zq")),),
    ),
    Rule(
        code="gloss-differs",
        title="Sender's gloss contradicts the vocabulary",
        why="The sender's meaning and the vocabulary's differ; one of the two misleads.",
        severity="notice",
        group="assumption",
        notes=frozenset({"lambda_lang.gloss-differs"}),
        triggers=(say(("ada", "!Ide(death)")),),
        passes=(say(("ada", "!Ide(decide)")),),
    ),
    Rule(
        code="malformed",
        title="Unreadable message",
        why="The content is unknown. Its receiver may have understood something else.",
        severity="error",
        group="malformed",
        notes=select_notes(group="malformed", severities=["error"]),
        triggers=(say(("ada", '@a3|f0|c1|S0|d1|T1|t"never closed')), say(("ada", "👽"))),
        passes=(say(("ada", '@a3|f0|c1|S0|d1|T1|t"closed"#')), "Just a line of prose.\n"),
    ),
    Rule(
        code="undecoded",
        title="Message partly undecoded",
        why="The English quotes this part unread: it may change the meaning of the message.",
        severity="notice",
        group="undecoded",
        notes=select_notes(group="undecoded", severities=["warning", "error"], but=["agent_lingua.sealed-unread"]),
        triggers=(say(("ada", "@a3|f0|c1|S0|d1|T1|z9#")),),
        passes=(say(("ada", "@a3|f0|c1|S0|d1|T1|k4#")),),
    ),
    Rule(
        code="against-specification",
        title="Protocol violation",
        why="Software that follows the specification may refuse it or read it differently.",
        severity="notice",
        group="protocol",
        notes=select_notes(group="protocol", severities=["warning"], but=_ELSEWHERE),
        triggers=(_REQUEST.replace('"to": "radar"', '"to": []'),),
        passes=(_REQUEST,),
    ),
    Rule(
        code="said-twice",
        title="Duplicate field, two readings possible",
        why="Two programs may read two different messages from these bytes. This is a known way to bypass a check.",
        severity="warning",
        group="protocol",
        notes=_TWICE,
        triggers=(
            _REQUEST.replace('"p": "REQ"', '"p": "REQ", "p": "DONE"'),
            say(("ada", '@a3|f0|f1|c1|S0|d1|T1|t"go"#')),
            say(("ada", "!It{st:done,st:failed}")),
            say(("ada", "👽13|@bob|@eve|$aGk=" + FOOT)),
            say(("ada", "👽13|@bob|$j:" + pack(b'{"ok": true, "ok": false}') + FOOT)),
            say(("ada", "(tell :sender ada :content (open) :content (shut))")),
        ),
        passes=(clowl("m1", "REQ", "oscar", "radar", p="p"), say(("ada", "👽13|@bob|$aGk=" + FOOT))),
    ),
    Rule(
        code="impossible-time",
        title="Impossible time in the message",
        why="The time is not used for ordering, and conclusions from it (a deadline, who was first) are unreliable.",
        severity="notice",
        group="sequence",
        notes=_OF_TIME,
        triggers=(_REQUEST.replace('"ts": ', '"ts": -'), say(("ada", "👽13|@bob|~@1024-02-03T15:00+08|$aGk=" + FOOT))),
        passes=(_REQUEST, say(("ada", "👽13|@bob|~@2026-02-03T15:00+08|$aGk=" + FOOT))),
    ),
    Rule(
        code="parties-disagree",
        title="Routing and message disagree on the parties",
        why="Either the message was delivered to the wrong party, or one of the two names is false.",
        severity="warning",
        group="security",
        notes=_OF_PARTIES,
        triggers=(_ROUTED,),
        passes=(_ROUTED.replace("warden", "planner"),),
    ),
    Rule(
        code="done-but-failed",
        title="Outcome denied by its data",
        why="A receiver that looks only at the act takes a failure for a success, or the reverse.",
        severity="warning",
        group="protocol",
        notes=_FAILING,
        triggers=(
            clowl("m1", "DONE", "radar", "oscar", status="failed"),
            clowl("m1", "DONE", "radar", "oscar", status="pending"),
            clowl("m1", "PROG", "radar", "oscar", status="failed"),
            clowl("m1", "ERR", "radar", "oscar", code="E009", msg="boom", ok=True),
            say(("ada", "^0|$j:" + pack({"ok": False}) + FOOT)),
        ),
        passes=(
            clowl("m1", "DONE", "radar", "oscar", status="completed"),
            clowl("m1", "PROG", "radar", "oscar", status="incomplete", done=False),
        ),
    ),
    Rule(
        code="refused-in-acknowledgement",
        title="Acknowledged without accepting",
        why="A receiver that looks only at the act believes that the work has begun.",
        severity="warning",
        group="protocol",
        notes=_REFUSING,
        triggers=(clowl("m1", "ACK", "radar", "oscar", accepted=False),),
        passes=(clowl("m1", "ACK", "radar", "oscar", accepted=True),),
    ),
    Rule(
        code="no-delegation-mode",
        title="Delegated without a mode",
        why="It is unclear who owes the result: the delegator, the delegate, or both.",
        severity="notice",
        group="protocol",
        notes=_OF_DELEGATION,
        triggers=(clowl("m1", "DLGT", "oscar", "radar"),),
        passes=(clowl("m1", "DLGT", "oscar", "radar", delegation_mode="transfer"),),
    ),
    Rule(
        code="retry-disagrees",
        title="Retry advice contradicts the error code",
        why="One agent may retry forever or give up too soon, because the two disagree.",
        severity="notice",
        group="protocol",
        notes=_OF_RETRIES,
        triggers=(clowl("m1", "ERR", "radar", "oscar", code="E002", msg="no key", retry=True),),
        passes=(clowl("m1", "ERR", "radar", "oscar", code="E002", msg="no key", retry=False),),
    ),
    Rule(
        code="tool-failed",
        title="Failed tool call",
        why="What follows may rest on a result that was never there.",
        severity="notice",
        group="protocol",
        notes=TOOL_FAILURES,
        triggers=(
            say(("ada", _answer('{"content":[{"type":"text","text":"no such city"}],"isError":true}'))),
            say(
                (
                    "ada",
                    '{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":"no"}]}',
                )
            ),
            trace(run_tool("find", {}, None, fails=True)),
            trace(run_tool("find", {}, {"error": "no such city"})),
        ),
        passes=(
            trace(run_tool("find", {}, {"weather": "rain"})),
            say(("ada", _answer('{"content":[{"type":"text","text":"rain"}]}'))),
        ),
    ),
    Rule(
        code="tool-not-offered",
        title="Called tool was not offered",
        why="The list of tools before it does not have it. The agent made it up, or was told of it elsewhere.",
        severity="warning",
        group="protocol",
        notes=_OF_OFFERS,
        triggers=(_list_and_call("pay"), _chat_with("pay"), _span_with("pay")),
        passes=(
            *(_list_and_call("search"), _chat_with("search"), _list_and_call("pay", next_page=True)),
            _span_with("search"),
        ),
    ),
    Rule(
        code="inside-unread",
        title="Message inside a message, unread",
        why="It stands deeper than is read: the log holds more than is told here.",
        severity="warning",
        group="security",
        notes=_OF_DEPTH,
        triggers=tuple(say(("ada", _fold(text, 4))) for text in (_fold(_INSIDE, 1), *_CARRIERS)),
        passes=(say(("ada", _fold(_INSIDE, 2))),),
    ),
)
