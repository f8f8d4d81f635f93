"""The pytest hooks. Each calls a room in a few lines. Every pytest run loads this file if ipexperf is installed."""

from __future__ import annotations

import functools
import os
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from ipexperf import pytest_private, pytest_session, systems
from ipexperf.case import AXES
from ipexperf.pytest_session import CALLED_KEY, FIXTURE, LATER_KEY, SESSION_KEY, XDIST, PytestSession

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

NEVER_CALLED = "the test passed without calling perf(), so nothing was measured: call it, or leave the fixture out"
SHORT_OPTIONS = "ipexperf.short_options"
"""The plugin whose presence opts in to `--device` beside `--perf-device`."""
SUITES = "ipexperf.suites"
"""The package of the shipped suites, for `pytest --pyargs`."""
CODSPEED = "--codspeed measures by itself: leave it or --perf-benchmark out"
XDIST_MARK = "ipexperf-without-xdist"
"""Parameter id of performance tests in a worker of xdist. The controller refuses tests with it."""
NO_CASE = "ipexperf-no-case"
"""Parameter id of a performance test without a case in the plan. It is deselected."""


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the options, on the command line and in the ini file."""
    from ipexperf.plan import reading

    # Now: pytest may parse the command line before it calls another hook.
    config: Any = pluginmanager.get_plugin("pytestconfig")
    reading.refuse_valueless(map(str, config.invocation_params.args))
    reading.add_to_pytest(parser)
    parser.addini(
        reading.INI, "options of ipexperf for each run: --perf-model=... --perf-mode=...", type="args", default=()
    )


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None, Any, Any]:
    """Declare short spellings such as `--device`, once every conftest has declared its own.

    Only if one of them opted in, or for our suites. Also refuse a misspelled option of ours, or a short one without its
    value: pytest would print its usage.
    """
    result = yield
    from ipexperf.plan import reading

    plugins = early_config.pluginmanager
    if plugins.has_plugin(SHORT_OPTIONS) or any(word.startswith(SUITES) for word in args):
        plugins.import_plugin(SHORT_OPTIONS)  # else pytest warns when a conftest names it later
        if short := reading.add_short_to_pytest(parser):
            reading.refuse_valueless(args, short)
    if any(word.startswith("--") for word in args):
        reading.refuse_unknown(parser.parse_known_and_unknown_args(args)[1])
    return result


def pytest_configure(config: pytest.Config) -> None:
    """Parse the options."""
    config.addinivalue_line(
        "markers",
        "perf(models, own, tolerance, gate): the models that a performance test measures, own=True for "
        "your own; with --perf-against, the slowdown to ignore; the metrics "
        "that fail it, as --perf-gate",
    )
    from ipexperf.errors import UsageError

    try:
        session = config.stash[SESSION_KEY] = PytestSession(config)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None
    if session.options.benchmark:
        if config.getoption("codspeed", False):
            raise pytest.UsageError(CODSPEED)
        systems.refuse_others(pytest.UsageError)
        from ipexperf.bench.calls import fixtures

        suite = fixtures.Suite.of(config, pytest_session.measurement_of_call)
        config.pluginmanager.register(suite, "ipexperf-benchmark")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Plan the run now if an option of ours was given, so that a wrong value ends pytest before collection."""
    ours = pytest_session.of(session.config)
    if ours.in_xdist:
        return
    if any(source.startswith("--") for source in ours.options.sources.values()):
        if getattr(session.config.option, "numprocesses", None):
            raise pytest.UsageError(XDIST)
        _ = ours.run


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(ids: list[str]) -> None:
    """Refuse performance tests under xdist. Other tests run as usual."""
    if any(XDIST_MARK in name for name in ids):
        raise pytest.UsageError(XDIST)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize a performance test with its cases."""
    if not pytest_session.takes_ours(metafunc) or not any(metafunc.definition.iter_markers("perf")):
        return  # without a mark it measures a function
    session = pytest_session.of(metafunc.config)
    if session.in_xdist:
        metafunc.parametrize(FIXTURE, [pytest.param(None, id=XDIST_MARK)], indirect=True)
        return
    parameters = [
        pytest.param(case, id=case.id, marks=[pytest_private.mark(getattr(case, axis)) for axis in AXES])  # `-m bf16`
        for case in session.choose(metafunc.definition)
    ]
    metafunc.parametrize(FIXTURE, parameters or [pytest.param(None, id=NO_CASE)], indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Raise the error that planning left, and deselect performance tests without a case."""
    session = pytest_session.of(config)
    session.refuse_idle_models()
    if session.problem:
        raise pytest.UsageError(session.problem)
    if idle_tests := [item for item in items if NO_CASE in item.name]:
        config.hook.pytest_deselected(items=idle_tests)
        items[:] = [item for item in items if NO_CASE not in item.name]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Iterator[None]:
    """Open the history and announce the cases, if there is anything to measure."""
    pytest_session.of(session.config).begin(session)
    return (yield)


@pytest.fixture
def perf(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Measure this test's case, or the function that it gives, and record it. Fail if that is wrong or slower."""
    theirs = request.config.pluginmanager.hasplugin("benchmark")  # their fixture gets our samples
    benchmark: Any = request.getfixturevalue("benchmark") if theirs else None
    if hasattr(request, "param"):
        yield functools.partial(pytest_session.of(request.config).measure, request, request.param, benchmark)
    else:
        from ipexperf.bench.calls.fixtures import Perf

        yield Perf(pytest_session.measurement_of_call(request, benchmark))
    if benchmark is not None and benchmark.stats is None:
        benchmark.skipped = True  # nothing was measured: keep pytest-benchmark from warning


@pytest.fixture
def perf_program(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Measure a program as a whole, and each number that it tells. Fail if one is worse."""
    return functools.partial(pytest_session.of(request.config).measure_program, request)


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_benchmark_group_stats(config: pytest.Config) -> Generator[None, Any, Any]:
    """Leave our cases out of pytest-benchmark's table, unless one of its display options is given."""
    groups = yield
    from ipexperf.report import ecosystem

    words = [
        *config.getini("addopts"),
        *shlex.split(os.environ.get("PYTEST_ADDOPTS", "")),
        *config.invocation_params.args,
    ]
    ours = pytest_session.of(config).fed
    return groups if ecosystem.table_requested(map(str, words)) else ecosystem.without_ours(groups, ours)


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_timeout_set_timer(item: pytest.Item) -> bool | None:
    """Set no timer of pytest-timeout for a test that measures: its first one waits for all. `--perf-timeout` holds."""
    return True if pytest_session.of(item.config).measured(item) else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a performance test. If its case must be measured again, report nothing and run it once more at the end."""
    measured = pytest_session.of(item.config).measured(item)
    if not measured:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = pytest_private.run_protocol(item, nextitem)
    if item.stash.get(LATER_KEY, False):
        del item.stash[LATER_KEY]
        item.session.items.append(item)
    else:
        for report in reports:
            if report.when == "call" and report.passed and not item.stash.get(CALLED_KEY, False):
                report.outcome, report.longrepr = "failed", f"{measured}: {NEVER_CALLED}"
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_keyboard_interrupt(excinfo: pytest.ExceptionInfo[BaseException]) -> None:
    """Drop frames without a line number: pytest would fail on them. Python 3.11 has them where a loop continues."""
    frame = excinfo.tb
    while frame.tb_next:
        if frame.tb_next.tb_lineno is None:
            frame.tb_next = frame.tb_next.tb_next
        else:
            frame = frame.tb_next


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Close the run before the JUnit file is written."""
    ours = pytest_session.of(session.config)
    session.exitstatus = ours.finish(exitstatus)
    if session.exitstatus == pytest.ExitCode.OK and ours.cannot_tell():
        from ipexperf.commands.gate import CANNOT_TELL

        session.exitstatus = CANNOT_TELL


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
    """Print the summary of the run. If that alone fails, it is an error beside the tests that passed."""
    if lines := pytest_session.of(config).summary(exitstatus):
        if config.get_verbosity() >= 0:
            terminalreporter.section("ipexperf")
        for line in lines:
            terminalreporter.write_line(line)
    if pytest_session.of(config).fails_as_a_whole:
        report = pytest.CollectReport("the run as a whole", "failed", None, None)
        terminalreporter.stats.setdefault("error", []).append(report)
