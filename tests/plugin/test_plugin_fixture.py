"""A fixture called `perf` is ours only where it is our fixture, or one that is made of it."""

import pytest
from plugin_suite import Suite

THEIRS = """
import pytest


@pytest.fixture
def perf():
    return "theirs"
"""
IN_A_CLASS = """
import pytest


class TestTheirs:
    @pytest.fixture
    def perf(self):
        return "theirs"

    def test_it(self, perf):
        assert perf == "theirs"
"""
TEST = """
def test_it(perf):
    assert perf == "theirs"
"""
MADE_OF_OURS = """
import pytest


@pytest.fixture
def perf(perf):
    print("made of ours")
    return perf
"""


@pytest.mark.parametrize(
    ("conftest", "module"),
    [(THEIRS, TEST), ("", IN_A_CLASS), (MADE_OF_OURS, THEIRS + TEST)],
    ids=["conftest", "class", "module over a conftest"],
)
def test_somebody_elses_perf_is_left_alone(suite: Suite, conftest: str, module: str) -> None:
    """A test whose own `perf` overrides ours runs once, as it is: nothing is planned, and nothing is written."""
    (suite.path / "conftest.py").write_text(conftest)
    (suite.path / "test_suite.py").write_text(module)
    # A plan would end this run with exit code 4: there is no torch here.
    result = suite.raw()
    result.assert_outcomes(passed=1)
    assert not list(suite.path.glob("*.db"))


@pytest.mark.parametrize(
    "module",
    [
        'import pytest\n\n\n@pytest.mark.parametrize("perf", [1, 2])\ndef test_it(perf):\n    assert perf in (1, 2)\n',
        f"{THEIRS.replace('fixture', 'fixture(params=[1, 2])')}\n\ndef test_it(perf):\n    assert perf == 'theirs'\n",
    ],
    ids=["parametrised test", "parametrised fixture"],
)
def test_somebody_elses_parameters_stay_theirs(suite: Suite, module: str) -> None:
    """A `perf` with parameters of its own keeps them."""
    (suite.path / "test_suite.py").write_text(module)
    suite.raw().assert_outcomes(passed=2)


def test_a_perf_that_is_made_of_ours_gets_the_cases(suite: Suite) -> None:
    """A fixture that takes our `perf` and gives it on is measured as ours is."""
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(MADE_OF_OURS)
    result = suite.run("tiny,other", "-s")
    result.assert_outcomes(passed=2)
    assert result.stdout.str().count("made of ours") == 2
    assert suite.launches() == [("tiny", "ok"), ("other", "ok")]


def test_theirs_and_ours_live_in_one_run(suite: Suite) -> None:
    """Where one module has its own `perf`, the cases go to the other module's test only."""
    (suite.path / "test_theirs.py").write_text(THEIRS + TEST)
    suite.run("tiny").assert_outcomes(passed=2)
    assert suite.launches() == [("tiny", "ok")]
