"""The specifications' own examples: each reads in its dialect, with the act and the meaning that its document gives.

The wires are the documents' short examples, by section. Where a document contradicts itself, `remark` says so, and
what stands here is what the tables and definitions decide.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

import dialects
from tests.each import for_each


class Example(NamedTuple):
    """A wire, the act of each of its messages, words that their English must hold, and names it must fill.

    `prior` is what was said before it in the document's own conversation.
    """

    section: str
    wire: str
    acts: tuple[str, ...]
    says: tuple[str, ...]
    names: Mapping[str, Any] = {}
    prior: tuple[str, ...] = ()
    remark: str = ""


SIGNED = "\n--👽lingua/0.4@agent-lingua"
DELEGATION = (".Uf/X{pr:^,ti:$60s}", "<")
DATA = ("@v0.6#h !Aw/s ?Uc/la",)

LAMBDA = (
    Example("1.2", "@v0.6#id:abc123", ("control",), ("v0.6", "abc123"), {"message_id": "abc123"}),
    Example("1.3", "{ctx:shared_state,def:local_definitions}", ("control",), ("shared_state", "local_definitions")),
    Example("1.3", "{v:0.6,id:msg001}", ("control",), ("v0.6", "msg001"), {"message_id": "msg001"}),
    Example("1.3", '{def:prj="Lambda language project"}', ("control",), ('define prj as "Lambda language project"',)),
    Example("1.3", "{ns:code}", ("control",), ("namespace to code",)),
    Example(
        "2.1",
        "@v0.6#h !Aw/s ?Uc/la",
        ("handshake", "query"),
        ("handshake", "v0.6", "wants to speak", "Can you (use) language?"),
        remark="the document says “I want”, its table says that A is an agent: the table decides",
    ),
    Example("2.1", "@v0.6#h< !Ic/la=0.6", ("handshake",), ("answer the handshake", "I can", "language 0.6")),
    Example("2.2", '{def:ta="build Lambda skill"}', ("control",), ('define ta as "build Lambda skill"',)),
    Example("2.2", "<ctx", ("acknowledge",), ("accept the context",)),
    Example("2.2", "!I*d/ta", ("inform",), ("We do the task",)),
    Example(
        "2.2",
        "!I*d/ta",
        ("inform",),
        ("We do ta", 'means "build Lambda skill"'),
        prior=('{def:ta="build Lambda skill"}', "<ctx"),
        remark="the document says “the task”, its own definition of ta says otherwise: the definition decides",
    ),
    Example("2.3", ">>", ("control",), ("take the floor",)),
    Example("2.3", "<<", ("control",), ("yield the floor", "your turn")),
    Example("2.3", "><", ("control",), ("interject", "quick note")),
    Example("2.3", "--", ("control",), ("continue", "still my turn")),
    Example("2.4", "<", ("acknowledge",), ("Acknowledged",)),
    Example("2.4", "<+", ("acknowledge",), ("Acknowledged", "I agree"), {"status": "agreed"}),
    Example("2.4", "<-", ("acknowledge",), ("Acknowledged", "I disagree"), {"status": "disagreed"}),
    Example("2.4", "<?", ("acknowledge",), ("Acknowledged", "need clarification"), {"status": "unclear"}),
    Example("2.4", "<!", ("acknowledge",), ("Acknowledged", "urgent response"), {"status": "urgent"}),
    Example("3.1", "!er:pa", ("not-understood",), ("parse error",)),
    Example("3.1", "!er:un", ("not-understood",), ("unknown term",)),
    Example("3.1", "!er:cx", ("failure",), ("context mismatch",)),
    Example("3.1", "!er:to", ("failure",), ("timeout",)),
    Example("3.1", "!er:ov", ("failure",), ("overflow", "too complex")),
    Example(
        "3.2",
        "!Ik/co[n12]",
        ("inform",),
        ("I know about consciousness", "checksum of 12", "6 characters"),
        remark="no way of counting makes twelve characters of this body: both numbers are shown",
    ),
    Example("3.3", "!er:un/co", ("not-understood",), ("unknown term", "co"), prior=("!Ik/co",)),
    Example("3.3", '{def:co="consciousness"}!Ik/co', ("inform",), ("I know about co", '"consciousness"')),
    Example("4.1", "@A1: !Ik", ("inform",), ("To A1: I know",), {"receivers": ("A1",)}),
    Example("4.1", "@A*: !Ik", ("inform",), ("To everyone: I know",), {"broadcast": True}),
    Example("4.1", "@A1,A2: !Ik", ("inform",), ("To A1 and A2: I know",), {"receivers": ("A1", "A2")}),
    Example("4.2", "A1>A2>A3: !Ik", ("delegate",), ("A1", "A3 by way of A2", "I know"), {"sender": "A1"}),
    Example("4.3", "{grp:council,mbr:[A1,A2,A3]}", ("control",), ("group council", "A1, A2 and A3")),
    Example("5.1", "{key:value,key2:value2}", ("inform",), ("key value", "key2 value2"), prior=DATA),
    Example("5.2", "[item1,item2,item3]", ("inform",), ("item1, item2 and item3",), prior=DATA),
    Example(
        "5.3", '{ta:[{n:"task1",st:ok},{n:"task2",st:wa}]}', ("inform",), ("task", '"task1"', "ok", '"task2"', "wait")
    ),
    Example("5.4", "||h1|h2||r1c1|r1c2||r2c1|r2c2||", ("inform",), ("h1 and h2", "r1c1, r1c2", "r2c1, r2c2")),
    Example("6.1", ".Uf/X{pr:^,ti:$60s}", ("request",), ("Find X", "priority high", "timeout 60")),
    Example("6.1", "!fd/X{re:[...]}", ("inform",), ("Found X", "results"), prior=DELEGATION),
    Example(
        "6.1",
        "<+",
        ("acknowledge",),
        ("Acknowledged, I agree",),
        prior=(*DELEGATION, "!fd/X{re:[...]}"),
        remark="the document reads it here as agreement and in 6.3 as acceptance: section 2.4 decides",
    ),
    Example("6.2", "?X/co", ("query",), ("What about consciousness?",)),
    Example("6.2", "~X:th'em<pr/in", ("inform",), ("low confidence", "X", "because")),
    Example("6.2", "<?em", ("acknowledge",), ("need clarification", "emergence")),
    Example("6.2", '{def:em="emergence"}', ("control",), ('define em as "emergence"',)),
    Example("6.3", ">Ig/U[da]<Uw/[ti]", ("propose",), ("offer", "data", "in return for", "time")),
    Example("6.3", "<->Ig/U[da]<Uw/[re]", ("propose",), ("counter-offer", "data", "result")),
    Example(
        "6.4",
        "!st{\n  ta:prj/la,\n  pr:75%,\n  bl:[er/pa],\n  ne:[def/v0.7]\n}",
        ("inform",),
        ("Status", "task prj/la", "progress 75%", "blocked by", "parse error", "needs", "v0.7"),
    ),
    Example("7.1", "{auth:sig/abc123}", ("control",), ("authenticate", "sig/abc123")),
    Example("7.2", "{enc:aes256}[encrypted_payload]", ("inform",), ("sealed", "aes256", "not opened")),
    Example("7.3", "pub: !Ik", ("inform",), ("I know", "anyone may read")),
    Example("7.3", "prv: !Ik", ("inform",), ("I know", "addressed agents only")),
    Example("7.3", "sig: !Ik", ("inform",), ("I know", "verified")),
)

AGENT_LINGUA = (
    Example(
        "Quick Examples: Moltbook Post",
        "👽73|@1|$j:eyJ0IjoidGVzdCIsImMiOiJoZWxsbyB3b3JsZCJ9" + SIGNED,
        ("request",),
        ("publish a post", "Moltbook", "general", "title = “test”", "content = “hello world”"),
        {"content": {"t": "test", "c": "hello world"}},
    ),
    Example(
        "Quick Examples: Scheduled Reminder",
        "👽42|@H|~+1d15h|$bWVldGluZw==" + SIGNED,
        ("request",),
        ("create", "reminder", "for the human", "in 1 day 15 hours", "“meeting”"),
        {"content": "meeting"},
        remark="two units are outside the grammar of the time field and inside this example",
    ),
    Example(
        "Quick Examples: Compound Messages",
        "👽71|@1|#post-123;;👽79|@1|#post-123|$Z3JlYXQgcG9zdA==",
        ("request", "request"),
        ("upvote the post post-123", "GET (read)", "comment on the post post-123", "“great post”", "HSK (handshake)"),
        {"object_id": "post-123"},
        remark="the tables call these actions read and handshake; the idiom is told and the table's names beside it",
    ),
    Example(
        "Protocol Signature",
        "👽73|@1|$j:eyJ0Ijoi5rWL6K+VIn0=" + SIGNED,
        ("request",),
        ("publish a post", "“测试”", "lingua/0.4@agent-lingua"),
        {"content": {"t": "测试"}},
    ),
    Example("Response Mode", "👽 hello", ("inform",), ("hello",), {"content": "hello"}),
    Example("Time Encoding", "👽42|@H|~+30m", ("request",), ("in 30 minutes",)),
    Example("Time Encoding", "👽42|@H|~*4h", ("request",), ("every 4 hours",)),
    Example("Time Encoding", "👽42|@H|~=1706889600", ("request",), ("2 February 2024, 16:00:00 UTC", "1706889600")),
    Example(
        "Time Encoding",
        "👽42|@H|~@2024-02-03T15:00+08",
        ("request",),
        ("3 February 2024, 07:00:00 UTC", "2024-02-03T15:00+08"),
        remark="the symbol @ stands in the example and not in the list of symbols",
    ),
    Example("Condition Encoding", "👽23|%P1/3", ("request",), ("part 1 of 3",)),
    Example("Error Codes", "!E2W", ("failure",), ("write permission denied",)),
    Example("Error Codes", "!E5|~+30m", ("failure",), ("rate limited", "retry in 30 minutes")),
)

NSLIP = (
    Example(
        "Protocol Overview",
        '@a3|f0|c1|S0|d1|T1|g1|k1|q2|t"refactor_auth"#',
        ("request",),
        ("coordinator (agent 0) asks the planner (agent 1) to do task 1 (goal 1)", "priority 2", "“refactor_auth”"),
        {"native_act": "REQUEST", "frame": "TASK", "topic": "refactor_auth"},
    ),
    Example(
        "Common Patterns: REQUEST/TASK",
        '@a3|f0|c1|S0|d1|T1|g1|k1|q2|t"implement_auth"#',
        ("request",),
        ("coordinator (agent 0) asks the planner (agent 1) to do task 1 (goal 1)", "priority 2", "“implement_auth”"),
        {"sender": "0", "receivers": ("1",), "trace_id": "1", "task_id": "1", "frame": "TASK"},
    ),
    Example(
        "Common Patterns: PROPOSE/PLAN",
        '@a4|f1|c1|S1|d0|T2|g1|k1|q2|t"plan_v1"#',
        ("propose",),
        ("planner (agent 1) proposes to the coordinator (agent 0) a plan for task 1 (goal 1)", "“plan_v1”"),
        {"sender": "1", "receivers": ("0",), "frame": "PLAN", "turn": 2},
    ),
    Example(
        "Common Patterns: INFORM/OBSERVATION",
        '@a1|f2|c1|S2|d0|T3|g1|k1|r1|u"done"|t"exec_status"#',
        ("inform",),
        ("executor (agent 2) informs the coordinator (agent 0)", "observation", "result number 1", "status “done”"),
        {"result_id": "1", "status": "done", "frame": "OBSERVATION"},
    ),
    Example(
        "Common Patterns: EVAL/EVALUATION",
        '@a8|f3|c1|S3|d0|T4|g1|k1|s8|t"ok"#',
        ("evaluate",),
        ("critic (agent 3) gives the coordinator (agent 0) its evaluation of task 1", "score 8", "“ok”"),
        {"score": 8, "topic": "ok", "frame": "EVALUATION"},
    ),
    Example(
        "Strings: Quoted",
        '@a1|f2|c1|S2|d0|T1|u"some_tag"|t"with \\"escaped\\" quotes"#',
        ("inform",),
        ("“some_tag”", '“with "escaped" quotes”'),
        {"status": "some_tag", "topic": 'with "escaped" quotes'},
    ),
    Example(
        "Python Usage",
        r"@a3|f0|c1|S0|d1|T1|g1|k1|t\"my_task\"#",
        ("request",),
        ("to do task 1 (goal 1)", "“my_task”"),
        {"topic": "my_task"},
        remark="its quotation marks are escaped in the comment, as in the program around it",
    ),
)
BASE62 = (("0", 0), ("A", 10), ("z", 61), ("10", 62), ("11", 63), ("H", 17), ("g", 42))


def build(number: int, act: str, sender: str, to: str | list[str], task: str, data: dict[str, Any], **more: Any) -> str:
    """A message as the reference library writes it, its generated ids replaced by short ones."""
    message = {"clowl": "0.2", "mid": f"m{number}", "ts": 1795118400 + number, "p": act, "from": sender, "to": to}
    return json.dumps({**message, "cid": "c1", "body": {"t": task, "d": data}, **more})


T, SEARCH = {"tid": "t1"}, {"q": "MCP vs A2A comparison", "scope": "web"}
REPORT = "research/mcp-vs-a2a.md"
RUN = "Library: example run"
CLOWL = (
    Example(
        "Message Format",
        '{"clowl":"0.2","mid":"01914b2c-7abc-...","ts":1709078400,"p":"REQ","from":"oscar","to":"radar",'
        '"cid":"conv-001","body":{"t":"search","d":{"q":"MCP vs A2A","scope":"web"}}}',
        ("request",),
        ("oscar asks radar", "search", "MCP vs A2A", "web"),
        {"conversation_id": "conv-001", "sender": "oscar", "sent_at": "2024-02-28T00:00:00Z"},
    ),
    Example(
        "The Translator",
        '{"clowl":"0.2","mid":"m001","ts":1709078400,"tid":"t001","p":"REQ","from":"oscar","to":"radar","cid":"c001",'
        '"body":{"t":"search","d":{"q":"CLowl competitors","scope":"web"}}}',
        ("request",),
        ("oscar asks radar", "search", "CLowl competitors", "web"),
        {"message_id": "m001", "trace_id": "t001", "sent_at": "2024-02-28T00:00:00Z"},
        remark="the document prints this second as noon of the day before; the number decides",
    ),
    Example(
        RUN,
        build(
            1, "CAPS", "radar", "*", "capabilities",
            {"supports": ["search:web", "search:repo", "analyze:trend"], "clowl": "0.2"},
        ),
        ("advertise",),
        ("radar", "search:web", "search:repo", "analyze:trend"),
        {"broadcast": True},
    ),
    Example(
        RUN, build(2, "REQ", "oscar", "radar", "search", SEARCH, **T), ("request",),
        ("oscar asks radar", "search", "MCP vs A2A comparison", "web"), {"trace_id": "t1"},
    ),
    Example(
        RUN, build(3, "ACK", "radar", "oscar", "search", {"eta": "60s"}, **T, pid="m2"), ("acknowledge",), ("60s",),
        {"parent_id": "m2"},
    ),
    Example(
        RUN,
        build(4, "PROG", "radar", "oscar", "search", {"pct": 50, "note": "Indexed 4 of 8 sources"}, **T, pid="m2"),
        ("progress",),
        ("radar", "oscar", "50", "Indexed 4 of 8 sources"),
    ),
    Example(
        RUN,
        build(5, "DONE", "radar", "oscar", "search", {"result_path": REPORT, "sources": 8}, **T, pid="m2", det=True),
        ("done",),
        ("radar", "oscar", REPORT, "8", "deterministic"),
    ),
    Example(
        RUN,
        build(
            6, "DLGT", "oscar", "muse", "analyze",
            {"delegation_mode": "transfer", "target": "content angle", "type": "competitive"},
            **T, pid="m5", ctx={"ref": REPORT, "inline": None, "hash": None},
        ),
        ("delegate",),
        ("oscar", "muse", "analyze", "content angle", "competitive", REPORT),
    ),
    Example(
        RUN,
        build(
            7, "ERR", "muse", "oscar", "error",
            {"code": "E003", "msg": f"Context file not found: {REPORT}", "retry": True}, **T,
        ),
        ("failure",),
        ("muse", "oscar", "E003", f"Context file not found: {REPORT}"),
    ),
    Example(
        RUN,
        build(
            8, "INF", "oscar", ["radar", "muse", "ink"], "notify",
            {"message": "Pipeline starting for MCP vs A2A analysis"}, **T,
        ),
        ("inform",),
        ("oscar", "radar, muse and ink", "Pipeline starting for MCP vs A2A analysis"),
        {"receivers": ("radar", "muse", "ink")},
    ),
    Example(
        RUN,
        build(9, "CNCL", "oscar", "radar", "search", {"reason": "Scope changed, no longer needed"}, **T),
        ("cancel",),
        ("oscar", "radar", "search", "Scope changed, no longer needed"),
    ),
    Example(
        f"{RUN}, the request as JSON over several lines",
        json.dumps(json.loads(build(2, "REQ", "oscar", "radar", "search", SEARCH, **T)), indent=2),
        ("request",),
        ("oscar asks radar", "MCP vs A2A comparison"),
    ),
)  # fmt: skip

EXAMPLES = [
    (slug, example)
    for slug, examples in (("lambda_lang", LAMBDA), ("agent_lingua", AGENT_LINGUA), ("nslip", NSLIP), ("clowl", CLOWL))
    for example in examples
]
IDS = [f"{slug}-{example.section}-{example.wire[:30]!r}" for slug, example in EXAMPLES]


@for_each(EXAMPLES)
def test_an_example_reads_as_its_document_says(slug: str, example: Example) -> None:
    reading = dialects.decode(example.wire, prior=[(wire, None) for wire in example.prior])
    assert reading.dialect == slug
    assert tuple(message.performative for message in reading.messages) == example.acts
    for name, value in example.names.items():
        assert getattr(reading.messages[0], name) == value
    told = " / ".join(part for message in reading.messages for part in _all_told(message))
    for words in example.says:
        assert words in told, f"{words!r} is not in {told!r}"


def _all_told(message: dialects.Message) -> list[str]:
    """The sentence, what stands beside it, and the notes: a doubt about a reading is told in a note."""
    return [message.sentence, *(segment.text for segment in message.also), *(note.text for note in message.notes)]


@for_each(BASE62)
def test_base62_reads_as_the_skill_counts(digits: str, number: int) -> None:
    (message,) = dialects.decode(f"@a3|f0|c1|S0|d1|T1|g{digits}|k{digits}#").messages
    assert (message.trace_id, message.task_id) == (str(number), str(number))
    assert f"task {number} (goal {number})" in message.sentence


@pytest.mark.parametrize("mark", ["pub:", "prv:", "sig:"])
def test_a_trust_mark_with_nothing_to_mark_is_no_message_of_its_own(mark: str) -> None:
    """Section 7.3 lists the marks by themselves; alone they are too little to be told from prose."""
    assert dialects.decode(mark).dialect == "prose"
