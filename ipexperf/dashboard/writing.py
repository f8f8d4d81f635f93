"""Write a report: every page of a history, into a folder that appears only when it is complete."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import jinja2

from ipexperf import __version__, outcomes
from ipexperf.bench.machine.source import inside
from ipexperf.dashboard import case_page, data, folder, pages
from ipexperf.dashboard.story import Story, by_run, gather
from ipexperf.dtypes import DTYPES
from ipexperf.history import History
from ipexperf.history.database import collector_held_off

HERE = Path(__file__).parent
STYLE = HERE / "assets" / "look.css"
SECURITY = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)
"""The content security policy of a page: it may load only the files of the report, from a server or from a disk.

So no injected markup can run scripts, and no page sends a request anywhere else.
"""
RUNS = 400
"""Number of newest runs to draw."""
RUN_PAGES = 20
"""Number of newest runs with a page of their own. The others are only listed."""


@dataclass(frozen=True, slots=True)
class Written:
    """The size of a written report."""

    index: Path
    cases: int
    runs: int
    older: int


def write(history: History, target: Path, limit: int = RUNS) -> Written:
    """Write a report of the newest runs. An older report in the same place is replaced when this one is complete."""
    with folder.whole(target) as new, collector_held_off():
        story = gather(history, limit)
        _Site(new, history, story, target).write()
    return Written(target / "index.html", len(story.entries), len(story.board.runs), story.board.older)


class _Site:
    """The pages of one report. `_paged` are the runs with a page of their own, `_more` the pages that not all have."""

    def __init__(self, root: Path, history: History, story: Story, target: Path) -> None:
        """`target` is where the pages will be."""
        self._root = root
        self._target = target
        self._history = history
        self._story = story
        newest = {entry.now.run for entry in story.entries}
        last = range(max(0, len(story.board.runs) - RUN_PAGES), len(story.board.runs))
        self._paged = {*sorted(newest)[-RUN_PAGES:], *last}
        self._more: dict[str, dict[str, Any]] = {}
        gains = pages.gains(story)
        if (compared := pages.compare(story))["data"]["rows"]:
            self._more["compare.html"] = compared
        if gains["data"]["rows"]:
            self._more["speedups.html"] = gains
        # What is filled in is escaped, in pages and in the JSON inside them.
        self._pages = jinja2.Environment(
            loader=jinja2.FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._pages.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
        self._pages.globals.update(
            paged=self._paged,
            runs=story.board.runs,
            nav=[
                ("index.html", "Overview"),
                ("runs.html", "Runs"),
                *((name, context["title"]) for name, context in self._more.items()),
            ],
            security=SECURITY,
            look_of=outcomes.row,
            quote=shlex.quote,
            version=__version__,
            made=datetime.now(timezone.utc).isoformat(" ", "minutes").removesuffix("+00:00"),
        )

    def write(self) -> None:
        for name in ("cases", "runs"):
            (self._root / name).mkdir()
        shutil.copytree(HERE / "assets", self._root / "assets")
        shutil.copytree(HERE / "vendor" / "uplot", self._root / "assets" / "uplot")
        self._write_tables()
        self._write_runs()
        self._draw("index.html", "overview.html", pages.overview(self._story, self._target))
        entries_of = by_run(self._story.entries)
        self._draw("runs.html", "runs.html", pages.run_list(self._story, entries_of))
        for name, context in self._more.items():
            self._draw(name, name, context)
        for place in sorted(self._paged):
            name = f"runs/{self._story.board.runs[place].uid}.html"
            self._draw(name, "run.html", pages.run_page(self._story, place, entries_of[place]))
        self._write_cases()

    def _write_cases(self) -> None:
        searches = self._history.bisections()
        entries = self._story.entries
        for index, entry in enumerate(entries):
            page_links = {
                "paged_run": entry.now.run in self._paged,
                "previous": entries[index - 1].slug if index else None,
                "next": entries[index + 1].slug if index + 1 < len(entries) else None,
                "dossier": data.dossier(self._story, entry, self._target / "cases"),
                "bisections": case_page.bisections(entry, searches),
            }
            self._draw(
                f"cases/{entry.slug}.html",
                "case.html",
                {**case_page.context(self._story, entry), **page_links},
            )

    def _write_tables(self) -> None:
        """Write what scripts need to know of outcomes and dtypes, so that they have no list of their own."""
        rows = {name: outcomes.row(name) for name in (*outcomes.OUTCOMES, outcomes.NEVER_BEGAN)}
        signs = {
            name: {"glyph": outcome.glyph, "tone": outcome.tone, "numbers": outcome.numbers}
            for name, outcome in rows.items()
        }
        self._write_script("tables.js", "ipexperfTables", {"outcomes": signs, "dtypes": list(DTYPES)})

    def _write_runs(self) -> None:
        """Write the list of runs that all pages share: time and name of each."""
        rows = [
            [
                int(datetime.fromisoformat(run.started_at).timestamp()),
                run.uid,
                (run.commit or "")[:12],
                run.branch or "",
                place in self._paged,
            ]
            for place, run in enumerate(self._story.board.runs)
        ]
        self._write_script("runs.js", "ipexperfRuns", rows)

    def _write_script(self, file: str, name: str, value: object) -> None:
        """Write a script that gives the others a value."""
        text = f"window.{name} = {json.dumps(value, separators=(',', ':'))};\n"
        (self._root / "assets" / file).write_text(text, encoding="utf-8", errors="replace")

    def _draw(self, name: str, template: str, context: Mapping[str, Any]) -> None:
        text = self._pages.get_template(template).render(page=name, root="../" * name.count("/"), **context)
        inside(self._root, name).write_text(text, encoding="utf-8", errors="replace")
