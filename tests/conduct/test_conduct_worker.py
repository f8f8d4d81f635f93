"""Workers: however one ends, its launch has an outcome with a reason, and none of its processes survives."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import conduct_play
import pytest
from free_machine import BUSY, FREE

from ipexperf.bench.cell import Settings
from ipexperf.bench.process import guard
from ipexperf.case import NetworkCase
from ipexperf.conduct import process
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.worker import Worker, ask_facts
from ipexperf.errors import UsageError, WorkerError
from ipexperf.result import Launch

pytestmark = pytest.mark.process


def case(model: str = "tiny") -> NetworkCase:
    return NetworkCase(model, "fake", "fp32", "spin", "plain", 1, 1, data="none")


@pytest.fixture
def run(fake: str) -> Callable[..., Launch]:
    """Launches a fake model once, quickly, under these conditions and variables."""

    def run(model: str, **more: Any) -> Launch:
        names = {one.name for one in fields(Conditions)}
        asked: dict[str, Any] = {"timeout": 30.0, "samples": 5, "seconds": 0.05, "gate": FREE}
        asked |= {name: value for name, value in more.items() if name in names}
        variables = {name: value for name, value in more.items() if name not in names}
        conditions = Conditions(Settings(load=(fake,)), variables=variables, **asked)
        return conduct_play.launch(case(model), 0, conditions, accuracy=True)[0]

    return run


@pytest.mark.parametrize("final", [False, True])
def test_a_contended_launch_that_is_measured_again_is_not_asked_for_accuracy(*, fake: str, final: bool) -> None:
    """Training to the end takes minutes, and the result would not count."""
    conditions = Conditions(Settings(load=(fake,)), timeout=30, samples=5, seconds=0.05, gate=BUSY)
    done, _ = conduct_play.launch(case(), 0, conditions, accuracy=True, final=final)
    assert done.outcome == "ok"
    assert "other processes took" in done.contended
    assert (bool(done.accuracy), "accuracy" in done.metrics) == (final, final)


def test_a_launch_with_too_few_samples_has_a_note(run: Callable[..., Launch], monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that are too slow end the sampling after a while."""
    few = run("slow", samples=50, seconds=0.01)
    assert 1 <= len(few.samples) < 50
    note, waited = few.notes
    told = rf"ended with fewer samples than asked: {len(few.samples)} of 50, steps take [\d.]+ s"
    assert re.fullmatch(told, note)
    assert few.outcome == "ok"
    assert re.fullmatch(r"mostly waited in its steps: its process used \d+ % of one core", waited)
    assert len(run("slow", samples=5, seconds=0.1).notes) == 1
    assert run("tiny", samples=5, seconds=0.1).notes == ()


def test_a_launch_whose_memory_grows_with_each_turn_has_a_note(run: Callable[..., Launch]) -> None:
    """Such as a network that keeps something of each batch. Time is looked at when all launches are there."""
    [note] = run("hoarding", samples=24, seconds=1.0).notes
    assert re.fullmatch(r"took more memory after each turn: [\d.]+ MiB more in its last \d+ steps", note)


def test_a_fingerprint_that_cannot_be_captured_costs_no_measurement(fake: str, tmp_path: Path) -> None:
    """The launch has its numbers, and the reason is stored."""
    looked_at = str(Path(__file__).parents[1] / "fakes" / "looked_at.py")
    nowhere = {"FAKE_RAN": str(tmp_path / "none.json")}
    conditions = Conditions(Settings(load=(fake, looked_at)), variables=nowhere, timeout=30, samples=5, seconds=0.05)
    done, _ = conduct_play.launch(replace(case(), mode="looked_at"), 0, conditions, accuracy=True)
    assert done.outcome == "ok"
    assert done.fingerprint is not None
    assert "FileNotFoundError" in done.fingerprint["missing"]["graph"]


def test_a_worker_that_hangs_is_killed_with_its_whole_tree(
    run: Callable[..., Launch], tmp_path: Path, gone: Callable[[int], bool]
) -> None:
    """After the timeout, together with the child that it had started."""
    begin = time.monotonic()
    done = run("parent", timeout=2.5, FAKE_PID_FILE=str(tmp_path / "pids"))
    assert done.outcome == "timed_out"
    assert done.reason == "no reply within 2.5 s"
    assert 2.5 <= time.monotonic() - begin < 20
    worker, child = map(int, (tmp_path / "pids").read_text().split())
    assert gone(worker)
    assert gone(child)


def test_output_on_standard_output_stays_out_of_the_protocol(run: Callable[..., Launch]) -> None:
    """What C, libc and Python print goes to the log, even if it looks like a reply."""
    done = run("noisy_stdout")
    assert done.outcome == "ok"
    assert "garbage of C" in done.log
    assert "garbage of Python" in done.log


def test_a_waiting_worker_burns_no_cpu(fake: str) -> None:
    """While nothing is asked of them, a prepared worker and its guard take next to no CPU time."""

    def used(pid: int) -> float:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    with Worker(timeout=30) as worker:
        worker.prepare(case().to_json(), {"load": [fake]})
        worker.ask("warm")
        alive = guard.members(worker.pid)
        assert len(alive) == 2
        before = sum(map(used, alive))
        time.sleep(1)
        assert sum(map(used, alive)) - before < 0.2


def test_a_worker_and_its_processes_die_with_the_controller(
    fake: str, tmp_path: Path, gone: Callable[[int], bool]
) -> None:
    """Also one in a process group of its own. A controller that is killed can clean nothing up."""
    program = f"""
        from ipexperf.conduct.worker import Worker
        case = {case("leader").to_json()!r}
        with Worker(timeout=30, variables={{"FAKE_PID_FILE": {str(tmp_path / "pids")!r}}}) as worker:
            worker.prepare(case, {{"load": [{fake!r}]}})
            worker.ask("warm")
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)]) as controller:
        worker, child = conduct_play.pids(tmp_path / "pids")
        everybody = guard.members(worker)
        assert {worker, child} < set(everybody)
        controller.send_signal(signal.SIGKILL)
        controller.wait(timeout=10)
    assert all(gone(pid) for pid in (worker, child, *everybody))


def test_processes_of_a_worker_die_with_it(fake: str, tmp_path: Path, gone: Callable[[int], bool]) -> None:
    """The worker is killed by SIGKILL, and the controller has done nothing yet."""
    with Worker(variables={"FAKE_PID_FILE": str(tmp_path / "pids")}, timeout=30) as worker:
        worker.prepare(case("orphans").to_json(), {"load": [fake]})
        with pytest.raises(WorkerError, match="killed by SIGKILL"):
            worker.ask("warm")
        _, *children = conduct_play.pids(tmp_path / "pids")
        assert len(children) == 2
        assert all(gone(child) for child in children)
        assert not [pid for pid in guard.members(worker.pid) if not gone(pid)]


def test_a_dead_worker_is_noticed_although_a_process_holds_its_pipe(run: Callable[..., Launch], tmp_path: Path) -> None:
    """A copy of the worker that left the session keeps the pipe open."""
    try:
        done = run("daemon", timeout=20.0, FAKE_PID_FILE=str(tmp_path / "pids"))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(conduct_play.pids(tmp_path / "pids")[1], signal.SIGKILL)
    assert (done.outcome, done.reason) == ("crashed", "killed by SIGKILL")


def test_the_memory_of_children_counts_for_their_worker(
    run: Callable[..., Launch], tmp_path: Path, gone: Callable[[int], bool]
) -> None:
    """A small worker with a large child is killed together with it."""
    done = run("hungry_child", timeout=20.0, memory=2**27, FAKE_PID_FILE=str(tmp_path / "pids"))
    assert done.outcome == "out_of_memory"
    assert "0.1 GiB" in done.reason
    assert "with its child processes" in done.reason
    assert all(gone(pid) for pid in conduct_play.pids(tmp_path / "pids"))


def test_a_wait_policy_of_the_caller_replaces_all_of_our_defaults() -> None:
    """Our spin count would otherwise overrule an active policy."""
    usual = process.quiet({})
    assert {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "30000", "KMP_BLOCKTIME": "1"}.items() <= usual.items()
    named = {"OMP_WAIT_POLICY": "ACTIVE"}
    assert not {"GOMP_SPINCOUNT", "KMP_BLOCKTIME", "OMP_WAIT_POLICY"} & set(process.quiet(named))
    assert process.environment_of(None, named)["OMP_WAIT_POLICY"] == "ACTIVE"
    assert process.environment_of(None, {"GOMP_SPINCOUNT": "0"})["GOMP_SPINCOUNT"] == "0"


def test_what_starts_before_the_worker_is_recorded_by_content_and_cannot_replace_its_clock(
    fake: str, tmp_path: Path
) -> None:
    """Python imports `sitecustomize` and what it imports before the worker runs a line."""
    (tmp_path / "sitecustomize.py").write_text("import patches")
    conditions = Conditions(
        Settings(load=(fake,)), variables={"PYTHONPATH": str(tmp_path)}, timeout=30, samples=5, seconds=0.05, gate=FREE
    )
    digests = []
    for text in ("import time\n\ndef broken():\n    raise OSError\n\ntime.perf_counter = broken\n", "PATCHES = 0\n"):
        (tmp_path / "patches.py").write_text(text)
        done, environment = conduct_play.launch(case(), 0, conditions, accuracy=False)
        assert done.outcome == "ok", done.reason
        assert {"sitecustomize", "patches"} <= set(environment["software"]["at_start"])
        assert "ipexperf" not in environment["software"]["at_start"]
        digests.append(environment["software"]["at_start"])
    assert digests[0]["sitecustomize"] == digests[1]["sitecustomize"]
    assert digests[0]["patches"] != digests[1]["patches"]


def test_a_runtime_that_crashes_when_it_is_asked_for_cards_is_told_with_what_selected_them(tmp_path: Path) -> None:
    """SYCL does so where a mask leaves no card."""
    crashing = tmp_path / "python"
    crashing.write_text("#!/bin/sh\nkill -SEGV $$\n")
    crashing.chmod(0o755)
    with pytest.raises(UsageError, match=r"/python can't run workers: SIGSEGV with ZE_AFFINITY_MASK=7$"):
        ask_facts(str(crashing), {"xpu": 0}, {"ZE_AFFINITY_MASK": "7"})
