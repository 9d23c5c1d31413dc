// The diagrams: only classes, badges and titles change; nodes never move, pan and zoom stay as they are.
import Panzoom from "../vendor/panzoom-4.6.2/panzoom.es.js";

const STOPPED = ["failed", "retrying", "paused"];
const OVER = ["done", "skipped", "cancelled", "not_taken"];
const KEPT = ["is-deadline", "is-error", "is-repeat", "is-default", "has-undo"];
const own = document.getElementById("state");
let revision = Number(own?.dataset.revision ?? -1);
let moment = own?.dataset.at ?? ""; // of the past that is looked at; "" for now

/** Paints every diagram as its state says; the states come with the page and with its fragments. */
export function paint() {
  const state = document.getElementById("state");
  const shown = Number(state?.dataset.revision ?? revision);
  const elsewhere = moment !== (state?.dataset.at ?? "");
  moment = state?.dataset.at ?? "";
  if (shown < revision && !elsewhere) return; // a hint was quicker than the answer to an earlier request
  revision = shown;
  const title = state?.dataset.title;
  if (title && document.title !== title) document.title = title;
  for (const box of document.querySelectorAll("[data-diagram]")) {
    const state = document.getElementById(box.dataset.diagram);
    if (state) paintOne(box, JSON.parse(state.dataset.state));
  }
}

/** Paints a change at once, before anything is fetched, and notes when, so that the delay can be measured. */
export function hint(change) {
  const box = document.querySelector("[data-diagram=state]");
  if (!box || document.getElementById("state").dataset.id !== change.id || change.revision < revision) return;
  if (moment) return; // the past does not change
  revision = change.revision;
  const steps = Object.entries(change.steps);
  // A workflow is in several steps at once: where it goes on says nothing about the others.
  const many = document.getElementById("state").dataset.kind === "workflow";
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
  });
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

function pans(box) {
  const options = { maxScale: 6, minScale: 0.4, step: 0.35, canvas: true, touchAction: "pan-y", cursor: "grab" };
  const panzoom = Panzoom(box.querySelector("svg"), options);
  const buttons = { in: () => panzoom.zoomIn(), out: () => panzoom.zoomOut(), fit: () => panzoom.reset() };
  const keys = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] };
  for (const button of document.querySelectorAll("[data-zoom]")) button.onclick = buttons[button.dataset.zoom];
  const zoom = (event) => (event.ctrlKey || event.metaKey) && panzoom.zoomWithWheel(event);
  box.addEventListener("wheel", zoom, { passive: false });
  box.addEventListener("keydown", (event) => {
    if (event.target !== box || !keys[event.key]) return;
    event.preventDefault();
    panzoom.pan(...keys[event.key], { relative: true });
  });
  let from = null;
  box.addEventListener("pointerdown", (event) => (from = [event.clientX, event.clientY]), true);
  box.addEventListener("click", (event) => {
    const moved = from ? Math.hypot(event.clientX - from[0], event.clientY - from[1]) : 0;
    if (moved > 5) event.preventDefault(); // the end of a drag is not a choice
  }, true);
}

/** Makes diagrams movable that are not yet: a large one comes later than its page. */
export function movable() {
  for (const box of document.querySelectorAll("[data-pans]:not([data-moves])")) {
    box.dataset.moves = "true";
    pans(box);
  }
}

movable();
