// What is chosen on a page, kept in the link's hash: a link that is shared shows the same.
"use strict";

const state = {
  watchers: [],

  read() {
    return new URLSearchParams(location.hash.slice(1));
  },

  get(name, otherwise = "") {
    return state.read().get(name) ?? otherwise;
  },

  list(name) {
    return state.get(name).split(",").filter(Boolean);
  },

  /** Choose; an empty value is no choice. */
  set(changes) {
    const found = state.read();
    for (const [name, value] of Object.entries(changes)) {
      const text = Array.isArray(value) ? value.join(",") : value;
      if (text) found.set(name, text);
      else found.delete(name);
    }
    const hash = found.toString().replaceAll("%2C", ",");
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
    state.tell();
  },

  watch(watcher) {
    state.watchers.push(watcher);
  },

  tell() {
    for (const watcher of state.watchers) watcher();
  },
};

window.addEventListener("hashchange", state.tell);
