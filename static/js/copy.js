// Copies: the text of the element that a button names in data-copy, what stands at a link with data-copy-from, or the
// address of a link with data-copy-link. It says so in the button. Without script those links simply open.
"use strict";

(() => {
  async function readFrom(link) {
    const response = await fetch(link.href);
    if (!response.ok) throw new Error(String(response.status));
    return response.text();
  }

  async function copy(button) {
    const source = button.dataset.copy && document.getElementById(button.dataset.copy);
    const words = button.querySelector("[data-copy-words]") ?? button;
    const before = words.textContent;
    try {
      if (source) await navigator.clipboard.writeText(source.dataset.whole ?? source.textContent);
      else if ("copyLink" in button.dataset) await navigator.clipboard.writeText(location.href);
      else await navigator.clipboard.writeText(await readFrom(button));
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
