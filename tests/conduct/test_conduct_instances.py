"""Several instances at the same time are one launch: it has the numbers of all, and fails if one fails."""

import os
from pathlib import Path

import conduct_play
import pytest

from ipexperf.bench import loading
from ipexperf.bench.cell import Settings
from ipexperf.case import NetworkCase
from ipexperf.conduct import instances, placement
from ipexperf.conduct.conditions import Conditions
from ipexperf.result import Check, Launch

FAKES = tuple(str(Path(__file__).parents[1] / "fakes" / name) for name in ("fake.py", "placed.py"))
CORES = sorted(os.sched_getaffinity(0))

pytestmark = pytest.mark.skipif(len(CORES) < 2, reason="an instance a core, and more than one of them")


def case(model: str) -> NetworkCase:
    return NetworkCase(model, "fake", "fp32", "beside", "plain", 1, 1, data="none")


def run(model: str, seconds: float = 0.2) -> Launch:
    loading.load(FAKES)
    conditions = Conditions(Settings(load=FAKES), timeout=60, samples=5, seconds=seconds)
    return conduct_play.launch(case(model), 0, placement.apply(conditions, case(model), None), accuracy=True)[0]


def check(done: Launch, name: str) -> Check:
    [found] = [found for found in done.proof if found.name == name]
    return found


@pytest.mark.process
def test_two_instances_are_one_launch() -> None:
    """Its samples are the latencies of both, its memory is their sum, and each has its own core."""
    done = run("tiny")
    assert (done.outcome, done.reason) == ("ok", "")
    assert len(done.samples) >= 5
    assert done.block == 1
    assert done.metrics["peak_memory"] == 2 * 64 * 2**20
    assert done.metrics["p50"] == pytest.approx(done.metrics["step_time"], rel=0.5)
    assert check(done, "instance_cores").ok
    assert check(done, "placement").ok
    assert done.accuracy
    assert {"late", "others", "first_step"} <= set(done.gate)
    # Two that answer at the same time answer more than one could: each waits for no other.
    assert done.metrics["throughput"] <= 2 / min(sample.wall for sample in done.samples)
    assert ("p99" in done.metrics) == (not any(note.startswith("no p99") for note in done.notes))


@pytest.mark.process
def test_the_death_of_one_instance_fails_the_launch() -> None:
    """The reason names the instance, and no number is left."""
    done = run("half_dead", seconds=1.0)
    assert (done.outcome, done.reason) == ("crashed", "instance 1: ended with exit status 3")
    assert (done.samples, done.metrics) == ((), {})


@pytest.mark.process
def test_an_instance_that_moves_to_the_cores_of_another_is_detected() -> None:
    """The cores are read again after the measurement."""
    done = run("mover")
    assert not check(done, "placement").ok
    assert not check(done, "instance_cores").ok


def test_a_note_explains_a_missing_p99() -> None:
    """Another note says if only a part of the requests is stored."""
    noted = instances.requests_noted
    assert noted(661) == ["no p99: 661 of the 662 requests that it needs"]
    assert noted(662) == []
    assert noted(5000) == ["4000 of 5000 latencies are kept, evenly spaced; the numbers are of all of them"]
