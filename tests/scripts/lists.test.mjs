// Lists: the keys, the choice of findings, filters, and what is copied.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open, settle } from "./page.mjs";

const ROWS = [1, 2, 3].map((n) => `<li data-item><a data-open href="/m/${n}">${n}</a><input type=checkbox data-choose></li>`);
const LIST = `<input data-search><ul>${ROWS.join("")}</ul><dialog id=keys></dialog><a data-review href="#r">review</a>`;

test("j and k walk the rows and stop at the ends", () => {
  const page = open(LIST, ["keys"]);
  const at = () => page.list("[data-item]").findIndex((row) => row.hasAttribute("data-current"));
  for (const [key, expected] of [["j", 0], ["j", 1], ["j", 2], ["j", 2], ["k", 1], ["k", 0], ["k", 0]]) {
    page.press(key);
    assert.equal(at(), expected, key);
  }
  assert.equal(page.document.activeElement.textContent, "1");
  assert.equal(page.list("[data-current]").length, 1);
});

test("keys do nothing while somebody types, with a modifier, or below a dialog", () => {
  const page = open(LIST, ["keys"]);
  assert.equal(page.press("j", page.find("[data-search]")).defaultPrevented, false);
  assert.equal(page.press("j", page.document.body, { ctrlKey: true }).defaultPrevented, false);
  page.press("?");
  assert.equal(page.find("#keys").open, true);
  assert.equal(page.press("j").defaultPrevented, false);
  assert.equal(page.find("[data-current]"), null);
});

test("x chooses the current row and says so to whoever counts", () => {
  const page = open(LIST, ["keys"]);
  let changes = 0;
  page.document.addEventListener("change", () => (changes += 1));
  page.press("x");
  assert.equal(changes, 0);
  page.press("j");
  page.press("x");
  assert.deepEqual(page.list("[data-choose]").map((box) => box.checked), [true, false, false]);
  assert.equal(changes, 1);
});

test("a page of one thing goes to its neighbour", () => {
  const page = open(`<a rel=prev href="#p">p</a><a rel=next href="#n">n</a>`, ["keys"]);
  const clicked = [];
  page.document.addEventListener("click", (event) => clicked.push(event.target.rel));
  page.press("j");
  page.press("k");
  assert.deepEqual(clicked, ["next", "prev"]);
});

test("/ goes to the page's own search bar, ? and its button open the sheet, r and c press what the page has", () => {
  const page = open(`<div class="topbar"><input data-search><button data-keys>?</button></div>${LIST}<a data-copy-link href="#c">c</a>`, ["keys"]);
  const pressed = [];
  page.document.addEventListener("click", (event) => pressed.push(event.target.hash ?? event.target.tagName));
  page.press("/");
  assert.equal(page.document.activeElement, page.list("[data-search]")[1]);
  page.document.activeElement.blur();
  page.press("r");
  page.press("c");
  page.click(page.find("[data-keys]"));
  assert.deepEqual(pressed, ["#r", "#c", "BUTTON"]);
  assert.equal(page.find("#keys").open, true);
});

test("[ and ] close and open what is folded, and Escape raises what dropped down", () => {
  const page = open("<main><details><summary>a</summary></details></main><details data-drop><summary>b</summary><p>c</p></details>", ["keys"]);
  const [fold, drop] = page.list("details");
  page.press("]");
  assert.deepEqual([fold.open, drop.open], [true, false]);
  page.press("[");
  assert.equal(fold.open, false);
  drop.open = true;
  page.click(drop.querySelector("p"));
  assert.equal(drop.open, true, "a click within leaves it");
  page.press("Escape");
  assert.equal(drop.open, false);
});

const FINDINGS = `<label data-choose-all hidden><input type=checkbox><span>Choose all</span></label>
  ${[1, 2, 3].map(() => "<input type=checkbox data-choose>").join("")}
  <select id=judge-state><option value=open>open</option><option value=fixed selected>fixed</option></select>
  <textarea id=judge-reason required></textarea>`;

test("all findings of the page are chosen at once, and some are said", () => {
  const page = open(FINDINGS, ["findings"]);
  const box = page.find("[data-choose-all] input");
  const words = page.find("[data-choose-all] span");
  const boxes = page.list("[data-choose]");
  assert.equal(page.find("[data-choose-all]").hidden, false);
  boxes[0].checked = true;
  page.fire(boxes[0], "change");
  assert.deepEqual([box.checked, box.indeterminate, words.textContent], [false, true, "1 of 3 on this page"]);
  box.checked = true;
  page.fire(box, "change");
  assert.ok(boxes.every((each) => each.checked));
  assert.deepEqual([box.indeterminate, words.textContent], [false, "3 of 3 on this page"]);
  box.checked = false;
  page.fire(box, "change");
  assert.equal(words.textContent, "Choose all");
});

test("a finding is opened again without a reason, and decided only with one", () => {
  const page = open(FINDINGS, ["findings"]);
  const state = page.find("#judge-state");
  state.value = "open";
  page.fire(state, "change");
  assert.equal(page.find("#judge-reason").required, false);
  state.value = "fixed";
  page.fire(state, "change");
  assert.equal(page.find("#judge-reason").required, true);
});

const FILTERS = `<details data-narrow><summary>f</summary><form data-applies><select id=dialect name=dialect><option>a<option>b</select></form></details>`;

test("a changed filter is applied, and has the focus again on the page that comes", () => {
  let sent = 0;
  const watch = ({ window }) => (window.HTMLFormElement.prototype.requestSubmit = () => (sent += 1));
  const page = open(FILTERS, ["filters"], { before: watch });
  assert.equal(page.find("details").open, false, "no room for it");
  page.fire(page.find("#dialect"), "change");
  assert.equal(sent, 1);
  assert.equal(page.window.sessionStorage.getItem("filter"), "dialect");
  const next = open(FILTERS, ["filters"], { before: ({ window }) => window.sessionStorage.setItem("filter", "dialect") });
  assert.equal(next.document.activeElement.id, "dialect");
  assert.equal(next.find("details").open, true);
  assert.equal(next.window.sessionStorage.getItem("filter"), null);
});

test("filters are unfolded where there is room", () => {
  assert.equal(open(FILTERS, ["filters"], { media: { "(min-width: 60rem)": true } }).find("details").open, true);
});

const HOSTILE = "<img src=x onerror=alert(1)>\u202e";

function copyPage(body, more = {}) {
  const copied = [];
  const before = ({ window }) =>
    Object.defineProperty(window.navigator, "clipboard", { value: { writeText: (text) => void copied.push(text) } });
  return [open(body, ["copy"], { before, ...more }), copied];
}

test("what is copied is the whole text, as it stands", async () => {
  const [page, copied] = copyPage(`<pre id=raw></pre><pre id=cut data-whole="all of it">all…</pre>
    <button data-copy=raw>Copy</button><button data-copy=cut><span data-copy-words>Copy</span> it</button>`);
  page.find("#raw").textContent = HOSTILE;
  for (const button of page.list("button")) page.click(button);
  await settle();
  assert.deepEqual(copied, [HOSTILE, "all of it"]);
  assert.deepEqual(page.list("button").map((each) => each.textContent), ["Copied", "Copied it"]);
});

test("a link is copied, a text is fetched, and where that fails the link opens", async () => {
  const answers = { "/text": "told", "/gone": 404 };
  const [page, copied] = copyPage("<a data-copy-link href='#'>l</a><a data-copy-from href='/text'>t</a><a data-copy-from href='/gone'>g</a>", { path: "/m?a=1", answers });
  for (const link of page.list("a")) page.click(link);
  await settle();
  assert.deepEqual(copied, ["http://inspector.test/m?a=1", "told"]);
  assert.deepEqual(page.visited, ["http://inspector.test/gone"]);
  assert.equal(page.click(page.find("a"), { ctrlKey: true }).defaultPrevented, false);
});

test("without a clipboard the document copies, or says how to do it by hand", async () => {
  const before = ({ document }) => (document.execCommand = () => false);
  const page = open("<pre id=raw>text</pre><button data-copy=raw>Copy</button>", ["copy"], { before });
  page.click(page.find("button"));
  await settle();
  assert.equal(page.find("button").textContent, "Select and copy by hand");
  assert.equal(page.window.getSelection().toString(), "text");
  assert.equal(page.find("textarea"), null);
});
