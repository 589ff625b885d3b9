// The palette: Ctrl-K (or Cmd-K) opens it, letters narrow it down, arrows choose and Enter goes there. The server finds
// the places; what an earlier question answers too late is left aside. Before them stand the actions of the page itself:
// its buttons that change nothing (a report is made beside what it is of), and the decisions of its form, which are
// chosen and still need a reason.
"use strict";

(() => {
  const dialog = document.getElementById("palette");
  if (!dialog) return;
  const input = dialog.querySelector("input");
  const list = dialog.querySelector("[role=listbox]");
  const status = dialog.querySelector("[role=status]");
  let at = 0;
  let asked = 0;
  let waiting;
  let actions = [];

  function mark(index) {
    const all = Array.from(list.children);
    if (all.length === 0) return input.removeAttribute("aria-activedescendant");
    at = (index + all.length) % all.length;
    all.forEach((item, number) => item.setAttribute("aria-selected", String(number === at)));
    input.setAttribute("aria-activedescendant", all[at].id);
    all[at].scrollIntoView({ block: "nearest" });
  }

  function listActions(typed) {
    const buttons = document.querySelectorAll(
      ".page-head .actions :is(a.button, button[type=button], [data-palette-action]), .topbar :is([data-theme-toggle], [data-keys])",
    );
    const found = Array.from(buttons)
      .filter((button) => button.checkVisibility())
      .map((button) => ({ title: button.textContent.trim() || button.ariaLabel, run: () => button.click() }));
    for (const option of document.querySelectorAll("#judge-state option:not([value=''])")) {
      const decide = () => {
        option.selected = true;
        document.getElementById("judge-reason").focus();
      };
      const isMark = ["fixed", "false-alarm"].includes(option.value);
      const words = option.textContent;
      found.push({ title: isMark ? `Mark as ${words.toLowerCase()}` : words, run: decide });
    }
    const wanted = typed.trim().toLowerCase();
    return found
      .map((each) => ({ ...each, title: each.title.replace(/\s+/g, " "), kind: "action" }))
      .filter((each) => each.title.toLowerCase().includes(wanted));
  }

  function show(items) {
    actions = listActions(input.value);
    items = [...actions, ...items];
    list.replaceChildren(
      ...items.map((each, number) => {
        const item = document.createElement("li");
        item.id = `place-${number}`;
        item.setAttribute("role", "option");
        if (each.url) item.dataset.url = each.url;
        const title = document.createElement("span");
        title.textContent = each.title;
        const kind = document.createElement("span");
        kind.className = "quiet small";
        kind.textContent = each.kind;
        item.append(title, kind);
        return item;
      }),
    );
    status.textContent = items.length === 1 ? "1 place" : `${items.length} places`;
    mark(0);
  }

  async function ask() {
    const number = ++asked;
    const response = await fetch(`${dialog.dataset.palette}?${new URLSearchParams({ q: input.value })}`).catch(() => null);
    if (number !== asked || !dialog.open) return;
    if (!response?.ok) {
      status.textContent = "The places cannot be had now. Try again.";
      return;
    }
    const answer = await response.json();
    if (number === asked) show(answer.items);
  }

  function go(item) {
    if (!item) return;
    if (item.dataset.url) return location.assign(item.dataset.url);
    const action = actions[Array.from(list.children).indexOf(item)];
    dialog.close();
    action.run();
  }

  function open() {
    dialog.showModal();
    input.value = "";
    input.focus();
    ask();
  }

  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    // Never while typing; a search bar is where one goes from.
    const isTyping = event.target.matches?.("input:not([data-search]), textarea, select, [contenteditable]");
    if (isTyping || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    open();
  });
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(ask, 80);
  });
  input.addEventListener("keydown", (event) => {
    const ways = { ArrowDown: () => mark(at + 1), ArrowUp: () => mark(at - 1), Enter: () => go(list.children[at]) };
    if (event.isComposing || !ways[event.key]) return;
    event.preventDefault();
    ways[event.key]();
  });
  list.addEventListener("click", (event) => go(event.target.closest("li")));
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-palette-open]")) open();
    if (event.target === dialog) dialog.close();
  });
})();
