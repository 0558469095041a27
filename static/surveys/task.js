// The comforts of a task page. Without this script everything works the same, untimed and without drafts.
//   - times by the browser's own clock since the first paint, and what happened between (surveys/timing.py reads them);
//   - a draft that survives a reload;
//   - an answer that survives a lost connection: it is sent, in words on the page, as soon as there is one again.
(() => {
  const form = document.getElementById("task");
  const field = form.elements.text;
  const state = document.getElementById("state");
  const words = document.getElementById("words");
  const key = `luria-draft:${form.dataset.key}:${form.dataset.number}`;
  const RETRY_MS = 3000;

  const store = {
    read() { try { return JSON.parse(localStorage.getItem(key)); } catch { return null; } },
    write(value) { try { localStorage.setItem(key, JSON.stringify(value)); } catch { /* private mode: no drafts */ } },
    clear() { try { localStorage.removeItem(key); } catch { /* likewise */ } },
  };

  // What earlier showings of this page have measured, so that a reload loses no time.
  let kept = store.read();
  if (!kept || kept.revision !== form.dataset.revision) kept = { revision: form.dataset.revision };
  const timing = { duration: 0, first_key: null, away: 0, pastes: 0, pasted: 0, ...kept.timing };
  const before = timing.duration;
  let onset = performance.now();
  requestAnimationFrame(() => requestAnimationFrame(() => { onset = performance.now(); }));
  let awaySince = document.hidden ? onset : null;
  let finished = false;

  const shown = () => before + Math.round(performance.now() - onset);
  const wordsGiven = words.textContent;
  const isTranslated = () =>
    /(^|\s)translated-(ltr|rtl)(\s|$)/.test(document.documentElement.className) || // Chrome's own
    document.documentElement.hasAttribute("_msttexthash") || document.querySelector("[_msttexthash]") !== null || // Edge
    words.querySelector("font") !== null || words.textContent !== wordsGiven; // Yandex and extensions
  const device = () => {
    if (!matchMedia("(pointer: coarse)").matches) return "desktop";
    return Math.min(screen.width, screen.height) < 600 ? "phone" : "tablet";
  };

  function leave() { if (awaySince === null) awaySince = performance.now(); }
  function comeBack() {
    if (awaySince !== null) timing.away += Math.round(performance.now() - awaySince);
    awaySince = null;
  }
  document.addEventListener("visibilitychange", () => (document.hidden ? leave() : comeBack()));
  addEventListener("blur", leave);
  addEventListener("focus", comeBack);

  function measured() {
    if (awaySince !== null) { comeBack(); leave(); }
    timing.duration = shown();
    return { ...timing, translated: isTranslated(), device: device() };
  }
  const keep = () => store.write({ revision: form.dataset.revision, text: field.value, timing: measured(), typed: kept.typed });

  const storable = (text) => text.replaceAll("\u0000", ""); // a pasted NUL is the one character nobody can keep
  if (kept.typed && kept.text !== field.value) {
    field.value = storable(kept.text);
    state.textContent = state.dataset.restored;
  }

  const firstKey = () => { if (timing.first_key === null) timing.first_key = shown(); };
  field.addEventListener("beforeinput", firstKey);
  field.addEventListener("paste", (event) => {
    timing.pastes += 1;
    timing.pasted += (event.clipboardData ? event.clipboardData.getData("text") : "").length;
  });
  field.addEventListener("input", () => {
    firstKey();
    if (field.value.includes("\u0000")) field.value = storable(field.value);
    kept.typed = true;
    keep();
    if (!waiting) state.textContent = isTranslated() ? state.dataset.translated : state.dataset.draft;
  });
  addEventListener("pagehide", () => { if (!finished) keep(); });
  addEventListener("pageshow", (event) => { // brought back as it was by the Back button: it can be sent again
    if (event.persisted) { finished = false; waiting = null; }
  });

  // Sending. The form is posted by script only to notice a lost connection; whatever the server says besides "done" is
  // shown by posting it the plain way, which is safe to repeat.
  let waiting = null; // what is being sent: it stays as it was when the button was pressed
  let timer = null;

  function lost() {
    state.textContent = state.dataset.offline;
    state.classList.add("unsent");
    timer = setTimeout(send, RETRY_MS);
  }

  async function send() {
    clearTimeout(timer);
    if (!waiting) return;
    const sent = waiting;
    let response;
    try {
      response = await fetch(form.action, { method: "POST", body: sent.body, redirect: "manual", cache: "no-store" });
    } catch {
      lost();
      return;
    }
    if (response.type === "opaqueredirect") {
      finished = true;
      store.clear();
      location.assign(form.dataset.next);
    } else if (response.status >= 500) {
      lost();
    } else {
      finished = true;
      field.disabled = false;
      if (sent.declined) form.append(Object.assign(document.createElement("input"), { type: "hidden", name: "declined", value: "1" }));
      form.submit();
    }
  }

  form.addEventListener("submit", (event) => {
    form.elements.timing.value = JSON.stringify(measured());
    if (!window.fetch) return;
    event.preventDefault();
    if (waiting) { send(); return; } // pressed again: try at once
    const body = new URLSearchParams(new FormData(form));
    const declined = Boolean(event.submitter && event.submitter.name === "declined");
    if (declined) body.set("declined", "1");
    waiting = { body, declined };
    field.readOnly = true;
    state.textContent = state.dataset.sending;
    keep();
    send();
  });
  addEventListener("online", send);
  if (isTranslated()) state.textContent = state.dataset.translated;
})();
