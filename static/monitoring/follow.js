// Follow: where the process is stays in the middle of its diagram, until somebody moves the diagram by hand.
const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
const SMALLEST = 8; // pixels of a letter that can just be read
const READABLE = 11;
const MOST = 6; // times that a diagram can be enlarged, if its words need no more
const button = document.querySelector("[data-follow]");
let diagram = null; // its box and what moves it; it may be laid out anew while the page is open

const following = () => button?.getAttribute("aria-pressed") === "true";

/** Moves the diagram so that the current steps, or the first of too many, are in its middle; if that is wanted. */
export function centre() {
  if (following() && diagram) show(diagram, !calm.matches);
}

function show({ box, panzoom }, animate) {
  const steps = [...box.querySelectorAll(".is-current")];
  const start = steps.length ? steps : [...box.querySelectorAll("[data-node]")].slice(0, 1);
  const current = start.map((step) => step.getBoundingClientRect());
  if (!current.length) return;
  const frame = box.getBoundingClientRect();
  const all = around(current);
  const fits = all.right - all.left <= frame.width && all.bottom - all.top <= frame.height;
  const to = fits ? all : current[0];
  const scale = panzoom.getScale();
  const across = ((frame.left + frame.right) / 2 - (to.left + to.right) / 2) / scale;
  const down = ((frame.top + frame.bottom) / 2 - (to.top + to.bottom) / 2) / scale;
  panzoom.pan(across, down, { relative: true, animate });
}

/** Enlarges a diagram whose words would be too small to read, around its current steps or its first. */
export function readable(box, panzoom) {
  const text = box.querySelector("[data-node] text");
  if (!text) return;
  const shown = parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a;
  if (shown >= SMALLEST) return;
  const scale = (panzoom.getScale() * READABLE) / shown;
  panzoom.setOptions({ maxScale: Math.max(MOST, scale * 2) });
  panzoom.zoom(scale, { animate: false });
  // It is moved when it has been painted: where its steps are is measured.
  requestAnimationFrame(() => requestAnimationFrame(() => show({ box, panzoom }, false)));
}

function around(boxes) {
  return {
    left: Math.min(...boxes.map((box) => box.left)),
    right: Math.max(...boxes.map((box) => box.right)),
    top: Math.min(...boxes.map((box) => box.top)),
    bottom: Math.max(...boxes.map((box) => box.bottom)),
  };
}

/** Lets a diagram be followed: it is the one that is shown now. */
export function follows(box, panzoom) {
  diagram = { box, panzoom };
  centre();
}

/** What somebody moves by hand is not moved away from there. */
export function byHand() {
  button?.setAttribute("aria-pressed", "false");
}

button?.addEventListener("click", () => {
  button.setAttribute("aria-pressed", String(!following()));
  centre();
});
