"""The gate and the watch: they judge the load on the cores that a case may use."""

import os
from pathlib import Path
from typing import Any

import conduct_play
import pytest

from ipexperf.bench import loading
from ipexperf.bench.cell import Settings
from ipexperf.case import NetworkCase
from ipexperf.conduct import gate, placement, watch
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.gate import Account, Reading
from ipexperf.conduct.watch import Watch
from ipexperf.plan.options import Options
from ipexperf.plan.placement import read
from ipexperf.result import Sample

FAKES = tuple(str(Path(__file__).parents[1] / "fakes" / name) for name in ("fake.py", "placed.py"))
CASE = NetworkCase("tiny", "fake", "fp32", "spin", "plain", 1, 1, data="none")
FREE = {"others": 0.0, "steal": 0.0, "run_delay": 0.0, "held_up": 0.0}
ALL = sorted(os.sched_getaffinity(0))
needs_two_cores = pytest.mark.skipif(len(ALL) < 2, reason="a core to leave for another one")


LIMITS = gate.POLICY


def reading(at: float, busy: float, steal: float, ours: float, cores: int = 4, **more: Any) -> Reading:
    """Accounts that all cores have an equal part of."""
    return Reading(at, {core: Account(busy / cores, steal / cores) for core in range(cores)}, ours, **more)


@pytest.mark.parametrize(
    ("shares", "told"),
    [
        (FREE, ""),
        ({**FREE, "others": LIMITS.others, "steal": LIMITS.steal, "held_up": LIMITS.held_up}, ""),
        ({**FREE, "run_delay": 0.9}, ""),
        ({**FREE, "others": 0.31}, "other processes took 31 % (limit 25 %)"),
        ({**FREE, "steal": 0.5}, "the hypervisor took 50 % (limit 10 %)"),
        ({**FREE, "held_up": 0.9}, "threads waited for a core 90 % (limit 20 %)"),
        (
            {**FREE, "memory_pressure": LIMITS.memory_pressure, "cpu_pressure": 1.0, "io_pressure": 1.0, "mhz": 800.0},
            "",
        ),
        ({**FREE, "memory_pressure": 0.4}, "processes waited for memory 40 % (limit 10 %)"),
        (
            {**FREE, "others": 0.4, "steal": 0.2},
            "other processes took 40 % (limit 25 %); the hypervisor took 20 % (limit 10 %)",
        ),
    ],
)
def test_the_reason_names_what_took_the_machine_and_how_much(shares: dict[str, float], told: str) -> None:
    """A launch just at the limits is not contended."""
    assert gate.contended(shares, LIMITS) == told


def test_the_cpu_time_of_the_worker_itself_is_no_contention() -> None:
    """Shares are of all cores."""
    before, after = reading(100.0, 50.0, 1.0, 10.0), reading(110.0, 74.0, 3.0, 22.0)
    samples = [Sample(wall=1.0, cpu=1.0, delay=0.4), Sample(wall=1.0, cpu=1.0, delay=0.4)]
    found = gate.between(before, after, samples, 4)
    assert found == pytest.approx({"others": 0.3, "steal": 0.05, "run_delay": 0.1, "held_up": 0.1})


def test_pressure_is_a_share_of_wall_time() -> None:
    """Not of the time of the cores. A resource that only one reading has is left out."""
    before = reading(100.0, 0.0, 0.0, 0.0, stalled={"cpu": 5.0, "memory": 1.0}, mhz=3000.0)
    after = reading(110.0, 0.0, 0.0, 0.0, stalled={"cpu": 7.5, "memory": 1.0, "io": 3.0}, mhz=2400.0)
    found = gate.between(before, after, [], 4)
    assert {name: found[name] for name in found.keys() - FREE.keys()} == {
        "cpu_pressure": 0.25,
        "memory_pressure": 0.0,
        "mhz": 2400.0,
    }


def test_pressure_and_clock_are_recorded_if_the_kernel_reports_them(tmp_path: Path) -> None:
    """The clock is that of the given cores."""
    line = "some avg10=0.36 avg60=0.49 avg300=0.73 total=824126932\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
    (tmp_path / "cpu").write_text(line)
    (tmp_path / "io").write_text("nothing of the kind\n")
    assert gate.pressure(tmp_path) == {"cpu": pytest.approx(824.126932)}
    assert gate.pressure(tmp_path / "none") == {}
    for core, khz in enumerate((2_000_000, 3_000_000, 800_000)):
        (tmp_path / f"cpu{core}" / "cpufreq").mkdir(parents=True)
        (tmp_path / f"cpu{core}" / "cpufreq" / "scaling_cur_freq").write_text(f"{khz}\n")
    assert gate.clock((0, 1), tmp_path) == 2500.0
    assert gate.clock((0, 1), tmp_path / "none") is None


def test_threads_that_wait_for_one_another_are_not_held_up() -> None:
    """More threads than cores always wait. They are held up only while the cores work for others."""
    found = reading(100.0, 50.0, 0.0, 10.0, cores=2)

    def held_up(cpu: float) -> float:
        return gate.between(found, found, [Sample(wall=1.0, cpu=cpu, delay=1.9)], 2)["held_up"]

    assert [held_up(2.0), held_up(1.0), held_up(0.0)] == pytest.approx([0.0, 0.5, 0.95])


def stat(folder: Path, *busy: float, steal: float = 0.0) -> Path:
    """The text of /proc/stat for cores that were busy, or stolen, for so many seconds."""
    tick = gate._tick()
    lines = [f"cpu{core} {int(x * tick)} 0 0 900 0 0 0 {int(steal * tick)} 0 0" for core, x in enumerate(busy)]
    path = folder / "stat"
    path.write_text("\n".join((f"cpu  {int(sum(busy) * tick)} 0 0 900 0 0 0 0 0 0", *lines, "intr 5 0", "ctxt 9")))
    return path


@pytest.mark.parametrize(
    ("cores", "others", "told"),
    [
        (range(4), 0.9, "other processes took 90 % (limit 25 %)"),
        (range(4, 16), 0.0, ""),
        (range(16), 0.225, ""),
    ],
)
def test_other_processes_count_only_on_the_cores_of_the_case(
    tmp_path: Path, cores: range, others: float, told: str
) -> None:
    """Four of sixteen cores are busy for others. Only a case on these four is contended."""
    before = Reading(0.0, gate.accounts(cores, cores, stat(tmp_path, *[5.0] * 16)), 0.0)
    after = Reading(10.0, gate.accounts(cores, cores, stat(tmp_path, *[14.0] * 4, *[5.0] * 12)), 0.0)
    shares = gate.between(before, after, [], len(cores))
    assert shares["others"] == pytest.approx(others)
    assert gate.contended(shares, LIMITS) == told


def test_in_a_container_that_renumbers_cores_all_listed_cores_count(tmp_path: Path) -> None:
    """Cores 6 and 7 of the host are 0 and 1 there, while the affinity has the numbers of the host."""
    every = {0: Account(1.0, 0.0), 1: Account(2.0, 0.0)}
    assert gate.accounts((6, 7), (6, 7), stat(tmp_path, 1.0, 2.0)) == every
    # Line 1 is not the host's core 1: that one of ours is beyond what is told gives the numbering away.
    assert gate.accounts((1,), (1, 7), stat(tmp_path, 1.0, 2.0)) == every
    assert gate.accounts((1,), (0, 1), stat(tmp_path, 1.0, 2.0)) == {1: Account(2.0, 0.0)}


def placed(cores: tuple[int, ...] | None, threads: int | None = None) -> Settings:
    return Settings(threads=threads, placement=None if cores is None else {"cores": cores, "threads": threads})


@pytest.mark.parametrize(
    ("settings", "cores", "threads"),
    [
        ([placed((0, 1, 2, 3), 4)], {0, 1, 2, 3}, 4),
        ([placed((0, 1, 2, 3), 2)], {0, 1, 2, 3}, 2),
        ([placed((0, 1), 8)], {0, 1}, 2),
        ([placed(None, 1)], set(ALL), 1),
        ([placed(None)], set(ALL), len(ALL)),
        ([Settings(placement={"cores": None, "nodes": (0,)})], set(ALL), len(ALL)),
        ([placed((0, 1), 2), placed((4, 5), 2)], {0, 1, 4, 5}, 4),
    ],
)
def test_a_case_has_the_cores_of_its_placement(settings: list[Settings], cores: set[int], threads: int) -> None:
    """Without a placement all that this process may use. The cores of instances are added up."""
    assert watch.room(settings) == (frozenset(cores), threads)


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[int], int]]:
    """The cores that the gate read, and for how many threads, each time that they changed."""
    found: list[tuple[list[int], int]] = []

    def between(before: Reading, after: Reading, samples: list[Sample], threads: int) -> dict[str, float]:
        assert before.cores.keys() == after.cores.keys()
        if (seen := (sorted(before.cores), threads)) not in found[-1:]:
            found.append(seen)
        return shares(before, after, samples, threads)

    shares = gate.between
    monkeypatch.setattr(gate, "between", between)
    return found


@pytest.mark.process
@needs_two_cores
def test_a_launch_is_watched_on_the_cores_of_its_placement(looked: list[tuple[list[int], int]]) -> None:
    """From the option down to the accounts of the kernel. Without a placement on all cores."""
    loading.load(FAKES)
    plain = Conditions(Settings(load=FAKES), timeout=60, samples=5, seconds=0.02)
    for wish in (read(f"cores={ALL[-1]}"), None):
        given = placement.apply(plain, CASE, placement.find(Options(placement=wish)))
        assert conduct_play.launch(CASE, 0, given, accuracy=False)[0].outcome == "ok"
    assert looked == [(ALL[-1:], 1), (ALL, len(ALL))]


def test_arms_that_take_turns_are_watched_on_the_cores_of_all(looked: list[tuple[list[int], int]]) -> None:
    """They run one after the other, so their threads do not add up."""
    one, other = (Conditions(placed((ALL[0],), 1)), Conditions(placed(tuple(ALL), None)))
    watched = Watch([one, other])
    watched.begin()
    watched.stretch([])
    assert looked == [(ALL, len(ALL))]
