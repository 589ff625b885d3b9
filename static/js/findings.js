// Choosing findings: all of the page at once, and how many are chosen. Without scripts each is chosen by hand.
// A finding is opened again without a reason; without scripts one is asked for there, too.
"use strict";

(() => {
  const decision = document.getElementById("judge-state");
  decision?.addEventListener("change", () => {
    document.getElementById("judge-reason").required = decision.value !== "open";
  });
  const all = document.querySelector("[data-choose-all]");
  const boxes = Array.from(document.querySelectorAll("[data-choose]"));
  if (!all || boxes.length === 0) return;
  const box = all.querySelector("input");
  const words = all.querySelector("span");
  const plain = words.textContent;

  function count() {
    const chosen = boxes.filter((each) => each.checked).length;
    box.checked = chosen === boxes.length;
    box.indeterminate = chosen > 0 && chosen < boxes.length;
    words.textContent = chosen > 0 ? `${chosen} of ${boxes.length} on this page` : plain;
  }

  all.hidden = false;
  box.addEventListener("change", () => {
    for (const each of boxes) each.checked = box.checked;
    count();
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-choose]")) count();
  });
  count();
})();
