// Two small comforts of a task page: the time from first paint to submit by the browser's own clock, and a draft that
// survives a reload. Without this script everything else works the same.
(() => {
  const form = document.getElementById("task");
  const field = form.elements.text;
  const state = document.getElementById("state");
  const key = `luria-draft:${form.dataset.key}:${form.dataset.number}`;
  const onset = performance.now();

  const store = {
    read() { try { return JSON.parse(localStorage.getItem(key)); } catch { return null; } },
    write(value) { try { localStorage.setItem(key, JSON.stringify(value)); } catch { /* private mode: no drafts */ } },
    clear() { try { localStorage.removeItem(key); } catch { /* likewise */ } },
  };

  // A draft of an earlier revision has been sent since, or overtaken by another tab: it is no draft any more.
  const storable = (text) => text.replaceAll("\u0000", ""); // a pasted NUL is the one character nobody can keep
  const draft = store.read();
  if (draft && draft.revision === form.dataset.revision && draft.text !== field.value) {
    field.value = storable(draft.text);
    state.textContent = state.dataset.restored;
  } else if (draft) {
    store.clear();
  }

  field.addEventListener("input", () => {
    if (field.value.includes("\u0000")) field.value = storable(field.value);
    store.write({ revision: form.dataset.revision, text: field.value });
    state.textContent = state.dataset.draft;
  });
  form.addEventListener("submit", () => {
    form.elements.duration.value = Math.round(performance.now() - onset);
  });
})();
