// The page of the journal: its search, more hits, and opening all records of a session.

import { Refused, load, notice } from "./page.js";

const contents = document.getElementById("contents");

document.getElementById("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const values = [...new FormData(event.target)].filter(([, value]) => value.trim());
  location.assign(`/journal?${new URLSearchParams(values)}`);
});

contents.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.open) {
    const open = button.dataset.open === "true";
    for (const record of contents.querySelectorAll(".record > details")) record.open = open;
  } else if (button.dataset.more) {
    button.disabled = true;
    const seen = contents.querySelectorAll(".record").length;
    try {
      await load(contents, button.dataset.more);
      contents.querySelectorAll(".record > details > summary")[seen]?.focus();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      button.disabled = false;
      notice(error.message);
    }
  }
});

contents.querySelector("[aria-current]")?.scrollIntoView({ block: "center" });
