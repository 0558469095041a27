// The keyboard of a review. Keys are bound by their place (event.code), so that they work in a Russian layout.
// Without this script the buttons do the same.
(() => {
  const list = document.getElementById("slots");
  if (!list) return;
  const slots = () => [...list.querySelectorAll(".composition-slot")];
  const undecided = () => slots().find((slot) => slot.dataset.decision === "open");
  let current = (location.hash && document.querySelector(location.hash)) || undecided() || slots()[0];
  let accepting = false;

  const show = (slot, scroll) => {
    if (!slot) return;
    slots().forEach((one) => one.classList.toggle("current", one === slot));
    current = slot;
    if (scroll) {
      slot.focus({ preventScroll: true });
      slot.scrollIntoView({ block: "nearest" });
    }
  };

  const after = (slot) => {
    const all = slots();
    const rest = all.slice(all.indexOf(slot) + 1);
    return rest.find((one) => one.dataset.decision === "open") || undecided() || slot;
  };

  list.addEventListener("focusin", (event) => show(event.target.closest(".composition-slot"), false));

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.repeat || event.isComposing) return;
    if (event.target.matches("textarea, input, select")) return;
    const all = slots();
    const step = { KeyJ: 1, ArrowDown: 1, KeyK: -1, ArrowUp: -1 }[event.code];
    if (step) {
      event.preventDefault();
      show(all[Math.min(all.length - 1, Math.max(0, all.indexOf(current) + step))], true);
      return;
    }
    const button = current && current.querySelector(`[data-code="${event.code}"]`);
    if (button) {
      event.preventDefault();
      button.click();
    }
  });

  list.addEventListener("click", (event) => {
    const button = event.target.closest("[data-code]");
    if (button) accepting = button.value === "accept";
  });

  // The slot has come anew: after an acceptance the next undecided one is looked at, else the same.
  document.addEventListener("htmx:afterSettle", (event) => {
    const slot = event.detail.elt.closest && event.detail.elt.closest(".composition-slot");
    if (!slot) return;
    show(accepting && slot.dataset.decision === "accepted" ? after(slot) : slot, true);
    accepting = false;
  });

  show(current, Boolean(location.hash));
  list.dataset.keys = "bound"; // for whoever presses keys faster than any person
})();
