// Ctrl-K or Cmd-K finds lessons and pages from anywhere; ? lists the keys.

import { Refused, key, request } from "./page.js";

const KEYS = [
  ["Ctrl K or ⌘ K", "lessons, pages and commands"], ["?", "these keys"],
  ["/ ↓ ↑ Enter Esc", "search: type, move, open, clear"],
  ["j k", "review: next, previous"], ["a e m r", "review: accept, edit, merge, reject"],
];
const COMMANDS = [["/new", "New lesson"], ["#theme", "Dark or light"], ["#keys", "Keys"]];
const MAX_LESSONS = 8;

const dialog = document.createElement("dialog");
dialog.className = "palette";
document.body.append(dialog);
let asking; // aborts the search in flight

function element(name, text = "", values = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  return Object.assign(made, values);
}

function open(title, ...contents) {
  dialog.setAttribute("aria-label", title);
  dialog.replaceChildren(...contents);
  if (!dialog.open) dialog.showModal();
}

function showKeys() {
  const list = element("dl");
  for (const [keys, meaning] of KEYS) {
    const term = element("dt");
    term.append(element("kbd", keys));
    list.append(term, element("dd", meaning));
  }
  const close = element("button", "Close", { type: "button", autofocus: true });
  close.addEventListener("click", () => dialog.close());
  open("Keys", element("h2", "Keys"), list, close);
}

// Return the lessons for some words as [address, title]; none where a later search took over.
async function lessons(words) {
  asking?.abort();
  asking = new AbortController();
  if (!words.trim()) return [];
  const path = key() ? "/page/private/search" : "/page/search";
  const address = `${path}?${new URLSearchParams({ q: words, n: MAX_LESSONS })}`;
  try {
    const text = await (await request(address, { signal: asking.signal })).text();
    const links = new DOMParser().parseFromString(text, "text/html").querySelectorAll("a.title");
    const near = [...links].filter((link) => !link.closest(".far"));
    return near.map((link) => [link.getAttribute("href"), link.textContent.trim()]);
  } catch (error) {
    if (error.name === "AbortError" || error instanceof Refused) return [];
    throw error;
  }
}

function row([address, name]) {
  const item = element("li");
  item.append(element("a", name, { href: address }));
  return item;
}

function showPalette() {
  const pages = [...document.querySelectorAll("header nav a")];
  const fixed = [...pages.map((it) => [it.getAttribute("href"), it.textContent.trim()]), ...COMMANDS];
  const box = element("input", "", { type: "search", placeholder: "A lesson, a page, a command", autofocus: true });
  box.setAttribute("aria-label", "Go to");
  const list = element("ul", "", { className: "rows" });
  const fill = async () => {
    const words = box.value.trim().toLowerCase();
    const named = fixed.filter(([, name]) => name.toLowerCase().includes(words)).map(row);
    list.replaceChildren(...named);
    const found = await lessons(box.value);
    if (words !== box.value.trim().toLowerCase()) return;
    list.replaceChildren(...named, ...found.map(row));
    if (!list.childElementCount) list.append(element("li", "Nothing has these words.", { className: "quiet" }));
  };
  box.addEventListener("input", fill);
  open("Go to", box, list);
  fill();
}

dialog.addEventListener("click", (event) => {
  if (event.target === dialog) dialog.close();
  const command = event.target.closest("a")?.getAttribute("href");
  if (!command?.startsWith("#")) return;
  event.preventDefault();
  dialog.close();
  if (command === "#keys") showKeys();
  else document.getElementById("theme").click();
});

dialog.addEventListener("keydown", (event) => {
  const links = [...dialog.querySelectorAll("li a")];
  const at = links.indexOf(document.activeElement);
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  event.stopPropagation(); // the page behind it has keys of its own
  if (step && links.length) (links[at + step] ?? dialog.querySelector("input"))?.focus();
  else if (event.key === "Enter" && at < 0 && links.length) links[0].click();
  else return;
  event.preventDefault();
});

document.addEventListener("keydown", (event) => {
  const types = event.target.matches("input, textarea, select");
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") showPalette();
  else if (event.key === "?" && !types) showKeys();
  else return;
  event.preventDefault();
});

// On a telephone the navigation is a row that scrolls: the page that is open is in view.
const current = document.querySelector("header nav [aria-current]");
if (current) current.parentElement.scrollLeft = current.offsetLeft - current.parentElement.offsetLeft - 40;
