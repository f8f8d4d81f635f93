// What a dtype, a stack or a device is worth: one axis for all, the greatest gain first.
"use strict";

const KINDS = {
  dtype: "A dtype, over fp32",
  stack: "A stack, over stock PyTorch",
  device: "A device, over the CPU",
  both: "Both, over stock PyTorch in fp32",
};

filter.over(DATA.rows, (rows) => {
  const axis = axisOf(rows.map((row) => row.speedup));
  const sections = Object.entries(KINDS).map(([kind, title]) => [title, rows.filter((row) => row.kind === kind)]);
  document.getElementById("gains").replaceChildren(
    ...sections.filter(([, own]) => own.length).map(([title, own]) => section(axis, title, own)));
});

function section(axis, title, rows) {
  const body = make("tbody");
  for (const row of [...rows].sort((one, other) => other.speedup - one.speedup)) body.append(gainOf(axis, row));
  const head = make("tr", {}, make("th", { scope: "col" }, "case"), make("th", { class: "drawn" }, axisRow(axis)),
    make("th", { class: "number", scope: "col" }, "times"), make("th", { scope: "col" }, "metric"),
    make("th", { scope: "col" }, "accuracy"), make("th", { scope: "col" }, "note"));
  return make("section", {}, make("h2", {}, title), make("div", { class: "scroll" }, make("table", { class: "rows gains" }, make("thead", {}, head), body)));
}

function gainOf(axis, row) {
  const kind = row.seen ? (row.speedup > 1 ? "cool" : "warm") : "";
  const none = row.speedup === null;
  const ends = row.lo === null ? (none ? "no ratio" : "one launch: no interval") : `${digits(row.lo)} to ${digits(row.hi)}`;
  return make("tr", {},
    make("td", {}, make("a", { href: row.page, class: "case" }, row.id), " ", make("span", { class: "note whole" }, `batch ${row.batch}`)),
    make("td", { class: "drawn" }, none ? "" : strip(axis, { value: row.speedup, lo: row.lo, hi: row.hi, kind, hollow: !row.seen })),
    make("td", { class: "number", title: ends }, none ? "-" : `${digits(row.speedup)}×`),
    make("td", {}, row.metric),
    make("td", { class: "whole" }, row.right),
    make("td", { class: "why" }, [row.note, none || row.seen ? "" : "no difference seen"].filter(Boolean).join("; ")));
}
