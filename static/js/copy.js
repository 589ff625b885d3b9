// Copies: the text of the element that a button names in data-copy, what stands at a link with data-copy-from, or the
// address of a link with data-copy-link. It says so in the button. Without script those links simply open.
"use strict";

(() => {
  async function readFrom(link) {
    const response = await fetch(link.href);
    if (!response.ok) throw new Error(String(response.status));
    return response.text();
  }

  // A page that came over plain HTTP from another machine has no clipboard of its own: there the document copies what
  // is selected in it.
  async function write(text) {
    if (navigator.clipboard) {
      await navigator.clipboard.writeText(text);
      return;
    }
    const field = document.createElement("textarea");
    const focused = document.activeElement;
    field.value = text;
    field.className = "sr";
    document.body.append(field);
    field.select();
    const isCopied = document.execCommand("copy");
    field.remove();
    focused?.focus({ preventScroll: true });
    if (!isCopied) throw new Error("not copied");
  }

  async function copy(button) {
    const source = button.dataset.copy && document.getElementById(button.dataset.copy);
    const words = button.querySelector("[data-copy-words]") ?? button;
    // Of a button that still says what it did, what it says at rest.
    const before = (words.dataset.atRest ??= words.textContent);
    try {
      if (source) await write(source.dataset.whole ?? source.textContent);
      else if ("copyLink" in button.dataset) await write(location.href);
      else await write(await readFrom(button));
      words.textContent = "Copied";
      setTimeout(() => (words.textContent = before), 2000);
    } catch {
      if (!source) return location.assign(button.href);
      words.textContent = "Select and copy by hand";
      getSelection().selectAllChildren(source);
    }
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy], [data-copy-from], [data-copy-link]");
    if (!button || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    copy(button);
  });
})();
