// The time slider: goes to another moment of a process's life, by dragging, by keys, by links, or by playing it.
// The address says which moment is shown; the server answers with the parts of the page as they were then.
import { clock, onFragments, refresh } from "./page.js";

const ENTRY = 700; // milliseconds that one transition is shown when they are played one by one
const LONGEST = 1_500; // that a gap is waited for: a longer one is folded
const SHORTEST = 150; // between two moments; what lies closer together is passed over
const CALM = 1_000; // the same for readers who want little motion
const TOGETHER = 1_000; // steps that follow so soon are one entry of the browser's history
const PAGE = 10;

const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
let dragging = false;
let moved = -TOGETHER;
let playing = null;
let speed = "0";

const box = () => document.querySelector("[data-slider]");
const range = () => document.getElementById("moment");
const last = () => Number(box().dataset.last);

/** The transition that the address names; null for now. */
function shown() {
  const at = new URLSearchParams(location.search).get("at");
  return at && /^\d+$/.test(at) && Number(at) >= 1 && Number(at) <= last() ? Number(at) : null;
}

/** Where between known transitions another one lies: by column `from` it has this value, what has column `to`? */
function between(value, from, to) {
  const knots = JSON.parse(box().dataset.knots);
  const after = knots.findIndex((knot) => knot[from] >= value);
  if (after === 0) return knots[0][to];
  if (after < 0) return knots.at(-1)[to];
  const [left, right] = [knots[after - 1], knots[after]];
  const width = right[from] - left[from];
  return left[to] + (width ? ((value - left[from]) / width) * (right[to] - left[to]) : 0);
}

const placeOf = (revision) => (revision === null ? 1000 : between(revision, 0, 2));
const timeOf = (revision) => between(revision, 0, 1);

/** The transition nearest to a place on the axis; null at its live end. */
function at(place) {
  const end = placeOf(last());
  if (place >= 1000 || place > (end + 1000) / 2) return null;
  return Math.round(between(place, 2, 0));
}

/** Goes to the moment after a transition, or to now; whoever goes there by hand stops what is being played. */
function go(revision, byHand = true) {
  if (byHand) stop();
  const address = new URL(location.href);
  if (revision === null) address.searchParams.delete("at");
  else address.searchParams.set("at", revision);
  address.searchParams.delete("before");
  address.hash = "";
  const now = performance.now();
  const same = address.href === location.href;
  if (!same) window.history[now - moved < TOGETHER ? "replaceState" : "pushState"](null, "", address);
  moved = now;
  point();
  return same ? null : refresh();
}

/** Shows the moment on the axis at once, before anything has been fetched. */
function point() {
  if (!range()) return;
  const revision = shown();
  const place = placeOf(revision);
  if (!dragging) range().value = place;
  for (const line of document.querySelectorAll(".gantt:not([data-own-scale]) line.at")) {
    line.classList.toggle("is-live", revision === null);
    line.setAttribute("x1", `${place / 10}%`);
    line.setAttribute("x2", `${place / 10}%`);
  }
  if (revision !== null && String(revision) !== box().dataset.at) {
    const time = clock(new Date(timeOf(revision) * 1000));
    const said = { number: revision, all: last(), time };
    range().setAttribute("aria-valuetext", box().dataset.word.replace(/%\((\w+)\)s/g, (...found) => said[found[1]]));
  }
}

function step(by) {
  const wanted = Math.max(1, (shown() ?? last()) + by);
  go(wanted >= last() && by > 0 ? null : Math.min(wanted, last()));
}

const KEYS = {
  ArrowLeft: () => step(-1),
  ArrowDown: () => step(-1),
  ArrowRight: () => step(1),
  ArrowUp: () => step(1),
  PageDown: () => step(-PAGE),
  PageUp: () => step(PAGE),
  Home: () => go(1),
  End: () => go(null)
};

function stop() {
  clearTimeout(playing);
  playing = null;
  dress();
}

function dress() {
  const button = document.querySelector("[data-play]");
  button?.setAttribute("aria-pressed", String(playing !== null));
  const choice = document.querySelector("[data-speed]");
  if (choice && choice.value !== speed) choice.value = speed;
}

/** The next moment to show, and for how long the present one still is. */
function next(revision) {
  const shortest = calm.matches ? CALM : SHORTEST;
  if (speed === "0") return [revision + 1, calm.matches ? CALM : ENTRY];
  const begun = timeOf(revision);
  let wanted = revision + 1;
  const pause = ((timeOf(wanted) - begun) * 1000) / speed;
  if (pause >= shortest) return [wanted, Math.min(pause, LONGEST)];
  const until = begun + (shortest / 1000) * speed;
  while (wanted < last() && timeOf(wanted + 1) <= until) wanted += 1;
  return [wanted, shortest];
}

function play() {
  const [wanted, pause] = next(shown() ?? last());
  playing = setTimeout(async () => {
    const over = wanted >= last() || document.hidden;
    if (!document.hidden) await go(over ? null : wanted, false);
    if (playing === null) return;
    if (over) stop();
    else play();
  }, pause);
}

async function start() {
  playing = -1;
  dress();
  if (shown() === null) await go(1, false);
  if (playing !== null) play();
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-play]")) return playing === null ? start() : stop();
  const link = event.target.closest("a[data-go], a[data-at]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || !box()) return;
  event.preventDefault();
  if (link.dataset.go) step(Number(link.dataset.go));
  else go(Number(link.dataset.at) || null);
});
document.addEventListener("keydown", (event) => {
  if (event.target.id !== "moment" || !KEYS[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  KEYS[event.key]();
});
document.addEventListener("input", (event) => {
  if (event.target.id === "moment") {
    dragging = true;
    go(at(Number(event.target.value)));
  } else if (event.target.matches("[data-speed]")) speed = event.target.value;
});
document.addEventListener("change", (event) => {
  if (event.target.id !== "moment") return;
  dragging = false;
  point();
});
window.addEventListener("popstate", () => {
  if (!box()) return;
  stop();
  moved = -TOGETHER;
  point();
  refresh();
});
if (box()) {
  onFragments(() => {
    point();
    dress();
  });
}
