// Puts an example into the text field, and marks what waits for its answer.
"use strict";

document.addEventListener("click", (event) => {
  const example = event.target.closest("[data-examples] button[name=text]");
  if (!example) return;
  event.preventDefault();
  const text = document.getElementById("id_text");
  text.value = example.value;
  text.dispatchEvent(new Event("input", { bubbles: true }));
  text.focus();
});

document.addEventListener("htmx:beforeRequest", () => document.getElementById("told")?.setAttribute("aria-busy", "true"));
document.addEventListener("htmx:afterSettle", () => document.getElementById("told")?.setAttribute("aria-busy", "false"));
