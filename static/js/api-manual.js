// The API's manual: Swagger UI over the description that the page names. Nothing is fetched from anywhere else.
"use strict";

SwaggerUIBundle({
  url: document.getElementById("manual").dataset.description,
  dom_id: "#manual",
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
  deepLinking: true,
  // No service is asked whether the description is valid.
  validatorUrl: null,
});
