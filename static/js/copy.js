// Copies the text of the element that a button names in data-copy, and says so in the button.
"use strict";

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  const words = button.querySelector("[data-copy-words]") ?? button;
  try {
    await navigator.clipboard.writeText(source.dataset.whole ?? source.textContent);
    words.textContent = "Copied";
  } catch {
    words.textContent = "Select and copy by hand";
    getSelection().selectAllChildren(source);
  }
});
