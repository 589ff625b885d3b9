// A link's code stands behind "#", which no browser sends: it is taken out of the address and handed over by the form.
// Without this script a person pastes it.
"use strict";

const handOver = () => {
  const code = location.hash.slice(1);
  if (!code) return;
  history.replaceState(null, "", location.pathname);
  const form = document.querySelector("form[data-code]");
  form.elements.code.value = code;
  // No button of the form is pressed by this: the code alone spends nothing.
  form.submit();
};

// A page that is open already is told of another link to it by the "#" alone.
window.addEventListener("hashchange", handOver);
handOver();
