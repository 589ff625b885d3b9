// Keys: j and k walk the list of the page, Enter opens (the link has the focus), / goes to the search bar,
// x chooses the current row of a list, ? opens the sheet. Never while typing, never with a modifier.
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

  const actions = {
    j: () => walk(1),
    k: () => walk(-1),
    x: choose,
    "/": () => document.querySelector("[data-search]:not(.topbar *), [data-search]")?.focus(),
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

  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-keys]")) document.getElementById("keys")?.showModal();
  });
})();
