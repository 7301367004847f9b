// Follows a run: what it says is appended, and when it ends the page is loaded anew, with the report.
"use strict";

const list = document.getElementById("progress");
const now = document.querySelector("#now .text");
const output = document.getElementById("output");

function add(line) {
  if (line.kind === "working") {
    now.textContent = `${line.stage}: ${line.text}`;
    return;
  }
  const item = document.createElement("li");
  item.className = line.kind;
  if (line.stage) {
    const stage = document.createElement("strong");
    stage.textContent = line.stage;
    item.append(stage, " ");
  }
  const text = document.createElement("span");
  text.textContent = line.text;
  item.append(text);
  list.append(item);
}

const source = new EventSource(`/runs/${list.dataset.run}/events?after=${list.dataset.seen}`);
source.addEventListener("progress", (event) => add(JSON.parse(event.data)));
source.addEventListener("output", (event) => {
  output.textContent = JSON.parse(event.data).text;
  output.scrollTop = output.scrollHeight;
});
source.addEventListener("end", () => {
  source.close();
  if (list.dataset.going === "yes") window.location.reload();
});
source.addEventListener("error", () => {
  if (source.readyState === EventSource.CLOSED) now.textContent = "The server does not answer; load the page again.";
});
