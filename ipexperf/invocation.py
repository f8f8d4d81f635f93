"""One invocation of pytest: the run on this host, or one run for each host of a fleet."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ipexperf import live_baseline, site
from ipexperf.case import Planned, of_test
from ipexperf.errors import LockError, UsageError
from ipexperf.plan import matrix
from ipexperf.plan.values import LOCKS, is_lock
from ipexperf.run import Run

if TYPE_CHECKING:
    import pytest

    from ipexperf.case import Case
    from ipexperf.compare.walk import Suite
    from ipexperf.history.store import Status
    from ipexperf.lock import Lock
    from ipexperf.plan.arms import ArmWords
    from ipexperf.plan.gates import GateWish
    from ipexperf.plan.options import Options

GIVEN = "ipexperf-given"
"""The name of the plugin by which `ab` gives a session its arms."""
SITES = "ipexperf.sites"
"""The entry points by which an installed package starts the runs of an invocation on other hosts."""


@dataclass
class Given:
    """A plugin with the options of a session that a command starts, and with both arms of `ipexperf ab`."""

    options: Options
    arms: tuple[ArmWords, ArmWords] | None = None
    suite: Suite | None = None
    """The session that arms repeat, once it was collected."""
    tests: Sequence[str] = ()
    """Its tests that measure functions."""
    __name__ = GIVEN

    def run(self, arguments: Sequence[str]) -> int:
        """Run the session with these arguments of pytest. Returns its exit status."""
        import pytest

        # We are imported already, so pytest could not rewrite our assertions if we had any.
        quiet = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
        return int(pytest.main([*arguments, *quiet], plugins=[self]))

    def only_test(self, arguments: Sequence[str]) -> tuple[Case, Suite]:
        """Collect the session and run nothing. Returns the case of its one test, and the session for arms."""
        with redirect_stdout(StringIO()) as said:
            self.run(["--collect-only", "-q", *arguments])
        if self.suite is None or len(self.tests) != 1:
            names = ", ".join(self.tests[:3]) or "none"
            told = "" if self.suite else f"\n{said.getvalue().strip()}"
            reason = f"one test is measured, and {len(self.tests)} measure functions ({names})"
            raise UsageError(f"behind -- '{' '.join(arguments)}': {reason}{told}")
        return of_test(self.tests[0], device_of(self.options)), self.suite

    def collected(self, config: pytest.Config, tests: Sequence[str]) -> None:
        """Keep what was collected."""
        self.suite, self.tests = suite_of(config, self.options), tests


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The runs of an invocation on other hosts."""

    runs: dict[str, Run]
    """By host. Hosts that share a matrix have one run, whose name is empty."""
    absent: dict[str, str]
    """The hosts that take no part, each with its reason."""
    close: Callable[[], None]


class Invocation:
    """The runs of an invocation, by the names of their hosts. The name of this host is empty."""

    def __init__(self, options: Options, folder: Path, say: Callable[[str], None], *, collecting: bool = False) -> None:
        """Plan the runs. `collecting`: nothing will be measured, so nothing is made for it."""
        self.options = options
        _check(options)
        self._elsewhere: Elsewhere | None = None
        if options.fleet is None:
            self.runs = {"": Run(in_its_environment(options, folder, say, collecting=collecting), folder, say)}
        else:
            lock = _lock(options)
            sent = options if lock is None else replace(options, python=None)
            self._elsewhere = _start_elsewhere(options)(sent, folder, say, lock, collecting=collecting)
            self.runs = self._elsewhere.runs
        self.cases = tuple(Planned(case, host) for host, run in self.runs.items() for case in run.plan.cases)

    def refuse_empty(self) -> None:
        """Raise UsageError if there is no case for tests of networks."""
        if not self.cases and (reason := next((run.plan.why_empty for run in self.runs.values()), "")):
            raise UsageError(reason)

    def adopt(self, tests: Sequence[str], config: pytest.Config, *, alone: bool) -> dict[str, Case]:
        """Measure the functions of these tests of a session too, or `alone`. Returns their cases."""
        if self._elsewhere is not None:
            raise UsageError(f"{self.options.sources['fleet']}: functions are measured on this host: leave it out")
        calls = {test: of_test(test, device_of(self.options)) for test in tests}
        suite = suite_of(config, self.options)
        given: Given | None = config.pluginmanager.get_plugin(GIVEN)
        self.runs[""].adopt(tuple(calls.values()), suite, given.arms if given else None, alone=alone)
        return calls

    def look_for(self, session: pytest.Session) -> None:
        """Have accepted tests that a session would have, and has not, named at the end."""
        for run in self.runs.values():
            run.has_place = _has_place(session)

    def open(self, command: tuple[str, ...]) -> None:
        """Open the history before anything is measured."""
        first, *others = self.runs.values()
        first.open(command)
        for run in others:
            run.open(command, first)

    def expect(self, cases: Iterable[tuple[Planned, GateWish]]) -> None:
        """Announce the cases that `measure` will be called with."""
        wanted: dict[str, list[tuple[Case, GateWish]]] = {}
        for planned, wish in cases:
            wanted.setdefault(planned.host, []).append((planned.case, wish))
        for host, run in self.runs.items():
            run.expect(wanted.get(host, ()))

    def failing(self) -> list[str]:
        """The ids of the cases whose verdict fails a test."""
        return [
            one.case.id
            for run in self.runs.values()
            for one in run.measurements
            if one.case.uid in run.verdicts and run.verdicts[one.case.uid].fails
        ]

    def finish(self, status: Status) -> bool:
        """Record how each run ended. Returns whether all is well with all of them.

        Whatever one of them raises, Ctrl-C too, the others are closed before it goes on.
        """
        well: list[bool] = []
        with ExitStack() as closing:
            if self._elsewhere is not None:
                closing.callback(self._elsewhere.close)
            for run in reversed(self.runs.values()):
                closing.callback(lambda run: well.append(run.finish(status)), run)
        return all(well) and not self._absent

    @property
    def _absent(self) -> Mapping[str, str]:
        """The hosts that take no part, each with its reason."""
        return self._elsewhere.absent if self._elsewhere else {}

    @property
    def progress(self) -> str:
        """How far the runs are."""
        return "; ".join(str(run.pace) for run in self.runs.values())

    @property
    def worth_telling(self) -> bool:
        """Whether there is anything to summarise."""
        return bool(self._absent) or any(run.measurements or run.plan.left_out for run in self.runs.values())

    def summary(self, environment: Mapping[str, str]) -> list[str]:
        """The lines printed at the end."""
        lines = [f"HOST {host} TOOK NO PART: {reason}" for host, reason in self._absent.items()]
        for host, run in self.runs.items():
            if host:
                lines += ([""] if lines else []) + [f"host {host}"]
            lines += run.summary(environment)
        return lines

    def properties(self, *, well: bool) -> list[tuple[str, str]]:
        """The JUnit properties of the runs."""
        from ipexperf.report import junit

        return [
            (f"{name}@{host}" if host else name, value)
            for host, run in self.runs.items()
            for name, value in junit.of_run(run.settled().line, run.trouble, fails=not well)
        ]


def device_of(options: Options) -> str:
    """The one device of functions."""
    devices = options.device or matrix.DEFAULT_DEVICE
    if len(devices) > 1:
        raise UsageError(f"{options.sources['device']}: name one device for functions")
    return devices[0]


def suite_of(config: pytest.Config, options: Options) -> Suite:
    """This session, for arms to repeat."""
    from ipexperf.compare.walk import Suite

    values = {name: value for name, value in vars(config.option).items() if _plain(value)}
    del values["file_or_dir"]  # are arguments
    values |= {"rootdir": str(config.rootpath), "inifilename": str(config.inipath) if config.inipath else None}
    place, told = config.invocation_params.dir, _told_to_workers(config)
    return Suite(place, tuple(config.args), values, told, benchmark=options.benchmark)


def _has_place(session: pytest.Session) -> Callable[[str], bool]:
    """Whether a session would have a test of this name, if there were one.

    That can only be said where its tests were chosen by their place alone.
    """
    config, names = session.config, {item.nodeid for item in session.items}
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    chosen = config.option.keyword or config.option.markexpr or not reporter or reporter.stats.get("deselected")
    files = {item.path for item in session.items}

    def has_place(test: str) -> bool:
        file, _, name = test.partition("::")
        path = config.rootpath / file
        if chosen or test in names or (path.exists() and path not in files):
            return False
        return any(
            path.is_relative_to(os.path.normpath(config.invocation_params.dir / place))
            and (not part or name.startswith((f"{part}::", f"{part}[")))
            for place, _, part in (argument.partition("::") for argument in config.args)
        )

    return has_place


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
        return all(isinstance(key, str) and _plain(one) for key, one in value.items())
    return value is None or isinstance(value, bool | int | float | str)


def _check(options: Options) -> None:
    """Raise UsageError for options that make no sense without a fleet."""
    for name, flag in (("hosts", "--perf-hosts"), ("spread", "--perf-spread"), ("resume", "--perf-resume")):
        if options.fleet is None and options.sources.get(name, "").startswith("--"):
            raise UsageError(f"{flag} needs a fleet: name one by --perf-fleet ADDRESS")


def _start_elsewhere(options: Options) -> Callable[..., Elsewhere]:
    """What starts the runs on the hosts of a fleet."""
    for point in importlib.metadata.entry_points(group=SITES, name="fleet"):
        start: Callable[..., Elsewhere] = point.load()
        return start
    missing = "no installed package measures on a fleet: its entry points come with `pip install ipexperf`"
    raise UsageError(f"{options.sources['fleet']}: {missing}")


@contextmanager
def _blaming(options: Options) -> Iterator[None]:
    """Name the option that asked for a lock in what is wrong with it."""
    try:
        yield
    except LockError as error:
        raise UsageError(f"{options.sources['python']}: {error}") from error


def _lock(options: Options) -> Lock | None:
    """The lock in whose environment to measure, if one was named in place of an interpreter."""
    if options.python is None or not (is_lock(options.python) or options.python.startswith(LOCKS)):
        return None
    if not is_lock(options.python):
        raise UsageError(f"{options.sources['python']}: '{options.python}' names no lock: say what follows the colon")
    with _blaming(options):
        return live_baseline.lock_named(options.python, options, options.sources["python"])


def in_its_environment(
    options: Options, folder: Path, say: Callable[[str], None], *, collecting: bool = False
) -> Options:
    """The options with an interpreter in the place of a lock, whose environment is made if it is missing."""
    lock = _lock(options)
    if lock is None:
        return options
    with _blaming(options):
        return site.in_environment(options, lock, folder, say, collecting=collecting)
