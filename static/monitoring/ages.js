// Times that pass: counting up, counting down, "2 minutes ago". By the server's clock, not this machine's.
import { onFragments } from "./page.js";

const ahead = Number(document.documentElement.dataset.now) * 1000 - Date.now();
const relative = new Intl.RelativeTimeFormat(document.documentElement.lang || "en", { style: "short" });
const UNITS = [
  [86400, "day"],
  [3600, "hour"],
  [60, "minute"],
  [1, "second"]
];

/** A length of time, as the server writes it. */
function span(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  const two = (number) => String(number).padStart(2, "0");
  if (hours >= 24) return `${Math.floor(hours / 24)} d ${hours % 24} h`;
  return hours ? `${hours} h ${minutes} min` : `${two(minutes)}:${two(whole % 60)}`;
}

function ago(seconds) {
  const [size, unit] = UNITS.find(([size]) => seconds >= size) ?? UNITS[3];
  return relative.format(-Math.floor(Math.max(0, seconds) / size), unit);
}

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function tick() {
  if (document.hidden) return;
  const now = Date.now() + ahead;
  const since = (element) => (now - Date.parse(element.dateTime)) / 1000;
  for (const time of document.querySelectorAll("time.elapsed")) write(time, span(since(time)));
  for (const time of document.querySelectorAll("time.countdown")) write(time, span(-since(time)));
  for (const time of document.querySelectorAll("time.since")) write(time, ago(since(time)));
  for (const time of document.querySelectorAll("time.moment")) write(time.lastElementChild, ago(since(time)));
  for (const deadline of document.querySelectorAll(".deadline")) {
    deadline.classList.toggle("is-overdue", Date.parse(deadline.dataset.until) <= now);
  }
  for (const bar of document.querySelectorAll("progress[data-from]")) {
    const [from, to] = [Date.parse(bar.dataset.from), Date.parse(bar.dataset.to)];
    bar.value = Math.min(100, Math.max(0, ((now - from) / (to - from)) * 100));
  }
}

tick();
setInterval(tick, 1000);
document.addEventListener("visibilitychange", tick);
onFragments(tick);
