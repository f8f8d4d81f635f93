// A metric of the case through its runs, drawn by uPlot: zoomed by dragging, told by hovering.
"use strict";

const HEIGHT = 320;
/** Steps of an axis in bytes, which are round in KiB, MiB and GiB. */
const BINARY = Array.from({ length: 50 }, (_, power) => 2 ** power);

const trend = {
  chart: null,
  metric: null,

  show(metric) {
    const data = DATA.trends[metric];
    const element = document.getElementById("trend");
    trend.chart?.destroy();
    trend.metric = metric;
    trend.chart = new uPlot(optionsOf(metric, data, element), seriesOf(data), element);
    trend.zoom();
    element.setAttribute("role", "img");
    element.setAttribute("aria-label", `${metric} over ${data.run.length} runs`);
    document.getElementById("trend-legend").replaceChildren(...legendOf(data, metric === "step_time"));
  },

  /** The range that the link says, or all of it. */
  zoom() {
    const last = DATA.trends[trend.metric].run.length - 1;
    const [min, max] = state.get("x").split("..").map(Number);
    const known = Number.isFinite(min) && Number.isFinite(max) && max > min;
    trend.chart.setScale("x", known ? { min, max } : { min: -0.5, max: last + 0.5 });
    document.getElementById("whole").hidden = !known;
  },
};

function seriesOf(data) {
  const good = data.median.map((value, index) => ((data.outcome?.[index] ?? "ok") === "ok" ? value : null));
  const ends = data.lo ? [data.hi, data.lo].map((side) => side.map((value, index) => (good[index] === null ? null : value))) : [];
  return [data.run.map((_, index) => index), ...ends, good];
}

function optionsOf(metric, data, element) {
  const band = data.lo !== undefined;
  const line = colour("line");
  const few = data.run.length <= 120;
  const axis = { stroke: colour("soft"), grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("grid"), width: 1 }, font: "12px system-ui, sans-serif" };
  const gaps = breaks(data);
  const side = { stroke: "transparent", points: { show: false }, gaps };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    padding: [18, 12, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: true, y: false, setScale: false }, points: { fill: line } },
    scales: { x: { time: false }, y: { range: rangeOf } },
    axes: [
      { ...axis, space: 90, incrs: [1, 2, 5, 10, 20, 50, 100, 200], values: (_, ticks) => ticks.map((tick) => dayOf(data, tick)) },
      { ...axis, size: 70, incrs: data.unit === "bytes" ? BINARY : undefined, values: (_, ticks) => ticks.map((tick) => human(tick, data.unit, ticks[1] - ticks[0])) },
    ],
    series: [{}, ...(band ? [side, side] : []), { stroke: line, width: 1.5, points: { show: few, size: 6, fill: line }, gaps }],
    bands: band ? [{ series: [1, 2], fill: colour("band") }] : [],
    plugins: [overlay(data, metric === "step_time"), tooltip(metric, data)],
    hooks: {
      setSelect: [(chart) => {
        if (chart.select.width < 8) return;
        const ends = [chart.select.left, chart.select.left + chart.select.width].map((left) => chart.posToVal(left, "x"));
        chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        state.set({ x: ends.map((end) => end.toFixed(1)).join("..") });
      }],
    },
  };
}

/** No line leads from one environment to another: what lies between is not known. */
function breaks(data) {
  const places = placesOf(data);
  const others = (DATA.breaks ?? []).map(([run]) => places.get(run));
  return (chart, series, first, last, holes) => {
    const ends = (place) => [place - 1, place].map((one) => Math.round(chart.valToPos(one, "x", true)));
    return [...holes, ...others.filter((place) => place > first && place <= last).map(ends)].sort((one, other) => one[0] - other[0]);
  };
}

/** Some room above and below; what moves by less than a per cent is flat. */
function rangeOf(chart, low, high) {
  const { min, max } = chart.scales.x;
  // Runs that do not count are no part of the line, and are seen all the same.
  const seen = [DATA.trends[trend.metric].median, trend.metric === "step_time" ? DATA.baseline ?? [] : []];
  const others = seen.flatMap((values) => values.filter((_, place) => place >= min && place <= max));
  const known = [low, high, ...others].filter((value) => value !== null);
  if (!known.length) return [0, 1];
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const room = Math.max(0.08 * (most - least), 0.005 * Math.abs(most), Number.MIN_VALUE);
  return [Math.max(least >= 0 ? 0 : -Infinity, least - room), most + room];
}

function dayOf(data, place) {
  const run = Number.isInteger(place) ? data.run[place] : undefined;
  const ends = [data.run[0], data.run[data.run.length - 1]];
  return run === undefined ? "" : shortMoment(...[run, ...ends].map((one) => window.ipexperfRuns[one]));
}

/** What is known of the run under the cursor; a click opens its page, where it has one. */
function tooltip(metric, data) {
  const box = make("div", { class: "tooltip", hidden: true });
  let pressed = 0;
  return {
    hooks: {
      ready: [(chart) => {
        chart.over.append(box);
        chart.over.addEventListener("mouseleave", () => { box.hidden = true; });
        chart.over.addEventListener("mousedown", (event) => { pressed = event.clientX; });
        chart.over.addEventListener("click", (event) => {
          const run = window.ipexperfRuns[data.run[chart.cursor.idx]];
          const dragged = Math.abs(event.clientX - pressed) > 4;
          if (run?.[4] && !dragged) location.href = `${ROOT}runs/${run[1]}.html`;
        });
      }],
      setCursor: [(chart) => {
        const { left, idx } = chart.cursor;
        box.hidden = left < 0 || idx === null;
        if (box.hidden) return;
        box.replaceChildren(...toldOf(metric, data, idx));
        const right = left > chart.over.clientWidth / 2;
        box.style.left = right ? "" : `${left + 12}px`;
        box.style.right = right ? `${chart.over.clientWidth - left + 12}px` : "";
      }],
    },
  };
}

function toldOf(metric, data, index) {
  const [seconds, uid, commit, branch, paged] = window.ipexperfRuns[data.run[index]];
  const unit = data.unit;
  const ends = data.lo && data.n[index] > 1 ? ` (${human(data.lo[index], unit)} to ${human(data.hi[index], unit)}, ${data.n[index]} launches)` : "";
  const outcome = data.outcome?.[index] ?? "ok";
  const told = [make("b", {}, moment(seconds)), make("div", {}, human(data.median[index], unit) + ends)];
  if (metric === "step_time" && (DATA.verdict[index] || outcome !== "ok")) told.push(badge(DATA.verdict[index] || outcome));
  told.push(make("div", { class: "note" }, [uid.slice(0, 13), commit && `commit ${commit}`, branch].filter(Boolean).join(" · ")));
  for (const mark of metric === "step_time" ? DATA.marks ?? [] : []) {
    if (mark.run !== data.run[index]) continue;
    told.push(make("div", {}, `${lookOf(mark.kind).glyph} ${mark.text}`), ...mark.lines.slice(0, 4).map((line) => make("div", { class: "note" }, line)));
  }
  if (paged) told.push(make("div", { class: "note" }, "click: the run's page"));
  return told;
}
