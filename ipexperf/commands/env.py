"""`ipexperf env` and `ipexperf clean`: the environments made from locks, and what else fills the cache folder."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf.commands import console, planning, progress
from ipexperf.errors import UsageError

if TYPE_CHECKING:
    from ipexperf.environments.make import Environment
    from ipexperf.lock import Lock

GB = 10**9
AGAIN = {
    "weights": "trained networks",
    "quantised": "quantised networks",
    "checkpoints": "checkpoints of measured networks",
    "ceilings": "what this machine can do at most",
    "environments": "packages of locks, downloaded again where they are needed",
    "sources": "accepted files, copied again from a commit or from beside their lock",
}
"""What a run makes again where it needs it, by its folder. The rest stays: results, and packages that no index has."""


def add_env(subparsers: console.Subparsers) -> None:
    parser = console.declare(subparsers, "env", "list, make, verify and remove the environments of locks")
    below = parser.add_subparsers(metavar="list|make|verify|prune", required=True)

    def add(name: str, purpose: str) -> argparse.ArgumentParser:
        parser_of = console.declare(below, name, purpose)
        console.add_cache(parser_of)
        console.add_baselines(parser_of, "their folder")
        return parser_of

    add("list", "list the environments and the kept packages, with their sizes").set_defaults(run=run_list)
    making = add("make", "make the environment of a lock, unless it is there")
    lock_help = "a file, the name or the start of the digest of an accepted lock, or shipped:NAME"
    making.add_argument("lock", metavar="LOCK", help=lock_help)
    planning.add_some(making, "lease")
    making.set_defaults(run=run_make)
    other = add("verify", "check that an environment is what its lock says, file by file")
    other.add_argument("lock", metavar="LOCK", nargs="?", help="as for make (default: every environment)")
    other.set_defaults(run=run_verify)
    prune = add("prune", "remove environments and kept packages that no accepted lock needs")
    prune.add_argument("names", metavar="NAME", nargs="*", help="remove these environments, needed or not")
    prune.add_argument(
        "--limit", type=_size, metavar="GB", help="remove the longest unused until at most this much is left"
    )
    prune.set_defaults(run=run_prune)


def _size(text: str) -> int:
    try:
        number = float(text.removesuffix("GB"))
    except ValueError:
        number = -1
    if not 0 <= number < 1e6:
        raise argparse.ArgumentTypeError(f"expected gigabytes such as 30, got '{text}'")
    return round(number * GB)


def _lock(arguments: argparse.Namespace) -> Lock:
    """The lock that a file, a name or the start of a digest names, or one that comes with ipexperf."""
    from ipexperf import lock
    from ipexperf.environments import shipped

    kind, _, name = arguments.lock.partition(":")
    if kind == "shipped":
        return shipped.lock(name)
    path = Path(arguments.lock)
    return lock.read(path) if path.is_file() else lock.find(arguments.baselines, arguments.lock)


def run_list(arguments: argparse.Namespace) -> int:
    """List the environments, the latest used first, and the store."""
    from ipexperf import lock
    from ipexperf.environments import copying, make, shipped

    states = {shipped.lock(name).environment: f"of shipped:{name}" for name in shipped.names()}
    for accepted in lock.every(arguments.baselines):
        states[accepted.environment] = f"of the accepted lock {accepted.name or accepted.digest}"
    environments = make.every(arguments.cache)
    for environment in environments:
        name = environment.folder.name
        state = states.get(name, "of no accepted lock")
        console.say(
            f"{name}  {copying.size(environment.folder) / GB:6.2f} GB  made {environment.made_at[:10]}  {state}"
        )
    kept = make.store_of(arguments.cache).every()
    for package in kept:
        console.say(f"{package.content}  {package.bytes / GB:6.2f} GB  kept {package.name} {package.version}")
    if not environments and not kept:
        console.say(f"there is no environment and no kept package in {arguments.cache}")
    return 0


def run_make(arguments: argparse.Namespace) -> int:
    """Make an environment and print its interpreter."""
    from ipexperf.environments import make

    lock = _lock(arguments)
    make.check_possible(lock)
    console.say(make.make(arguments.cache, lock, progress.say, leasing=planning.resolve(arguments).lease).python)
    return 0


def run_verify(arguments: argparse.Namespace) -> int:
    """Check environments file by file. Prints what is wrong, which makes the exit status 1."""
    from ipexperf.environments import make

    environments: Sequence[Environment] = make.every(arguments.cache)
    if arguments.lock is not None:
        folder = make.folder_of(arguments.cache, _lock(arguments))
        environments = [environment for environment in environments if environment.folder.name == folder.name]
    if not environments:
        raise UsageError(f"there is no such environment in {arguments.cache}: make it with `ipexperf env make LOCK`")
    wrong = 0
    for environment in environments:
        lines = make.verify(environment)
        wrong += bool(lines)
        console.say(f"{environment.folder.name}  {'as its lock says' if not lines else 'DAMAGED'}")
        for line in lines:
            console.say(f"  {line}")
    return 1 if wrong else 0


def run_prune(arguments: argparse.Namespace) -> int:
    """Remove environments and kept packages: those named, those beyond a limit, or those that no lock needs."""
    from ipexperf import lock
    from ipexperf.environments import make

    environments = make.every(arguments.cache)
    if unknown := set(arguments.names) - {item.folder.name for item in environments}:
        raise UsageError(f"there is no environment {min(unknown)} in {arguments.cache}: see `ipexperf env list`")
    accepted = lock.every(arguments.baselines)
    if arguments.names:
        gone = [item for item in environments if item.folder.name in arguments.names]
    elif arguments.limit is not None:
        gone = _beyond(environments, arguments.limit)
    else:
        needed = {item.environment for item in accepted}
        gone = [item for item in environments if item.folder.name not in needed]
    for item in gone:
        make.remove(item)
        console.say(f"removed {item.folder.name}")
    if not arguments.names:
        used = {package.content for item in accepted for package in item.packages}
        for line in make.store_of(arguments.cache).prune(arguments.limit or 0, used):
            console.say(line)
    make.clear_remains(arguments.cache)
    return 0


def _beyond(environments: Sequence[Environment], limit: int) -> list[Environment]:
    """The longest unused environments, without which the others stay within the limit."""
    from ipexperf.environments import copying

    left, gone = 0, []
    for environment in environments:  # the latest used first
        left += copying.size(environment.folder)
        if left > limit:
            gone.append(environment)
    return gone


def add_clean(subparsers: console.Subparsers) -> None:
    parser = console.declare(subparsers, "clean", "show what fills the cache folder, and remove what can be made again")
    parser.add_argument("what", metavar="WHAT", nargs="*", help=f"only these: {', '.join(AGAIN)}")
    parser.add_argument("--yes", action="store_true", help="remove it; without this option nothing is changed")
    console.add_cache(parser)
    planning.add_some(parser, "lease")
    parser.set_defaults(run=run_clean)


def run_clean(arguments: argparse.Namespace) -> int:
    from ipexperf.conduct import lease
    from ipexperf.environments.copying import size
    from ipexperf.report import units

    if unknown := set(arguments.what) - AGAIN.keys():
        raise UsageError(f"'{min(unknown)}' is nothing to clean: choose from {', '.join(AGAIN)}")
    folders = sorted(path for path in arguments.cache.glob("*") if path.is_dir())
    gone = [path for path in folders if path.name in (arguments.what or AGAIN)]
    sizes = {path: size(path) for path in folders}
    for path in folders:
        what = AGAIN.get(path.name, "stays: results, or what may not be had again")
        console.say(f"{path.name:<14}{units.size(sizes[path]):>10}  {what}")
    total = units.size(sum(sizes[path] for path in gone))
    if not arguments.yes:
        console.say(f"nothing was changed: --yes removes {', '.join(path.name for path in gone) or 'nothing'}, {total}")
        return 0
    with lease.for_work(planning.resolve(arguments).lease, progress.say):  # a run may be using it
        try:
            for path in gone:
                shutil.rmtree(path)
        except OSError as error:
            raise UsageError(f"{arguments.cache} cannot be cleaned: {error}") from None
    console.say(f"removed {', '.join(path.name for path in gone) or 'nothing'}, {total}")
    return 0


TOPIC = console.PLAN
COMMANDS = (add_env, add_clean)
