// A table that is sorted by its heads. A column has a name, a title, how it is shown, and what it is sorted by.
"use strict";

const PAGE = 200;

/** Draw rows; more than fit are drawn when they are asked for. */
function table(element, columns, rows) {
  const [key, down] = sorting();
  const column = columns.find((one) => one.name === key);
  const ordered = column ? [...rows].sort(order(column, down)) : rows;
  const head = make("tr");
  for (const one of columns) head.append(headOf(one, key, down));
  const body = make("tbody");
  element.replaceChildren(make("thead", {}, head), body);
  more(body, columns, ordered, 0);
}

function sorting() {
  const text = state.get("sort");
  return text.startsWith("-") ? [text.slice(1), true] : [text, false];
}

/** What is not known stands last, whichever way. */
function order(column, down) {
  return (first, second) => {
    const [one, other] = [column.key(first), column.key(second)];
    if (one === undefined || other === undefined) return (one === undefined) - (other === undefined);
    const found = typeof one === "number" ? one - other : String(one).localeCompare(String(other), "en", { numeric: true });
    return down ? -found : found;
  };
}

function headOf(column, key, down) {
  const here = column.name === key;
  const sign = here ? (down ? " ↓" : " ↑") : "";
  const button = make("button", { type: "button", title: column.hint }, column.title + sign);
  button.addEventListener("click", () => state.set({ sort: here && !down ? `-${column.name}` : here ? "" : column.name }));
  const sorted = here ? (down ? "descending" : "ascending") : "none";
  return make("th", { class: column.number && "number", "aria-sort": sorted, scope: "col" }, column.key ? button : column.title);
}

function more(body, columns, rows, from, page = PAGE) {
  for (const row of rows.slice(from, from + page)) {
    const made = make("tr", { class: row.muted && "muted" });
    for (const column of columns) made.append(make("td", { class: column.number ? "number" : column.wide && "wide" }, column.show(row)));
    body.append(made);
  }
  const rest = rows.length - from - page;
  if (rest <= 0) return;
  const button = make("button", { type: "button" }, `show ${Math.min(rest, page)} more of ${rest}`);
  const last = make("tr", { class: "more" }, make("td", { colspan: columns.length }, button));
  button.addEventListener("click", () => {
    last.remove();
    more(body, columns, rows, from + page, page);
  });
  body.append(last);
}

/** A case by its name, with what people look for set apart. */
function caseLink(row) {
  const link = make("a", { href: row.page, class: "case", title: row.id }, row.name);
  return make("span", {}, link, " ", make("span", { class: "note whole" }, batchOf(row)));
}

const COLUMNS = {
  name: { name: "case", title: "case", wide: true, key: (row) => row.name, show: caseLink },
  verdict: { name: "outcome", title: "verdict", key: (row) => OUTCOMES.indexOf(row.outcome), show: (row) => badge(row.outcome) },
  step: {
    name: "step", title: "step", number: true, hint: "median of the launches; smallest to largest",
    key: (row) => row.step, show: stepOf,
  },
  ratio: {
    name: "ratio", title: "vs baseline", number: true, hint: "time, or what failed in its place, over the baseline's or the other arm's",
    key: (row) => row.ratio, show: (row) => row.moved ?? percent(row.ratio),
  },
  factor: {
    name: "factor", title: "× fp32", number: true, hint: "throughput over stock fp32 in the same run",
    key: (row) => row.factor, show: (row) => (row.factor === undefined ? "-" : `${row.factor.toFixed(2)}×`),
  },
  right: { name: "right", title: "accuracy", key: (row) => row.right, show: (row) => make("span", { class: "whole" }, row.right ?? "-") },
};

function stepOf(row) {
  if (row.step === undefined) return "-";
  const ends = row.n > 1 ? `${human(row.lo, "s")} to ${human(row.hi, "s")}, ${row.n} launches` : "one launch";
  return make("span", { title: ends }, human(row.step, "s"));
}

function anyOf(rows, ...names) {
  return names.filter((name) => rows.some((row) => row[name] !== undefined)).map((name) => COLUMNS[name]);
}
