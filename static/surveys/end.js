(() => {
  const end = document.getElementById("end");
  try {
    Object.keys(localStorage)
      .filter((name) => name.startsWith(`luria-draft:${end.dataset.key}:`))
      .forEach((name) => localStorage.removeItem(name));
  } catch { /* no storage, no drafts */ }

  if (!navigator.clipboard) return;
  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      button.textContent = button.dataset.done;
    });
  }
})();
