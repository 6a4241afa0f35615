// The form for a lesson: what is typed becomes its frontmatter and its text.

import { element, request, tried, valuesOf } from "./page.js";

const form = document.getElementById("new");
const said = document.getElementById("said");
let leaving = false;

// Return the values that the form came with, whatever was typed since.
const before = () => valuesOf(element("form", { innerHTML: form.innerHTML }));

// Return the values that are others than before.
function changes() {
  const came = before();
  const isSame = (name, value) => JSON.stringify(value) === JSON.stringify(came[name]);
  return Object.fromEntries(Object.entries(valuesOf(form)).filter(([name, value]) => !isSame(name, value)));
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  said.textContent = "";
  const { id: lesson, seen } = before();
  const body = lesson ? { ...changes(), id: lesson, seen } : valuesOf(form);
  tried(async () => {
    const { id } = await (await request("/page/private/lesson/form", { method: "POST", body })).json();
    leaving = true;
    location.assign(`/lesson/${id.split("/").map(encodeURIComponent).join("/")}`);
  }, (text) => { said.textContent = text; });
});

addEventListener("beforeunload", (event) => {
  if (!leaving && Object.keys(changes()).length) event.preventDefault();
});
