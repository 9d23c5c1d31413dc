// The buttons: each opens a dialog that asks for a reason. One opening has one key, so pressing twice acts once.
import { tell } from "./curl.js";
import { onFragments, post } from "./page.js";

let opener = "";

function prepare(dialog) {
  const form = dialog.querySelector("form");
  form.elements.key.value = newKey();
  const seen = document.getElementById(opener)?.dataset.revision;
  form.elements.revision.value = seen ?? document.getElementById("state")?.dataset.revision ?? "";
  tell(form);
}

function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 15) | 64;
  bytes[8] = (bytes[8] & 63) | 128;
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The button of the dialog has the word of the button that opened it; a reason may be asked for or not. */
function say(form, opened) {
  const submit = form.querySelector("[type=submit]");
  submit.dataset.label ??= submit.textContent;
  submit.textContent = opened.word ?? submit.dataset.label;
  const reason = form.querySelector("textarea[name=reason]");
  if (reason) reason.required = opened.reason !== "optional";
}

function open(button) {
  const dialog = document.getElementById(button.dataset.opens);
  const form = dialog.querySelector("form");
  form.setAttribute("action", button.dataset.url + location.search);
  const given = form.querySelector("[data-given]");
  if (given) given.value = button.dataset.given;
  dialog.querySelector(".subject").textContent = button.dataset.subject;
  for (const part of ["about", "help", "warning"]) {
    dialog.querySelector(`.${part}`).textContent = button.dataset[part] ?? "";
  }
  say(form, button.dataset);
  opener = button.id;
  dialog.querySelector(".result").replaceChildren();
  prepare(dialog);
  dialog.showModal();
  form.querySelector("textarea, input:not([type=hidden], [type=checkbox])")?.focus();
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-opens]");
  if (button && button.getAttribute("aria-disabled") !== "true") open(button);
  event.target.closest("[data-closes]")?.closest("dialog").close();
});

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("form[data-action]");
  if (!form) return;
  event.preventDefault();
  if (form.dataset.busy) return;
  form.dataset.busy = "true";
  const result = form.querySelector(".result");
  result.replaceChildren();
  try {
    const answer = await post(form);
    if (!result.firstElementChild) result.replaceChildren(unanswered(form, answer));
  } finally {
    delete form.dataset.busy;
  }
});

/** What to do when the server has said nothing of its own: not reached, not able, or it does not know who asks. */
function unanswered(form, answer) {
  const notice = document.createElement("p");
  notice.className = "notice bad";
  notice.role = "alert";
  notice.textContent = form.dataset[answer === "fresh" ? "failed" : answer];
  return notice;
}

onFragments(() => {
  const dialog = document.querySelector("dialog[open]");
  if (dialog?.querySelector(".result [data-done]")) {
    dialog.querySelector("form").reset();
    dialog.close();
  } else if (dialog?.querySelector(".result [data-refused]:not([data-seen])")) {
    // The page now shows what changed; pressing again is a new decision.
    dialog.querySelector(".result [data-refused]").dataset.seen = "true";
    prepare(dialog);
  }
});
