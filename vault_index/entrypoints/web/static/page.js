// What every page shares: the key, requests, notices, the scheme, and live changes.

const KEY = "lessons.key";
const THEME = "lessons.theme";
const PRIVATE = "/page/private/";
const OPEN = "open the page from a terminal: lessons serve --open";

export class Refused extends Error {
  constructor(status, error, hint) {
    super(hint ? `${error}: ${hint}` : error);
    this.status = status;
  }
}

// The key that the command line handed over, good for as long as its server runs; "" without.
export const key = () => localStorage.getItem(KEY) ?? "";

// Ask our own server, with the key if there is one. Throws Refused, and AbortError for an aborted one.
export async function request(address, { method = "GET", body, signal, headers = {} } = {}) {
  const sent = { ...headers };
  const own = key();
  if (!own && address.startsWith(PRIVATE)) throw new Refused(401, "this needs the page's key", OPEN);
  if (own) sent.Authorization = `Bearer ${own}`;
  if (body !== undefined) sent["Content-Type"] = "application/json";
  const text = body === undefined ? undefined : JSON.stringify(body);
  const asked = { method, headers: sent, body: text, signal, cache: "no-store" };
  const answer = await fetch(address, asked).catch((error) => {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "the server does not answer", "start it again: lessons serve --open");
  });
  if (answer.ok) return answer;
  if (answer.status === 401) {
    if (own && key() === own) localStorage.removeItem(KEY); // it was of a server that ended
    throw new Refused(401, own ? "the page's key is no longer good" : "this needs the page's key", OPEN);
  }
  const said = await answer.json().catch(() => ({ error: `status ${answer.status}` }));
  throw new Refused(answer.status, said.error, said.hint);
}

// Load a fragment into an element.
export async function load(element, address, options) {
  const answer = await request(address, options);
  element.innerHTML = await answer.text();
  element.dispatchEvent(new CustomEvent("loaded", { bubbles: true }));
}

export function notice(text) {
  document.getElementById("notice").textContent = text;
}

// Load each element with data-load from that address, all at once.
export async function loadAll(root = document) {
  await Promise.all([...root.querySelectorAll("[data-load]")].map(loadOrSay));
}

// Load an element; where it is refused, say why in its place.
async function loadOrSay(element) {
  try {
    await load(element, element.dataset.load);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    const said = document.createElement("p");
    said.textContent = error.message;
    element.replaceChildren(said);
  }
}

// Exchange the code in the address for a key. It leaves the address first: a code is good once. A link
// that somebody sends has a code that is not good, or was: a good one is only the server's to make.
async function takeKey() {
  const code = /^#once=([\w-]+)$/.exec(location.hash)?.[1];
  if (!code) return;
  history.replaceState(history.state, "", location.pathname + location.search);
  try {
    const answer = await request("/page/key", { method: "POST", body: { code } });
    localStorage.setItem(KEY, (await answer.json()).key);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    notice(error.message);
  }
}

function takeTheme() {
  document.getElementById("theme").addEventListener("click", () => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
    const next = now === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    localStorage.setItem(THEME, next);
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

takeTheme();
document.addEventListener("visibilitychange", () => (document.hidden ? stopListening() : listen()));
addEventListener("pagehide", stopListening);
addEventListener("pageshow", listen);
addEventListener("hashchange", async () => {
  if (!location.hash.startsWith("#once=")) return;
  await takeKey();
  await loadAll();
});
await takeKey();
await loadAll();
document.documentElement.dataset.ready = "";
listen();
