// Light or dark: the reader's choice, remembered in this browser; without one the system decides.
// Loaded before the first paint and not deferred, so that a page never flashes in the other theme.
"use strict";

(() => {
  const key = "theme";
  const root = document.documentElement;

  function readChoice() {
    try {
      return localStorage.getItem(key);
    } catch {
      return null; // Storage may be forbidden; the switch then lasts as long as the page.
    }
  }

  function keepChoice(theme) {
    try {
      localStorage.setItem(key, theme);
    } catch {
      // As above: nothing is lost but the memory of it.
    }
  }

  const chosen = readChoice();
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;

  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-theme-toggle]")) return;
    const systemIsDark = matchMedia("(prefers-color-scheme: dark)").matches;
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : systemIsDark;
    root.dataset.theme = isDark ? "light" : "dark";
    keepChoice(root.dataset.theme);
  });
})();
