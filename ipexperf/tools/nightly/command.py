"""`ipexperf nightly`: run the suite as a night that explains itself."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from ipexperf.commands import console, planning
from ipexperf.errors import HistoryError, IpexperfError, UsageError
from ipexperf.history import addresses
from ipexperf.history.records import Recorded, RunRecord
from ipexperf.judge.baseline import write_text
from ipexperf.judge.sentence import sentence
from ipexperf.plan.options import SCOPES
from ipexperf.plan.values import positive
from ipexperf.report import rerun
from ipexperf.report.rerun import Search
from ipexperf.tools import codec
from ipexperf.tools.nightly import ledger as ledgers
from ipexperf.tools.nightly import night as nights
from ipexperf.tools.nightly import text
from ipexperf.tools.nightly.ledger import Finding, Ledger, Night
from ipexperf.verdict import BaselineEvidence, PairsEvidence

MINUTES = 60
PROGRAM = (sys.executable, "-m", "ipexperf.cli")
NEWEST = 20
"""Only so many runs are looked at for tonight's."""
GREEN, RED = 0, 1
REFUSED = 4
"""pytest's exit status for arguments that make no sense."""
CANNOT_TELL = 3
"""The exit status of a search that can name no culprit, and says why."""


def add_nightly(subparsers: console.Subparsers) -> None:
    purpose = "measure a night, accept what is well, and explain what is not: one text a regression"
    parser = console.declare(subparsers, "nightly", purpose, run_nightly, console.JUDGE, "nightly -- suites/")
    parser.add_argument("tests", nargs="*", metavar="-- TESTS", help="arguments of pytest")
    text = "where the nights, issues and dossiers are (default: nights)"
    parser.add_argument("--folder", type=Path, default=Path("nights"), metavar="DIR", help=text)
    text = f"how long causes may be searched (default: {MINUTES})"
    parser.add_argument("--minutes", type=positive, default=MINUTES, metavar="N", help=text)
    console.add_baselines(parser, "their folder")
    console.add_history(parser)


def run_nightly(arguments: argparse.Namespace) -> int:
    """Play the night of today, or the rest of it."""
    addresses.check_local(arguments.db)
    folder = arguments.folder
    tools = Processes(folder, arguments.tests, arguments.db, arguments.baselines)
    today = date.today().isoformat()  # noqa: DTZ011 - a night has the date of its place
    ledger, night = nights.play(ledgers.read(folder), today, tools, 60.0 * arguments.minutes)
    console.say(text.summary(ledger, night))
    for issue in ledger.open:
        console.say(f"  {folder / 'issues' / text.file_of(issue)}: {text.title(issue)}")
    console.say(f"  {_page(folder, night)}")
    return RED if night.red or night.findings else GREEN


class Processes:
    """The steps of a night as processes of their own: one that crashes ends no night."""

    def __init__(self, folder: Path, tests: Sequence[str], db: str, baselines: Path) -> None:
        self._folder, self._tests, self._db, self._baselines = folder, tests, db, baselines

    def measure(self, date: str) -> Night:
        from ipexperf.history.store import History

        before = {run.uid for run in self._runs()}
        dossiers = self._folder / "dossiers" / date
        options = [f"--perf-db={self._db}", f"--perf-baselines={self._baselines}", f"--perf-explain={dossiers}"]
        status = _run([sys.executable, "-m", "pytest", *self._tests, *options])
        if status == REFUSED:
            raise UsageError("pytest did not take what is behind --, for the reason above")
        new = [run for run in self._runs() if run.uid not in before and run.status == "finished"]
        # Others may write the same history meanwhile: ours has our options.
        new = [run for run in new if options[-1] in run.meta.get("command", ())]
        if not new:
            return Night(date, red=f"pytest ended with exit status {status} and recorded no run")
        with History.open(self._db, create=False) as history:
            cases = history.show(new[0].uid).cases
        failed = [recorded for recorded in cases if recorded.test_failed]
        explained = _dossiers(dossiers)
        findings = tuple(_finding(recorded, explained.get(recorded.case.id), self._folder) for recorded in failed)
        whole = new[0].settled
        moved = whole.get("fails") and (whole.get("shift") or 0.0) > 1  # all of it, and not a case
        red = str(whole.get("line") or "") if moved or whole.get("spoilt") else ""
        if status and not findings:  # such as a test that measures nothing
            red = red or f"pytest ended with exit status {status}"
        return Night(
            date,
            new[0].uid,
            new[0].machine_key,
            tuple(recorded.case.id for recorded in cases),
            tuple(recorded.case.id for recorded in cases if recorded not in failed and _well(recorded)),
            findings,
            red,
        )

    def _runs(self) -> Sequence[RunRecord]:
        from ipexperf.history.store import History

        try:
            with History.open(self._db, create=False) as history:
                return history.runs(NEWEST)
        except HistoryError:
            return ()

    def accept(self, night: Night, cases: Sequence[str]) -> None:
        places = ["--db", self._db, "--baselines", str(self._baselines)]
        chosen = [f"--case={case}" for case in cases]
        command = ["baseline", "accept", night.run, *chosen, *places, "--reason", f"the night of {night.date}"]
        _run([*PROGRAM, *command])  # what is refused, such as an inconclusive case, is printed

    def search(self, finding: Finding, search: Search, seconds: float) -> tuple[str, bool]:
        try:
            command = search.command(self._case(finding, search.arm))
        except IpexperfError as error:
            return f"not searched: {error}", False
        places = (f"--perf-db={self._db}", f"--perf-baselines={self._baselines}")
        printed = self._ipexperf(["bisect", "--json", *places, *shlex.split(command)[2:]], seconds)
        if printed is None:
            return "", False
        if not printed:
            return f"`{command}` failed: it says why when you run it, and the next night tries again", False
        document = json.loads(printed)
        # The reason names commits.
        named = ", ".join(_changed(change) for change in document["culprits"] if change["kind"] != "commit")
        return ": ".join(filter(None, (named, document["reason"]))), True

    def _case(self, finding: Finding, arm: str) -> str:
        """The words that choose the case of a finding, of which the history says what it is. Raises UsageError.

        What they load is named by the night's own arguments, and so is the other arm, if it is not an accepted one.
        """
        from ipexperf.bench import loading
        from ipexperf.history.store import History

        parser = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
        planning.add_options(parser, SCOPES)
        options = planning.resolve(parser.parse_known_args(self._tests)[0])
        loading.load(options.load)
        with History.open(self._db, create=False) as history:
            cases = [
                recorded.case for recorded in history.measurements(finding.run) if recorded.case.id == finding.case
            ]
        if not cases or not (re.fullmatch(r"(baseline(:\w+)?)?", arm) or arm == options.against):
            raise UsageError(f"{ledgers.NAME} has {finding.case} beside '{arm}', and no such case was measured")
        return rerun.chosen(cases[0], options)

    def _ipexperf(self, words: Sequence[str], seconds: float) -> str | None:
        """What a command of ours prints. Empty if it fails. None if it has no time: what it knows is kept."""
        with subprocess.Popen([*PROGRAM, *words], stdout=subprocess.PIPE, text=True) as process:
            try:
                printed, _ = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
                process.communicate()
                return None
            except KeyboardInterrupt:
                process.terminate()
                process.communicate()
                raise
        return printed if process.returncode in (0, CANNOT_TELL) else ""

    def keep(self, ledger: Ledger) -> None:
        ledgers.write(ledger, self._folder)
        for issue in ledger.issues:
            path = self._folder / "issues" / text.file_of(issue)
            content = text.issue(issue)
            if not path.is_file() or path.read_text(encoding="utf-8") != content:
                write_text(path, content)
        write_text(_page(self._folder, ledger.nights[-1]), text.night(ledger, ledger.nights[-1]))
        referred = {
            Path(finding.dossier).parts[2] for issue in ledger.issues for finding in issue.findings if finding.dossier
        }
        for night in (self._folder / "dossiers").glob("*"):
            if re.fullmatch(ledgers.DATE, night.name) and night.name not in {*referred, ledger.nights[-1].date}:
                shutil.rmtree(night)


def _well(recorded: Recorded) -> bool:
    """Whether a case is known not to be slower than when it was accepted.

    One that is `inconclusive` by stored numbers runs exactly the software and files that were accepted.
    """
    if recorded.verdict is None:
        return False
    same = recorded.outcome == "inconclusive" and isinstance(recorded.verdict.evidence, BaselineEvidence)
    return same or recorded.outcome in ("ok", "improved")


def _run(command: Sequence[str]) -> int:
    """Run a command, and let it end by itself if we are ended. Returns its exit status."""
    with subprocess.Popen(command) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.terminate()
            process.wait()
            raise


def _changed(change: Mapping[str, str | None]) -> str:
    """A culprit in words."""
    sides = " -> ".join(change[end] or "none" for end in ("good", "bad"))
    return f"{change['kind']} {change['name']} ({sides})"


def _page(folder: Path, night: Night) -> Path:
    return folder / f"{night.date}.md"


def _dossiers(folder: Path) -> dict[str, tuple[Path, dict[str, Any]]]:
    """The dossiers of a night, by the ids of their cases."""
    dossiers = {}
    for path in folder.glob("*/dossier.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        dossiers[document["case"]] = path, document
    return dossiers


def _finding(recorded: Recorded, dossier: tuple[Path, dict[str, Any]] | None, folder: Path) -> Finding:
    verdict = recorded.verdict
    reason, ratio = (sentence(verdict), verdict.times) if verdict else (recorded.outcome, None)
    if dossier is None:
        evidence = verdict.evidence if verdict else None
        differs = evidence.differences if isinstance(evidence, PairsEvidence) else ()
        return Finding(recorded.case.id, reason, ratio, differs)
    path, document = dossier
    return Finding(
        recorded.case.id,
        reason,
        ratio,
        tuple(document["differs"]),
        tuple(document["lines"]),
        os.path.relpath(path.with_name("index.html"), folder / "issues"),
        codec.record(tuple[Search, ...], document["searches"]),
        recorded.run_uid,
    )
