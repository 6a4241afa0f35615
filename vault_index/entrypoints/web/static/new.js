// The form for a lesson: what is typed becomes its frontmatter and its text.

import { request, tried, valuesOf } from "./page.js";

const form = document.getElementById("new");
const said = document.getElementById("said");
let before = valuesOf(form); // as the form came, which `page.js` has loaded
let leaving = false;

// Return the values that are others than before.
function changes() {
  const isSame = (name, value) => JSON.stringify(value) === JSON.stringify(before[name]);
  return Object.fromEntries(Object.entries(valuesOf(form)).filter(([name, value]) => !isSame(name, value)));
}

form.addEventListener("loaded", () => { before = valuesOf(form); }); // again, with a key that came later

form.addEventListener("submit", (event) => {
  event.preventDefault();
  said.textContent = "";
  const { id: lesson, seen } = before;
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
