// Two runs that the reader chooses: every case of both, and those that are left by the filter drawn between them.
"use strict";

const RUNS = window.ipexperfRuns;
const DRAWN = 8;
/** Of Okabe and Ito: told apart by people who do not see all colours. Dashes tell them apart on paper. */
const LINES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#b2a400"];
const SIDES = ["from", "to"];

for (const row of DATA.rows) row.ran = Array.isArray(row.ran) ? row.ran : row.run.map(() => row.ran);

/** The places of the two runs: those that the link names, or the newest two. */
function chosen() {
  return SIDES.map((name, index) => {
    const uid = state.get(name);
    const place = RUNS.findIndex((run) => uid && run[1].startsWith(uid));
    return place < 0 ? Math.max(0, RUNS.length - 2 + index) : place;
  });
}

function choices() {
  for (const [index, name] of SIDES.entries()) {
    const select = document.getElementById(name);
    const told = ([seconds, uid, commit, branch]) => [moment(seconds), uid.slice(0, 13), commit && commit.slice(0, 10), branch].filter(Boolean).join(" · ");
    select.replaceChildren(...RUNS.map((run, place) => make("option", { value: run[1], selected: place === chosen()[index] }, told(run))).reverse());
    select.addEventListener("change", () => state.set({ [name]: select.value }));
  }
}

/** A case in both runs. */
function pair(row) {
  const [first, second] = chosen().map((run) => row.run.indexOf(run));
  const value = (place) => (place < 0 ? undefined : row.step[place] ?? undefined);
  const both = value(first) !== undefined && value(second) !== undefined;
  const alike = both && row.ran[first] === row.ran[second];
  return { ...row, one: value(first), other: value(second), ratio: alike ? value(second) / value(first) : undefined, apart: both && !alike };
}

const COMPARED = [
  COLUMNS.name,
  { name: "one", title: "from", number: true, key: (row) => row.one, show: (row) => human(row.one, "s") },
  { name: "other", title: "to", number: true, key: (row) => row.other, show: (row) => human(row.other, "s") },
  {
    name: "ratio", title: "change", number: true, hint: "no verdict: the runs took no turns", key: (row) => row.ratio,
    show: (row) => (row.apart ? make("span", { class: "note whole" }, "other environment") : percent(row.ratio)),
  },
];

let chart = null;
let shown = [];

/** The cases that the filter leaves, each over its first step here. A line breaks where its environment changes. */
function lines() {
  const element = document.getElementById("lines");
  const [first, last] = [...chosen()].sort((one, other) => one - other);
  const rows = shown.map((row) => ({ row, points: row.run.map((run, place) => [run, row.step[place], row.ran[place]]).filter(([run]) => run >= first && run <= last) }));
  const drawn = rows.filter(({ points }) => points.filter(([, value]) => value !== null).length > 1).slice(0, DRAWN);
  const runs = [...new Set(drawn.flatMap(({ points }) => points.map(([run]) => run)))].sort((one, other) => one - other);
  chart?.destroy();
  chart = null;
  element.replaceChildren();
  const left = rows.length - drawn.length;
  const signs = drawn.map(({ row }, index) => make("span", { style: `color: ${LINES[index]}` }, `━ ${row.id}`));
  document.getElementById("lines-legend").replaceChildren(
    ...signs, make("span", {}, drawn.length ? `step over the first one here; a gap: another environment${left ? `; the filter chooses among ${left} more` : ""}` : "no case has two runs in this range"));
  if (!drawn.length) return;
  const axis = { stroke: colour("soft"), grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("grid"), width: 1 }, font: "12px system-ui, sans-serif" };
  const series = drawn.map(({ points }) => {
    const base = points.find(([, value]) => value !== null)[1];
    const at = new Map(points.map(([run, value]) => [run, value === null ? null : value / base]));
    return runs.map((run) => at.get(run)); // undefined: the line goes on; null: it has a gap
  });
  const gapsOf = ({ points }) => points.flatMap(([run, , ran], index) => (index && ran !== points[index - 1][2] ? [[runs.indexOf(points[index - 1][0]), runs.indexOf(run)]] : []));
  const breaks = drawn.map(gapsOf);
  chart = new uPlot({
    width: element.clientWidth, height: 280, padding: [12, 12, 0, 0], legend: { show: false }, cursor: { y: false },
    scales: { x: { time: false, range: [-0.5, runs.length - 0.5] }, y: { range: (_, low, high) => [Math.min(low, 0.99), Math.max(high, 1.01)] } },
    axes: [
      { ...axis, space: 90, incrs: [1, 2, 5, 10, 20, 50, 100, 200], values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) && RUNS[runs[tick]] ? shortMoment(RUNS[runs[tick]], RUNS[runs[0]], RUNS[runs[runs.length - 1]]) : "")) },
      { ...axis, size: 60, values: (_, ticks) => ticks.map((tick) => percent(tick)) },
    ],
    series: [{}, ...drawn.map((_, index) => ({
      stroke: LINES[index], width: 1.5, dash: index % 2 ? [6, 3] : [], points: { show: runs.length <= 60, size: 5 },
      gaps: (plot, number, begin, end, holes) => [...holes, ...breaks[index].map((ends) => ends.map((place) => Math.round(plot.valToPos(place, "x", true))))].sort((one, other) => one[0] - other[0]),
    }))],
  }, [runs.map((_, place) => place), ...series], element);
  element.setAttribute("role", "img");
  element.setAttribute("aria-label", `${drawn.length} cases over ${runs.length} runs`);
}

choices();
filter.over(DATA.rows, (rows) => {
  shown = rows;
  table(document.getElementById("compared"), COMPARED, rows.map(pair).filter((row) => row.one !== undefined || row.other !== undefined));
  lines();
});
document.addEventListener("ipexperf-theme", lines);
new ResizeObserver(lines).observe(document.querySelector("main"));
