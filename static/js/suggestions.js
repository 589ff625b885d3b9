// Suggestions below a search bar: a listbox that arrows walk through, Enter or Tab takes and Escape closes.
"use strict";

document.querySelectorAll("input[data-suggestions]").forEach((input, place) => {
  const list = document.createElement("ul");
  list.className = "suggestions";
  list.id = `suggestions-${place}`;
  list.hidden = true;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Suggestions");
  input.after(list);
  input.setAttribute("role", "combobox");
  input.setAttribute("aria-autocomplete", "list");
  input.setAttribute("aria-controls", list.id);
  input.setAttribute("aria-expanded", "false");

  let start = 0;
  let at = -1;
  let waiting;
  let asked = 0;

  function close() {
    list.hidden = true;
    at = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function mark(index) {
    at = index;
    Array.from(list.children).forEach((item, number) => item.setAttribute("aria-selected", String(number === at)));
    if (at < 0) return input.removeAttribute("aria-activedescendant");
    input.setAttribute("aria-activedescendant", list.children[at].id);
    list.children[at].scrollIntoView({ block: "nearest" });
  }

  function take(item) {
    const text = item.dataset.text;
    const end = input.selectionStart;
    const gap = text.endsWith(":") ? "" : " ";
    input.value = input.value.slice(0, start) + text + gap + input.value.slice(end).trimStart();
    const caret = start + text.length + gap.length;
    input.setSelectionRange(caret, caret);
    close();
    if (!gap) ask();
  }

  function show(answer) {
    start = answer.start;
    list.replaceChildren(
      ...answer.items.map((each, number) => {
        const item = document.createElement("li");
        item.id = `suggestion-${place}-${number}`;
        item.setAttribute("role", "option");
        item.setAttribute("aria-selected", "false");
        item.dataset.text = each.text;
        const text = document.createElement("code");
        text.textContent = each.text;
        const about = document.createElement("span");
        about.textContent = each.about;
        item.append(text, about);
        return item;
      }),
    );
    list.hidden = answer.items.length === 0;
    input.setAttribute("aria-expanded", String(!list.hidden));
    mark(-1);
  }

  async function ask() {
    const number = ++asked;
    const query = input.value.slice(0, input.selectionStart);
    const response = await fetch(`${input.dataset.suggestions}?${new URLSearchParams({ q: query })}`).catch(() => null);
    // An answer that a later question has overtaken says nothing any more.
    if (number !== asked || document.activeElement !== input) return;
    if (!response?.ok) return close(); // What is shown belongs to an earlier question.
    // The server counts code points and the field UTF-16: what is replaced is found from its end.
    const answer = await response.json();
    answer.start = Array.from(query).slice(0, answer.start).join("").length;
    show(answer);
  }

  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(ask, 120);
  });
  input.addEventListener("blur", () => setTimeout(close, 150));
  list.addEventListener("mousedown", (event) => {
    const item = event.target.closest("li");
    if (!item) return;
    event.preventDefault();
    take(item);
  });
  input.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    const last = list.children.length - 1;
    const actions = {
      ArrowDown: () => mark(at >= last ? 0 : at + 1),
      ArrowUp: () => mark(at <= 0 ? last : at - 1),
      Escape: close,
    };
    if (at >= 0) actions.Enter = actions.Tab = () => take(list.children[at]);
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  });
});
