// The history as one scrolls: older rows are fetched before they are seen, newer ones again on the way back; what is
// far away is taken out of the page, so that fifty thousand rows cost no more than some hundreds.
import { onFragments } from "./page.js";

const MOST = 300; // rows in the page
const NEAR = 900; // pixels to the end at which the next ones are fetched

let busy = false;

const box = () => document.querySelector("[data-history]");
const rows = () => box().querySelector("tbody");
const number = (row) => Number(row.id.replace("revision-", "") || "NaN");
const numbers = () => [...rows().querySelectorAll("tr[id]")].map(number);

async function fetched(before) {
  const address = new URL(box().dataset.history, location.href);
  const at = new URLSearchParams(location.search).get("at");
  if (at) address.searchParams.set("at", at);
  address.searchParams.set("before", before);
  const answer = await window.fetch(address, { headers: { "HX-Request": "true" } });
  if (!answer.ok) return [];
  const read = new window.DOMParser().parseFromString(await answer.text(), "text/html");
  return [...read.querySelectorAll("tr")];
}

/** Adds the rows before the oldest that is shown, and takes the newest ones out. */
async function older(scroller) {
  const known = Math.min(...numbers());
  const added = await fetched(known);
  if (Math.min(...numbers()) !== known) return 0; // the rows were exchanged meanwhile
  rows().append(...added);
  const many = rows().children.length - MOST;
  if (many <= 0) return added.length;
  const first = rows().children[many];
  const before = first.offsetTop;
  for (const row of [...rows().children].slice(0, many)) row.remove();
  scroller.scrollTop -= before - first.offsetTop;
  return added.length;
}

/** Adds the rows after the newest that is shown, and takes the oldest ones out. */
async function newer(scroller) {
  const known = Math.max(...numbers());
  const page = Number(box().dataset.page);
  const added = (await fetched(known + page + 1)).filter((row) => number(row) > known);
  if (!added.length || Math.max(...numbers()) !== known) return 0;
  const first = rows().firstElementChild;
  const before = first.offsetTop;
  rows().prepend(...added);
  scroller.scrollTop += first.offsetTop - before;
  for (const row of [...rows().children].slice(MOST)) row.remove();
  return added.length;
}

async function look() {
  const scroller = box();
  if (busy || !scroller || !numbers().length) return;
  hold(scroller);
  const end = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
  const down = end < NEAR && Math.min(...numbers()) > 1;
  const up = !down && scroller.scrollTop < NEAR && Math.max(...numbers()) < Number(scroller.dataset.newest);
  if (!down && !up) return;
  busy = true;
  let found = 0;
  try {
    found = await (down ? older(scroller) : newer(scroller));
  } finally {
    busy = false;
  }
  if (found) look();
}

/** While one reads further down, what happens meanwhile does not exchange the rows. */
function hold(scroller) {
  const away = scroller.scrollTop > 0;
  document.getElementById("main").toggleAttribute("data-held", away);
}

document.addEventListener(
  "scroll",
  (event) => event.target.matches?.("[data-history]") && look(), { capture: true, passive: true }
);
document.addEventListener("click", (event) => {
  const link = event.target.closest("a.leads-to");
  const row = link && document.getElementById(link.hash.slice(1));
  if (!row) return;
  event.preventDefault();
  row.scrollIntoView({ block: "center" });
  row.focus({ preventScroll: true });
});
onFragments(() => box()?.scrollTop && look());
