// New messages announce themselves in a chip and never move what one is reading. The page asks again and again what has
// come since, or listens to the event stream where there is one; neither while nobody looks at the page.
// The chip's link puts the new ones into the page and keeps the line one reads where it stands.
"use strict";

(() => {
  const region = document.getElementById("live");
  if (!region || !window.htmx) return;
  const EVERY = Number(region.dataset.every) * 1000;
  const MAX_PAUSES = 24;
  const MAX_FAILURES = 3;
  let pauses = 1;
  let timer;
  let source;
  let failures = 0;
  let isStreamed = "events" in region.dataset;
  let isOver = false;

  // Waiting, asking, listening.

  function goOn() {
    clearTimeout(timer);
    if (isOver || document.hidden) return;
    if (isStreamed) listen();
    // A little apart, so that pages that were opened together do not ask together for ever.
    else timer = setTimeout(() => htmx.trigger(region, "live:ask"), EVERY * pauses * (0.9 + Math.random() / 5));
  }

  function rest() {
    clearTimeout(timer);
    source?.close();
    source = undefined;
  }

  function end() {
    isOver = true;
    rest();
  }

  function takeIn(after) {
    region.dataset.after = after;
    if (region.querySelector("[data-full]")) end();
  }

  region.addEventListener("htmx:configRequest", (event) => {
    event.detail.parameters.after = region.dataset.after;
  });
  const isOurs = ({ xhr, requestConfig }) =>
    xhr.getResponseHeader("Live-After") && requestConfig.parameters.after === region.dataset.after;
  region.addEventListener("htmx:beforeSwap", (event) => {
    if (!isOurs(event.detail)) event.detail.shouldSwap = false;
  });
  region.addEventListener("htmx:afterRequest", (event) => {
    const { xhr, successful } = event.detail;
    if (isOurs(event.detail)) takeIn(xhr.getResponseHeader("Live-After"));
    // Signed out, or no member any more: what answers is another page.
    else if (successful && !xhr.getResponseHeader("Live-After")) end();
    else if ([400, 403, 404].includes(xhr.status)) end();
    pauses = successful ? 1 : Math.min(pauses * 2, MAX_PAUSES);
    goOn();
  });

  function listen() {
    if (source) return;
    const address = new URL(region.dataset.events, location.href);
    address.searchParams.set("after", region.dataset.after);
    source = new EventSource(address);
    source.addEventListener("open", () => {
      failures = 0;
    });
    source.addEventListener("news", (event) => {
      region.innerHTML = event.data;
      takeIn(event.lastEventId);
    });
    source.addEventListener("bye", end);
    source.addEventListener("error", () => {
      failures += 1;
      if (source?.readyState !== EventSource.CLOSED && failures < MAX_FAILURES) return;
      // The stream is not there, or full: then the page asks.
      rest();
      isStreamed = false;
      goOn();
    });
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? rest() : goOn()));
  addEventListener("pagehide", rest);
  addEventListener("pageshow", goOn);

  // Taking the new ones in.

  const keyOf = (row) => row.id || row.textContent;
  // A hit stays as it was found; of a conversation's messages the wording may have changed; a conversation in a list is
  // news again when it has changed.
  const isSame = (old, row, mode) => mode === "" || old.textContent === row.textContent;

  // What one reads: the first thing on the window's upper edge that stays; the head of the page while that is in sight.
  function findAnchor(staying) {
    const top = document.querySelector(".topbar").getBoundingClientRect().bottom;
    const things = [document.querySelector(".page-head"), ...staying].filter(Boolean);
    return things.find((each) => each.getBoundingClientRect().bottom > top + 1) ?? things.at(-1);
  }

  // The rows of the answer among those that are there, in the answer's order. What has fallen off the end of a list
  // stays, for it may be what one reads; in a window of a conversation it stands in the next one.
  function merge(rows, fresh) {
    const mode = rows.dataset.liveRows;
    const here = new Map(Array.from(rows.children, (row) => [keyOf(row), row]));
    const news = [];
    let next = rows.firstElementChild;
    let isJoined = here.size === 0;
    for (const row of Array.from(fresh.children)) {
      const old = here.get(keyOf(row));
      here.delete(keyOf(row));
      if (old && isSame(old, row, mode)) {
        isJoined = true;
        next = old.nextElementSibling;
        continue;
      }
      const added = document.importNode(row, true);
      if (old === next) next = old?.nextElementSibling ?? null;
      const hadFocus = old?.contains(document.activeElement);
      old?.remove();
      rows.insertBefore(added, next);
      if (added.hasAttribute("data-item") && (!old || mode === "changes")) {
        added.dataset.new = "";
        news.push(added);
      }
      if (hadFocus) added.querySelector("[data-open]")?.focus({ preventScroll: true });
      htmx.process(added);
    }
    if (mode === "window") for (const gone of here.values()) gone.remove();
    else if (!isJoined) rows.insertBefore(makeGap(rows), next);
    return news;
  }

  // More has come than one page holds: what lies between is said, not hidden.
  function makeGap(rows) {
    const link = Object.assign(document.createElement("a"), { href: location.href, textContent: "Open the list anew" });
    const words = ["There is more between these and those below. ", link];
    const gap = document.createElement(rows.matches("tbody") ? "tr" : "li");
    gap.className = "live-gap";
    if (!rows.matches("tbody")) gap.append(...words);
    else {
      const cell = Object.assign(document.createElement("td"), { colSpan: 99 });
      cell.append(...words);
      gap.append(cell);
    }
    return gap;
  }

  async function load(link) {
    const loadedFrom = new URL(location.href);
    loadedFrom.hash = "";
    const answer = await fetch(loadedFrom, { credentials: "same-origin" });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const rows = document.querySelector("[data-live-rows]");
    const fresh = page.querySelector("[data-live-rows]");
    const state = page.getElementById("live");
    // Signed out, or a page that looks different now: then it is opened as any other.
    if (!answer.ok || !state || Boolean(rows) !== Boolean(fresh)) return location.assign(link.href);

    const later = fresh ? new Map(Array.from(fresh.children, (row) => [keyOf(row), row])) : new Map();
    const stays = (row) => later.has(keyOf(row)) && isSame(row, later.get(keyOf(row)), rows.dataset.liveRows);
    const kept = Array.from(rows?.children ?? []);
    const anchor = findAnchor(kept.some(stays) ? kept.filter(stays) : kept);
    document.documentElement.style.overflowAnchor = "none";
    const before = anchor?.getBoundingClientRect().top;
    for (const row of document.querySelectorAll("[data-new]")) row.removeAttribute("data-new");
    const news = rows ? merge(rows, fresh) : [];
    for (const part of document.querySelectorAll("[data-live-part]")) replace(part, page);
    for (const count of document.querySelectorAll("[data-live-count]")) count.hidden = rows?.dataset.liveRows !== "window";
    if (anchor?.isConnected) scrollBy({ top: anchor.getBoundingClientRect().top - before, behavior: "instant" });
    requestAnimationFrame(() => document.documentElement.style.removeProperty("overflow-anchor"));

    rest();
    region.dataset.after = state.dataset.after;
    isOver = false;
    tell(link, news, Boolean(rows));
    htmx.trigger(document.body, "live:loaded");
    goOn();
  }

  function replace(part, page) {
    const other = page.querySelector(`[data-live-part="${part.dataset.livePart}"]`);
    if (!other || other.isEqualNode(part)) return;
    const added = document.importNode(other, true);
    part.replaceWith(added);
    htmx.process(added);
  }

  // Where the new ones are, when they are not in sight; nothing where they are.
  function tell(link, news, hasRows) {
    const hadFocus = region.contains(document.activeElement);
    const spoken = Object.assign(document.createElement("span"), { className: "sr" });
    const said = link.firstChild.textContent;
    const count = said.endsWith(" new") ? said.slice(0, -4) : "New messages";
    const top = document.querySelector(".topbar").getBoundingClientRect().bottom;
    const inSight = (row) => {
      const box = row.getBoundingClientRect();
      return box.bottom > top && box.top < innerHeight;
    };
    spoken.textContent = `${count} shown`;
    if (!hasRows || news.some(inSight)) {
      region.replaceChildren(spoken);
      if (hadFocus) (news[0]?.querySelector("[data-open]") ?? document.getElementById("main")).focus({ preventScroll: true });
      return;
    }
    const first = news.find((row) => row.getBoundingClientRect().top >= innerHeight) ?? news.at(-1);
    const isAbove = first && first.getBoundingClientRect().bottom <= top;
    const way = Object.assign(document.createElement("a"), { className: "live", href: first ? `#${first.id}` : link.href });
    way.dataset.liveGo = first ? "here" : "away";
    way.textContent = first ? `${count} ${isAbove ? "above" : "below"}` : `${count} elsewhere`;
    spoken.textContent = ": go to the first";
    way.append(spoken);
    region.replaceChildren(way);
    if (hadFocus) way.focus({ preventScroll: true });
  }

  function goTo(link) {
    const row = document.getElementById(link.hash.slice(1));
    region.replaceChildren();
    row?.scrollIntoView({ block: "center" });
    row?.querySelector("[data-open]")?.focus({ preventScroll: true });
  }

  region.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (link.dataset.liveGo === "away") return;
    if (link.dataset.liveGo) {
      event.preventDefault();
      goTo(link);
    } else if ("load" in region.dataset && document.querySelector("[data-live-rows], [data-live-part]")) {
      event.preventDefault();
      load(link).catch(() => location.assign(link.href));
    }
  });

  goOn();
})();
