// The overview: verdicts, what changed, the matrix and the cases, all under one filter.
"use strict";

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

/** The cases that fail now: how much slower, through time, since when and why, each in one row. */
function trouble(rows) {
  const failing = rows.filter((row) => row.since)
    .sort((one, other) => OUTCOMES.indexOf(one.outcome) - OUTCOMES.indexOf(other.outcome) || (other.ratio ?? 0) - (one.ratio ?? 0));
  const body = make("tbody");
  for (const row of failing) {
    body.append(make("tr", {},
      make("td", {}, badge(row.outcome)),
      make("td", { class: "number" }, percent(row.ratio)),
      make("td", {}, caseLink(row)),
      make("td", {}, spark(row)),
      make("td", {}, `since ${row.since}`),
      make("td", { class: "why" }, row.why)));
  }
  document.getElementById("trouble").replaceChildren(body);
  document.getElementById("trouble-block").hidden = !failing.length;
}

const SIGNS = { slower: "▼", faster: "▲", undone: "↺" };

function changes(rows) {
  const body = make("tbody");
  for (const row of rows) {
    const moved = make("span", { class: `move ${row.kind}`, title: row.text }, `${SIGNS[row.kind]} `, percent(row.ratio));
    const plain = row.kind === "slower" || row.kind === "faster" ? [] : [row.text];
    const why = [...plain, ...row.lines.slice(0, 3)].join(" · ") + (row.lines.length > 3 ? " …" : "");
    body.append(make("tr", {},
      make("td", { class: "number" }, moved),
      make("td", {}, caseLink(row)),
      make("td", { class: "number" }, `${human(row.before, "s")} → ${human(row.after, "s")}`),
      make("td", {}, row.when),
      make("td", { class: "why" }, why)));
  }
  document.getElementById("changes").replaceChildren(body);
  document.getElementById("changes-block").hidden = !rows.length;
  const untold = document.getElementById("untold");
  untold.hidden = !DATA.untold;
  untold.textContent = `${DATA.untold} older changes are told by \`ipexperf changes\`.`;
}

function spark(row) {
  const values = row.spark.filter((value) => value !== null);
  if (values.length < 2) return "";
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = Math.max(high - low, 0.02 * low);
  const points = row.spark.flatMap((value, index) =>
    value === null ? [] : [`${((96 * index) / (row.spark.length - 1) + 2).toFixed(1)},${(20 - (16 * (value - low)) / room).toFixed(1)}`]);
  const [x, y] = points[points.length - 1].split(",");
  return draw("svg", { class: "spark", viewBox: "0 0 100 24", width: 100, height: 24, "aria-hidden": "true" },
    draw("polyline", { points: points.join(" ") }), draw("circle", { cx: x, cy: y, r: 2.5 }));
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
  trouble(rows);
  changes(filter.left(DATA.changes));
  const name = measures();
  heat.show(document.getElementById("heat"), rows, name);
  heat.legend(document.getElementById("legend"), name);
  document.getElementById("heat-block").hidden = !rows.length;
  table(document.getElementById("cases"), COLUMN_LIST, rows);
});
