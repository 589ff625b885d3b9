// Linked spans: hover or focus one piece, and every piece that shares characters with it lights up.
// data-span is written by the server as "layer:start-end …" in code points; here numbers are only compared,
// never counted, because the browser would count UTF-16. A click or Enter selects a piece: it stays lit, stands in the
// address as ?span=…, which the server lights without any script, and the page says what it is.
// In each text one piece is in the tab order, the lit one where there is one: Tab goes from pane to pane along what
// belongs together, the arrow keys from piece to piece.
"use strict";

(() => {
  const lit = "is-lit";
  const old = "#span=";
  const texts = ".wire, .read, .small, .table, .facts";
  const stops = "[data-span][tabindex], [data-piece]";
  let nodes = null;
  let pinned = null;
  let asked = 0;

  function parse(spans) {
    return spans
      .split(/[ +]/)
      .filter(Boolean)
      .map((span) => {
        const [layer, start, end] = span.split(/[:-]/).map(Number);
        return { layer, start, end };
      });
  }

  function list() {
    nodes ??= Array.from(document.querySelectorAll("[data-span]"), (node) => ({
      node,
      ranges: parse(node.dataset.span),
    }));
    return nodes;
  }

  const holder = (node) => node.closest("[data-span]");
  const share = (some, others) =>
    some.some((a) => others.some((b) => a.layer === b.layer && a.start < b.end && b.start < a.end));

  function light(ranges) {
    for (const item of list()) item.node.classList.toggle(lit, ranges !== null && share(item.ranges, ranges));
  }

  // The characters that the address meant: what is selected next is another piece.
  function forget() {
    for (const node of document.querySelectorAll(".is-exact")) node.replaceWith(...node.childNodes);
  }

  // One stop in each text: what is lit there, else where one was last.
  function arrange() {
    for (const text of document.querySelectorAll(texts)) {
      const pieces = listStops(text);
      if (pieces.length === 0) continue;
      const chosen =
        pieces.find((piece) => holder(piece).classList.contains(lit) && !("branch" in holder(piece).dataset)) ??
        pieces.find((piece) => piece.tabIndex === 0) ??
        pieces[0];
      for (const piece of pieces) piece.tabIndex = piece === chosen ? 0 : -1;
    }
  }

  const listStops = (text) => Array.from(text.querySelectorAll(stops)).filter((each) => each.closest(texts) === text);

  function follow(event) {
    const node = event.target.closest?.("[data-span]");
    light(node ? parse(node.dataset.span) : pinned);
    if (event.type === "focusin" && node) arrange();
  }

  function write(spans) {
    const address = new URL(location.href);
    address.searchParams.delete("span");
    const query = address.searchParams.toString();
    const lead = query ? `${query}&` : "";
    const search = spans ? `?${lead}span=${spans.replaceAll(" ", "+")}` : query && `?${query}`;
    history.replaceState(null, "", address.pathname + search);
  }

  function pin(node) {
    pinned = parse(node.dataset.span);
    forget();
    write(node.dataset.span);
    light(pinned);
    arrange();
    describe();
  }

  function release() {
    pinned = null;
    forget();
    write("");
    light(null);
    describe();
  }

  // What is selected: the server knows its bytes and what can be searched for.
  async function describe() {
    const place = document.getElementById("selected");
    if (!place) return;
    const number = ++asked;
    const response = await fetch(location.href, { headers: { "HX-Request": "true" } }).catch(() => null);
    const text = response?.ok ? await response.text() : "";
    if (number !== asked) return;
    // What stands there describes an earlier selection.
    if (!response?.ok) return place.replaceChildren("What is selected cannot be told now. Load the page again.");
    const parsed = new DOMParser().parseFromString(text, "text/html");
    place.replaceChildren(...parsed.body.childNodes);
  }

  function step(node, by) {
    const pieces = listStops(node.closest(texts));
    const next = pieces[pieces.indexOf(node) + by];
    if (!next) return;
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  }

  if (list().length === 0) return;
  arrange();
  document.addEventListener("pointerover", follow);
  document.addEventListener("focusin", follow);
  document.addEventListener("focusout", () => light(pinned));
  document.addEventListener("click", (event) => {
    const node = event.target.closest("[data-span]");
    // Who drags over characters means these, and not the piece in which the pointer ends.
    if (!node || !getSelection().isCollapsed) return;
    if (event.target.closest("[data-piece]") && !event.ctrlKey && !event.metaKey) event.preventDefault();
    else if (event.target.closest("a, button, summary")) return;
    pin(node);
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches(stops)) {
      const ways = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
      if (event.key in ways) {
        event.preventDefault();
        return step(event.target, ways[event.key]);
      }
      if (event.key === "Enter" && event.target.matches("[data-span]")) pin(event.target);
    }
    if (event.key === "Escape" && pinned) release();
  });

  const given = new URLSearchParams(location.search).get("span");
  const written = given ?? (location.hash.startsWith(old) ? decodeURIComponent(location.hash.slice(old.length)) : "");
  if (written) {
    pinned = parse(written);
    light(pinned);
    arrange();
    if (given === null) {
      write(written.replaceAll("+", " "));
      describe();
    }
    document.querySelector(`.wire .is-exact, .wire .${lit}`)?.scrollIntoView({ block: "nearest" });
  }
})();
