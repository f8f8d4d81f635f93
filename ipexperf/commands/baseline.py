"""`ipexperf baseline accept|list|diff|show`: manage the files that later runs are judged against."""

from __future__ import annotations

import argparse
import dataclasses
import getpass
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

from ipexperf import lock as locks
from ipexperf.commands import console
from ipexperf.errors import BaselineError, HistoryError, UsageError
from ipexperf.history.records import Recorded
from ipexperf.history.store import History
from ipexperf.judge.accept import Acceptance, ProposedCase
from ipexperf.judge.baseline import Baselines
from ipexperf.lock import Lock


def _proposed(recorded: Recorded) -> ProposedCase:
    from ipexperf.judge import answers, structure
    from ipexperf.judge.accept import ProposedCase

    verdict = recorded.verdict.alone if recorded.verdict else None
    state, fingerprint = recorded.common_fingerprint
    return ProposedCase(
        case=recorded.case,
        metrics=recorded.values,
        outcome=verdict.outcome if verdict else "failed",
        ratio=verdict.times if verdict else None,
        environment=recorded.environment,
        run=recorded.run_uid,
        started_at=recorded.started_at,
        commit=recorded.commit,
        reason=verdict.reason if verdict else "",
        worse=recorded.verdict.worse if recorded.verdict else "",
        fingerprint=structure.name(fingerprint) if state.outcome == "same" else None,
        answers=answers.common(launch.document.get("answers") for launch in recorded.counted),
    )


def _chosen(history: History, arguments: argparse.Namespace) -> dict[str, list[ProposedCase]]:
    """The run's cases by machine: those named by --case, or all."""
    measurements = history.measurements(arguments.run_selector)
    by_machine = defaultdict(list)
    for recorded in console.chosen(measurements, arguments.case, arguments.run_selector):
        by_machine[recorded.machine_key].append(_proposed(recorded))
    return by_machine


def run_accept(arguments: argparse.Namespace) -> int:
    """Accept a run's cases. Prints refusals, which make the exit status 1."""
    from ipexperf.judge import baseline
    from ipexperf.judge.accept import accept
    from ipexperf.judge.baseline import write_text

    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    refused = 0
    with console.open_history(arguments) as history:
        for machine_key, candidates in _chosen(history, arguments).items():
            accepted = baseline.read(arguments.baselines, machine_key)
            acceptance = accept(
                accepted,
                candidates,
                reason=arguments.reason,
                by=arguments.by or getpass.getuser(),
                now=now,
                regression_ok=arguments.regression_ok,
                replace=arguments.replace,
                expires=arguments.expires,
            )
            for case_id, why in acceptance.refused:
                console.say(f"refused   {case_id}: {why}")
            refused += len(acceptance.refused)
            if acceptance.accepted:
                locked = _locks(history, acceptance, arguments)
                for lock in locked:
                    write_text(locks.path_of(arguments.baselines, lock.digest), lock.text)
                kept = _sources(acceptance, arguments)
                path = _keep(history, arguments.baselines, accepted, acceptance)
                for case_id in acceptance.accepted:
                    console.say(f"accepted  {case_id}")
                _remove_unused(arguments.baselines)
                _say_locks(locked, arguments)
                for line in kept:
                    console.say(line)
                console.say(f"{path}: review it with `git add -N` and `git diff`, and commit it")
    return 1 if refused else 0


def _locks(history: History, acceptance: Acceptance, arguments: argparse.Namespace) -> list[Lock]:
    """The locks of the accepted cases. With --keep their packages are put into the store first."""
    wanted = {}
    for candidate in acceptance.candidates:
        digest = candidate.environment.get("lock")
        text = history.lock(digest) if digest else None
        if digest is None or text is None:
            continue  # recorded before locks were kept
        accepted = acceptance.baselines.at(candidate.case)
        if accepted is not None and accepted.lock != digest:
            continue  # a newer session has another one
        path = locks.path_of(arguments.baselines, digest)
        former = locks.read(path).name if path.exists() else ""
        git = candidate.environment.get("git") or {}
        lock = locks.parse(text, f"the lock of the run {candidate.run}")
        wanted[digest] = dataclasses.replace(
            lock, commit=candidate.commit, dirty=bool(git.get("dirty")), name=arguments.name or former
        )
        if arguments.keep:
            _store(lock, str(candidate.environment["software"].get("executable")), arguments)
    if arguments.name:
        _check_name(arguments.name, wanted, arguments.baselines)
    return list(wanted.values())


def _sources(acceptance: Acceptance, arguments: argparse.Namespace) -> list[str]:
    """Keep the user's files of the accepted cases, and return lines that say how, and what cannot be had again."""
    from ipexperf import units
    from ipexperf.environments import sources
    from ipexperf.judge.baseline import write_text

    lines, done = [], set()
    for candidate in acceptance.candidates:
        wanted = sources.Source.of(candidate.environment)
        if not wanted.files or wanted.digest in done:
            continue
        done.add(wanted.digest)
        kept, lost = sources.keep(wanted, candidate.commit, arguments.cache)
        count = units.plural(len(wanted.files), "file")
        if lost:
            lines.append(f"source    {count} cannot be had again: {lost}. When they change, numbers alone are compared")
            continue
        path = write_text(sources.path_of(arguments.baselines, wanted.digest), kept.text())
        parts = [f"commit {kept.commit[: sources.DIGITS]}"] if kept.commit else []
        parts += [f"copies of {len(kept.contents)}"] if kept.contents else []
        parts += [f"{', '.join(kept.cached)} in {arguments.cache} alone"] if kept.cached else []
        lines.append(f"source    {path}: {count}, {' and '.join(parts)}")
    return lines


def _check_name(name: str, wanted: Mapping[str, Lock], folder: Path) -> None:
    """One name stands for one lock."""
    if not locks.NAME.fullmatch(name):
        raise UsageError(f"--name: '{name}' is no name: expected letters, digits, '.', '_', '-'")
    other = next((lock for lock in locks.every(folder) if lock.name == name and lock.digest not in wanted), None)
    if other is not None:
        raise UsageError(f"--name: '{name}' is the name of the lock {other.digest} already")
    if len(wanted) > 1:
        raise UsageError(f"--name: the accepted cases have {len(wanted)} locks: name one by accepting it with --case")


def _store(lock: Lock, python: str, arguments: argparse.Namespace) -> None:
    """Put the packages of a lock into the store, from the interpreter that was measured."""
    from ipexperf.commands import progress
    from ipexperf.environments import make

    ours = None if python == sys.executable else python  # under the same PYTHONPATH as the run
    installed = {(item.name, item.content): item for item in make.take_inventory(ours).packages}
    store = make.store_of(arguments.cache)
    for package in lock.packages:
        if arguments.keep == "perishable" and package.name not in lock.perishable:
            continue
        here = installed.get((package.name, package.content))
        if here is None:
            raise UsageError(f"--keep: {package.name} {package.version} is no longer installed for {python}")
        store.add(here, progress.say)


def _say_locks(locked: Sequence[Lock], arguments: argparse.Namespace) -> None:
    """Say where the locks are, and what of them may not be had again."""
    from ipexperf.environments import make

    store = make.store_of(arguments.cache)
    for lock in locked:
        console.say(f"lock      {locks.path_of(arguments.baselines, lock.digest)}: {len(lock.packages)} packages")
        for package in lock.packages:
            reason = lock.perishable.get(package.name)
            if reason and store.find(package) is None:
                name = f"{package.name} {package.version}"
                console.say(f"  {name} may not be had again, as {reason}: keep it with --keep")
    if not locked:
        why = "these cases were recorded before locks were kept: they are judged by their numbers alone"
        console.say(f"no lock   {why}")


def _remove_unused(folder: Path) -> None:
    """Remove locks and sources that no baseline refers to any more. Locks with a name stay, and git has the others."""
    from ipexperf.environments import sources
    from ipexperf.judge import baseline

    environments = [case.environment for file in baseline.every(folder) for case in file.cases]
    used = {str(environment.get("lock") or "") for environment in environments}
    ran = {sources.Source.of(environment).digest for environment in environments}
    for path in sources.path_of(folder, "").parent.glob("*.json"):
        if path.stem not in ran:
            path.unlink()
            sources.forget(path.stem)
    for lock in locks.every(folder):
        if lock.digest not in used and not lock.name:
            locks.path_of(folder, lock.digest).unlink()


def _keep(history: History, folder: Path, accepted: Baselines, acceptance: Acceptance) -> Path:
    """Write the file and the rows in the history: both or neither."""
    from ipexperf.history.records import Accepted
    from ipexperf.judge import baseline

    sessions = []
    for candidate in acceptance.candidates:
        former, new = accepted.at(candidate.case), acceptance.baselines.at(candidate.case)
        assert new is not None  # noqa: S101 - it was put there just now
        session = Accepted(
            run_uid=candidate.run,
            case=candidate.case,
            former=former.case if former else candidate.case,
            machine_key=accepted.machine_key,
            current_runs=frozenset(session.run for session in new.sessions),
            at=new.accepted_at,
            by=new.accepted_by,
            reason=new.reason,
        )
        sessions.append(session)
    path = baseline.path_of(folder, accepted.machine_key)
    existed, written = path.exists(), False
    # Write the rows first and commit them last. A database that cannot be written is then found before the file
    # changes, and a failure to write the file rolls the rows back. If the commit fails, restore the file: an acceptance
    # in the file alone would be refused when tried again.
    try:
        with history.accepting(sessions):
            baseline.write(folder, acceptance.baselines)
            written = True
    except HistoryError:
        if written and existed:
            baseline.write(folder, accepted)
        elif written:
            path.unlink()
        raise
    return path


def _files(arguments: argparse.Namespace) -> list[Baselines]:
    from ipexperf.judge import baseline

    if not arguments.baselines.is_dir():
        raise BaselineError(f"there is no folder {arguments.baselines}: accept a run first, or name it by --baselines")
    return baseline.every(arguments.baselines)


def run_list(arguments: argparse.Namespace) -> int:
    """List the baselines, one line each."""
    from ipexperf import units

    files = _files(arguments)
    if not files:
        console.say(f"no baseline in {arguments.baselines}: `ipexperf baseline accept` makes the first")
    for file in files:
        console.say(file.machine_key)
        for case in file.cases:
            step = units.seconds(case.step_time)
            console.say(f"  {case.case.id:<40} {step:>9}  {units.plural(len(case.sessions), 'session')}  "
                 f"accepted {case.accepted_at[:10]} by {case.accepted_by}: {case.reason}"
                 + (f"  lock {case.lock}" if case.lock else ""))  # fmt: skip
    return 0


def run_show(arguments: argparse.Namespace) -> int:
    """Show everything about a case's baselines."""
    import json
    from dataclasses import asdict

    documents = [
        {"machine_key": file.machine_key, **asdict(case)}
        for file in _files(arguments)
        for case in file.cases
        if case.case.id == arguments.case_id
    ]
    if not documents:
        raise BaselineError(f"no baseline has a case {arguments.case_id}: see `ipexperf baseline list`")
    console.say(json.dumps(documents, indent=2, default=dict))
    return 0


def run_diff(arguments: argparse.Namespace) -> int:
    """Show what a change of the baselines' folder allows. OTHER is the folder before the change."""
    from ipexperf import units
    from ipexperf.judge import baseline
    from ipexperf.judge.accept import diff

    if not arguments.other.is_dir():
        raise BaselineError(f"there is no folder {arguments.other}")
    for new in _files(arguments):
        for change in diff(baseline.read(arguments.other, new.machine_key), new):
            ratio = units.percent(change.ratio) if change.ratio else ""
            console.say(f"{change.case_id:<40} {change.kind}  {ratio}  {change.sessions}  {change.reason}")
    return 0


def add_baseline(subparsers: console.Subparsers) -> None:
    purpose = "accept, list, compare and show baselines"
    parser = console.declare(subparsers, "baseline", purpose, topic=console.JUDGE)
    below = parser.add_subparsers(metavar="accept|list|diff|show", required=True)

    def add(name: str, purpose: str, run: console.Command) -> argparse.ArgumentParser:
        subparser = console.declare(below, name, purpose, run)
        console.add_baselines(subparser, "their folder")
        return subparser

    accept = add("accept", "accept the numbers of a run as baseline", run_accept)
    console.add_history(accept)
    accept.add_argument("run_selector", metavar="RUN", help="last, last~1, a date, the start of a uid or commit")
    accept.add_argument("--reason", required=True, help="why these numbers are right")
    accept.add_argument("--by", help="who accepts (default: the user's name)")
    accept.add_argument("--case", action="append", metavar="ID", help="only this case (repeatable)")
    accept.add_argument("--regression-ok", action="store_true", help="accept slower numbers and other answers too")
    accept.add_argument("--replace", action="store_true", help="forget the sessions accepted before")
    accept.add_argument("--name", help="name for the software that it ran on, for `--perf-against baseline:NAME`")
    text = "put packages into the store that may not be had again (perishable, the default), or all of them"
    accept.add_argument("--keep", nargs="?", const="perishable", choices=("perishable", "all"), help=text)
    console.add_cache(accept, "where the store is, ")
    accept.add_argument("--expires", metavar="DATE", help="the last day of validity")
    add("list", "list the accepted baselines", run_list)
    show = add("show", "show all of one case's baselines", run_show)
    show.add_argument("case_id", metavar="CASE")
    different = add("diff", "compare with another folder of baselines", run_diff)
    different.add_argument("other", type=Path, metavar="OTHER")


COMMANDS = (add_baseline,)
