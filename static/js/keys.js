// Keys: j and k walk the list of the page, Enter opens (the link has the focus), / goes to the search bar,
// x chooses the current row of a list, ? opens the sheet, r goes to the review, c copies the link to what is shown,
// [ and ] close and open what is folded.
// Never while typing, never with a modifier. A tree has [ and ] of its own.
"use strict";

(() => {
  const items = () => Array.from(document.querySelectorAll("[data-item]"));
  const isTyping = (node) => node.matches?.("input:not([type=checkbox]), textarea, select, [contenteditable]");

  function walk(step) {
    const all = items();
    if (all.length === 0) return follow(step);
    const at = all.findIndex((item) => item.hasAttribute("data-current"));
    const next = all[Math.min(Math.max(at + step, 0), all.length - 1)];
    all[at]?.removeAttribute("data-current");
    next.setAttribute("data-current", "");
    (next.querySelector("[data-open]") ?? next).focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  }

  // A page that shows one thing of a series goes to its neighbour instead.
  function follow(step) {
    document.querySelector(step > 0 ? "a[rel=next]" : "a[rel=prev]")?.click();
  }

  function choose() {
    const box = document.querySelector("[data-current] [data-choose]");
    if (!box) return;
    box.checked = !box.checked;
    box.dispatchEvent(new Event("change", { bubbles: true }));
  }

  // What is folded: in the current row of a list, else on a page that has none.
  function fold(isOpen) {
    if (document.querySelector("[data-tree]")) return;
    const rows = items();
    const row = document.querySelector("[data-current]");
    if (rows.length > 0 && !row) return;
    const folds = (row ?? document.querySelector("main"))?.querySelectorAll("details:not([data-drop])") ?? [];
    for (const each of folds) each.open = isOpen;
  }

  const actions = {
    c: () => document.querySelector("[data-copy-link]")?.click(),
    r: () => document.querySelector("[data-review]")?.click(),
    "[": () => fold(false),
    "]": () => fold(true),
    j: () => walk(1),
    k: () => walk(-1),
    x: choose,
    "/": () => (document.querySelector("[data-search]:not(.topbar *)") ?? document.querySelector("[data-search]"))?.focus(),
    "?": () => document.getElementById("keys")?.showModal(),
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    const act = actions[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  // What dropped down goes up again: by Escape, by a click beside it.
  function raise(inside) {
    for (const drop of document.querySelectorAll("details[data-drop][open]")) {
      if (drop.contains(inside)) continue;
      if (drop.contains(document.activeElement)) drop.querySelector("summary").focus();
      drop.open = false;
    }
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") raise(null);
  });

  document.addEventListener("click", (event) => {
    raise(event.target);
    if (event.target.closest("[data-keys]")) document.getElementById("keys")?.showModal();
  });
})();
