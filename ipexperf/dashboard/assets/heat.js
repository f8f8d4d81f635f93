// The matrix: a row for each model and mode, a column for each stack, device and dtype, a tile for each case.
"use strict";

const MEASURES = {
  ratio: { title: "vs baseline", limit: Math.log(1.3), value: (row) => row.ratio, text: percent, less: "faster", more: "slower" },
  factor: {
    title: "× fp32 stock", limit: Math.log(4), value: (row) => row.factor && 1 / row.factor,
    text: (value) => `${(1 / value).toFixed(2)}×`, less: "faster", more: "slower",
  },
  verdict: { title: "verdict", value: () => undefined, text: () => "" },
};
const DTYPES = window.ipexperfTables.dtypes;

const heat = {
  /** The measures that some case has, with a switch between them. */
  measures(rows) {
    return Object.keys(MEASURES).filter((name) => name === "verdict" || rows.some((row) => MEASURES[name].value(row)));
  },

  chosen(names) {
    const wanted = state.get("colour");
    return names.includes(wanted) ? wanted : names[0];
  },

  show(element, rows, name) {
    const several = (key) => new Set(rows.map((row) => row[key])).size > 1;
    const parts = ["stack", "device", "machine"].filter((key, index) => index === 0 || several(key));
    const groupOf = (row) => parts.map((part) => row[part]).join(" · ");
    const networks = rows.filter((row) => row.model);
    const columns = unique(networks, (row) => [groupOf(row), row.dtype]).sort(byGroup);
    const models = unique(networks, (row) => row.model);
    const lines = unique(networks, lineOf).sort((one, other) => models.indexOf(one[0]) - models.indexOf(other[0]) || (one[1] < other[1] ? -1 : 1));
    const cells = new Map();
    for (const row of networks) {
      const place = JSON.stringify([...lineOf(row), groupOf(row), row.dtype]);
      cells.set(place, [...(cells.get(place) ?? []), row]);
    }
    const body = make("tbody");
    lines.forEach(([model, mode], index) => {
      const again = index > 0 && lines[index - 1][0] === model;
      const made = make("tr", { class: again ? "" : "first" });
      made.append(make("th", { scope: "row" }, again ? "" : model), make("th", { class: "part" }, mode));
      for (const column of columns) {
        const found = cells.get(JSON.stringify([model, mode, ...column])) ?? [];
        made.append(make("td", {}, ...found.map((row) => tile(row, name))));
      }
      body.append(made);
    });
    for (const file of unique(rows.filter((row) => !row.model), fileOf)) {
      const found = rows.filter((row) => !row.model && fileOf(row) === file);
      const tests = make("td", { class: "flow", colspan: Math.max(1, columns.length) }, ...found.map((row) => tile(row, name, row.name.slice(file.length).replace("::", ""))));
      body.append(make("tr", { class: "first" }, make("th", { scope: "row", colspan: 2 }, file), tests));
    }
    element.replaceChildren(headsOf(columns), body);
  },

  legend(element, name) {
    const measure = MEASURES[name];
    if (!measure.limit) {
      element.replaceChildren(...OUTCOMES.filter((one) => document.querySelector(`.tile[data-outcome="${one}"]`)).map((one) => badge(one)));
      return;
    }
    const steps = [-1, -0.66, -0.33, 0, 0.33, 0.66, 1].map((part) => {
      const swatch = make("span", { class: "swatch" }, measure.text(Math.exp(part * measure.limit)));
      paint(swatch, part);
      return swatch;
    });
    element.replaceChildren(measure.less, ...steps, measure.more, " · hatched: no number that counts");
  },
};

function lineOf(row) {
  return [row.model, row.mode];
}

/** The file of a test that measures a function. Its tests stand beside one another. */
function fileOf(row) {
  return row.id.split("::")[0];
}

function unique(rows, key) {
  return [...new Map(rows.map((row) => [JSON.stringify(key(row)), key(row)])).values()];
}

function byGroup([group, dtype], [otherGroup, other]) {
  return group === otherGroup ? DTYPES.indexOf(dtype) - DTYPES.indexOf(other) : group < otherGroup ? -1 : 1;
}

function headsOf(columns) {
  const groups = make("tr", {}, make("th"), make("th"));
  const dtypes = make("tr", {}, make("th"), make("th"));
  for (const group of new Set(columns.map(([one]) => one))) {
    const own = columns.filter(([one]) => one === group);
    groups.append(make("th", { colspan: own.length, scope: "colgroup", class: "group" }, group));
    for (const [, dtype] of own) dtypes.append(make("th", { scope: "col" }, dtype));
  }
  return make("thead", {}, groups, dtypes);
}

/** A case as a tile. A function has its test's name on it: no head says it. */
function tile(row, name, label) {
  const measure = MEASURES[name];
  const { glyph, tone, numbers } = outcomeOf(row.outcome);
  const silent = !numbers;
  const value = silent ? undefined : measure.value(row);
  const sign = make("span", { class: "glyph", "aria-hidden": "true" }, glyph);
  const worse = name === "ratio" && row.moved; // by a metric that is not the time
  const told = value === undefined ? (name === "verdict" || silent ? row.outcome.replaceAll("_", " ") : human(row.step, "s")) : worse || measure.text(value);
  const title = `${row.id}${row.batch ? ` (${batchOf(row)})` : ""}: ${row.outcome}${row.step === undefined ? "" : `, ${human(row.step, "s")} a step`}`;
  const made = make("a", { class: "tile", href: row.page, title, "data-outcome": row.outcome, "data-tone": tone }, sign, label && make("span", { class: "name" }, label), told);
  if (value !== undefined) paint(made, worse ? 1 : Math.log(value) / measure.limit);
  else if (name !== "verdict") made.classList.add("blank");
  return made;
}

/** Colour by how far it is from one, -1 to 1: blue is faster, orange is slower, for eyes of any kind. */
function paint(element, part) {
  const cut = Math.max(-1, Math.min(1, part));
  element.classList.add("painted", cut < 0 ? "cool" : "warm");
  element.style.setProperty("--part", `${Math.round(100 * Math.abs(cut))}%`);
}
