// What lies on a judging page: one answer, its choices, what is said about it. It knows the page's elements and words, and
// nothing of queues and sending (judge.js, outbox.js). Texts of answers are set as text, never as markup.
class Desk {
  constructor(criteria) {
    this.at = (id) => document.getElementById(id);
    this.say = this.at("phrases").dataset;
    this.criteria = criteria;
    this.form = this.at("judge");
    this.rows = [...this.form.querySelectorAll("[data-criterion]")];
    this.notAttempt = this.at("not_attempt");
    this.flagged = this.at("flagged");
    this.comment = this.at("comment");
    this.form.addEventListener("change", ({ target }) => this._changed(target));
  }

  // --- choices

  said() {
    const chosen = {};
    for (const row of this.notAttempt.checked ? [] : this.rows) {
      const input = row.querySelector("input:checked");
      if (input) chosen[row.dataset.criterion] = input.value;
    }
    const remark = { flagged: this.flagged.checked, comment: this.comment.value.trim() };
    return { chosen, not_attempt: this.notAttempt.checked, ...remark };
  }

  isAs(card) {
    const said = this.said();
    return said.not_attempt === card.not_attempt && said.flagged === card.flagged && said.comment === card.comment
      && (said.not_attempt || this.criteria.every(({ code }) => said.chosen[code] === card.chosen[code]));
  }

  // What is missing is named only after Enter; before that the empty buttons say it.
  missing(isLoud) {
    const open = this.notAttempt.checked ? [] : this.rows.filter((row) => !row.querySelector("input:checked"));
    const names = open.map((row) => row.querySelector("legend").firstChild.textContent.trim()).join(" ");
    this.at("missing").textContent = open.length === 0 ? this.say.ready : isLoud ? `${this.say.missing} ${names}` : "";
    this.rows.forEach((row) => row.classList.toggle("judge-missing", Boolean(isLoud) && open.includes(row)));
    return open;
  }

  choose(input) {
    input.checked = input.type === "checkbox" ? !input.checked : true;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  }

  _changed(target) {
    if (target === this.notAttempt && target.checked) {
      this.form.querySelectorAll("input[type=radio]").forEach((input) => { input.checked = false; });
    } else if (target.type === "radio") {
      this.notAttempt.checked = false;
    }
    if (target !== this.comment) this.missing(false);
  }

  // --- showing

  show(card, { hasBack, isUnsent }) {
    const { at, say } = this;
    this.laid(true);
    this.form.hidden = false;
    at("feedback").hidden = true;
    at("training").hidden = !card.training;
    for (const [id, text] of [["stimulus", card.stimulus], ["answer", card.display || say.empty]]) {
      at(id).textContent = text;
      at(id).lang = card.language;
    }
    at("answer").classList.toggle("text-secondary", !card.display);
    for (const row of this.rows) {
      for (const input of row.querySelectorAll("input")) {
        input.checked = !card.not_attempt && card.chosen[row.dataset.criterion] === input.value;
      }
    }
    this.notAttempt.checked = card.not_attempt;
    this.flagged.checked = card.flagged;
    this.comment.value = card.comment;
    at("remark").open = Boolean(card.comment);
    at("standing").textContent = { done: say.done, withdrawn: say.withdrawn, skipped: say.skipped }[card.state] ?? "";
    at("skip").hidden = card.done || card.state === "skipped";
    at("skip").open = false;
    at("skip_form").reset();
    at("skip_form").action = card.skip_url;
    at("withdraw").hidden = !card.done || isUnsent;
    at("withdraw").action = `${card.url}withdraw/`;
    this.form.elements.version.value = card.version;
    this.form.action = card.url;
    for (const next of document.querySelectorAll("header [name=next]")) next.value = card.url; // another language, the same answer
    at("back").hidden = !hasBack;
    this.missing(false);
    at("answer").focus({ preventScroll: true }); // a screen reader reads it; keys need no focus
    // A window that is low or zoomed in begins with the answer, unless something is said above it.
    const isTold = !at("trouble").hidden || at("told").childElementCount > 0;
    if (innerHeight < 500 && !isTold) at("desk").scrollIntoView();
    else scrollTo(0, 0);
  }

  laid(isLaid) {
    this.at("desk").hidden = !isLaid;
    this.at("waiting").hidden = isLaid;
  }

  nothing(text, { isOver, hasBack }) {
    this.laid(false);
    this.at("waiting_text").textContent = text;
    this.at("waiting_home").hidden = !isOver;
    this.at("back").hidden = !hasBack;
    this.at("waiting").focus();
  }

  progress({ done, total, minutes }) {
    const { at, say } = this;
    at("progress").textContent = `${done} ${say.of} ${total}${minutes ? ` · ${say.minutes.replace("{n}", minutes)}` : ""}`;
    document.title = `${done} ${say.of} ${total}`;
    const share = total ? Math.floor(100 * done / total) : 0;
    const bar = document.querySelector("[role=progressbar]");
    bar.setAttribute("aria-valuenow", share);
    bar.querySelector("rect").setAttribute("width", `${share}%`);
  }

  // Trouble is read out; that each answer was saved is only shown.
  state(state, waiting, wasRefused = false) {
    const { at, say } = this;
    const isTrouble = state !== "saved" && state !== "saving";
    at("saved").textContent = isTrouble || (state === "saved" && wasRefused) ? "" : say[state];
    at("trouble").textContent = isTrouble ? `${say[state]} ${waiting}` : "";
    at("trouble").hidden = !isTrouble;
    at("retry").hidden = state !== "unsent";
    at("login").hidden = state !== "login" && state !== "other";
  }

  // --- what is told

  // `buttons`: label → what it does; by default only to close the message.
  tell(text, { place = "", quote = "", buttons = [[this.say.close, () => {}]] } = {}) {
    this.untell(place);
    const box = this._element("div", { className: "alert alert-warning py-2" });
    box.dataset.place = place;
    box.append(this._element("p", { className: "mb-1", textContent: text }));
    if (quote) box.append(this._element("p", { className: "mb-1 answer", dir: "auto", textContent: quote }));
    for (const [label, press] of buttons) {
      const button = this._element("button", { type: "button", className: "btn btn-outline-secondary me-2 mb-1", textContent: label });
      button.addEventListener("click", () => { box.remove(); press(); });
      box.append(button);
    }
    this.at("told").append(box);
  }

  untell(place) {
    if (place) for (const box of this.at("told").querySelectorAll(`[data-place="${place}"]`)) box.remove();
  }

  inWords({ chosen, not_attempt: isNone }) {
    if (isNone) return this.say.attempt;
    return this.criteria.map(({ code, question }) => `${question} ${this._label(code, chosen[code])}`).join("; ");
  }

  _label(code, value) {
    const { options } = this.criteria.find((one) => one.code === code);
    return options.find((option) => option.value === value)?.label ?? value ?? "–";
  }

  waitForFeedback() {
    this.form.hidden = true;
    this.at("skip").hidden = true;
    this.at("withdraw").hidden = true;
  }

  feedback(feedback, goOn) {
    const { say } = this;
    const box = this.at("feedback");
    box.replaceChildren();
    if (feedback) {
      box.append(this._element("strong", { textContent: feedback.right ? say.right : say.wrong }));
      if (feedback.not_attempt) box.append(this._element("p", { textContent: say.noattempt }));
      if (!feedback.right && !feedback.not_attempt) {
        const list = document.createElement("ul");
        for (const { code, expected } of feedback.rows) {
          const { question } = this.criteria.find((one) => one.code === code);
          list.append(this._element("li", { textContent: `${question} ${this._label(code, expected)}` }));
        }
        box.append(list);
      }
      if (feedback.explanation) box.append(this._element("p", { textContent: feedback.explanation }));
    }
    const button = this._element("button", { type: "button", className: "btn btn-primary btn-lg d-block mt-2", textContent: `${say.on} ` });
    button.append(this._element("kbd", { className: "ms-1", ariaHidden: "true", textContent: "Enter" }));
    button.addEventListener("click", goOn);
    box.append(button);
    box.hidden = false;
    button.focus();
  }

  _element(tag, properties) { return Object.assign(document.createElement(tag), properties); }
}
