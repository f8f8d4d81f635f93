// The page of a run: its cases in a table.
"use strict";

const RUN_COLUMNS = [
  COLUMNS.name, COLUMNS.verdict, COLUMNS.step, ...anyOf(DATA.rows, "ratio", "right"),
  ...(DATA.rows.some((row) => row.why) ? [{ name: "why", title: "why", show: (row) => make("span", { class: "why" }, row.why ?? "-") }] : []),
];

filter.over(DATA.rows, (rows) => table(document.getElementById("cases"), RUN_COLUMNS, rows));
