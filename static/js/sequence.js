// The heads of a diagram that scrolls sideways stay below the top bar while the page scrolls. Where it has room the
// style sheet does that alone; without this script they stand on top of the drawing.
"use strict";

(() => {
  const diagram = document.querySelector(".diagram");
  const heads = diagram?.querySelector(".lanes");
  if (!heads) return;
  const bar = document.querySelector(".topbar");

  function follow() {
    const isBox = getComputedStyle(diagram).overflowX !== "visible";
    const hidden = Math.max(0, bar.getBoundingClientRect().bottom) - diagram.getBoundingClientRect().top;
    const down = Math.min(Math.max(0, hidden), diagram.clientHeight - heads.offsetHeight);
    if (isBox && down > 0) heads.style.translate = `0 ${down}px`;
    else heads.removeAttribute("style");
  }

  addEventListener("scroll", follow, { passive: true });
  addEventListener("resize", follow);
  follow();
})();
