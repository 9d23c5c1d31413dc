// A second press while the first is on its way sends nothing: a code counts once.
const PATIENCE = 5000; // ms; after it the reader has stopped the page, or the server is away
const allowAgain = () => document.querySelectorAll("form[data-sent]").forEach((form) => delete form.dataset.sent);

document.addEventListener("submit", (event) => {
  if (event.target.dataset.sent) return event.preventDefault();
  event.target.dataset.sent = "true";
  setTimeout(allowAgain, PATIENCE);
});
window.addEventListener("pageshow", allowAgain); // a page that the browser has kept
