// The conversation: sent, streamed, kept in this browser. Text of models is text until its end, when
// the server sends it as HTML that it built itself.
import { Refused, element, notice, request } from "./page.js";

const STORE = "lessons.ask";
const TYPED = "lessons.ask.typed"; // and not sent: it is there after a reload, or the way back
const MAX_CONVERSATIONS = 30;
const MAX_EXCHANGES = 50; // of a conversation
const MAX_CHARS = 2_000_000; // a browser keeps some five million for a server

const at = (id) => document.getElementById(id);
const [question, exchanges, status] = [at("question"), at("exchanges"), at("status")];
let current = ""; // id of the conversation that is shown; "" for one that has not begun
let asking = null; // the AbortController of the question under way

function kept() {
  try {
    const value = JSON.parse(localStorage.getItem(STORE));
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}

// Change what is kept; the oldest goes where there is no room. Another tab may have changed it, too.
function change(by) {
  let conversations = by(kept()).slice(0, MAX_CONVERSATIONS);
  for (const each of conversations) each.exchanges = each.exchanges.slice(-MAX_EXCHANGES);
  for (;;) {
    const text = JSON.stringify(conversations);
    try {
      if (text.length > MAX_CHARS) throw new DOMException("too much", "QuotaExceededError");
      localStorage.setItem(STORE, text);
      return;
    } catch (error) {
      if (error.name !== "QuotaExceededError" || !conversations.length) throw error;
      const last = conversations.at(-1);
      if (last.exchanges.length > 1) last.exchanges.shift();
      else conversations = conversations.slice(0, -1);
    }
  }
}

function keep(exchange, session) {
  change((conversations) => {
    const found = conversations.find((each) => each.id === current);
    const now = found ?? { id: crypto.getRandomValues(new Uint32Array(2)).join("-"),
      name: exchange.question.slice(0, 60), exchanges: [] };
    current = now.id;
    now.session = session || now.session || "";
    now.exchanges.push(exchange);
    return [now, ...conversations.filter((each) => each.id !== now.id)];
  });
  list();
}

function list() {
  const conversations = kept();
  at("conversations").replaceChildren(...conversations.map((each) => {
    const pick = element("button", { type: "button", textContent: each.name, title: each.name,
      onclick: () => { show(each.id); question.focus(); } });
    if (each.id === current) pick.setAttribute("aria-current", "true");
    return element("li", {}, pick);
  }));
  at("delete").hidden = !current;
  at("suggested").hidden = exchanges.childElementCount > 0;
}

function show(id) {
  asking?.abort();
  const conversation = kept().find((each) => each.id === id);
  current = conversation?.id ?? "";
  exchanges.replaceChildren();
  for (const each of conversation?.exchanges ?? []) shown(each.question).innerHTML = each.html;
  status.textContent = "";
  list();
}

// Add an exchange to the page; return the element for its answer.
function shown(asked) {
  const answer = element("div", { className: "answer" });
  exchanges.append(element("article", { className: "exchange" }, element("h2", { textContent: asked }), answer));
  return answer;
}

const line = (text, kind = "trouble bad") => element("p", { className: kind, textContent: text });

async function* eventsOf(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    const parts = (rest + (value ?? "")).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      if (part.startsWith(":")) continue; // the model is silent
      const [name, data] = part.split("\n");
      yield [name.slice("event: ".length), JSON.parse(data.slice("data: ".length))];
    }
    if (done) return;
  }
}

const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

function searching({ query, kind, place, category }) {
  const where = place || category;
  return `Searching the ${kind} for “${query}”${where ? ` in ${where}` : ""}…`;
}

// Change the page; who sees its end goes on seeing it.
function following(change) {
  const isSeen = at("ask").getBoundingClientRect().top < innerHeight;
  change();
  if (isSeen) at("ask").scrollIntoView({ block: "nearest" });
}

async function receive(body, answer, signal) {
  const written = answer.appendChild(element("div", { className: "written said" }));
  const options = { method: "POST", body, signal, headers: { Accept: "text/event-stream" } };
  for await (const [name, data] of eventsOf(await request("/page/private/ask", options))) {
    if (name === "search") status.textContent = searching(data.search);
    if (name === "passages") status.textContent = `${counted(data.count, "passage")}; waiting for the answer…`;
    if (name === "piece") {
      if (!written.firstChild) status.textContent = "Writing…";
      following(() => written.append(data.text));
    }
    if (name === "error") throw new Refused(data.status, data.error, data.hint);
    if (name === "done") {
      answer.innerHTML = data.html;
      status.textContent = data.sources ? `Answered, with ${counted(data.sources, "source")}` : "Done";
      return data.session_id;
    }
  }
  throw new Refused(0, "the answer broke off", "ask again");
}

async function ask(text) {
  const answer = shown(text);
  at("ask").scrollIntoView({ block: "nearest" });
  const session = kept().find((each) => each.id === current)?.session ?? "";
  const mine = (asking = new AbortController());
  busy(true);
  status.textContent = "Asking…";
  let next = "";
  try {
    next = await receive({ query: text, session_id: session }, answer, mine.signal);
  } catch (error) {
    if (mine.signal.aborted) answer.append(line("Stopped.", "quiet"));
    else if (error instanceof Refused) answer.append(line(error.message));
    else if (error instanceof TypeError) // what fetch throws
      answer.append(line("the server does not answer: start it again: lessons open"));
    else throw error;
    status.textContent = "";
  } finally {
    if (asking === mine) {
      asking = null;
      busy(false);
    }
  }
  if (answer.isConnected) keep({ question: text, html: answer.innerHTML }, next);
}

function busy(is) {
  at("stop").hidden = !is;
  at("ask").querySelector("[type=submit]").disabled = is;
  at("suggested").hidden = exchanges.childElementCount > 0;
}

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = question.value.trim();
  if (!text || asking) return;
  question.value = "";
  ask(text);
});
question.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  at("ask").requestSubmit();
});
at("stop").addEventListener("click", () => {
  asking?.abort();
  question.focus();
});
// A suggestion is what a lesson says: it waits in the box until its reader sends it.
at("suggested").addEventListener("click", (event) => {
  const asked = event.target.closest("[data-question]")?.dataset.question;
  if (!asked) return;
  question.value = asked;
  question.focus();
});
exchanges.addEventListener("click", (event) => {
  const number = event.target.closest("[data-cited]")?.dataset.cited;
  const source = number && event.target.closest(".exchange").querySelector(`[data-source="${number}"]`);
  if (!source) return;
  source.open = true;
  source.querySelector("summary").focus();
});
at("begin").addEventListener("click", () => {
  show("");
  question.focus();
});
at("delete").addEventListener("click", () => {
  change((conversations) => conversations.filter((each) => each.id !== current));
  show("");
  question.focus();
  notice("The conversation is deleted.");
});
addEventListener("storage", (event) => {
  if (event.key === STORE) list();
});

addEventListener("pagehide", () => sessionStorage.setItem(TYPED, question.value));

question.value ||= sessionStorage.getItem(TYPED) ?? "";
show(kept()[0]?.id ?? "");
