"""`--perf-explain`, `ipexperf explain` and `ipexperf nightly`: what a case that became slower leaves behind."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from plugin_suite import INI, Suite
from test_plugin_functions import LIBRARY, OTHERWISE, SAMPLES, SLOWER, Functions

pytestmark = [pytest.mark.long, pytest.mark.process]

TESTS = "import library\n\ndef test_total(perf):\n    perf(library.total, 2000)\n"


@pytest.fixture
def functions(suite: Suite) -> Functions:
    made = Functions(suite)
    made.tests(TESTS)
    made.library(LIBRARY)
    made.commit()
    return made


def dossier(folder: Path) -> dict[str, Any]:
    [path] = folder.glob("test_functions.py_test_total-*/dossier.json")
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def test_a_slower_function_leaves_a_page_a_script_and_both_traces(functions: Functions) -> None:
    functions.library(SLOWER)
    status, said = functions.anew("pytest", "--perf-against=git:HEAD", "--perf-explain=out", "--perf-report=site")
    assert status == 1, said
    [folder] = (functions.path / "out").iterdir()
    assert f"dossier: out/{folder.name}/index.html" in said
    told = dossier(functions.path / "out")
    assert "% slower: " in told["lines"][0] or " times slower: " in told["lines"][0]
    assert told["lines"][1].startswith("What differs: library.py:3 ")
    assert "library.py: total" in told["lines"][2]
    assert {file["name"] for file in told["files"]} == {"a/trace.json.gz", "b/trace.json.gz", "reproduce.py"}
    [(name, difference)] = told["source"]
    assert (name, "-    return sum(range(count))\n+    return sum(range(count)) + 0" in difference) == (
        "library.py",
        True,
    )
    page = (folder / "index.html").read_text()
    assert page.count("<svg") == 2
    assert '<span class="plus">+    return sum(range(count)) + 0' in page
    assert (
        f'href="../../out/{folder.name}/index.html"' in next((functions.path / "site" / "cases").iterdir()).read_text()
    )
    assert "http" not in re.sub(r"http://www.w3.org\S+", "", page), "it loads nothing"
    assert len(told["script"].splitlines()) <= 60
    ended = subprocess.run([sys.executable, folder / "reproduce.py"], capture_output=True, text=True, check=True)
    assert float(re.search(r"b takes ([\d.]+) times", ended.stdout)[1]) > 1.5  # type: ignore[index]


def test_explain_measures_a_case_of_a_run_again_and_writes_its_page_whatever_comes_of_it(functions: Functions) -> None:
    functions.library(SLOWER)
    status, _ = functions.anew("pytest", "--perf-against=git:HEAD")
    assert status == 1
    functions.library(LIBRARY)
    [case] = json.loads(functions.anew("ipexperf", "show", "last", "--json")[1])["cases"]
    name = f"test_functions.py::test_total+against:{dict(case['case']['knobs'])['against']}"
    status, said = functions.anew("ipexperf", "explain", "last", name, "--out", "pages")
    assert status == 0, said
    told = dossier(functions.path / "pages")
    assert told["lines"][1] == "What differs: nothing that is recorded"
    assert "regressed" not in told["lines"][0]


def test_a_case_that_was_judged_by_stored_numbers_has_no_other_arm(suite: Suite) -> None:
    found = suite.run("tiny,unproven", "--perf-explain=out")
    assert found.ret == 1
    found.stdout.fnmatch_lines(
        ["no dossier of unproven-*: it was judged by stored numbers, and no other arm can be traced"]
    )
    assert not (suite.path / "out").exists()


def test_a_night_accepts_what_is_well_and_the_next_one_names_the_edit(functions: Functions) -> None:
    (functions.path / "pytest.ini").write_text(INI + SAMPLES.replace("launches=1", "launches=3"))
    status, said = functions.anew("ipexperf", "nightly", "--folder", "nights")
    assert (status, "1 of 1 case passed" in said) == (0, True), said
    functions.library(OTHERWISE + SLOWER)
    functions.commit()
    status, said = functions.anew("ipexperf", "nightly", "--folder", "nights")
    assert status == 1, said
    told = (functions.path / "nights" / "issues" / "0001.md").read_text()
    assert "# test\\_functions.py::test\\_total" in told
    assert "library.py" in told
    assert "[dossier](../dossiers/" in told


ONCE = "import library\n\ndef test_total(perf):\n    perf.pedantic(library.total, (2000,), rounds=1)\n"


def test_a_call_that_is_made_once_is_not_traced_and_the_page_says_so(functions: Functions) -> None:
    functions.tests(ONCE)
    functions.commit()
    functions.anew("pytest", "--perf-against=git:HEAD", "--perf-max-pairs=2")
    [name] = json.loads(functions.anew("ipexperf", "show", "last", "--json")[1])["cases"]
    case = f"test_functions.py::test_total+against:{dict(name['case']['knobs'])['against']}"
    functions.anew("ipexperf", "explain", "last", case, "--out", "out", "--perf-max-pairs=2")
    assert dossier(functions.path / "out")["missing"] == [f"arm {arm}: a step cannot be run again" for arm in "ab"]


def test_an_error_in_a_dossier_loses_neither_verdict_nor_summary(functions: Functions) -> None:
    functions.library(SLOWER)
    with (functions.path / "conftest.py").open("a") as conftest:
        conftest.write("from ipexperf.dossier import script\nscript.of = None\n")
    status, said = functions.anew("pytest", "--perf-against=git:HEAD", "--perf-explain=out")
    assert status == 1
    assert "no dossier of test_functions.py::test_total: TypeError: " in said
    assert "REGRESSED" in said
    assert functions.suite.statuses() == ["finished"]


def test_arguments_that_make_no_sense_are_no_night(functions: Functions) -> None:
    status, said = functions.anew("ipexperf", "nightly", "--", "--perf-nonsense")
    assert (status, said.splitlines()[-1]) == (
        2,
        "ipexperf: pytest did not take what is behind --, for the reason above",
    )
    assert not (functions.path / "nights").exists()
