// Review: a list of proposals, the card of one, and what a person decides about it.
import { load, notice, Refused, request } from "./page.js";

const AT = "/page/private/review";
const KEYS = "lessons.review.keys";
const at = (id) => document.getElementById(id);
const list = at("list"), card = at("card"), trouble = at("trouble"), dialog = at("dialog");
let current = "";
let limit = 0;
let deciding = false;

const items = () => [...list.querySelectorAll("button[data-id]")];
let linked = location.hash.slice(1); // the proposal that a link named
const place = () => items().findIndex((item) => item.dataset.id === current);

// Run a task; what is refused is said in one line, and false comes back. The line stays until the next
// decision: a save, which loads the card again by itself, takes nothing away that was just said.
async function trying(task, said = trouble) {
  try {
    await task();
    return true;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    said.textContent = error.message;
    said.hidden = false;
    return false;
  }
}

// Show the card of a proposal. One that is shown already stays if it is decided before its card comes
// again: the list that named it is older than that.
async function select(id, { focus = false } = {}) {
  if (focus) trouble.hidden = true; // somebody chose it
  const again = id === current;
  current = id;
  for (const item of items()) {
    if (item.dataset.id === id) item.setAttribute("aria-current", "true");
    else item.removeAttribute("aria-current");
  }
  items()[place()]?.scrollIntoView({ block: "nearest" });
  const shown = await trying(() => load(card, `${AT}/card?id=${encodeURIComponent(id)}`));
  if (!shown && !again) card.replaceChildren();
  else if (shown && focus) at("card-title")?.focus();
}

// Read the list again and show the proposal that is at a place now. With `stay` the card of one that was
// decided elsewhere stays, with a word: another may not come under the hand of somebody about to accept.
async function reload(index = place(), options = {}) {
  const address = limit ? `${AT}/list?limit=${limit}` : `${AT}/list`;
  if (!(await trying(() => load(list, address)))) return;
  if (options.stay && current && place() < 0) {
    trouble.textContent = "this proposal was decided elsewhere meanwhile";
    trouble.hidden = false;
    return;
  }
  await begin(index, options);
}

async function begin(index, options) {
  const all = items();
  const named = items().findIndex((item) => item.dataset.id === linked);
  const kept = place() < 0 ? named : place();
  linked = "";
  if (!all.length) {
    current = "";
    card.replaceChildren();
    return;
  }
  const next = kept >= 0 ? kept : Math.min(Math.max(index, 0), all.length - 1);
  await select(all[next].dataset.id, options);
}

function show(diff) {
  const shown = at("dialog-diff");
  shown.replaceChildren(...diff.split("\n").map((text) => {
    const line = document.createElement("span");
    line.className = text.startsWith("+") ? "line added" : text.startsWith("-") ? "line removed" : "line";
    line.textContent = `${text}\n`;
    return line;
  }));
  shown.hidden = false;
}

// Ask for a confirmation; `act` runs when it comes, and the dialog stays open where that is refused.
function ask({ title, text = "", button, diff, source, act }) {
  at("dialog-title").textContent = title;
  at("dialog-text").textContent = text;
  at("dialog-text").hidden = !text;
  at("confirm").textContent = button;
  at("dialog-diff").hidden = true;
  at("dialog-trouble").hidden = true;
  at("dialog-edit").hidden = source === undefined;
  if (source !== undefined) at("source").value = source;
  if (diff !== undefined) show(diff);
  dialog.onsubmit = async (event) => {
    if (event.submitter?.value !== "yes") return;
    event.preventDefault();
    if (deciding) return;
    deciding = true;
    at("confirm").disabled = true;
    try {
      await act();
    } finally {
      deciding = false;
      at("confirm").disabled = false;
    }
  };
  dialog.showModal();
  if (source !== undefined) at("source").focus();
}

async function decide(name, body) {
  const index = place();
  at("dialog-trouble").hidden = true;
  const done = await trying(async () => {
    const answer = await (await request(`${AT}/${name}`, { method: "POST", body })).json();
    notice([answer.said, ...answer.notes].join("; "));
  }, at("dialog-trouble"));
  if (done) {
    dialog.close();
    await reload(index, { focus: true });
    return;
  }
  // of an edit the text stays in its dialog; else the page shows how things are now, and why
  if (name === "edit") return;
  trouble.textContent = at("dialog-trouble").textContent;
  trouble.hidden = false;
  dialog.close();
  await reload(index);
}

const title = () => at("card-title").textContent;
const commits = () => Boolean(at("commit")?.checked);

const ACTIONS = {
  accept() {
    const category = at("category")?.value ?? "";
    const where = at("category") ? `It becomes a lesson in ${category || "no category"}.` : "The lesson is changed as shown.";
    const text = commits() ? `${where} It is committed.` : where;
    const body = { id: current, category, commit: commits() };
    ask({ title: `Accept “${title()}”?`, text, button: "Accept it", act: () => decide("accept", body) });
  },
  reject() {
    const text = "It goes for good, and nothing like it comes back, however worded.";
    const body = { id: current };
    ask({ title: `Reject “${title()}”?`, text, button: "Reject it", act: () => decide("reject", body) });
  },
  edit: () => trying(async () => {
    const id = current;
    const { source } = await (await request(`${AT}/source?id=${encodeURIComponent(id)}`)).json();
    const act = () => decide("edit", { id, text: at("source").value, seen: source });
    ask({ title: `Edit “${title()}”`, button: "Keep the edit", source, act });
  }),
  merge: () => trying(async () => {
    const id = current;
    const into = at("into").value;
    const address = `${AT}/merge?id=${encodeURIComponent(id)}&into=${encodeURIComponent(into)}`;
    const plan = await (await request(address)).json();
    const body = { id, into: plan.id, seen: plan.before, commit: commits() };
    ask({
      title: `Add it to “${plan.title}”?`, text: [plan.path, ...plan.notes].join("; "),
      button: "Merge it", diff: plan.diff, act: () => decide("merge", body),
    });
  }),
};

function act(name) {
  if (dialog.open || !card.querySelector(`[data-do="${name}"]`)) return;
  trouble.hidden = true;
  ACTIONS[name]();
}

function step(by) {
  const all = items();
  const next = all[Math.min(Math.max(place() + by, 0), all.length - 1)];
  if (next && next.dataset.id !== current) select(next.dataset.id, { focus: true });
}

list.addEventListener("click", (event) => {
  const more = event.target.closest("#more");
  const item = event.target.closest("button[data-id]");
  if (more) {
    limit = Number(more.dataset.limit);
    reload();
  } else if (item) select(item.dataset.id, { focus: true });
});
card.addEventListener("click", (event) => {
  const name = event.target.closest("[data-do]")?.dataset.do;
  if (name) act(name);
});

// The keys that the card names: to another category, and to everything else that is known.
const LOOKS = {
  c: () => at("category")?.focus(),
  t() {
    const details = at("details");
    if (details) details.open = !details.open;
  },
};
const BY_KEY = { a: "accept", e: "edit", m: "merge", r: "reject" };
const keys = at("keys");
keys.checked = localStorage.getItem(KEYS) !== "off";
keys.addEventListener("change", () => localStorage.setItem(KEYS, keys.checked ? "on" : "off"));
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input:not([type=checkbox]), textarea, select");
  if (!keys.checked || typing || dialog.open || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
  else if (event.key in BY_KEY) act(BY_KEY[event.key]);
  else if (event.key in LOOKS) LOOKS[event.key]();
  else return;
  event.preventDefault();
});

// page.js loads the list, before this script runs or after it
function first() {
  list.removeEventListener("loaded", first);
  begin(0);
}
if (items().length) begin(0);
else list.addEventListener("loaded", first);
document.addEventListener("changed", () => { if (!dialog.open) reload(place(), { stay: true }); });
