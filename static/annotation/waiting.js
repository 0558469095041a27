// A rater's list: what a closed tab or a crash has left in this browser is sent from here too, without opening an answer.
(() => {
  function attend(box, key) {
    const say = box.dataset;
    const state = Object.assign(document.createElement("p"), { className: "mb-0" });
    const told = new Map(); // what was said, once for all answers that it holds for
    let sent = 0;

    function tell(message, url) {
      const item = told.get(message) ?? Object.assign(document.createElement("p"), { className: "mb-1" });
      if (url) {
        item.textContent = `${message} `;
        item.append(Object.assign(document.createElement("a"), { href: url, textContent: say.open }));
      } else {
        item.dataset.times = Number(item.dataset.times ?? 0) + 1;
        item.textContent = `${message} ${say.answers} ${item.dataset.times}`;
        told.set(message, item);
      }
      box.append(item);
    }

    const outbox = new Outbox({
      key,
      user: say.user,
      token: document.querySelector("form [name=csrfmiddlewaretoken]").value,
      tokenPage: location.href,
      onSaved: () => { sent += 1; },
      onRefused: (entry, answer) => {
        const isStale = answer.error === "stale"; // to be decided on its page, which shows both
        tell(answer.message, isStale ? entry.url : "");
        return isStale;
      },
      onState: (name, waiting) => {
        if (name === "saved") state.textContent = sent ? `${say.sent} ${sent}` : "";
        else state.textContent = name === "saving" ? say.saving : `${say[name]} ${waiting}`;
      },
    });
    box.hidden = outbox.restore().length === 0;
    box.append(state);
  }

  const keys = [...document.querySelectorAll("[data-outbox]")].map((box) => {
    attend(box, box.dataset.outbox);
    return box.dataset.outbox;
  });

  // What waits for a campaign that is no longer on the list, because it is closed, is not kept in silence.
  const pattern = document.querySelector("[data-raters]");
  if (!pattern) return;
  const raters = pattern.dataset.raters.split(" ");
  let names = [];
  try { names = Object.keys(localStorage); } catch { /* no storage, nothing kept */ }
  const kept = names.map((name) => /^luria-outbox:((\d+):\d+):/.exec(name)).filter((found) => found && raters.includes(found[2]));
  for (const key of new Set(kept.map((found) => found[1]))) {
    if (keys.includes(key)) continue;
    const box = pattern.cloneNode();
    pattern.after(box);
    attend(box, key);
  }
})();
