"""A suite of fake cases for the hosts of a fleet, and the command that measures it."""

from pathlib import Path

ROOT = Path(__file__).parents[3]
FAKES = ROOT / "tests" / "fakes"
SUITE = """
import pytest


@pytest.mark.perf
def test_it(perf):
    perf()
"""
LOAD = ",".join(str(FAKES / name) for name in ("fake.py", "any_machine.py", "fleet_models.py"))
PYTEST = [
    *("pytest", "-p", "ipexperf.short_options", "-p", "no:hypothesispytest", "-p", "no:cacheprovider"),
    *(f"--perf-load={LOAD}", "--device=fake", "--mode=spin", "--stack=plain"),
    *("--perf-launches=1", "--perf-samples=3", "--perf-seconds=0.05", "--perf-without=roof"),
]
MEASURE = [*PYTEST, "--dtype=fp32"]
