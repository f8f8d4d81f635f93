"""What an invocation of pytest, or a command, hands to its run: options, the session, and the tests of functions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ipexperf import live_baseline, scratch
from ipexperf.environments import make
from ipexperf.errors import LockError, UsageError
from ipexperf.plan import matrix
from ipexperf.plan.values import LOCKS, is_lock
from ipexperf.run import Run

if TYPE_CHECKING:
    import pytest

    from ipexperf.compare.walk import Suite
    from ipexperf.lock import Lock
    from ipexperf.plan.options import Options


def start(options: Options, config: pytest.Config, say: Callable[[str], None]) -> Run:
    """Plan the run of a session with these options. If its tests are only collected, nothing is made for it."""
    started = config.invocation_params
    options = in_its_environment(options, started.dir, say, collecting=config.option.collectonly)
    return Run(options, started.dir, say, started.args, places(config))


def places(config: pytest.Config) -> list[str]:
    """The files and folders that the command line names. None: pytest chose them, and would again."""
    if config.args_source is not config.ArgsSource.ARGS:
        return []
    return ["--pyargs", *config.args] if config.option.pyargs else config.args


def device_of(options: Options) -> str:
    """The one device of functions."""
    devices = options.device or matrix.DEFAULT_DEVICE
    if len(devices) > 1:
        raise UsageError(f"{options.source('device')}: name one device for functions")
    return devices[0]


def suite_of(config: pytest.Config, options: Options) -> Suite:
    """This session, for arms to repeat."""
    from ipexperf.compare.walk import Suite

    values = {name: value for name, value in vars(config.option).items() if _plain(value)}
    del values["file_or_dir"]  # are arguments
    values |= {"rootdir": str(config.rootpath), "inifilename": str(config.inipath) if config.inipath else None}
    folder, workerinput = config.invocation_params.dir, _told_to_workers(config)
    return Suite(folder, tuple(config.args), values, workerinput, benchmark=options.benchmark)


def has_place(session: pytest.Session) -> Callable[[str], bool]:
    """Whether a session would have a test of this name, if there were one.

    That can only be said where its tests were chosen by their place alone.
    """
    config, names = session.config, {item.nodeid for item in session.items}
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    chosen = config.option.keyword or config.option.markexpr or not reporter or reporter.stats.get("deselected")
    files = {item.path for item in session.items}

    def has(test: str) -> bool:
        file, _, name = test.partition("::")
        path = config.rootpath / file
        if chosen or test in names or (path.exists() and path not in files):
            return False
        return any(
            path.is_relative_to(os.path.normpath(config.invocation_params.dir / place))
            and (not part or name.startswith((f"{part}::", f"{part}[")))
            for place, _, part in (argument.partition("::") for argument in config.args)
        )

    return has


def _told_to_workers(config: pytest.Config) -> dict[str, Any]:
    """What the plugins of this session would tell each worker of pytest-xdist, if that is installed."""
    node = SimpleNamespace(config=config, workerinput={})
    hook = getattr(config.hook, "pytest_configure_node", None)
    for plugin in hook.get_hookimpls() if hook else ():
        with suppress(Exception):  # a plugin that wants more of a node than this has nothing to tell
            plugin.function(node=node)
    return {name: value for name, value in node.workerinput.items() if _plain(value)}


def _plain(value: object) -> bool:
    """Whether a value can be sent to another process as it is."""
    if isinstance(value, list | tuple):
        return all(map(_plain, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and _plain(member) for key, member in value.items())
    return value is None or isinstance(value, bool | int | float | str)


@contextmanager
def _blaming(options: Options) -> Iterator[None]:
    """Name the option that asked for a lock in what is wrong with it."""
    try:
        yield
    except LockError as error:
        raise UsageError(f"{options.source('python')}: {error}") from error


def _lock(options: Options) -> Lock | None:
    """The lock in whose environment to measure, if one was named in place of an interpreter."""
    if options.python is None or not (is_lock(options.python) or options.python.startswith(LOCKS)):
        return None
    if not is_lock(options.python):
        raise UsageError(f"{options.source('python')}: '{options.python}' names no lock: say what follows the colon")
    with _blaming(options):
        return live_baseline.lock_named(options.python, options, options.source("python"))


def in_its_environment(
    options: Options, folder: Path, say: Callable[[str], None], *, collecting: bool = False
) -> Options:
    """The options with an interpreter in the place of a lock, whose environment is made if it is missing.

    Variables stay as they are: they belong to the host. Those that the lock has otherwise are named. When tests are
    only collected, nothing is made: raises UsageError if the environment is not there, because another interpreter may
    have other cases.
    """
    lock = _lock(options)
    if lock is None:
        return options
    with _blaming(options):
        make.check_possible(lock)
        cache = scratch.cache(options.cache, folder)
        if collecting and make.find(cache.absolute(), lock) is None:
            raise LockError(
                f"--collect-only makes nothing, and there is no environment of the lock {lock.digest} yet: leave out "
                "--collect-only once"
            )
        python = make.make(cache, lock, say, leasing=options.lease).python
    for name, value in lock.variables:
        if os.environ.get(name) != value:
            say(f"the lock {lock.digest} has {name}={value}, and here it is {os.environ.get(name, 'unset')}")
    return replace(options, python=python)
