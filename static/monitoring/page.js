// The fragments of this page, fetched again and morphed into place by htmx. At most one request at a time.
import htmx from "../vendor/htmx.org-4.0.1/htmx.esm.min.js";

export const main = document.getElementById("main");

let running = false;
let again = false;
let answered = null;

/** Fetches what has changed since the revision shown; resolves to "fresh", "failed" or "closed". */
export async function refresh() {
  if (running) {
    again = true;
    return "fresh";
  }
  running = true;
  answered = "failed";
  try {
    await htmx.ajax("GET", address(), { source: main, target: main, swap: "none" });
  } finally {
    running = false;
  }
  if (again) {
    again = false;
    return refresh();
  }
  return answered;
}

/** Posts a form and shows what comes back in the page. */
export function post(form) {
  return htmx.ajax("POST", form.getAttribute("action"), { source: form, target: form, swap: "none" });
}

/** Calls back whenever fragments have been put in place. */
export function onFragments(callback) {
  document.addEventListener("htmx:after:swap", callback);
}

function address() {
  const query = new URLSearchParams(location.search);
  query.set("since", document.getElementById("state")?.dataset.revision ?? "");
  const rows = [...document.querySelectorAll("[data-row]")].map((row) => row.dataset.row);
  if (document.querySelector("[data-undrawn]")) query.set("undrawn", "1");
  if (rows.length) query.set("rows", rows.join(","));
  return `${location.pathname}?${query}`;
}

main?.addEventListener("htmx:after:request", (event) => {
  const response = event.detail.ctx.response.raw;
  if (response.redirected) {
    answered = "closed";
    event.preventDefault();
  } else {
    answered = response.ok ? "fresh" : response.status === 403 ? "closed" : "failed";
    if (!response.ok) event.preventDefault();
  }
});
