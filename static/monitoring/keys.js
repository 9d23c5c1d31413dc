// Keys for what is done most: single ones, and "g" with a second one for a page. `?` shows them; they can be off.
const OFF = "procession keys off";
const PATIENCE = 1_500; // milliseconds between "g" and the key after it

let going = 0; // until when a second key is awaited

const sheet = () => document.getElementById("keys");
const works = () => localStorage.getItem(OFF) !== "yes";
const PRESSED = ["checkbox", "radio", "button", "submit", "reset", "file"]; // kinds of input in which nobody writes
const writes = (place) =>
  place.closest("input, textarea, select, [contenteditable]") !== null && !PRESSED.includes(place.type);
const seen = (place) => place.checkVisibility();

/** Opens the sheet, with what this page has. */
function show() {
  for (const row of sheet().querySelectorAll("[data-of]")) row.hidden = !document.querySelector(row.dataset.of);
  for (const group of sheet().querySelectorAll("section")) {
    group.hidden = !group.querySelector("[data-of]:not([hidden])");
  }
  sheet().querySelector("input").checked = works();
  sheet().showModal();
}

/** Goes from row to row, by the link that each begins with. */
function row(by) {
  const rows = [...document.querySelectorAll("main tbody tr")];
  const links = rows.map((each) => each.querySelector("a[href]")).filter((link) => link && seen(link));
  const here = links.findIndex((link) => link.closest("tr").contains(document.activeElement));
  const wanted = here < 0 && by < 0 ? links.at(-1) : links[Math.max(here + by, 0)];
  wanted?.focus();
  wanted?.scrollIntoView({ block: "nearest" });
}

/** Presses what has this key: in the row where the reader is, or the first on the page. One that may not be pressed
 * says why. */
function press(key) {
  const all = [...document.querySelectorAll(`main [data-key="${key}"]`)].filter(seen);
  const near = document.activeElement.closest("tr, article, li");
  const wanted = all.find((each) => near?.contains(each)) ?? all[0];
  if (!wanted) return false;
  wanted.focus();
  if (wanted.getAttribute("aria-disabled") !== "true") wanted.click();
  return true;
}

function find() {
  const box = document.querySelector(".find input");
  box.focus();
  box.select();
}

/** Goes to the first field of what the page has to fill in. */
function fill() {
  const fields = "textarea, select, input:not([type=hidden], [type=submit])";
  const forms = [...document.querySelectorAll("main form[method=post]")];
  const all = forms.flatMap((form) => [...form.querySelectorAll(fields)]);
  const first = all.find((field) => seen(field) && !field.disabled);
  first?.focus();
  first?.scrollIntoView({ block: "nearest" });
}

/** Presses the button of the form in which somebody writes. */
function send(field) {
  const button = field.form?.querySelector(".primary[type=submit]") ?? field.form?.querySelector("[type=submit]");
  button?.click();
  return Boolean(button);
}

const KEYS = { "?": show, "/": find, j: () => row(1), k: () => row(-1), i: fill };

function acts(key) {
  if (going > performance.now()) {
    going = 0;
    const link = [...document.querySelectorAll("nav [data-go-key]")].find((each) => each.dataset.goKey === key);
    link?.click();
    return Boolean(link);
  }
  if (key === "g") going = performance.now() + PATIENCE;
  else if (KEYS[key]) KEYS[key]();
  else return press(key);
  return true;
}

document.addEventListener("keydown", (event) => {
  const held = event.altKey || event.shiftKey || event.repeat || event.isComposing || event.defaultPrevented;
  const sends = event.key === "Enter" && (event.ctrlKey || event.metaKey) && !held;
  if (sends && writes(event.target) && send(event.target)) event.preventDefault();
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (!works() || writes(event.target) || document.querySelector("dialog[open]")) return;
  if (event.repeat && !"jk".includes(event.key)) return;
  if (event.key.length === 1 && acts(event.key)) event.preventDefault();
  if (event.key === "Escape") document.querySelector("[data-closes-step]")?.click();
});
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-shows-keys]")) show();
});
document.addEventListener("change", (event) => {
  if (event.target.closest("#keys")) localStorage.setItem(OFF, event.target.checked ? "no" : "yes");
});
