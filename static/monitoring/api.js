// The page that describes the API: Swagger UI, which is loaded before, reads the description.
const place = document.getElementById("api");

window.SwaggerUIBundle({
  url: place.dataset.document,
  domNode: place,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
});
