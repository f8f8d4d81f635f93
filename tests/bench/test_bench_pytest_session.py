"""What the plugin in an arm's session of pytest tells of tests in which it did not stand."""

from typing import Any, cast

import pytest

from ipexperf.bench.process.session import MISSING, ArmPlugin

TESTS = [
    "a/test_x.py::TestA::test_one",
    "a/test_x.py::TestAB::test_two",
    "a/test_x.pyx::test_three",
    "ab/test_y.py::test_four",
]


@pytest.mark.parametrize(
    ("collector", "lost"),
    [
        ("a/test_x.py::TestA", TESTS[:1]),
        ("a/test_x.py", TESTS[:2]),
        ("a", TESTS[:3]),
        ("ab/test_y.py", TESTS[3:]),
        ("", TESTS),
        (".", TESTS),
    ],
)
def test_what_cannot_be_collected_loses_its_own_tests_alone(collector: str, lost: list[str]) -> None:
    """And not those of a neighbour whose name begins alike."""
    arm = ArmPlugin({"tests": TESTS, "device": "cpu"}, cast("Any", None), cast("Any", None))
    report = pytest.CollectReport(collector, "failed", "E   ValueError: no", [])
    arm.pytest_collectreport(report)
    assert [(test, how) for test, how, _ in arm.passed()["gone"]] == [(test, MISSING) for test in lost]
