"""What was asked for happens, or is refused in one sentence with exit code 4. Choosing is pytest's own business."""

import importlib.util
import re
import sys

import pytest
from plugin_suite import CELL, Suite

from ipexperf.conduct.worker import ask_facts

ID = "{}-fake-fp32-spin-plain"


def refused(result: pytest.RunResult, told: str) -> None:
    """Exit code 4, one sentence, no traceback, and nothing was measured."""
    text = f"{result.stdout.str()}\n{result.stderr.str()}"
    assert result.ret == pytest.ExitCode.USAGE_ERROR, text
    assert told in text
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text
    # pytest's own argument parser says "error:" in the line after its usage.
    assert len(re.findall(r"(?im)^(?:error:(?! usage:)|.*: error:)", text)) == 1, text
    assert " passed" not in text


def test_a_misspelled_variable_is_named_once(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run goes on. Workers, which inherit the variable, repeat nothing."""
    monkeypatch.setenv("IPEXPERF_DEVISE", "2")
    result = suite.run("tiny", "-q")
    result.assert_outcomes(passed=1)
    line = "ignored: there is no variable IPEXPERF_DEVISE (did you mean IPEXPERF_DEVICE?)"
    assert (result.stdout.str() + result.stderr.str()).count(line) == 1
    said = suite.command("show")
    assert (said.ret, said.errlines) == (0, [f"ipexperf: {line}"])


@pytest.mark.torch
def test_an_accelerator_that_is_not_here_is_refused(torch_suite: Suite) -> None:
    """--device xpu without one is refused with what torch says of it: nothing runs on the CPU instead."""
    # Not by importing torch here: pytester takes back every import of its test, and torch bears no second one.
    why_not = ask_facts(sys.executable, {"xpu": 0}).accelerators["xpu"]
    if not why_not:
        pytest.skip("there is an XPU here")
    result = torch_suite.raw("--device", "xpu")
    refused(result, f"--device xpu: xpu cannot run here: {why_not}")
    assert "torch" in why_not


@pytest.mark.skipif(importlib.util.find_spec("xdist") is None, reason="needs pytest-xdist")
def test_nothing_is_measured_under_xdist_where_the_wish_is_in_the_ini_file(suite: Suite) -> None:
    """pytest-xdist is refused as well where the cases come from the ini file: nothing is measured or passed."""
    suite.always(*CELL, f"--perf-load={suite.fake}", "--perf-model=tiny")
    result = suite.raw("-n", "2")
    assert result.ret != 0
    assert " passed" not in result.stdout.str()
    assert "run ipexperf with -n 0" in result.stdout.str() + result.stderr.str()
    assert not (suite.path / "ipexperf.db").exists()


def test_the_ini_file_can_say_it_all(suite: Suite) -> None:
    """Without an option on the command line, the ini file's cases are measured."""
    words = (f"--perf-load={suite.fake}", "--model", "tiny", "--perf-launches=1", "--perf-samples=5")
    suite.always(*CELL, *words, "--perf-seconds=0.05")
    suite.raw().assert_outcomes(passed=1)
    assert suite.launches() == [("tiny", "ok")]


def test_a_case_is_chosen_by_its_id(suite: Suite) -> None:
    """-k with a case's id runs that case and no other; pytest-benchmark is not needed for it."""
    result = suite.run("tiny,other", "-k", ID.format("other"), "-p", "no:benchmark")
    result.assert_outcomes(passed=1, deselected=1)
    assert suite.launches() == [("other", "ok")]


def test_cases_are_chosen_by_their_marks(suite: Suite) -> None:
    """-m knows every axis' value, also where markers are strict."""
    both = (*CELL[:2], "--dtype", "fp32,bf16", *CELL[4:])
    result = suite.run("tiny,segfault", "-m", "fp32 and spin and not segfault", "--perf-without=record", cell=both)
    result.assert_outcomes(passed=1, deselected=3)
    assert "tiny fake infer 1x1 none: round 1 of 1, 1 case" in result.stdout.str()


def test_a_test_measures_the_models_of_its_mark(suite: Suite) -> None:
    """perf(models=[...]) takes these models' cases out of the plan, and a test without it takes all."""
    text = """
        import pytest

        @pytest.mark.perf(models=["tiny"])
        def test_one(perf):
            perf()

        @pytest.mark.perf
        def test_all(perf):
            perf()
    """
    suite.pytester.makepyfile(test_suite=text)
    result = suite.run("tiny,segfault", "--collect-only", "-q")
    lines = [line for line in result.outlines if line.startswith("test_suite.py::")]
    assert lines == [
        f"test_suite.py::test_one[{ID.format('tiny')}]",
        f"test_suite.py::test_all[{ID.format('tiny')}]",
        f"test_suite.py::test_all[{ID.format('segfault')}]",
    ]
    assert not (suite.path / "ipexperf.db").exists()


def test_a_test_without_a_case_is_left_out(suite: Suite) -> None:
    """A test whose models are not in the plan is deselected: it is no skip that somebody would have to explain."""
    marked = "@pytest.mark.perf(models=['{0}'])\ndef test_{0}(perf):\n    perf()\n\n\n"
    text = "import pytest\n\n\n" + marked.format("tiny") + marked.format("segfault")
    suite.pytester.makepyfile(test_suite=text)
    result = suite.run("tiny", "--perf-without=record", "-rs")
    result.assert_outcomes(passed=1, deselected=1)
    assert "no-case" not in result.stdout.str()


def test_the_options_are_documented_by_help(suite: Suite) -> None:
    """`pytest --help` shows the common options, and where all are."""
    from ipexperf.plan.options import OPTIONS

    text = suite.raw("--help").stdout.str()
    assert set(re.findall(r"^ +(--perf-[a-z-]+)", text, re.MULTILINE)) == {
        option.flag for option in OPTIONS if option.common
    }
    assert "All options: ipexperf help options" in text


WATCH = """
import re
import shutil
import sys

import pytest

HEAVY = ("torch", "sqlalchemy", "pandas", "numpy", "scipy", "torchvision", "sklearn", "alembic", "jinja2")


def tell(when):
    print(f"{when}: {sorted(name for name in HEAVY if name in sys.modules)}", file=sys.stderr)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session):
    tell(f"collected {len(session.items)}")


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    tell("ended")
"""


def test_collection_imports_nothing_heavy(torch_suite: Suite) -> None:
    """Planning and collecting cases, real ones too, imports neither torch nor SQLAlchemy, pandas, numpy or scipy."""
    (torch_suite.path / "conftest.py").write_text(WATCH)
    result = torch_suite.fresh("--collect-only", "-q", "--perf-preset", "full")
    if importlib.util.find_spec("torch") is None:
        refused(result, "torch not installed")
        return
    told = [line for line in result.errlines if line.startswith(("collected", "ended"))]
    assert len(told) == 2
    assert not told[0].startswith("collected 0")
    assert all(line.endswith(": []") for line in told), told


def test_somebody_elses_tests_pay_nothing(torch_suite: Suite) -> None:
    """A pytest run without a performance test imports nothing of ours that is heavy, and writes nothing."""
    (torch_suite.path / "conftest.py").write_text(WATCH)
    torch_suite.pytester.makepyfile(test_suite="def test_theirs():\n    assert True\n")
    result = torch_suite.fresh()
    result.assert_outcomes(passed=1)
    assert [line for line in result.errlines if line.startswith(("collected", "ended"))] == [
        "collected 1: []",
        "ended: []",
    ]
    assert "ipexperf" not in result.stdout.str().replace(str(torch_suite.path), "").split("\n\n", 1)[-1]
    assert not list(torch_suite.path.glob("**/*.db"))
