// Find lessons by some words: for the palette, and for fields that name one (data-find).

import { Refused, element, key, notice, request } from "./page.js";

const MAX_LESSONS = 8;
const PATH = "/lesson/";

let asking; // aborts the search in flight

// Return the lessons for some words as [title, address]; none where a later search took over.
export async function findLessons(words) {
  asking?.abort();
  asking = new AbortController();
  if (!words) return [];
  const path = key() ? "/page/private/search" : "/page/search";
  const address = `${path}?${new URLSearchParams({ q: words, n: MAX_LESSONS })}`;
  try {
    const text = await (await request(address, { signal: asking.signal })).text();
    const links = new DOMParser().parseFromString(text, "text/html").querySelectorAll("a.title");
    return [...links].filter((it) => !it.closest(".far")).slice(0, MAX_LESSONS)
      .map((it) => [it.textContent.trim(), it.getAttribute("href")]);
  } catch (error) {
    if (error.name === "AbortError") return [];
    if (!(error instanceof Refused)) throw error;
    if (error.status === 401) return findLessons(words); // what everybody may see
    notice(error.message);
    return [];
  }
}

const list = document.body.appendChild(element("datalist", { id: "lessons-found" }));

document.addEventListener("input", async ({ target }) => {
  if (!target.matches("[data-find]")) return;
  const words = target.value.trim();
  const found = await findLessons(words);
  if (words !== target.value.trim() || !found.length) return;
  list.replaceChildren(...found.map(([title, address]) => element("option",
    { value: decodeURIComponent(address.slice(PATH.length)), label: title, textContent: title })));
});
