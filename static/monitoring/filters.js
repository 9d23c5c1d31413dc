// Filters that are empty stay out of the address.
document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-filters]")) return;
  for (const field of event.target.elements) field.disabled = field.name !== "" && field.value === "";
  setTimeout(() => [...event.target.elements].forEach((field) => (field.disabled = false)));
});
