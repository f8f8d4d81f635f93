// The filter: words that must all be in a row's name, and a choice of values for each axis that has several.
"use strict";

const FACETS = ["outcome", "model", "device", "dtype", "mode", "stack", "machine"];

const filter = {
  rows: [],
  shows: null,

  /** Watch over rows; `shows` draws those that are left, at once and whenever the choice changes. */
  over(rows, shows) {
    filter.rows = rows;
    filter.shows = shows;
    for (const row of rows) row.words = wordsOf(row);
    const facets = document.getElementById("facets");
    for (const name of FACETS) {
      const values = [...new Set(rows.map((row) => row[name]))].filter(Boolean);
      if (values.length > 1) facets.append(facet(name, name === "outcome" ? OUTCOMES.filter((one) => values.includes(one)) : values.sort()));
    }
    const query = document.getElementById("query");
    query.addEventListener("input", () => state.set({ q: query.value }));
    document.getElementById("filter").addEventListener("submit", (event) => event.preventDefault());
    document.getElementById("clear").addEventListener("click", filter.clear);
    state.watch(filter.apply);
    filter.apply();
  },

  clear() {
    state.set({ q: "", ...Object.fromEntries(FACETS.map((name) => [name, ""])) });
  },

  left(rows) {
    const words = state.get("q").toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = FACETS.map((name) => [name, state.list(name)]).filter(([, values]) => values.length);
    return rows.filter(
      (row) =>
        words.every((word) => row.words.includes(word)) &&
        chosen.every(([name, values]) => values.includes(String(row[name]))),
    );
  },

  apply() {
    const query = document.getElementById("query");
    if (query.value !== state.get("q")) query.value = state.get("q");
    for (const box of document.querySelectorAll("#facets input")) {
      box.checked = state.list(box.name).includes(box.value);
    }
    for (const one of document.querySelectorAll("#facets details")) {
      const count = state.list(one.dataset.name).length;
      one.querySelector("summary").textContent = count ? `${nameOf(one.dataset.name)} · ${count}` : nameOf(one.dataset.name);
      one.classList.toggle("chosen", count > 0);
    }
    const left = filter.left(filter.rows);
    const all = left.length === filter.rows.length;
    document.getElementById("count").textContent = all ? `${left.length}` : `${left.length} of ${filter.rows.length}`;
    document.getElementById("clear").hidden = all && !state.get("q");
    filter.shows(left);
  },
};

function nameOf(facet) {
  return facet === "outcome" ? "verdict" : facet;
}

function wordsOf(row) {
  return [row.id, row.machine, row.outcome, row.over, batchOf(row)].filter(Boolean).join(" ").toLowerCase();
}

/** A menu of the values of one axis, each with the number of its rows. */
function facet(name, values) {
  const list = make("div", { class: "menu" });
  for (const value of values) {
    const box = make("input", { type: "checkbox", name, value });
    box.addEventListener("change", () => {
      const others = state.list(name).filter((one) => one !== value);
      state.set({ [name]: box.checked ? [...others, value] : others });
    });
    const count = filter.rows.filter((row) => row[name] === value).length;
    const text = name === "outcome" ? badge(value) : document.createTextNode(value);
    list.append(make("label", {}, box, text, make("span", { class: "note" }, String(count))));
  }
  const made = make("details", { class: "facet", "data-name": name }, make("summary", {}, nameOf(name)), list);
  document.addEventListener("click", (event) => {
    if (!made.contains(event.target)) made.open = false;
  });
  made.addEventListener("keydown", (event) => {
    if (event.key === "Escape") made.open = false;
  });
  return made;
}
