// The page works without this file; with it, names complete themselves, jobs show their progress, and verdicts need no reload.
"use strict";

const graph = document.body.dataset.graph;
const say = (text) => { document.getElementById("said").textContent = text; };

// Completion: a combobox as the ARIA practices describe it.
class Completion {
  static count = 0;

  constructor(input) {
    this.input = input;
    this.kind = input.dataset.complete;
    this.list = document.createElement("ul");
    this.list.className = "matches";
    this.list.id = `matches-${Completion.count++}`;
    this.list.setAttribute("role", "listbox");
    this.list.setAttribute("aria-label", "Names that match");
    this.list.hidden = true;
    input.after(this.list);
    for (const [name, value] of Object.entries({ role: "combobox", "aria-expanded": "false", "aria-autocomplete": "list", "aria-controls": this.list.id })) {
      input.setAttribute(name, value);
    }
    this.chosen = -1;
    this.asked = 0;
    input.addEventListener("input", () => this.later());
    input.addEventListener("keydown", (event) => this.key(event));
    input.addEventListener("focus", () => {
      clearTimeout(this.leaving); // back before the list was closed: the new one must stay open
      if (!input.value && !input.dataset.go) this.look();
    });
    input.addEventListener("blur", () => { this.leaving = setTimeout(() => this.close(), 150); });
  }

  later() {
    // What is shown, or still on its way, belongs to other letters: arrow and Enter must not choose from it.
    this.asked++;
    this.close();
    this.timer = setTimeout(() => this.look(), 90);
  }

  async look() {
    if (this.input.value.startsWith("?")) return; // a variable, where a form takes one
    const number = ++this.asked;
    const address = `/v1/graphs/${encodeURIComponent(graph)}/${this.kind}?limit=8&q=${encodeURIComponent(this.input.value)}`;
    const answer = await fetch(address);
    if (!answer.ok) return;
    const found = await answer.json();
    if (number === this.asked) this.show(found); // letters typed while the answer was read make it an old one
  }

  show(found) {
    this.chosen = -1;
    this.list.replaceChildren(...found.map((item, i) => {
      const row = document.createElement("li");
      row.id = `${this.list.id}-${i}`;
      row.setAttribute("role", "option");
      row.setAttribute("aria-selected", "false");
      const name = document.createElement("span");
      name.textContent = item.name;
      const facts = document.createElement("span");
      facts.textContent = `${(item.degree ?? item.facts).toLocaleString("en")} facts`;
      row.append(name, facts);
      row.dataset.name = item.name;
      row.addEventListener("pointerdown", (event) => { event.preventDefault(); this.take(item.name); });
      return row;
    }));
    const isOpen = found.length > 0 && document.activeElement === this.input;
    this.list.hidden = !isOpen;
    this.input.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) say(`${found.length} names match`);
  }

  choose(number) {
    const rows = [...this.list.children];
    if (!rows.length) return;
    this.chosen = (number + rows.length) % rows.length;
    rows.forEach((row, i) => row.setAttribute("aria-selected", String(i === this.chosen)));
    rows[this.chosen].scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", rows[this.chosen].id);
  }

  key(event) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (this.list.hidden) this.look();
      else this.choose(event.key === "ArrowDown" ? this.chosen + 1 : Math.max(this.chosen, 0) - 1);
    } else if (event.key === "Enter" && !this.list.hidden && this.chosen >= 0) {
      event.preventDefault();
      this.take(this.list.children[this.chosen].dataset.name);
    } else if (event.key === "Escape") {
      this.close();
    }
  }

  take(name) {
    this.input.value = name;
    this.asked++;
    this.close();
    if (this.input.dataset.go) location.href = this.input.dataset.go + encodeURIComponent(name);
  }

  close() {
    clearTimeout(this.timer);
    this.chosen = -1;
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }
}

// A job's progress, as it comes; at its end the page is loaded again with the result.
function follow(card) {
  const events = new EventSource(`/v1/jobs/${encodeURIComponent(card.dataset.job)}/events`);
  const put = (name, text) => { card.querySelector(`[data-job-${name}]`).textContent = text; };
  let begun = null; // how far it was when first looked at, and when that was
  events.addEventListener("progress", (event) => {
    const job = JSON.parse(event.data);
    put("state", job.cancelling ? "cancelling" : job.state);
    if (!job.total) { // what it says while it chooses its questions is written already, but for its turn in the queue
      if (job.state === "running") put("count", "choosing what to ask");
      return;
    }
    put("count", `${job.done.toLocaleString("en")} of ${job.total.toLocaleString("en")} questions`);
    const bar = card.querySelector("progress");
    if (bar) { bar.max = job.total; bar.value = job.done; }
    begun ??= { at: Date.now(), done: job.done };
    const seconds = (Date.now() - begun.at) / 1000;
    const left = (job.total - job.done) * seconds / (job.done - begun.done);
    if (seconds > 5 && Number.isFinite(left)) put("left", left < 90 ? `about ${Math.ceil(left)} s left` : `about ${Math.round(left / 60).toLocaleString("en")} min left`);
  });
  events.addEventListener("end", () => { events.close(); location.reload(); });
  // The server says no (it was started again and knows no such job): the page loaded again says why.
  events.addEventListener("error", () => { if (events.readyState === EventSource.CLOSED) location.reload(); });
  // Loading again at the end would cut off the answer to a Cancel that is on its way.
  card.querySelectorAll("form").forEach((form) => form.addEventListener("submit", () => events.close()));
}

// Accept and reject without leaving the page.
function decide(form) {
  let before = Promise.resolve(); // clicks count in the order in which they were made, as they were meant then
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const verdict = event.submitter.value;
    const body = new URLSearchParams(new FormData(form, event.submitter));
    before = before.then(() => send(verdict, body));
  });

  async function send(verdict, body) {
    const asked = { method: "POST", body, headers: { Accept: "application/json" } };
    const answer = await fetch(form.action, asked).catch(() => null);
    if (!answer?.ok) { // without script, so that the page says what is wrong
      const given = document.createElement("input");
      Object.assign(given, { type: "hidden", name: "verdict", value: verdict });
      form.append(given);
      form.submit();
      return;
    }
    for (const button of form.querySelectorAll("button")) {
      const isOn = button.dataset.says === verdict;
      button.setAttribute("aria-pressed", String(isOn));
      button.value = isOn ? "" : button.dataset.says;
    }
    const row = form.closest("tr");
    if (row) row.className = verdict;
    say(verdict || "taken back");
  }
}

// Answers by keyboard, with the keys of the page that `gamma complete --review` writes.
const VERDICT_KEYS = {
  a: "[data-says=accepted][aria-pressed=false]",
  r: "[data-says=rejected][aria-pressed=false]",
  u: ".verdict [aria-pressed=true]",
};

function move(step) {
  const rows = [...document.querySelectorAll(".answers tbody tr:has(.acts a)")];
  const now = rows.indexOf(document.activeElement.closest("tr"));
  const next = rows[now < 0 ? 0 : Math.min(Math.max(now + step, 0), rows.length - 1)];
  next?.querySelector(".acts a").focus();
}

// A click that leads to another page is seen at once; what the model has to think about takes a while.
function showWaiting() {
  const line = document.getElementById("busy");
  let later;
  const begin = () => { later = setTimeout(() => { line.hidden = false; say("Computing"); }, 250); };
  const end = () => { clearTimeout(later); line.hidden = true; };
  document.addEventListener("submit", (event) => { if (!event.defaultPrevented) begin(); });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const to = link.getAttribute("href");
    if (to.startsWith("/g/") && !link.hasAttribute("download")) begin();
  });
  window.addEventListener("pageshow", end); // also when one comes back to a page that was kept
}

function switchTheme() {
  const root = document.documentElement;
  const isDark = root.dataset.theme === "dark" || (root.dataset.theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  root.dataset.theme = isDark ? "light" : "dark";
  document.cookie = `theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=strict`;
}

document.querySelectorAll("[data-complete]").forEach((input) => new Completion(input));
document.querySelectorAll("[data-job][data-state=waiting], [data-job][data-state=running]").forEach(follow);
document.querySelectorAll("form.verdict").forEach(decide);
showWaiting();
// Of a picture that is wider than the window the middle is what one came for.
document.querySelectorAll(".picture:not(.shrinks)").forEach((one) => { one.scrollTo((one.scrollWidth - one.clientWidth) / 2, (one.scrollHeight - one.clientHeight) / 2); });
document.querySelector("[data-theme-button]").addEventListener("click", switchTheme);
document.addEventListener("keydown", (event) => {
  const isTyping = /^(input|select|textarea)$/i.test(document.activeElement.tagName);
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const field = document.getElementById("find");
  if (event.key === "/" && field) {
    event.preventDefault();
    field.focus();
  } else if (event.key in { j: 1, k: 1 }) {
    move(event.key === "j" ? 1 : -1);
  } else if (event.key in VERDICT_KEYS) {
    document.activeElement.closest(".answers tr")?.querySelector(VERDICT_KEYS[event.key])?.click();
  }
});
