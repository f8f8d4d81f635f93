"""Data-parallel training: ranks that train together are proven, and one that fails is the launch's outcome."""

import contextlib
import dataclasses
import os
import signal
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import conduct_play
import pytest

from ipexperf.bench.cell import Settings
from ipexperf.bench.process import guard
from ipexperf.case import NetworkCase
from ipexperf.conduct import gate
from ipexperf.conduct.worker import Worker
from ipexperf.errors import WorkerError
from ipexperf.result import Check
from ipexperf.zoo.datasets.digits import Digits

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two ranks need two cores"),
]

SMALL = Path(__file__).parents[1] / "fakes" / "small_training.py"
PATIENCE = 240.0
"""Three processes import torch, on a machine that is anybody's."""


def prepared(worker: Worker, model: str = "small", mode: str = "train_ddp", **knobs: str) -> dict[str, Any]:
    """Asks a worker to open a small data-parallel training."""
    path, _ = Digits().find(None)
    settings = Settings(load=(str(SMALL),), data_file=path, train_steps=60)
    case = NetworkCase(model, "cpu", "fp32", mode, "stock", 16, 8, 1, "digits", tuple(sorted(knobs.items())))
    return worker.prepare(case.to_json(), asdict(settings))


def checks(told: dict[str, Any]) -> dict[str, Check]:
    return {check["name"]: Check(**check) for check in told["checks"]}


def rank_pids(worker: Worker) -> list[int]:
    """The processes that were spawned, and are not what Python starts beside them."""
    found = []
    for pid in guard.members(worker.pid):
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        if b"spawn_main" in command:
            found.append(pid)
    return found


@pytest.mark.process
def test_two_ranks_train_as_one_process_and_the_death_of_one_fails_the_launch(gone: Callable[[int], bool]) -> None:
    """Items, samples, memory, proof, and the loss curve of one stock fp32 process. Then one rank is killed."""
    with Worker(timeout=PATIENCE) as worker:
        assert prepared(worker, "talking", accumulate="2")["items"] == 2 * 2 * 16
        # Not as lines: the ranks share one log, and a rank's line may begin in the middle of what gloo says of another.
        log = worker.log()
        assert [rank for rank in (0, 1) if f"built in rank {rank}" not in log] == []
        members, ranks = guard.members(worker.pid), rank_pids(worker)
        assert len(ranks) == 2
        before = gate.read(os.sched_getaffinity(0), worker.pid)
        worker.ask("warm")
        samples = worker.ask("sample", count=3, block=2)["samples"]
        after = gate.read(os.sched_getaffinity(0), worker.pid)
        assert len(samples) == 3
        assert all(wall > 0 and cpu > 0 and delay >= 0 for wall, cpu, delay in samples)
        # The ranks' work is the worker's own: without it, they would be the others that contend for the machine.
        assert after.ours - before.ours >= 0.9 * 2 * sum(cpu for _, cpu, _ in samples) - 0.05
        # Of both ranks, and without the libraries, which alone are more than 100 MiB in each.
        status = [Path(f"/proc/{pid}/status").read_text() for pid in ranks]
        whole = sum(int(text.split("VmHWM:")[1].split()[0]) * 1024 for text in status)
        assert 2 * 2**20 < worker.ask("usage")["metrics"]["peak_memory"] < whole - 2 * 100 * 2**20
        proof = checks(worker.ask("proof"))
        assert {name for name, check in proof.items() if not check.ok} == set()
        assert {"ranks", "backend", "rank_cores", "own_batches", "weights_equal", "steps", "dtype"} <= set(proof)
        assert proof["ranks"].found == "ranks [0, 1] of [2] in 2 processes"
        assert proof["backend"].found == "gloo"
        assert proof["steps"].found.startswith("6 updates over 12 batches")
        ran = worker.ask("fingerprint")["fingerprint"]
        assert (ran["unstable"], ran["missing"]) == ([], {})
        assert "c10d::allreduce_" in {row["operator"] for row in ran["structure"]["operators"]}
        told = worker.ask("accuracy")
        assert {name for name, check in checks(told).items() if not check.ok} == set()
        assert told["metrics"]["accuracy"] >= 0.4
        os.kill(max(ranks), signal.SIGKILL)
        with pytest.raises(WorkerError) as failed:
            worker.ask("sample", count=1)
    assert failed.value.outcome == "crashed"
    assert failed.value.reason in ("rank 0 was killed by SIGKILL", "rank 1 was killed by SIGKILL")
    assert all(gone(pid) for pid in members)


@pytest.mark.process
def test_a_rank_that_trains_alone_is_detected_and_one_that_hangs_is_killed(gone: Callable[[int], bool]) -> None:
    """Without the wrapper that exchanges gradients everything runs, and the weights of the ranks differ.

    Variables that bind threads to cores of all ranks don't reach the ranks, which have cores of their own.
    """
    bound = {"GOMP_CPU_AFFINITY": ",".join(map(str, sorted(os.sched_getaffinity(0))))}
    with Worker(timeout=PATIENCE, variables=bound) as worker:
        prepared(worker, mode="ddp_alone")
        members, ranks = guard.members(worker.pid), rank_pids(worker)
        worker.ask("warm")
        proof = checks(worker.ask("proof"))
        assert {name for name, check in proof.items() if not check.ok} == {"weights_equal"}
        assert proof["weights_equal"].found == "2 sets of weights"
        os.kill(ranks[0], signal.SIGSTOP)
        with pytest.raises(WorkerError, match="no reply within 2 s") as failed:
            worker.ask("sample", count=1, timeout=2)
    assert failed.value.outcome == "timed_out"
    assert all(gone(pid) for pid in members)


def test_each_process_of_a_case_has_a_device_of_its_own(tmp_path: Path) -> None:
    """On cuda two ranks see one card each. On the CPU no variable is set."""
    from ipexperf.conduct.conductor import Conductor
    from ipexperf.plan.options import Options

    conductor = Conductor(Options(indices={"cuda": 1}), tmp_path, lambda _: None)
    case = NetworkCase("resnet18", "cuda", "fp32", "train_ddp", "stock", 1, 32, data="digits")
    assert conductor.ready(case).settings.cards == (
        {"CUDA_VISIBLE_DEVICES": "1"},
        {"CUDA_VISIBLE_DEVICES": "2"},
    )
    assert conductor.ready(dataclasses.replace(case, device="cpu")).settings.cards == ({}, {})
    assert conductor.ready(dataclasses.replace(case, mode="train")).settings.cards == ()


@pytest.mark.process
def test_fewer_devices_than_processes_end_the_launch_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two ranks are never put on one card."""
    from ipexperf.conduct.conductor import Conductor
    from ipexperf.plan.options import Options

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    case = NetworkCase("resnet18", "cuda", "fp32", "train_ddp", "stock", 1, 32, data="digits")
    with contextlib.closing(Conductor(Options(), tmp_path, lambda _: None)) as conductor:
        (launch,) = conduct_play.measure(conductor, case).launches
    assert launch.outcome == "error"
    assert launch.reason.startswith("2 processes need a device each")
