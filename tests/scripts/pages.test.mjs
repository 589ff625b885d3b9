// The tree and its windows, uploads, and the small scripts of one page each.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open, settle } from "./page.mjs";

const line = (n, level = 1, more = "") =>
  `<tr id="t${n}" tabindex="-1" data-item aria-level="${level}" ${more}><td><a data-open class="subject" href="#m${n}">${n}</a></td><td></td></tr>`;
const parent = (n) => line(n, 1, `aria-expanded="true" data-fold="f${n}"`).replace("<td>", '<td><button data-twist>-</button>');
const win = (at, lines, next = "") => `<tbody data-window data-at="${at}" ${next && `data-next="${next}"`}>${lines}</tbody>`;
const tree = (windows) => `<table data-tree>${windows}</table><div data-pages hidden><a data-more href="?at=2">More</a></div>`;
const shown = (page) => page.list("[data-tree] [data-item]").map((row) => row.id);

test("the arrows walk the tree, climb to the parent and open what is below", () => {
  const page = open(tree(win(1, parent(1) + line(2, 2) + line(3, 2) + line(4))), ["tree"]);
  page.find("#t3").focus();
  const at = () => page.document.activeElement.id;
  for (const [key, expected] of [["ArrowUp", "t2"], ["ArrowDown", "t3"], ["ArrowLeft", "t1"], ["ArrowRight", "t2"], ["ArrowDown", "t3"], ["ArrowDown", "t4"], ["ArrowDown", "t4"]]) {
    assert.equal(page.press(key).defaultPrevented, true);
    assert.equal(at(), expected, key);
  }
  page.press("Enter");
  assert.equal(page.press("ArrowDown", page.document.body).defaultPrevented, true, "from the current row on");
});

test("the next window is fetched when the last row comes into view, and the end is said", async () => {
  const answers = { "/t?at=2": win(2, line(3) + line(4)) };
  const page = open(tree(win(1, line(1) + line(2), "/t?at=2")), ["tree"], { path: "/t", answers });
  page.intersect(page.find("#t1"));
  assert.deepEqual(page.fetched, []);
  page.intersect(page.find("#t2"));
  await settle();
  assert.deepEqual(shown(page), ["t1", "t2", "t3", "t4"]);
  assert.match(page.find("[data-pages]").textContent, /End of the tree/);
});

test("where no window comes, the links below lead on", async () => {
  const page = open(tree(win(1, line(1), "/t?at=2")), ["tree"]);
  page.intersect(page.find("#t1"));
  await settle();
  assert.equal(page.find("[data-pages]").hidden, false);
  assert.deepEqual(shown(page), ["t1"]);
});

test("a window far away gives up its rows and gets them back", async () => {
  const answers = { "/t?at=1": win(1, line(1)) };
  for (const n of [2, 3, 4, 5]) answers[`/t?at=${n}`] = win(n, line(n), n < 5 ? `/t?at=${n + 1}` : "");
  const page = open(tree(win(1, line(1), "/t?at=2")), ["tree"], { path: "/t", answers });
  for (const n of [1, 2, 3, 4]) {
    page.intersect(page.find(`#t${n}`));
    await settle();
  }
  const first = page.find("[data-window]");
  assert.deepEqual(shown(page), ["t2", "t3", "t4", "t5"]);
  assert.ok("empty" in first.dataset && page.observed.has(first));
  page.intersect(first);
  await settle();
  assert.equal(shown(page)[0], "t1");
  assert.equal(first.querySelector("[role=presentation]"), null);
});

test("closing a row stands in the address and fetches its window anew", async () => {
  const page = open(tree(win(1, parent(1) + line(2, 2) + line(3))), ["tree"], { path: "/t?hit=2", answers: { "/t": win(1, parent(1) + line(3)) } });
  page.click(page.find("[data-twist]"));
  await settle();
  assert.deepEqual(shown(page), ["t1", "t3"]);
  assert.equal(page.window.location.search, "?hit=2&fold=f1");
  assert.equal(page.fetched[0], "/t?fold=f1&at=1", "what is looked for would lead elsewhere");
  assert.equal(page.document.activeElement.id, "t1");
  page.click(page.find("[data-twist]"));
  await settle();
  assert.equal(page.window.location.search, "?hit=2");
});

test("an answer that is no window changes nothing, and the map leads to a time", async () => {
  const map = '<div class="minimap" data-first="1000" data-last="3000"></div>';
  const page = open(map + tree(win(1, parent(1) + line(2, 2))), ["tree"], { path: "/t?hit=2&at=9", answers: { "/t": "<p>Sign in</p>" } });
  page.find("#t1").focus();
  page.press("[");
  await settle();
  assert.deepEqual(shown(page), ["t1", "t2"]);
  assert.equal(page.find("[data-pages]").hidden, false);
  page.find(".minimap").getBoundingClientRect = () => ({ left: 100, width: 200 });
  for (const clientX of [150, 500]) page.click(page.find(".minimap"), { clientX });
  const times = page.visited.map((each) => Array.from(new URL(each).searchParams));
  assert.deepEqual(times, [[["fold", "f1"], ["time", "1500"]], [["fold", "f1"], ["time", "3000"]]]);
});

const UPLOAD = `<div class="page-head"><ol class="steps"><li>choose</li><li>decide</li></ol></div>
  <form data-upload action="/upload"><div class="dropzone"></div><input type="file" name="file"><button data-without-script>Send</button></form>
  <ul id="uploads" tabindex="-1"></ul><p data-all-files hidden>Load all <b data-count></b></p>
  <template id="upload-row"><li class="upload"><b data-name></b><span data-words></span><progress></progress></li></template>`;

function uploadPage() {
  const sent = [];
  const before = ({ window }) => {
    window.XMLHttpRequest = class extends window.EventTarget {
      upload = new window.EventTarget();
      open(...given) {
        this.given = given;
      }
      setRequestHeader() {}
      send(data) {
        sent.push(this);
        this.file = data.get("file");
      }
    };
  };
  const page = open(UPLOAD, ["uploads"], { before });
  const answer = (at, status, responseText = "") => {
    Object.assign(sent[at], { status, responseText });
    page.fire(sent[at], "load");
  };
  const drop = (...files) =>
    page.fire(page.document.body, "drop", { dataTransfer: { files: files.map(([name, text]) => new page.window.File([text], name)) } });
  return { page, sent, answer, drop };
}

test("files go up one after the other, and each becomes the server's card", async () => {
  const { page, sent, answer, drop } = uploadPage();
  assert.equal(page.fire(page.document.body, "dragover"), false);
  assert.equal("over" in page.find(".dropzone").dataset, true);
  assert.equal(drop(["<b>.log", "x"], ["two.log", "y".repeat(1500)]), false, "or the browser would leave for the file");
  assert.equal("over" in page.find(".dropzone").dataset, false);
  assert.deepEqual(sent[0].given, ["POST", "http://inspector.test/upload"]);
  const step = () => page.list(".steps li").map((each) => each.getAttribute("aria-current") ?? each.hasAttribute("data-past"));
  assert.deepEqual(page.list("[data-name]").map((each) => each.textContent), ["<b>.log", "two.log"]);
  assert.equal(page.list("[data-words]")[1].textContent, "waits, 1.5 kB");
  assert.equal(sent.length, 1);
  page.fire(sent[0].upload, "progress", { loaded: 999_950, total: 2_000_000 });
  assert.equal(page.find("[data-words]").textContent, "1.0 MB of 2.0 MB sent");
  answer(0, 200, '<li class="staged">card</li>');
  assert.equal(sent[1].file.name, "two.log");
  await settle();
  assert.deepEqual(step(), ["step", false], "the least advanced counts");
  answer(1, 200, '<li class="staged">card</li>');
  assert.equal(page.find("[data-all-files]").hidden, false);
  assert.equal(page.find("[data-all-files]").textContent, "Load all 2");
  await settle();
  assert.deepEqual(step(), [true, "step"]);
});

test("what the server refuses is said in its words, or in ours, and the next file goes on", () => {
  const { page, sent, answer, drop } = uploadPage();
  drop(["a", ""], ["b", ""], ["c", ""], ["d", ""]);
  answer(0, 422, "It is empty: <nothing>.");
  answer(1, 413);
  answer(2, 500);
  page.fire(sent[3], "error");
  const words = page.list("[role=alert] [data-words]").map((each) => each.textContent);
  assert.equal(page.list(".upload[data-severity=error] progress").length, 0);
  assert.equal(page.list(".upload[data-severity=error]").length, 4);
  assert.equal(words[0], "It is empty: <nothing>.");
  assert.match(words[1], /larger than the inspector takes/);
  assert.match(words[2], /refused it \(500\)/);
  assert.match(words[3], /adds only what is new/);
});

test("pasted text is a file, but not what is pasted into a field", () => {
  const { page, sent } = uploadPage();
  const clipboardData = { files: [], getData: () => "?Uk/co" };
  page.fire(page.find("input"), "paste", { clipboardData });
  assert.equal(sent.length, 0);
  page.fire(page.document.body, "paste", { clipboardData });
  assert.equal(sent[0].file.name, "pasted.log");
});

test("the theme is the reader's, else the system's, and is kept where it can be", () => {
  const button = "<button data-theme-toggle>t</button>";
  const dark = { "(prefers-color-scheme: dark)": true };
  const page = open(button, ["theme"], { media: dark });
  const { dataset } = page.document.documentElement;
  assert.equal(dataset.theme, undefined);
  page.click(page.find("button"));
  assert.deepEqual([dataset.theme, page.window.localStorage.getItem("theme")], ["light", "light"]);
  const chosen = (value) => ({ before: ({ window }) => window.localStorage.setItem("theme", value) });
  assert.equal(open(button, ["theme"], chosen("dark")).document.documentElement.dataset.theme, "dark");
  assert.equal(open(button, ["theme"], chosen("<b>")).document.documentElement.dataset.theme, undefined);
  const forbidden = ({ window }) =>
    Object.defineProperty(window, "localStorage", { get() { throw new Error("forbidden"); } });
  const without = open(button, ["theme"], { before: forbidden });
  without.click(without.find("button"));
  assert.equal(without.document.documentElement.dataset.theme, "dark");
});

test("an example is put into the field and told; what waits says so", () => {
  const page = open(`<textarea id="id_text"></textarea><div data-examples><button name="text" value="?Uk/co">e</button></div><div id="told"></div>`, ["translator"]);
  let inputs = 0;
  page.find("textarea").addEventListener("input", () => (inputs += 1));
  assert.equal(page.click(page.find("button")).defaultPrevented, true);
  assert.deepEqual([page.find("textarea").value, inputs], ["?Uk/co", 1]);
  page.fire(page.document, "htmx:beforeRequest");
  assert.equal(page.find("#told").getAttribute("aria-busy"), "true");
  page.fire(page.document, "htmx:afterSettle");
  assert.equal(page.find("#told").getAttribute("aria-busy"), "false");
});

test("the heads of a diagram follow the page below the top bar, and no further than its end", () => {
  const box = (node, top, bottom) => (node.getBoundingClientRect = () => ({ top, bottom }));
  const page = open('<div class="topbar"></div><div class="diagram" style="overflow-x: auto"><div class="lanes"></div></div>', ["sequence"], {
    before: ({ document, window }) => {
      const diagram = document.querySelector(".diagram");
      box(document.querySelector(".topbar"), 0, 50);
      box(diagram, 100, 1100);
      Object.defineProperty(diagram, "clientHeight", { value: 1000 });
      Object.defineProperty(window.HTMLElement.prototype, "offsetHeight", { value: 40 });
    },
  });
  const heads = page.find(".lanes");
  const scrolled = (top) => {
    box(page.find(".diagram"), top, top + 1000);
    page.fire(page.window, "scroll");
    return heads.style.translate;
  };
  assert.ok(!scrolled(100), "the bar covers nothing of it");
  assert.equal(scrolled(-50), "0 100px");
  assert.equal(scrolled(-2000), "0 960px");
});

test("a button prints, and is shown only where it can", () => {
  let printed = 0;
  const page = open("<button data-print hidden>Print</button>", ["print"], { before: ({ window }) => (window.print = () => (printed += 1)) });
  assert.equal(page.find("button").hidden, false);
  page.click(page.find("button"));
  assert.equal(printed, 1);
});

test("the manual reads the description that the page names and asks no other service", () => {
  let given;
  const before = ({ window }) => {
    window.SwaggerUIBundle = Object.assign((options) => (given = options), { presets: {} });
    window.localStorage.setItem("theme", "dark");
  };
  const page = open('<div id="manual" data-description="/api/schema"></div>', ["api-manual"], { before });
  assert.deepEqual([given.url, given.validatorUrl], ["/api/schema", null]);
  assert.ok(page.document.documentElement.classList.contains("dark-mode"));
});

// A form that asks for a passkey; `credentials` is what the browser gives, by what it is asked for.
function askForPasskey(question, credentials) {
  const sent = [];
  const before = ({ window }) => {
    window.PublicKeyCredential = { parseCreationOptionsFromJSON: (o) => ["new", o], parseRequestOptionsFromJSON: (o) => ["own", o] };
    Object.defineProperty(window.navigator, "credentials", { value: credentials });
    window.HTMLFormElement.prototype.submit = function () {
      sent.push(this.elements.credential.value);
    };
  };
  const body = `<form data-passkey><input name="credential"><p class="field-error" hidden>none</p></form>
    <script id="passkey" type="application/json">${JSON.stringify(question)}</script>`;
  const page = open(body, ["passkeys"], { before });
  page.fire(page.find("form"), "submit");
  return { page, sent };
}

test("a new passkey, and one that signs in, are asked for by the server's question and sent with the form", async () => {
  const give = ({ publicKey }) => Promise.resolve({ toJSON: () => publicKey });
  const credentials = { create: give, get: give };
  for (const [question, answer] of [
    [{ creation_options: { publicKey: "a" } }, '["new","a"]'],
    [{ request_options: { publicKey: "b" } }, '["own","b"]'],
  ]) {
    const { sent, page } = askForPasskey(question, credentials);
    await settle();
    assert.deepEqual(sent, [answer]);
    assert.ok(page.find("p").hidden);
  }
});

test("a passkey that is refused sends nothing and says so", async () => {
  const { sent, page } = askForPasskey({ request_options: { publicKey: "b" } }, { get: () => Promise.reject(new Error("no")) });
  await settle();
  assert.deepEqual(sent, []);
  assert.equal(page.find("p").hidden, false);
});

test("the code of a link is taken out of the address and handed over, also that of a second link to an open page", () => {
  const sent = [];
  const before = ({ window }) => {
    window.HTMLFormElement.prototype.submit = function () {
      sent.push([this.elements.code.value, window.location.href]);
    };
  };
  const body = '<form data-code><input name="code"></form>';
  const page = open(body, ["codes"], { before, path: "/invitation/#one" });
  assert.deepEqual(sent, [["one", "http://inspector.test/invitation/"]]);
  page.window.history.replaceState(null, "", "/invitation/#two");
  page.window.dispatchEvent(new page.window.Event("hashchange"));
  assert.deepEqual(sent[1], ["two", "http://inspector.test/invitation/"]);
  open(body, ["codes"], { before, path: "/invitation/" });
  assert.equal(sent.length, 2);
});
