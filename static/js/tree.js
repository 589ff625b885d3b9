// A tree: windows of rows are fetched as they come into view, and given back when they are far away, so that a million
// rows cost what three hundred do. Without this script the links below lead from window to window.
// Keys: the arrows walk, open and close; [ closes the row, ] opens it. Never while typing, never with a modifier.
"use strict";

(() => {
  const table = document.querySelector("[data-tree]");
  if (!table) return;
  const KEPT = 3;
  const POURED = 20;
  const windows = () => Array.from(table.querySelectorAll("[data-window]"));
  const rows = () => Array.from(table.querySelectorAll("tbody tr"));
  const current = table.querySelector('tr[aria-current="true"]')?.id;
  let isBusy = false;

  function parse(markup) {
    const held = document.createElement("template");
    held.innerHTML = `<table>${markup}</table>`;
    return held.content.querySelector("tbody");
  }

  // A window without its rows, and the markup of each of these: to make all of them at once would make one frame long.
  async function fetchWindow(address) {
    const answer = await fetch(address, { headers: { "HX-Request": "true" }, credentials: "same-origin" });
    if (!answer.ok) throw new Error(`the server answered with ${answer.status}`);
    const text = await answer.text();
    const start = text.indexOf(">") + 1;
    const body = parse(`${text.slice(0, start)}</tbody>`);
    if (!body || !("window" in body.dataset)) throw new Error("the server answered with something else");
    return { body, markup: text.match(/<tr[^]*?<\/tr>/g) ?? [] };
  }

  function makeRows(markup) {
    const made = parse(`<tbody>${markup.join("")}</tbody>`);
    // Which row the address led to is not asked for again.
    if (current) made.querySelector(`#${current}`)?.setAttribute("aria-current", "true");
    return made.children;
  }

  // A window far away keeps its height and gives up its rows.
  function empty(body) {
    const height = body.getBoundingClientRect().height;
    const spacer = document.createElement("tr");
    const cell = document.createElement("td");
    spacer.setAttribute("role", "presentation");
    cell.colSpan = 2;
    cell.style.blockSize = `${height}px`;
    cell.style.padding = "0";
    spacer.append(cell);
    body.replaceChildren(spacer);
    body.dataset.empty = "";
  }

  function addressOf(at) {
    const address = new URL(location.href);
    address.hash = "";
    address.searchParams.set("at", at);
    // A row that the address names would be led to instead; what is looked for is marked in every window.
    address.searchParams.delete("hit");
    address.searchParams.delete("message");
    address.searchParams.delete("time");
    return address;
  }

  async function guarded(work) {
    if (isBusy) return;
    isBusy = true;
    try {
      await work();
    } catch {
      // The links below still lead on.
      document.querySelector("[data-pages]")?.removeAttribute("hidden");
    } finally {
      isBusy = false;
    }
  }

  const near = new IntersectionObserver(
    (seen) => {
      for (const { target, isIntersecting } of seen) {
        if (!isIntersecting) continue;
        if ("empty" in target.dataset) guarded(() => fill(target));
        else if (target === lastRow() && windows().at(-1).dataset.next) guarded(extend);
      }
    },
    { rootMargin: "900px 0px" },
  );
  const lastRow = () => windows().at(-1).lastElementChild;

  // A window that gave up its rows is watched as a whole; of the last one its last row is.
  function watch(body) {
    const target = "empty" in body.dataset ? body : body.lastElementChild;
    if (!target) return;
    near.unobserve(target);
    near.observe(target);
  }

  // Some rows in each frame; `note` is told which share of them is still to come.
  async function pour(markup, add, note = () => {}) {
    for (let at = 0; at < markup.length; at += POURED) {
      add(...makeRows(markup.slice(at, at + POURED)));
      note(Math.max(0, 1 - (at + POURED) / markup.length));
      await new Promise(requestAnimationFrame);
    }
  }

  async function fill(body) {
    const { markup } = await fetchWindow(addressOf(body.dataset.at));
    const spacer = body.firstElementChild;
    const cell = spacer.firstElementChild;
    const height = parseFloat(cell.style.blockSize);
    delete body.dataset.empty;
    // What is left of the spacer stands for the rows that are still to come.
    await pour(markup, (...made) => spacer.before(...made), (left) => (cell.style.blockSize = `${height * left}px`));
    spacer.remove();
    trim(body);
  }

  async function extend() {
    const last = windows().at(-1);
    const { body, markup } = await fetchWindow(new URL(last.dataset.next, location.href));
    const next = document.importNode(body, false);
    last.after(next);
    await pour(markup, (...made) => next.append(...made));
    const more = document.querySelector("[data-more]");
    if (more) {
      if (next.dataset.next) more.href = next.dataset.next;
      else more.replaceWith(Object.assign(document.createElement("span"), { className: "push quiet", textContent: "End of the tree" }));
    }
    trim(next);
    watch(next);
  }

  function trim(around) {
    const all = windows();
    const at = all.indexOf(around);
    all.forEach((body, place) => {
      if (Math.abs(place - at) > KEPT && !("empty" in body.dataset)) {
        empty(body);
        watch(body);
      }
    });
  }

  // Opening or closing a row: its window is fetched anew, and what came after it comes again when it is looked for.
  async function toggle(row) {
    const token = row.dataset.fold;
    const body = row.closest("[data-window]");
    const address = new URL(location.href);
    const tokens = (address.searchParams.get("fold") ?? "").split(",").filter(Boolean);
    const rest = tokens.filter((each) => each !== token);
    if (rest.length === tokens.length) rest.push(token);
    if (rest.length) address.searchParams.set("fold", rest.join(","));
    else address.searchParams.delete("fold");
    address.hash = "";
    history.replaceState(null, "", address);
    const { body: fresh, markup } = await fetchWindow(addressOf(body.dataset.at));
    for (const later of windows().slice(windows().indexOf(body) + 1)) later.remove();
    body.replaceChildren(...makeRows(markup));
    if (fresh.dataset.next) body.dataset.next = fresh.dataset.next;
    else delete body.dataset.next;
    stand(document.getElementById(row.id));
    watch(body);
  }

  function stand(row) {
    if (!row) return;
    for (const other of table.querySelectorAll("[data-current]")) other.removeAttribute("data-current");
    row.setAttribute("data-current", "");
    row.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  }

  const rowNow = () => document.activeElement?.closest?.("[data-tree] tbody tr") ?? table.querySelector("tr[data-current]");

  function walk(step) {
    const all = rows().filter((row) => "item" in row.dataset);
    const at = all.indexOf(rowNow());
    stand(all[Math.min(Math.max(at + step, 0), all.length - 1)]);
  }

  function turn(isOpen) {
    const row = rowNow();
    if (row?.getAttribute("aria-expanded") === String(!isOpen)) guarded(() => toggle(row));
    else if (row && isOpen) walk(1);
    else if (row) climb(row);
  }

  function climb(row) {
    const level = Number(row.getAttribute("aria-level"));
    for (let above = rows().indexOf(row) - 1; above >= 0; above -= 1) {
      if (Number(rows()[above].getAttribute("aria-level")) < level) return stand(rows()[above]);
    }
  }

  // A sentence that the column cuts shows whole where one points at it.
  table.addEventListener("pointerover", (event) => {
    const subject = event.target.closest("a.subject");
    if (subject && !subject.title) subject.title = subject.textContent;
  });

  table.addEventListener("click", (event) => {
    const twist = event.target.closest("[data-twist]");
    if (!twist || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    guarded(() => toggle(twist.closest("tr")));
  });

  const isTyping = (node) => node.matches?.("input, textarea, select, [contenteditable]");
  const inTable = { ArrowDown: () => walk(1), ArrowUp: () => walk(-1), ArrowRight: () => turn(true), ArrowLeft: () => turn(false) };
  const anywhere = { "[": () => turn(false), "]": () => turn(true) };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    const row = document.activeElement?.closest?.("[data-tree] tbody tr");
    if (event.key === "Enter" && document.activeElement === row) return row.querySelector("[data-open]")?.click();
    const act = anywhere[event.key] ?? (row ? inTable[event.key] : undefined);
    if (!act) return;
    event.preventDefault();
    act();
  });

  // The map leads to that time.
  const map = document.querySelector(".minimap[data-first]");
  if (map) {
    map.setAttribute("data-live", "");
    map.addEventListener("click", (event) => {
      const box = map.getBoundingClientRect();
      const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
      const first = Number(map.dataset.first);
      const address = addressOf("");
      address.searchParams.delete("at");
      address.searchParams.set("time", Math.round(first + share * (Number(map.dataset.last) - first)));
      location.assign(address);
    });
  }

  document.querySelector('tr[aria-current="true"]')?.scrollIntoView({ block: "center" });
  windows().forEach(watch);
})();
