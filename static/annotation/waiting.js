// A rater's list: what a closed tab or a crash has left in this browser is sent from here too, without opening an answer.
for (const box of document.querySelectorAll("[data-outbox]")) {
  const say = box.dataset;
  const line = (text, url) => {
    const item = Object.assign(document.createElement("p"), { className: "mb-1", textContent: text });
    if (url) item.append(" ", Object.assign(document.createElement("a"), { href: url, textContent: say.open }));
    box.append(item);
  };
  const state = document.createElement("p");
  state.className = "mb-0";
  let sent = 0;
  let refused = false;
  const outbox = new Outbox({
    key: say.outbox,
    user: say.user,
    token: document.querySelector("form [name=csrfmiddlewaretoken]").value,
    tokenPage: location.href,
    onSaved: () => { sent += 1; },
    onRefused: (entry, answer) => {
      refused = true;
      const isStale = answer.error === "stale"; // to be decided on its page, which shows both
      line(answer.message, isStale ? entry.url : "");
      return isStale;
    },
    onState: (name, waiting) => {
      const words = { saved: refused && !sent ? "" : `${say.sent} ${sent}`, saving: say.saving, unsent: `${say.unsent} ${waiting}`, login: `${say.login} ${waiting}`, other: `${say.other} ${waiting}` };
      state.textContent = words[name];
    },
  });
  box.hidden = outbox.restore().length === 0;
  box.append(state);
}
