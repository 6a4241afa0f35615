// Documents: the list follows what is typed; a document loads its lessons when it is opened.
import { load, Refused, request } from "./page.js";

const field = document.getElementById("name");
const list = document.getElementById("documents");
const trouble = document.getElementById("trouble");
let asked = null;
let limit = 0;

async function show() {
  asked?.abort();
  const own = (asked = new AbortController());
  const name = field.value.trim();
  history.replaceState(null, "", name ? `?name=${encodeURIComponent(name)}` : location.pathname);
  const more = limit ? `&limit=${limit}` : "";
  const address = `/page/documents/list?name=${encodeURIComponent(name)}${more}`;
  try {
    const text = await (await request(address, { signal: own.signal })).text();
    if (own.signal.aborted) return;
    // now, not before the request: a document opened in the meantime stays open
    const open = new Set([...list.querySelectorAll("details[open]")].map((each) => each.dataset.path));
    list.innerHTML = text;
    trouble.hidden = true;
    for (const each of list.querySelectorAll("details")) each.open = open.has(each.dataset.path);
  } catch (error) {
    if (own.signal.aborted) return;
    if (!(error instanceof Refused)) throw error;
    trouble.textContent = error.message;
    trouble.hidden = false;
  }
}

field.addEventListener("input", () => { limit = 0; show(); });
document.addEventListener("changed", show);
list.addEventListener("click", (event) => {
  if (event.target.id !== "more") return;
  limit = Number(event.target.dataset.limit);
  show();
});
// "toggle" does not bubble
list.addEventListener("toggle", async (event) => {
  const parts = event.target.querySelector(".parts");
  if (!event.target.open || parts.dataset.loaded) return;
  parts.dataset.loaded = "yes";
  try {
    await load(parts, `/page/documents/contents?path=${encodeURIComponent(event.target.dataset.path)}`);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    delete parts.dataset.loaded;
    parts.textContent = error.message;
  }
}, true);
