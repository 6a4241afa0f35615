// The form for a lesson: what is typed becomes its frontmatter and its text.

import { Refused, request } from "./page.js";

const form = document.getElementById("new");
const said = document.getElementById("said");
let before = {}; // the values as the form came, which `page.js` has loaded
let leaving = false;

// Return the values by name: lists of lines, numbers, texts.
function valuesOf() {
  const values = {};
  for (const field of form.elements) {
    if (!field.name) continue;
    const lines = field.value.split("\n").map((line) => line.trim());
    if ("lines" in field.dataset) values[field.name] = lines.filter(Boolean);
    else values[field.name] = "number" in field.dataset ? Number(field.value) : field.value;
  }
  return values;
}

// Return the values that are others than before.
function changes() {
  const isSame = (name, value) => JSON.stringify(value) === JSON.stringify(before[name]);
  return Object.fromEntries(Object.entries(valuesOf()).filter(([name, value]) => !isSame(name, value)));
}

before = valuesOf();
form.addEventListener("loaded", () => { before = valuesOf(); }); // again, with a key that came later

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  said.textContent = "";
  const { id: lesson, seen } = before;
  const body = lesson ? { ...changes(), id: lesson, seen } : valuesOf();
  try {
    const answer = await request("/page/private/lesson/form", { method: "POST", body });
    const { id } = await answer.json();
    leaving = true;
    location.assign(`/lesson/${id.split("/").map(encodeURIComponent).join("/")}`);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    said.textContent = error.message;
  }
});

addEventListener("beforeunload", (event) => {
  if (!leaving && Object.keys(changes()).length) event.preventDefault();
});
