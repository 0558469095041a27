(() => {
  const end = document.getElementById("end");
  try {
    Object.keys(localStorage)
      .filter((name) => name.startsWith(`luria-draft:${end.dataset.key}:`))
      .forEach((name) => localStorage.removeItem(name));
  } catch { /* no storage, no drafts */ }

  const button = document.getElementById("copy");
  if (button && navigator.clipboard) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(document.getElementById("code").textContent);
      button.textContent = button.dataset.done;
    });
  }
})();
