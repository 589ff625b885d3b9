// Comments on characters. What is selected fills the form in; characters that are dragged over in the raw are selected.
// The browser never counts: it names the pieces it touched and what was chosen in them, and the server finds the place.
"use strict";

(() => {
  const form = document.getElementById("comment");
  const place = document.getElementById("selected");
  if (!form || !place) return;
  let asked = 0;

  function fill() {
    const link = place.querySelector("[data-comment-from]");
    if (!link) return;
    form.elements.start.value = link.dataset.commentFrom;
    form.elements.end.value = link.dataset.commentTo;
  }

  // Whoever selects a piece by spans.js gets another answer into its place.
  new MutationObserver(fill).observe(place, { childList: true });

  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-comment-from]") || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    fill();
    form.scrollIntoView({ block: "center" });
    form.elements.words.focus();
  });

  document.addEventListener("pointerup", (event) => {
    const selection = getSelection();
    if (selection.isCollapsed || !event.target.closest?.(".wire[data-layer]")) return;
    const range = selection.getRangeAt(0);
    const wire = (range.commonAncestorContainer.closest ? range.commonAncestorContainer : range.commonAncestorContainer.parentElement).closest(
      ".wire[data-layer]",
    );
    if (!wire) return;
    const touched = Array.from(wire.querySelectorAll("[data-span]")).filter((piece) => range.intersectsNode(piece));
    const spans = touched.map((piece) => piece.dataset.span.split(" ")[0]);
    if (spans.length > 0) choose(spans, selection.toString());
  });

  async function choose(spans, chosen) {
    const number = ++asked;
    const address = new URL(location.href);
    const ends = spans.length > 1 ? [spans[0], spans.at(-1)] : spans;
    address.searchParams.set("span", ends.join(" "));
    address.searchParams.set("chosen", chosen);
    const response = await fetch(address, { headers: { "HX-Request": "true" } }).catch(() => null);
    const text = response?.ok ? await response.text() : "";
    if (number !== asked) return;
    // What stands there describes an earlier selection.
    if (!response?.ok) return place.replaceChildren("What is selected cannot be told now. Load the page again.");
    const parsed = new DOMParser().parseFromString(text, "text/html");
    place.replaceChildren(...parsed.body.childNodes);
    const shown = place.querySelector("[data-selected]");
    if (!shown) return;
    const here = new URL(location.href);
    here.searchParams.delete("span");
    const rest = here.searchParams.toString();
    history.replaceState(null, "", `${here.pathname}?${rest ? `${rest}&` : ""}span=${shown.dataset.selected.replaceAll(" ", "+")}`);
  }
})();
