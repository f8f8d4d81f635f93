"""Workers: however one ends, its launch gets an outcome with a reason, and nothing that it started lives on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ipexperf.bench.kinds import Settings
from ipexperf.case import Case
from ipexperf.conduct import launch
from ipexperf.conduct import worker as workers
from ipexperf.conduct.launch import Conditions
from ipexperf.conduct.worker import Worker
from ipexperf.errors import UsageError, WorkerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ipexperf.result import Launch


def case(model: str = "tiny") -> Case:
    return Case(model, "fake", "fp32", "spin", "plain", 1, 1, data="none")


@pytest.fixture
def run(fake: str) -> Callable[..., Launch]:
    """Launches a fake model once, quickly."""

    def run(model: str, timeout: float = 30.0, **variables: str) -> Launch:
        conditions = Conditions(Settings(load=(fake,)), variables=variables, timeout=timeout, samples=5, seconds=0.05)
        return launch.run(case(model), 0, conditions)[0]

    return run


def test_a_launch_that_ends_well(run: Callable[..., Launch]) -> None:
    """A launch brings samples, every metric, checks that hold, and how the machine was."""
    done = run("tiny")
    assert (done.outcome, done.reason, done.index) == ("ok", "", 0)
    assert len(done.samples) >= 5
    assert all(sample.wall > 0 and sample.cpu >= 0 and sample.delay >= 0 for sample in done.samples)
    assert 1e-5 < done.metrics["step_time"] < 1
    assert done.metrics["throughput"] == pytest.approx(1 / done.metrics["step_time"])
    assert done.metrics["p90"] >= done.metrics["p50"]
    assert done.metrics["peak_memory"] == 64 * 2**20
    assert done.metrics["accuracy"] == 1.0
    assert all(check.ok for check in (*done.accuracy, *done.proof))
    assert done.accuracy
    assert done.proof
    assert {"others", "steal", "run_delay", "steady", "first_step"} <= set(done.gate)
    assert done.block * done.metrics["step_time"] > 0.005


def test_accuracy_is_asked_of_the_first_launch_alone(fake: str) -> None:
    """A later launch has the same seed and answer: it isn't asked again."""
    conditions = Conditions(Settings(load=(fake,)), timeout=30, samples=5, seconds=0.05)
    done, environment = launch.run(case(), 1, conditions)
    assert done.outcome == "ok"
    assert "accuracy" not in done.metrics
    assert done.accuracy == ()
    assert done.proof
    assert environment["software"]["torch"] is None
    assert environment["machine_key"]


def test_a_hang_times_out_and_its_whole_tree_is_dead(
    run: Callable[..., Launch], tmp_path: Path, gone: Callable[[int], bool]
) -> None:
    """A worker that doesn't answer is stopped after the timeout, together with the child that it had started."""
    begin = time.monotonic()
    done = run("parent", timeout=2.5, FAKE_PID_FILE=str(tmp_path / "pids"))
    assert done.outcome == "timed_out"
    assert done.reason == "no reply within 2.5 s"
    assert 2.5 <= time.monotonic() - begin < 20
    worker, child = map(int, (tmp_path / "pids").read_text().split())
    assert gone(worker)
    assert gone(child)


@pytest.mark.parametrize(
    ("model", "outcome", "reason"),
    [
        ("segfault", "crashed", "killed by SIGSEGV"),
        ("killed", "crashed", "killed by SIGKILL"),
        ("eater", "out_of_memory", "MemoryError"),
        ("import_error", "import_error", "No module named 'a_module_that_nobody_has'"),
    ],
)
def test_each_end_has_its_outcome(run: Callable[..., Launch], model: str, outcome: str, reason: str) -> None:
    """A launch that ends badly says how: the signal that killed it, or the exception that ended it."""
    done = run(model)
    assert done.outcome == outcome
    assert reason in done.reason
    assert done.samples == ()
    assert done.metrics == {}


def test_an_exception_leaves_its_traceback_in_the_log(run: Callable[..., Launch]) -> None:
    """The worker's standard error comes back with the launch."""
    assert "ModuleNotFoundError" in run("import_error").log


def test_noise_on_standard_output_stays_out_of_the_protocol(run: Callable[..., Launch]) -> None:
    """What C, libc and Python print in a worker ends in its log, even where it looks like a reply."""
    done = run("noisy_stdout")
    assert done.outcome == "ok"
    assert "garbage of C" in done.log
    assert "garbage of Python" in done.log


def test_a_request_that_makes_no_sense_is_an_error_and_no_end(fake: str) -> None:
    """A worker that refuses a request answers the next one."""
    with Worker(timeout=30) as worker:
        with pytest.raises(WorkerError, match="nothing is prepared") as early:
            worker.ask("warm")
        assert early.value.outcome == "error"
        settings = {"load": [fake]}
        with pytest.raises(WorkerError, match="unknown model 'tinny': did you mean tiny"):
            worker.ask("prepare", case={**case().to_json(), "model": "tinny"}, settings=settings)
        assert worker.ask("prepare", case=case().to_json(), settings=settings)["prepare_time"] >= 0


def test_a_waiting_worker_burns_no_cpu(fake: str) -> None:
    """While nothing is asked of it, a prepared worker takes next to no CPU time."""

    def used(pid: int) -> float:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    with Worker(timeout=30) as worker:
        worker.ask("prepare", case=case().to_json(), settings={"load": [fake]})
        worker.ask("warm")
        before = used(worker.pid)
        time.sleep(1)
        assert used(worker.pid) - before < 0.2


def test_a_worker_never_outlives_its_block(gone: Callable[[int], bool]) -> None:
    """Whether the block ends well or with an exception, the worker is gone."""
    with Worker(timeout=30) as worker:
        first = worker.pid
        assert Path(f"/proc/{first}").exists()
    assert gone(first)

    class LeftEarlyError(Exception):
        pass

    def leave_early() -> None:
        nonlocal second
        with Worker(timeout=30) as worker:
            second = worker.pid
            raise LeftEarlyError

    second = 0
    with pytest.raises(LeftEarlyError):
        leave_early()
    assert second
    assert gone(second)


def test_a_worker_dies_with_its_controller(gone: Callable[[int], bool]) -> None:
    """A controller that is killed, and can clean nothing up, leaves no worker behind."""
    program = """
        import time
        from ipexperf.conduct.worker import Worker
        with Worker(timeout=30) as worker:
            print(worker.pid, flush=True)
            time.sleep(100)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as controller:
        assert controller.stdout is not None
        pid = int(controller.stdout.readline())
        assert Path(f"/proc/{pid}").exists()
        controller.send_signal(signal.SIGKILL)
        controller.wait(timeout=10)
    assert gone(pid)


def test_a_worker_over_the_memory_limit_is_stopped(
    fake: str, monkeypatch: pytest.MonkeyPatch, gone: Callable[[int], bool]
) -> None:
    """A step that holds more memory than a worker may have is stopped while it runs, and the reason says the limit."""
    with Worker(timeout=30) as worker:
        worker.ask("prepare", case=case("hang").to_json(), settings={"load": [fake]})
        monkeypatch.setattr(worker, "_limit", 2**20)
        begin = time.monotonic()
        with pytest.raises(WorkerError, match=r"took more than 0\.0 GiB") as error:
            worker.ask("warm")
        assert error.value.outcome == "out_of_memory"
        assert time.monotonic() - begin < 15
        assert gone(worker.pid)


def test_the_memory_limit_is_below_the_machines_memory() -> None:
    """A worker is stopped before the whole machine's memory is gone."""
    total = os.sysconf("SC_PAGESIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < workers.memory_limit() < total


def test_the_limit_is_read_when_a_worker_starts(monkeypatch: pytest.MonkeyPatch, run: Callable[..., Launch]) -> None:
    """A launch under a tiny limit ends as out of memory instead of in the kernel's hands."""
    monkeypatch.setattr(workers, "memory_limit", lambda: 2**20)
    assert run("hang").outcome == "out_of_memory"


def test_a_worker_sees_the_variables_of_its_arm(fake: str) -> None:
    """Variables given for the worker reach it, and are recorded in its environment."""
    with Worker(variables={"OMP_NUM_THREADS": "3"}, timeout=30) as worker:
        worker.ask("prepare", case=case().to_json(), settings={"load": [fake]})
        told = worker.ask("environment")["variables"]
    assert told["OMP_NUM_THREADS"] == "3"
    assert told["OMP_WAIT_POLICY"] == os.environ.get("OMP_WAIT_POLICY", "PASSIVE")


def test_an_interpreter_that_is_not_there_is_refused() -> None:
    """--perf-python with a wrong path is one sentence."""
    with pytest.raises(UsageError, match=r"^--perf-python /no/such/python: No such file"):
        workers.ask_facts("/no/such/python", ())


def test_an_interpreter_that_is_none_is_refused() -> None:
    """--perf-python with a program that is no Python is one sentence."""
    with pytest.raises(UsageError, match=r"^--perf-python /bin/false can't run workers"):
        workers.ask_facts("/bin/false", ())


def test_another_interpreter_tells_its_own_facts() -> None:
    """Asked by its path, an interpreter tells the same as this one knows of itself."""
    assert workers.ask_facts(sys.executable, ()) == workers.ask_facts(None, ())
