// Hits as one types. What is asked for is the address; the last answer asked for is the one shown.

import { Refused, key, notice, request } from "./page.js";

const WAIT_MS = 30; // after a key, while the one before is asked for: two letters are asked for once
const form = document.getElementById("search");
const box = document.getElementById("q");
const results = document.getElementById("results");
const tree = document.getElementById("tree");
let latest = 0;
let asking; // aborts the request in flight; undefined without one
let waiting;
let more = ""; // how many hits, once there shall be more

function asked() {
  const kept = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    if (value && !(name === "kind" && value === "lessons")) kept.append(name, value);
  }
  if (more) kept.append("n", more);
  return kept.toString();
}

// Ask for a fragment; undefined where a later question took its place. Throws Refused.
async function ask(words) {
  const number = ++latest;
  asking?.abort();
  asking = new AbortController();
  const path = key() ? "/page/private/search" : "/page/search";
  try {
    const answer = await request(`${path}?${words}`, { signal: asking.signal });
    const text = await answer.text();
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
    const text = await ask(asked());
    if (text !== undefined) put(results, text);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    const line = document.createElement("p");
    line.className = "warn";
    line.textContent = error.message;
    results.replaceChildren(line);
  }
  const place = results.querySelector("[data-said]");
  const line = place?.dataset.said ?? "";
  const said = document.getElementById("said");
  said.classList.toggle("unseen", Boolean(place?.textContent.trim())); // the hits say it themselves
  if (said.textContent !== line) said.textContent = line;
}

// Replace contents; what had the focus has it afterwards, if it is still there.
function put(element, text) {
  const own = element.contains(document.activeElement) ? document.activeElement : null;
  const same = own?.href ? `a[href="${CSS.escape(own.getAttribute("href"))}"]`
    : own?.value ? `[value="${CSS.escape(own.value)}"]` : "";
  element.innerHTML = text;
  if (same) element.querySelector(same)?.focus();
}

function keepAddress(step) {
  const words = asked();
  history[step](null, "", words ? `/search?${words}` : "/search");
  document.title = `${box.value.trim() ? `${box.value.trim().slice(0, 60)} - Search` : "Search"} · ${document.documentElement.dataset.vault}`;
}

function fill() {
  const kept = new URLSearchParams(location.search);
  box.value = kept.get("q") ?? "";
  more = kept.get("n") ?? "";
  for (const choice of form.elements) {
    if (choice.type === "checkbox") choice.checked = kept.getAll("c").includes(choice.value);
    if (choice.type === "radio") choice.checked = choice.value === (kept.get("kind") ?? "lessons");
  }
}

function typed() {
  more = "";
  keepAddress("replaceState");
  clearTimeout(waiting);
  if (asking) waiting = setTimeout(show, WAIT_MS);
  else show();
}

function chosen() {
  more = "";
  keepAddress("pushState");
  show();
}

function move(step) {
  const links = [...results.querySelectorAll("a.title")].filter((link) => link.checkVisibility());
  const next = links.indexOf(document.activeElement) + step;
  (links[Math.min(next, links.length - 1)] ?? box).focus();
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const at = event.target;
  const isHit = at.matches("a.title");
  const types = at.matches("textarea, select, input:not([type=radio], [type=checkbox])");
  if (event.key === "/" && !types) box.select();
  else if (event.key === "Escape" && (at === box || isHit || at === document.body)) {
    box.value = "";
    typed();
    box.focus();
  } else if (event.key === "ArrowDown" && (at === box || isHit)) move(1);
  else if (event.key === "ArrowUp" && isHit) move(-1);
  else return;
  event.preventDefault();
}

async function followed() {
  await show();
  const answer = await request(`/page/search/tree?${asked()}`);
  put(tree, await answer.text());
}

box.addEventListener("input", typed);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  show();
});
form.addEventListener("change", (event) => event.target !== box && chosen());
tree.addEventListener("change", chosen);
results.addEventListener("click", async (event) => {
  const link = event.target.closest("a.more");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const count = results.querySelectorAll("a.title").length;
  more = new URL(link.href).searchParams.get("n") ?? "";
  keepAddress("replaceState");
  await show();
  results.querySelectorAll("a.title")[count]?.focus();
});
document.addEventListener("keydown", pressed);
document.addEventListener("changed", followed);
addEventListener("popstate", () => {
  fill();
  show();
});
more = new URLSearchParams(location.search).get("n") ?? "";
if (key()) show(); // with withheld lessons, and the user's own skills
