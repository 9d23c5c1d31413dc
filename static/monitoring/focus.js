// The focus: when what has it is taken away, it goes to what replaces it, or to the next row.
import { onFragments } from "./page.js";

const STOPS = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";
let left = null; // where the focus was last

/** Where an element stands: its row with the rows behind and before it, and what it stands in. */
function place(element) {
  const row = element.closest("tr, li, article");
  const rows = row ? [...row.parentElement.children] : [];
  const at = rows.indexOf(row);
  const near = at < 0 ? [] : [row, ...rows.slice(at + 1), ...rows.slice(0, at).reverse()];
  const around = [];
  for (let each = element; each && each.id !== "main"; each = each.parentElement) around.push(each);
  return { element, opens: element.dataset.opens, near: near.map(named), around: around.map(named) };
}

/** An element, and its id, by which another one may take its place. */
const named = (element) => ({ element, id: element.id });
const present = ({ element, id }) => (element.isConnected ? element : id && document.getElementById(id)) || null;

function stopIn(element, opens) {
  const stops = [element, ...element.querySelectorAll(STOPS)].filter((one) => one.matches(STOPS));
  const seen = stops.filter((one) => one.checkVisibility());
  return seen.find((one) => opens && one.dataset.opens === opens) ?? seen[0];
}

function restore() {
  const here = document.activeElement;
  if (!left || (here && here !== document.body) || document.querySelector("dialog[open]")) return;
  const { element, opens, near, around } = left;
  if (element.isConnected && element.checkVisibility()) return element.focus();
  const places = [named(element), ...near, ...around].map(present).filter(Boolean);
  for (const one of places) {
    const stop = stopIn(one, opens);
    if (stop) return stop.focus();
  }
  document.getElementById("main").focus();
}

document.addEventListener("focusin", ({ target }) => {
  if (target.closest("#main")) left = place(target);
  else if (!target.closest("dialog")) left = null;
});
document.addEventListener("focusout", ({ target }) => {
  // Somebody has pressed beside everything: then nothing is to have it.
  setTimeout(() => {
    const gone = document.activeElement === document.body && target.isConnected;
    if (gone && left?.element === target && !document.querySelector("dialog[open]")) left = null;
  });
});
onFragments(restore);
document.addEventListener("close", () => setTimeout(restore), true); // of a dialog whose opener is gone
