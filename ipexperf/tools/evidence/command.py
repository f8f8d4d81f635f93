"""`ipexperf evidence`: show what runs on this machine, and check and publish such files."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipexperf.commands import console, planning
from ipexperf.commands.progress import Progress
from ipexperf.errors import EvidenceError, IpexperfError, UsageError
from ipexperf.tools.evidence import NETWORKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipexperf.bench.machine.facts import Facts
    from ipexperf.plan.options import Options
    from ipexperf.tools.evidence.cover import Cover, Planner
    from ipexperf.tools.evidence.experiment import EvidenceRun
    from ipexperf.tools.evidence.records import Evidence, RowRecord

MINUTES = 20
PATIENCE = 240.0
"""Seconds that a request to a worker may take, unless the user says: training the weights of a model takes longest."""
LAST = "cpu"
"""The device to show where there is no accelerator."""
DECIDED = (
    "model",
    "dtype",
    "mode",
    "stack",
    "preset",
    "batch",
    "size",
    "knobs",
    "ablate",
    "placement",
    "start",
    "budget",
)
"""The options that say what the command itself decides."""
SHOWN = 12
"""Rows to name for one reason. The file has all."""
WRONG = 1
"""Exit status if a row did not hold."""


def add_evidence(subparsers: console.Subparsers) -> None:
    purpose = "run every feature that this machine can show, and write what held to a file"
    parser = console.declare(subparsers, "evidence", purpose)
    text = f"start nothing that will not end within this many (default: {MINUTES}); what is worth most comes first"
    parser.add_argument("--minutes", type=console.positive, default=MINUTES, metavar="N", help=text)
    text = "folder of the files (default: docs/evidence)"
    parser.add_argument("--into", type=Path, default=Path("docs") / "evidence", metavar="DIR", help=text)
    text = "go on from the folder's file of this machine: run only what it does not hold, and add to it"
    parser.add_argument("--add", action="store_true", help=text)
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument(
        "--plan", action="store_true", help="only list the cases, and the rows that cannot be shown here"
    )
    text = "check these files, or all of the folder: is everything that they claim in them?"
    forms.add_argument("--check", nargs="*", type=Path, metavar="FILE", help=text)
    text = "check the files of the folder, and write the tables of the documentation anew"
    forms.add_argument("--pages", action="store_true", help=text)
    planning.add_options(parser, without=DECIDED)
    parser.set_defaults(run=run_evidence)


def run_evidence(arguments: argparse.Namespace) -> int:
    if arguments.check is not None:
        return _check(arguments.check, arguments.into)
    return _pages(arguments.into) if arguments.pages else _run(arguments)


def _check(paths: Sequence[Path], folder: Path) -> int:
    """Check files. All are looked at, and each that is wrong has its sentence."""
    named = list(paths) or sorted(folder.glob("*.json"))
    if not named:
        raise EvidenceError(f"{folder} has no file of evidence: ipexperf evidence writes one")
    if faults := [fault for path in named if (fault := _fault(path))]:
        raise EvidenceError("\nipexperf: ".join(faults))
    return 0


def _fault(path: Path) -> str:
    """Print what a file shows. Return what is wrong with it, or an empty text."""
    from ipexperf.tools.evidence import records

    try:
        console.say(f"{path}: {_summary(records.read(path))}")
    except EvidenceError as error:
        return str(error)
    return ""


def _pages(folder: Path) -> int:
    from ipexperf.judge.baseline import write_text
    from ipexperf.tools.evidence import records, tables

    blocks = tables.blocks(records.all_of(folder))
    for page in tables.PAGES:
        if not page.is_file():
            raise UsageError(f"--pages: there is no {page} here: run it in the root of a checkout")
        before = page.read_text(encoding="utf-8")
        after = tables.filled(before, blocks, page)
        if after != before:
            write_text(page, after)
        console.say(f"{page}: {'as it was' if after == before else 'written'}")
    return 0


def _run(arguments: argparse.Namespace) -> int:
    """Run what the budget allows, and write the file, also after an interruption."""
    from ipexperf.bench import loading
    from ipexperf.tools.evidence.cover import Planner
    from ipexperf.tools.evidence.experiment import EvidenceRun
    from ipexperf.tools.experiments import recorded

    options = _options(arguments)
    loading.load(options.load)
    progress = Progress()
    options, facts = _device(options)
    (device,) = options.device or ()
    planner = Planner(device, options, facts)
    progress.say(f"planning what {device} can show here")
    before = _before(arguments.into, device) if arguments.add else None
    cover = planner.make([row.row for row in before.rows if row.state == "held"] if before else ())
    if arguments.plan:
        return _list(cover)
    if not cover.planned:
        more = "nothing more" if before else "nothing"
        raise UsageError(f"{device} can show {more} here: {next(iter(cover.impossible.values()), 'no row is known')}")
    progress.say(f"{len(cover.planned)} cases to run")
    experiment = EvidenceRun(planner, cover.planned, options, progress.say)
    interruption: KeyboardInterrupt | IpexperfError | None = None
    unreached = f"the {arguments.minutes} minutes were over before"

    def after() -> None:
        done = len(experiment.records) + len(experiment.refused)
        so_far = f"{experiment.seconds / 60:.0f} of {arguments.minutes} minutes"
        progress.move("cases", done, done + len(experiment.left), so_far)

    opened = planning.recorder("evidence", options, progress.say)
    with contextlib.closing(experiment), recorded(opened) as recorder:
        try:
            with progress:
                experiment.run(recorder, after)
        except KeyboardInterrupt as error:
            interruption, unreached = error, "it was interrupted before"
        except IpexperfError as error:  # such as a history on a full disk: what was measured is in the file
            interruption, unreached = error, f"the run ended before: {error}"
        new = _evidence(planner, cover, experiment, arguments.minutes, unreached)
        evidence, into = _added(before, new, planner, arguments.into)
        _report(evidence, _write(evidence, into))
        if interruption:
            raise interruption
    return WRONG if any(row.state == "failed" for row in evidence.rows) else 0


def _options(arguments: argparse.Namespace) -> Options:
    from ipexperf.tools.evidence import records

    planned = planning.resolve(arguments)
    if limit := records.limited(os.environ):
        raise UsageError(f"{limit}: evidence is of all that a CPU can do: run it without this variable")
    if planned.device is not None and len(planned.device) != 1:
        raise UsageError(
            f"{planned.sources['device']}: a file is of one device: choose one, and run it again for others"
        )
    defaults = {field.name: field.default for field in dataclasses.fields(planned) if field.name in DECIDED}
    chosen: dict[str, Any] = {**defaults, "budget": 60.0 * arguments.minutes, "launches": 1}
    load = (*planned.load, str(NETWORKS))
    if "timeout" not in planned.sources:
        chosen["timeout"] = PATIENCE
    without = (*planned.without, "roof", "pulse")
    return dataclasses.replace(planned, **chosen, load=load, samples=8, seconds=0.1, without=without)


def _device(options: Options) -> tuple[Options, Facts]:
    """The options with the device that was asked for, or the first accelerator that works here, or the CPU."""
    from ipexperf.bench import registry
    from ipexperf.compare import arm
    from ipexperf.plan import matrix
    from ipexperf.plan.arms import ArmWords

    matrix.check_names(options)
    cards = tuple(name for name in registry.devices.names() if registry.devices.get(name).accelerator)
    facts = arm.facts(ArmWords(), dataclasses.replace(options, device=options.device or cards))
    why_not = {name: registry.devices.get(name).why_not(facts) for name in options.device or (*cards, LAST)}
    device = next((name for name, reason in why_not.items() if reason is None), None)
    if device is None:
        name, reason = list(why_not.items())[-1]
        asked = f"{options.sources['device']} " if options.device else ""
        raise UsageError(f"{asked}{name} cannot run here: {reason}")
    return dataclasses.replace(options, device=(device,)), facts


def _before(folder: Path, device: str) -> Evidence:
    """The file of this machine in a folder."""
    from ipexperf.bench.process import environment
    from ipexperf.tools.evidence import records

    here = environment.hardware()
    for evidence in records.all_of(folder):
        if evidence.device == device and all(evidence.hardware[name] == here[name] for name in ("cpu", "isa", "cores")):
            return evidence
    raise UsageError(f"--add: {folder} has no file of this machine and {device}: leave it out")


def _added(before: Evidence | None, new: Evidence, planner: Planner, folder: Path) -> tuple[Evidence, Path]:
    """The new evidence with that of the file before it, and the folder to write it to.

    Cases of other hardware or software are not mixed: then the new evidence is written to a folder of its own.
    """
    from ipexperf.tools.evidence import records

    if before is None:
        return new, folder
    shared = before.software.keys() & new.software.keys()
    same = before.hardware == new.hardware and all(before.software[name] == new.software[name] for name in shared)
    if not same:
        return new, folder / "other-software"
    fresh = {item.case for item in new.cases}
    cases = (*(item for item in before.cases if item.case not in fresh), *new.cases)
    why = {item.row: item.why for item in new.rows if item.state == "impossible"}
    unreached = next((item.why for item in new.rows if item.state == "unreached"), "no case was tried")
    rows = [records.resolved(row, cases, why, new.facts, unreached) for row in planner.rows]
    times = {name: before.made[name] + new.made[name] for name in ("minutes", "seconds")}
    software = {**before.software, **new.software}
    return dataclasses.replace(
        new, made={**new.made, **times}, software=software, cases=cases, rows=tuple(rows)
    ), folder


def _list(cover: Cover) -> int:
    """Print the cases in their order, and the rows that no case shows."""
    for planned in cover.planned:
        console.say(planned.case.id)
    for row, reason in cover.impossible.items():
        console.say(f"cannot show  {row}: {reason}")
    console.say(f"{len(cover.planned)} cases, {len(cover.impossible)} rows that cannot be shown here")
    return 0


def _evidence(planner: Planner, cover: Cover, experiment: EvidenceRun, minutes: int, unreached: str) -> Evidence:
    """The file's records, without names of hosts and people."""
    from ipexperf import __version__
    from ipexperf.bench.process import environment
    from ipexperf.tools.evidence import features, records, scrub

    names = scrub.words()
    where = experiment.environment or {"hardware": environment.hardware()}
    hardware = scrub.hardware(where["hardware"])
    impossible = dict(cover.impossible)
    for planned in cover.planned:
        if reason := experiment.refused.get(planned.case.uid):
            rows_shown = [row for row in planner.rows if features.shows(row, planned.case, planner.facts)]
            impossible |= {row: reason for row in rows_shown if row.kind == "condition"}
    cases = [_scrubbed(record, names) for record in experiment.records]
    facts = records.facts(hardware)
    rows = [records.resolved(row, cases, impossible, facts, unreached) for row in planner.rows]
    origin = {
        "at": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "ipexperf": __version__,
        "commit": (where.get("git") or {}).get("commit"),
        "minutes": minutes,
        "seconds": round(experiment.seconds),
    }
    return records.Evidence(
        planner.device,
        origin,
        hardware,
        scrub.software(experiment.software),
        scrub.variables(where.get("variables") or {}),
        tuple(cases),
        tuple(dataclasses.replace(row, why=scrub.text(row.why, names)) for row in rows),
    )


def _scrubbed(record: Any, names: dict[str, str]) -> Any:
    """A case's record with every text scrubbed."""
    from ipexperf.tools.evidence import scrub

    def check(x: Any) -> Any:
        return dataclasses.replace(x, found=scrub.text(x.found, names), expected=scrub.text(x.expected, names))

    return dataclasses.replace(
        record,
        reason=scrub.text(record.reason, names),
        busy=scrub.text(record.busy, names),
        proof=tuple(map(check, record.proof)),
        accuracy=tuple(map(check, record.accuracy)),
        log=tuple(scrub.text(line, names) for line in record.log),
    )


def _write(evidence: Evidence, folder: Path) -> Path:
    """Write the file, and hold it to the rules for everybody's files."""
    from ipexperf.judge.baseline import write_text
    from ipexperf.tools.evidence import records

    path = write_text(folder / f"{evidence.machine}.json", records.text(evidence))
    records.read(path)
    return path


def _summary(evidence: Evidence) -> str:
    count = Counter(row.state for row in evidence.rows)
    return (
        f"{evidence.title} ({evidence.device}): {count['held']} rows held, {count['failed']} did not, "
        f"{count['unreached']} were not reached, {count['impossible']} cannot be shown here"
    )


def _report(evidence: Evidence, path: Path) -> None:
    """Print what did not hold, what was not reached and what cannot be shown, and last of all what held."""
    by_state: dict[str, list[RowRecord]] = {}
    for row in evidence.rows:
        by_state.setdefault(row.state, []).append(row)
    for state, title in (
        ("impossible", "cannot be shown here"),
        ("unreached", "not reached"),
        ("failed", "did not hold"),
    ):
        reasons: dict[str, list[str]] = {}
        for row in by_state.get(state, []):
            reasons.setdefault(row.why, []).append(str(row.row))
        for reason, rows in reasons.items():
            more = f"; and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
            console.say(f"{title}: {reason}\n  {'; '.join(rows[:SHOWN])}{more}")
    console.say(f"{_summary(evidence)}\nwritten to {path}")


TOPIC = console.COMPARE
