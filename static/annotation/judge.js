// A judging page. The next answers are here before they are needed: Enter shows the next one at once, and what was chosen
// is saved behind it (outbox.js). Keys are bound by their place (event.code), so that they work in a Russian layout.
// Without this script the form does the same, one page after another.
(() => {
  const data = JSON.parse(document.getElementById("judging").textContent);
  const desk = new Desk(data.criteria);
  const { at, say, form } = desk;
  if (form.hidden) return;

  let card = data.card; // on the screen; null while there is none
  const queue = data.ahead; // to come, held for this rater
  const past = []; // what was judged, passed by or looked at on this page, with what was chosen
  const returns = []; // what was left when the rater went back, to return to
  const versions = new Map([[card.place, card.version]]); // as this page knows them
  const gone = new Set(); // places judged or passed by here: the server may still count them as held
  let before = data.before;
  let verdict = "more"; // "more" may come, "later", or "end"
  let over = ""; // why nothing can be judged any more: the campaign is closed, the rater's work has ended
  let wasRefused = false; // what was sent last: then "Saved." would be no true word
  let feedbackFor = null; // a training answer that waits for its feedback or is being read
  let isFetching = false;
  const AGAIN = new Set(["missing", "value", "comment", "reason"]); // refused, but the answer still lies here

  // --- how long an answer was looked at, over all its showings, without the time in which the page was hidden

  const looked = new Map(); // place → ms
  let since = performance.now();

  function look() { // to be called when what is on the screen ends to be seen
    if (card && since !== null) looked.set(card.place, (looked.get(card.place) ?? 0) + performance.now() - since);
    since = null;
  }
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) look();
    else since = performance.now();
  });

  // --- what is shown

  const hasBack = () => past.some((one) => one.place !== card?.place) || Boolean(before);
  const known = () => [card, ...queue, ...returns].filter(Boolean).map((one) => one.place);

  function show(next, isNew = true) {
    look();
    card = next;
    if (!versions.has(card.place)) versions.set(card.place, card.version);
    since = document.hidden ? null : performance.now();
    desk.show(card, { hasBack: hasBack(), isUnsent: Boolean(outbox.find(card.place)) });
    // The browser's own Back leads to the answer before this one, as it would without this script.
    if (isNew && history.state?.place !== card.place) history.pushState({ place: card.place }, "", card.url);
  }

  function nothingToShow() {
    look();
    card = null;
    const waits = !over && verdict === "more";
    desk.nothing(over || { more: say.hold, later: say.later, end: say.end }[verdict], { isOver: !waits, hasBack: !over && hasBack() });
  }

  function goOn() {
    const next = over ? null : returns.pop() ?? queue.shift();
    if (next) show(next);
    else nothingToShow();
  }

  // --- saving

  const outbox = new Outbox({
    key: `${data.rater}:${data.campaign.id}`,
    user: data.user,
    token: form.elements.csrfmiddlewaretoken.value,
    tokenPage: data.campaign.mine,
    onSaved: saved,
    onRefused: refused,
    onState: (state, waiting) => {
      desk.state(state, waiting, wasRefused);
      if (state === "saved" && !card && !over && feedbackFor === null) fetchMore();
    },
  });
  outbox.extra = (entry) => ({
    have: known().join(","),
    ...(entry.kind === "judge" ? { version: versions.get(entry.place) ?? entry.version } : {}),
  });

  function saved(entry, answer) {
    wasRefused = false;
    if (answer.saved) versions.set(entry.place, answer.saved.version);
    take(answer);
    if (feedbackFor === entry.place) desk.feedback(answer.feedback, afterFeedback);
    else if (!card && feedbackFor === null) goOn();
  }

  // What the server says is held now. What went to somebody else, or was judged in another window, is not shown any more.
  function take(answer) {
    const held = new Set(answer.held);
    for (let i = queue.length - 1; i >= 0; i -= 1) if (!held.has(queue[i].place)) queue.splice(i, 1);
    const have = new Set(known());
    queue.push(...answer.ahead.filter((one) => !have.has(one.place) && !gone.has(one.place)));
    verdict = answer.held.some((place) => !gone.has(place)) ? "more" : answer.later ? "later" : "end";
    desk.progress(answer.progress);
  }

  // All is saved and nothing is left here, though the server may have more: after a refusal, or after judging elsewhere.
  async function fetchMore() {
    if (verdict !== "more" || isFetching) { if (!isFetching) nothingToShow(); return; }
    isFetching = true;
    try {
      const body = new URLSearchParams({ user: data.user, csrfmiddlewaretoken: outbox.token });
      const response = await fetch(data.campaign.next, { method: "POST", body, headers: { Accept: "application/json" }, cache: "no-store" });
      const answer = await response.json();
      if (response.ok) {
        take(answer);
        if (verdict === "more" && queue.length === 0) verdict = "later";
      } else if (answer.message) {
        over = answer.over ?? answer.message;
      } else {
        verdict = "later"; // logged out: the first page asks to log in
      }
    } catch {
      verdict = "later"; // the way to the first page is shown; it asks again
    }
    isFetching = false;
    if (!card) goOn();
  }

  // Returns true where the rater has to decide first: the choice stays in the browser until then.
  function refused(entry, answer) {
    wasRefused = true;
    const wasAwaited = feedbackFor === entry.place;
    if (wasAwaited) feedbackFor = null;
    const isStale = answer.error === "stale" && Boolean(answer.card);
    if (isStale) {
      versions.set(entry.place, answer.card.version);
      desk.tell(`${say.conflict} ${desk.inWords(answer.card)}. ${say.chosen} ${desk.inWords(entry.said)}.`, {
        place: entry.place,
        quote: answer.card.display,
        buttons: [[say.mine, () => add({ ...entry })], [say.keep, () => leaveStored(entry, answer.card)]],
      });
    } else {
      const judged = past.find((one) => one.place === entry.place);
      desk.tell(answer.lost || answer.message, { place: entry.place, quote: judged?.display });
      forgetPast(entry.place);
      if (judged && AGAIN.has(answer.error)) returns.push({ ...judged, done: false, state: "held" });
      if (answer.error === "closed" || answer.error === "ended") over = answer.over;
    }
    if (!card || wasAwaited || over) goOn();
    return isStale;
  }

  function leaveStored(entry, stored) {
    outbox.forget(entry);
    const place = past.findIndex((one) => one.place === stored.place);
    if (place >= 0) past[place] = stored;
  }

  function add(entry) {
    desk.untell(entry.place);
    gone.add(entry.place);
    outbox.add(entry);
  }

  // --- judging, passing by

  function judge() {
    const wasSeen = card.done || gone.has(card.place);
    if (wasSeen && desk.isAs(card)) { // looked at, and left as it was
      remember(card);
      goOn();
      return;
    }
    if (desk.missing(true).length > 0) return;
    look();
    const said = desk.said();
    const fields = { seconds: ((looked.get(card.place) ?? 0) / 1000).toFixed(2), comment: said.comment };
    if (said.flagged) fields.flagged = "1";
    if (said.not_attempt) fields.not_attempt = "1";
    for (const [code, value] of Object.entries(said.chosen)) fields[`c-${code}`] = value;
    remember({ ...card, ...said, done: true, state: "done" });
    if (card.training && !wasSeen) { // what is right comes with the answer of the server
      awaitFeedback();
    }
    add({ kind: "judge", place: card.place, url: card.url, version: versions.get(card.place), fields, said });
    if (feedbackFor === null) goOn();
  }

  function skip(reason) {
    const nothing = { chosen: {}, not_attempt: false, flagged: false, comment: "" };
    remember({ ...card, ...nothing, state: "skipped" });
    add({ kind: "skip", place: card.place, url: card.skip_url, fields: { reason }, said: nothing });
    goOn();
  }

  function awaitFeedback() {
    feedbackFor = card.place;
    desk.waitForFeedback();
  }

  function afterFeedback() {
    feedbackFor = null;
    goOn();
  }

  function remember(judged) {
    const place = past.findIndex((one) => one.place === judged.place);
    if (place >= 0) past[place] = judged;
    else past.push(judged);
  }

  function forgetPast(place) {
    const index = past.findIndex((one) => one.place === place);
    if (index >= 0) past.splice(index, 1);
    gone.delete(place);
  }

  // --- going back

  function lookAgain(earlier, isNew) {
    // What is half chosen here is kept and comes again.
    if (card) returns.push(past.some((one) => one.place === card.place) ? card : { ...card, ...desk.said() });
    for (const list of [returns, queue]) {
      const index = list.findIndex((one) => one.place === earlier.place);
      if (index >= 0) list.splice(index, 1);
    }
    show(earlier, isNew);
  }

  // An answer that is not on this page, or why it cannot be had: nothing while another is being read.
  async function read(place) {
    if (isFetching) return {};
    isFetching = true;
    try {
      const response = await fetch(`/rate/${place}/`, { headers: { Accept: "application/json" }, redirect: "manual", cache: "no-store" });
      return await response.json();
    } catch {
      return { error: "unsent" };
    } finally {
      isFetching = false;
    }
  }

  async function goBack() {
    if (feedbackFor !== null || over) return;
    const here = card ? past.findIndex((one) => one.place === card.place) : -1;
    const earlier = past[(here >= 0 ? here : past.length) - 1];
    if (earlier) {
      lookAgain(earlier);
    } else if (before) {
      const asked = card;
      const answer = await read(before);
      if (answer.error) desk.tell(answer.message ?? (answer.error === "unsent" ? say.unread : say.loggedout), { place: before });
      if (answer.error === "login") at("login").hidden = false;
      if (!answer.card) return;
      desk.untell(before);
      before = answer.before;
      past.unshift(answer.card);
      if (card === asked) lookAgain(answer.card); // or the rater has gone on meanwhile
    }
  }

  addEventListener("popstate", async ({ state }) => {
    if (!state?.place || feedbackFor !== null || over || state.place === card?.place) return;
    const mine = [...past, ...returns, ...queue].find((one) => one.place === state.place);
    const found = mine ?? (await read(state.place)).card;
    if (found && history.state?.place === state.place) lookAgain(found, false);
  });

  // --- buttons and keys

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!card || feedbackFor !== null) return;
    const isLeftPassedBy = card.state === "skipped" && desk.isAs(card);
    if (isLeftPassedBy) goOn();
    else judge();
  });
  at("skip_form").addEventListener("submit", (event) => {
    event.preventDefault();
    const { own, reason } = event.target.elements;
    const why = own.value.trim() || reason.value;
    if (why) skip(why);
    else own.focus();
  });
  at("skip_form").addEventListener("input", ({ target, currentTarget }) => { // one reason: the later one
    const { own, reason } = currentTarget.elements;
    if (target !== own) own.value = "";
    else if (own.value) reason.forEach((radio) => { radio.checked = false; });
  });
  at("retry").addEventListener("click", () => outbox.retry());
  at("back").addEventListener("click", (event) => {
    event.preventDefault();
    goBack();
  });

  function toggle(id, focused) {
    at(id).open = !at(id).open;
    if (at(id).open) {
      focused.focus();
      at(id).scrollIntoView({ block: "nearest" });
    } else at("answer").focus({ preventScroll: true });
  }

  const always = { // keys that work whatever is on the screen
    KeyU: goBack,
    ArrowLeft: goBack,
    KeyH: () => at("rules") && toggle("rules", at("rules").querySelector(".rules-text")),
  };
  const keys = {
    KeyZ: () => { if (!at("skip").hidden) { toggle("skip", at("skip").querySelector("summary")); } },
    KeyC: () => toggle("remark", desk.comment),
  };

  function whileSkipping(code) {
    const reason = at("skip").querySelector(`[data-code="${code}"]`);
    if (reason?.type === "radio") skip(reason.value);
    else if (reason) reason.focus();
    else if (code === "KeyZ") keys.KeyZ();
  }

  function typing(event) { // in a field the letters are letters
    const isSent = event.code === "Enter" && event.ctrlKey;
    if (event.code !== "Escape" && !isSent) return;
    event.preventDefault();
    at("answer").focus({ preventScroll: true });
    if (isSent) event.target.form.requestSubmit();
    else at("skip").open = false; // or the next digit would be a reason
  }

  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.metaKey || event.repeat || event.isComposing) return;
    if (event.target.matches("textarea, input:not([type=radio], [type=checkbox]), select")) { typing(event); return; }
    if (event.ctrlKey || event.shiftKey) return;
    const code = event.code.replace("Numpad", /\d$/.test(event.code) ? "Digit" : "");
    if (code === "Enter") {
      if (event.target.matches("a, summary, button, #skip_form *")) return;
      event.preventDefault();
      if (feedbackFor === null) { if (card) form.requestSubmit(); else outbox.retry(); } else if (!at("feedback").hidden) afterFeedback();
    } else if (code === "Escape") {
      at("skip").open = false;
    } else if (code === "ArrowLeft" && event.target.matches("[type=radio]")) {
      // a step within its group, as everywhere
    } else if (always[code]) {
      event.preventDefault();
      always[code]();
    } else if (card && feedbackFor === null) {
      const input = form.querySelector(`[data-code="${code}"]`);
      if (at("skip").open) { event.preventDefault(); whileSkipping(code); return; }
      if (!input && !keys[code]) return;
      event.preventDefault();
      if (input) desk.choose(input);
      else keys[code]();
    }
  });

  addEventListener("beforeunload", (event) => { if (outbox.entries.length) event.preventDefault(); });

  // --- the beginning

  // What an earlier page left unsent goes first, and is not asked again.
  history.replaceState({ place: card.place }, "");
  for (const entry of outbox.restore()) gone.add(entry.place);
  for (let i = queue.length - 1; i >= 0; i -= 1) if (gone.has(queue[i].place)) queue.splice(i, 1);
  const left = outbox.find(card.place);
  if (left) {
    const isJudged = left.kind === "judge";
    remember(isJudged ? { ...card, ...left.said, done: true, state: "done" } : { ...card, state: "skipped" });
    if (isJudged && card.training && !card.done) awaitFeedback();
    else goOn();
  }
  form.dataset.keys = "bound"; // for whoever presses keys faster than any person
})();
