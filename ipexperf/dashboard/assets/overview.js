// The overview: verdicts, what changed, the matrix and the cases, all under one filter.
"use strict";

const RUNS = window.ipexperfRuns;
const CHANGES_SHOWN = 20;

DATA.changes = DATA.changes.map((change) => ({ ...DATA.rows[change.row], why: "", ...change, muted: change.accepted || change.over }));
for (const row of DATA.changes) row.words = wordsOf(row);

function tiles(rows) {
  const counts = new Map(OUTCOMES.map((one) => [one, rows.filter((row) => row.outcome === one).length]));
  const chosen = state.list("outcome");
  document.getElementById("tiles").replaceChildren(
    ...[...counts].filter(([, count]) => count).map(([outcome, count]) => {
      const on = chosen.includes(outcome);
      const made = make("button", { type: "button", class: "count", "data-outcome": outcome, "aria-pressed": String(on) },
        make("span", { class: "value" }, String(count)), badge(outcome));
      made.addEventListener("click", () => state.set({ outcome: on ? chosen.filter((one) => one !== outcome) : [...chosen, outcome] }));
      return made;
    }),
  );
}

/** What moved: how far, which case, by what or why, through time, from what to what, and since when. */
const CHANGE_COLUMNS = [
  { title: "", show: (row) => sign(row) },
  { title: "", number: true, show: (row) => make("b", { class: `tone-${lookOf(row.kind).tone}` }, row.change) },
  { title: "", wide: true, show: (row) => make("span", {}, caseLink(row), make("div", { class: "why" }, ...causeOf(row))) },
  { title: "", show: spark },
  { title: "", number: true, show: (row) => row.levels },
  { title: "", number: true, show: (row) => `since ${shortMoment(RUNS[row.run], RUNS[0], RUNS[RUNS.length - 1])}` },
];

function sign(row) {
  const { glyph, tone } = lookOf(row.kind);
  return make("span", { class: "badge", "data-tone": tone }, make("span", { class: "glyph", "aria-hidden": "true" }, glyph), row.kind.replaceAll("_", " "));
}

function causeOf(row) {
  const told = [row.accepted, row.over, row.why].filter(Boolean).join(" · ").replaceAll("->", "→");
  return row.dossier ? [make("a", { href: row.dossier }, "dossier"), " · ", told] : [told];
}

function changes(rows) {
  const body = make("tbody");
  more(body, CHANGE_COLUMNS, rows, 0, CHANGES_SHOWN);
  document.getElementById("changes").replaceChildren(body);
  document.getElementById("changes-block").hidden = !rows.length;
  document.getElementById("untold").textContent = DATA.untold ? ` ${DATA.untold} older changes are told by \`ipexperf changes\`.` : "";
}

/** The newest runs on a scale that all cases share: what moved by a tenth or more is at its edge. */
function spark(row) {
  const found = row.spark.flatMap((value, index) => (value === null ? [] : [{
    x: (96 * index) / Math.max(1, row.spark.length - 1) + 2,
    y: 12 - 9 * Math.max(-1, Math.min(1, Math.log(value) / Math.log(1.1))),
    red: row.red?.includes(index),
  }]));
  if (found.length < 2) return "";
  const lines = found.slice(1).map((to, index) =>
    draw("line", { class: to.red ? "red" : "", x1: found[index].x.toFixed(1), y1: found[index].y.toFixed(1), x2: to.x.toFixed(1), y2: to.y.toFixed(1) }));
  const last = found[found.length - 1];
  return draw("svg", { class: "spark", viewBox: "0 0 100 24", width: 100, height: 24, "aria-hidden": "true" },
    draw("line", { class: "grid", x1: 0, x2: 100, y1: 12, y2: 12 }), ...lines, draw("circle", { class: last.red ? "red" : "", cx: last.x, cy: last.y, r: 2.5 }));
}

const COLUMN_LIST = [
  COLUMNS.name, COLUMNS.verdict, COLUMNS.step, ...anyOf(DATA.rows, "ratio", "factor", "right"),
  ...(DATA.rows.some((row) => row.spark.filter((value) => value !== null).length > 1) ? [{ name: "spark", title: "through time", show: spark }] : []),
  ...(DATA.rows.some((row) => row.old) ? [{
    name: "old", title: "age", number: true, hint: "runs since then", key: (row) => row.old ?? 0,
    show: (row) => make("span", { title: row.tried && `an experiment since then: ${row.tried}` },
      row.old ? `${row.old} ${row.old === 1 ? "run" : "runs"}` : "newest"),
  }] : []),
];
const NAMES = heat.measures(DATA.rows);

function measures() {
  const chosen = heat.chosen(NAMES);
  document.getElementById("measure").replaceChildren(...NAMES.map((name) => {
    const made = make("button", { type: "button", role: "radio", "aria-checked": String(name === chosen) }, MEASURES[name].title);
    made.addEventListener("click", () => state.set({ colour: name === NAMES[0] ? "" : name }));
    return made;
  }));
  return chosen;
}

filter.over(DATA.rows, (rows) => {
  tiles(DATA.rows);
  changes(filter.left(DATA.changes));
  const name = measures();
  heat.show(document.getElementById("heat"), rows, name);
  heat.legend(document.getElementById("legend"), name);
  document.getElementById("heat-block").hidden = !rows.length;
  table(document.getElementById("cases"), COLUMN_LIST, rows);
});
