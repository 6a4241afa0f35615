// What every page shares: the key, requests, forms that send JSON, rows with keys, live changes.

const KEY = "lessons.key";
const PRIVATE = "/page/private/";
const OPEN = "lessons open";
const MAX_KEPT_ALIVE = 20_000; // characters: a browser keeps 64 KiB of requests for pages that were closed

export class Refused extends Error {
  constructor(status, error, hint, field) {
    super(hint ? `${error}: ${hint}` : error);
    this.status = status;
    this.field = field; // of the form that was sent, if it is about one
  }
}

// The key that the command line handed over, good for as long as its server runs; "" without.
export const key = () => localStorage.getItem(KEY) ?? "";

export function element(name, values = {}, ...children) {
  const made = Object.assign(document.createElement(name), values);
  made.append(...children);
  return made;
}

// Ask our own server, with the key if there is one. Throws Refused, and AbortError for an aborted one.
export async function request(address, { method = "GET", body, signal, headers = {} } = {}) {
  const sent = { ...headers };
  const own = key();
  const hint = `open the page from a terminal: ${OPEN}`;
  if (!own && address.startsWith(PRIVATE)) throw new Refused(401, "this needs the page's key", hint);
  if (own) sent.Authorization = `Bearer ${own}`;
  if (body !== undefined) sent["Content-Type"] = "application/json";
  const text = body === undefined ? undefined : JSON.stringify(body);
  // a decision reaches the server although its page is closed in this moment; what can be stopped ends with it
  const keepalive = method !== "GET" && !signal && (text ?? "").length < MAX_KEPT_ALIVE;
  const asked = { method, headers: sent, body: text, signal, keepalive, cache: "no-store" };
  const answer = await fetch(address, asked).catch((error) => {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "the server does not answer", `start it again: ${OPEN}`);
  });
  if (answer.ok) return answer;
  if (answer.status === 401) {
    if (own && key() === own) localStorage.removeItem(KEY); // it was of a server that ended
    throw new Refused(401, own ? "the page's key is no longer good" : "this needs the page's key", hint);
  }
  const said = await answer.json().catch(() => ({ error: `status ${answer.status}` }));
  throw new Refused(answer.status, said.error, said.hint, said.field);
}

// Run a task; what is refused goes to `say`. Return whether it was done.
export async function tried(task, say = notice) {
  try {
    await task();
    return true;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    say(error.message, error);
    return false;
  }
}

// Load a fragment into an element.
export async function load(place, address, options) {
  const answer = await request(address, options);
  place.innerHTML = await answer.text();
}

export function notice(text) {
  document.getElementById("notice").textContent = text;
}

// Load each element with data-load from that address, all at once; where one is refused, say why in it.
export async function loadAll(root = document) {
  await Promise.all([...root.querySelectorAll("[data-load]")].map(
    (place) => tried(() => load(place, place.dataset.load), (text, error) => refuse(place, text, error))));
}

// Without the key, one card says how to get it; the parts that wait for it are empty.
function refuse(place, text, { status }) {
  const title = place.querySelector("h1") ?? "";
  const isFirst = status !== 401 || !document.getElementById("no-key");
  const card = element("div", { className: "panel" }, element("p", { textContent: text }));
  if (status === 401) {
    card.id = "no-key";
    card.append(element("p", { className: "command" }, element("code", { textContent: OPEN }),
      element("button", { type: "button", textContent: "Copy" })));
    card.querySelector("button").dataset.copy = OPEN;
  }
  place.replaceChildren(title, ...(isFirst ? [card] : []));
}

// Return the values of a form by name: lists of lines or of fields, JSON, ticks, texts.
export function valuesOf(form) {
  const values = {};
  for (const field of form.elements) {
    if (!field.name) continue;
    const { dataset } = field;
    if ("item" in dataset) (values[field.name] ??= []).push(...[field.value.trim()].filter(Boolean));
    else if ("lines" in dataset) values[field.name] = field.value.split("\n").map((line) => line.trim()).filter(Boolean);
    else if ("json" in dataset) values[field.name] = JSON.parse(field.value);
    else values[field.name] = field.type === "checkbox" ? field.checked : field.value;
  }
  return values;
}

// Send a form with data-post. HTML that comes back takes the place of the form, or goes into the element
// that data-into names in its row; JSON is said. With data-gone the row is done, with data-again it is back.
async function send(form) {
  const button = form.querySelector("button");
  if (form.dataset.sure && button.dataset.armed === undefined) {
    button.dataset.armed = "";
    button.textContent = form.dataset.sure;
    return;
  }
  if ("busy" in form.dataset) return;
  form.dataset.busy = ""; // a button that were disabled would lose the focus
  const row = form.closest(".row, .panel");
  const say = (text) => (form.querySelector("[role=status]")
    ?? form.appendChild(element("span", { className: "bad small", role: "status" }))).replaceChildren(text);
  await tried(async () => {
    const answer = await request(form.dataset.post, { method: "POST", body: valuesOf(form) });
    if (answer.headers.get("content-type").startsWith("text/html")) {
      const html = await answer.text();
      if (!form.dataset.into) return replace(form, html);
      (row ?? document).querySelector(form.dataset.into).innerHTML = html;
      return undefined;
    }
    const { said, notes = [], undo } = await answer.json();
    notice([said, ...notes].join("; "));
    if (undo) offerUndo(undo);
    if ("gone" in form.dataset) return done(form.closest(".row"));
    if ("again" in form.dataset) return again(valuesOf(form).id);
    const more = form.closest(".more");
    return load(more, more.dataset.src);
  }, say);
  delete form.dataset.busy;
}

// Offer to take back what was just decided, beside the line that says so.
function offerUndo(id) {
  const form = element("form", { className: "act" },
    element("input", { type: "hidden", name: "id", value: id }), element("button", { textContent: "Undo" }));
  Object.assign(form.dataset, { post: "/page/private/review/undo", again: "" });
  document.getElementById("notice").append(" ", form);
}

function replace(form, html) {
  const made = document.createRange().createContextualFragment(html);
  const next = made.querySelector("button");
  form.replaceWith(made);
  next?.focus();
}

function done(row) {
  const next = row.nextElementSibling ?? row.previousElementSibling;
  row.remove();
  next?.querySelector(".title")?.focus();
  document.dispatchEvent(new CustomEvent("done"));
}

// Give the focus to the row of a name. Its id is not that name: the browser itself would go to the element
// whose id a link's fragment names, once the page has loaded, and take the focus from what is in it.
function focusRow(name) {
  document.getElementById(`row-${name}`)?.querySelector(".title")?.focus();
}

// Load the lists again, in which a row is that had gone; it gets the focus.
async function again(name) {
  await refresh();
  focusRow(name);
}

// Open or close the details of a row, one at a time; they are loaded when they are first opened.
async function toggle(title) {
  const row = title.closest(".row");
  const more = row.querySelector(".more");
  for (const other of document.querySelectorAll(".row .more:not([hidden])")) {
    if (other === more) continue;
    other.hidden = true;
    other.parentElement.querySelector(".title").setAttribute("aria-expanded", "false");
  }
  more.hidden = !more.hidden;
  title.setAttribute("aria-expanded", String(!more.hidden));
  if (more.hidden || !more.dataset.src) return;
  await tried(() => load(more, more.dataset.src), (text) => more.replaceChildren(text));
  row.scrollIntoView({ block: "nearest" });
}

async function copy(button) {
  await navigator.clipboard.writeText(button.dataset.copy);
  button.textContent = "Copied";
}

document.addEventListener("submit", (event) => {
  if (!event.target.dataset.post) return;
  event.preventDefault();
  send(event.target);
});

document.addEventListener("click", async (event) => {
  const control = event.target.closest("button, a, summary, input, textarea, label, select, .more");
  const row = event.target.closest(".row");
  if (control?.dataset.copy) await copy(control);
  else if (control?.dataset.next) await next(control);
  else if (control?.matches("[data-open]")) toggle(control.matches(".title") ? control : row.querySelector(".title"));
  else if (!control && row && !String(getSelection())) row.querySelector(".title")?.click();
});

// Put the next rows in the place of their button, and go on from there.
async function next(button) {
  button.disabled = true;
  const part = element("div");
  const first = () => part.querySelector(".title");
  if (!(await tried(() => load(part, button.dataset.next)))) button.disabled = false;
  else {
    const at = first();
    button.parentElement.replaceWith(...part.childNodes);
    at?.focus();
  }
}

// Keys: j and k, or the arrows, go through the rows; a letter is the control that shows it.
const titles = () => [...document.querySelectorAll("main .row .title")].filter((it) => it.checkVisibility());

export function step(by) {
  const all = titles();
  const at = all.indexOf(document.activeElement?.closest(".row")?.querySelector(".title"));
  const to = all[at < 0 ? (by > 0 ? 0 : -1) : at + by];
  to?.focus();
  return Boolean(to);
}

document.addEventListener("keydown", (event) => {
  const { key: pressed, target } = event;
  const types = target.matches("textarea, select, input:not([type=checkbox])") || target.closest("dialog");
  if (types || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const by = { j: 1, k: -1, ArrowDown: target.closest(".row") ? 1 : 0, ArrowUp: target.closest(".row") ? -1 : 0 }[pressed];
  if (by) step(by);
  else {
    const row = target.closest(".row");
    const controls = row ? [...row.querySelectorAll(`[data-key="${CSS.escape(pressed)}"]`)] : [];
    const control = controls.filter((it) => it.checkVisibility()).at(-1); // one of the details first
    if (!control) return;
    if (control.matches("input")) control.focus();
    else control.click();
  }
  event.preventDefault();
});

// Exchange the code in the address for a key. It leaves the address first: a code is good once. A link
// that somebody sends has a code that is not good, or was: a good one is only the server's to make.
async function takeKey() {
  const code = /^#once=([\w-]+)$/.exec(location.hash)?.[1];
  if (!code) return;
  history.replaceState(history.state, "", location.pathname + location.search);
  await tried(async () => {
    const answer = await request("/page/key", { method: "POST", body: { code } });
    localStorage.setItem(KEY, (await answer.json()).key);
  });
}

let changes; // the stream, while this page is looked at: a browser has six connections to a server
// When the index was written that this page shows, in nanoseconds; at first, when it was asked for. The
// server is on this machine, and a file's time may be a tick of the clock behind.
let seen = (performance.timeOrigin - 100) * 1e6;

function listen() {
  if (changes || document.hidden) return;
  changes = new EventSource("/page/live");
  changes.addEventListener("changed", ({ data }) => {
    if (Number(data) <= seen) return;
    seen = Number(data);
    document.dispatchEvent(new CustomEvent("changed", { detail: data }));
  });
  changes.addEventListener("error", () => {
    if (changes?.readyState === EventSource.CLOSED) changes = undefined; // refused: no more tries
  });
}

function stopListening() {
  changes?.close();
  changes = undefined;
}

// Lists with data-live are loaded again after a save, unless somebody is at work in one of their rows.
async function refresh() {
  for (const list of document.querySelectorAll("[data-live]")) {
    const isAtWork = () => list.querySelector(".more:not([hidden])");
    if (isAtWork()) continue;
    await tried(async () => {
      const text = await (await request(list.dataset.load)).text();
      if (isAtWork()) return; // since it was asked for
      const at = document.activeElement?.closest(".row")?.id;
      list.innerHTML = text;
      if (at) document.getElementById(at)?.querySelector(".title").focus();
    }, () => {});
  }
}

document.addEventListener("changed", refresh);
document.addEventListener("done", refresh);
document.addEventListener("visibilitychange", () => (document.hidden ? stopListening() : listen()));
addEventListener("pagehide", stopListening);
addEventListener("pageshow", listen);
addEventListener("hashchange", async () => {
  if (!location.hash.startsWith("#once=")) return;
  await takeKey();
  await loadAll();
});
async function begin() {
  await loadAll();
  if (location.hash) focusRow(location.hash.slice(1)); // that a link names
  document.documentElement.dataset.ready = "";
  listen();
}

await takeKey(); // the other scripts wait for it, and not for what is loaded with it
begin();
