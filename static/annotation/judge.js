// A judging page. The next answers are here before they are needed: Enter shows the next one at once, and what was chosen
// is saved behind it (outbox.js). Keys are bound by their place (event.code), so that they work in a Russian layout.
// Without this script the form does the same, one page after another.
(() => {
  const form = document.getElementById("judge");
  const data = JSON.parse(document.getElementById("judging").textContent);
  if (!form || form.hidden) return;
  const say = document.getElementById("phrases").dataset;
  const at = (id) => document.getElementById(id);
  const rows = [...form.querySelectorAll("[data-criterion]")];
  const notAttempt = at("not_attempt");
  const flagged = at("flagged");
  const comment = at("comment");

  let card = data.card; // on the screen
  const queue = data.ahead; // to come, held for this rater
  const past = []; // what was judged or looked at on this page, with what was chosen
  let goingBack = []; // what was left when the rater went back, to return to
  const versions = new Map([[card.place, card.version]]); // as this page knows them
  const gone = new Set(); // places judged or passed by here: the server may still count them as held
  let before = data.before;
  let verdict = "more"; // "more" may come, "later", or "end"
  let feedbackFor = null; // a training answer that waits for its feedback or is being read
  let onset = performance.now();
  let hiddenSince = null;
  let hiddenFor = 0;

  // --- what is chosen -------------------------------------------------------------------------------------------

  const radios = (row) => [...row.querySelectorAll("input")];
  const missing = () => notAttempt.checked ? [] : rows.filter((row) => !row.querySelector("input:checked"));

  function chosenNow() {
    const chosen = {};
    if (!notAttempt.checked) {
      for (const row of rows) {
        const input = row.querySelector("input:checked");
        if (input) chosen[row.dataset.criterion] = input.value;
      }
    }
    return { chosen, not_attempt: notAttempt.checked, flagged: flagged.checked, comment: comment.value.trim() };
  }

  function isSame(one, other) {
    return one.not_attempt === other.not_attempt && one.flagged === other.flagged && one.comment === other.comment
      && (one.not_attempt || rows.every(({ dataset: { criterion } }) => one.chosen[criterion] === other.chosen[criterion]));
  }

  // What is missing is named only after Enter; before that the empty buttons say it.
  function tellMissing(loud) {
    const open = missing();
    if (open.length === 0) at("missing").textContent = say.ready;
    else at("missing").textContent = loud ? `${say.missing} ${open.map((row) => row.querySelector("legend").firstChild.textContent.trim()).join(" ")}` : "";
    rows.forEach((row) => row.classList.toggle("judge-missing", Boolean(loud) && open.includes(row)));
    return open;
  }

  // --- what is shown --------------------------------------------------------------------------------------------

  function show(next) {
    card = next;
    if (!versions.has(card.place)) versions.set(card.place, card.version);
    at("desk").hidden = false;
    at("waiting").hidden = true;
    at("feedback").hidden = true;
    form.hidden = false;
    at("skip").hidden = card.done;
    at("skip").open = false;
    at("skip_form").reset();
    at("training").hidden = !card.training;
    for (const [id, text] of [["stimulus", card.stimulus], ["answer", card.display || say.empty]]) {
      at(id).textContent = text;
      at(id).lang = card.language;
    }
    at("answer").classList.toggle("text-secondary", !card.display);
    for (const row of rows) radios(row).forEach((input) => { input.checked = !card.not_attempt && card.chosen[row.dataset.criterion] === input.value; });
    notAttempt.checked = card.not_attempt;
    flagged.checked = card.flagged;
    comment.value = card.comment;
    at("remark").open = Boolean(card.comment);
    at("standing").textContent = card.done ? say.done : card.state === "withdrawn" ? say.withdrawn : "";
    at("withdraw").hidden = card.state !== "done" || Boolean(outbox.find(card.place));
    at("withdraw").action = `${card.url}withdraw/`;
    form.elements.version.value = card.version;
    form.action = card.url;
    at("skip_form").action = card.skip_url;
    history.replaceState(null, "", card.url);
    at("back").hidden = past.length === 0 && !before;
    tellMissing(false);
    onset = performance.now();
    hiddenFor = 0;
    hiddenSince = document.hidden ? onset : null;
    if (document.activeElement !== document.body) at("answer").focus({ preventScroll: true });
    scrollTo(0, 0);
  }

  function nothingToShow() {
    card = null;
    at("desk").hidden = true;
    at("waiting").hidden = false;
    const waits = outbox.entries.length > 0 && verdict === "more";
    at("waiting_text").textContent = waits ? say.hold : verdict === "later" ? say.later : say.end;
    at("waiting_home").hidden = waits;
    at("back").hidden = past.length === 0 && !before;
    at("waiting").focus();
  }

  function goOn() {
    const next = goingBack.pop() ?? queue.shift();
    if (next) show(next);
    else nothingToShow();
  }

  function progress({ done, total, minutes }) {
    at("progress").textContent = `${done} ${say.of} ${total}${minutes ? ` · ${say.minutes.replace("{n}", minutes)}` : ""}`;
    document.title = `${done} ${say.of} ${total}`;
    const share = total ? Math.floor(100 * done / total) : 0;
    const bar = document.querySelector("[role=progressbar]");
    bar.setAttribute("aria-valuenow", share);
    bar.querySelector("rect").setAttribute("width", `${share}%`);
  }

  function tell(text, buttons = []) {
    const box = Object.assign(document.createElement("div"), { className: "alert alert-warning py-2" });
    box.append(Object.assign(document.createElement("p"), { className: "mb-1", textContent: text }));
    for (const [label, press] of buttons.length ? buttons : [[say.close, () => {}]]) {
      const button = Object.assign(document.createElement("button"), { type: "button", className: "btn btn-sm btn-outline-secondary me-2", textContent: label });
      button.addEventListener("click", () => { box.remove(); press(); });
      box.append(button);
    }
    at("told").append(box);
  }

  // --- saving ---------------------------------------------------------------------------------------------------

  const outbox = new Outbox({
    key: `${data.rater}:${data.campaign.id}`,
    token: form.elements.csrfmiddlewaretoken.value,
    tokenPage: data.campaign.mine,
    onSaved: saved,
    onRefused: refused,
    onState: (state, waiting) => {
      at("saved").textContent = { saved: say.saved, saving: say.saving, unsent: say.unsent + waiting, login: say.login + waiting }[state];
      at("saved").classList.toggle("unsent", state === "unsent" || state === "login");
      at("login").hidden = state !== "login";
      if (!card && state === "saved") nothingToShow();
    },
  });
  outbox.extra = (entry) => ({
    user: data.user, // whoever else has logged in meanwhile does not save this as theirs
    have: [card, ...queue, ...goingBack].filter(Boolean).map((one) => one.place).join(","),
    ...(entry.kind === "judge" ? { version: versions.get(entry.place) ?? entry.version } : {}),
  });

  function saved(entry, answer) {
    if (answer.saved) versions.set(entry.place, answer.saved.version);
    const known = new Set([card, ...queue, ...goingBack].filter(Boolean).map((one) => one.place));
    const held = new Set(answer.held);
    // What went to somebody else, because it lay here too long, is not shown any more.
    for (let i = queue.length - 1; i >= 0; i -= 1) if (!held.has(queue[i].place)) queue.splice(i, 1);
    queue.push(...answer.ahead.filter((one) => !known.has(one.place) && !gone.has(one.place)));
    verdict = answer.held.some((place) => !gone.has(place)) ? "more" : answer.later ? "later" : "end";
    progress(answer.progress);
    if (feedbackFor === entry.place) showFeedback(entry, answer.feedback);
    else if (!card && feedbackFor === null) goOn();
  }

  function refused(entry, answer) {
    if (feedbackFor === entry.place) feedbackFor = null;
    if (answer.error === "stale" && answer.card) {
      versions.set(entry.place, answer.card.version);
      tell(`${say.conflict} ${inWords(answer.card)}. ${say.chosen} ${inWords(entry.said)}. ${answer.card.display}`, [
        [say.keep, () => {}],
        [say.mine, () => outbox.add({ ...entry })],
      ]);
    } else {
      tell(answer.message);
      gone.delete(entry.place);
    }
    if (!card) goOn();
  }

  function inWords({ chosen, not_attempt: isNone }) {
    if (isNone) return say.attempt;
    return data.criteria.map(({ code, question, options }) =>
      `${question} ${options.find((option) => option.value === chosen[code])?.label ?? "–"}`).join("; ");
  }

  function seconds() {
    const hidden = hiddenFor + (hiddenSince === null ? 0 : performance.now() - hiddenSince);
    return Math.max(0, (performance.now() - onset - hidden) / 1000).toFixed(2);
  }

  function judge() {
    const said = chosenNow();
    const isBack = card.done || gone.has(card.place);
    if (isBack && isSame(said, card)) { // looked at, and left as it was
      remember(card);
      goOn();
      return;
    }
    const fields = { seconds: seconds(), comment: said.comment };
    if (said.flagged) fields.flagged = "1";
    if (said.not_attempt) fields.not_attempt = "1";
    for (const [code, value] of Object.entries(said.chosen)) fields[`c-${code}`] = value;
    const judged = { ...card, ...said, done: true, state: "done" };
    gone.add(card.place);
    remember(judged);
    if (card.training && !isBack) { // what is right comes with the answer of the server
      feedbackFor = card.place;
      form.hidden = true;
      at("skip").hidden = true;
    }
    outbox.add({ kind: "judge", place: card.place, url: card.url, version: versions.get(card.place), fields, said });
    if (feedbackFor === null) goOn();
  }

  function remember(judged) {
    const known = past.findIndex((one) => one.place === judged.place);
    if (known >= 0) past[known] = judged;
    else past.push(judged);
  }

  function skip(reason) {
    const fields = { reason };
    gone.add(card.place);
    outbox.add({ kind: "skip", place: card.place, url: card.skip_url, fields, said: { chosen: {}, not_attempt: false } });
    goOn();
  }

  function showFeedback(entry, feedback) {
    const box = at("feedback");
    box.replaceChildren();
    const line = (tag, text, parent = box) => parent.append(Object.assign(document.createElement(tag), { textContent: text }));
    if (feedback) {
      line("strong", feedback.right ? say.right : say.wrong);
      if (feedback.not_attempt) line("p", say.noattempt);
      if (!feedback.right && !feedback.not_attempt) {
        const list = document.createElement("ul");
        for (const row of feedback.rows) {
          const { question, options } = data.criteria.find(({ code }) => code === row.code);
          line("li", `${question} ${options.find((option) => option.value === row.expected)?.label ?? row.expected}`, list);
        }
        box.append(list);
      }
      if (feedback.explanation) line("p", feedback.explanation);
    }
    const button = Object.assign(document.createElement("button"), { type: "button", className: "btn btn-primary mt-1", textContent: say.on });
    button.addEventListener("click", afterFeedback);
    box.append(button);
    box.hidden = false;
    button.focus();
  }

  function afterFeedback() {
    feedbackFor = null;
    goOn();
  }

  // --- going back -----------------------------------------------------------------------------------------------

  async function goBack() {
    if (feedbackFor !== null) return;
    const here = card ? past.findIndex((one) => one.place === card.place) : -1;
    let earlier = past[(here >= 0 ? here : past.length) - 1];
    if (!earlier && before) {
      try {
        const response = await fetch(`/rate/${before}/`, { headers: { Accept: "application/json" }, redirect: "manual", cache: "no-store" });
        if (!response.ok) return;
        const answer = await response.json();
        earlier = answer.card;
        before = answer.before;
        past.unshift(earlier);
      } catch {
        return;
      }
    }
    if (!earlier) return;
    // What is half chosen here is kept and comes again.
    if (card) goingBack.push(past.some((one) => one.place === card.place) ? card : { ...card, ...chosenNow() });
    show(earlier);
  }

  // --- keys -----------------------------------------------------------------------------------------------------

  function choose(input) {
    input.checked = input.type === "checkbox" ? !input.checked : true;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  }

  form.addEventListener("change", (event) => {
    if (event.target === notAttempt && notAttempt.checked) {
      rows.forEach((row) => radios(row).forEach((input) => { input.checked = false; }));
    } else if (event.target.type === "radio") {
      notAttempt.checked = false;
    }
    if (event.target !== comment) tellMissing(false);
  });

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (card && feedbackFor === null && tellMissing(true).length === 0) judge();
  });
  at("skip_form").addEventListener("submit", (event) => {
    event.preventDefault();
    const { own, reason } = event.target.elements;
    const why = own.value.trim() || reason.value;
    if (why) skip(why);
    else own.focus();
  });
  at("back").addEventListener("click", (event) => {
    event.preventDefault();
    goBack();
  });

  const toggle = (id, focus) => {
    at(id).open = !at(id).open;
    if (at(id).open) focus?.focus();
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.repeat || event.isComposing) return;
    if (event.code === "Escape") {
      at("skip").open = false;
      document.activeElement?.blur();
      return;
    }
    if (event.target.matches("textarea, input:not([type=radio], [type=checkbox]), select")) return;
    if (event.code === "Enter" || event.code === "NumpadEnter") {
      if (event.target.matches("a, summary, button")) return;
      event.preventDefault();
      if (feedbackFor !== null) { if (!at("feedback").hidden) afterFeedback(); } else if (card) form.requestSubmit();
      return;
    }
    if (event.code === "KeyU") { goBack(); return; }
    if (event.code === "KeyH" && at("rules")) { toggle("rules"); return; }
    if (!card || feedbackFor !== null) return;
    if (at("skip").open) {
      const reason = at("skip").querySelector(`[data-code="${event.code}"]`);
      if (reason) { event.preventDefault(); skip(reason.value); }
      if (reason || event.code !== "KeyZ") return;
    }
    if (event.code === "KeyZ" && !at("skip").hidden) { event.preventDefault(); toggle("skip"); return; }
    if (event.code === "KeyC") { event.preventDefault(); toggle("remark", comment); return; }
    const input = form.querySelector(`[data-code="${event.code}"]`);
    if (input) {
      event.preventDefault();
      choose(input);
    }
  });

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) hiddenSince = performance.now();
    else if (hiddenSince !== null) { hiddenFor += performance.now() - hiddenSince; hiddenSince = null; }
  });
  addEventListener("beforeunload", (event) => { if (outbox.entries.length) event.preventDefault(); });

  // --- the beginning --------------------------------------------------------------------------------------------

  // What an earlier page left unsent goes first, and is not asked again.
  for (const entry of outbox.restore()) gone.add(entry.place);
  for (let i = queue.length - 1; i >= 0; i -= 1) if (gone.has(queue[i].place)) queue.splice(i, 1);
  const left = outbox.find(card.place);
  if (left) {
    if (left.kind === "judge") past.push({ ...card, ...left.said, done: true, state: "done" });
    goOn();
  }
  form.dataset.keys = "bound"; // for whoever presses keys faster than any person
})();
