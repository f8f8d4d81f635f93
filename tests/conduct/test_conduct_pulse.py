"""The pulse of a machine around a launch: its usual times, its process, and what happens if that fails."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import conduct_play
import pytest
from free_machine import FREE, Budget

from ipexperf.bench import loading
from ipexperf.bench.api import Settings
from ipexperf.case import Case
from ipexperf.compare import sequence
from ipexperf.compare.arm import Arm
from ipexperf.compare.round import Effort
from ipexperf.compare.sequence import Comparison, Contest
from ipexperf.conduct import gate, pulse
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.conductor import Conductor
from ipexperf.conduct.pulse import Pulses
from ipexperf.errors import WorkerError
from ipexperf.judge.policy import PairPolicy
from ipexperf.plan.options import Options

pytestmark = pytest.mark.process

CPU = Case("resnet18", "cpu", "fp32", "infer", "stock", 1, 8, data="digits")
FAKE = Case("tiny", "fake", "fp32", "spin", "plain", 1, 1, data="none")
QUICK = {"product": 0.01, "copy": 0.02}
HERE = Settings()


class Feeler:
    """A fake process of the pulse: returns these readings, then fails."""

    def __init__(self, *readings: Mapping[str, float]) -> None:
        self.readings, self.asked, self.ended, self.killed = iter(readings), [], 0, 0

    def __enter__(self) -> Feeler:  # noqa: PYI034 - as in Worker
        return self

    def __exit__(self, *_: object) -> None:
        self.ended += 1

    def kill(self) -> None:
        self.killed += 1

    def ask(self, do: str, timeout: float, **request: Any) -> dict[str, Any]:
        assert timeout == pulse.WAIT
        self.asked.append((do, request))
        for reading in self.readings:
            return {"seconds": reading}
        raise WorkerError("crashed", "killed by SIGSEGV")


def pulses(start: Callable[[Case], Any], said: list[str]) -> Pulses:
    return Pulses(start, (), said.append)


@pytest.mark.parametrize(
    ("before", "after", "known", "told"),
    [
        (1.0, 1.5, [], ""),
        (3.0, 1.0, [], "a fixed copy took 3.0 times its best so far (limit 1.5)"),
        (1.5, 1.4, [1.0] * 8, ""),
        (1.0, 1.6, [1.0] * 8, "a fixed copy took 1.6 times the usual (limit 1.5)"),
        (2.0, 2.0, [1.0] * 8, "a fixed copy took 2.0 times the usual (limit 1.5)"),
        # That one reading was lucky makes no other a slow one.
        (1.0, 1.0, [1.0] * 8 + [0.1], ""),
        (0.5, 1.0, [1.0] * 8, ""),
    ],
)
def test_a_kernel_is_compared_with_its_usual_time(before: float, after: float, known: list[float], told: str) -> None:
    """Only slower is wrong, beyond the limit. After few readings the best one is the usual time."""
    assert pulse.slow("copy", before, after, [*known, before, after]) == told


def test_a_round_of_several_arms_is_slow_if_both_readings_are() -> None:
    """Its turns have CPU accounts of their own. A single arm is judged by the slower reading."""
    known = [1.0] * 5
    assert pulse.slow("copy", 1.0, 3.0, [*known, 1.0, 3.0]) != ""
    assert pulse.slow("copy", 1.0, 3.0, [*known, 1.0, 3.0], throughout=True) == ""
    assert pulse.slow("copy", 2.0, 3.0, [*known, 2.0, 3.0], throughout=True).startswith("a fixed copy took 2.0 times")


def test_each_device_has_one_process_that_is_ended_with_the_run(fake: str) -> None:
    loading.load((fake,))
    feeler, said, started = Feeler(QUICK, QUICK), [], []

    def start(case: Case) -> Any:
        started.append(case.device)
        return feeler

    felt = pulses(start, said)
    assert felt.read(FAKE, HERE) == {}  # nothing of torch computes there
    assert felt.read(CPU, HERE) == felt.read(dataclasses.replace(CPU, dtype="bf16"), HERE) == QUICK
    assert started == ["cpu"]
    assert [request["dtype"] for _, request in feeler.asked] == ["fp32", "bf16"]
    felt.close()
    assert feeler.ended == 1
    assert said == []


def test_a_pulse_that_fails_is_reported_once_and_fails_no_launch() -> None:
    """Whether the process does not start or dies: there are no figures and no verdict.

    A failed process is ended, so that it does not run beside what is measured.
    """
    feeler, said, started = Feeler(QUICK), [], []

    def start(case: Case) -> Any:
        started.append(case)
        return feeler

    felt = pulses(start, said)
    assert felt.read(CPU, HERE) == QUICK
    assert felt.read(CPU, HERE) == felt.read(CPU, HERE) == {}
    assert said == ["the speed of cpu around a launch is unknown: killed by SIGSEGV"]
    assert feeler.killed == 1
    assert felt.judged(CPU, QUICK, {}) == ({}, "")

    def fails(_: Case) -> Any:
        raise WorkerError("import_error", "there is no torch")

    felt = pulses(fails, said)
    assert felt.read(CPU, HERE) == felt.read(CPU, HERE) == {}
    assert said[1:] == ["the speed of cpu around a launch is unknown: there is no torch"]
    assert len(started) == 1


class Script:
    """A pulse with given readings."""

    def __init__(self, *readings: float, best: float | None = None) -> None:
        self._readings: Iterator[float] = iter(readings)
        self._best = [] if best is None else [best]

    def read(self, case: Case, settings: Settings) -> Mapping[str, float]:
        del case, settings
        return {"copy": next(self._readings)}

    def judged(
        self, case: Case, before: pulse.Reading, after: pulse.Reading, *, throughout: bool = False
    ) -> tuple[dict[str, float], str]:
        del case
        figures = {"copy_before": before["copy"], "copy_after": after["copy"]}
        return figures, pulse.slow(
            "copy", before["copy"], after["copy"], [*figures.values(), *self._best], throughout=throughout
        )


def conditions(fake: str, script: Script) -> Conditions:
    loading.load((fake,))
    return Conditions(
        Settings(load=(fake,)), timeout=30, samples=5, seconds=0.01, pulse=cast("Pulses", script), gate=FREE
    )


@pytest.mark.parametrize(
    ("readings", "told"),
    [((1.0, 4.0), ""), ((4.0, 4.0), "a fixed copy took 4.0 times its best so far (limit 1.5)")],
)
def test_a_pair_on_a_slow_machine_has_a_note(readings: tuple[float, float], told: str, fake: str) -> None:
    """It counts, because both arms were slowed alike. One slow reading says nothing about its many turns."""
    arm = Arm(FAKE, conditions(fake, Script(*readings, best=1.0)))
    chance, policy = random.Random(1), PairPolicy(max_pairs=1)  # noqa: S311 - a start order, no secret
    effort = Effort(turns=4, most=4, seconds=0.01)
    found = Comparison(arm, arm, policy)
    for _ in Contest([found], effort, Budget(), chance, lambda _: None).play():  # type: ignore[arg-type]
        """There is only one pair."""
    assert [side.launch.contended for side in (found.pairs[0].a, found.pairs[0].b)] == [told, told]
    [launch], _ = sequence.measured(found)
    noted = f"took turns on a contended machine, as did the other arm: {told}"
    assert (noted in launch.notes) == bool(told)
    assert launch.contended == ""
    assert launch.gate["copy_after"] == 4.0


def test_the_pulse_is_read_before_the_warm_up_and_after_the_samples(
    fake: str, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the caches hold nothing of it by the first sample, and its CPU time counts for nobody."""
    monkeypatch.setattr(gate, "read", lambda *_: asked.append("gate") or gate.Reading(0.0, {}, 0.0))

    class Watched(Script):
        def read(self, case: Case, settings: Settings) -> Mapping[str, float]:
            asked.append("pulse")
            return super().read(case, settings)

    conduct_play.launch(FAKE, 0, conditions(fake, Watched(1.0, 1.0)), accuracy=False)
    order = [name for name in dict.fromkeys(asked) if name in ("prepare", "pulse", "warm", "gate", "sample", "memory")]
    assert order == ["prepare", "pulse", "warm", "gate", "sample", "memory"]
    assert asked[asked.index("memory") - 2 : asked.index("memory")] == ["gate", "pulse"]


def test_the_pulse_can_be_switched_off(tmp_path: Path) -> None:
    conductor = Conductor(Options(without=("pulse",)), tmp_path, lambda _: None)
    assert conductor.ready(dataclasses.replace(CPU, mode="train")).pulse is None
    conductor.close()
