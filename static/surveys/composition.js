// The keyboard of a review. Keys are bound by their place (event.code), so that they work in a Russian layout.
// Without this script the buttons do the same.
// htmx binds the buttons at the same event, and before, since its script comes first.
document.addEventListener("DOMContentLoaded", () => {
  const list = document.getElementById("slots");
  if (!list) return;
  const slots = () => [...list.querySelectorAll(".composition-slot")];
  const undecided = () => slots().find((slot) => slot.dataset.decision === "open");
  let current = (location.hash && document.querySelector(location.hash)) || undecided() || slots()[0];
  let busy = false; // a decision is on its way; what is pressed meanwhile is about neither slot

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
    if (busy) return;
    const button = current && current.querySelector(`[data-code="${event.code}"]`);
    if (button) {
      event.preventDefault();
      button.click();
    }
  });

  // A decision is remembered until its slot has come anew; htmx tells of each part that it has put in.
  let decided = null;
  list.addEventListener("click", (event) => {
    const button = event.target.closest("[data-code]");
    if (button) decided = { id: button.closest(".composition-slot").id, accepted: button.value === "accept" };
  });
  document.addEventListener("htmx:beforeRequest", () => { busy = true; });
  ["htmx:responseError", "htmx:sendError", "htmx:timeout"].forEach((name) => {
    document.addEventListener(name, () => { busy = false; });
  });
  document.addEventListener("htmx:afterSettle", () => {
    if (!decided) return;
    const slot = document.getElementById(decided.id);
    show(decided.accepted && slot.dataset.decision === "accepted" ? after(slot) : slot, true);
    decided = null;
    busy = false;
  });

  show(current, Boolean(location.hash));
  list.dataset.keys = "bound"; // for whoever presses keys faster than any person
});
