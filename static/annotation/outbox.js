// What a rater has chosen and the server has not yet acknowledged. It is kept in the browser, one entry for each place,
// and sent in order, one after another, until the server has answered: through a lost connection, an ended session, a
// closed tab, a crash. To send an entry twice is safe: the server recognises it. No text of an answer is kept.
class Outbox {
  static PATIENCE = 30_000; // ms: a connection that hangs for so long is a lost one
  static PAUSE = 10_000; // ms: the longest one between two attempts

  // `tokenPage` is a page with a form, to read a fresh token of the forms from; the callbacks hear what became of each
  // entry. `onRefused` returns true where a person has to decide first: the entry stays in the browser until then.
  constructor({ key, user, token, tokenPage, onSaved, onRefused, onState }) {
    Object.assign(this, { prefix: `luria-outbox:${key}:`, user, token, tokenPage, onSaved, onRefused, onState });
    this.entries = [];
    this.delay = 0;
    this.sending = false;
    this.timer = null;
    this.state = "saved";
    addEventListener("online", () => this.retry());
    addEventListener("focus", () => this.retry());
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.retry(); });
  }

  // What an earlier page of this rater left behind, the oldest first.
  restore() {
    let names = [];
    try { names = Object.keys(localStorage); } catch { /* no storage: what is sent lives as long as the page */ }
    for (const name of names.filter((one) => one.startsWith(this.prefix))) {
      try {
        this.entries.push(JSON.parse(localStorage.getItem(name)));
      } catch { /* not ours, or half written by a crash of the whole machine */ }
    }
    this.entries.sort((one, other) => one.at - other.at);
    if (this.entries.length) this.pump();
    return [...this.entries];
  }

  find(place) { return this.entries.find((entry) => entry.place === place); }

  add(entry) {
    entry.at = Date.now() + performance.now() % 1;
    this.entries = this.entries.filter((other) => other.place !== entry.place || other === this.current);
    this.entries.push(entry);
    try { localStorage.setItem(this.prefix + entry.place, JSON.stringify(entry)); } catch { /* likewise */ }
    if (this.timer) this._tell(this.state); // one more waits
    this.pump();
  }

  // Out of the browser too, unless a newer choice for the same place lies there.
  forget(entry) {
    try {
      const kept = JSON.parse(localStorage.getItem(this.prefix + entry.place));
      if (kept && kept.at === entry.at) localStorage.removeItem(this.prefix + entry.place);
    } catch { /* likewise */ }
  }

  retry() {
    if (!this.timer) return;
    clearTimeout(this.timer);
    this.timer = null;
    this.pump();
  }

  async pump() {
    if (this.sending || this.timer) return;
    this.sending = true;
    while (this.entries.length && !this.timer) {
      this.current = this.entries[0];
      if (this.state === "saved") this._tell("saving");
      await this._send(this.current); // one after another, so that what was chosen first is saved first
      this.current = null;
    }
    this.sending = false;
    if (!this.entries.length) this._tell("saved");
  }

  async _send(entry) {
    const fields = { ...entry.fields, ...this.extra?.(entry), user: this.user, csrfmiddlewaretoken: this.token };
    let response;
    let data;
    try {
      response = await fetch(entry.url, {
        method: "POST", body: new URLSearchParams(fields), headers: { Accept: "application/json" }, redirect: "manual",
        cache: "no-store", signal: AbortSignal.timeout?.(Outbox.PATIENCE),
      });
      data = response.headers.get("Content-Type")?.includes("json") ? await response.json() : null;
    } catch {
      this._wait("unsent");
      return;
    }
    const { status } = response;
    if (data?.error === "other") {
      this._wait("other");
    } else if (status === 403 && (!data || data.error === "login")) {
      // Logged out, or logged in anew elsewhere, which changes the token of the forms.
      if (!await this._freshToken()) this._wait("login");
    } else if (!data || status >= 500) {
      this.entries = [...this.entries.filter((other) => other !== entry), entry]; // the others need not wait for this one
      this._wait("unsent");
    } else {
      this.delay = 0;
      this.tried = false;
      if (this.state !== "saving") this._tell("saving");
      this.entries = this.entries.filter((other) => other !== entry);
      if (response.ok) {
        this.forget(entry);
        this.onSaved(entry, data);
      } else if (!this.onRefused(entry, data)) {
        this.forget(entry);
      }
    }
  }

  // True: there is another token now, and it is worth trying at once.
  async _freshToken() {
    try {
      const page = await (await fetch(this.tokenPage, { redirect: "manual", cache: "no-store" })).text();
      const token = new DOMParser().parseFromString(page, "text/html").querySelector("form [name=csrfmiddlewaretoken]")?.value;
      const isNew = Boolean(token) && !this.tried;
      this.tried = isNew;
      if (token) this.token = token;
      return isNew;
    } catch {
      return false;
    }
  }

  _wait(state) {
    this.tried = false;
    this.delay = Math.min(Outbox.PAUSE, this.delay * 2 || 1_000);
    this.timer = setTimeout(() => { this.timer = null; this.pump(); }, this.delay);
    this._tell(state);
  }

  _tell(state) {
    this.state = state;
    this.onState(state, this.entries.length);
  }
}
