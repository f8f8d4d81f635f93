// The page of a case: its chart, and the choice of the metric. What there is too little of is not there.
"use strict";

/** What is the same for all runs was told once. */
function spread(value, runs) {
  return value === undefined || Array.isArray(value) ? value : runs.map(() => value);
}

const NAMES = Object.keys(DATA.trends);
const METRICS = NAMES.filter((name) => DATA.trends[name].median.some((value) => value !== null)); // what was imported may have no time
const PRIMARY = DATA.trends[NAMES[0]];
for (const one of Object.values(DATA.trends)) one.run ??= PRIMARY.run;
PRIMARY.n = spread(PRIMARY.n, PRIMARY.run);
DATA.verdict = spread(DATA.verdict, PRIMARY.run);
DATA.baseline = spread(DATA.baseline, PRIMARY.run);

function chosenMetric() {
  const wanted = state.get("metric");
  return METRICS.includes(wanted) ? wanted : METRICS[0];
}

function metricSwitch() {
  if (METRICS.length < 2) return;
  document.getElementById("metric").replaceChildren(...METRICS.map((name) => {
    const made = make("button", { type: "button", role: "radio", "aria-checked": String(name === chosenMetric()) }, name.replaceAll("_", " "));
    made.addEventListener("click", () => state.set({ metric: name === METRICS[0] ? "" : name, x: "" }));
    return made;
  }));
}

/** Draw now, and again whenever the width or the look is another. */
function drawn(element, show) {
  let width = 0;
  new ResizeObserver(([{ contentRect }]) => {
    if (Math.abs(contentRect.width - width) < 2) return;
    width = contentRect.width;
    show();
  }).observe(element);
  document.addEventListener("ipexperf-theme", show);
}

function followTrend(element) {
  drawn(element, () => trend.show(chosenMetric()));
  document.getElementById("whole").addEventListener("click", () => state.set({ x: "" }));
  element.addEventListener("dblclick", () => state.set({ x: "" }));
  state.watch(() => {
    metricSwitch();
    if (trend.metric === chosenMetric()) trend.zoom();
    else trend.show(chosenMetric());
  });
  metricSwitch();
}

if (document.getElementById("trend")) followTrend(document.getElementById("trend"));
