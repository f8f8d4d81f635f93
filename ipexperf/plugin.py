"""The pytest hooks. Each calls a room in a few lines. Every pytest run loads this file if ipexperf is installed."""

from __future__ import annotations

import dataclasses
import functools
import os
import shlex
import sys
from contextlib import ExitStack, chdir, nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from ipexperf import pytest_private
from ipexperf.case import AXES, Case
from ipexperf.steps import LiveLine, Notice, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from ipexperf.bench.calls.call import Call
    from ipexperf.plan.gates import GateWish
    from ipexperf.plan.options import Options
    from ipexperf.run import Run

OPTIONS_KEY: pytest.StashKey[Options] = pytest.StashKey()
RUN_KEY: pytest.StashKey[Run] = pytest.StashKey()
ERROR_KEY: pytest.StashKey[str] = pytest.StashKey()
"""Why nothing can be measured."""
MODELS_KEY = pytest.StashKey[frozenset[str]]()
JUNIT_KEY: pytest.StashKey[Callable[[str, object], None]] = pytest.StashKey()
LIVE_KEY: pytest.StashKey[LiveLine] = pytest.StashKey()
LATER_KEY = pytest.StashKey[bool]()
CALLS_KEY: pytest.StashKey[dict[str, Case]] = pytest.StashKey()
"""The cases of the tests that measure functions, by node id."""
CALLED_KEY = pytest.StashKey[bool]()
"""Whether a test called `perf()`."""
NEVER_CALLED = "the test passed without calling perf(), so nothing was measured: call it, or leave the fixture out"
UNKNOWN = "pytest did not know that this test measures: make the fixture an argument of the test"
FED_KEY = pytest.StashKey[set[str]]()
"""The node ids of the tests whose samples pytest-benchmark has."""
SWALLOWED_KEY = pytest.StashKey[list[str]]()
"""The ids of the cases that failed where pytest reports no test as failed."""
FIXTURE = "perf"
SHORT_OPTIONS = "ipexperf.short_options"
"""The plugin whose presence opts in to `--device` beside `--perf-device`."""
SUITES = "ipexperf.suites"
"""The package of the shipped suites, for `pytest --pyargs`."""
XDIST = "pytest-xdist would measure cases at the same time: run ipexperf with -n 0"
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
    if any(word.startswith("--perf-") for word in args):
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
    from ipexperf.plan import reading

    given = config.pluginmanager.get_plugin("ipexperf-given")
    try:
        config.stash[OPTIONS_KEY] = (
            given.options
            if given
            else reading.resolve(lambda name: config.getoption(name, None), config.getini(reading.INI))
        )
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None
    if config.stash[OPTIONS_KEY].benchmark:
        if config.getoption("codspeed", False):
            raise pytest.UsageError(CODSPEED)
        from ipexperf.bench.calls import fixtures

        config.pluginmanager.register(fixtures.Suite.of(config, _of_call), "ipexperf-benchmark")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Plan the run now if an option of ours was given, so that a wrong value ends pytest before collection."""
    options = session.config.stash[OPTIONS_KEY]
    if hasattr(session.config, "workerinput"):
        return
    if any(source.startswith("--") for source in options.sources.values()):
        if getattr(session.config.option, "numprocesses", None):
            raise pytest.UsageError(XDIST)
        _run(session.config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(ids: list[str]) -> None:
    """Refuse performance tests under xdist. Other tests run as usual."""
    if any(XDIST_MARK in name for name in ids):
        raise pytest.UsageError(XDIST)


def _run(config: pytest.Config) -> Run:
    """The run of this session, planned on first use."""
    if RUN_KEY not in config.stash:
        from ipexperf import invocation
        from ipexperf.bench import loading
        from ipexperf.errors import UsageError
        from ipexperf.plan import reading
        from ipexperf.report import lines

        reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and reporter.isatty:
            lines.Page.fit(config.get_terminal_writer().fullwidth)
        say = _teller(config)
        if text := reading.unknown_variables():
            say(Notice(text))
        asked = config.stash[OPTIONS_KEY]
        try:
            config.stash[RUN_KEY] = invocation.start(
                dataclasses.replace(asked, load=(*loading.installed(say), *asked.load)), config, say
            )
        except UsageError as error:
            raise pytest.UsageError(str(error)) from None
        _register_marks(config)
    return config.stash[RUN_KEY]


def _register_marks(config: pytest.Config) -> None:
    """Declare every value of every axis as a marker, because `--strict-markers` refuses others."""
    from ipexperf.plan import matrix

    for axis in AXES:
        for name in matrix.names(axis):
            config.addinivalue_line("markers", f"{name}: cases whose {axis} is {name} (ipexperf)")


def _teller(config: pytest.Config) -> Callable[[str], None]:
    """Return a function that prints a line of progress. With -q only a notice stays on standard output."""

    def say(text: str) -> None:
        reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
        quieter = 0 if isinstance(text, Notice) else -config.get_verbosity()
        if reporter is None or quieter > 1:
            return
        capture: Any = config.pluginmanager.get_plugin("capturemanager")
        with capture.global_and_fixture_disabled() if capture else nullcontext():
            if reporter.isatty and (quieter == 1 or (isinstance(text, Step) and not config.get_verbosity())):
                _live(config, reporter).show(text)
            elif quieter == 1:
                sys.stderr.write(f"  {text}\n")
            else:
                _clear(config)
                reporter.ensure_newline()
                reporter.write_line(f"  {text}", light=True)
                reporter.flush()

    return say


def _live(config: pytest.Config, reporter: Any) -> LiveLine:
    """The live line of the terminal, on a line of its own. Called while nothing is captured."""
    if LIVE_KEY not in config.stash:
        live = config.stash[LIVE_KEY] = LiveLine(
            os.dup(sys.stdout.fileno()), lambda: config.get_terminal_writer().fullwidth, lambda: _run(config).progress
        )
        config.add_cleanup(live.close)
    reporter.ensure_newline()
    if (writer := config.get_terminal_writer()).width_of_current_line:  # the dots of -q
        writer.line()
    reporter.flush()
    return config.stash[LIVE_KEY]


def _clear(config: pytest.Config) -> None:
    """Take the live line away, before pytest writes."""
    if LIVE_KEY in config.stash:
        config.stash[LIVE_KEY].clear()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize a performance test with its cases."""
    if not _takes_ours(metafunc) or not any(metafunc.definition.iter_markers("perf")):
        return  # without a mark it measures a function
    if hasattr(metafunc.config, "workerinput"):
        metafunc.parametrize(FIXTURE, [pytest.param(None, id=XDIST_MARK)], indirect=True)
        return
    from ipexperf.errors import UsageError

    try:
        plan = _run(metafunc.config).plan
        cases, problem = plan.cases, plan.why_empty
    except (pytest.UsageError, UsageError) as error:
        cases, problem = (), str(error)
    if problem:
        # Raised here it would be a collection error. Raised after collection it is one sentence and exit code 4.
        metafunc.config.stash[ERROR_KEY] = problem
    chosen = list(cases)
    if cases:
        from ipexperf.plan import gates, matrix

        try:
            name = metafunc.definition.nodeid
            arguments = matrix.mark_arguments(metafunc.definition.iter_markers("perf"), name)
            gates.wish(arguments, name)
            chosen = matrix.selected(cases, arguments, name)
        except UsageError as error:
            metafunc.config.stash[ERROR_KEY] = str(error)
    chosen_models = [case.model for case in chosen]
    models: frozenset[str] = metafunc.config.stash.get(MODELS_KEY, frozenset[str]()).union(chosen_models)
    metafunc.config.stash[MODELS_KEY] = models
    marks = {case: [pytest_private.mark(getattr(case, axis)) for axis in AXES] for case in chosen}  # for `-m bf16`
    parameters = [pytest.param(case, id=case.id, marks=marks[case]) for case in chosen]
    metafunc.parametrize(FIXTURE, parameters or [pytest.param(None, id=NO_CASE)], indirect=True)


def _takes_ours(test: pytest.Metafunc | pytest.Item) -> bool:
    """Whether the test's `perf` is our fixture, or overrides and uses it. Other projects may have a `perf` too."""
    for fixture in reversed(pytest_private.definitions(test, FIXTURE)):
        if fixture.func.__module__ == __name__:
            return True
        if FIXTURE not in fixture.argnames:
            return False
    return False


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Raise the error that planning left, and deselect performance tests without a case."""
    if ERROR_KEY in config.stash:
        raise pytest.UsageError(config.stash[ERROR_KEY])
    if MODELS_KEY not in config.stash:
        return  # no performance tests
    if "model" in config.stash[OPTIONS_KEY].sources:
        models = config.stash[MODELS_KEY]
        idle = {case.model for case in _run(config).plan.cases if case.model not in models}
        if idle:
            names = ", ".join(sorted(idle))
            raise pytest.UsageError(f"no test takes the model {names}: mark one with @pytest.mark.perf(models=[...])")
    if idle_tests := [item for item in items if NO_CASE in item.name]:
        config.hook.pytest_deselected(items=idle_tests)
        items[:] = [item for item in items if NO_CASE not in item.name]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Iterator[None]:
    """Open the history and announce the cases, if there is anything to measure."""
    from ipexperf.errors import IpexperfError

    wanted = any(_case(item) for item in session.items)
    calls = [item.nodeid for item in session.items if _measures_function(item)]
    if session.config.option.collectonly and (given := session.config.pluginmanager.get_plugin("ipexperf-given")):
        given.collected(session.config, calls)
    if (wanted or calls) and not session.config.option.collectonly and not hasattr(session.config, "workerinput"):
        from ipexperf import invocation
        from ipexperf.conduct import interrupts

        # Until pytest ends, because the run is closed after the loop.
        softly = ExitStack()
        softly.enter_context(interrupts.sigterm_as_interrupt())
        session.config.add_cleanup(softly.close)
        try:
            if calls:
                run = _run(session.config)
                session.config.stash[CALLS_KEY] = invocation.adopt(run, calls, session.config, alone=not wanted)
            _run(session.config).open(_expected(session.items), invocation.has_place(session))
        except IpexperfError as error:
            session.config.stash[ERROR_KEY] = str(error)
            raise pytest.UsageError(str(error)) from None
        finally:
            _clear(session.config)
    return (yield)


def _case(item: pytest.Item) -> Case | None:
    """The case of a test, if it has one."""
    case = getattr(getattr(item, "callspec", None), "params", {}).get(FIXTURE)
    return case if isinstance(case, Case) else item.config.stash.get(CALLS_KEY, {}).get(item.nodeid)


def _measures_function(item: pytest.Item) -> bool:
    """Whether a test calls `perf`, or a `benchmark` that is ours, with a function."""
    if _case(item):
        return False
    if not isinstance(item, pytest.Function):
        return False
    names = item.fixturenames
    if FIXTURE in names and not any(item.iter_markers("perf")):
        return _takes_ours(item)
    if not item.config.stash[OPTIONS_KEY].benchmark:
        return False
    from ipexperf.bench.calls import fixtures

    return "benchmark" in names or fixtures.whole(item)


def _expected(items: list[pytest.Item]) -> Iterator[tuple[Case, GateWish]]:
    """The cases of these tests, each with the wish of its test."""
    from ipexperf.plan import gates, matrix

    for item in items:
        if case := _case(item):
            yield case, gates.wish(matrix.mark_arguments(item.iter_markers("perf"), item.nodeid), item.nodeid)


@pytest.fixture
def perf(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Measure this test's case, or the function that it gives, and record it. Fail if that is wrong or slower."""
    theirs = request.config.pluginmanager.hasplugin("benchmark")  # their fixture gets our samples
    benchmark: Any = request.getfixturevalue("benchmark") if theirs else None
    if hasattr(request, "param"):
        yield functools.partial(_measure, request, request.param, benchmark)
    else:
        from ipexperf.bench.calls.fixtures import Perf

        yield Perf(_of_call(request, benchmark))
    if benchmark is not None and benchmark.stats is None:
        benchmark.skipped = True  # nothing was measured: keep pytest-benchmark from warning


def _of_call(request: pytest.FixtureRequest, benchmark: Any) -> Callable[[Call], Any]:
    """The measurement of a test that measures a function. It returns what the function does."""
    from ipexperf.bench.calls.fixtures import TWICE

    called: list[Call] = []

    def measure(call: Call) -> Any:
        case = _case(request.node)
        if case is None:
            pytest.fail(XDIST if hasattr(request.config, "workerinput") else UNKNOWN, pytrace=False)
        if called:
            pytest.fail(TWICE, pytrace=False)
        called.append(call)
        with chdir(request.config.invocation_params.dir):  # a test may have gone into another folder
            _measure(request, case, benchmark)  # before: what does not return there would not here
        return call.run()  # so that the test goes on with what the function returns

    return measure


def _measure(request: pytest.FixtureRequest, case: Case, benchmark: Any) -> None:
    """Measure a case, and make its verdict the outcome of its test."""
    from ipexperf.errors import IpexperfError
    from ipexperf.plan import gates, matrix
    from ipexperf.report import ecosystem, junit
    from ipexperf.running.case_judge import Postponed

    run, node = _run(request.config), request.node
    node.stash[CALLED_KEY] = True
    if request.config.pluginmanager.hasplugin("junitxml"):
        request.config.stash[JUNIT_KEY] = request.getfixturevalue("record_testsuite_property")
    try:
        gate = gates.wish(matrix.mark_arguments(node.iter_markers("perf"), node.nodeid), node.nodeid)
        answer = run.measure(case, gate)
    except IpexperfError as error:
        text = f"{case.id}: {error}"
        raise pytest.fail.Exception(text, pytrace=False) from None  # one sentence, no traceback
    finally:
        _clear(request.config)
    if isinstance(answer, Postponed):
        node.stash[LATER_KEY] = True
        pytest.skip("measured again after the other cases")  # not reported: the test runs once more
    measurement, verdict = answer
    node.user_properties.extend(junit.properties(measurement, verdict))
    if benchmark is not None:
        ecosystem.feed(benchmark, measurement, verdict)
        request.config.stash.setdefault(FED_KEY, set()).add(node.nodeid)
    wish = run.options.inconclusive if verdict.untold else "pass"
    if verdict.fails or wish == "fail":
        pytest.fail(run.reporter.block(answer), pytrace=False)
    if wish == "skip":
        pytest.skip(f"inconclusive: {verdict.reason}")


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
    ours = config.stash.get(FED_KEY, set[str]())
    return groups if ecosystem.table_requested(map(str, words)) else ecosystem.without_ours(groups, ours)


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_timeout_set_timer(item: pytest.Item) -> bool | None:
    """Set no timer of pytest-timeout for a test that measures: its first one waits for all. `--perf-timeout` holds."""
    return True if _case(item) else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a performance test. If its case must be measured again, report nothing and run it once more at the end."""
    case = _case(item)
    if case is None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = pytest_private.run_protocol(item, nextitem)
    if item.stash.get(LATER_KEY, False):
        del item.stash[LATER_KEY]
        item.session.items.append(item)
    else:
        for report in reports:
            if report.when == "call" and report.passed and not item.stash.get(CALLED_KEY, False):
                report.outcome, report.longrepr = "failed", f"{case.id}: {NEVER_CALLED}"
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
    """Close the run before the JUnit file is written.

    A run can fail as a whole although every test passed. pytest then exits with 1.
    """
    run = session.config.stash.get(RUN_KEY, None)
    if run is not None:
        interrupted = exitstatus == pytest.ExitCode.INTERRUPTED
        broken = exitstatus == pytest.ExitCode.INTERNAL_ERROR
        try:
            well = run.finish("interrupted" if interrupted else "failed" if broken else "finished")
        except KeyboardInterrupt:
            # Signals wait until the run is closed, so the summary is complete.
            session.exitstatus, well = pytest.ExitCode.INTERRUPTED, True
        finally:
            _clear(session.config)
        if not well and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            session.config.stash[SWALLOWED_KEY] = [x.case.id for x in run.judge.finished if x.verdict.fails]
        elif exitstatus == pytest.ExitCode.OK and run.options.inconclusive == "exit":
            from ipexperf.commands.gate import CANNOT_TELL

            session.exitstatus = CANNOT_TELL if run.judge.settled().untold else exitstatus
        if JUNIT_KEY in session.config.stash:
            from ipexperf.report import junit

            for name, value in junit.of_run(run.judge.settled().line, run.reporter.ending.trouble, fails=not well):
                session.config.stash[JUNIT_KEY](name, value)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the summary of the run, unless an error ended it before anything was measured: pytest prints that."""
    run = config.stash.get(RUN_KEY, None)
    if run is not None and (run.judge.finished or run.plan.left_out) and ERROR_KEY not in config.stash:
        terminalreporter.section("ipexperf")
        for line in run.reporter.summary(os.environ):
            terminalreporter.write_line(line)
        if swallowed := config.stash.get(SWALLOWED_KEY, []):
            from ipexperf.report.table import swallowed_lines

            for line in swallowed_lines(swallowed):
                terminalreporter.write_line(line)
