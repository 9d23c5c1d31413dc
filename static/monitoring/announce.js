// What a screen reader says by itself: one sentence for what matters, and nothing for what ticks.
import { onFragments } from "./page.js";

const waiting = []; // texts that are said in the next frame
const said = new Map(); // the last text of each element that announces its changes

/** Has a screen reader say a text, also when it has just said the same. */
export function announce(text) {
  const place = document.getElementById("said");
  place.textContent = "";
  waiting.push(text);
  if (waiting.length > 1) return;
  requestAnimationFrame(() => (place.textContent = waiting.splice(0).join(" ")));
}

function changes() {
  const found = [];
  for (const element of document.querySelectorAll("[data-announces]")) {
    const text = element.dataset.announces;
    const before = said.get(element.id);
    said.set(element.id, text);
    if (before !== undefined && before !== text && text) found.push(text);
  }
  return found;
}

const answer = () => document.getElementById("flash")?.textContent.trim() ?? "";
let answered = answer(); // what this page itself has asked for is said by its answer

onFragments(() => {
  const found = changes();
  const own = answer() !== answered;
  answered = answer();
  if (found.length && !own) announce(found.join(" "));
});
changes();
