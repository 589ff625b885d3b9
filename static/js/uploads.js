// Upload with progress: each chosen or dropped file goes up on its own, one after the other. The server answers each
// with a card that shows how it would be read; loaded, the card shows its progress. Without this script the form works.
"use strict";

(() => {
  const form = document.querySelector("[data-upload]");
  if (!form) return;
  const input = form.querySelector("input[type=file]");
  const zone = form.querySelector(".dropzone");
  const list = document.getElementById("uploads");
  const template = document.getElementById("upload-row");
  const waiting = [];
  let isSending = false;

  function sizeOf(bytes) {
    const units = ["bytes", "kB", "MB", "GB"];
    let power = 0;
    // Rounded first: 999,950 bytes are 1.0 MB and not 1000.0 kB.
    while (power < 3 && Math.round(bytes / 1000 ** power * 10 ** (power > 0)) >= 1000 * 10 ** (power > 0)) power += 1;
    return `${(bytes / 1000 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`;
  }

  function makeRow(file) {
    const row = template.content.firstElementChild.cloneNode(true);
    row.querySelector("[data-name]").textContent = file.name;
    row.querySelector("[data-words]").textContent = `waits, ${sizeOf(file.size)}`;
    row.querySelector("progress").setAttribute("aria-label", `Sending ${file.name}`);
    list.append(row);
    return row;
  }

  function fail(row, sentence) {
    row.dataset.severity = "error";
    row.querySelector("progress").remove();
    row.querySelector("[data-words]").textContent = sentence;
    row.setAttribute("role", "alert");
  }

  function send({ file, row }) {
    const words = row.querySelector("[data-words]");
    const progress = row.querySelector("progress");
    const data = new FormData(form);
    data.delete(input.name);
    data.append(input.name, file);
    const request = new XMLHttpRequest();
    request.open("POST", form.action);
    request.setRequestHeader("HX-Request", "true");
    request.upload.addEventListener("progress", (event) => {
      progress.max = event.total;
      progress.value = event.loaded;
      words.textContent = `${sizeOf(event.loaded)} of ${sizeOf(event.total)} sent`;
    });
    request.upload.addEventListener("load", () => {
      progress.removeAttribute("value");
      words.textContent = "sent; its beginning is being read";
    });
    request.addEventListener("load", () => {
      if (request.status >= 200 && request.status < 300) {
        const isFirst = list.querySelector(".staged") === null;
        row.outerHTML = request.responseText;
        htmx.process(list);
        // The first one shows that there is something to decide; nobody is moved away from it by those that follow.
        if (isFirst) list.querySelector(".staged")?.scrollIntoView({ block: "start" });
        offerAll();
      } else if ([400, 422, 503].includes(request.status)) {
        fail(row, request.responseText);
      } else if (request.status === 413) {
        fail(row, "This file is larger than the inspector takes. Nothing of it was kept.");
      } else {
        fail(row, `The server refused it (${request.status}). Nothing of this file was kept; try again.`);
      }
      next();
    });
    request.addEventListener("error", () => {
      fail(row, "The connection broke off. Sending the file again adds only what is new.");
      next();
    });
    request.send(data);
  }

  // Of several files all can be loaded at once, each as it was chosen on its card.
  function offerAll() {
    const all = document.querySelector("[data-all-files]");
    const count = list.querySelectorAll(".staged").length;
    all.hidden = count < 2;
    all.querySelector("[data-count]").textContent = count;
  }
  document.addEventListener("htmx:afterSettle", offerAll);

  // What had the focus went with the card that took its place: the keyboard goes on from here, not from the page's head.
  document.addEventListener("htmx:afterSettle", (event) => {
    if (list.contains(event.target) && document.activeElement === document.body) list.focus({ preventScroll: true });
  });

  function next() {
    isSending = waiting.length > 0;
    if (isSending) send(waiting.shift());
  }

  function take(files) {
    for (const file of files) waiting.push({ file, row: makeRow(file) });
    if (!isSending) next();
  }

  // The steps above say how far the least advanced of the files is; one that was thrown away is nowhere.
  const steps = Array.from(document.querySelectorAll(".page-head .steps li"));
  const signs = [".upload [data-words]", ".staged", ".upload .steps", ".alert[id]"];

  function tellStep() {
    const at = Math.max(0, signs.findIndex((sign) => list.querySelector(sign)));
    steps.forEach((step, place) => {
      if (place === at) step.setAttribute("aria-current", "step");
      else step.removeAttribute("aria-current");
      step.toggleAttribute("data-past", place < at);
    });
  }

  new MutationObserver(tellStep).observe(list, { childList: true, subtree: true });
  document.body.addEventListener("htmx:afterSettle", tellStep);
  form.querySelector("[data-without-script]").hidden = true;
  input.classList.add("sr");
  input.addEventListener("change", () => {
    take(Array.from(input.files));
    input.value = "";
  });
  // Text that is pasted anywhere but in a field is a file, too.
  document.addEventListener("paste", (event) => {
    const text = event.clipboardData.getData("text");
    if (event.target.closest("input, textarea, select")) return;
    const files = Array.from(event.clipboardData.files);
    if (files.length === 0 && text) files.push(new File([text], "pasted.log", { type: "text/plain" }));
    take(files);
  });
  for (const name of ["dragenter", "dragover"]) {
    // Anywhere on the page: a file that misses the zone must not make the browser leave.
    document.addEventListener(name, (event) => {
      event.preventDefault();
      zone.dataset.over = "";
    });
  }
  for (const name of ["dragleave", "drop"]) document.addEventListener(name, () => delete zone.dataset.over);
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    take(Array.from(event.dataTransfer.files));
  });
})();
