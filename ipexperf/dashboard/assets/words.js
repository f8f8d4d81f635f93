// What every page has: its data, elements made of text alone, and numbers as people say them.
"use strict";

const ROOT = document.body.dataset.root;
const DATA = JSON.parse(document.getElementById("data")?.textContent ?? "{}");

/** The names of the outcomes, those that need a reader first. tables.js is written from the tables of outcomes and dtypes. */
const OUTCOMES = Object.keys(window.ipexperfTables.outcomes);
const OTHER_OUTCOME = { glyph: "·", tone: "quiet", numbers: true };

/** The glyph and the tone of an outcome, and whether its numbers count. */
function outcomeOf(name) {
  return window.ipexperfTables.outcomes[name] ?? OTHER_OUTCOME;
}

const EVENTS = {
  slower: { glyph: "▼", tone: "warm", word: "became slower" },
  faster: { glyph: "▲", tone: "cool", word: "became faster" },
  recovered: { glyph: "↺", tone: "good", word: "recovered" },
  environment: { glyph: "◆", tone: "other", word: "another environment" },
  accepted: { glyph: "★", tone: "good", word: "accepted as baseline" },
};

/** How an event looks: one of those above, or an outcome. */
function lookOf(kind) {
  return EVENTS[kind] ?? { ...outcomeOf(kind), word: kind.replaceAll("_", " ") };
}

const UNITS = {
  s: [[1, "s"], [1e-3, "ms"], [1e-6, "us"], [1e-9, "ns"]],
  bytes: [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]],
};

/** Make an element. Text is text: nothing that a model or a message is called becomes markup. */
function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "style") made.style.cssText = value; // the security policy of the page refuses the attribute
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== null));
  return made;
}

/** The batch of a case in words. A function has none. */
function batchOf(row) {
  return row.batch ? `batch ${row.batch}` : "";
}

/** Make an element of a drawing. */
function draw(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function digits(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 999.5) return Math.round(value).toLocaleString("en-US");
  if (size < 1e-3) return value.toExponential(1);
  return value.toFixed(Math.max(0, 2 - Math.floor(Math.log10(size))));
}

/** So many decimals tell neighbours apart; one more where the step between them has it, as 0.25 has. */
function decimalsOf(apart) {
  const least = Math.max(0, Math.ceil(-Math.log10(apart * 1.001)));
  const steps = apart * 10 ** least;
  return Math.abs(steps - Math.round(steps)) > 0.01 ? least + 1 : least;
}

/** A number with its unit, in the scale that suits it; beside others it has the digits that tell it from the next. */
function human(value, unit, apart) {
  if (value === undefined || value === null) return "-";
  if (unit === "fraction") return `${(100 * value).toFixed(apart < 0.001 ? 2 : 1)} %`;
  const scales = UNITS[unit] ?? [[1, ""]];
  const [size, name] = value === 0 ? scales[0] : scales.find(([one]) => Math.abs(value) >= one * 0.9995) ?? scales[scales.length - 1];
  const needed = apart > 0 ? decimalsOf(apart / size) : 0;
  const text = digits(value / size);
  const has = text.split(".")[1]?.length ?? 0;
  return `${needed > has && !text.includes("e") ? (value / size).toFixed(needed) : text} ${name}`.trim();
}

/** A ratio as a change, as the terminal writes it: "+12.3 %", or "4.4 times" from two times on. */
function percent(ratio) {
  if (ratio === undefined || ratio === null) return "-";
  if (ratio >= 2) return `${ratio >= 9.95 ? digits(ratio) : ratio.toFixed(1)} times`;
  const change = (ratio - 1) * 100;
  return `${change <= -0.05 ? "-" : "+"}${Math.abs(change).toFixed(1)} %`;
}

function badge(outcome, text) {
  const { glyph, tone } = outcomeOf(outcome);
  const sign = make("span", { class: "glyph", "aria-hidden": "true" }, glyph);
  return make("span", { class: "badge", "data-outcome": outcome, "data-tone": tone }, sign, text ?? outcome.replaceAll("_", " "));
}

/** A colour of the look that is shown now. */
function colour(name) {
  const probe = make("i", { style: `color: var(--${name})` });
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function moment(seconds) {
  return new Date(1000 * seconds).toISOString().slice(0, 16).replace("T", " ");
}

/** When a run began, as short as tells it from the others: the hour where all are of one day. */
function shortMoment(run, first, last) {
  const [told, ...ends] = [run, first, last].map(([seconds]) => moment(seconds));
  return ends[0].slice(0, 10) === ends[1].slice(0, 10) ? told.slice(11) : told.slice(0, 10);
}
