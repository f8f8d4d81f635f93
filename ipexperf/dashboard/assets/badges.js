// Verdicts that stand in the page already get their signs: nothing is told by colour alone.
"use strict";

for (const one of document.querySelectorAll(".badge[data-outcome]")) {
  one.prepend(make("span", { class: "glyph", "aria-hidden": "true" }, GLYPHS[one.dataset.outcome] ?? "·"));
}
