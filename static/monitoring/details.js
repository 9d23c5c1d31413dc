// What the reader has opened stays open when the page is brought up to date around it.
import { onFragments } from "./page.js";

const opened = new Set();

function key(details) {
  const home = details.closest("[id]");
  return home ? `${home.id} ${[...home.querySelectorAll("details")].indexOf(details)}` : null;
}

document.addEventListener("click", (event) => {
  const details = event.target.closest("summary")?.parentElement;
  if (!details) return;
  if (details.open) opened.delete(key(details));
  else opened.add(key(details));
});

onFragments(() => {
  if (!opened.size) return;
  for (const details of document.querySelectorAll("details:not([open])")) {
    if (opened.has(key(details))) details.open = true;
  }
});
