// What a page asks the server for while one is on it: suggestions, places, counts, and what is new.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open, settle } from "./page.mjs";

const HOSTILE = "<img src=x onerror=alert(1)>";
const BAR = '<input data-search data-suggestions="/suggest"><button>b</button>';
const texts = (page) => page.list("[role=option]").map((item) => item.firstElementChild.textContent);

async function suggest(items, typed, start = 0) {
  const page = open(BAR, ["suggestions"], { answers: { "/suggest": { start, items } } });
  page.type(page.find("input"), typed);
  await settle(160);
  return page;
}

test("a suggestion is shown as text, chosen by arrows and put in place of what was typed", async () => {
  const page = await suggest([{ text: HOSTILE, about: "a" }, { text: "from:", about: HOSTILE }], "x fr", 2);
  const input = page.find("input");
  assert.deepEqual(texts(page), [HOSTILE, "from:"]);
  assert.equal(page.find("img"), null);
  const told = () => ["role", "aria-autocomplete", "aria-controls", "aria-expanded", "aria-activedescendant"].map((name) => input.getAttribute(name));
  const chosen = () => page.list("[role=option]").map((item) => item.getAttribute("aria-selected"));
  assert.deepEqual(told(), ["combobox", "list", page.find("[role=listbox][aria-label]").id, "true", null]);
  assert.deepEqual(page.list("[role=option] span").map((each) => each.textContent), ["a", HOSTILE]);
  assert.deepEqual(chosen(), ["false", "false"]);
  page.press("Enter");
  assert.equal(input.value, "x fr", "nothing is chosen yet: Enter searches");
  page.press("ArrowUp");
  assert.equal(input.getAttribute("aria-activedescendant"), "suggestion-0-1");
  assert.deepEqual(chosen(), ["false", "true"]);
  page.press("ArrowDown");
  page.press("ArrowDown");
  page.press("Tab");
  assert.deepEqual(told().slice(3), ["false", null]);
  assert.equal(input.value, "x from:");
  assert.equal(input.selectionStart, 7);
  assert.equal(page.fetched.length, 2, "what may come after the colon is asked for");
});

test("the server counts code points: what stands before is kept whole", async () => {
  const page = await suggest([{ text: "dialect:clowl", about: "" }], "👽👽 di", 3);
  page.press("ArrowDown");
  page.press("Enter");
  assert.equal(page.find("input").value, "👽👽 dialect:clowl ");
});

test("what an earlier question shows goes when a later one is not answered, and Escape closes", async () => {
  const answers = [{ start: 0, items: [{ text: "a", about: "" }] }, 503, { start: 0, items: [{ text: "b", about: "" }] }];
  const page = open(BAR, ["suggestions"], { answers: { "/suggest": () => answers.shift() } });
  const list = page.find("ul");
  assert.equal(list.hidden, true);
  page.type(page.find("input"), "a");
  await settle(160);
  assert.equal(list.hidden, false);
  page.type(page.find("input"), "ab");
  await settle(160);
  assert.equal(list.hidden, true);
  page.type(page.find("input"), "b");
  await settle(160);
  assert.equal(page.press("Escape").defaultPrevented, true);
  assert.equal(list.hidden, true);
  assert.equal(page.press("ArrowDown").defaultPrevented, false);
});

const PALETTE = `<div class="page-head"><div class="actions"><a class="button" href="#">Make a
  report</a><button hidden type="button">hidden</button></div></div>
  <select id="judge-state"><option value="">-</option><option value="fixed">Fixed</option></select><textarea id="judge-reason"></textarea>
  <dialog id="palette" data-palette="/places"><input><ul role="listbox"></ul><p role="status"></p></dialog>`;

test("the palette lists what the page can do before the places, and goes there", async () => {
  const page = open(PALETTE, ["palette"], { answers: { "/places": { items: [{ title: HOSTILE, kind: "k", url: "/there" }] } } });
  page.press("k", page.document.body, { ctrlKey: true });
  await settle();
  assert.deepEqual(texts(page), ["Make a report", "Mark as fixed", HOSTILE]);
  assert.equal(page.find("[role=status]").textContent, "3 places");
  assert.equal(page.find("img"), null);
  page.press("ArrowUp");
  page.press("Enter");
  assert.deepEqual(page.visited, ["/there"]);
  page.press("ArrowUp");
  page.press("Enter");
  assert.equal(page.find("dialog").open, false);
  assert.deepEqual([page.find("#judge-state").value, page.document.activeElement.id], ["fixed", "judge-reason"]);
});

test("the palette stays closed for who types, and says when the server is away", async () => {
  const page = open(`<textarea></textarea>${PALETTE}`, ["palette"]);
  page.press("k", page.find("textarea"), { ctrlKey: true });
  assert.equal(page.find("dialog").open, false);
  page.press("K", page.document.body, { metaKey: true });
  await settle();
  assert.match(page.find("[role=status]").textContent, /cannot be had now/);
});

const NAV = `<nav data-counts="/counts"><a>Findings <b data-count="findings"></b></a><b data-count="else"></b></nav>`;
const counts = (page) => page.list("[data-count]").map((each) => each.textContent);

test("counts are those of the page before until the server has counted, and stay where it cannot", async () => {
  const kept = ({ window }) => window.sessionStorage.setItem("counts /counts", '{"findings":"7"}');
  const page = open(NAV, ["counts"], { before: kept, answers: { "/counts": { findings: "8" } } });
  assert.deepEqual(counts(page), ["7", ""]);
  await settle();
  assert.deepEqual(counts(page), ["8", ""]);
  page.fire(page.document.body, "live:loaded");
  assert.equal(page.fetched.length, 2);
  const away = open(NAV, ["counts"], { before: kept });
  await settle();
  assert.deepEqual(counts(away), ["7", ""]);
});

test("what is sent makes the kept counts doubtful, and garbled ones count for nothing", () => {
  const garbled = ({ window }) => window.sessionStorage.setItem("counts /counts", "{");
  const page = open(`${NAV}<form method="post"></form>`, ["counts"], { before: garbled });
  assert.deepEqual(counts(page), ["", ""]);
  page.fire(page.find("form"), "submit");
  assert.equal(page.window.sessionStorage.getItem("counts /counts"), null);
});

const row = (n, text = n, more = "data-item") => `<li id="m${n}" ${more}><a data-open href="#">${text}</a></li>`;
const live = (mode, rows) => `<div class="topbar"></div><h1 class="page-head">h</h1>
  <div id="live" data-load data-after="1" data-every="60"></div><ul data-live-rows="${mode}">${rows}</ul><main id="main" tabindex="-1"></main>`;

async function loadNew(mode, before, after) {
  const page = open(live(mode, before), ["live"], { answers: { "/": live(mode, after).replace('after="1"', 'after="2"') } });
  page.window.scrollBy = () => {};
  page.find("#live").innerHTML = '<a href="/">2 new</a>';
  page.click(page.find("#live a"));
  await settle();
  return page;
}
const rows = (page) => page.list("[data-live-rows] > *").map((each) => each.textContent.trim());

test("new rows come above those that are there, which stay the same nodes", async () => {
  const page = open(live("", row(2) + row(1)), ["live"], { answers: { "/": live("", row(3) + row(2) + row(1)).replace('after="1"', 'after="2"') } });
  page.window.scrollBy = () => {};
  const old = page.find("#m2");
  page.find("#live").innerHTML = '<a href="/">1 new</a>';
  page.click(page.find("#live a"));
  await settle();
  assert.deepEqual(rows(page), ["3", "2", "1"]);
  assert.equal(page.find("#m2"), old);
  assert.deepEqual(page.list("[data-new]").map((each) => each.id), ["m3"]);
  assert.equal(page.find("#live").dataset.after, "2");
});

test("a gap between the new and the old is said", async () => {
  const page = await loadNew("", row(2) + row(1), row(9) + row(8));
  assert.deepEqual(rows(page).length, 5);
  assert.match(page.find(".live-gap").textContent, /more between these/);
});

test("in a window of a conversation a changed wording is taken over and what fell out goes", async () => {
  const page = await loadNew("window", row(1) + row(2), row(2, "told otherwise") + row(3));
  assert.deepEqual(rows(page), ["told otherwise", "3"]);
});

test("a page that looks different now is opened as any other", async () => {
  const page = open(live("", row(1)), ["live"], { answers: { "/": "<h1>Sign in</h1>" } });
  page.find("#live").innerHTML = '<a href="/list">1 new</a>';
  page.click(page.find("#live a"));
  await settle();
  assert.deepEqual(page.visited, ["http://inspector.test/list"]);
});

test("of two questions the later one counts, whichever is answered first, and a suggestion is taken by a click", async () => {
  const slow = [];
  const page = open(BAR, ["suggestions"], { answers: { "/suggest": () => new Promise((done) => slow.push(done)) } });
  const input = page.find("input");
  for (const typed of ["\ud83d", "\ud83d d"]) {
    page.type(input, typed);
    await settle(160);
  }
  slow[1]({ start: 2, items: [{ text: "dialect:", about: "" }] });
  slow[0]({ start: 0, items: [{ text: "stale", about: "" }] });
  await settle();
  assert.deepEqual(texts(page), ["dialect:"]);
  assert.equal(page.fire(page.find("code"), "mousedown"), false, "the field keeps the focus");
  assert.equal(input.value, "\ud83d dialect:", "half a pair counts as one");
  assert.equal(page.find("ul").hidden, true);
});

test("the palette shows what was asked last, and nothing once it is closed", async () => {
  const slow = [];
  const page = open(`<div class="topbar"><button data-palette-open>p</button></div>${PALETTE}`, ["palette"], {
    answers: { "/places": () => new Promise((done) => slow.push(done)) },
  });
  const answer = (title) => ({ items: [{ title, kind: "k", url: `/${title}` }] });
  page.click(page.find("[data-palette-open]"));
  page.type(page.find("dialog input"), "FIX");
  await settle(120);
  slow[1](answer("later"));
  slow[0](answer("earlier"));
  await settle();
  assert.deepEqual(texts(page), ["Mark as fixed", "later"]);
  page.click(page.list("[role=option] span")[2]);
  assert.deepEqual(page.visited, ["/later"]);
  page.type(page.find("dialog input"), "");
  await settle(120);
  page.click(page.find("dialog"));
  slow[2](answer("too late"));
  await settle();
  assert.deepEqual([page.find("dialog").open, texts(page).length], [false, 2]);
});

// As templates/_live.html makes it; what waits is kept here and not waited for.
function region(more = "", before = () => {}) {
  const waits = [];
  const page = open(`<div id="live" role="status" data-after="1" data-every="10" ${more} hx-get="/live" hx-trigger="live:ask"></div>`, ["live"], {
    before: (given) => {
      given.window.setTimeout = (call, ms) => waits.push({ call, ms });
      before(given);
    },
  });
  const answer = (after, { status = 200, asked = "1", words = "" } = {}) => {
    const xhr = { status, getResponseHeader: (name) => (name === "Live-After" ? after : null) };
    const detail = { xhr, successful: status < 400, shouldSwap: true, requestConfig: { parameters: { after: asked } } };
    page.fire(page.find("#live"), "htmx:beforeSwap", { detail });
    if (detail.shouldSwap) page.find("#live").innerHTML = words;
    page.fire(page.find("#live"), "htmx:afterRequest", { detail });
  };
  const look = (hidden) => {
    Object.defineProperty(page.document, "hidden", { value: hidden, configurable: true });
    page.fire(page.document, "visibilitychange");
  };
  return { page, waits, answer, look, at: () => page.find("#live").dataset.after };
}
const isAbout = (ms, seconds) => ms >= seconds * 900 && ms <= seconds * 1100;

test("a page asks from where it stands, rarer after failures, and not while nobody looks", () => {
  const { page, waits, answer, look, at } = region();
  let asked = 0;
  page.find("#live").addEventListener("live:ask", () => (asked += 1));
  assert.ok(isAbout(waits.at(-1).ms, 10));
  waits.at(-1).call();
  assert.equal(asked, 1);
  const parameters = {};
  page.fire(page.find("#live"), "htmx:configRequest", { detail: { parameters } });
  assert.deepEqual(parameters, { after: "1" });
  answer("5", { words: "<a href='/'>4 new</a>" });
  assert.deepEqual([at(), page.find("#live").textContent], ["5", "4 new"]);
  answer("3", { words: "an overtaken answer" });
  assert.deepEqual([at(), page.find("#live").textContent], ["5", "4 new"]);
  for (const seconds of [20, 40, 80, 160, 240, 240]) {
    answer(null, { status: 503 });
    assert.ok(isAbout(waits.at(-1).ms, seconds), `${seconds}`);
  }
  answer("6", { asked: "5" });
  assert.ok(isAbout(waits.at(-1).ms, 10));
  const before = waits.length;
  look(true);
  answer("7", { asked: "6" });
  assert.equal(waits.length, before);
  look(false);
  assert.equal(waits.length, before + 1);
});

test("whoever is signed out, no member any more or shown all that can be said asks no more", () => {
  for (const last of [[null], [null, { status: 403 }], ["2", { words: "<a data-full>many</a>" }]]) {
    const { waits, answer, look } = region();
    answer(...last);
    look(false);
    assert.equal(waits.length, 1, "the first question only");
  }
});

test("a stream tells what is new, is left when hidden, and given up for asking when it fails", () => {
  const sources = [];
  const streams = ({ window }) => {
    window.EventSource = class extends window.EventTarget {
      static CLOSED = 2;
      constructor(address) {
        super();
        sources.push(Object.assign(this, { address: `${address.pathname}${address.search}`, close: () => (this.isClosed = true) }));
      }
    };
  };
  const { page, waits, look, at } = region('data-events="/events?workspace=w"', streams);
  assert.equal(sources[0].address, "/events?workspace=w&after=1");
  page.fire(sources[0], "news", { data: "<a href='/'>3 new</a>", lastEventId: "4" });
  assert.deepEqual([at(), page.find("#live a").textContent], ["4", "3 new"]);
  look(true);
  assert.equal(sources[0].isClosed, true);
  look(false);
  page.fire(page.window, "pageshow");
  assert.deepEqual([sources.length, sources[1].address], [2, "/events?workspace=w&after=4"]);
  for (const name of ["error", "error", "open", "error", "error"]) page.fire(sources[1], name);
  assert.deepEqual([sources[1].isClosed, waits.length], [undefined, 0], "it may come again by itself");
  page.fire(sources[1], "error");
  assert.deepEqual([sources[1].isClosed, waits.length], [true, 1]);
  const other = region('data-events="/events"', streams);
  page.fire(sources[2], "bye");
  other.look(false);
  assert.deepEqual([sources.length, sources[2].isClosed, other.waits.length], [3, true, 0]);
});
