// A chat: events of the server become the conversation; what is typed is sent, and questions are answered in place.
"use strict";

const chat = document.getElementById("chat");
const base = `/chats/${chat.dataset.name}`;
const byId = (id) => document.getElementById(id);
const log = byId("log"), words = byId("words"), send = byId("send"), interrupt = byId("interrupt");
const busy = byId("busy"), asking = byId("ask"), mode = byId("mode"), completion = byId("completion");
let saying = null, known = [], chosen = -1, isOpen = false, isFollowing = true, lastScroll = 0;
const typed = [];
let recalled = 0;

function element(kind, className, text) {
  const made = document.createElement(kind);
  made.className = className;
  made.textContent = text;
  return made;
}

function add(made) {
  saying = null;
  log.append(made);
  follow();
  return made;
}

// The end stays in sight, unless the reader has gone up to read.
function follow() {
  if (isFollowing) log.lastElementChild?.scrollIntoView({ block: "end" });
}

window.addEventListener("scroll", () => {
  const end = log.getBoundingClientRect().bottom;
  if (window.scrollY < lastScroll) isFollowing = end < window.innerHeight + 40;
  else if (end < window.innerHeight + 40) isFollowing = true;
  lastScroll = window.scrollY;
}, { passive: true });

function work(text) {
  busy.querySelector(".text").textContent = text;
  busy.hidden = !text;
}

function setBusy(isBusy) {
  send.disabled = isBusy || !isOpen;
  interrupt.hidden = !isBusy || !isOpen;
  if (!isBusy) {
    work("");
    asking.hidden = true;
  }
}

function step(stage, text) {
  const line = element("p", "step", "");
  if (stage) line.append(element("strong", "", stage), " ");
  line.append(text);
  add(line);
}

const events = {
  preparing: (one) => work(one.text),
  working: (one) => work(`${one.stage}: ${one.text}`),
  done: (one) => step(one.stage, one.text),
  note: (one) => step("", one.text),
  ready: (one) => {
    isOpen = true;
    known = one.words;
    const model = one.model ? `${one.model} at ${one.where}; what it reads of the repository goes there`
      : "no model configured: commands, diagnosis and search work";
    byId("about").textContent = `${one.source} · ${model}${one.entry ? ` · ${one.entry}` : ""}`;
    byId("standing").textContent = one.standing;
    mode.value = one.mode;
    log.classList.toggle("plain", !one.model);
    one.history.forEach(take);
    setBusy(false);
    words.focus({ preventScroll: true });
  },
  begin: (one) => {
    add(element("p", one.said.startsWith("/") ? "you word" : "you", one.said));
    setBusy(true);
    work("at work");
  },
  resuming: (one) => {
    step("", one.text);
    setBusy(true);
    work("at work");
  },
  text: (one) => {
    if (!saying) {
      const made = add(element("p", "said", ""));
      saying = made;
    }
    saying.textContent += one.text;
    follow();
  },
  call: (one) => add(element("p", "call", `→ ${one.name} ${one.arguments === "{}" ? "" : one.arguments}`)),
  result: (one) => { add(element("pre", "outcome", one.text)).tabIndex = 0; },
  answer: (one) => add(element("pre", one.ok ? "answer" : "answer bad", one.text)),
  ask: (one) => {
    byId("ask-what").textContent = one.question;
    asking.hidden = false;
    work("waiting for your answer");
    byId("no").focus();
  },
  answered: (one) => {
    asking.hidden = true;
    add(element("p", "asked", `${one.yes ? "✓ allowed" : "✕ not allowed"}: ${byId("ask-what").textContent}`));
    work("at work");
    words.focus();
  },
  interrupted: () => step("", "Interrupted; the chat goes on."),
  end: (one) => {
    byId("standing").textContent = one.standing;
    mode.value = one.mode;
    saying = null;
    setBusy(false);
  },
  failed: (one) => {
    add(element("p", "alert", `${one.message} ${one.remedy}`)).setAttribute("role", "alert");
    setBusy(false);
  },
  closed: () => {
    isOpen = false;
    setBusy(false);
    send.disabled = true;
    source.close();
    const again = element("button", "", "Open it again");
    again.type = "button";
    again.addEventListener("click", () => window.location.reload());
    add(element("p", "step", "The chat is closed; it is kept. ")).append(again);
  },
};

function take(one) {
  (events[one.event] || (() => {}))(one);
  if (one.event === "call" && one.name === "trace_program") byId("trace").hidden = false;
  if (one.event === "begin" && one.said.startsWith("/trace")) byId("trace").hidden = false;
}

let source = { close() {} };
async function open() {
  try {
    await post(`${base}/open`);
  } catch (problem) {
    events.failed({ message: problem.message, remedy: "" });
    return;
  }
  source = new EventSource(`${base}/events`);
  source.addEventListener("chat", (event) => take(JSON.parse(event.data)));
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) events.closed({ event: "closed" });
    else work("The server does not answer; trying again ...");
  });
  source.addEventListener("open", () => { if (!isOpen || interrupt.hidden) work(isOpen ? "" : "Opening ..."); });
}

async function tell(where, body) {
  try {
    await post(`${base}/${where}`, body);
  } catch (problem) {
    events.failed({ message: problem.message, remedy: "" });
  }
}

function say(text) {
  if (!text.trim() || send.disabled) return;
  typed.push(text);
  recalled = typed.length;
  words.value = "";
  grow();
  offer([]);
  send.disabled = true;
  tell("say", { text });
}

function grow() {
  words.style.height = "auto";
  words.style.height = `${Math.min(words.scrollHeight + 2, 224)}px`;
}

function offer(fitting) {
  chosen = fitting.length ? 0 : -1;
  completion.hidden = !fitting.length;
  completion.replaceChildren(...fitting.map((word, at) => {
    const item = element("li", "", "");
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", String(at === 0));
    item.append(element("code", "", word.name), element("span", "quiet", word.help));
    item.addEventListener("mousedown", (event) => { event.preventDefault(); complete(word.name); });
    return item;
  }));
}

function choose(by) {
  const items = [...completion.children];
  chosen = (chosen + by + items.length) % items.length;
  items.forEach((item, at) => item.setAttribute("aria-selected", String(at === chosen)));
  items[chosen].scrollIntoView({ block: "nearest" });
}

function complete(word) {
  words.value = `${word} `;
  offer([]);
  words.focus();
}

words.addEventListener("input", () => {
  grow();
  const begun = words.value;
  offer(/^\/[a-z]*$/.test(begun) ? known.filter((word) => word.name.startsWith(begun)) : []);
});

words.addEventListener("keydown", (event) => {
  const offered = !completion.hidden;
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    say(words.value);
  } else if (event.key === "Tab" && offered) {
    event.preventDefault();
    complete(completion.children[chosen].querySelector("code").textContent);
  } else if (event.key === "ArrowDown" && offered) {
    event.preventDefault();
    choose(1);
  } else if (event.key === "ArrowUp" && offered) {
    event.preventDefault();
    choose(-1);
  } else if (event.key === "ArrowUp" && !words.value.includes("\n") && recalled > 0) {
    event.preventDefault();
    recalled -= 1;
    words.value = typed[recalled];
  } else if (event.key === "ArrowDown" && recalled < typed.length && !words.value.includes("\n")) {
    recalled += 1;
    words.value = typed[recalled] || "";
  } else if (event.key === "Escape" && offered) {
    event.stopPropagation();
    offer([]);
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !interrupt.hidden) tell("interrupt");
});
byId("say").addEventListener("submit", (event) => { event.preventDefault(); say(words.value); });
interrupt.addEventListener("click", () => tell("interrupt"));
byId("yes").addEventListener("click", () => tell("answer", { yes: true }));
byId("no").addEventListener("click", () => tell("answer", { yes: false }));
byId("close").addEventListener("click", () => tell("close"));
mode.addEventListener("change", () => say(`/mode ${mode.value}`));
document.querySelectorAll("[data-word]").forEach((button) => {
  button.addEventListener("click", () => complete(button.dataset.word));
});
open();
