"""A hundred hostile payloads, in every field, on every page, in a real browser: none is executed (R19).

They are of the known classes: elements and handlers, addresses that are scripts, broken quotes, comments and CDATA,
styles, SVG and MathML, templates, encodings, what ends a script or a text area. Each calls `ran`, which this test
defines in the page before anything else runs. The policy would stop most of them too; so its complaints count as well,
and no element of ours may carry a handler or a style of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page

from inspector.audit.models import Finding
from inspector.intake.models import Delivery, Record
from inspector.pages.urls import workspace_urls
from inspector.search.aids import save_search
from inspector.threads.models import Agent, Conversation, Message, Trace
from tests.browser.conftest import Open
from tests.inspector.conftest import Cast, take_in
from tests.inspector.exports.conftest import ask, make
from tests.inspector.pages.test_access import POSTED, address_of

_ELEMENTS = (
    "<script>{0}</script>",
    "<ScRiPt >{0}</sCrIpT>",
    "<script src=data:,{0}></script>",
    "<script/x>{0}</script\n>",
    "<script>{0}//",
    "</script><script>{0}</script>",
    "<img src=x onerror={0}>",
    "<img src=x onerror='{0}'>",
    '<img src="x" onerror="{0}">',
    "<img/src=x/onerror={0}>",
    "<img src=x onerror\n=\n{0}>",
    "<img src=x:x onerror=\x0c{0}>",
    "<IMG SRC=x OnErRoR={0}>",
    "<image src=x onerror={0}>",
    "<svg onload={0}>",
    "<svg/onload={0}>",
    "<svg><script>{0}</script></svg>",
    "<svg><script href=data:,{0} /></svg>",
    "<svg><animate onbegin={0} attributeName=x dur=1s>",
    "<svg><set onbegin={0} attributeName=x>",
    "<svg><a xlink:href=javascript:{0}><text y=20>x</text></a></svg>",
    "<svg><use href='data:image/svg+xml,<svg id=x onload={0}>#x'></svg>",
    "<svg><foreignObject><img src=x onerror={0}></foreignObject></svg>",
    "<svg><style><img src=x onerror={0}></style></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror={0}>",
    "<math href=javascript:{0}>x</math>",
    "<math><mi xlink:href='javascript:{0}'>x</mi></math>",
    "<body onload={0}>",
    "<body onpageshow={0}>",
    "<body onfocus={0} autofocus>",
    "<html onmouseover={0}>",
    "<input autofocus onfocus={0}>",
    "<textarea autofocus onfocus={0}>",
    "<select autofocus onfocus={0}>",
    "<button autofocus onfocus={0}>x",
    "<a href=# autofocus onfocus={0}>x",
    "<div tabindex=1 autofocus onfocus={0}>x",
    "<div onpointerrawupdate={0} onmouseover={0}>x</div>",
    "<details open ontoggle={0}>x",
    "<details ontoggle={0} open>x</details>",
    "<dialog open onclose={0}>",
    "<video src=x onerror={0}>",
    "<video><source onerror={0}>",
    "<audio src=x onerror={0}>",
    "<audio autoplay onloadstart={0} src=x>",
    "<object data=javascript:{0}>",
    "<object data=x onerror={0}>",
    "<embed src=javascript:{0}>",
    "<iframe src=javascript:{0}>",
    "<iframe onload={0}>",
    "<iframe srcdoc='<img src=x onerror=parent.{0}>'>",
    "<frameset onload={0}>",
    "<marquee onstart={0}>x</marquee>",
    "<marquee loop=1 onfinish={0}>x</marquee>",
    "<meta http-equiv=refresh content='0;javascript:{0}'>",
    "<meta http-equiv=refresh content='0;data:text/html,<script>{0}</script>'>",
    "<base href=javascript:{0}//>",
    "<link rel=stylesheet href=x onerror={0}>",
    "<link rel=import href=data:text/html,<script>{0}</script>>",
    "<style onload={0}></style>",
    "<style>@import 'javascript:{0}';</style>",
    "<style>@keyframes x{{}}</style><b style=animation-name:x onanimationstart={0}>",
    "<b style='transition:color 1s' ontransitionend={0}>",
    "<b style=width:expression({0})>",
    "<b style=background:url(javascript:{0})>",
    "<table background=javascript:{0}>",
    "<form action=javascript:{0}><input type=submit autofocus>",
    "<button formaction=javascript:{0}>x",
    "<isindex action=javascript:{0} type=image>",
    "<a href=javascript:{0}>x</a>",
    "<a href='java\tscript:{0}'>x</a>",
    "<a href='java\nscript:{0}'>x</a>",
    "<a href='&#106;avascript:{0}'>x</a>",
    "<a href='&#x6A;avascript&colon;{0}'>x</a>",
    "<a href='\x01javascript:{0}'>x</a>",
    "<a href=data:text/html,<script>{0}</script>>x</a>",
    "<a href=vbscript:{0}>x</a>",
    "<noscript><p title='</noscript><img src=x onerror={0}>'>",
    "<template><script>{0}</script></template>",
    "<template shadowrootmode=open><script>{0}</script></template>",
    "<xmp><img src=x onerror={0}></xmp>",
    "<!--><img src=x onerror={0}>-->",
    "<!-- --!><img src=x onerror={0}> -->",
    "<![CDATA[><img src=x onerror={0}>]]>",
    "<?xml ?><script>{0}</script>",
    "<x contenteditable onblur={0} autofocus tabindex=0>",
    "<div hx-on:load='{0}' hx-trigger=load hx-get=/></div>",
    "<div hx-vals='js:x:{0}' hx-trigger=load hx-get=/></div>",
    "<div data-hx-on-htmx-load='{0}'>x</div>",
)
_ATTRIBUTES = (
    '" autofocus onfocus={0} x="',
    "' autofocus onfocus={0} x='",
    '" onmouseover="{0}',
    '"><script>{0}</script>',
    "'><img src=x onerror={0}>",
    "`><img src=x onerror={0}>",
    "</textarea><img src=x onerror={0}>",
    "</title><script>{0}</script>",
    "</style><script>{0}</script>",
    "--></script><script>{0}</script>",
    "]]><script>{0}</script>",
    "javascript:{0}",
    "javascript:/*--></title></style></textarea></script><svg/onload={0}>*/{0}",
    "';{0};'",
    '";{0};//',
    '\\";{0};//',
    "${{{0}}}",
    "{{{{constructor.constructor('{0}')()}}}}",
    "%3Cscript%3E{0}%3C/script%3E",
    "&lt;script&gt;{0}&lt;/script&gt;",
    "\uff1cscript\uff1e{0}\uff1c/script\uff1e",
    "<scr\u200bipt>{0}</scr\u200bipt>",
    "<scr\x00ipt>{0}</script>",
    "\u2028<script>{0}</script>",
    "+ADw-script+AD4-{0}+ADw-/script+AD4-",
)
PAYLOADS = tuple(payload.format(f"ran({number})") for number, payload in enumerate((*_ELEMENTS, *_ATTRIBUTES)))
_PER_MESSAGE = 13
# In every page before its own scripts: what a payload calls, and what the policy complains of.
_WATCH = """
window.__ran = []; window.ran = (number) => window.__ran.push(number);
window.__breaches = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.__breaches.push(`${event.violatedDirective} ${event.sourceFile} ${event.sample}`));
"""
_INLINE = """() => [...document.querySelectorAll("*")].flatMap((each) => [...each.attributes]
  .filter(({name, value}) => /^(on|hx-on|style$)/.test(name) || /^\\s*(javascript|vbscript|data:text)/i.test(value)
     && ["href", "src", "action", "formaction", "xlink:href", "data"].includes(name))
  .map(({name}) => `${each.tagName} ${name}`))
  .concat([...document.scripts].filter((each) => !each.src).map(() => "script"))"""


def make_log() -> Iterator[str]:
    """Each payload in every field of a message of CLowl, in turn; and in wires of the others, and around them."""
    for number, start in enumerate(range(0, len(PAYLOADS), _PER_MESSAGE)):
        some = [PAYLOADS[(start + each) % len(PAYLOADS)] for each in range(_PER_MESSAGE)]
        yield json.dumps(
            {
                "clowl": "0.2", "mid": some[0], "ts": 1795118400 + number, "p": "REQ" if number % 3 else "ERR",
                "from": some[1], "to": [some[2], some[3]], "cid": "payloads", "tid": some[4], "pid": some[5],
                "body": {"t": some[6], "d": {"q": some[7], some[8]: some[9], "code": some[10], "msg": some[11]}},
                "ctx": {"ref": some[12], "inline": some[0]}, some[1]: some[2],
            }
        )  # fmt: skip
    for number, payload in enumerate(PAYLOADS):
        quoted = payload.replace('"', "'").replace("\n", " ")
        wire = (
            f'@a3|f0|c1|S0|d1|T{number}|t"{quoted}"#',
            f"?It{{note:{quoted}}}",
            f"👽13|@bob|'{quoted}'\n--👽lingua/0.4@agent-lingua",
            payload,
        )[number % 4]
        around = {
            "from": payload,
            "conversation": "around",
            "id": f"{payload}{number}",
            "x": payload,
            "at": 1795119000 + number,
        }
        yield json.dumps({"raw": wire, **around})
    yield json.dumps({"raw": "Hello.", "conversation": PAYLOADS[0] + PAYLOADS[40], "from": "ada", "trace": PAYLOADS[6]})


def list_addresses(cast: Cast) -> Iterator[tuple[str, str]]:
    """Every page of a workspace, by name: for what it may name, what holds the most payloads."""
    finding = Finding.objects.filter(holds=True)
    ids: dict[str, list[Any]] = {
        "conversation_id": list(Conversation.objects.order_by("-message_count").values_list("pk", flat=True)[:2]),
        "message_id": list(Message.objects.order_by("order_time").values_list("pk", flat=True)[::30]),
        "delivery_id": [Delivery.objects.get().pk],
        "record_id": [Record.objects.filter(is_quarantined=False)[0].pk],
        "agent_id": [Agent.objects.order_by("name")[3].pk],
        "trace_id": list(Trace.objects.filter(last_at__isnull=False).values_list("pk", flat=True)[:1]),
        "finding_id": [
            finding.filter(rule=rule)[0].pk for rule in sorted(set(finding.values_list("rule", flat=True)))[:3]
        ],
        "export_id": [make(ask(cast, title=PAYLOADS[6])).pk],
        "saved_id": [save_search(membership=cast.owner, name=PAYLOADS[6], query="a", is_shared=True).pk],
        "dialect": ["clowl"],
    }
    for pattern in workspace_urls:
        names = list(pattern.pattern.converters)
        if pattern.name in POSTED or not set(names) <= {*ids, "slug"}:
            continue
        named = next((name for name in names if name in ids), None)
        for pk in ids[named] if named else [None]:
            given = {name: pk if name == named else ids[name][0] for name in names if name in ids}
            yield str(pattern.name), address_of(pattern, "acme", given)
    for name in ("search", "agents", "conversations", "translator"):
        pattern = next(each for each in workspace_urls if each.name == name)
        for payload in (PAYLOADS[6], PAYLOADS[90]):
            query = urlencode({"q": payload, "name": payload, "agent": payload, "wire": payload, "view": payload})
            yield name, f"{address_of(pattern, 'acme', {})}?{query}"


@pytest.mark.long(seconds=22)
def test_no_payload_is_executed_on_any_page(
    open_page: Open, cast: Cast, forgiven: set[str], record_property: Callable[[str, object], None]
) -> None:
    assert len(PAYLOADS) >= 100
    forgiven |= {"Failed to load resource"}  # A page that refuses a payload says so by its status.
    take_in(cast, "\n".join(make_log()).encode(), name=f"{PAYLOADS[6]}.jsonl")
    page = open_page(cast.owner, "/account/")
    page.context.add_init_script(_WATCH)
    are_pages: dict[str, bool] = {}
    seen: dict[str, int] = {}
    bad: list[str] = []
    for name, address in list_addresses(cast):
        if name not in are_pages:
            answer = page.request.get(address, max_redirects=0)
            is_file = answer.status == 204 or "attachment" in answer.headers.get("content-disposition", "")
            are_pages[name] = not is_file and "text/html" in answer.headers.get("content-type", "")
            policy = answer.headers["content-security-policy"]
            assert "unsafe" not in policy, (name, policy)
            assert "script-src 'self'" in policy or "default-src 'none'" in policy, (name, policy)
        if not are_pages[name]:
            continue
        page.goto(address, wait_until="load")
        page.evaluate("() => document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        seen[name] = seen.get(name, 0) + len(set(re.findall(r"ran\((\d+)\)", page.content())))
        bad += look(page, name, address)
    # `bench.proofs` prints these.
    record_property("payloads", len(PAYLOADS))
    record_property("pages", len(seen))
    record_property("times in sight", sum(seen.values()))
    record_property("failures", len(bad))
    assert not bad
    # That something would have been seen: a handler that is there is found, and the policy says that it stopped it.
    forgiven |= {"inline event handler"}
    page.goto("/w/acme/agents/", wait_until="load")
    page.evaluate("() => { document.body.insertAdjacentHTML('beforeend', '<img src=data:, onerror=ran(1)>'); }")
    page.wait_for_function("() => window.__breaches.length > 0")
    assert len(list(look(page, "control", "agents"))) >= 2
    shown = {name for name, count in seen.items() if count}
    assert shown >= {"conversation", "message", "conversation-raw", "search", "agents", "finding", "delivery", "trace"}


def look(page: Page, name: str, address: str) -> Iterator[str]:
    """What went wrong on the page in sight."""
    found = page.evaluate("() => [...window.__ran.map((number) => `ran ${number}`), ...window.__breaches]")
    for said in (*found, *page.evaluate(_INLINE)):
        yield f"{name} {address}: {said}"
