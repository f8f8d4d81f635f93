"""Functions that tests measure: sessions of pytest that stand still in each test, alone or beside another arm."""

import json
import os
import re
import subprocess

import pytest
from plugin_suite import CONFTEST, INI, PLUGIN, ROOT, Suite

pytestmark = pytest.mark.process

QUICK = """
import dataclasses

from ipexperf.compare import walk
from ipexperf.conduct import conductor

walk.EFFORT = dataclasses.replace(walk.EFFORT, turns=3, most=3, seconds=0.005)
conductor.LEAST_OF_FUNCTIONS["seconds"] = 0.01
"""
SAMPLES = "ipexperf = --perf-samples=3 --perf-launches=1\n"
LIBRARY = """
def total(count):
    return sum(range(count))
"""
SLOWER = """
def total(count):
    return sum(range(count)) + 0 * sum(range(4 * count))
"""
OTHERWISE = """
def total(count):
    return sum(range(count)) + 1
"""


class Functions:
    """A project with tests of functions."""

    def __init__(self, suite: Suite) -> None:
        self.suite, self.path = suite, suite.path
        (self.path / "pytest.ini").write_text(INI + SAMPLES)
        (self.path / "conftest.py").write_text(CONFTEST + QUICK)
        (self.path / "test_suite.py").unlink()

    def tests(self, text: str, name: str = "test_functions.py") -> None:
        (self.path / name).write_text(text)

    def library(self, text: str) -> None:
        (self.path / "library.py").write_text(text)

    def run(self, *words: str) -> pytest.RunResult:
        return self.suite.raw(*words)

    def anew(self, program: str, *words: str) -> tuple[int, str]:
        """Run pytest or `ipexperf` with only what is installed. Returns its exit status and what it said."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", str(ROOT))
            arguments = (*PLUGIN, *words) if program == "pytest" else words
            ended = self.suite.servers.run(program, arguments, self.path, 300)
        return ended.ret, ended.stdout.str() + ended.stderr.str()

    def commit(self) -> None:
        name = ("-c", "user.name=a", "-c", "user.email=a@b")
        for words in (("init", "-q"), ("add", "-A"), (*name, "commit", "-qm", "one")):
            subprocess.run(["git", *words], cwd=self.path, check=True)

    def outcomes(self) -> dict[str, str]:
        """The verdict on each function, by its test."""
        sql = (
            'SELECT c.test, v.outcome FROM verdict v JOIN series s ON s.id = v.series_id JOIN "case" c '
            "ON c.id = s.case_id WHERE s.metric = 'step_time'"
        )
        return dict(self.suite.query(sql))


@pytest.fixture
def functions(suite: Suite) -> Functions:
    return Functions(suite)


def test_a_function_is_measured_recorded_and_returned(functions: Functions) -> None:
    """By itself: without a mark, the test names no network. Its fixtures and parameters are pytest's own."""
    functions.library(LIBRARY)
    functions.tests(
        "import pytest\nfrom library import total\n\n\n"
        "@pytest.fixture\ndef count(tmp_path):\n    (tmp_path / 'file').write_text('x')\n    return 10\n\n\n"
        "@pytest.mark.parametrize('times', [1, 2])\ndef test_total(perf, count, times):\n"
        "    assert perf(total, times * count) == sum(range(times * count))\n"
    )
    result = functions.run("--junitxml=junit.xml")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["2 functions: 2 recorded, with no baseline yet"])
    assert functions.outcomes() == dict.fromkeys(
        ["test_functions.py::test_total[1]", "test_functions.py::test_total[2]"], "no_baseline"
    )
    shown = functions.suite.command("show", "last", "--full")
    assert shown.ret == 0
    assert "test_functions.py::test_total[2]" in shown.stdout.str()


def test_what_became_slower_beside_a_commit_fails_and_says_why(functions: Functions) -> None:
    """The arm runs the commit's own files, wherever a test goes. The change that the test ran is named, and what is as
    it was passes."""
    functions.library("def other():\n    return 1\n" + LIBRARY)
    functions.tests(
        "from library import total\n\n\ndef test_total(perf, tmp_path, monkeypatch):\n"
        "    monkeypatch.chdir(tmp_path)\n    perf(total, 2000)\n\n\n"
        "def test_same(perf):\n    perf(sorted, range(2000))\n"
    )
    functions.commit()
    functions.library("def other():\n    return 2\n" + SLOWER)
    result = functions.run("--perf-against=git:HEAD", "--perf-max-pairs=4")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["REGRESSED: *", "  differs     library.py:5 *", "slower:", "  test_functions.py::test_total"]
    )
    assert [test for test, outcome in functions.outcomes().items() if outcome == "regressed"] == [
        "test_functions.py::test_total"
    ]
    series = functions.suite.query("SELECT DISTINCT json_extract(params, '$.knobs.against') FROM \"case\"")
    assert set(series) == {("git",), (None,)}  # which goes on beside the next commit


DRAWN = """
import os
import random

import pytest

IMPORTED = random.random()


@pytest.fixture(scope="module")
def shared():
    return random.random()


@pytest.fixture
def own():
    return random.random()


def test_first(perf):
    perf(list, [random.random()])


def test_seeded(perf, own, shared):
    result = perf(list, [IMPORTED, shared, own, random.random()])
    assert len(set(result)) == 4


def test_odd(perf):
    perf(os.urandom, 4)
"""


def test_random_inputs_are_the_same_in_every_process(functions: Functions) -> None:
    """Wherever a test draws them, and whichever tests run before it. What differs all the same is not compared."""
    functions.tests(DRAWN)
    functions.run("--perf-launches=2").assert_outcomes(passed=3)
    accepted = functions.suite.command("baseline", "accept", "last", "--reason", "first")
    assert accepted.ret == 0
    result = functions.run("--perf-launches=2", "-k", "test_seeded or test_odd")
    outcomes = functions.outcomes()
    assert "invalid" not in outcomes.values(), result.stdout.str()
    said = " ".join(result.stdout.str().split())
    odd = "RESULT NOT COMPARED (1): it is another one in each process: test_functions.py::test_odd"
    assert odd in said
    result = functions.run("--perf-against=PLANT=0", "--perf-max-pairs=2")
    said = " ".join(result.stdout.str().split())
    assert odd in said
    assert "OTHER RESULTS" not in said


def test_what_one_arm_lacks_is_named_and_the_others_go_on(functions: Functions) -> None:
    functions.tests(
        "import pytest\n\n\ndef test_old(perf):\n    perf(sum, [1])\n\n\n"
        "def test_broken(perf):\n    raise ValueError('not yet')\n\n\n"
        "def test_skipped(perf):\n    pytest.skip('no card')\n"
    )
    functions.commit()
    functions.tests(
        "import pytest\n\n\ndef test_old(perf):\n    perf(sum, [1])\n\n\n"
        "def test_broken(perf):\n    perf(sum, [2])\n\n\ndef test_new(perf):\n    perf(sum, [3])\n\n\n"
        "def test_skipped(perf):\n    pytest.skip('no card')\n"
    )
    result = functions.run("--perf-against=git:HEAD", "--perf-max-pairs=2")
    result.assert_outcomes(passed=3, skipped=1)
    said = " ".join(result.stdout.str().split())
    assert "the arm of --perf-against: its test failed: ValueError: not yet: test_functions.py::test_broken" in said
    assert "the arm of --perf-against: its test is not there: test_functions.py::test_new" in said


SUITE = """
import pytest

CALLS = []


@pytest.fixture(scope="module")
def data():
    return list(range(1000))


@pytest.mark.benchmark(group="sorting")
def test_call(benchmark, data):
    assert benchmark(sorted, data, reverse=True)[0] == 999
    benchmark.extra_info["size"] = len(data)
    assert benchmark.stats.stats.rounds >= 1


def test_pedantic(benchmark):
    def fresh():
        return ([3, 1, 2],), {}

    assert benchmark.pedantic(sorted, setup=fresh, rounds=5) == [1, 2, 3]


def test_once(benchmark):
    def consume(numbers):
        CALLS.append(1)
        return next(numbers)

    assert benchmark.pedantic(consume, args=(iter([1]),)) == 1
    assert CALLS == [1]


@pytest.mark.benchmark
def test_whole():
    sum(range(100))


def test_plain(data):
    assert len(data) == 1000
"""


def test_a_suite_of_benchmarks_is_measured_as_it_stands(functions: Functions) -> None:
    """Its JSON comes out as before, with our verdicts in it. A function that may run once runs once a process."""
    functions.tests(SUITE)
    result = functions.run("--perf-benchmark", "--benchmark-json=bench.json")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(["4 functions: 4 recorded, with no baseline yet"])
    benchmarks = {x["name"]: x for x in json.loads((functions.path / "bench.json").read_text())["benchmarks"]}
    assert set(benchmarks) == {"test_call", "test_pedantic", "test_once"}
    assert benchmarks["test_call"]["group"] == "sorting"
    assert benchmarks["test_call"]["extra_info"]["size"] == 1000
    assert benchmarks["test_call"]["extra_info"]["verdict"] == "no_baseline"
    assert benchmarks["test_call"]["stats"]["median"] > 0


def test_a_failure_that_its_mark_expects_fails_no_run(functions: Functions) -> None:
    functions.tests(
        "import pytest\n\n\ndef test_it(benchmark):\n    benchmark(sum, [1])\n\n\n"
        "@pytest.mark.xfail(reason='not yet')\ndef test_not_yet(benchmark):\n    benchmark(lambda: 1 / 0)\n"
    )
    result = functions.run("--perf-benchmark")
    result.assert_outcomes(passed=1, xfailed=1)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["NOT MEASURED (1): its test skipped: xfail: not yet: test_functions.py::test_not_yet"])


@pytest.mark.parametrize("against", [(), ("--perf-against=PLANT=0", "--perf-max-pairs=2")])
def test_what_ends_its_process_costs_its_own_test_alone(functions: Functions, against: tuple[str, ...]) -> None:
    """A function does, a test before it measures, one after that, whose neighbour is not blamed, and a whole file."""
    ends = "from test_functions import ARM, os\n\nARM and os._exit(6)\n\n\n"
    alike = "def test_one(perf):\n    perf(sum, [1])\n\n\ntest_two = test_one\n"
    (functions.path / "test_a.py").write_text(ends + alike)
    functions.tests(
        "import os\n\nARM = 'PYTEST_XDIST_WORKER' in os.environ\n\n\n"
        "def test_first(perf):\n    perf(sum, [1])\n\n\n"
        "def test_function(perf):\n    perf(os._exit if ARM else abs, 3)\n\n\n"
        "def test_before(perf):\n    ARM and os._exit(4)\n    perf(sum, [1])\n\n\n"
        "def test_after(perf):\n    perf(sum, [1])\n    ARM and os._exit(5)\n\n\n"
        "def test_last(perf):\n    perf(sum, [1])\n"
    )
    result = functions.run(*against)
    result.assert_outcomes(passed=3, failed=4)
    said = result.stdout.str()
    row = "  test_a.py::test_one\n  test_a.py::test_two\n    crashed: importing test_a.py: ended with exit status 6\n"
    assert row in said
    assert [said.count(f"FAILED: crashed: ended with exit status {status}") for status in (3, 4, 5)] == [1, 1, 0]


def test_a_session_that_cannot_begin_fails_its_tests_with_its_last_words(functions: Functions) -> None:
    """Such as one whose conftest binds the port that the user's own session has. Green would mean: not slower."""
    functions.tests("def test_it(perf):\n    perf(sum, [1])\n")
    functions.commit()
    with (functions.path / "conftest.py").open("a") as conftest:
        conftest.write(
            "\n\ndef pytest_configure(config):\n    if hasattr(config, 'workerinput'):\n"
            "        raise OSError(98, 'Address already in use')\n"
        )
    result = functions.run("--perf-against=git:HEAD", "--perf-max-pairs=2")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*error: its session of pytest ended: OSError: [[]Errno 98] Address already in use"])


def test_what_another_tree_lacks_is_not_taken_from_the_users(functions: Functions) -> None:
    """Such as a module that is not committed yet: with it, both arms would run the same."""
    functions.tests("from new import total\n\n\ndef test_it(perf):\n    perf(total, 10)\n")
    functions.commit()
    (functions.path / "new.py").write_text(LIBRARY)
    (functions.path / "pytest.ini").write_text(f"{INI}{SAMPLES}pythonpath = .\n")
    result = functions.run("--perf-against=git:HEAD", "--perf-max-pairs=2")
    result.assert_outcomes(failed=1)  # nothing was compared, and green would mean: not slower
    said = " ".join(result.stdout.str().split())
    assert "the arm of --perf-against: its test is not there: ModuleNotFoundError: No module named 'new'" in said


@pytest.mark.parametrize("words", [("test_a.py", "test_functions.py::test_old"), ("test_a.py",), ()])
def test_a_test_that_is_new_is_not_measured_and_the_others_are(functions: Functions, words: tuple[str, ...]) -> None:
    """Wherever it stands among them, and whether its file is named or not."""
    functions.tests("def test_old(perf):\n    perf(sum, [1])\n")
    functions.commit()
    functions.library(LIBRARY)
    functions.tests("from library import total\n\n\ndef test_new(perf):\n    perf(total, 5)\n", "test_a.py")
    result = functions.run("--perf-against=git:HEAD", "--perf-max-pairs=2", *words)
    assert result.ret == 0, result.stdout.str()
    said = " ".join(result.stdout.str().split())
    assert "NOT MEASURED (1): the arm of --perf-against: its test is not there: test_a.py::test_new" in said
    assert set(functions.outcomes()) >= ({"test_functions.py::test_old"} if len(words) != 1 else set())


def test_arms_have_folders_and_a_worker_id_of_their_own(functions: Functions) -> None:
    """So a conftest can give each a port, and what an arm removes is its own."""
    functions.tests(
        "def test_it(perf, tmp_path, worker_id):\n    assert perf(sum, [1]) == 1\n"
        "    with open('seen', 'a') as seen:\n        seen.write(f'{worker_id} {tmp_path}\\n')\n"
    )
    functions.commit()
    functions.run("--perf-against=", "--perf-max-pairs=2").assert_outcomes(passed=1)
    seen = [line.split() for line in (functions.path / "seen").read_text().splitlines()]
    assert {name for name, _ in seen} == {"master", "gw0", "gw1"}
    assert len({folder for _, folder in seen}) == len(seen) == 5


TELLING = """
def pytest_addoption(parser):
    parser.addoption("--draw", type=int)


def pytest_configure(config):
    if hasattr(config, "workerinput"):
        assert (config.workerinput["port"], config.workerinput["draw"]) == (80, 7)


def pytest_configure_node(node):
    node.workerinput["port"] = 80
    node.gateway.send("more")
"""


def test_plugins_take_an_arm_for_a_worker_of_xdist_and_get_what_they_told_it(functions: Functions) -> None:
    """Or what they would have told it: mostly an option, as pytest-randomly does."""
    conftest = functions.path / "conftest.py"
    conftest.write_text(conftest.read_text() + TELLING)
    functions.tests("def test_it(perf):\n    perf(sum, [1])\n")
    functions.run("--draw=7").assert_outcomes(passed=1)


def test_accepted_functions_that_the_session_would_have_and_are_gone_are_named(functions: Functions) -> None:
    """Renamed, deleted or with its file. What the selection leaves out is missed by nobody, and no network is."""
    network = "import pytest\n\n\n@pytest.mark.perf(models=['tiny'])\ndef test_net(perf):\n    perf()\n"
    function = "def test_{}(perf):\n    perf(sum, [1])\n\n\n"
    functions.tests(network, "test_net.py")
    functions.tests(function.format("old") + function.format("kept"))
    functions.tests(function.format("gone"), "test_gone.py")
    functions.suite.run("tiny", "--perf-launches", "2").assert_outcomes(passed=4)
    assert functions.suite.command("baseline", "accept", "last", "--reason", "first").ret == 0
    functions.tests(function.format("new") + function.format("kept"))
    (functions.path / "test_gone.py").unlink()
    said = "NOT IN THIS RUN ({}): a baseline was accepted for them here: {}"
    old, gone = "test_functions.py::test_old", "test_gone.py::test_gone"
    stored = "--perf-against=stored"
    assert said.format(2, f"{old}, {gone}") in functions.suite.run("tiny", stored).stdout.str()
    assert said.format(1, old) in functions.suite.run("tiny", stored, "test_net.py", "test_functions.py").stdout.str()
    for words in (("::test_kept",), ("", "-k", "kept or net"), ("", "--deselect", "test_functions.py::test_new")):
        result = functions.suite.run("tiny", stored, "test_net.py", f"test_functions.py{words[0]}", *words[1:])
        assert "1 function" in result.stdout.str()
        assert "NOT IN THIS RUN" not in result.stdout.str()


def test_what_a_baseline_accepted_is_judged_beside_it_when_the_library_changed(functions: Functions) -> None:
    """The main road: accepted once, then edited. No option says what to compare with."""
    functions.library(LIBRARY)
    functions.tests("from library import total\n\n\ndef test_total(perf):\n    perf(total, 2000)\n")
    functions.commit()
    for words in (("pytest", "--perf-launches=2"), ("ipexperf", "baseline", "accept", "last", "--reason", "first")):
        code, said = functions.anew(*words)
        assert code == 0, said
    functions.library(SLOWER)
    code, said = functions.anew("pytest")
    assert code == 1
    assert "REGRESSED: " in said
    assert "differs     library.py:3" in said
    code, said = functions.anew("ipexperf", "report", "--html", "site")
    assert code == 0, said
    assert "over stock fp32" not in next((functions.path / "site" / "cases").glob("*total*.html")).read_text()


def test_what_its_baseline_cannot_run_any_more_is_judged_by_its_numbers(functions: Functions) -> None:
    """Here a file that git ignores has another form. The other tests are judged beside theirs."""
    functions.library(
        "from pathlib import Path\n"
        + LIBRARY
        + "\n\ndef counted():\n    return total(int(Path('count').read_text()))\n"
    )
    functions.tests(
        "from library import counted, total\n\n\ndef test_total(perf):\n    perf(total, 2000)\n\n\n"
        "def test_counted(perf):\n    perf(counted)\n"
    )
    (functions.path / ".gitignore").write_text("count\n")
    (functions.path / "count").write_text("2000")
    functions.commit()
    for words in (("pytest", "--perf-launches=2"), ("ipexperf", "baseline", "accept", "last", "--reason", "first")):
        code, said = functions.anew(*words)
        assert code == 0, said
    (functions.path / "count").write_text("n=2000")
    functions.library(
        "from pathlib import Path\n"
        + LIBRARY
        + "\n\ndef counted():\n    return total(int(Path('count').read_text()[2:]))\n"
    )
    code, said = functions.anew("pytest", "--perf-max-pairs=2")
    assert code == 0, said
    told = " ".join(said.split())
    assert (
        "judged by stored numbers: 1 case: the software of its baseline does not run it: its baseline: its test" in told
    )
    assert "judged live against the lock" in told


def test_ab_compares_any_two_arms_by_tests(functions: Functions) -> None:
    """What follows -- is for pytest. Both arms are those that were named, not what the shell has."""
    functions.tests(
        "import os\n\n\ndef test_it(perf):\n    assert perf(sum, range(int(os.environ.get('COUNT', '9000')))) > 0\n"
    )
    words = ("--a", "COUNT=100", "--b", "COUNT=3000", "--max-pairs", "4")
    result = functions.suite.command("ab", *words, "--", "test_functions.py", "-k", "it", *PLUGIN)
    assert result.ret == 1, result.stdout.str()
    said = result.stdout.str()
    assert "1 function beside COUNT=100: 1 slower" in said
    assert "differs     COUNT: 100 -> " in said
    # Variables come first: another test of this process may have imported torch, which sets one.
    again = r"reproduce   (?:\S+=\S+ )*ipexperf ab --a COUNT=100 --b COUNT=\S+ -- test_functions.py::test_it"
    assert re.search(again, said)


@pytest.mark.long
def test_bisect_names_the_commit_that_made_a_function_slower(functions: Functions) -> None:
    functions.tests(
        "from pathlib import Path\nfrom library import total\n\n\ndef test_total(perf):\n"
        "    perf(total, int(Path(__file__).with_name('count').read_text()))\n"
    )
    (functions.path / "count").write_text("2000")  # git ignores it, and each commit needs it
    (functions.path / ".gitignore").write_text("count\n")
    for text in (LIBRARY, f"{LIBRARY}# one\n", SLOWER, f"{SLOWER}# one\n"):
        functions.library(text)
        functions.commit()
    words = ("bisect", "--commits", "HEAD~3..HEAD", "--max-pairs=4", "--")
    result = functions.suite.command(*words, "test_functions.py")
    assert result.ret == 0, result.stderr.str()
    sha = subprocess.run(["git", "rev-parse", "HEAD~1"], cwd=functions.path, capture_output=True, text=True, check=True)
    result.stdout.fnmatch_lines(["CULPRIT: commit *", f"  commit {sha.stdout[:12]}: one (a, *)"])
    none = functions.suite.command(*words, "test_functions.py", "-k", "nothing")
    assert none.ret == 2
    assert "one test is measured, and 0 measure functions (none)" in none.stderr.str()


OTHER_PLUGINS = """


class Hooks:
    @pytest.hookspec(firstresult=True)
    def pytest_timeout_set_timer(self, item, settings):
        pass


def pytest_addhooks(pluginmanager):
    pluginmanager.add_hookspecs(Hooks)


def pytest_addoption(parser):
    parser.addoption("--codspeed", action="store_true")


def pytest_timeout_set_timer(item):
    raise TimeoutError(item.name)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    item.ihook.pytest_timeout_set_timer(item=item, settings=None)
"""
PAIR = ("--perf-against=PLANT=0", "--perf-max-pairs=2")


@pytest.mark.parametrize("words", [("--benchmark-only", "--benchmark-skip"), ("--setup-show",), ("--sw",)])
def test_options_of_pytest_and_pytest_benchmark_hold_no_arm_up(functions: Functions, words: tuple[str, ...]) -> None:
    functions.tests(
        "import os\n\n\ndef test_fails_there(benchmark):\n    assert 'PYTEST_XDIST_WORKER' not in os.environ\n"
        "    benchmark(sum, [1])\n\n\ndef test_it(benchmark):\n    benchmark(sum, [1])\n"
    )
    result = functions.run("--perf-benchmark", *PAIR, *words)
    result.assert_outcomes(passed=2)
    assert functions.outcomes()["test_functions.py::test_it"] in ("ok", "inconclusive")


def test_other_plugins_neither_end_a_test_that_measures_nor_measure_beside_us(functions: Functions) -> None:
    """The limit of pytest-timeout is for a test, and the first one that measures waits for all."""
    conftest = functions.path / "conftest.py"
    conftest.write_text(f"import pytest\n{conftest.read_text()}{OTHER_PLUGINS}")
    functions.tests("def test_it(benchmark):\n    benchmark(sum, [1])\n\n\ndef test_plain():\n    pass\n")
    functions.run("--perf-benchmark").assert_outcomes(passed=1, errors=1)
    assert functions.outcomes() == {"test_functions.py::test_it": "no_baseline"}
    result = functions.run("--perf-benchmark", "--codspeed")
    assert result.ret == 4
    assert "--codspeed measures by itself: leave it or --perf-benchmark out" in result.stderr.str()


def test_a_conftest_may_load_a_plugin_that_the_command_line_leaves_out(functions: Functions) -> None:
    """As aiohttp does. The arm leaves it out as early as pytest does."""
    with (functions.path / "conftest.py").open("a") as conftest:
        conftest.write("\n\npytest_plugins = ['_hypothesis_pytestplugin']\n")
    functions.tests("def test_it(perf):\n    perf(sum, [1])\n")
    functions.run("-p", "no:hypothesispytest").assert_outcomes(passed=1)


def test_functions_and_xdist_do_not_mix(functions: Functions) -> None:
    functions.tests("def test_it(perf):\n    perf(sum, [1])\n")
    result = functions.run("-n1")
    assert "pytest-xdist would measure cases at the same time" in result.stdout.str() + result.stderr.str()
    assert result.ret != 0


COVERAGE = """
def pytest_addoption(parser):
    parser.addoption("--cov", action="store_true")

def pytest_configure(config):
    assert not hasattr(config, "workerinput"), "coverage in an arm"
"""


def test_coverage_that_an_ini_file_names_is_off_in_arms(functions: Functions) -> None:
    (functions.path / "pytest_cov.py").write_text(COVERAGE)
    (functions.path / "pytest.ini").write_text(f"[pytest]\n{SAMPLES}addopts = -p pytest_cov --cov\n")
    functions.tests("def test_sum(perf):\n    perf(sum, [1, 2])\n")
    code, said = functions.anew("pytest", "--perf-against=ARM=1", "--perf-max-pairs=2", "--perf-tolerance=90%")
    assert (code, "coverage in an arm" in said) == (0, False), said


CORES = """
import os, threading

def spin(): sum(range(50_000))

def note(name):
    with open(name, "a") as file:
        print(os.getpid(), *os.sched_getaffinity(0), file=file)

def several():
    other = threading.Thread(target=spin)
    other.start(), spin(), other.join(), note("several")

def test_alone(perf):
    perf(lambda: (spin(), note("alone")))

def test_several(perf):
    perf(several)

def test_once(perf): perf.pedantic(note, ("once",))
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one core")
def test_arms_take_turns_on_one_core_unless_a_step_has_several_threads(functions: Functions) -> None:
    """Cores differ, so arms that stay on different ones do. What comes before the turns has all cores."""
    functions.tests(CORES)
    functions.run("--perf-against=ARM=1", "--perf-max-pairs=2", "--perf-tolerance=90%")
    lines = [line.split() for line in (functions.path / "alone").read_text().splitlines()]
    cores = {process: [own for other, *own in lines if other == process] for process, *_ in lines}
    assert all(len(seen[0]) > 1 for seen in cores.values())
    few = [one for seen in cores.values() if (one := {own[0] for own in seen if len(own) == 1})]
    assert [len(one) for one in few] == [1, 1, 1, 1]
    assert (few[0], few[2]) == (few[1], few[3])
    assert all(len(line.split()) > 2 for line in (functions.path / "several").read_text().splitlines())
    once = [len(line.split()) > 2 for line in (functions.path / "once").read_text().splitlines()]
    assert once[:4] == [True, True, False, False]
