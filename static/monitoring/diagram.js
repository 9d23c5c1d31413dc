// The diagrams: only classes, badges and titles change; nodes never move, pan and zoom stay as they are.
import Panzoom from "../vendor/panzoom-4.6.2/panzoom.es.js";
import { byHand, centre, follows, readable } from "./follow.js";
import { oneStop, stops } from "./stops.js";

const STOPPED = ["failed", "retrying", "paused"];
const OVER = ["done", "skipped", "cancelled", "not_taken"];
const KEPT = ["is-deadline", "is-error", "is-repeat", "is-default", "has-undo"];
const newest = new Map(); // the revision that is shown of each process, and of each moment of its past

/** Paints every diagram as its state says; the states come with the page and with its fragments. */
export function paint() {
  const own = document.getElementById("state");
  const title = own?.dataset.title;
  if (title && document.title !== title && !isOld(own.dataset)) document.title = title;
  for (const box of document.querySelectorAll("[data-diagram]")) {
    const state = document.getElementById(box.dataset.diagram);
    if (!state || !isOf(state, box) || isOld(state.dataset)) continue;
    if (state.dataset.id) newest.set(keyOf(state.dataset), Number(state.dataset.revision));
    paintOne(box, JSON.parse(state.dataset.state));
    if (state.dataset.label) box.querySelector("svg")?.setAttribute("aria-label", state.dataset.label);
    if (box.hasAttribute("data-moves")) oneStop(box);
  }
  centre();
}

const keyOf = ({ id, at }) => `${id} ${at ?? ""}`;

/** Whether a hint was quicker than this answer to an earlier request. */
function isOld(state) {
  return Number(state.revision) < (newest.get(keyOf(state)) ?? -1);
}

/** Whether a state is of the graph that is drawn: a newer version may have come, whose picture is fetched first. */
function isOf(state, box) {
  return state.dataset.drawn === box.closest("[data-drawn]")?.dataset.drawn;
}

/** Paints a change at once, before anything is fetched, and notes when, so that the delay can be measured. */
export function hint(change) {
  const state = document.querySelector(`[data-state][data-id="${CSS.escape(change.id)}"]`);
  const box = state && document.querySelector(`[data-diagram=${state.id}]`);
  if (!box || state.dataset.at) return; // the past does not change
  const key = keyOf(state.dataset);
  if (change.revision < (newest.get(key) ?? -1)) return;
  newest.set(key, change.revision);
  const steps = Object.entries(change.steps);
  // A workflow is in several steps at once: where it goes on says nothing about the others.
  const many = state.dataset.kind === "workflow";
  if (!many && steps.some(([, status]) => !OVER.includes(status))) {
    for (const left of box.querySelectorAll(".is-current")) dress(left, ["is-done"]);
  }
  for (const [id, status] of steps) paintStep(find(box, "node", id), status, many ? "" : change.status);
  for (const id of change.edges) {
    const edge = find(box, "edge", id);
    if (edge) dress(edge, ["is-done"]);
  }
  requestAnimationFrame(() => {
    performance.mark("highlight", { detail: { id: change.id, revision: change.revision, at: change.at } });
    document.documentElement.dataset.highlighted = change.revision;
    centre();
  });
}

/** Whether what the page has fetched is as new as a change. */
export function shows({ id, revision }) {
  const state = document.querySelector(`[data-state][data-id="${CSS.escape(id)}"]`);
  return Number(state?.dataset.revision) >= revision;
}

function paintStep(group, status, whole) {
  // Elements of a map come and go by the hundred, and a group stands for many: both wait for what is fetched.
  if (!group || !status || group.matches(".kind-map, .kind-group")) return;
  const now = !OVER.includes(status);
  const tone = now && STOPPED.includes(whole) ? whole : status;
  dress(group, [`is-${tone}`, ...(now || group.classList.contains("kind-final") ? ["is-current", "is-arrived"] : [])]);
}

function paintOne(box, { nodes, edges }) {
  for (const [id, node] of Object.entries(nodes)) {
    const group = find(box, "node", id);
    if (group) paintNode(group, node);
    const beside = find(box, "badges", id);
    if (beside) paintBadges(beside, node);
  }
  for (const [id, classes] of Object.entries(edges)) {
    const group = find(box, "edge", id);
    if (group) dress(group, classes);
  }
}

function paintNode(group, { classes, title, bar, ...badges }) {
  const arrived = group.classList.contains("is-arrived") && classes.includes("is-current") ? ["is-arrived"] : [];
  dress(group, [...classes, ...arrived]);
  for (const badge of group.querySelectorAll(".badge")) write(badge, badges[badge.classList[1]] ?? "");
  stretch(group.querySelector(".bar"), bar);
  const name = group.querySelector("title");
  if (title && name.textContent !== title) name.textContent = title;
}

/** The numbers that lie above a map, and what they say. */
function paintBadges(layer, { said = {}, ...numbers }) {
  for (const badge of layer.querySelectorAll(".badge")) {
    const name = badge.classList[1];
    write(badge, numbers[name] ?? "");
    const title = badge.querySelector("title");
    if (title.textContent !== (said[name] ?? "")) title.textContent = said[name] ?? "";
  }
}

function write(badge, text) {
  if (badge.lastElementChild.textContent === text) return;
  badge.lastElementChild.textContent = text;
  badge.dataset.len = text.length;
}

function stretch(bar, shares) {
  if (!bar) return;
  bar.classList.toggle("is-shown", Boolean(shares));
  if (!shares) return;
  const [part, lost] = shares.map((share) => share * bar.dataset.across);
  bar.children[1].setAttribute("width", part);
  bar.children[2].setAttribute("width", lost);
  bar.children[2].setAttribute("x", part);
}

function find(box, kind, id) {
  return id ? box.querySelector(`[data-${kind}="${CSS.escape(id)}"]`) : null;
}

function dress(group, classes) {
  const kept = [...group.classList].filter((name) => !/^(is|has)-/.test(name) || KEPT.includes(name));
  const wanted = [...kept, ...classes].join(" ");
  if (group.getAttribute("class") !== wanted) group.setAttribute("class", wanted);
}

const movers = []; // of the diagrams that can be moved; the buttons are for all of them

const ZOOMS = { in: "zoomIn", out: "zoomOut", fit: "reset" };

function zoomAll({ currentTarget }) {
  const part = currentTarget.closest(".of-sub"); // a sub-process has buttons of its own
  if (currentTarget.dataset.zoom === "fit" && !part) byHand();
  for (const [box, panzoom] of movers) {
    if (box.isConnected && box.closest(".of-sub") === part) panzoom[ZOOMS[currentTarget.dataset.zoom]]();
  }
}

function pans(box) {
  const options = { maxScale: 6, minScale: 0.4, step: 0.35, canvas: true, touchAction: "pan-y", cursor: "grab" };
  const panzoom = Panzoom(box.querySelector("svg"), options);
  const followed = box.dataset.diagram === "state"; // others stand beside it
  movers.push([box, panzoom]);
  const moved = () => followed && byHand();
  const keys = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] };
  for (const button of document.querySelectorAll("[data-zoom]")) button.onclick = zoomAll;
  const zoom = (event) => (event.ctrlKey || event.metaKey) && panzoom.zoomWithWheel(event);
  box.addEventListener("wheel", zoom, { passive: false });
  box.addEventListener("keydown", (event) => {
    const other = event.altKey || event.ctrlKey || event.metaKey;
    if (!keys[event.key] || other || (event.target !== box && !event.shiftKey)) return;
    event.preventDefault();
    moved();
    panzoom.pan(...keys[event.key], { relative: true });
  });
  let from = null;
  const dragged = (event) => Boolean(from) && Math.hypot(event.clientX - from[0], event.clientY - from[1]) > 5;
  box.addEventListener("pointerdown", (event) => (from = [event.clientX, event.clientY]), true);
  box.addEventListener("pointermove", (event) => event.buttons && dragged(event) && moved());
  box.addEventListener("click", (event) => {
    if (dragged(event)) event.preventDefault(); // the end of a drag is not a choice
  }, true);
  readable(box, panzoom);
  stops(box, panzoom);
  if (followed) follows(box, panzoom);
}

/** Makes diagrams movable that are not yet: a large one comes later than its page. */
export function movable() {
  for (const box of document.querySelectorAll("[data-pans]:not([data-moves])")) {
    box.dataset.moves = "true";
    pans(box);
  }
}

Promise.resolve().then(movable); // what fails in it then fails alone
