"""Warm-up and samples, on a clock that only the steps move."""

import math
from collections import Counter
from collections.abc import Iterator

import pytest

from ipexperf.bench import measure
from ipexperf.bench import outcome as outcomes
from ipexperf.bench.machine import control_groups, kernel_files
from ipexperf.bench.outcome import outcome_of
from ipexperf.bench.process import environment
from ipexperf.bench.threads import Accounts, Threads
from ipexperf.errors import WorkerError


class Clock:
    """Time goes on when a step or a synchronisation says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls: Counter[str] = Counter()

    def perf_counter(self) -> float:
        return self.now

    def step(self, seconds: Iterator[float]) -> None:
        self.calls["step"] += 1
        self.now += next(seconds)


class OnClock(Threads):
    """Two threads that always run, and wait for a quarter of the time."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def look(self) -> Accounts:
        now = self._clock.now
        return Accounts(2 * now, 0.0, {1: now, 2: now}, {1: now / 8, 2: now / 8})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(measure, "perf_counter", clock.perf_counter)
    monkeypatch.setattr(measure, "threads", OnClock(clock))
    return clock


def series(*first: float, then: float) -> Iterator[float]:
    yield from first
    while True:
        yield then


def nothing() -> None:
    """Synchronises a device that is never behind."""


def test_warm_up_ends_when_steps_are_steady(clock: Clock) -> None:
    """Slow first steps are stepped over; the block is as many steady steps as a sample must last."""
    seconds = series(1.0, 0.5, 0.2, then=0.003)
    told = measure.warm(lambda: clock.step(seconds), nothing)
    assert told["first_step"] == 1.0
    assert told["steady"] == 1.0
    assert told["block"] == math.ceil(measure.BLOCK_SECONDS / 0.003) == 7
    assert told["steps"] == clock.calls["step"] >= 2 * measure.WARM_STEPS
    assert told["metrics"]["warm_time"] == pytest.approx(clock.now)


def test_warm_up_that_never_settles_ends_and_says_so(clock: Clock) -> None:
    """Steps that grow forever are not waited for forever, and are not called steady."""
    seconds = (0.01 * 1.2**number for number in range(1000))
    told = measure.warm(lambda: clock.step(seconds), nothing)
    assert told["steady"] == 0.0
    assert told["metrics"]["warm_time"] >= measure.WARM_SECONDS
    assert told["steps"] < 60


def test_steps_of_many_seconds_are_warmed_by_a_few(clock: Clock) -> None:
    """Where a step takes ten seconds, two or three are warm-up enough, and a sample is one step."""
    seconds = series(then=10.0)
    told = measure.warm(lambda: clock.step(seconds), nothing)
    assert told["steps"] <= 3
    assert told["block"] == 1
    assert measure.warm(lambda: clock.step(seconds), nothing, 1.0)["steps"] == 1


def test_a_sample_is_seconds_a_step(clock: Clock) -> None:
    """Each sample times a whole block and is divided by it: wall, CPU and run delay alike."""
    seconds = series(then=0.25)
    samples = measure.sample(lambda: clock.step(seconds), nothing, count=3, block=4)
    assert clock.calls["step"] == 12
    assert samples == [(0.25, 0.5, 0.0625)] * 3


def test_what_was_asked_of_the_device_before_is_not_timed(clock: Clock) -> None:
    """The queue is emptied before the clock starts, and what the steps put in it is waited for."""
    queue = [5.0]

    def step() -> None:
        queue.append(0.5)

    def synchronise() -> None:
        clock.now += sum(queue)
        queue.clear()

    [(wall, _, _)] = measure.sample(step, synchronise, count=1, block=2)
    assert wall == pytest.approx(0.5)


class CannotAllocateOutOfMemoryError(RuntimeError):
    """Named as torch names its own."""


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (MemoryError(), "out_of_memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes"), "out_of_memory"),
        (CannotAllocateOutOfMemoryError("XPU"), "out_of_memory"),
        (ImportError("x"), "import_error"),
        (ModuleNotFoundError("x"), "import_error"),
        (WorkerError("version_mismatch", "x"), "version_mismatch"),
        (RuntimeError("x"), "error"),
    ],
)
def test_an_exception_is_one_of_the_outcomes(error: Exception, outcome: str) -> None:
    """What ended a launch is told by its exception."""
    assert outcome_of(error) == outcome


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RuntimeError("x\n\ny"), "RuntimeError: x"),
        (KeyError(), "KeyError"),
        (
            RuntimeError("UR_RESULT_ERROR_OUT_OF_RESOURCES"),
            "RuntimeError: UR_RESULT_ERROR_OUT_OF_RESOURCES; the runtime reports full memory by this error too",
        ),
        (
            RuntimeError(f"{outcomes.INSIDE}\nTraceback of TorchScript:\n  %r = ipex::softmax(%a)\nno\n"),
            "RuntimeError: no",
        ),
    ],
)
def test_what_an_exception_says_is_one_line(error: Exception, told: str) -> None:
    """Torch writes a page: a table has a line for it, and the log has the page."""
    assert outcomes.sentence(error) == told


MACHINE = {
    "cpu": "Intel(R) Xeon(R) Platinum 8488C CPU @ 2.40GHz",
    "isa": ["avx2", "avx512f"],
    "cores": 4,
    "memory": 16 * 2**30,
    "accelerator": None,
    "kernel": "6.1",
    "host": "here",
    "governor": "performance",
    "frequency_khz": "2400000",
}


@pytest.mark.parametrize(
    ("governors", "expected"),
    [
        ({0: "performance", 1: "performance", 2: "powersave"}, "performance"),
        ({0: "powersave", 1: "performance", 2: "performance"}, "performance, powersave"),
        ({}, None),
    ],
)
def test_the_governor_is_that_of_every_core_of_the_process(
    monkeypatch: pytest.MonkeyPatch, governors: dict[int, str], expected: str | None
) -> None:
    """Core 2 is not of this process. A virtual machine has no governor."""
    files = {f"/sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor": word for core, word in governors.items()}
    read = kernel_files.text
    monkeypatch.setattr(kernel_files, "text", lambda path: files.get(path) if "governor" in path else read(path))
    monkeypatch.setattr(environment.placement, "allowed", lambda: [0, 1])
    assert environment.hardware()["governor"] == expected


@pytest.mark.parametrize("name", ["kernel", "host", "governor", "frequency_khz"])
def test_what_changes_from_day_to_day_is_no_part_of_the_key(name: str) -> None:
    """A new kernel, another host name or another clock keep the machine's series going."""
    assert environment.machine_key({**MACHINE, name: "another"}) == environment.machine_key(MACHINE)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cpu", "AMD EPYC 9654"),
        ("isa", ["avx2"]),
        ("cores", 8),
        ("memory", 64 * 2**30),
        ("accelerator", {"name": "xpu", "properties": "Intel(R) Data Center GPU Max 1550"}),
    ],
)
def test_other_hardware_is_another_machine(name: str, value: object) -> None:
    """CPU, instruction sets, cores, memory and accelerator each make another key."""
    assert environment.machine_key({**MACHINE, name: value}) != environment.machine_key(MACHINE)


@pytest.mark.parametrize("limit", [None, "max 100000", "400000 100000"])
def test_a_container_that_may_use_all_its_cores_is_the_machine_itself(limit: str | None) -> None:
    """So the series of a machine go on, whether or not somebody writes down a limit that limits nothing."""
    assert environment.machine_key({**MACHINE, "cpu_limit": limit}) == environment.machine_key(MACHINE)


def test_a_container_with_less_time_than_cores_is_another_machine() -> None:
    """`docker run --cpus 1.5` shows all cores, and lets them work for a part of each tenth of a second."""
    keys = {environment.machine_key({**MACHINE, "cpu_limit": text}) for text in ("150000 100000", "300000 100000")}
    assert len({*keys, environment.machine_key(MACHINE)}) == 3
    assert environment.machine_key({**MACHINE, "cpu_limit": "75000 50000"}) in keys


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({"cpu.max": "150000 100000"}, "150000 100000"),
        ({"cpu/cpu.cfs_quota_us": "150000", "cpu/cpu.cfs_period_us": "100000"}, "150000 100000"),
        ({"batch/cpu.max": "150000 100000", "batch/job/cpu.max": "max 100000"}, "150000 100000"),
        ({"cpu/job/cpu.cfs_quota_us": "50000", "cpu/job/cpu.cfs_period_us": "100000"}, "50000 100000"),
        ({}, None),
    ],
)
def test_the_limit_of_a_container_is_read_in_both_versions(files: dict[str, str], limit: str | None) -> None:
    """Also of the groups above that of a process, which a batch system made: all of them limit it."""
    files = {f"/sys/fs/cgroup/{name}": text for name, text in files.items()}
    files["/proc/self/cgroup"] = "4:cpu,cpuacct:/job\n0::/batch/job"
    assert control_groups.cpu_limit(files.get) == limit


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({}, None),
        ({"memory.max": "max"}, "max"),
        ({"memory/memory.limit_in_bytes": "9223372036854771712"}, "max"),
        ({"memory.max": "9000", "batch/memory.max": "5000", "batch/job/memory.max": "max"}, "5000"),
        ({"memory/memory.limit_in_bytes": "9000", "memory/job/memory.limit_in_bytes": "700"}, "700"),
    ],
)
def test_the_least_memory_of_all_groups_of_a_process_limits_it(files: dict[str, str], limit: str | None) -> None:
    files = {f"/sys/fs/cgroup/{name}": text for name, text in files.items()}
    files["/proc/self/cgroup"] = "7:memory:/job\n0::/batch/job"
    assert control_groups.memory_limit(files.get) == limit


def test_the_machine_key_can_be_read_by_people() -> None:
    """The key begins with the hardware's name, its cores and its memory."""
    assert environment.machine_key(MACHINE).startswith("intel-xeon-platinum-8488c-4c-16g-")
    gpu = {"name": "xpu", "properties": "Intel(R) Arc(TM) B580 Graphics"}
    assert environment.machine_key({**MACHINE, "accelerator": gpu}).startswith("intel-arc-b580-graphics-4c-16g-")
