// What a rater has chosen and the server has not yet acknowledged. It is kept in the browser, one entry for each place,
// and sent in order, one after another, until the server has answered: through a lost connection, an ended session, a
// closed tab, a crash. To send an entry twice is safe: the server recognises it.
class Outbox {
  // `held` tells a sender where to read a fresh token of the forms; the callbacks hear what became of each entry.
  constructor({ key, token, tokenPage, onSaved, onRefused, onState }) {
    Object.assign(this, { prefix: `luria-outbox:${key}:`, token, tokenPage, onSaved, onRefused, onState });
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
    try {
      for (let i = 0; i < localStorage.length; i += 1) {
        const name = localStorage.key(i);
        if (name.startsWith(this.prefix)) this.entries.push(JSON.parse(localStorage.getItem(name)));
      }
    } catch { /* no storage: what is sent lives as long as the page */ }
    this.entries.sort((one, other) => one.at - other.at);
    if (this.entries.length) this.pump();
    return this.entries;
  }

  find(place) { return this.entries.find((entry) => entry.place === place); }

  add(entry) {
    entry.at = Date.now() + performance.now() % 1;
    const place = this.entries.findIndex((other) => other.place === entry.place && other !== this.current);
    if (place >= 0) this.entries.splice(place, 1);
    this.entries.push(entry);
    this._keep(entry);
    this.pump();
  }

  drop(entry) {
    this.entries = this.entries.filter((other) => other !== entry);
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
    const body = new URLSearchParams({ ...entry.fields, ...this.extra?.(entry), csrfmiddlewaretoken: this.token });
    let response;
    let data;
    try {
      response = await fetch(entry.url, {
        method: "POST", body, headers: { Accept: "application/json" }, redirect: "manual", cache: "no-store",
      });
      data = response.headers.get("Content-Type")?.includes("json") ? await response.json() : null;
    } catch {
      this._wait("unsent");
      return;
    }
    if (response.ok && data) {
      this.delay = 0;
      if (this.state !== "saving") this._tell("saving");
      this.drop(entry);
      this.onSaved(entry, data);
    } else if (response.status === 403 && (!data || data.error === "login" || data.error === "other")) {
      // Logged out, or logged in anew elsewhere, which changes the token of the forms.
      if (await this._freshToken()) return;
      this._wait("login");
    } else if (data && response.status < 500) {
      this.delay = 0;
      this.drop(entry);
      this.onRefused(entry, data);
    } else {
      this._wait("unsent");
    }
  }

  // True: there is another token now, and it is worth trying at once.
  async _freshToken() {
    try {
      const page = await (await fetch(this.tokenPage, { redirect: "manual", cache: "no-store" })).text();
      const token = new DOMParser().parseFromString(page, "text/html")
        .querySelector("#judge [name=csrfmiddlewaretoken], form [name=csrfmiddlewaretoken]")?.value;
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
    this.delay = Math.min(30_000, this.delay * 2 || 1_000);
    this.timer = setTimeout(() => { this.timer = null; this.pump(); }, this.delay);
    this._tell(state);
  }

  _tell(state) {
    this.state = state;
    this.onState(state, this.entries.length);
  }

  _keep(entry) {
    try { localStorage.setItem(this.prefix + entry.place, JSON.stringify(entry)); } catch { /* no storage */ }
  }
}
