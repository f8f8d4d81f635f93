// Two runs that the reader chooses: every case of both.
"use strict";

const RUNS = window.ipexperfRuns;
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

choices();
filter.over(DATA.rows, (rows) => table(document.getElementById("compared"), COMPARED, rows.map(pair).filter((row) => row.one !== undefined || row.other !== undefined)));
