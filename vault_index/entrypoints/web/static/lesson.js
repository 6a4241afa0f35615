// The page of a lesson: its parts again after a save or a new prompt, and its deletion.

import { element, load, request, tried } from "./page.js";

const place = document.getElementById("lesson");
let isDeleted = false;

async function refresh() {
  if (isDeleted) return;
  const say = (part) => (text, { status }) => (status === 404 ? gone("It was deleted or renamed.")
    : part.replaceChildren(element("p", { className: "warn", textContent: text })));
  const parts = [...document.querySelectorAll("[data-part]")].filter((it) => !it.querySelector(".more:not([hidden])"));
  await Promise.all(parts.map((part) => tried(() => load(part, part.dataset.part), say(part))));
  const title = place.querySelector("h1");
  if (title) document.title = `${title.textContent} · ${document.documentElement.dataset.vault}`;
}

function gone(text) {
  isDeleted = true;
  place.replaceChildren(element("h1", { textContent: text }), element("a", { href: "/lessons", textContent: "To the lessons" }));
}

place.addEventListener("click", async (event) => {
  if (event.target.id !== "delete" || !confirm("Delete this lesson? Git keeps what was committed.")) return;
  const address = `/api/lessons/${place.dataset.id.split("/").map(encodeURIComponent).join("/")}`;
  isDeleted = true; // nothing is asked of a lesson that is about to go
  isDeleted = await tried(() => request(address, { method: "DELETE" }));
  if (isDeleted) gone("It is deleted.");
});

document.addEventListener("changed", refresh);
