// The fragments of this page, fetched again and morphed into place by htmx. At most one request at a time.
import htmx from "../vendor/htmx.org-4.0.1/htmx.esm.min.js";

export const main = document.getElementById("main");

const NO_TURN = "Procession-Late"; // the header of an answer to a page that had no turn
const UNHEARD = "Procession-Unheard"; // the header of an answer while open pages hear of no changes
const FETCHED = ["fresh", "unheard"];
const MOST = 9_999; // as the server reads it

const answers = new WeakMap(); // what the last request of an element came to
const calledWhenLate = [];
let unanswered = 0; // requests in a row; of pages that wait the server answers first who has had no answer most often
let running = false;
let again = false;

/**
 * Fetches what has changed since the revision shown: "fresh", "unheard" when open pages
 * hear of no changes by themselves, "refused", "closed", "late" when it had no turn among all
 * pages that ask, or "failed" without an answer; "joined" when a request is under way, after which it is fetched again.
 */
export async function refresh() {
  if (running) {
    again = true;
    return "joined";
  }
  running = true;
  let answer;
  try {
    answer = await request("GET", address(), main, { "Procession-Unanswered": unanswered });
  } finally {
    running = false;
    unanswered = FETCHED.includes(answer) ? 0 : Math.min(unanswered + 1, MOST);
  }
  const wanted = again;
  again = false;
  if (answer === "late") calledWhenLate.forEach((callback) => callback());
  return wanted && answer !== "late" ? refresh() : answer;
}

/** A time of day as the server writes it, in the time zone of the site. */
export function clock(when) {
  const zone = document.documentElement.dataset.zone;
  try {
    return when.toLocaleTimeString("en-GB", { timeZone: zone });
  } catch {
    return when.toLocaleTimeString("en-GB"); // this browser does not know the zone
  }
}

/** Calls back whenever the server had no turn for this page, which has to ask again. */
export function onLate(callback) {
  calledWhenLate.push(callback);
}

/** Posts a form and shows what comes back in the page; resolves as `refresh` does. */
export function post(form) {
  return request("POST", form.getAttribute("action"), form);
}

/** Calls back whenever fragments have been put in place. */
export function onFragments(callback) {
  document.addEventListener("htmx:after:swap", callback);
}

function address() {
  const query = new URLSearchParams(location.search);
  const state = document.getElementById("state");
  query.set("since", state?.dataset.revision ?? "");
  if (state?.dataset.at || query.has("at")) query.set("shown", state?.dataset.at ?? "");
  const rows = [...document.querySelectorAll("[data-row]")].map((row) => row.dataset.row);
  if (main.hasAttribute("data-held")) query.set("held", "1");
  if (document.querySelector("#drawing[data-undrawn]")) query.set("undrawn", "1");
  const opened = document.getElementById("sub")?.dataset.opened;
  if (opened) query.set("opened", opened);
  const drawn = document.getElementById("drawing")?.dataset.drawn;
  if (drawn) query.set("drawn", drawn);
  if (rows.length) query.set("rows", rows.join(","));
  return `${location.pathname}?${query}`;
}

async function request(verb, path, source, headers = {}) {
  answers.delete(source);
  await htmx.ajax(verb, path, { source, target: source, swap: "none", headers });
  return answers.get(source) ?? "failed";
}

document.addEventListener("htmx:after:request", (event) => {
  const { sourceElement, response } = event.detail.ctx;
  const closed = response.raw.redirected || [401, 403].includes(response.status);
  const late = response.status === 503 && response.headers.has(NO_TURN);
  const came = response.headers.has(UNHEARD) ? "unheard" : "fresh";
  const answer = closed ? "closed" : response.raw.ok ? came : late ? "late" : "refused";
  answers.set(sourceElement, answer);
  if (sourceElement === main && !FETCHED.includes(answer)) event.preventDefault();
});
