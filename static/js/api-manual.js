// The API's manual: Swagger UI over the description that the page names. Nothing is fetched from anywhere else.
"use strict";

SwaggerUIBundle({
  url: document.getElementById("manual").dataset.description,
  dom_id: "#manual",
  presets: [SwaggerUIBundle.presets.apis],
  plugins: [
    ({ React: { createElement } }) => ({
      wrapComponents: {
        // A link within a button cannot be reached by keys or a screen reader: the button itself opens the address.
        DeepLink: () => (given) => createElement("span", { className: "nostyle" }, given.text),
        InfoContainer: (InfoContainer) => (given) =>
          createElement("section", { "aria-label": "About the API" }, createElement(InfoContainer, given)),
        // The subjects are headings of the third level.
        operations: (Operations) => (given) =>
          createElement("div", null, createElement("h2", null, "Operations"), createElement(Operations, given)),
      },
    }),
  ],
  layout: "BaseLayout",
  deepLinking: true,
  // No service is asked whether the description is valid.
  validatorUrl: null,
});

// Dark where the reader chose it on the pages, or where the system says so.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("theme");
  } catch {
    // Storage may be forbidden: then the system decides.
  }
  const system = matchMedia("(prefers-color-scheme: dark)");
  const show = () => document.documentElement.classList.toggle("dark-mode", chosen ? chosen === "dark" : system.matches);
  system.addEventListener("change", show);
  show();
})();
