// Cases that were measured in pairs with another arm, each with its pairs and its verdict.
"use strict";

const TOLERANCE = [1 / 1.05, 1.05];

filter.over(DATA.rows, (rows) => {
  const axis = axisOf(rows.flatMap((row) => [row.ratio, row.lo, row.hi, ...row.pairs]));
  document.getElementById("pairs").replaceChildren(...rows.map((row) => pairOf(axis, row)));
});

function pairOf(axis, row) {
  const { tone } = outcomeOf(row.outcome);
  const kind = ["warm", "cool"].includes(tone) ? tone : "";
  const drawn = row.ratio === undefined ? "" : make("div", { class: "drawn" },
    strip(axis, { value: row.ratio, lo: row.lo, hi: row.hi, dots: row.pairs, kind, band: TOLERANCE }), axisRow(axis));
  const numbers = row.ratio === undefined ? "" : make("p", { class: "numbers" },
    make("b", {}, percent(row.ratio)), ` time, ${row.pairs.length} pairs`,
    row.mde === undefined ? "" : `, would have seen ${percent(1 + row.mde)}`);
  return make("article", { class: "pair line-row" },
    make("h2", {}, caseName(row), " ", badge(row.outcome)),
    make("p", { class: "facts" }, make("span", {}, "against ", make("code", {}, row.arm)), make("span", {}, row.when)),
    drawn, numbers, row.beside.length ? make("p", { class: "facts" }, row.beside.join(", ")) : undefined, make("p", { class: "why" }, row.why),
    row.differs.length ? make("ul", { class: "lines" }, ...row.differs.map((line) => make("li", {}, line))) : undefined);
}

/** The arm has a line of its own: it need not be in the name too. */
function caseName(row) {
  return make("a", { href: row.page }, row.id.replace(`+against:${row.arm}`, ""), make("span", { class: "note" }, ` batch ${row.batch}`));
}
