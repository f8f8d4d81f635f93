"""`ipexperf db`: a history as a file, joined with others, checked and cut back."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ipexperf.commands import console
from ipexperf.errors import HistoryError
from ipexperf.units import plural


def add_db(subparsers: console.Subparsers) -> None:
    purpose = "merge, push, prune, check or upgrade a history"
    parser = console.declare(subparsers, "db", purpose, topic=console.HISTORY)
    below = parser.add_subparsers(metavar="merge|push|prune|check|upgrade", required=True)

    def add(name: str, purpose: str, run: console.Command) -> argparse.ArgumentParser:
        subparser = console.declare(below, name, purpose, run)
        console.add_history(subparser)
        return subparser

    merge = add("merge", "copy the runs of other histories into this one", run_merge)
    merge.add_argument("others", type=Path, nargs="+", metavar="OTHER", help="history files; they stay as they are")
    push = add("push", "copy the runs of this history into one on a server", run_push)
    push.add_argument("url", metavar="URL", help="its SQLAlchemy URL, such as postgresql://perf@dbhost/perf")
    prune = add("prune", "list old runs, and with --yes delete them", run_prune)
    prune.add_argument("--before", required=True, metavar="WHEN", help="runs before this UTC date, moment or run")
    prune.add_argument("--samples", action="store_true", help="only their samples: every number of a run stays")
    console.add_baselines(prune, "baselines whose runs stay")
    prune.add_argument("--yes", action="store_true", help="delete; without it nothing is changed")
    add("check", "read every page and every reference", run_check)
    add("upgrade", "bring the schema up to date, after a backup", run_upgrade)


def run_merge(arguments: argparse.Namespace) -> int:
    return _merge(arguments.db, arguments.others, create=False)


def run_push(arguments: argparse.Namespace) -> int:
    from ipexperf.history import sqlite_files

    return _merge(arguments.url, [sqlite_files.path_of(arguments.db)], create=True)


def _merge(target: str, others: Sequence[Path], *, create: bool) -> int:
    """Copy what these files have and the target has not, and say what that was."""
    from ipexperf.history import merging
    from ipexperf.history.store import History

    name = merging.check(target, others)
    with History.open(target, create=create) as history:
        for other in others:
            merged = merging.merge(history, other)
            if not any(merged.values()):
                console.say(f"{other}: nothing that {name} does not have already")
                continue
            continued = merged.pop(merging.CONTINUED)
            shown = {table: count for table, count in merged.items() if count or table not in ("round", "bisection")}
            new = [plural(count, table, "launches" if table == "launch" else "") for table, count in shown.items()]
            went_on = f", and {plural(continued, 'run')} went on" if continued else ""
            console.say(f"{other}: {', '.join(new)} new in {name}{went_on}")
    return 0


def run_check(arguments: argparse.Namespace) -> int:
    from ipexperf.history import schema, sqlite_files

    checked = sqlite_files.check(arguments.db)
    rows = ", ".join(f"{count} {name}" for name, count in checked.rows.items())
    console.say(f"{checked.path}: no fault found, schema {checked.revision}, {checked.bytes} bytes")
    console.say(f"rows: {rows}")
    if checked.unfinished:
        console.say(f"{plural(checked.unfinished, 'run')} did not end: still running, or killed")
    if checked.revision != schema.REVISION:
        console.say(f"this program writes schema {schema.REVISION}: `ipexperf db upgrade` brings it up to date")
    return 0


def run_upgrade(arguments: argparse.Namespace) -> int:
    from ipexperf.history import schema, sqlite_files

    path = sqlite_files.path_of(arguments.db)
    with sqlite_files.opened(path) as connection:
        old = sqlite_files.revision(connection, path)
    console.open_history(arguments).close()
    if old == schema.REVISION:
        console.say(f"{path}: schema {old} is the newest, nothing was done")
    else:
        console.say(f"{path}: schema {old} became {schema.REVISION}; as it was: {path.name}.backup-{old}")
    return 0


def run_prune(arguments: argparse.Namespace) -> int:
    from ipexperf.history.pruning import prune

    with console.open_history(arguments) as history:
        pruned = prune(
            history,
            arguments.before,
            what="samples" if arguments.samples else "runs",
            accepted=_accepted(arguments.baselines),
            delete_them=arguments.yes,
        )
    rows = ", ".join(f"{count} rows of {name}" for name, count in pruned.rows.items())
    done = "deleted" if arguments.yes else "would delete"
    of = "the samples of " if arguments.samples else ""
    console.say(f"{done} {of}{plural(len(pruned.runs), 'run')} before {pruned.before[:19]} ({rows})")
    for uid in pruned.kept:
        console.say(f"kept {uid}: a baseline was accepted from it")
    if not arguments.yes and pruned.runs:
        console.say("nothing was changed: --yes deletes")
    return 0


def _accepted(folder: Path) -> set[str]:
    """The runs that the baselines of a folder are made of."""
    from ipexperf.judge import baseline

    if not folder.is_dir():
        if folder != Path("baselines"):
            raise HistoryError(
                f"there is no folder {folder} of baselines: a run that a baseline needs might be deleted."
            )
        return set()
    return {session.run for file in baseline.every(folder) for case in file.cases for session in case.sessions}


COMMANDS = (add_db,)
