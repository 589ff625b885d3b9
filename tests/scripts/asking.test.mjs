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
  assert.equal(input.getAttribute("aria-expanded"), "true");
  page.press("Enter");
  assert.equal(input.value, "x fr", "nothing is chosen yet: Enter searches");
  page.press("ArrowUp");
  assert.equal(input.getAttribute("aria-activedescendant"), "suggestion-0-1");
  page.press("ArrowDown");
  page.press("ArrowDown");
  page.press("Tab");
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
