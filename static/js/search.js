// Beside the hits there is room for what narrows them down; on a small screen it stays folded above them.
"use strict";

(() => {
  const wide = window.matchMedia("(min-width: 60rem)");
  if (!wide.matches) return;
  document.querySelectorAll("details[data-narrow]").forEach((each) => {
    each.open = true;
  });
})();
