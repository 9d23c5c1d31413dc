// One stop for Tab in each diagram: arrow keys go from step to step and from number to number.
const WAYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const ASIDE = 2; // how much a pixel aside counts against one on the way
const TRIES = 20; // to move what has the focus into sight
const LEAST = 4; // pixels; what is nearer lies beside, not behind

const links = (box) => [...box.querySelectorAll("a[href]")].filter((link) => link.checkVisibility());
const middle = (link) => {
  const { left, right, top, bottom } = link.getBoundingClientRect();
  return [(left + right) / 2, (top + bottom) / 2];
};

/** Has Tab come to one link of a diagram: the last that was reached, else a current step, else the first. */
export function oneStop(box) {
  const all = links(box);
  if (!all.length) return;
  const wanted =
    all.find((link) => link.getAttribute("tabindex") === "0") ??
    all.find((link) => link.querySelector(".is-current")) ??
    all[0];
  stopAt(box, wanted);
  box.removeAttribute("tabindex");
}

function stopAt(box, wanted) {
  for (const link of box.querySelectorAll("a[href]")) link.setAttribute("tabindex", link === wanted ? "0" : "-1");
}

/** The nearest link in the direction of an arrow key. */
function next(box, from, [right, down]) {
  const [x, y] = middle(from);
  let best = null;
  let least = 0;
  for (const link of links(box)) {
    const [to, below] = middle(link);
    const along = (to - x) * right + (below - y) * down;
    const aside = Math.abs((to - x) * down) + Math.abs((below - y) * right);
    const cost = along + ASIDE * aside;
    if (link !== from && along > LEAST && (!best || cost < least))[best, least] = [link, cost];
  }
  return best;
}

/** Lets arrow keys go through a diagram; what has the focus is moved to where it is seen. */
export function stops(box, panzoom) {
  oneStop(box);
  box.addEventListener("keydown", (event) => {
    const link = event.target.closest("a[href]");
    const other = event.shiftKey || event.altKey || event.ctrlKey || event.metaKey;
    if (!link || !WAYS[event.key] || other) return;
    event.preventDefault();
    next(box, link, WAYS[event.key])?.focus({ preventScroll: true });
  });
  box.addEventListener("focusin", ({ target }) => {
    const link = target.closest("a[href]");
    if (!link) return;
    stopAt(box, link);
    if (link.matches(":focus-visible")) box.scrollIntoView({ block: "nearest" });
    reveal(box, panzoom, link);
  });
}

/** Moves a diagram until a link is seen in it, from where it is drawn: zooming takes some frames. */
function reveal(box, panzoom, link, tries = TRIES) {
  requestAnimationFrame(() =>
    requestAnimationFrame(() => {
      if (document.activeElement !== link || !tries) return;
      box.scrollTo(0, 0); // a browser may have moved what panning moves
      const frame = box.getBoundingClientRect();
      const { left, right, top, bottom } = link.getBoundingClientRect();
      const inside = left >= frame.left && right <= frame.right && top >= frame.top && bottom <= frame.bottom;
      if (inside) return;
      const across = (frame.left + frame.right - left - right) / 2;
      const down = (frame.top + frame.bottom - top - bottom) / 2;
      panzoom.pan(across / panzoom.getScale(), down / panzoom.getScale(), { relative: true });
      reveal(box, panzoom, link, tries - 1);
    })
  );
}
