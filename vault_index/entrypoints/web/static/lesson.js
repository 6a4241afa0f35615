// The page of a lesson: its parts after the first paint, its diffs on demand, its file to edit.

import { changesOf, valuesOf } from "./fields.js";
import { Refused, load, notice, request } from "./page.js";

const place = document.getElementById("lesson");
const { id, parts } = place.dataset;
const mine = "/page/private/lesson";
const body = document.getElementById("body");
const editing = document.getElementById("editing");
let seen = null; // the file as the editor was opened with it; null while nobody edits
let before = {}; // the fields as the editor was opened with them
let saving = false;

const named = (address) => `${address}?id=${encodeURIComponent(id)}`;
const file = () => document.getElementById("file");
const fields = () => document.getElementById("fields");
const isWhole = () => fields().hidden; // the whole file is edited, and not its fields
const changed = () => (isWhole() ? file().value !== seen : Object.keys(changesOf(fields(), before)).length > 0);
const isDirty = () => seen !== null && file() !== null && changed();

function say(element, text) {
  const said = document.createElement("p");
  said.textContent = text;
  element.replaceChildren(said);
}

// Do something, and say in an element why it was refused; return whether it was done.
async function tried(element, work) {
  try {
    await work();
    return true;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    say(element, error.message);
    return false;
  }
}

function loadParts() {
  const all = [...document.querySelectorAll("[data-part]")];
  return Promise.all(all.map((part) => tried(part, () => load(part, part.dataset.part))));
}

async function loadBody() {
  const done = await tried(body, () => load(body, named(`${parts}/body`)));
  const title = body.querySelector("h1");
  if (title) document.title = `${title.textContent} · ${document.documentElement.dataset.vault}`;
  return done;
}

async function startEditing() {
  editing.hidden = false;
  if (!(await tried(editing, () => load(editing, named(`${mine}/edit`))))) return;
  body.hidden = document.getElementById("actions").hidden = true;
  seen = file().value;
  before = valuesOf(fields());
  show(false);
  fields().elements.title.focus();
}

// Show the whole file, or the fields; what was changed in the other is left.
function show(whole) {
  fields().hidden = whole;
  document.getElementById("whole").hidden = !whole;
  document.getElementById("check").hidden = !whole;
  document.getElementById("switch").setAttribute("aria-pressed", whole);
  document.getElementById("state").textContent = "";
  if (!whole) return;
  file().focus();
  file().setSelectionRange(0, 0);
}

async function switchEditor() {
  if (isDirty() && !confirm("Leave your changes unsaved?")) return;
  const whole = !isWhole();
  await startEditing();
  show(whole);
}

function stopEditing() {
  seen = null;
  editing.replaceChildren();
  editing.hidden = true;
  body.hidden = document.getElementById("actions").hidden = false;
  document.getElementById("edit").focus();
}

const send = (name, values) => request(`${mine}/${name}`, { method: "POST", body: values });

async function check() {
  const said = document.getElementById("said");
  await tried(said, async () => {
    const answer = await send("check", { path: file().dataset.path, text: file().value });
    said.innerHTML = await answer.text();
  });
}

// Show what somebody else saved, if anybody did.
async function showChanges() {
  const changed = document.getElementById("changed");
  if (changed === null) return;
  await tried(changed, async () => {
    const answer = await send("changes", { path: file().dataset.path, seen });
    changed.innerHTML = await answer.text();
  });
}

async function save() {
  if (saving || (!isWhole() && !fields().reportValidity())) return;
  saving = true;
  const said = document.getElementById("said");
  try {
    if (isWhole()) await send("save", { path: file().dataset.path, text: file().value, seen });
    else if (changed()) {
      const answer = await send("fields", { id, seen, ...changesOf(fields(), before) });
      const now = (await answer.json()).id;
      if (now !== id) {
        seen = null;
        location.assign(addressOf(now));
        return;
      }
    }
    stopEditing();
    notice("Saved.");
    await loadBody();
    await loadParts();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    say(said, error.message);
    if (error.status === 409) await showChanges();
  } finally {
    saving = false;
  }
}

async function openInEditor() {
  opened.hidden = false;
  await tried(opened, async () => {
    const answer = await (await send("open", { id })).json();
    opened.textContent = answer.opened ? `${answer.path} opens in your editor.`
      : `Your editor needs a terminal. The file is ${answer.path}; type there: ${answer.command}`;
  });
}

// Open the form of a change, or close it.
function toggle(name) {
  for (const form of document.querySelectorAll("[data-change]")) {
    form.hidden = form.dataset.change !== name || !form.hidden;
    if (form.hidden) continue;
    const input = form.querySelector("input");
    if (name === "retitle") input.value = body.querySelector("h1")?.textContent ?? "";
    input.select();
  }
}

const opened = document.getElementById("opened");
const addressOf = (lesson) => `/lesson/${lesson.split("/").map(encodeURIComponent).join("/")}`;

document.addEventListener("submit", async (event) => {
  if (event.target === fields()) {
    event.preventDefault();
    return save();
  }
  const { change } = event.target.dataset;
  if (!change) return;
  event.preventDefault();
  const values = Object.fromEntries(new FormData(event.target));
  opened.hidden = false;
  saving = true; // nothing is asked of a lesson that is about to have another id
  const done = await tried(opened, async () => {
    const answer = await (await send(change, { id, ...values })).json();
    opened.hidden = true;
    event.target.hidden = true;
    if (answer.id !== id) return location.assign(addressOf(answer.id)); // the page ends saving
    saving = false;
    return loadBody();
  });
  if (!done) saving = false;
});

// Delete the lesson; the page stays, with a button that takes it back.
async function remove() {
  if (!confirm("Delete this lesson? You can take it back.")) return;
  opened.hidden = false;
  saving = true;
  const done = await tried(opened, async () => {
    const { deletion, title } = await (await send("delete", { id })).json();
    const back = document.createElement("button");
    back.textContent = "Undo";
    back.addEventListener("click", async () => {
      if (await tried(opened, () => send("undo", { deletion }))) location.reload();
    });
    opened.replaceChildren(`“${title}” is deleted. `, back);
    back.focus();
  });
  if (!done) saving = false;
  for (const part of done ? place.children : []) if (part !== opened) part.hidden = true;
}

async function preview() {
  const said = document.getElementById("said");
  const text = isWhole() ? file().value : fields().elements.text.value;
  const values = { path: file().dataset.path, text };
  await tried(said, () => load(said, `${mine}/preview`, { method: "POST", body: values }));
}

const actions = {
  retitle: () => toggle("retitle"),
  move: () => toggle("move"),
  delete: remove,
  preview,
  edit: startEditing,
  open: openInEditor,
  save,
  switch: switchEditor,
  check,
  cancel: () => {
    if (!isDirty() || confirm("Leave your changes unsaved?")) stopEditing();
  },
  "keep-mine": () => {
    seen = document.getElementById("theirs").value;
    document.getElementById("changed").replaceChildren();
    (isWhole() ? file() : fields().elements.text).focus();
  },
  "take-theirs": () => {
    if (!isWhole()) return startEditing();
    seen = file().value = document.getElementById("theirs").value;
    document.getElementById("changed").replaceChildren();
    file().focus();
  },
};

document.addEventListener("click", (event) => {
  const action = actions[event.target.closest("button")?.id];
  if (action) action();
});

document.addEventListener("keydown", (event) => {
  if (seen !== null && (event.ctrlKey || event.metaKey) && event.key === "s") {
    event.preventDefault();
    save();
  }
});

document.addEventListener("input", (event) => {
  if (seen !== null && editing.contains(event.target)) {
    document.getElementById("state").textContent = isDirty() ? "not saved yet" : "";
  }
});

addEventListener("beforeunload", (event) => {
  if (isDirty()) event.preventDefault();
});

// A change is loaded when it is first looked at.
document.addEventListener("toggle", (event) => {
  const { patch } = event.target.dataset ?? {};
  if (!patch || !event.target.open) return;
  delete event.target.dataset.patch;
  const shown = event.target.querySelector(".patch-place");
  tried(shown, () => load(shown, patch));
}, true);

// Somebody saved a lesson: show this one as it is, but not under the hands of whoever edits it.
document.addEventListener("changed", async () => {
  if (saving) return;
  if (seen !== null) {
    await showChanges();
  } else {
    await loadBody();
    await loadParts();
  }
});

await loadParts();
