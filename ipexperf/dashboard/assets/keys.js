// The keyboard: what a page can do without a mouse.
"use strict";

function rowsOf() {
  return [...document.querySelectorAll("table.rows tbody tr")].filter((row) => row.offsetParent !== null);
}

function step(by) {
  const rows = rowsOf();
  if (!rows.length) return;
  const now = rows.findIndex((row) => row.classList.contains("here"));
  const next = Math.min(rows.length - 1, Math.max(0, now + by));
  rows[now]?.classList.remove("here");
  rows[next].classList.add("here");
  rows[next].scrollIntoView({ block: "nearest" });
}

function follow(selector) {
  document.querySelector(selector)?.click();
}

const KEYS = {
  "/": () => document.getElementById("query")?.focus(),
  j: () => step(1),
  k: () => step(-1),
  Enter: () => follow(".here a"),
  "[": () => follow("#previous"),
  "]": () => follow("#next"),
  o: () => follow(".brand"),
  t: () => theme.turn(),
  "?": () => document.getElementById("help").showModal(),
};

document.addEventListener("keydown", (event) => {
  const writing = event.target.matches("input, select, textarea, button, summary, a");
  if (event.key === "Escape" && event.target.id === "query") {
    if (event.target.value) state.set({ q: "" });
    else event.target.blur();
    event.preventDefault();
  } else if (!event.ctrlKey && !event.metaKey && !event.altKey && KEYS[event.key]) {
    const typed = event.target.matches("input, select, textarea");
    if (typed || (writing && event.key === "Enter") || document.querySelector("dialog[open]")) return;
    KEYS[event.key]();
    event.preventDefault();
  }
});
document.getElementById("theme-button").addEventListener("click", theme.turn);
document.getElementById("help-button").addEventListener("click", KEYS["?"]);
