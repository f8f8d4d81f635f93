"""`ipexperf db`: a history as a file, joined with others and with what other tools measured, checked and cut back."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf.commands import console
from ipexperf.errors import USAGE_ERROR, HistoryError, UsageError
from ipexperf.units import plural

if TYPE_CHECKING:
    from ipexperf.history import importing


def add_db(subparsers: console.Subparsers) -> None:
    purpose = "merge, import, push, prune, check or upgrade a history"
    parser = console.declare(subparsers, "db", purpose, topic=console.HISTORY, example="db merge night.db")
    below = parser.add_subparsers(metavar="merge|import|push|prune|check|upgrade", required=True)

    def add(name: str, purpose: str, run: console.Command) -> argparse.ArgumentParser:
        subparser = console.declare(below, name, purpose, run)
        console.add_history(subparser)
        return subparser

    merge = add("merge", "copy the runs of other histories into this one", run_merge)
    merge.add_argument("others", type=Path, nargs="+", metavar="OTHER", help="history files; they stay as they are")
    imports = add("import", "copy what other tools measured into this one, made if there is none", run_import)
    imports.add_argument("files", type=Path, nargs="+", metavar="FILE", help="their JSON files, or folders of such")
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


def run_import(arguments: argparse.Namespace) -> int:
    """Import each file that can be read, and say what is wrong with the others."""
    from ipexperf.history import formats, importing
    from ipexperf.history.store import History

    wrong = 0
    with ExitStack() as stack:
        history: History | None = None
        for path in arguments.files:
            found = importing.Counts()
            for file in formats.files(path):
                try:
                    tool, runs = formats.read(file)
                    # Only now, so that nothing but bad files make no history.
                    history = history or stack.enter_context(History.open(arguments.db))
                    found += importing.write(history, tool, runs, file)
                except UsageError as error:  # noqa: PERF203 - the other files are imported
                    console.complain(f"{file}: {error}")
                    wrong += 1
            if any(found):
                console.say(f"{path}: {_found(found)}")
    return USAGE_ERROR if wrong else 0


def _found(counts: importing.Counts) -> str:
    """What an import found, in words."""
    new = f"{plural(counts.new, 'result')} new" if counts.new else "nothing new"
    there = f"{plural(counts.there, 'result')} there already" if counts.there else ""
    lost = f"{counts.left_out} without a number: failed, skipped, or of a benchmark that has changed"
    undated = "the file's own date stands for the run's, which it does not tell" if counts.undated else ""
    return "; ".join(filter(None, (new, there, lost if counts.left_out else "", undated)))


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
            raise HistoryError(f"there is no folder {folder} of baselines: a run that one needs might be deleted.")
        return set()
    return {session.run for file in baseline.every(folder) for case in file.cases for session in case.sessions}


COMMANDS = (add_db,)
