"""A case that does not fit into memory is refused with one sentence before it runs, and the next one runs."""

import dataclasses
from pathlib import Path
from typing import Any

import conduct_play
import pytest

from ipexperf.bench import loading, registry
from ipexperf.case import NetworkCase
from ipexperf.conduct.conductor import Conductor
from ipexperf.errors import WorkerError
from ipexperf.plan.options import Options

pytestmark = pytest.mark.process

SMALL = NetworkCase("eater_of_memory", "fake", "fp32", "spin", "plain", 1, 1, data="none")
LARGE = dataclasses.replace(SMALL, batch=64)
GIB = 2.0**30
REPLY = {"parameters": 1, "flops": 1, "weights": GIB, "examples": GIB, "passing": GIB / 8, "kept": GIB}


class Answering(conduct_play.StandIn):
    """Stands where a worker would look at the network; it never comes to run a case."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.fails: WorkerError | None = None
        self.killed = False

    def ask(self, do: str, **_: Any) -> dict[str, float]:
        self.asked.append(do)
        if do == "footprint" and self.fails is None:
            return REPLY
        raise self.failure

    def send(self, do: str, **_: Any) -> None:
        self.asked.append(do)

    def receive(self) -> None:
        raise self.failure

    def kill(self) -> None:
        self.killed = True

    @property
    def failure(self) -> WorkerError:
        return self.fails or WorkerError("crashed", "it was run")


@pytest.fixture
def worker() -> Answering:
    return Answering()


@pytest.fixture
def conductor(worker: Answering, fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Conductor:
    """A machine of 8 GiB whose fake device lies in its memory."""
    loading.load([fake])
    declaration = {"size": 1, "batch_train": 1, "batch_infer": 1, "data": "none", "needs": (), "trained": False}
    registry.model("eater_of_memory", **declaration)(lambda: int)
    monkeypatch.setattr(type(registry.devices.get("fake")), "hosted", True)
    return Conductor(Options(load=(fake,)), tmp_path, print, memory=int(8 * GIB), start=worker.start)


def test_a_case_that_does_not_fit_is_out_of_memory_before_it_runs(conductor: Conductor, worker: Answering) -> None:
    """The sentence says how much it needs, for what, and how much there is."""
    [launch] = conduct_play.measure(conductor, LARGE).launches
    assert launch.outcome == "out_of_memory"
    assert launch.reason == (
        "1 x 1 in batches of 64 needs at least 12.00 GiB (examples 1.00 GiB, weights 3 x 1.00 GiB, "
        "a batch 64 x 0.12 GiB), and there are 8.00 GiB"
    )
    assert worker.asked == ["footprint"]


def test_a_case_of_the_default_size_runs_without_a_check(conductor: Conductor, worker: Answering) -> None:
    """One that is as large as its model's own is not even looked at."""
    conduct_play.measure(conductor, LARGE)
    [launch] = conduct_play.measure(conductor, SMALL).launches
    assert (launch.outcome, launch.reason) == ("crashed", "it was run")
    assert worker.asked == ["footprint", "begin"]


def test_a_case_whose_footprint_is_unknown_runs_with_a_note(
    conductor: Conductor, worker: Answering, capsys: pytest.CaptureFixture[str]
) -> None:
    """But a network that is too large to be built is refused."""
    worker.fails = WorkerError("error", "it answers with nothing")
    [launch] = conduct_play.measure(conductor, LARGE).launches
    assert launch.outcome == "error"
    assert worker.asked == ["footprint", "begin"]
    assert "its memory could not be estimated beforehand: it answers with nothing" in capsys.readouterr().out
    worker.fails = WorkerError("out_of_memory", "took more than there is")
    [launch] = conduct_play.measure(conductor, LARGE).launches
    assert (launch.outcome, launch.reason) == ("out_of_memory", "took more than there is")
