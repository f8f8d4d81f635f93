"""`--device` and its like belong to suites that opt in; an installed ipexperf breaks nobody else's run."""

import importlib.util
import sys
from pathlib import Path

import pytest
from forked_pytest import INSTALLED
from plugin_suite import PATIENCE, SHORT, Suite

from ipexperf.case import AXES

OPT_IN = 'pytest_plugins = ["ipexperf.short_options"]\n'
DECLARES = """
def pytest_addoption(parser):
    for axis in {axes}:
        parser.addoption(f"--{{axis}}", {how})
"""
READS = """
def test_theirs(request):
    for axis in {axes}:
        assert request.config.getoption(f"--{{axis}}") == {value!r}
"""
CHOICE = 'choices=["one", "two"]'
BOTH = ("--device", "fake", "--dtype", "fp32", "--perf-mode", "spin", "--perf-stack", "plain")
needs_xdist = pytest.mark.skipif(importlib.util.find_spec("xdist") is None, reason="needs pytest-xdist")


def run(suite: Suite, *arguments: str) -> pytest.RunResult:
    """Run pytest as a stranger does: the plugin is there, and nothing opts in but the suite itself."""
    plugin = () if INSTALLED else ("-p", "ipexperf.plugin")
    options = (f"--basetemp={suite.path / 'basetemp'}", "-p", "no:hypothesispytest", "-p", "no:anyio", *plugin)
    return suite.servers.run("pytest", (*options, *arguments), suite.path, PATIENCE)


def foreign(path: Path, how: str, value: object, *axes: str, conftest: str = "") -> None:
    """Write a project that declares names of ours for itself."""
    (path / "conftest.py").write_text(conftest + DECLARES.format(axes=axes, how=how))
    (path / "test_suite.py").write_text(READS.format(axes=axes, value=value))


def test_a_foreign_conftest_keeps_its_options(suite: Suite) -> None:
    """They are declared, read and checked as if ipexperf were not there."""
    foreign(suite.path, CHOICE, "one", *AXES)
    result = run(suite, *(text for axis in AXES for text in (f"--{axis}", "one")))
    result.assert_outcomes(passed=1)
    assert not result.stderr.lines


@pytest.mark.parametrize("early", [True, False], ids=["a plugin before ours", "a plugin from the conftest"])
def test_a_foreign_plugin_keeps_its_options(suite: Suite, *, early: bool) -> None:
    """Whether pytest loads it before ours or after."""
    (suite.path / "theirs.py").write_text(DECLARES.format(axes=AXES, how='default=""'))
    (suite.path / "conftest.py").write_text("" if early else 'pytest_plugins = ["theirs"]\n')
    (suite.path / "test_suite.py").write_text(READS.format(axes=AXES, value="x"))
    run(suite, *(("-p", "theirs") if early else ()), *(f"--{axis}=x" for axis in AXES)).assert_outcomes(passed=1)


@needs_xdist
def test_a_foreign_conftest_keeps_its_options_under_xdist(suite: Suite) -> None:
    """The workers of xdist parse them once more."""
    foreign(suite.path, 'default=""', "x", *AXES)
    run(suite, "-n", "2", *(f"--{axis}=x" for axis in AXES)).assert_outcomes(passed=1)


def test_a_suite_that_opts_in_has_both_spellings(suite: Suite) -> None:
    """Both of one axis are added up."""
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(OPT_IN)
    result = run(suite, *suite.load, "--model", "tiny", "--perf-model", "other", *BOTH, *SHORT)
    result.assert_outcomes(passed=2)
    assert sorted(suite.launches()) == [("other", "ok"), ("tiny", "ok")]


def test_a_message_names_the_spelling_that_was_typed(suite: Suite) -> None:
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(OPT_IN)
    for flag in ("--device", "--perf-device"):
        result = run(suite, flag, "gpu")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"*{flag}: unknown device 'gpu': did you mean cuda or xpu?*"])


def test_the_shipped_suites_have_both_spellings_wherever_they_are(suite: Suite) -> None:
    (suite.path / "conftest.py").write_text("")
    result = run(suite, "--pyargs", "ipexperf.suites", "--device", "gpu")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--device: unknown device 'gpu': did you mean cuda or xpu?*"])


def test_a_suite_that_opts_in_leaves_out_a_name_that_is_taken(suite: Suite) -> None:
    """The conftest's own option works, and so do our other short names and our long one."""
    foreign(suite.path, CHOICE, "one", "device", conftest=OPT_IN)
    run(suite, "--device", "one").assert_outcomes(passed=1)
    result = run(suite, "--dtype", "nothing", "--perf-device", "nothing")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*unknown * 'nothing'*"])


def test_help_shows_the_short_names_where_they_are(suite: Suite) -> None:
    for line, shown in (("", False), (OPT_IN, True)):
        (suite.path / "conftest.py").write_text(line)
        text = run(suite, "--help").stdout.str()
        assert "--perf-device=NAMES" in text
        assert ("  --device=NAMES" in text) is shown


def test_a_run_without_the_plugin_is_nobodys_business(suite: Suite) -> None:
    """`-p no:ipexperf` leaves nothing of ours behind, whatever the conftest says. Its process has imported nothing."""
    (suite.path / "conftest.py").write_text(OPT_IN)
    (suite.path / "test_suite.py").write_text("def test_theirs():\n    pass\n")
    command = (sys.executable, "-m", "pytest", "-p", "no:hypothesispytest", "-p", "no:ipexperf")
    suite.pytester.run(*command, timeout=60).assert_outcomes(passed=1)
