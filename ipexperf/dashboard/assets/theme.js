// Light or dark: as the system has it, until somebody says otherwise. Loaded first, so that nothing flashes.
"use strict";

const theme = {
  system: window.matchMedia("(prefers-color-scheme: dark)"),

  /** What was chosen, here or on a page before. A viewer that locks pages in gives them no storage: then it is here. */
  here: null,

  chosen() {
    try {
      return localStorage.getItem("ipexperf-theme");
    } catch {
      return theme.here;
    }
  },

  choose(name) {
    theme.here = name;
    try {
      localStorage.setItem("ipexperf-theme", name);
    } catch {
      // As above: the choice lasts as long as the page.
    }
  },

  dark() {
    const chosen = theme.chosen();
    return chosen ? chosen === "dark" : theme.system.matches;
  },

  show(dark) {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    document.dispatchEvent(new Event("ipexperf-theme"));
  },

  turn() {
    theme.choose(theme.dark() ? "light" : "dark");
    theme.show(theme.dark());
  },
};

theme.show(theme.dark());
theme.system.addEventListener("change", () => theme.show(theme.dark()));
// Paper is white: charts are drawn once more before it is printed.
window.addEventListener("beforeprint", () => theme.show(false));
window.addEventListener("afterprint", () => theme.show(theme.dark()));
