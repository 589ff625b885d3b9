// Rules for the browser's scripts: classic scripts, loaded one by one, that share nothing but the page.
import js from "@eslint/js";
import globals from "globals";

const rules = {
  ...js.configs.recommended.rules,
  "array-callback-return": "error",
  eqeqeq: "error",
  "no-implicit-globals": "error",
  "no-new-func": "error",
  "no-eval": "error",
  "no-extend-native": "error",
  "no-proto": "error",
  "no-shadow": "error",
  "no-var": "error",
  "prefer-const": "error",
  "require-await": "error",
  strict: ["error", "global"],
};

export default [
  {
    files: ["static/js/*.js"],
    languageOptions: {
      sourceType: "script",
      globals: { ...globals.browser, htmx: "readonly", SwaggerUIBundle: "readonly" },
    },
    rules,
  },
  {
    files: ["tests/scripts/*.mjs", "*.mjs"],
    languageOptions: { globals: globals.node },
    rules: { ...rules, strict: "off" },
  },
];
