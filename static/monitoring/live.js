// The socket: repaints the diagram at once on a hint, then fetches the fragments. Hints may be lost; the page still
// converges, because it also fetches after a gap, a reconnect, when the tab is shown, and every ten seconds.
import { paint, hint, movable, shows } from "./diagram.js";
import { announce } from "./announce.js";
import { clock, main, onFragments, onLate, refresh } from "./page.js";
import { watching } from "./watch.js";

const RESYNC = 10_000;
const SILENCE = 50_000;
const FRESH = 15_000;
const SETTLED = 1_500; // by then every worker knows that this page listens
const DRAWING = 700; // between two looks whether a large diagram has been laid out
const QUICK = 120; // between two fetches of a process's page when the process has changed
const LIST = 700; // of a list when anything has
const BESIDE = 2_000; // of a process's page when others have changed, of which it shows no more than counts
const LATE = 1_000; // after a fetch for which the server had no time: then this page is the next one
const CLOSED = [4401, 4403];
const GONE = ["stale", "closed"]; // what the page says while it does not hear from the server
const HERE = ["live", "unheard"];

const light = document.getElementById("live");
const own = document.getElementById("state")?.dataset.id;
const opened = () => document.getElementById("state-sub")?.dataset.id; // the sub-process that is opened in the page
let socket = null;
let former = null; // the one that is open until that is
let watched = ""; // what the socket follows
let failures = 0;
let gone = false; // whether a listener was told that the server is
let heard = Date.now();
let fresh = new Date();
let timer = null;
let due = 0;
let last = 0;
let pace = 0; // what the server asks every page to leave between two fetches, the more the more are open

function show(state) {
  if (!light || light.dataset.state === state) return;
  light.dataset.state = state;
  const words = light.dataset[state];
  const text = state === "stale" ? `${words} ${clock(fresh)}` : words;
  light.firstElementChild.textContent = text;
  const away = GONE.includes(state) || (gone && !HERE.includes(state));
  if (away !== gone) announce(text); // once, however often it is tried again
  gone = away;
  document.documentElement.dataset.live = state;
}

/** Fetches soon: at once after a quiet time, else after a pause: a busy process costs a few requests a second. */
function soon(pause = own ? QUICK : LIST, asked = pace) {
  const now = Date.now();
  const when = Math.max(now, last + Math.max(pause, asked));
  const held = document.hidden && due <= now; // a timer that the browser lets wait
  if (unseen() || (timer && due <= when && !held)) return;
  clearTimeout(timer);
  due = when;
  // In a hidden tab browsers let a timer wait for up to a minute.
  if (document.hidden && when <= now) catchUp();
  else timer = setTimeout(catchUp, when - now);
}

/** Whether nobody looks at the page, nor has it watch. */
function unseen() {
  return document.hidden && !watching();
}

async function catchUp() {
  clearTimeout(timer);
  timer = null;
  last = Date.now();
  const answer = await refresh();
  if (answer === "joined") return;
  last = Date.now(); // a page that is long to fetch is fetched less often
  const came = answer === "fresh" || answer === "unheard";
  if (came) fresh = new Date();
  if (answer !== "closed" && undrawn()) setTimeout(() => soon(), DRAWING);
  if (answer === "closed") close();
  else if (!came) show("stale");
  else if (answer === "unheard") show("unheard");
  else show([socket, former].some((one) => one?.readyState === WebSocket.OPEN) ? "live" : "reconnecting");
}

function undrawn() {
  return document.querySelector("[data-undrawn]");
}

function close() {
  const gone = [socket, former];
  socket = former = null;
  for (const one of gone) one?.close();
  show("closed");
}

/** What this page is to hear of: what it is about, and the sub-process that is opened in it. */
function subjects() {
  const watch = main.dataset.watch.trim();
  return opened() ? `${watch} instance:${opened()}` : watch;
}

/** Follows what the page shows now; it fetches when it is connected, so it misses nothing. */
function follow() {
  if (!socket || subjects() === watched) return;
  former?.close();
  former = socket;
  connect();
}

function connect() {
  const address = new URL(main.dataset.socket, location.href);
  address.protocol = address.protocol.replace("http", "ws");
  watched = subjects();
  heard = Date.now(); // one that nobody answers is given up like one that has become silent
  for (const subject of watched.split(" ")) address.searchParams.append("watch", subject);
  const mine = (socket = new WebSocket(address));
  mine.addEventListener("open", () => {
    heard = Date.now();
    former?.close();
    former = null;
    show("live");
    soon();
    setTimeout(() => {
      if (mine.readyState === WebSocket.OPEN) failures = 0; // one that is refused is open for a moment too
      soon();
    }, SETTLED);
  });
  mine.addEventListener("message", (event) => {
    heard = Date.now();
    const change = JSON.parse(event.data);
    if ("pace" in change) pace = change.pace * 1000;
    if (unseen() || !("revision" in change)) return;
    if (change.again && shows(change)) return; // it is told once more what may have been lost
    hint(change);
    soon(own && ![own, opened()].includes(change.id) ? BESIDE : undefined);
  });
  mine.addEventListener("close", (event) => {
    if (mine !== socket) return; // another one has taken its place
    if (CLOSED.includes(event.code)) return close();
    failures += 1;
    show(Date.now() - fresh > FRESH ? "stale" : "reconnecting");
    setTimeout(connect, Math.min(8000, 400 * 2 ** failures) * (0.5 + Math.random() / 2));
  });
}

if (main) {
  onLate(() => {
    last = Date.now();
    if (socket) soon(LATE, 0);
  });
  onFragments(movable);
  onFragments(paint);
  onFragments(follow);
  if (undrawn()) setTimeout(catchUp, DRAWING);
  connect(); // first: a picture that cannot be painted leaves the rest of the page live
  paint();
  document.addEventListener("visibilitychange", () => document.hidden || catchUp());
  window.addEventListener("online", () => soon());
  window.addEventListener("pageshow", (event) => event.persisted && catchUp());
  setInterval(() => {
    if (unseen() || !socket) return;
    soon();
    if (socket.readyState <= WebSocket.OPEN && Date.now() - heard > SILENCE) socket.close();
  }, RESYNC);
}
