// Hits as one types. What is asked for is the address; the last answer asked for is the one shown.

import { Refused, element, key, notice, request, step } from "./page.js";

const WAIT_MS = 30; // after a key, while the one before is asked for: two letters are asked for once
const box = document.getElementById("q");
const results = document.getElementById("results");
let latest = 0;
let asking; // aborts the request in flight; undefined without one
let waiting;

// Return the words of the address, with some of its values replaced.
function asked(other = {}) {
  const now = new URLSearchParams(location.search);
  const all = { q: box.value.trim(), c: now.get("c") ?? "", ...other };
  return new URLSearchParams(Object.entries(all).filter(([, value]) => value)).toString();
}

const addressOf = (words) => (words ? `/lessons?${words}` : "/lessons");

// Ask for the hits; undefined where a later question took its place. Throws Refused.
async function ask(words) {
  const number = ++latest;
  asking?.abort();
  asking = new AbortController();
  const path = key() ? "/page/private/search" : "/page/search";
  try {
    const text = await (await request(`${path}?${words}`, { signal: asking.signal })).text();
    return number === latest ? text : undefined;
  } catch (error) {
    if (error.name === "AbortError" || number !== latest) return undefined;
    if (error.status !== 401) throw error;
    notice(error.message); // and what everybody may see
    return ask(words);
  } finally {
    if (number === latest) asking = undefined;
  }
}

async function show() {
  clearTimeout(waiting);
  try {
    const text = await ask(asked({ n: new URLSearchParams(location.search).get("n") }));
    if (text !== undefined) put(text);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    results.replaceChildren(element("p", { className: "warn", textContent: error.message }));
  }
  const line = results.querySelector("[data-said]")?.dataset.said ?? "";
  const said = document.getElementById("said");
  if (said.textContent !== line) said.textContent = line;
}

// Replace the hits; the one that had the focus has it afterwards, if it is still there.
function put(text) {
  const at = results.contains(document.activeElement) && document.activeElement.getAttribute("href");
  results.innerHTML = text;
  if (at) results.querySelector(`a[href="${CSS.escape(at)}"]`)?.focus();
}

function typed() {
  history.replaceState(null, "", addressOf(asked()));
  const title = box.value.trim() ? `${box.value.trim().slice(0, 60)} - Lessons` : "Lessons";
  document.title = `${title} · ${document.documentElement.dataset.vault}`;
  clearTimeout(waiting);
  if (asking) waiting = setTimeout(show, WAIT_MS);
  else show();
}

box.addEventListener("input", typed);
box.form.addEventListener("submit", (event) => {
  event.preventDefault();
  show();
});
document.getElementById("tree").addEventListener("click", (event) => {
  const branch = event.target.closest("a");
  if (branch) branch.href = addressOf(asked({ c: branch.dataset.c }));
});
document.addEventListener("keydown", (event) => {
  const isIn = event.target === box || results.contains(event.target) || event.target === document.body;
  if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey || !isIn) return;
  if (event.key === "Escape" && (box.value || event.target !== box)) {
    box.value = "";
    typed();
    box.focus();
  } else if (event.key === "ArrowDown" && event.target === box) step(1);
  else if (event.key === "ArrowUp" && event.target.closest(".row") === results.querySelector(".row")) box.focus();
  else return;
  event.preventDefault();
}, true);
document.addEventListener("changed", show);
const answered = new URLSearchParams(location.search).get("q") ?? "";
if (box.value.trim() !== answered.trim()) typed(); // before this script ran
else if (key()) show(); // with withheld lessons, and the user's own skills
