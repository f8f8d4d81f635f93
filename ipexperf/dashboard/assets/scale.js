// Ratios on one log axis: a dot and its interval.
"use strict";

const STEPS = [0.1, 0.2, 0.25, 0.33, 0.5, 0.67, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.25, 1.5, 2, 3, 4, 5, 8, 10, 20, 50];
const LEAST = 1.5;
const ROOM = 1.6;

/** An axis that holds these ratios and 1 with some room, and a few marks on it. */
function axisOf(values) {
  const known = values.filter((value) => value > 0 && Number.isFinite(value));
  // Two launches have intervals without end: they are cut off, or they would squeeze all gains into a point.
  const low = Math.min(1 / LEAST, ...known) / ROOM;
  const high = Math.max(LEAST, ...known) * ROOM;
  const place = (value) => (100 * Math.log(Math.min(high, Math.max(low, value)) / low)) / Math.log(high / low);
  const inside = STEPS.filter((step) => step >= low && step <= high);
  const apart = inside.filter((step) => step === 1 || Math.abs(place(step) - place(1)) > 7);
  const marks = [];
  for (const step of apart) {
    if (step === 1 || marks.every((other) => Math.abs(place(other) - place(step)) > 9)) marks.push(step);
  }
  return { place, marks, low, high };
}

/** A line of the axis with what is on it; `kind` colours the dot. */
function strip(axis, { value, lo, hi, kind, hollow }) {
  const made = draw("svg", { class: `strip ${kind}`, height: 26, role: "img", "aria-label": String(value) });
  for (const mark of axis.marks) {
    made.append(draw("line", { class: mark === 1 ? "one" : "grid", x1: `${axis.place(mark)}%`, x2: `${axis.place(mark)}%`, y1: 0, y2: 26 }));
  }
  if (lo !== null) {
    made.append(draw("line", { class: "bar", x1: `${axis.place(lo)}%`, x2: `${axis.place(hi)}%`, y1: 13, y2: 13 }));
    if (lo < axis.low) made.append(draw("text", { class: "end", x: "-1.5%", y: 18 }, "‹"));
    if (hi > axis.high) made.append(draw("text", { class: "end", x: "100.5%", y: 18 }, "›"));
  }
  made.append(draw("circle", { class: hollow ? "point hollow" : "point", cx: `${axis.place(value)}%`, cy: 13, r: 5 }));
  return made;
}

function axisRow(axis) {
  const made = draw("svg", { class: "strip axis", height: 18, "aria-hidden": "true" });
  for (const mark of axis.marks) made.append(draw("text", { x: `${axis.place(mark)}%`, y: 13, "text-anchor": "middle" }, String(mark)));
  return made;
}
