// The numbers beside the entries of the navigation. No page waits for them: those of the page before stand there until
// the server has counted anew, and where it cannot be asked they stay.
"use strict";

(() => {
  const nav = document.querySelector("[data-counts]");
  if (!nav) return;
  const key = `counts ${nav.dataset.counts}`;

  function recall() {
    try {
      return JSON.parse(sessionStorage.getItem(key) ?? "{}");
    } catch {
      return {}; // Storage may be forbidden; the numbers then come a moment later.
    }
  }

  function keep(counts) {
    try {
      if (counts) sessionStorage.setItem(key, JSON.stringify(counts));
      else sessionStorage.removeItem(key);
    } catch {
      // As above.
    }
  }

  function show(counts) {
    for (const place of nav.querySelectorAll("[data-count]")) place.textContent = counts[place.dataset.count] ?? "";
  }

  async function ask() {
    try {
      const response = await fetch(nav.dataset.counts);
      if (!response.ok) return;
      const counts = await response.json();
      keep(counts);
      show(counts);
    } catch {
      // The reader is on the way to another page, or the server away.
    }
  }

  // What is sent may change them, and may be the last thing that somebody does here.
  document.addEventListener("submit", (event) => {
    if (event.target.method === "post") keep(null);
  });
  document.body.addEventListener("live:loaded", ask);
  show(recall());
  ask();
})();
