// Linked spans: hover or focus one piece, and every piece that shares characters with it lights up.
// data-span is written by the server as "layer:start-end …" in code points; here numbers are only compared,
// never counted, because the browser would count UTF-16. A click or Enter pins a piece and puts it in the address.
// In each text one piece is in the tab order; the arrow keys move from piece to piece.
"use strict";

(() => {
  const lit = "is-lit";
  const prefix = "#span=";
  const texts = ".wire, .read, .small, tr";
  let nodes = null;
  let pinned = null;

  function parse(spans) {
    return spans.split(" ").map((span) => {
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

  function share(some, others) {
    return some.some((a) => others.some((b) => a.layer === b.layer && a.start < b.end && b.start < a.end));
  }

  function light(ranges) {
    for (const item of list()) item.node.classList.toggle(lit, ranges !== null && share(item.ranges, ranges));
  }

  function follow(event) {
    const node = event.target.closest?.("[data-span]");
    light(node ? parse(node.dataset.span) : pinned);
  }

  function pin(node) {
    pinned = parse(node.dataset.span);
    history.replaceState(null, "", prefix + node.dataset.span.replaceAll(" ", "+"));
    light(pinned);
  }

  function group(node) {
    return Array.from(node.closest(texts).querySelectorAll("[data-span][tabindex]"));
  }

  function step(node, by) {
    const pieces = group(node);
    const next = pieces[pieces.indexOf(node) + by];
    if (!next) return;
    node.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  if (list().length === 0) return;
  const begun = new Set();
  for (const { node } of list()) {
    const text = node.closest(texts);
    if (begun.has(text) && node.hasAttribute("tabindex")) node.tabIndex = -1;
    begun.add(text);
  }
  document.addEventListener("pointerover", follow);
  document.addEventListener("focusin", follow);
  document.addEventListener("focusout", () => light(pinned));
  document.addEventListener("click", (event) => {
    const node = event.target.closest("[data-span]");
    if (node && !event.target.closest("a, button, summary")) pin(node);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.matches("[data-span]")) pin(event.target);
    if (event.key === "ArrowRight" && event.target.matches("[data-span]")) step(event.target, 1);
    if (event.key === "ArrowLeft" && event.target.matches("[data-span]")) step(event.target, -1);
    if (event.key === "Escape" && pinned) {
      pinned = null;
      history.replaceState(null, "", location.pathname + location.search);
      light(null);
    }
  });

  if (location.hash.startsWith(prefix)) {
    pinned = parse(decodeURIComponent(location.hash.slice(prefix.length)).replaceAll("+", " "));
    light(pinned);
    document.querySelector(`.wire .${lit}`)?.scrollIntoView({ block: "center" });
  }
})();
