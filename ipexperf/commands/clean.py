"""`ipexperf clean`: what fills the cache folder, such as the environments made from locks."""

from __future__ import annotations

import argparse
import shutil

from ipexperf.commands import console, planning, progress
from ipexperf.errors import UsageError

AGAIN = {
    "weights": "trained networks",
    "quantised": "quantised networks",
    "checkpoints": "checkpoints of measured networks",
    "peaks": "what this machine can do at most",
    "environments": "packages of locks, downloaded again where they are needed",
    "sources": "accepted files, copied again from a commit or from beside their lock",
}
"""What a run makes again where it needs it, by its folder. The rest stays: results, and packages that no index has."""


def add_clean(subparsers: console.Subparsers) -> None:
    purpose = "show what fills the cache folder, and remove what can be made again"
    parser = console.declare(subparsers, "clean", purpose, run_clean, console.PLAN, "clean weights --yes")
    parser.add_argument("what", metavar="WHAT", nargs="*", help=f"only these: {', '.join(AGAIN)}")
    parser.add_argument("--yes", action="store_true", help="remove it; without this option nothing is changed")
    console.add_cache(parser)
    planning.add_some(parser, "lease")


def run_clean(arguments: argparse.Namespace) -> int:
    from ipexperf import units
    from ipexperf.conduct import lease

    if unknown := set(arguments.what) - AGAIN.keys():
        raise UsageError(f"'{min(unknown)}' is nothing to clean: choose from {', '.join(AGAIN)}")
    folders = sorted(path for path in arguments.cache.glob("*") if path.is_dir())
    removable = [path for path in folders if path.name in (arguments.what or AGAIN)]
    sizes = {  # a file that several environments share counts in each
        path: sum(entry.lstat().st_blocks * 512 for entry in path.rglob("*") if not entry.is_symlink())
        for path in folders
    }
    for path in folders:
        what = AGAIN.get(path.name, "stays: results, or what may not be had again")
        console.say(f"{path.name:<14}{units.size(sizes[path]):>10}  {what}")
    names = ", ".join(path.name for path in removable) or "nothing"
    total = units.size(sum(sizes[path] for path in removable))
    if not arguments.yes:
        console.say(f"nothing was changed: --yes removes {names}, {total}")
        return 0
    with lease.for_work(planning.resolve(arguments).lease, progress.say):  # a run may be using it
        try:
            for path in removable:
                shutil.rmtree(path)
        except OSError as error:
            raise UsageError(f"{arguments.cache} cannot be cleaned: {error}") from None
    console.say(f"removed {names}, {total}")
    return 0


COMMANDS = (add_clean,)
