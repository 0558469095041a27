// Tells the server that the page was opened in a real browser: a link preview runs no scripts. Nothing of the person
// is sent, and without this everything else works the same.
(() => {
  const form = document.getElementById("consent");
  const body = new URLSearchParams({ start_key: form.elements.start_key.value });
  fetch(form.dataset.arrive, { method: "POST", body, credentials: "omit", keepalive: true }).catch(() => {});
})();
