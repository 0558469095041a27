// The keyboard of a judging page. Keys are bound by their place (event.code), so that they work in a Russian layout.
// Without this script the buttons do the same, and the server says what is missing.
(() => {
  const form = document.getElementById("judge");
  if (!form) return;
  const state = document.getElementById("state");
  const notAttempt = document.getElementById("not_attempt");
  const reason = form.querySelector("[name=reason]");
  const rows = [...form.querySelectorAll("[data-criterion]")];
  let sent = false;
  form.noValidate = true; // the browser would lead into the reason before it is known what is chosen

  const missing = () => notAttempt.checked ? [] : rows.filter((row) => !row.querySelector("input:checked"));

  // What is missing is named only after Enter; before that the empty buttons say it.
  const tell = (loud) => {
    const open = missing();
    if (open.length === 0) state.textContent = state.dataset.ready;
    else state.textContent = loud ? `${state.dataset.missing} ${open.map((row) => row.querySelector("legend").firstChild.textContent.trim()).join(" ")}` : "";
    rows.forEach((row) => row.classList.toggle("judge-missing", Boolean(loud) && open.includes(row)));
    return open;
  };

  const choose = (input) => {
    if (input === notAttempt) {
      input.checked = !input.checked;
    } else {
      input.checked = true;
    }
    input.dispatchEvent(new Event("change", { bubbles: true }));
  };

  form.addEventListener("change", (event) => {
    if (event.target === notAttempt && notAttempt.checked) {
      rows.forEach((row) => row.querySelectorAll("input").forEach((input) => { input.checked = false; }));
    } else if (event.target.type === "radio") {
      notAttempt.checked = false;
    }
    tell(false);
  });

  form.addEventListener("submit", (event) => {
    if (sent) {
      event.preventDefault();
      return;
    }
    if (tell(true).length > 0) {
      event.preventDefault();
      if (document.activeElement === reason) reason.blur(); // so that the next key chooses
      return;
    }
    if (!reason.value.trim()) {
      event.preventDefault();
      state.textContent = state.dataset.why;
      reason.focus();
      return;
    }
    sent = true;
  });
  // A page that the browser brings back from memory may be sent again.
  addEventListener("pageshow", () => { sent = false; });

  document.addEventListener("keydown", (event) => {
    if (sent) return; // the next answer is on its way; what is pressed meanwhile is about neither
    if (event.ctrlKey || event.altKey || event.metaKey || event.repeat || event.isComposing) return;
    if (event.code === "Escape" && event.target === reason) {
      reason.blur();
      return;
    }
    if (event.target.matches("textarea, input[type=text], select")) return;
    if (event.code === "Enter" || event.code === "NumpadEnter") {
      if (event.target.matches("a, summary, button")) return;
      event.preventDefault();
      form.requestSubmit();
      return;
    }
    if (event.code === "KeyU") {
      document.getElementById("back")?.click();
      return;
    }
    const input = form.querySelector(`[data-code="${event.code}"]`);
    if (input) {
      event.preventDefault();
      choose(input);
    }
  });
  form.dataset.keys = "bound"; // for whoever presses keys faster than any person
})();
