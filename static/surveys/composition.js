// The keyboard of a review. Keys are bound by their place (event.code), so that they work in a Russian layout.
// Without this script the buttons do the same.
// htmx binds the buttons at the same event, and before, since its script comes first.
document.addEventListener("DOMContentLoaded", () => {
  const list = document.getElementById("slots");
  if (!list) return;
  const slots = () => [...list.querySelectorAll(".composition-slot")];
  const undecided = () => slots().find((slot) => slot.dataset.decision === "open");
  const first = (location.hash && document.querySelector(location.hash)) || undecided() || slots()[0];
  let current = first ? first.id : ""; // by its id: a slot comes anew with each decision
  const pending = new Map(); // slots whose decision is on its way, and whether it accepts

  const show = (slot, scroll) => {
    if (!slot) return;
    slots().forEach((one) => one.classList.toggle("current", one === slot));
    current = slot.id;
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
      const place = all.findIndex((slot) => slot.id === current);
      show(all[Math.min(all.length - 1, Math.max(0, place + step))], true);
      return;
    }
    const slot = document.getElementById(current);
    const button = slot && slot.querySelector(`[data-code="${event.code}"]`);
    if (!button) return;
    event.preventDefault();
    if (!pending.has(current)) button.click();
  });

  list.addEventListener("click", (event) => {
    const button = event.target.closest("[data-code]");
    if (button) pending.set(button.closest(".composition-slot").id, button.value === "accept");
  });
  ["htmx:responseError", "htmx:sendError", "htmx:timeout"].forEach((name) => {
    document.addEventListener(name, () => pending.clear());
  });

  // A slot has come anew: after an acceptance the next undecided one is looked at, unless the person has gone on already.
  document.addEventListener("htmx:afterSettle", (event) => {
    const slot = event.target.closest && event.target.closest(".composition-slot");
    if (!slot || !pending.has(slot.id)) return;
    const accepted = pending.get(slot.id) && slot.dataset.decision === "accepted";
    pending.delete(slot.id);
    if (slot.id === current) show(accepted ? after(slot) : slot, true);
  });

  show(first, Boolean(location.hash));
  list.dataset.keys = "bound"; // for whoever presses keys faster than any person
});
