// The page of a lesson: its parts after the first paint, its diffs on demand, its deletion.

import { Refused, load, request } from "./page.js";

const place = document.getElementById("lesson");
const { id, parts } = place.dataset;
const body = document.getElementById("body");
const said = document.getElementById("said");
let isDeleted = false;

// Do something, and say in an element why it was refused; return whether it was done.
async function tried(element, work) {
  try {
    await work();
    return true;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    const why = document.createElement("p");
    why.textContent = error.message;
    element.replaceChildren(why);
    return false;
  }
}

function loadParts() {
  const all = [...document.querySelectorAll("[data-part]")];
  return Promise.all(all.map((part) => tried(part, () => load(part, part.dataset.part))));
}

async function loadBody() {
  await tried(body, () => load(body, `${parts}/body?id=${encodeURIComponent(id)}`));
  const title = body.querySelector("h1");
  if (title) document.title = `${title.textContent} · ${document.documentElement.dataset.vault}`;
}

document.getElementById("delete").addEventListener("click", async () => {
  if (!confirm("Delete this lesson? Git keeps what was committed.")) return;
  const address = `/api/lessons/${id.split("/").map(encodeURIComponent).join("/")}`;
  isDeleted = true; // nothing is asked of a lesson that is about to go
  isDeleted = await tried(said, () => request(address, { method: "DELETE" }));
  if (!isDeleted) return;
  for (const part of place.children) if (part !== said) part.hidden = true;
  said.textContent = "It is deleted.";
});

// A change is loaded when it is first looked at.
document.addEventListener("toggle", (event) => {
  const { patch } = event.target.dataset ?? {};
  if (!patch || !event.target.open) return;
  delete event.target.dataset.patch;
  const shown = event.target.querySelector(".patch-place");
  tried(shown, () => load(shown, patch));
}, true);

// Somebody saved a lesson: show this one as it is.
document.addEventListener("changed", async () => {
  if (isDeleted) return;
  await loadBody();
  await loadParts();
});

await loadParts();
