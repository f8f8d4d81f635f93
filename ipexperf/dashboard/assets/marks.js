// What is drawn over a trend: levels, the baseline, and what happened at which run.
"use strict";

const GLYPH_ROOM = 14;
const LONGEST_NAME = 40;

/** The place of a run on the axis, which holds the runs of this case one after the other. */
function placesOf(trend) {
  return new Map(trend.run.map((run, index) => [run, index]));
}

/** A plug-in of uPlot that draws them, in pixels of the canvas. */
function overlay(trend, judged) {
  const places = placesOf(trend);
  return {
    hooks: {
      drawClear: [(chart) => judged && marks(chart, places)],
      draw: [(chart) => {
        if (!judged) return;
        levels(chart, places);
        baseline(chart, trend);
        verdicts(chart, trend);
      }],
    },
  };
}

function clipped(chart, work) {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top - GLYPH_ROOM * devicePixelRatio, bbox.width, bbox.height + GLYPH_ROOM * devicePixelRatio);
  ctx.clip();
  work(ctx, bbox, devicePixelRatio);
  ctx.restore();
}

function marks(chart, places) {
  clipped(chart, (ctx, bbox, scale) => {
    ctx.font = `${11 * scale}px sans-serif`;
    named(chart, places);
    for (const mark of DATA.marks ?? []) {
      if (!places.has(mark.run) || !EVENTS[mark.kind]) continue; // a verdict stands on its run
      const look = EVENTS[mark.kind];
      // Between the last run of before and the first of after.
      const x = Math.round(chart.valToPos(places.get(mark.run) - (mark.kind === "accepted" ? 0 : 0.5), "x", true));
      ctx.strokeStyle = ctx.fillStyle = colour(look.tone);
      ctx.lineWidth = scale;
      ctx.setLineDash(mark.kind === "environment" ? [2 * scale, 3 * scale] : []);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.textAlign = "center";
      ctx.fillText(look.glyph, x, bbox.top - 3 * scale);
    }
  });
}

/** What became different where the line breaks, as far as there is room. */
function named(chart, places) {
  clipped(chart, (ctx, bbox, scale) => {
    ctx.font = `${11 * scale}px sans-serif`;
    ctx.fillStyle = colour("soft");
    let free = bbox.left;
    for (const [run, text] of DATA.breaks ?? []) {
      const x = chart.valToPos(places.get(run) - 0.5, "x", true) + 5 * scale;
      if (!(x >= free)) continue;
      const name = text.length > LONGEST_NAME ? `${text.slice(0, LONGEST_NAME - 1)}…` : text;
      const room = bbox.left + bbox.width - x;
      ctx.textAlign = ctx.measureText(name).width > room ? "right" : "left";
      ctx.fillText(name, ctx.textAlign === "left" ? x : x - 10 * scale, bbox.top + 10 * scale);
      free = x + ctx.measureText(name).width + 8 * scale;
    }
  });
}

function levels(chart, places) {
  clipped(chart, (ctx, bbox, scale) => {
    ctx.strokeStyle = colour("ink");
    ctx.lineWidth = 2 * scale;
    for (const [first, last, value] of DATA.levels ?? []) {
      const y = chart.valToPos(value, "y", true);
      ctx.beginPath();
      ctx.moveTo(chart.valToPos(places.get(first) - 0.4, "x", true), y);
      ctx.lineTo(chart.valToPos(places.get(last) + 0.4, "x", true), y);
      ctx.stroke();
    }
  });
}

function baseline(chart, trend) {
  clipped(chart, (ctx, bbox, scale) => {
    ctx.strokeStyle = colour("good");
    ctx.lineWidth = 1.5 * scale;
    ctx.setLineDash([6 * scale, 4 * scale]);
    trend.run.forEach((run, index) => {
      const value = DATA.baseline?.[index];
      if (value === undefined || value === null) return;
      const y = chart.valToPos(value, "y", true);
      ctx.beginPath();
      ctx.moveTo(chart.valToPos(index - 0.5, "x", true), y);
      ctx.lineTo(chart.valToPos(index + 0.5, "x", true), y);
      ctx.stroke();
    });
  });
}

/** What the judge said stands on its run; what does not count is crossed out. */
function verdicts(chart, trend) {
  clipped(chart, (ctx, bbox, scale) => {
    ctx.font = `${13 * scale}px sans-serif`;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    trend.run.forEach((run, index) => {
      const value = trend.median[index];
      const said = DATA.verdict[index];
      const { glyph, tone } = outcomeOf(said);
      if (value === null || !["warm", "cool", "bad"].includes(tone)) return;
      ctx.fillStyle = colour(tone);
      ctx.fillText(glyph, chart.valToPos(index, "x", true), chart.valToPos(value, "y", true));
    });
  });
}

/** What the signs of this page mean; only those that are on it. */
function legendOf(trend, judged) {
  const found = [make("span", {}, make("i", { class: "line" }), "median of the launches")];
  if (trend.lo) {
    const least = Math.min(...trend.n.filter((count) => count > 1));
    const share = Number.isFinite(least) ? 100 * (1 - 2 ** (1 - least)) : 0;
    const sure = share ? `, which holds the true median with ${share.toFixed(share > 99 ? 2 : 0)} % or more` : "";
    found.push(make("span", {}, make("i", { class: "band" }), `smallest to largest launch${sure}`));
  }
  if (judged && DATA.levels) found.push(make("span", {}, make("i", { class: "level" }), "level"));
  if (judged && DATA.baseline) found.push(make("span", {}, make("i", { class: "dashes" }), "baseline"));
  for (const kind of judged ? new Set((DATA.marks ?? []).map((mark) => mark.kind)) : []) {
    const { glyph, tone, word } = lookOf(kind);
    found.push(make("span", { style: `color: var(--${tone})` }, `${glyph} ${word}`));
  }
  return found;
}
