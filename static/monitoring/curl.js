// What a form would do, as a call of curl with its values as they stand; and buttons that copy a text.

// What a terminal would act upon, and what shows a text in another order than it has.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

/** Writes the calls of a form anew. */
export function tell(form) {
  for (const part of form.querySelectorAll("details[data-curl]")) {
    part.querySelector("code").textContent = call(form, part);
  }
}

function call(form, part) {
  const submitter = document.getElementById(part.dataset.curl);
  const action = submitter?.getAttribute("formaction") ?? form.getAttribute("action") ?? "";
  const address = new URL(part.dataset.at || action || location.href, location.href);
  address.pathname = part.dataset.api + address.pathname.slice(part.dataset.root.length);
  // The parameters of a list are the page's; those of a page that makes the form are its own.
  if (form.hasAttribute("data-action")) address.search = "";
  address.hash = "";
  const given = new Map(new FormData(form, submitter));
  given.delete("csrfmiddlewaretoken");
  const lines = [...given].map(([name, value]) => line(name, value));
  const head = `curl ${quoted(address.href)}`;
  return [head, '-H "Authorization: Bearer $PROCESSION_TOKEN"', ...lines].join(" \\\n  ");
}

function line(name, value) {
  if (!UNSEEN.test(name + value)) return `--data-urlencode ${quoted(`${name}=${value}`)}`;
  return `--data-raw ${quoted(`${encoded(name)}=${encoded(value)}`)}`;
}

function encoded(text) {
  return encodeURIComponent(text).replaceAll("'", "%27");
}

/** A text as a POSIX shell takes it for one word, whatever is in it. */
function quoted(text) {
  return `'${text.replaceAll("'", `'"'"'`)}'`;
}

async function copy(button) {
  const text = button.parentElement.querySelector("code");
  const said = button.nextElementSibling;
  try {
    await navigator.clipboard.writeText(text.textContent);
  } catch {
    // Without HTTPS there is no clipboard for pages: the old way, and at worst the text is selected.
    getSelection().selectAllChildren(text);
    document.execCommand("copy");
  }
  said.textContent = said.dataset.said;
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copies]");
  if (button) copy(button);
});

document.addEventListener("input", (event) => {
  const form = event.target.closest("form");
  if (form?.querySelector("details[data-curl]")) tell(form);
});

for (const form of document.forms) {
  if (!form.hasAttribute("data-action")) tell(form);
}
