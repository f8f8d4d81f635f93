"""A session of pytest as the hooks see it: its options, its run, and its tests that measure."""

from __future__ import annotations

import dataclasses
import os
from contextlib import ExitStack, chdir, redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest

from ipexperf import pytest_private, systems
from ipexperf.case import AXES, Case, FunctionCase, NetworkCase
from ipexperf.errors import USAGE_ERROR
from ipexperf.pytest_terminal import Terminal
from ipexperf.steps import Notice

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ipexperf.bench.calls.call import Call
    from ipexperf.compare.walk import Suite
    from ipexperf.history.store import Status
    from ipexperf.plan.arms import ArmSpec
    from ipexperf.plan.gates import GateWish
    from ipexperf.plan.options import Options
    from ipexperf.report.summary import Judged
    from ipexperf.run import Run
    from ipexperf.running.case_judge import Postponed

FIXTURE = "perf"
PROGRAM_FIXTURE = "perf_program"
PLUGIN = "ipexperf.plugin"
"""The module of our fixture."""
XDIST = "pytest-xdist would measure cases at the same time: run ipexperf with -n 0"
COMMAND = "ipexperf-command"
"""The name of the plugin by which a command gives a session its options and arms."""
FUNCTION_AND_MARK = "@pytest.mark.perf names networks: call perf() without a function, or leave the mark out"
UNKNOWN = "pytest did not know that this test measures: make the fixture an argument of the test"
ENDED: Mapping[int, Status] = {pytest.ExitCode.INTERRUPTED: "interrupted", pytest.ExitCode.INTERNAL_ERROR: "failed"}
"""How a run ended, by the exit status of its session."""
LATER_KEY = pytest.StashKey[bool]()
"""Whether a test must run once more, because its case must be measured again."""
CALLED_KEY = pytest.StashKey[bool]()
"""Whether a test called `perf()`."""


@dataclasses.dataclass
class CommandSession:
    """A session of pytest that a command starts: its options, and both arms of `ipexperf ab`. It is a plugin there."""

    options: Options
    arms: tuple[ArmSpec, ArmSpec] | None = None
    suite: Suite | None = None
    """The session that arms repeat, once it was collected."""
    tests: Sequence[str] = ()
    """Its tests that measure functions."""
    __name__ = COMMAND

    def run(self, arguments: Sequence[str]) -> int:
        """Run the session with these arguments of pytest. Returns its exit status, for an error that of a command."""
        # We are imported already, so pytest could not rewrite our assertions if we had any.
        quiet = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
        status = int(pytest.main([*arguments, *quiet], plugins=[self]))
        return USAGE_ERROR if status == pytest.ExitCode.USAGE_ERROR else status

    def only_test(self, arguments: Sequence[str]) -> tuple[Case, Suite]:
        """Collect the session and run nothing. Returns the case of its one test, and the session for arms."""
        from ipexperf import invocation
        from ipexperf.errors import UsageError

        with redirect_stdout(StringIO()) as output:
            self.run(["--collect-only", "-q", *arguments])
        if self.suite is None or len(self.tests) != 1:
            names = ", ".join(self.tests[:3]) or "none"
            shown = "" if self.suite else f"\n{output.getvalue().strip()}"
            reason = f"one test is measured, and {len(self.tests)} measure functions ({names})"
            raise UsageError(f"behind -- '{' '.join(arguments)}': {reason}{shown}")
        return FunctionCase(self.tests[0], invocation.device_of(self.options)), self.suite

    def collected(self, config: pytest.Config, tests: Sequence[str]) -> None:
        """Keep what was collected."""
        from ipexperf import invocation

        self.suite, self.tests = invocation.suite_of(config, self.options), tests


class PytestSession:
    """What the hooks keep of one session."""

    def __init__(self, config: pytest.Config) -> None:
        from ipexperf.plan import reading

        self.config = config
        self.command: CommandSession | None = config.pluginmanager.get_plugin(COMMAND)
        self.options = (
            self.command.options
            if self.command
            else reading.resolve(lambda name: config.getoption(name, None), config.getini(reading.INI))
        )
        self.terminal = Terminal(config, lambda: self.begun.progress if self.begun else "")
        self.begun: Run | None = None
        """The run, once it is planned."""
        self.problem = ""
        """Why nothing can be measured."""
        self.fails_as_a_whole = False
        self.fed: set[str] = set()
        """The node ids of the tests whose samples pytest-benchmark has."""
        self._record_property: Callable[[str, object], None] | None = None
        """Records a property of the suite in the JUnit file, if there is one."""
        self._models: set[str] | None = None
        """The models that performance tests take. None: there is no such test."""
        self._calls: dict[str, Case] = {}
        """The cases of the tests that measure functions, by node id."""
        self._programs: set[str] = set()
        """The node ids of the tests that measure programs."""

    @property
    def in_xdist(self) -> bool:
        """Whether this is a worker of pytest-xdist."""
        return hasattr(self.config, "workerinput")

    @property
    def run(self) -> Run:
        """The run of this session, planned on first use."""
        if self.begun is None:
            systems.refuse_others(pytest.UsageError)
            from ipexperf import invocation
            from ipexperf.bench import loading
            from ipexperf.errors import UsageError
            from ipexperf.plan import matrix, reading

            self.terminal.fit_pages()
            say = self.terminal.say
            if text := reading.unknown_variables():
                say(Notice(text))
            load = (*loading.installed(say), *self.options.load)
            try:
                self.begun = invocation.start(dataclasses.replace(self.options, load=load), self.config, say)
            except UsageError as error:
                raise pytest.UsageError(str(error)) from None
            # `--strict-markers` refuses those that nobody declares.
            for axis in AXES:
                for name in matrix.names(axis):
                    self.config.addinivalue_line("markers", f"{name}: cases whose {axis} is {name} (ipexperf)")
        return self.begun

    def choose(self, definition: pytest.Item) -> Sequence[NetworkCase]:
        """The cases of a performance test. Keeps what is wrong as the problem of the session.

        Raised here it would be a collection error. Raised after collection it is one sentence and exit code 4.
        """
        from ipexperf.errors import UsageError

        chosen: Sequence[NetworkCase] = ()
        try:
            plan = self.run.plan
            self.problem = plan.why_empty or self.problem
            if plan.cases:
                from ipexperf.plan import matrix

                arguments, _ = _mark(definition)
                chosen = matrix.selected(plan.cases, arguments, definition.nodeid)
        except (pytest.UsageError, UsageError) as error:
            self.problem = str(error)
        self._models = (self._models or set()).union(case.model for case in chosen)
        return chosen

    def refuse_idle_models(self) -> None:
        """Keep as the problem of the session that no performance test takes a model that was asked for by name.

        An ini file may name it for other tests than those of this session.
        """
        if self.problem or "model" not in self.options.sources:
            return
        taken = self._models if self._models is not None or not self.options.flag("model") else set()
        if taken is not None and (idle := {case.model for case in self.run.plan.cases} - taken):
            advice = "add --pyargs ipexperf.suites, or mark a test with @pytest.mark.perf(models=[...])"
            self.problem = f"no test takes the model {', '.join(sorted(idle))}: {advice}"

    def case(self, item: pytest.Item) -> Case | None:
        """The case of a test, if it has one."""
        case = getattr(getattr(item, "callspec", None), "params", {}).get(FIXTURE)
        return case if isinstance(case, Case) else self._calls.get(item.nodeid)

    def measured(self, item: pytest.Item) -> str:
        """What a test measures, for people. Empty if it measures nothing."""
        case = self.case(item)
        return case.id if case else item.nodeid if item.nodeid in self._programs else ""

    def measures_function(self, item: pytest.Item) -> bool:
        """Whether a test calls `perf`, or a `benchmark` that is ours, with a function."""
        if self.case(item) or not isinstance(item, pytest.Function):
            return False
        if FIXTURE in item.fixturenames and not any(item.iter_markers("perf")):
            return takes_ours(item)
        if not self.options.benchmark:
            return False
        from ipexperf.bench.calls import fixtures

        return "benchmark" in item.fixturenames or fixtures.whole(item)

    def begin(self, session: pytest.Session) -> None:
        """Open the run and announce its cases, if there is anything to measure."""
        from ipexperf.errors import IpexperfError

        networks = any(self.case(item) for item in session.items)
        tests = [item.nodeid for item in session.items if self.measures_function(item)]
        if self.config.option.collectonly:
            if self.command:
                self.command.collected(self.config, tests)
            return
        self._programs = {item.nodeid for item in session.items if takes_ours(item, PROGRAM_FIXTURE)}
        if not (networks or tests or self._programs) or self.in_xdist:
            return
        systems.refuse_others(pytest.UsageError)
        from ipexperf import invocation
        from ipexperf.conduct import interrupts

        # Until pytest ends, because the run is closed after the loop.
        softly = ExitStack()
        softly.enter_context(interrupts.sigterm_as_interrupt())
        self.config.add_cleanup(softly.close)
        try:
            if tests or self._programs:
                self._adopt(tests, alone=not networks)
            expected = [(case, _mark(item)[1]) for item in session.items if (case := self.case(item))]
            self.run.open(expected, invocation.has_place(session))
        except IpexperfError as error:
            self.problem = str(error)
            raise pytest.UsageError(self.problem) from None
        finally:
            self.terminal.clear()

    def _adopt(self, tests: Sequence[str], *, alone: bool) -> None:
        """Have the run measure the functions of these tests too, or `alone`."""
        from ipexperf import invocation

        self._calls = {test: FunctionCase(test, invocation.device_of(self.options)) for test in tests}
        suite = invocation.suite_of(self.config, self.run.options)
        arms = self.command.arms if self.command else None
        self.run.adopt(tuple(self._calls.values()), suite, arms, alone=alone)

    def measure(self, request: pytest.FixtureRequest, case: Case, benchmark: Any, *function: Any, **_: Any) -> None:
        """Measure a case, and make its verdict the outcome of its test. `benchmark` is pytest-benchmark's, if any."""
        from ipexperf.report import ecosystem

        if function:  # the test has the mark, so its case is a network
            request.node.stash[CALLED_KEY] = True
            pytest.fail(FUNCTION_AND_MARK, pytrace=False)
        [judged] = self._judged(request, case.id, lambda: [self.run.measure(case, _mark(request.node)[1])])
        if benchmark is not None:
            ecosystem.feed(benchmark, *judged)
            self.fed.add(request.node.nodeid)
        self._tell([judged], lambda _: self.run.reporter.block(judged))

    def measure_program(self, request: pytest.FixtureRequest, *words: str | Path, **asked: Any) -> None:
        """Measure a program and the numbers that it tells, and make their verdicts the outcome of its test."""
        from ipexperf import invocation
        from ipexperf.compare.programs import Program

        test, options, texts = request.node.nodeid, self.options, list(map(str, words))
        if self.in_xdist or test not in self._programs:
            pytest.fail(XDIST if self.in_xdist else UNKNOWN, pytrace=False)

        def measure() -> list[Judged | Postponed]:
            what = Program.of(texts, options, **asked)
            return self.run.measure_program(what, invocation.device_of(options), _mark(request.node)[1])

        with chdir(self.config.invocation_params.dir):  # a test may have gone into another folder
            judged = self._judged(request, " ".join(texts), measure)
        self._tell(judged, lambda failing: self.run.reporter.program_block(failing, test))

    def _judged(
        self, request: pytest.FixtureRequest, name: str, measure: Callable[[], Sequence[Judged | Postponed]]
    ) -> list[Judged]:
        """The results of a test, in its JUnit properties too. If one comes later, the test runs once more."""
        from ipexperf.errors import IpexperfError
        from ipexperf.report import junit
        from ipexperf.running.case_judge import Postponed

        node = request.node
        node.stash[CALLED_KEY] = True
        if self.config.pluginmanager.hasplugin("junitxml"):
            self._record_property = request.getfixturevalue("record_testsuite_property")
        try:
            results = measure()
        except IpexperfError as error:
            raise pytest.fail.Exception(f"{name}: {error}", pytrace=False) from None  # one sentence, no traceback
        finally:
            self.terminal.clear()
        judged = [result for result in results if not isinstance(result, Postponed)]
        if len(judged) < len(results):
            node.stash[LATER_KEY] = True
            pytest.skip("measured again after the other cases")  # not reported: the test runs once more
        node.user_properties.extend(pair for done in judged for pair in junit.properties(*done))
        return judged

    def _tell(self, judged: Sequence[Judged], block: Callable[[Sequence[Judged]], str]) -> None:
        """Make these verdicts the outcome of their test. `block` explains those that fail."""
        from ipexperf.judge.sentence import sentence

        wish = self.options.inconclusive
        untold = [done for done in judged if done.verdict.untold]
        failing = [done for done in judged if done.verdict.fails or (wish == "fail" and done.verdict.untold)]
        if failing:
            pytest.fail(block(failing), pytrace=False)
        if untold and wish == "skip":
            pytest.skip(f"inconclusive: {sentence(untold[0].verdict)}")

    def finish(self, exitstatus: int) -> int:
        """Close the run, and say in the JUnit file what it says as a whole. Return the exit status of the session.

        A run can fail as a whole although every test passed. pytest then exits with 1.
        """
        if self.begun is None:
            return exitstatus
        run, status = self.begun, exitstatus
        try:
            well = run.finish(ENDED.get(exitstatus, "finished"))
        except KeyboardInterrupt:
            # Signals wait until the run is closed, so the summary is complete.
            status, well = pytest.ExitCode.INTERRUPTED, True
        finally:
            self.terminal.clear()
        settled = run.judge.settled()
        if exitstatus == pytest.ExitCode.OK and not well:
            status, self.fails_as_a_whole = pytest.ExitCode.TESTS_FAILED, True
        if self._record_property is not None:
            from ipexperf.report import junit

            for name, value in junit.of_run(settled.line, run.reporter.ending.trouble, fails=not well):
                self._record_property(name, value)
        return status

    def cannot_tell(self) -> bool:
        """Whether most cases could not be told, and the user wants that to be an exit status."""
        return self.begun is not None and self.options.inconclusive == "exit" and self.begun.judge.settled().untold

    def summary(self, exitstatus: int) -> list[str]:
        """What is printed at the end of the run.

        Nothing if an error ended it before anything was measured: pytest prints that.
        """
        run = self.begun
        if run is None or self.problem or not (run.judge.finished or run.plan.left_out):
            return []
        lines = run.reporter.summary(os.environ, brief=self.config.get_verbosity() < 0)
        failing = [judged.case.id for judged in run.judge.finished if judged.verdict.fails]
        if failing and exitstatus == pytest.ExitCode.OK:  # pytest reports no test as failed
            from ipexperf.report.table import swallowed_lines

            lines += swallowed_lines(failing)
        return lines


def measurement_of_call(request: pytest.FixtureRequest, benchmark: Any) -> Callable[[Call], Any]:
    """The measurement of a test that measures a function. It returns what the function does."""
    from ipexperf.bench.calls.fixtures import TWICE

    session = of(request.config)
    called: list[Call] = []

    def measure(call: Call) -> Any:
        __tracebackhide__ = True
        case = session.case(request.node)
        if case is None:
            pytest.fail(XDIST if session.in_xdist else UNKNOWN, pytrace=False)
        if called:
            pytest.fail(TWICE, pytrace=False)
        called.append(call)
        with chdir(request.config.invocation_params.dir):  # a test may have gone into another folder
            session.measure(request, case, benchmark)  # before: what does not return there would not here
        return call.run()  # so that the test goes on with what the function returns

    return measure


def takes_ours(test: pytest.Metafunc | pytest.Item, name: str = FIXTURE) -> bool:
    """Whether the test's `perf` is our fixture, or overrides and uses it. Other projects may have a `perf` too."""
    for fixture in reversed(pytest_private.definitions(test, name)):
        if fixture.func.__module__ == PLUGIN:
            return True
        if name not in fixture.argnames:
            return False
    return False


def _mark(item: pytest.Item) -> tuple[dict[str, Any], GateWish]:
    """The arguments of a test's mark, and how it wants its case judged."""
    from ipexperf.plan import gates, matrix

    arguments = matrix.mark_arguments(item.iter_markers("perf"), item.nodeid)
    return arguments, gates.wish(arguments, item.nodeid)


SESSION_KEY = pytest.StashKey[PytestSession]()


def of(config: pytest.Config) -> PytestSession:
    """The session of this config."""
    return config.stash[SESSION_KEY]
