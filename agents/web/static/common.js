// What every page has: questions before something is deleted, copying, and opening all parts at once.
"use strict";

const csrf = document.querySelector("meta[name=csrf]").content;

async function post(where, body) {
  const answer = await fetch(where, {
    method: "POST",
    headers: { "content-type": "application/json", "x-csrf-token": csrf },
    body: JSON.stringify(body || {}),
  });
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) {
    const detail = said.error || (said.detail && JSON.stringify(said.detail)) || answer.statusText;
    throw new Error([detail, said.remedy].filter(Boolean).join(" "));
  }
  return said;
}

document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.copy) {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  }
  if (button.dataset.openAll) {
    const parts = document.getElementById(button.dataset.openAll).querySelectorAll("details.commit");
    const open = [...parts].some((part) => !part.open);
    parts.forEach((part) => { part.open = open; });
    button.textContent = open ? "Close all" : "Open all";
  }
});
