// The form for a lesson: what is typed becomes its frontmatter and its text.

import { request, tried, valuesOf } from "./page.js";

const form = document.getElementById("new");
const said = document.getElementById("said");
let saving = false; // until the page of the lesson is there

// Return the values that the form came with, whatever was typed since.
function before() {
  const came = form.cloneNode(true);
  came.reset();
  return valuesOf(came);
}

// Return the values that are others than before.
function changes() {
  const came = before();
  const isSame = (name, value) => JSON.stringify(value) === JSON.stringify(came[name]);
  return Object.fromEntries(Object.entries(valuesOf(form)).filter(([name, value]) => !isSame(name, value)));
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (saving) return;
  saving = true;
  said.textContent = "";
  form.after(said);
  const { id: lesson, seen } = before();
  const body = lesson ? { ...changes(), id: lesson, seen } : valuesOf(form);
  tried(async () => {
    const { id } = await (await request("/page/private/lesson/form", { method: "POST", body })).json();
    location.assign(`/lesson/${id.split("/").map(encodeURIComponent).join("/")}`);
  }, (text, { field }) => {
    refuse(text, form.elements[field]);
    saving = false;
  });
});

// Say why the form is refused, at the field that it is about or, without one, below the form.
function refuse(text, field) {
  const first = field instanceof RadioNodeList ? field[0] : field;
  first?.closest("details")?.setAttribute("open", "");
  if (first) (first.closest("label, fieldset")).append(said);
  else form.after(said);
  for (const other of form.querySelectorAll("[aria-invalid]")) other.removeAttribute("aria-invalid");
  first?.setAttribute("aria-invalid", "true");
  first?.setAttribute("aria-describedby", said.id);
  said.textContent = text;
  first?.focus();
}

addEventListener("beforeunload", (event) => {
  if (!saving && Object.keys(changes()).length) event.preventDefault();
});
// The back button leads to the file as it was saved.
addEventListener("pageshow", (event) => event.persisted && location.reload());
