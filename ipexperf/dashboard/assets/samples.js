// The samples of the last runs: a row for each launch, a dot for each timed step.
"use strict";

const ROW = 26;
const LEFT = 170;
const RIGHT = 90;
const MOST = 0.97;
/** Beyond this share of all samples the axis ends, unless the rest is near: one slow step must not hide all others. */
const NEAR = 1.25;

function samplesInto(element) {
  const rows = DATA.samples.flatMap(({ run, launches }) => launches.map((values, index) => ({ run, index, values }))).reverse();
  const all = rows.flatMap((row) => row.values).sort((one, other) => one - other);
  const low = all[0];
  const most = all[Math.floor(MOST * (all.length - 1))];
  const high = all[all.length - 1] <= low + NEAR * (most - low) ? all[all.length - 1] : low + NEAR * (most - low);
  const width = Math.max(480, element.clientWidth);
  const place = (value) => LEFT + ((width - LEFT - RIGHT) * (value - low)) / Math.max(high - low, 1e-12);
  const made = draw("svg", { class: "samples", width, height: ROW * rows.length + 30, role: "img", "aria-label": "samples of the last runs" });
  for (const part of [0, 0.25, 0.5, 0.75, 1]) {
    const x = place(low + part * (high - low));
    made.append(draw("line", { class: "grid", x1: x, x2: x, y1: 4, y2: ROW * rows.length + 4 }),
      draw("text", { class: "axis", x, y: ROW * rows.length + 22, "text-anchor": "middle" }, human(low + part * (high - low), "s", (high - low) / 4)));
  }
  rows.forEach((row, number) => made.append(...launchOf(row, number, rows[number - 1], place, high, width)));
  element.replaceChildren(made);
}

function launchOf(row, number, before, place, high, width) {
  const middle = ROW * number + ROW / 2 + 4;
  const made = [];
  if (before?.run !== row.run) {
    made.push(draw("text", { x: 0, y: middle + 4 }, moment(window.ipexperfRuns[row.run][0])));
    if (number) made.push(draw("line", { class: "grid", x1: 0, x2: width, y1: ROW * number + 4, y2: ROW * number + 4 }));
  }
  made.push(draw("text", { class: "axis", x: LEFT - 40, y: middle + 4 }, `#${row.index}`));
  row.values.forEach((value, index) => {
    // Sorted values: neighbours are set apart by a step that never repeats beside itself.
    if (value <= high) made.push(draw("circle", { class: "dot", cx: place(value).toFixed(1), cy: (middle + (((index * 5) % 9) - 4) * 1.8).toFixed(1), r: 2 }));
  });
  const median = row.values[Math.floor(row.values.length / 2)];
  if (median !== undefined && median <= high) {
    made.push(draw("line", { class: "median", x1: place(median), x2: place(median), y1: middle - 11, y2: middle + 11 }));
  }
  const beyond = row.values.filter((value) => value > high);
  if (beyond.length) {
    made.push(draw("text", { class: "axis", x: width - RIGHT + 6, y: middle + 4 }, `+${beyond.length} ≤ ${human(Math.max(...beyond), "s")}`));
  }
  return made;
}
