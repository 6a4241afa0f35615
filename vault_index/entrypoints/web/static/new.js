// The form for a new lesson: its fields become the frontmatter, and a preview shows its text.

import { valuesOf } from "./fields.js";
import { Refused, load, request } from "./page.js";

const form = document.getElementById("new");
const said = document.getElementById("said");

// Send something; where it is refused, say why.
async function tried(work) {
  said.textContent = "";
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    said.textContent = error.message;
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  tried(async () => {
    const answer = await request("/page/private/lesson/new", { method: "POST", body: valuesOf(form) });
    const { id } = await answer.json();
    location.assign(`/lesson/${id.split("/").map(encodeURIComponent).join("/")}`);
  });
});

document.getElementById("preview").addEventListener("click", () => tried(async () => {
  const shown = document.getElementById("previewed");
  const body = { text: form.elements.text.value };
  await load(shown, "/page/private/lesson/preview", { method: "POST", body });
  shown.hidden = false;
}));
