// The page that describes the API: Swagger UI, which is loaded before, reads the description.
const place = document.getElementById("api");
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const paint = () => document.documentElement.classList.toggle("dark-mode", dark.matches);

dark.addEventListener("change", paint);
paint();

window.SwaggerUIBundle({
  url: place.dataset.document,
  domNode: place,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
});
