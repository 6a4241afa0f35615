// Vault: what takes long is read when a button asks for it.
import { load, Refused } from "./page.js";

for (const button of document.querySelectorAll("button[data-ask]")) {
  const place = document.getElementById(button.dataset.ask);
  button.addEventListener("click", async () => {
    button.disabled = true;
    place.textContent = button.dataset.busy;
    place.setAttribute("aria-busy", "true");
    try {
      await load(place, `/page/private/vault/${button.dataset.ask}`);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      place.textContent = error.message;
    } finally {
      place.removeAttribute("aria-busy");
      button.disabled = false;
      button.focus();
    }
  });
}

document.addEventListener("changed", async () => {
  try {
    await load(document.getElementById("overview"), "/page/vault/overview");
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
  }
});
