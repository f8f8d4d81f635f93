"""The pytest hooks: each a few lines that call a room. Loaded by every pytest run where ipexperf is installed."""

from __future__ import annotations

import functools
import os
import shlex
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from ipexperf.case import AXES, Case

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from ipexperf.plan.options import Options
    from ipexperf.run import Run

OPTIONS_KEY: pytest.StashKey[Options] = pytest.StashKey()
RUN_KEY: pytest.StashKey[Run] = pytest.StashKey()
ERROR_KEY: pytest.StashKey[str] = pytest.StashKey()
TAKEN_KEY = pytest.StashKey[frozenset[str]]()
JUNIT_KEY: pytest.StashKey[Callable[[str, object], None]] = pytest.StashKey()
LATER_KEY = pytest.StashKey[bool]()
FED_KEY = pytest.StashKey[set[str]]()
"""The tests whose samples pytest-benchmark was given."""
FIXTURE = "perf"
XDIST = "pytest-xdist would measure cases beside one another: run ipexperf without -n"
XDIST_MARK = "ipexperf-without-xdist"
"""The id that a worker of xdist gives a performance test, for its controller to see and refuse."""
NO_CASE = "ipexperf-no-case"
"""The id of a performance test that no case of the plan belongs to: it is deselected."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declares the options, on the command line and in the ini file."""
    from ipexperf.plan import options

    options.add_arguments(parser.getgroup("ipexperf", "performance regression suite (ipexperf)").addoption)
    for option in options.OPTIONS:
        parser.addini(option.ini, f"default of {option.flag}", default=None)


def pytest_configure(config: pytest.Config) -> None:
    """Reads the options once."""
    config.addinivalue_line(
        "markers",
        "perf(models, own, tolerance): the models that a performance test measures, or those of your own that were "
        "named; with pairs, the slowdown that is nobody's business",
    )
    from ipexperf.errors import UsageError
    from ipexperf.plan import options

    try:
        config.stash[OPTIONS_KEY] = options.resolve(config.getoption, lambda name: _ini(config, name))
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None


def _ini(config: pytest.Config, name: str) -> str | None:
    value = config.getini(name)
    return ",".join(value) if isinstance(value, list) else value or None


def pytest_sessionstart(session: pytest.Session) -> None:
    """Plans at once where the user asked for something of ours, so that a wrong wish ends before collection."""
    options = session.config.stash[OPTIONS_KEY]
    if hasattr(session.config, "workerinput"):
        return
    if any(source.startswith("--") for source in options.sources.values()):
        _refuse_xdist(session.config)
        _run(session.config)


def _refuse_xdist(config: pytest.Config) -> None:
    if getattr(config.option, "numprocesses", None):
        raise pytest.UsageError(XDIST)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(ids: list[str]) -> None:
    """Refuses a performance test that a worker of xdist found; other people's tests go on beside one another."""
    if any(XDIST_MARK in name for name in ids):
        raise pytest.UsageError(XDIST)


def _run(config: pytest.Config) -> Run:
    """The run of this session, planned when it is first needed."""
    if RUN_KEY not in config.stash:
        from ipexperf.errors import UsageError
        from ipexperf.run import Run

        try:
            config.stash[RUN_KEY] = Run(config.stash[OPTIONS_KEY], config.invocation_params.dir, _teller(config))
        except UsageError as error:
            raise pytest.UsageError(str(error)) from None
        _register_marks(config)
    return config.stash[RUN_KEY]


def _register_marks(config: pytest.Config) -> None:
    """Declares every value of every axis as a marker: `-m` refuses undeclared ones where markers are strict."""
    from ipexperf.plan import matrix

    for axis in AXES:
        for name in matrix.names(axis):
            config.addinivalue_line("markers", f"{name}: cases whose {axis} is {name} (ipexperf)")


def _teller(config: pytest.Config) -> Callable[[str], None]:
    """Progress for people: a line for each step of the way, unless pytest was told to be quiet."""

    def say(text: str) -> None:
        reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or config.get_verbosity() < 0:
            return
        capture: Any = config.pluginmanager.get_plugin("capturemanager")
        with capture.global_and_fixture_disabled() if capture else nullcontext():
            reporter.ensure_newline()
            reporter.write_line(f"  {text}", light=True)
            reporter.flush()

    return say


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Gives a performance test its cases."""
    if not _takes_ours(metafunc):
        return
    if hasattr(metafunc.config, "workerinput"):
        metafunc.parametrize(FIXTURE, [pytest.param(None, id=XDIST_MARK)], indirect=True)
        return
    try:
        cases = _run(metafunc.config).plan.cases
    except pytest.UsageError as error:
        # Here it would be one more collection error; said after collection it is exit code 4 and one sentence.
        metafunc.config.stash[ERROR_KEY] = str(error)
        cases = ()
    chosen = list(cases)
    if cases:
        from ipexperf.errors import UsageError
        from ipexperf.plan import matrix

        try:
            name = metafunc.definition.nodeid
            chosen = matrix.taken(cases, matrix.said(metafunc.definition.iter_markers("perf"), name), name)
        except UsageError as error:
            metafunc.config.stash[ERROR_KEY] = str(error)
    chosen_models = [case.model for case in chosen]
    taken: frozenset[str] = metafunc.config.stash.get(TAKEN_KEY, frozenset[str]()).union(chosen_models)
    metafunc.config.stash[TAKEN_KEY] = taken
    parameters = [
        pytest.param(case, id=case.id, marks=[_mark(getattr(case, axis)) for axis in AXES]) for case in chosen
    ]
    metafunc.parametrize(FIXTURE, parameters or [pytest.param(None, id=NO_CASE)], indirect=True)


def _takes_ours(metafunc: pytest.Metafunc) -> bool:
    """Whether the test's `perf` is our fixture, or is made of it: somebody else may have one of that name."""
    # pytest has no public name for it. The last of them is the one that the test gets.
    for fixture in reversed(metafunc._arg2fixturedefs.get(FIXTURE, ())):  # noqa: SLF001
        if fixture.func.__module__ == __name__:
            return True
        if FIXTURE not in fixture.argnames:
            return False
    return False


@functools.cache
def _mark(name: str) -> pytest.Mark:
    """The mark of one value of an axis, shared by all its cases. Not `pytest.mark`, which refuses some names."""
    return pytest.Mark(name, (), {}, _ispytest=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Ends the session with the sentence that planning left behind, or leaves out the tests that have no case."""
    if ERROR_KEY in config.stash:
        raise pytest.UsageError(config.stash[ERROR_KEY])
    if TAKEN_KEY not in config.stash:
        return  # there is no test of ours
    if "model" in config.stash[OPTIONS_KEY].sources:
        taken = config.stash[TAKEN_KEY]
        idle = {case.model for case in _run(config).plan.cases if case.model not in taken}
        if idle:
            names = ", ".join(sorted(idle))
            raise pytest.UsageError(f"no test takes the model {names}: mark one with @pytest.mark.perf(models=[...])")
    if idle_tests := [item for item in items if NO_CASE in item.name]:
        config.hook.pytest_deselected(items=idle_tests)
        items[:] = [item for item in items if NO_CASE not in item.name]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Iterator[None]:
    """Opens the history once it is known that there is something to measure, before any of it is measured."""
    from ipexperf.errors import IpexperfError

    specifications = (getattr(item, "callspec", None) for item in session.items)
    wanted = any(found and isinstance(found.params.get(FIXTURE), Case) for found in specifications)
    if wanted and not session.config.option.collectonly and not hasattr(session.config, "workerinput"):
        try:
            _run(session.config).open(tuple(session.config.invocation_params.args))
            _run(session.config).expect(_expected(session.items))
        except IpexperfError as error:
            raise pytest.UsageError(str(error)) from None
        from ipexperf.conduct import ending

        # Until pytest ends, not until the loop does: the run is closed after it.
        softly = ExitStack()
        softly.enter_context(ending.softly())
        session.config.add_cleanup(softly.close)
    return (yield)


def _expected(items: list[pytest.Item]) -> Iterator[tuple[Case, float | None]]:
    """The cases that these tests measure, each with the tolerance that its test asks for."""
    from ipexperf.plan import matrix

    for item in items:
        case = getattr(getattr(item, "callspec", None), "params", {}).get(FIXTURE)
        if isinstance(case, Case):
            yield case, matrix.tolerance(matrix.said(item.iter_markers("perf"), item.nodeid), item.nodeid)


@pytest.fixture
def perf(request: pytest.FixtureRequest) -> Iterator[Callable[[], None]]:
    """Measures this test's case in fresh worker processes, records it, and fails the test on a known regression."""
    if not hasattr(request, "param"):
        pytest.skip("no case of the plan belongs to this test")
    run = _run(request.config)
    if request.config.pluginmanager.hasplugin("junitxml"):
        request.config.stash[JUNIT_KEY] = request.getfixturevalue("record_testsuite_property")
    benchmark = request.getfixturevalue("benchmark") if request.config.pluginmanager.hasplugin("benchmark") else None

    def measure() -> None:
        from ipexperf.errors import IpexperfError
        from ipexperf.plan import matrix
        from ipexperf.report import ecosystem, junit

        node = request.node
        try:
            tolerance = matrix.tolerance(matrix.said(node.iter_markers("perf"), node.nodeid), node.nodeid)
            found = run.measure(request.param, tolerance)
        except IpexperfError as error:
            told = f"{request.param.id}: {error}"
            raise pytest.fail.Exception(told, pytrace=False) from None  # one sentence, not the chain behind it
        if found is None:
            request.node.stash[LATER_KEY] = True
            pytest.skip("measured again after the other cases")  # nobody is told: the test is run once more
        measurement, verdict = found
        request.node.user_properties.extend(junit.properties(measurement, verdict))
        if benchmark is not None:
            ecosystem.feed(benchmark, measurement, verdict)
            request.config.stash.setdefault(FED_KEY, set()).add(node.nodeid)
        if verdict.fails or (verdict.outcome, run.options.inconclusive) == ("inconclusive", "fail"):
            pytest.fail(run.block(measurement, verdict), pytrace=False)
        if (verdict.outcome, run.options.inconclusive) == ("inconclusive", "skip"):
            pytest.skip(f"inconclusive: {verdict.reason}")

    yield measure
    if benchmark is not None and benchmark.stats is None:
        benchmark.skipped = True  # nothing was measured: pytest-benchmark need not warn about it


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_benchmark_group_stats(config: pytest.Config) -> Generator[None, Any, Any]:
    """Leaves our cases out of pytest-benchmark's table unless it was asked for: they have a table of their own."""
    groups = yield
    from ipexperf.report import ecosystem

    words = [
        *config.getini("addopts"),
        *shlex.split(os.environ.get("PYTEST_ADDOPTS", "")),
        *config.invocation_params.args,
    ]
    ours = config.stash.get(FED_KEY, set[str]())
    return groups if ecosystem.asked(map(str, words)) else ecosystem.others(groups, ours)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Runs a performance test, and tells of it when it is known: one whose case looks slower comes again at the end."""
    found = getattr(item, "callspec", None)
    if found is None or not isinstance(found.params.get(FIXTURE), Case):
        return None
    # pytest has no public name for it; the plugins that run tests again use it too.
    from _pytest.runner import runtestprotocol

    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    if item.stash.get(LATER_KEY, False):
        del item.stash[LATER_KEY]
        item.session.items.append(item)
    else:
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Closes the run with how it ended, before the JUnit file is written.

    A run may fail as a whole where no test did: pytest ends with 1 then.
    """
    run = session.config.stash.get(RUN_KEY, None)
    if run is not None:
        interrupted = exitstatus == pytest.ExitCode.INTERRUPTED
        broken = exitstatus == pytest.ExitCode.INTERNAL_ERROR
        try:
            well = run.finish("interrupted" if interrupted else "failed" if broken else "finished")
        except KeyboardInterrupt:
            # The run is closed: a signal waits until it is. What was measured is told all the same.
            session.exitstatus, well = pytest.ExitCode.INTERRUPTED, True
        if not well and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if JUNIT_KEY in session.config.stash:
            from ipexperf.report import junit

            for name, value in junit.of_run(run.settled().line, run.trouble, fails=not well):
                session.config.stash[JUNIT_KEY](name, value)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Writes the table, what was left out and where to look next."""
    run = config.stash.get(RUN_KEY, None)
    if run is not None and (run.measurements or run.plan.left_out):
        terminalreporter.section("ipexperf")
        for line in run.summary():
            terminalreporter.write_line(line)
        for line in run.for_ci(os.environ):
            terminalreporter.write_line(line)
