// Filters: unfolded where there is room for them, and applied as soon as one is changed.
"use strict";

(() => {
  const kept = "filter"; // Which field was changed, so that it has the focus again on the page that comes.

  if (window.matchMedia("(min-width: 60rem)").matches) {
    document.querySelectorAll("details[data-narrow]").forEach((each) => {
      each.open = true;
    });
  }
  document.querySelectorAll("form[data-applies]").forEach((form) => {
    form.addEventListener("change", (event) => {
      sessionStorage.setItem(kept, event.target.id);
      form.requestSubmit();
    });
    const changed = form.elements.namedItem(sessionStorage.getItem(kept) || "-");
    sessionStorage.removeItem(kept);
    if (!changed) return;
    const fold = form.closest("details");
    if (fold) fold.open = true;
    changed.focus({ preventScroll: true });
  });
})();
