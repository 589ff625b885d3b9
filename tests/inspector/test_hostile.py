"""Hostile inputs through the three doors, in turns: the outcome of each, and the record after it is still taken.

The numbers are those of the list of hostile inputs that the product promises an outcome for; docs/reliability.md says
where each of them is tested. `read` is stored and read, `malformed` is stored and shown without an act, `quarantined`
is kept for its bytes alone. What stands behind a colon is the note by which a reader learns of it.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from django.test import Client

from inspector.intake.models import Delivery, Job, Record
from inspector.intake.selectors import rebuild_stream
from inspector.threads.models import Conversation, Message

from ..each import for_each
from .conftest import resolve_all
from .doors import Way, in_turns

pytestmark = pytest.mark.django_db

AFTER = b"\nstill here\n"


def clowl(**names: Any) -> bytes:
    said = {"p": "REQ", "mid": "m1", "from": "ada", "to": "bob", "cid": "c1", "ts": 1790000000, "body": {"t": "go"}}
    return json.dumps(said | names).encode()


def swap(old: bytes, new: bytes) -> bytes:
    whole = clowl()
    assert old in whole
    return whole.replace(old, new)


# What of input 9 is no wrong type but an absence.
ODD_TYPES = {("to", "[]"): "no-receiver", ("body", "{}"): "missing"}
DEEP = b'{"p":"REQ","mid":"m","from":"a","to":"b","cid":"c","body":' + b'{"d":' * 1500 + b"1" + b"}" * 1501
LINGUA = "\U0001f47d42|@H|~+1d|"


def nest(levels: int) -> bytes:
    """An agent-lingua message that holds another one, and so on."""
    wire = f"{LINGUA}$bWVldGluZw=="
    for _ in range(levels):
        wire = f"{LINGUA}${base64.b64encode(wire.encode()).decode()}"
    return wire.encode()


CASES: dict[str, tuple[bytes, str]] = {
    "1 NaN": (swap(b"1790000000", b"NaN"), "malformed: clowl.not-json"),
    "1 Infinity": (swap(b"1790000000", b"Infinity"), "malformed: clowl.not-json"),
    "1 -Infinity in the body": (swap(b'"go"', b"-Infinity"), "malformed: clowl.not-json"),
    "1 -0": (swap(b"1790000000", b"-0"), "read: clowl.exact-number"),
    "1 1e400": (swap(b"1790000000", b"1e400"), "read: clowl.exact-number"),
    "1 1e400 in the body": (swap(b'"go"', b"1e400"), "read: clowl.exact-number"),
    "2 duplicate key": (swap(b'"p": "REQ"', b'"p": "REQ", "p": "ERR"'), "read: clowl.duplicate-key"),
    "3 lone surrogate": (swap(b"ada", rb"\ud800"), "read: clowl.surrogate"),
    "3 lone surrogate everywhere": (b'{"raw":"\\ud800","from":"\\ud800","to":["\\udfff"],"id":"\\udfff"}', "read"),
    "4 NUL escaped": (b'{"raw":"a\\u0000b","from":"\\u0000","conversation":"\\u0000","id":"\\u0000"}', "read"),
    "4 NUL byte": (b"a\x00b", "read"),
    "5 depth 1500": (DEEP, "malformed: clowl.too-deep"),
    "5 depth 1500 of arrays": (b"[" * 1500 + b"]" * 1500, "read"),
    "5 depth 100000": (b'{"raw":' * 100_000, "read"),
    "5 depth 300": (swap(b'"go"', b"[" * 300 + b"]" * 300), "malformed: clowl.too-deep"),
    "5 depth 480": (swap(b'"go"', b"[" * 480 + b"]" * 480), "malformed: clowl.too-deep"),
    "5 depth 900": (swap(b'"go"', b"[" * 900 + b"]" * 900), "malformed: clowl.too-deep"),
    "6 2^53+1": (swap(b"1790000000", b"9007199254740993"), "read: clowl.time"),
    "6 2^64 in the body": (swap(b'"go"', b"18446744073709551616"), "read: clowl.wrong-type"),
    "6 4300 digits": (swap(b'"go"', b"9" * 4300), "read: clowl.wrong-type"),
    "6 4301 digits": (swap(b'"go"', b"9" * 4301), "read: clowl.exact-number"),
    "6 5001 digits": (swap(b'"go"', b"9" * 5001), "malformed: clowl.number-too-long"),
    "6 a turn of 2^63": (b'@a3|f0|c1|S0|d1|T9223372036854775808|k1|t"x"#', "read: nslip.too-large"),
    "7 ts -1": (clowl(ts=-1), "read: clowl.time"),
    "7 ts 0": (clowl(ts=0), "read: clowl.time"),
    "7 ts 1e18": (clowl(ts=10**18), "read: clowl.time"),
    "7 ts in ms": (clowl(ts=1790000000000), "read: clowl.time"),
    "7 ts as text": (clowl(ts="2026-11-21T09:00:00Z"), "read: clowl.wrong-type"),
    "7 at the edge": (b'{"raw":"a","at":"9999-12-31T23:59:59-23:59"}', "read"),
    "7 at before all": (b'{"raw":"a","at":"0001-01-01T00:00:00+23:59"}', "read"),
    "7 at as a number": (b'{"raw":"a","at":1e308}', "read"),
    "8 nothing but an act": (b'{"clowl":"0.2","p":"REQ"}', "read: clowl.missing"),
    "8 nothing but an act and no version": (b'{"p":"REQ"}', "read"),
    **{
        f"9 {name} is {value}": (
            clowl(**{name: value}),
            f"read: clowl.{ODD_TYPES.get((name, str(value)), 'wrong-type')}",
        )
        for name in ("mid", "from", "to", "cid", "p", "ts", "body")
        for value in (None, [], True, {}, [None, {"a": [1]}])
    },
    "9 envelope of wrong types": (
        b'{"raw":"a","at":[],"from":{},"to":[1,null,{}],"id":[],"conversation":{"a":1}}',
        "read",
    ),
    "9 raw is no text": (b'{"raw":{"a":[1,2]}}', "read"),
    "10 supports": (clowl(supports=[1], to=[], body=7), "read: clowl.no-receiver"),
    "10 the body's data is a list": (clowl(body={"t": "go", "d": [1]}), "read: clowl.wrong-type"),
    "10 supports in the body": (
        clowl(p="CAPS", body={"t": "capabilities", "d": {"supports": [1]}}),
        "read: clowl.capabilities",
    ),
    "11 long ids": (clowl(mid="m" * 9000, cid="c" * 1_000_000), "read: clowl.too-long"),
    "11 long envelope ids": (
        json.dumps(
            {"raw": "a", "id": "i" * 1_000_000, "conversation": "c" * 1_000_000, "from": "f" * 100_000}
        ).encode(),
        "read",
    ),
    "15 itself as parent": (b'{"raw":"a","id":"x","parent":"x"}', "read"),
    "19 invalid UTF-8": (b"caf\xe9", "quarantined"),
    "20 U+2028": ("a\u2028b".encode(), "read"),
    "24 long base62": (b"@a3|f" + b"Z" * 100_000 + b"|c1|S0|d1|T1|k1#", "read: nslip.too-large"),
    "25 bar in quotes": (rb'@a3|f0|c1|S0|d1|T1|k1|t"x|y"#', "read"),
    "25 escapes": (rb'@a3|f0|c1|S0|d1|T1|k1|t"x\"y\\"#', "read"),
    "25 open quote": (b'@a3|f0|c1|S0|d1|T1|k1|t"x', "malformed: nslip.unclosed-quote"),
    "26 act 99": (b"@a99|f0|c1|S0|d1|T1|k1#", "read: nslip.unknown-act"),
    "26 duplicate header": (b"@a3|a4|f0|f1|c1|S0|d1|T1|k1#", "read: nslip.duplicate"),
    "26 missing header": (b"@a3|f0|k1#", "read: nslip.missing-header"),
    "26 unknown prefix": (b"@a3|f0|c1|S0|d1|T1|k1|z9#", "read: nslip.unknown-prefix"),
    "26 no readable header": (b'@k1|t"x"#', "malformed: nslip.no-header"),
    "27 unknown symbols": (b"?" + b"Q" * 100_000, "read"),
    "27 only signs": (b"@@@@", "read"),
    "27 open definition": (b'{def:zo="tea"', "malformed: lambda_lang.unclosed"),
    "28 redefined atom": (b'{def:co="nothing"}?Uk/co', "read: lambda_lang.redefines-atom"),
    "29 no padding": (f"{LINGUA}$bWVldGluZw".encode(), "read: agent_lingua.odd-base64"),
    "29 URL-safe": (f"{LINGUA}$w6_Dvw==".encode(), "read: agent_lingua.odd-base64"),
    "29 broken line": (json.dumps({"raw": f"{LINGUA}$bWVl\ndGluZw=="}).encode(), "read: agent_lingua.odd-base64"),
    "29 no Base64": (f"{LINGUA}$***".encode(), "read: agent_lingua.not-base64"),
    "29 JSON that is none": (f"{LINGUA}$j:bWVldGluZw==".encode(), "read: agent_lingua.not-json"),
    "30 one in the other": (nest(8), "read: agent_lingua.nested-limit"),
    "35 script": (b"<script>alert(1)</script><img src=x onerror=alert(1)></textarea>", "read"),
    "35 address of a script": (b'<a href="javascript:alert(1)">x</a>', "read"),
    "35 SVG": (b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script></svg>', "read"),
    "36 template and SQL": (b"{{7*7}} %s {0.__class__} $(id) '; DROP TABLE x; --", "read"),
    "37 bidi": ("a\u202eb\u2066c\u200bd\u00ad".encode(), "read"),
    "37 tag characters": ("a\U000e0041\U000e0042\u200db".encode(), "read"),
    "38 homoglyph": ('{"raw":"hello","from":"\u0430da","to":"ada"}'.encode(), "read"),
    "39 combining marks": (("a" + "\u0301" * 10_000).encode(), "read"),
    "39 joined emoji": (("\U0001f469\u200d" * 150_000).encode(), "read"),
    "40 ANSI and CR": (b"a\x1b[31mb\rc", "read"),
    "41 formula": (b'=HYPERLINK("http://x","y")', "read"),
    "42 a token": (clowl(auth="s3cret-t0ken"), "read: clowl.token"),
    "42 bearer": (b"Authorization: Bearer abcdefghijklmnopqrstuvwxyz012345", "read"),
    "42 key of a cloud": (b"the key is AKIAIOSFODNN7EXAMPLE", "read"),
}


NUMBERS = list(dict.fromkeys(name.partition(" ")[0] for name in CASES))


@pytest.mark.parametrize(("way", "number"), in_turns({number: number for number in NUMBERS}), indirect=["way"])
def test_the_record_is_kept_and_the_next_one_is_read(way: Way, number: str) -> None:
    """Each input of a number is a log in a channel of its own."""
    cases = [name for name in CASES if name.partition(" ")[0] == number]
    for place, name in enumerate(cases):
        log = CASES[name][0] + AFTER
        # What begins as an array does is refused as lines of JSON, and is text.
        file = "x.log" if log.startswith(b"[") else "x.jsonl"
        assert not way.send(log, file, channel=f"case-{place}"), name
    resolve_all()
    assert not Job.objects.exclude(failure="").exists()
    assert not Message.objects.filter(told_digest=None).exists()

    for what in ("messages", "conversations"):
        assert read_json(way, f"/api/v1/{what}?limit=200")["next"] is None

    @for_each(cases)
    def hold(name: str) -> None:
        check(way, f"case-{cases.index(name)}", *CASES[name])

    hold()


def check(way: Way, channel: str, wire: bytes, outcome: str) -> None:
    outcome, _, code = outcome.partition(": ")
    delivery = Delivery.objects.get(channel__name=channel)
    assert delivery.received == delivery.stored + delivery.duplicate + delivery.quarantined >= 2
    assert delivery.state == Delivery.State.FRAMED
    assert b"".join(rebuild_stream(delivery=delivery)) == wire + AFTER
    messages = Message.objects.filter(channel__name=channel)
    assert messages.filter(english="Someone writes plain text: “still here”.").count() == 1
    first = Record.objects.get(channel__name=channel, order_index=0)
    assert first.is_quarantined == (outcome == "quarantined")
    acts = list(first.messages.values_list("performative", flat=True))
    expected = {"read": 1, "malformed": 0}.get(outcome)
    assert [act is not None for act in acts] == ([] if expected is None else [bool(expected)])
    conversations = Conversation.objects.filter(channel__name=channel)
    addresses = [f"/api/v1/messages/{pk}" for pk in messages.values_list("pk", flat=True)[:3]]
    addresses += [f"/api/v1/conversations/{pk}" for pk in conversations.values_list("pk", flat=True)[:3]]
    for address in (f"/api/v1/deliveries/{delivery.pk}", *addresses):
        read_json(way, address)
    if code:
        told = read_json(way, f"/api/v1/messages/{first.messages.get().pk}")
        noted = {note["code"] for where in ("message", "about") for note in told[where].get("notes", ())}
        assert code in noted


def read_json(way: Way, address: str) -> Any:
    """What the API answers, if it is JSON as the specification has it."""
    response = Client().get(address, headers={"Authorization": f"Bearer {way.token}"})
    assert response.status_code == 200, address
    return json.loads(response.content, parse_constant=refuse)


def refuse(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")
