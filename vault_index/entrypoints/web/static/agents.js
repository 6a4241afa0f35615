// The page of agents: its filter, more records, and what people teach about them.

import { Refused, load, notice, request } from "./page.js";

const list = document.getElementById("list");

document.getElementById("filter")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const values = [...new FormData(event.target)].filter(([, value]) => value.trim());
  location.assign(`/agents?${new URLSearchParams(values)}`);
});

// Put the next records in the place of their button, and go on from there.
async function more(button) {
  button.disabled = true;
  const part = document.createElement("div");
  await load(part, button.dataset.more);
  button.parentElement.replaceWith(...part.childNodes);
}

// Have the server write a mark, and show what came of it in its place.
async function write(place, values) {
  const { lesson, kind, session, key, typed } = place.dataset;
  const body = { lesson, kind, session, key, prompt: typed, ...values };
  const answer = await request("/page/private/agents/teach", { method: "POST", body });
  const part = document.createElement("div");
  part.innerHTML = await answer.text();
  const next = part.querySelector(".mark");
  const said = part.querySelector("[data-said]");
  place.replaceWith(next);
  next.querySelector(".said").append(...said.childNodes);
  next.querySelector("button").focus();
}

function ask(place) {
  const form = place.querySelector("form");
  form.hidden = false;
  form.querySelector("input").focus();
}

// Do something of a mark's; where it is refused, say why, and let another wording be typed.
async function attempt(place, action) {
  const buttons = place.querySelectorAll("button");
  for (const button of buttons) button.disabled = true;
  place.querySelector(".said").textContent = "Writing…";
  try {
    await action();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    place.querySelector(".said").textContent = error.message;
    if (error.status === 422 && place.querySelector("form input")) ask(place);
  } finally {
    for (const button of buttons) button.disabled = false;
  }
}

// Say whether a lesson was useful.
async function say(button) {
  const place = button.closest(".useful");
  const said = place.querySelector("[role=status]");
  try {
    const body = { lesson: place.dataset.lesson, word: button.dataset.say };
    const answer = await request("/page/private/agents/useful", { method: "POST", body });
    said.innerHTML = await answer.text();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    said.textContent = error.message;
  }
}

list.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  const place = button.closest(".mark");
  if (button.dataset.more) {
    try {
      await more(button);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      button.disabled = false;
      notice(error.message);
    }
  } else if (button.dataset.say) await say(button);
  else if (button.dataset.do === "type") ask(place);
  else if (button.dataset.do === "mark") await attempt(place, () => write(place, {}));
  else if (button.dataset.do === "undo") await attempt(place, () => write(place, { undo: true }));
});

list.addEventListener("submit", async (event) => {
  event.preventDefault();
  const place = event.target.closest(".mark");
  const values = Object.fromEntries(new FormData(event.target));
  await attempt(place, () => write(place, values));
});

// A link may name a prompt by its hash.
const key = location.hash.slice(1);
const named = key && [...list.querySelectorAll("[data-key]")].find((it) => it.dataset.key === key);
if (named) {
  named.classList.add("named");
  named.scrollIntoView({ block: "center" });
  named.focus();
}
