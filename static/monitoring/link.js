// The token of a sign-in link stands behind the #, which browsers send to nobody: it is posted, and leaves the address.
const form = document.querySelector("[data-link]");

function follow() {
  const token = location.hash.slice(1);
  if (!token) return;
  window.history.replaceState(null, "", location.pathname);
  form.elements.token.value = token;
  form.requestSubmit();
}

window.addEventListener("hashchange", follow); // another link, opened where this page is already
follow();
