// The page of a message: pieces of English and characters that belong together, and comments on them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open, settle } from "./page.mjs";

// Spans count code points of a layer: 0 is the raw text, 1 what was inside it.
const MESSAGE = `
  <p class="read"><span data-span="0:0-2"><a data-piece href="?span=0:0-2">asks</a></span> <span data-span="0:3-5 1:0-4" tabindex="-1">about</span></p>
  <div class="wire" data-layer="0"><span data-span="0:0-2" tabindex="-1">?U</span><span data-span="0:2-3" tabindex="-1">k</span><span
    data-span="0:3-5" tabindex="-1">co</span></div>
  <div class="wire" data-layer="1"><span data-span="1:4-6" tabindex="-1">in</span></div>
  <div id="selected">nothing is selected</div>`;
const lit = (page) => page.list(".is-lit").map((node) => node.textContent);

test("what shares characters with a piece lights up, and goes out again", () => {
  const page = open(MESSAGE, ["spans"]);
  const [asks, about] = page.list(".read [data-span]");
  page.fire(asks, "pointerover");
  assert.deepEqual(lit(page), ["asks", "?U"]);
  page.fire(about, "pointerover");
  assert.deepEqual(lit(page), ["about", "co"], "spans that only touch share nothing, nor do those of another layer");
  page.fire(page.document.body, "pointerover");
  assert.deepEqual(lit(page), []);
});

test("one piece of each text is in the tab order, the lit one where there is one", () => {
  const page = open(MESSAGE, ["spans"]);
  const stops = () => page.list("[tabindex='0']").map((node) => node.textContent);
  assert.deepEqual(stops(), ["asks", "?U", "in"]);
  page.list(".wire [data-span]")[2].focus();
  assert.deepEqual(stops(), ["about", "co", "in"]);
  const event = page.press("ArrowLeft");
  assert.equal(event.defaultPrevented, true);
  assert.equal(page.document.activeElement.textContent, "k");
  page.press("ArrowLeft");
  assert.equal(page.press("ArrowLeft").defaultPrevented, true, "the first one is the end");
  assert.equal(page.document.activeElement.textContent, "?U");
  page.document.activeElement.blur();
  assert.deepEqual(lit(page), [], "what had the focus lights no more");
});

test("Enter chooses a piece as a click does, but no key with a modifier and no click that opens a tab", async () => {
  const page = open(MESSAGE, ["spans"], { path: "/m/1", answers: { "/m/1": "described" } });
  const [first, second] = page.list(".wire [data-span]");
  const search = () => page.window.location.search;
  first.focus();
  for (const modifier of ["ctrlKey", "metaKey", "altKey"]) {
    page.press("Enter", first, { [modifier]: true });
    page.press("ArrowRight", first, { [modifier]: true });
  }
  page.press("a", first);
  page.press("Escape", first);
  await settle();
  assert.deepEqual([search(), page.document.activeElement, page.fetched], ["", first, []]);
  for (const modifier of ["ctrlKey", "metaKey"]) assert.equal(page.click(page.find("[data-piece]"), { [modifier]: true }).defaultPrevented, false);
  assert.equal(search(), "");
  page.press("Enter", second);
  assert.equal(search(), "?span=0:2-3");
  assert.equal(page.click(page.find("[data-piece]")).defaultPrevented, true);
  assert.equal(search(), "?span=0:0-2");
  page.press("Escape", second);
  await settle();
  assert.deepEqual([search(), page.fetched.length], ["", 3], "that nothing is selected is told, too");
  page.fire(page.document.body, "pointerover");
  assert.deepEqual(lit(page), []);
});

test("a chosen piece stays lit, stands in the address and is described by the server", async () => {
  const page = open(MESSAGE, ["spans"], { path: "/m/1?a=b&span=0:9-9", answers: { "/m/1": (address) => `<b>${decodeURIComponent(address)}</b>` } });
  page.click(page.list(".read [data-span]")[1]);
  await settle();
  assert.equal(page.window.location.search, "?a=b&span=0:3-5+1:0-4");
  assert.deepEqual(lit(page), ["about", "co"]);
  assert.equal(page.find("#selected b").textContent, "/m/1?a=b&span=0:3-5+1:0-4");
  page.press("Escape");
  await settle();
  assert.equal(page.window.location.search, "?a=b");
  assert.deepEqual(lit(page), []);
});

test("an address that names a span lights it, the older form too", async () => {
  assert.deepEqual(lit(open(MESSAGE, ["spans"], { path: "/m/1?span=0:2-3" })), ["k"]);
  const page = open(MESSAGE, ["spans"], { path: "/m/1#span=0:3-5+1:0-4", answers: { "/m/1": "described" } });
  await settle();
  assert.deepEqual(lit(page), ["about", "co"]);
  assert.equal(page.window.location.search, "?span=0:3-5+1:0-4");
  assert.equal(page.find("#selected").textContent, "described");
});

test("no earlier description stands beside a later selection", async () => {
  const slow = [];
  const page = open(MESSAGE, ["spans"], { path: "/m/1", answers: { "/m/1": () => new Promise((done) => slow.push(done)) } });
  page.click(page.list(".wire [data-span]")[0]);
  page.click(page.list(".wire [data-span]")[1]);
  await settle();
  slow[1]("the second");
  slow[0]("the first");
  await settle();
  assert.equal(page.find("#selected").textContent, "the second");
  for (const [number, answer] of [() => 503, () => Promise.reject(new TypeError("lost"))].entries()) {
    page.click(page.list(".wire [data-span]")[number]);
    await settle();
    slow.at(-1)(answer());
    await settle();
    assert.match(page.find("#selected").textContent, /cannot be told now/);
  }
});

test("dragging over characters selects no piece", () => {
  const page = open(MESSAGE, ["spans"]);
  page.window.getSelection().selectAllChildren(page.find(".wire"));
  page.click(page.find(".wire [data-span]"));
  assert.deepEqual(lit(page), []);
});

const FORM = `<form id="comment"><input name="start"><input name="end"><textarea name="words"></textarea></form>`;
const place = '<p data-selected="0:2-5"><a href="#" data-comment-from="2" data-comment-to="5">Comment on it</a></p>';

test("characters that are dragged over are found by the server and fill the form in", async () => {
  const page = open(MESSAGE + FORM, ["comments"], { path: "/m/1?a=b&span=0:9-9", answers: { "/m/1": place } });
  const wire = page.find(".wire");
  page.window.getSelection().setBaseAndExtent(wire.children[1].firstChild, 0, wire.children[2].firstChild, 2);
  page.fire(wire.children[2], "pointerup");
  await settle();
  const asked = new URL(page.fetched[0], "http://x");
  assert.deepEqual([asked.searchParams.get("span"), asked.searchParams.get("chosen")], ["0:2-3 0:3-5", "kco"]);
  assert.equal(page.window.location.search, "?a=b&span=0:2-5");
  const { start, end, words } = page.find("form").elements;
  assert.deepEqual([start.value, end.value], ["2", "5"]);
  start.value = "";
  assert.equal(page.click(page.find("[data-comment-from]"), { ctrlKey: true }).defaultPrevented, false);
  assert.equal(page.click(page.find("[data-comment-from]")).defaultPrevented, true);
  assert.deepEqual([page.document.activeElement, start.value], [words, "2"]);
});

test("no earlier answer fills the form in, and one that fails is said", async () => {
  const slow = [];
  const page = open(MESSAGE + FORM, ["comments"], { path: "/m/1", answers: { "/m/1": () => new Promise((done) => slow.push(done)) } });
  const wire = page.find(".wire");
  const drag = () => {
    page.window.getSelection().selectAllChildren(wire.children[0]);
    page.fire(wire.children[0], "pointerup");
  };
  drag();
  drag();
  await settle();
  slow[1](place);
  slow[0](place.replaceAll("2", "0"));
  await settle();
  assert.equal(page.find("form").elements.start.value, "2");
  drag();
  await settle();
  slow[2](503);
  await settle();
  assert.match(page.find("#selected").textContent, /cannot be told now/);
  assert.equal(page.window.location.search, "?span=0:2-5");
});

test("a click beside the raw text, or a selection across two texts, asks nothing", async () => {
  const page = open(MESSAGE + FORM, ["comments"]);
  page.fire(page.find(".wire span"), "pointerup");
  const [first, second] = page.list(".wire");
  page.window.getSelection().setBaseAndExtent(first.firstChild.firstChild, 0, second.firstChild.firstChild, 1);
  page.fire(second.firstChild, "pointerup");
  page.window.getSelection().selectAllChildren(first);
  page.fire(page.find(".read"), "pointerup");
  page.window.getSelection().collapse(first.firstChild.firstChild, 1);
  page.fire(first.firstChild, "pointerup");
  open(FORM, ["comments"]);
  await settle();
  assert.deepEqual(page.fetched, []);
});
