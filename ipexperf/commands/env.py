"""`ipexperf env list|make|verify|prune`: the environments that are made from the locks of baselines."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf.commands import console, planning, progress
from ipexperf.errors import UsageError

if TYPE_CHECKING:
    from ipexperf.environments.make import Environment
    from ipexperf.lock import Lock

GB = 10**9


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
    planning.add_lease(making)
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


TOPIC = console.PLAN
COMMANDS = (add_env,)
