"""A session of pytest as an arm: it stands still in each test that measures a function, and is asked as any worker is.

The controller says which tests to run, in which order. Plugins take the session for a worker of pytest-xdist: they
write no reports, and fixtures can give it folders and ports of its own.
"""

from __future__ import annotations

import gc
import os
import random
import sys
import zlib
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ipexperf.bench import registry
from ipexperf.bench.calls import asv, fixtures
from ipexperf.bench.calls.call import AUTO, Call, CallSession
from ipexperf.bench.calls.fixtures import TWICE, Perf, Suite
from ipexperf.bench.cell import Settings
from ipexperf.bench.device import Device
from ipexperf.bench.machine import heap, source
from ipexperf.errors import WorkerError

if TYPE_CHECKING:
    from ipexperf.bench.process.line import Line

ABSENT = ("ipexperf", "ipexperf.plugin", "terminal", "pytest_cov", "stepwise")
"""Plugins that an arm does without: they print, slow down what is timed, or end a session."""
OPTIONS = {
    "collectonly": False,
    "maxfail": 0,
    "continue_on_collection_errors": True,
    "usepdb": False,
    "trace": False,
    "assertmode": "plain",
    "setupshow": False,
    "benchmark_disable": True,
    "benchmark_enable": False,
    "benchmark_only": False,
    "benchmark_skip": False,
}
"""Options of an arm whatever the user's are: it goes through all tests, asks nobody, and asserts as Python does.
pytest-benchmark need not measure, nor warn that it doesn't beside xdist: a suite may make errors of warnings."""
NEVER = "it measured nothing"
SKIPPED, FAILED, MISSING = "skipped", "failed", "missing"


def run(request: Mapping[str, Any], line: Line, standing: Callable[[CallSession, Device], Any]) -> dict[str, Any]:
    """Run the session. Returns what became of the tests after the last one in which it stood."""
    seed("")
    folder = Path(request["folder"])
    places = list(dict.fromkeys(filter(None, (_moved(word, folder) for word in request["args"]))))
    if request["args"] and not places:  # its tree has none of the files that were asked for
        return {"test": None, "gone": []}
    os.chdir(source.moved(folder))
    source.stay()
    os.environ["PYTEST_XDIST_WORKER"] = request["name"]
    options = {**request["options"], **OPTIONS, "basetemp": request["basetemp"]}
    for name in ("rootdir", "inifilename"):
        if options.get(name):
            options[name] = str(source.moved(Path(options[name])))
    # As words, `no:NAME` holds before pytest loads what is installed.
    named = (name for name in request["options"]["plugins"] if name not in ABSENT)
    plugins = (*named, *(f"no:{name}" for name in ABSENT), __name__)
    words = [word for name in plugins for word in ("-p", name)]
    config = pytest.Config.fromdictargs(options, [*words, *places])
    mine = {"workerid": request["name"], "workercount": 2, "testrunuid": request["uid"]}
    config.workerinput = WorkerInput(config, {**request["workerinput"], **mine})  # type: ignore[attr-defined]
    arm = ArmPlugin(request, line, standing)
    config.pluginmanager.register(arm, "ipexperf-arm")
    if request["benchmark"]:
        config.pluginmanager.register(Suite.of(config, arm.measured), "ipexperf-arm-benchmark")
    if (device := registry.devices.get(request["device"])).accelerator:
        device.start(Settings.of(request["settings"]))
    config.hook.pytest_cmdline_main(config=config)
    if arm.error:
        raise WorkerError("error", f"its session of pytest ended: {arm.error}")
    return {"test": None, **arm.passed()}


class WorkerInput(dict[str, Any]):
    """What a plugin told its workers. What it did not tell, for want of pytest-xdist, is most often an option."""

    def __init__(self, config: pytest.Config, told: Mapping[str, Any]) -> None:
        super().__init__(told)
        self._config = config

    def __missing__(self, name: str) -> Any:
        if not hasattr(self._config.option, name):
            raise KeyError(name)
        return getattr(self._config.option, name)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("ipexperf", "options of ipexperf, which an arm has no use for", type="args", default=())


def seed(place: str) -> None:
    """Start the generators of random numbers anew, so that all arms draw the same ones at a place, whatever ran before.

    Else inputs that a test draws would differ, and what functions return could not be compared.
    """
    number = zlib.crc32(place.encode())
    random.seed(number)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(number)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(number)


def _moved(word: str, folder: Path) -> str:
    """A path of the user's command line in the tree that takes the place of the user's. Empty if that lacks it.

    The names of tests behind it are left out: the arm chooses its tests by itself, and pytest knows no test of a file
    that cannot be imported.
    """
    path = folder / word.partition("::")[0]
    if not path.exists():
        return word
    replaced = source.Replaced.of()
    return "" if replaced and replaced.lacks(path) else str(source.moved(path))


def _within(test: str, collector: str) -> bool:
    """Whether a test is in a collector: the whole session has no name, or a dot."""
    return collector in ("", ".") or test.startswith((f"{collector}/", f"{collector}::"))


class ArmPlugin:
    """The plugin of the session."""

    def __init__(self, request: Mapping[str, Any], line: Line, standing: Callable[[CallSession, Device], Any]) -> None:
        self._places = {test: place for place, test in enumerate(request["tests"])}
        self._above = {test[:end] for test in self._places for end in range(len(test)) if test.startswith("::", end)}
        """What these tests are in: files, and modules and classes there."""
        self._device: str = request["device"]
        self._line = line
        self._standing = standing
        self._stood: set[str] = set()
        self._gone: list[tuple[str, str, str]] = []
        """The tests that ended since the last reply without having stood, each with how and why."""
        self.error = ""
        """Why pytest itself came to an end, such as a hook of a conftest that raised."""

    def passed(self) -> dict[str, Any]:
        gone, self._gone = self._gone, []
        return {"gone": gone}

    def pytest_configure(self, config: pytest.Config) -> None:
        for mark in ("perf", *fixtures.MARKS):
            config.addinivalue_line("markers", f"{mark}(...): see ipexperf")

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, Any, None]:
        """Keep the tests that were asked for, in the controller's order, whatever others made of them."""
        yield
        kept = [item for item in items if item.nodeid in self._places]
        items[:] = sorted(kept, key=lambda item: self._places[item.nodeid])

    def pytest_runtestloop(self) -> None:
        """Leave out what was imported from garbage collections, for all tests: they would take most of their time."""
        gc.collect()
        gc.freeze()
        heap.shake()

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self.error = excinfo.exconly().splitlines()[-1]

    @pytest.hookimpl(tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> pytest.CollectReport | None:
        """Import nothing but what the tests that were asked for are in, and say what: it may end the process."""
        if isinstance(collector, pytest.File | asv.Module):
            if collector.nodeid not in self._above:
                return pytest.CollectReport(collector.nodeid, "passed", None, [])
            self._line.write({"at": collector.nodeid})
        return None

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            why = _last_line(report)
            self._gone += [(test, MISSING, why) for test in self._places if _within(test, report.nodeid)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.nodeid in self._stood:
            return
        if hasattr(report, "wasxfail"):
            self._gone.append((report.nodeid, SKIPPED, f"xfail: {report.wasxfail}"))
        elif report.skipped and isinstance(report.longrepr, tuple):
            self._gone.append((report.nodeid, SKIPPED, str(report.longrepr[2]).removeprefix("Skipped: ")))
        elif report.failed:
            self._gone.append((report.nodeid, FAILED, _last_line(report)))
        elif report.when == "teardown":
            self._gone.append((report.nodeid, FAILED, NEVER))

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectstart(self, collector: pytest.Collector) -> None:
        seed(collector.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> None:
        seed(f"{request.node.nodeid} {fixturedef.argname}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        seed(item.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        self._line.write({"at": item.nodeid})
        self._stood.discard(item.nodeid)  # a plugin may run a failed test again

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_timeout_set_timer(self) -> bool:
        """No timer of pytest-timeout. Without the plugin its keys in an ini file would be unknown."""
        return True

    @pytest.fixture
    def perf(self, request: pytest.FixtureRequest) -> Perf:
        return Perf(lambda call: self.stand(call, request.node.nodeid))

    def measured(self, request: pytest.FixtureRequest, fixture: Any) -> Callable[[Call], Any]:
        """The measurement of a test whose suite has a `benchmark`, which gets the samples."""

        def measure(call: Call) -> Any:
            result = self.stand(call, request.node.nodeid)
            if fixture is not None:
                fixtures.feed(fixture, call)
            return result

        return measure

    def stand(self, call: Call, test: str) -> Any:
        """Call the function once, and answer the controller about it until that goes on. Returns its result."""
        if test in self._stood:
            pytest.fail(TWICE, pytrace=False)
        session = CallSession(call)
        self._stood.add(test)
        self._line.write({"ok": True, "test": test, "once": call.once, **self.passed()})
        end = self._line.answer(self._standing(session, _device_of(call, self._device)), "next", "close")
        if end != "next":
            if end:
                self._line.write({"ok": True})
            os._exit(0)
        return session.result


def _device_of(call: Call, usual: str) -> Device:
    """The device that a call is to be waited for."""
    if call.accelerator is None:
        return registry.devices.get("cpu")
    return registry.devices.get(registry.used_accelerator() or usual if call.accelerator == AUTO else call.accelerator)


def _last_line(report: pytest.CollectReport | pytest.TestReport) -> str:
    """What went wrong, in a line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = str(crash.message if crash else report.longreprtext).strip().splitlines() or ["without a word"]
    return (lines[0] if crash else lines[-1]).removeprefix("E ").strip()
