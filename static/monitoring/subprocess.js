// A sub-process is opened and closed in the page of a process that it is part of: the address says which one it is, and
// the server answers with its part. Back goes as it does through the moments of the time slider.
import { onFragments, refresh } from "./page.js";

let wanted = null; // what a person has asked for and is not shown yet; "" for none
let before = ""; // what was shown when they asked

const shown = () => document.getElementById("sub")?.dataset.asked;

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-sub]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || shown() === undefined) return;
  event.preventDefault();
  wanted = link.dataset.sub;
  before = shown();
  const address = new URL(location.href);
  if (wanted) address.searchParams.set("sub", wanted);
  else address.searchParams.delete("sub");
  address.hash = "";
  window.history.pushState(null, "", address);
  refresh();
});
onFragments(() => {
  if (wanted === null || shown() !== wanted) return;
  const place = wanted ? "#sub-title" : `a[data-sub="${CSS.escape(before)}"]`;
  wanted = null;
  document.querySelector(place)?.focus();
});
