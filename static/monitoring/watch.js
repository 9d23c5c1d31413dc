// Watch: while nobody looks at its page, a process says in the tab, by its icon and as a notice that it has moved.
import { onFragments } from "./page.js";

const button = document.querySelector("[data-watched]");
const icon = document.querySelector("link[rel=icon]");
const plain = icon?.getAttribute("href");
const MARK = "● ";
const key = `watched ${document.getElementById("state")?.dataset.id}`;
let told = says();
let moved = false; // since somebody looked

/** Whether this page is to hear of changes while it is hidden. */
export const watching = () => button?.getAttribute("aria-pressed") === "true";

/** How the process stands, in words. */
function says() {
  return document.querySelector("h1")?.dataset.says ?? "";
}

function tell() {
  const now = says();
  const is = now !== told && watching() && document.hidden;
  told = now;
  moved ||= is;
  mark();
  if (!is) return;
  if ("Notification" in window && Notification.permission === "granted") {
    const notice = new Notification(document.querySelector("h1").textContent.trim(), { body: now, tag: key });
    notice.addEventListener("click", () => window.focus());
  }
}

/** Marks the tab, or takes the mark away. */
function mark() {
  const title = document.title.startsWith(MARK) ? document.title.slice(MARK.length) : document.title;
  const marked = moved ? MARK + title : title;
  if (document.title !== marked) document.title = marked;
  icon.setAttribute("href", moved ? button.dataset.watched : plain);
}

function look() {
  if (document.hidden) return;
  moved = false;
  mark();
}

if (button) {
  button.setAttribute("aria-pressed", String(sessionStorage.getItem(key) === "yes"));
  button.addEventListener("click", () => {
    const on = !watching();
    button.setAttribute("aria-pressed", String(on));
    sessionStorage.setItem(key, on ? "yes" : "no");
    if (on && "Notification" in window && Notification.permission === "default") Notification.requestPermission();
  });
  onFragments(tell);
  new MutationObserver(mark).observe(document.querySelector("title"), { childList: true }); // it comes with fragments
  document.addEventListener("visibilitychange", look);
}
