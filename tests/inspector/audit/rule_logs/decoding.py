"""Logs for the rules over what words mean, and over what decoders could read."""

from __future__ import annotations

import json
from typing import Final

from .logs import Logs
from .writing import FOOT, ask_model, clowl, pack, run_tool, say, trace

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


LOGS: Final[dict[str, Logs]] = {
    "word-redefined": Logs(
        triggers=(say(("ada", '{def:ok="failed"}'), ("ada", "!st/ok")),),
        passes=(say(("ada", '{def:zq="the tea order"}'), ("ada", "!st/ok")),),
    ),
    "defined-otherwise": Logs(
        triggers=(
            say(("ada", '{def:zq="burn"}!ta'), ("bob", '{def:zq="keep"}!ta')),
            say(("ada", '{def:zq="burn"}!ta'), ("ada", '{def:zq="keep"}!ta')),
        ),
        passes=(say(("ada", '{def:zq="burn"}!ta'), ("bob", '{def:zq="burn"}!ta'), ("bob", "!Iav/zq")),),
    ),
    "gloss-differs": Logs(
        triggers=(say(("ada", "!Ide(death)")),),
        passes=(say(("ada", "!Ide(decide)")),),
    ),
    "malformed": Logs(
        triggers=(say(("ada", '@a3|f0|c1|S0|d1|T1|t"never closed')), say(("ada", "👽"))),
        passes=(say(("ada", '@a3|f0|c1|S0|d1|T1|t"closed"#')), "Just a line of prose.\n"),
    ),
    "undecoded": Logs(
        triggers=(say(("ada", "@a3|f0|c1|S0|d1|T1|z9#")),),
        passes=(say(("ada", "@a3|f0|c1|S0|d1|T1|k4#")),),
    ),
    "against-specification": Logs(
        triggers=(_REQUEST.replace('"to": "radar"', '"to": []'),),
        passes=(_REQUEST,),
    ),
    "said-twice": Logs(
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
    "impossible-time": Logs(
        triggers=(_REQUEST.replace('"ts": ', '"ts": -'), say(("ada", "👽13|@bob|~@1024-02-03T15:00+08|$aGk=" + FOOT))),
        passes=(_REQUEST, say(("ada", "👽13|@bob|~@2026-02-03T15:00+08|$aGk=" + FOOT))),
    ),
    "parties-disagree": Logs(
        triggers=(_ROUTED,),
        passes=(_ROUTED.replace("warden", "planner"),),
    ),
    "done-but-failed": Logs(
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
    "refused-in-acknowledgement": Logs(
        triggers=(clowl("m1", "ACK", "radar", "oscar", accepted=False),),
        passes=(clowl("m1", "ACK", "radar", "oscar", accepted=True),),
    ),
    "no-delegation-mode": Logs(
        triggers=(clowl("m1", "DLGT", "oscar", "radar"),),
        passes=(clowl("m1", "DLGT", "oscar", "radar", delegation_mode="transfer"),),
    ),
    "retry-disagrees": Logs(
        triggers=(clowl("m1", "ERR", "radar", "oscar", code="E002", msg="no key", retry=True),),
        passes=(clowl("m1", "ERR", "radar", "oscar", code="E002", msg="no key", retry=False),),
    ),
    "tool-failed": Logs(
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
    "tool-not-offered": Logs(
        triggers=(_list_and_call("pay"), _chat_with("pay"), _span_with("pay")),
        passes=(
            *(_list_and_call("search"), _chat_with("search"), _list_and_call("pay", next_page=True)),
            _span_with("search"),
        ),
    ),
    "inside-unread": Logs(
        triggers=tuple(say(("ada", _fold(text, 4))) for text in (_fold(_INSIDE, 1), *_CARRIERS)),
        passes=(say(("ada", _fold(_INSIDE, 2))),),
    ),
}
