// A page in which a script of static/js runs as a browser would run it, with what the tests watch in place of the
// network, the address bar and the layout.
import { readFileSync } from "node:fs";
import { after } from "node:test";
import { JSDOM } from "jsdom";

const HOST = "http://inspector.test";
const windows = [];

// A page that waits to ask again would keep the tests from ending.
after(() => windows.forEach((window) => window.close()));

/** Opens a page with `body` and runs `scripts` in it.
 *
 * `answers` maps the beginning of an address to what `fetch` gives: a text, an object (as JSON), a status, or a function
 * of the address that returns one of these or a promise of it. An address without an answer fails as a lost connection.
 */
export function open(body, scripts, { answers = {}, path = "/", media = {}, before = () => {} } = {}) {
  const dom = new JSDOM(`<!doctype html><html><body>${body}</body></html>`, {
    url: HOST + path,
    runScripts: "outside-only",
    pretendToBeVisual: true,
  });
  const { window } = dom;
  windows.push(window);
  const { document } = window;
  const page = { window, document, fetched: [], visited: [], observed: new Set() };

  window.Element.prototype.scrollIntoView = function () {};
  window.Element.prototype.checkVisibility = function () {
    return !this.closest("[hidden]");
  };
  window.HTMLDialogElement.prototype.showModal = function () {
    this.open = true;
  };
  window.HTMLDialogElement.prototype.close = function () {
    this.open = false;
  };
  // No frame is drawn: what waits for one goes on at once, and no test waits for a clock.
  window.requestAnimationFrame = (call) => void queueMicrotask(call);
  window.matchMedia = (query) => ({ matches: media[query] ?? false, addEventListener() {} });
  window.IntersectionObserver = class {
    constructor(call) {
      page.intersect = (target) => call([{ target, isIntersecting: true }]);
    }
    observe(target) {
      page.observed.add(target);
    }
    unobserve(target) {
      page.observed.delete(target);
    }
  };
  window.htmx = { process() {}, trigger: (node, name) => node.dispatchEvent(new window.Event(name, { bubbles: true })) };
  window.fetch = async (address) => {
    const asked = String(address).replace(HOST, "");
    page.fetched.push(asked);
    const key = Object.keys(answers).find((each) => asked.startsWith(each));
    if (key === undefined) throw new TypeError("the connection is lost");
    const given = await (typeof answers[key] === "function" ? answers[key](asked) : answers[key]);
    if (typeof given === "number") return { ok: false, status: given, text: () => "", json: () => ({}) };
    return { ok: true, status: 200, text: () => given, json: () => given };
  };
  before(page);
  // A page of jsdom goes nowhere: where it was sent is noted.
  const bar = {
    assign: (address) => void page.visited.push(String(address)),
    get href() {
      return window.location.href;
    },
    get pathname() {
      return window.location.pathname;
    },
    get hash() {
      return window.location.hash;
    },
    get search() {
      return window.location.search;
    },
  };
  for (const name of scripts) {
    const code = readFileSync(new URL(`../../static/js/${name}.js`, import.meta.url), "utf8");
    window.eval(`(function (location) {${code}\n})`)(bar);
  }

  page.find = (selector) => document.querySelector(selector);
  page.list = (selector) => Array.from(document.querySelectorAll(selector));
  page.press = (key, target = document.activeElement, more = {}) => {
    const event = new window.KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more });
    target.dispatchEvent(event);
    return event;
  };
  page.click = (target, more = {}) => {
    const event = new window.MouseEvent("click", { bubbles: true, cancelable: true, ...more });
    target.dispatchEvent(event);
    return event;
  };
  page.fire = (target, name, more = {}) =>
    target.dispatchEvent(Object.assign(new window.Event(name, { bubbles: true, cancelable: true }), more));
  page.type = (input, text) => {
    input.focus();
    input.value = text;
    input.setSelectionRange(text.length, text.length);
    page.fire(input, "input");
  };
  return page;
}

/** Lets what was asked be answered; `ms` where a script waits before it asks. */
export const settle = (ms = 0) => new Promise((done) => setTimeout(done, ms));
