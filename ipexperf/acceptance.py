"""Accept cases of a run as baselines: the file, the rows of the history, and what makes their software again."""

from __future__ import annotations

import dataclasses
import getpass
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal, TypeAlias

from ipexperf import lock as locks
from ipexperf import units
from ipexperf.environments import make, sources
from ipexperf.errors import HistoryError, UsageError
from ipexperf.history.records import Accepted, Recorded
from ipexperf.history.store import History
from ipexperf.judge import accept as judge
from ipexperf.judge import baseline
from ipexperf.judge.accept import Acceptance, ProposedCase
from ipexperf.judge.baseline import Baselines, write_text
from ipexperf.judge.environment import CARD
from ipexperf.judge.sentence import of_metric
from ipexperf.lock import Lock
from ipexperf.proof import answers, structure
from ipexperf.result import PRIMARY

Say: TypeAlias = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Terms:
    """How cases are accepted, and where."""

    baselines: Path
    cache: Path
    reason: str
    by: str | None = None
    """Who accepts. None: the user."""
    regression_ok: bool = False
    contended_ok: bool = False
    """Whether numbers of a busy machine are accepted too."""
    replace: bool = False
    """Whether the sessions that were accepted before are forgotten."""
    expires: str | None = None
    name: str | None = None
    """The name for the software that the cases ran on."""
    keep: Literal["perishable", "all"] | None = None
    """The packages of that software to put into the store."""


def accept(history: History, cases: Iterable[Recorded], terms: Terms, say: Say, progress: Say) -> int:
    """Accept cases of a run, and say of each what became of it. Returns how many were refused."""
    by_machine = defaultdict(list)
    for recorded in cases:
        by_machine[recorded.machine_key].append(recorded)
    return sum(_accept(history, key, measured, terms, say, progress) for key, measured in by_machine.items())


def _accept(
    history: History, machine_key: str, measured: Sequence[Recorded], terms: Terms, say: Say, progress: Say
) -> int:
    """Accept the cases of one machine."""
    proposed = [_proposed(recorded, terms) for recorded in measured]
    former = baseline.read(terms.baselines, machine_key)
    acceptance = judge.accept(
        former,
        proposed,
        reason=terms.reason,
        by=terms.by or getpass.getuser(),
        now=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        regression_ok=terms.regression_ok,
        replace=terms.replace,
        expires=terms.expires,
    )
    for case_id, why in acceptance.refused:
        say(f"refused   {case_id}: {why}")
    if acceptance.candidates:
        locked = _locks(history, acceptance, terms, progress)
        for lock in locked:
            write_text(locks.path_of(terms.baselines, lock.digest), lock.text)
        kept = _sources(acceptance, terms)
        path = _write(history, terms.baselines, former, acceptance)
        for recorded, candidate in zip(measured, proposed, strict=True):
            if candidate in acceptance.candidates:
                say(f"accepted  {candidate.case.id}  {_before_and_now(recorded, candidate, former)}")
        _remove_unused(terms.baselines)
        for line in (*_lock_lines(locked, terms), *kept):
            say(line)
        say(f"{path}: review it with `git add -N` and `git diff`, and commit it")
    return len(acceptance.refused)


def _before_and_now(recorded: Recorded, candidate: ProposedCase, former: Baselines) -> str:
    """What a case took as it was accepted before, what it takes now, and which other metrics moved."""
    old, now = former.at(candidate.case), statistics.median(candidate.metrics[PRIMARY])
    unit, _ = candidate.case.primary
    if old is None:
        return f"{units.amount(now, unit)} a {candidate.case.step}, its first"
    change = units.from_to(old.step_time, now, unit)
    verdict = recorded.verdict
    moved = [of_metric(other, verdict.evidence) for other in verdict.moved] if verdict else []
    return "; ".join([f"{change} a {candidate.case.step} ({units.percent(now / old.step_time)})", *moved])


def _proposed(recorded: Recorded, terms: Terms) -> ProposedCase:
    verdict = recorded.verdict.alone if recorded.verdict else None
    state, fingerprint = recorded.common_fingerprint
    unjudged = verdict is not None and verdict.contended
    busy = judge.disturbed([launch.document.get("contended", "") for launch in recorded.counted])
    return ProposedCase(
        case=recorded.case,
        metrics=recorded.values,
        # One that was not judged for its busy machine is compared if it is accepted.
        outcome="no_baseline" if unjudged else verdict.outcome if verdict else "failed",
        ratio=verdict.times if verdict else None,
        environment=recorded.environment,
        run=recorded.run_uid,
        started_at=recorded.started_at,
        commit=recorded.commit,
        reason=verdict.reason if verdict else "",
        worse=recorded.verdict.worse if recorded.verdict else "",
        fingerprint=structure.name(fingerprint) if state.outcome == "same" else None,
        answers=answers.common(launch.document.get("answers") for launch in recorded.counted),
        contended="" if terms.contended_ok else verdict.reason if verdict and unjudged else busy,
    )


def _locks(history: History, acceptance: Acceptance, terms: Terms, progress: Say) -> list[Lock]:
    """The locks of the accepted cases. With --keep their packages are put into the store first."""
    wanted: dict[str, Lock] = {}
    for candidate in acceptance.candidates:
        digest = candidate.environment.get("lock")
        text = history.lock(digest) if digest else None
        if digest is None or text is None:
            continue  # recorded before locks were kept
        accepted = acceptance.baselines.at(candidate.case)
        if accepted is not None and accepted.lock != digest:
            continue  # a newer session has another one
        path = locks.path_of(terms.baselines, digest)
        lock = locks.parse(text, f"the lock of the run {candidate.run}")
        former = wanted.get(digest) or (locks.read(path) if path.exists() else lock)
        git = candidate.environment.get("git") or {}
        card = candidate.environment["software"].get(CARD) or {}
        wanted[digest] = dataclasses.replace(
            lock,
            commit=candidate.commit,
            dirty=bool(git.get("dirty")),
            name=terms.name or former.name,
            driver=card.get("driver") or former.driver,
        )
        if terms.keep:
            store_packages(lock, str(candidate.environment["software"].get("executable")), terms, progress)
    if terms.name:
        _check_name(terms.name, wanted, terms.baselines)
    return list(wanted.values())


def _sources(acceptance: Acceptance, terms: Terms) -> list[str]:
    """Keep the user's files of the accepted cases, and return lines that say how, and what cannot be had again."""
    lines, done = [], set()
    for candidate in acceptance.candidates:
        wanted = sources.Source.of(candidate.environment)
        if not wanted.files or wanted.digest in done:
            continue
        done.add(wanted.digest)
        kept, lost = sources.keep(wanted, candidate.commit, terms.cache)
        count = units.plural(len(wanted.files), "file")
        if lost:
            lines.append(f"source    {count} cannot be had again: {lost}. When they change, numbers alone are compared")
            continue
        path = write_text(sources.path_of(terms.baselines, wanted.digest), kept.text())
        parts = [f"commit {kept.commit[: sources.DIGITS]}"] if kept.commit else []
        parts += [f"copies of {len(kept.contents)}"] if kept.contents else []
        parts += [f"{', '.join(kept.cached)} in {terms.cache} alone"] if kept.cached else []
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


def store_packages(lock: Lock, python: str, terms: Terms, say: Say) -> None:
    """Put the packages of a lock into the store, from the interpreter that was measured."""
    ours = None if python == sys.executable else python  # under the same PYTHONPATH as the run
    installed = {(item.name, item.content): item for item in make.take_inventory(ours).packages}
    store = make.store_of(terms.cache)
    for package in lock.packages:
        if terms.keep == "perishable" and package.name not in lock.perishable:
            continue
        here = installed.get((package.name, package.content))
        if here is None:
            raise UsageError(f"--keep: {package.name} {package.version} is no longer installed for {python}")
        store.add(here, say)


def _lock_lines(locked: Sequence[Lock], terms: Terms) -> list[str]:
    """Lines that say where the locks are, and what of them may not be had again."""
    if not locked:
        why = "nothing says what software these cases ran on: they are judged by their numbers alone"
        return [f"no lock   {why}"]
    store = make.store_of(terms.cache)
    lines = []
    for lock in locked:
        lines.append(f"lock      {locks.path_of(terms.baselines, lock.digest)}: {len(lock.packages)} packages")
        for package in lock.packages:
            reason = lock.perishable.get(package.name)
            if reason and store.find(package) is None:
                name = f"{package.name} {package.version}"
                lines.append(f"  {name} may not be had again, as {reason}: keep it with --keep")
    return lines


def _remove_unused(folder: Path) -> None:
    """Remove locks and sources that no baseline refers to any more. Locks with a name stay, and git has the others."""
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


def _write(history: History, folder: Path, former: Baselines, acceptance: Acceptance) -> Path:
    """Write the file and the rows in the history: both or neither."""
    sessions = []
    for candidate in acceptance.candidates:
        old, new = former.at(candidate.case), acceptance.baselines.at(candidate.case)
        assert new is not None  # noqa: S101 - it was put there just now
        session = Accepted(
            run_uid=candidate.run,
            case=candidate.case,
            former=old.case if old else candidate.case,
            machine_key=former.machine_key,
            current_runs=frozenset(session.run for session in new.sessions),
            at=new.accepted_at,
            by=new.accepted_by,
            reason=new.reason,
        )
        sessions.append(session)
    path = baseline.path_of(folder, former.machine_key)
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
            baseline.write(folder, former)
        elif written:
            path.unlink()
        raise
    return path
