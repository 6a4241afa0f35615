// Ctrl-K or Cmd-K finds lessons, pages and commands from anywhere; ? lists the keys.

import { findLessons } from "./find.js";
import { element } from "./page.js";

const KEYS = [
  ["Ctrl+K ⌘K", "find lessons, pages and commands"], ["?", "these keys"], ["/", "search the lessons"],
  ["j k ↓ ↑", "next and previous row"], ["Enter o", "open or close a row"],
  ["a e m r", "a proposal: accept, edit, merge, reject"], ["c", "its category"],
  ["y n", "a prompt: should come, should not"], ["u x", "a lesson: useful, wrong"],
  ["w", "a failure: write a lesson"], ["Esc", "close, or clear the search"],
];
const COMMANDS = [["New lesson", "/new"], ["Dark or light", theme], ["Keys", showKeys]];

const dialog = document.body.appendChild(element("dialog"));

function theme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("lessons.theme", root.dataset.theme);
}

function open(title, ...contents) {
  dialog.setAttribute("aria-label", title);
  dialog.replaceChildren(...contents);
  if (!dialog.open) dialog.showModal();
}

function showKeys() {
  const list = element("dl", { className: "facts" });
  for (const [keys, meaning] of KEYS) {
    const each = keys.split(" ").map((it) => element("kbd", { textContent: it }));
    list.append(element("dt", {}, ...each.flatMap((it) => [it, " "])), element("dd", { textContent: meaning }));
  }
  open("Keys", element("h2", { textContent: "Keys" }), list,
    element("button", { type: "button", textContent: "Close", autofocus: true, onclick: () => dialog.close() }));
}

function choose(option) {
  dialog.close();
  if (typeof option.goes === "string") location.assign(option.goes);
  else option.goes();
}

function showPalette() {
  const pages = [...document.querySelectorAll("nav.pages a")].map((it) => [it.textContent, it.getAttribute("href")]);
  const list = element("ul", { role: "listbox", id: "found", ariaLabel: "Found" });
  const box = element("input", { type: "text", placeholder: "A lesson, a page, a command", autofocus: true,
    role: "combobox", ariaLabel: "Find", ariaExpanded: "true", autocomplete: "off", spellcheck: false });
  box.setAttribute("aria-controls", "found");
  const options = () => [...list.querySelectorAll("[role=option]")];
  const select = (option) => {
    for (const each of options()) each.setAttribute("aria-selected", String(each === option));
    option?.scrollIntoView({ block: "nearest" });
    box.setAttribute("aria-activedescendant", option?.id ?? "");
  };
  const group = (name, found) => found.length ? [element("li", { role: "presentation", className: "group", textContent: name }),
    ...found.map(([text, goes], number) => element("li", { role: "option", id: `found-${name}-${number}`, textContent: text, goes }))] : [];
  const fill = async () => {
    const words = box.value.trim();
    const named = (all) => all.filter(([name]) => name.toLowerCase().includes(words.toLowerCase()));
    const fixed = [...group("Pages", named(pages)), ...group("Commands", named(COMMANDS))];
    list.replaceChildren(...fixed);
    select(options()[0]);
    const found = group("Lessons", await findLessons(words));
    if (words !== box.value.trim()) return;
    list.append(...found);
    if (!list.childElementCount) list.append(element("li", { role: "option", className: "quiet", textContent: "Nothing has these words." }));
    if (!fixed.length) select(options().find((it) => it.goes));
  };
  box.addEventListener("input", fill);
  box.addEventListener("keydown", (event) => {
    const all = options().filter((it) => it.goes);
    const at = all.findIndex((it) => it.getAttribute("aria-selected") === "true");
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) select(all[(at + by + all.length) % all.length]);
    else if (event.key === "Enter" && all[at]) choose(all[at]);
    else return;
    event.preventDefault();
  });
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option?.goes) choose(option);
  });
  open("Find", box, list);
  fill();
}

dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
document.getElementById("find").addEventListener("click", showPalette);
document.addEventListener("keydown", (event) => {
  const types = event.target.matches("input, textarea, select");
  const search = document.getElementById("q");
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") showPalette();
  else if (types || dialog.open || event.ctrlKey || event.metaKey || event.altKey) return;
  else if (event.key === "?") showKeys();
  else if (event.key === "/" && search) search.select();
  else if (event.key === "/") location.assign("/lessons");
  else return;
  event.preventDefault();
});
