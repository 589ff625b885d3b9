// Asks the browser for a passkey, a new one or one that signs in, and sends what it gives with the form. The server's
// question stands beside the form's fields, as JSON.
"use strict";

(() => {
  const form = document.querySelector("form[data-passkey]");
  if (!form) return;
  const question = JSON.parse(document.getElementById("passkey").textContent);
  const failure = form.querySelector(".field-error[hidden]");

  async function ask() {
    const made = question.creation_options?.publicKey;
    const answer = made
      ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(made) })
      : await navigator.credentials.get({
          publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(question.request_options.publicKey),
        });
    return JSON.stringify(answer.toJSON());
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    failure.hidden = true;
    try {
      form.elements.credential.value = await ask();
      form.submit();
    } catch {
      failure.hidden = false; // Refused, given up, or a browser or an address without passkeys.
    }
  });
})();
