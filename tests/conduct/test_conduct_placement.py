"""Placement: the worker applies it, reads it back after the samples, and refuses an impossible one in one sentence."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import conduct_play
import pytest

from ipexperf.bench import loading
from ipexperf.bench.cell import Settings
from ipexperf.bench.machine import heap
from ipexperf.bench.machine import placement as bench_placement
from ipexperf.bench.machine.placement import Placement
from ipexperf.bench.process.environment import hardware, machine_key
from ipexperf.case import NetworkCase
from ipexperf.conduct import placement
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.placement import Placed
from ipexperf.errors import UsageError
from ipexperf.plan.options import Options
from ipexperf.plan.placement import read
from ipexperf.result import Check, Launch

pytestmark = pytest.mark.process

FAKES = (str(Path(__file__).parents[1] / "fakes" / "fake.py"), str(Path(__file__).parents[1] / "fakes" / "placed.py"))
ALL = tuple(sorted(os.sched_getaffinity(0)))
HERE = Path("/sys/devices/system/node/node0").exists() and bench_placement.memory() != "unknown"
needs_two_cores = pytest.mark.skipif(len(ALL) < 2, reason="a core to leave for another one")
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    placement._resolve.cache_clear()
    yield
    placement._resolve.cache_clear()


@pytest.fixture
def libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in which libraries are looked for."""
    monkeypatch.setattr(placement, "_folders", lambda _: iter([str(tmp_path)]))
    return tmp_path


def find(text: str, **options: Any) -> Placed:
    found = placement.find(Options(placement=read(text), **options))
    assert found is not None
    return found


@pytest.fixture
def run() -> Callable[..., tuple[Launch, dict[str, Any]]]:
    """Launches a fake model once, placed."""

    def run(text: str | None, model: str = "tiny") -> tuple[Launch, dict[str, Any]]:
        loading.load(FAKES)
        case = NetworkCase(model, "fake", "fp32", "spin", "plain", 1, 1, data="none")
        conditions = Conditions(Settings(load=FAKES), timeout=60, samples=5, seconds=0.02)
        placed = None if text is None else placement.find(Options()) if text == "usual" else find(text)
        return conduct_play.launch(case, 0, placement.apply(conditions, case, placed), accuracy=False)

    return run


def placed(done: Launch) -> Check:
    assert done.outcome == "ok", done.reason
    [check] = [check for check in done.proof if check.name == "placement"]
    return check


@needs_two_cores
def test_a_worker_runs_on_the_cores_of_its_placement(run: Callable[..., tuple[Launch, dict[str, Any]]]) -> None:
    """The kernel is asked after the samples. The environment still has all cores of the machine."""
    done, environment = run(f"cores={ALL[-1]}")
    assert placed(done).ok
    assert placed(done).found == f"cores {ALL[-1]}"
    assert environment["placement"]["cores"] == [ALL[-1]]
    assert environment["variables"]["OMP_NUM_THREADS"] == "1"
    assert environment["machine_key"] == machine_key({**hardware(), "accelerator": None})


def topology(system: Path, nodes: dict[int, str], siblings: dict[int, str]) -> None:
    """Write what the kernel tells of memory nodes and of threads of one core."""
    for number, text in nodes.items():
        (system / f"node/node{number}").mkdir(parents=True)
        (system / f"node/node{number}/cpulist").write_text(f"{text}\n")
    for core, text in siblings.items():
        (system / f"cpu/cpu{core}/topology").mkdir(parents=True)
        (system / f"cpu/cpu{core}/topology/thread_siblings_list").write_text(f"{text}\n")


def test_the_usual_cores_are_one_thread_of_each_core_of_one_node(tmp_path: Path) -> None:
    """A host of two nodes with two cores each, all with two threads; node 2 has memory alone."""
    pairs = {core: f"{core % 4},{core % 4 + 4}" for core in range(8)}
    topology(tmp_path, {0: "0-1,4-5", 1: "2-3,6-7", 2: ""}, pairs)
    assert placement.usual(range(8), tmp_path) == (0, 1)
    assert placement.usual((1, 2, 3, 6, 7), tmp_path) == (2, 3), "the node of which most is ours"
    assert placement.usual((4, 5), tmp_path) == (4, 5), "two second threads of two cores"
    assert placement.usual((0, 1, 2), tmp_path / "absent") == (0, 1, 2), "a kernel that tells nothing"


@needs_two_cores
def test_cases_on_the_cpu_run_on_the_usual_cores(
    run: Callable[..., tuple[Launch, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proven like a placement that was asked for. Nobody asked for one, so the case is the same."""
    monkeypatch.setattr(placement, "usual", lambda allowed: allowed[-1:])
    found = placement.find(Options())
    assert found == Placed(Placement(cores=ALL[-1:], threads=1), usual=True)
    assert find("threads=1") == found
    assert placement.find(Options(placement=read("threads=2"))) is None, "more threads than that were asked for"
    done, environment = run("usual")
    assert placed(done).found == f"cores {ALL[-1]}"
    assert environment["machine_key"] == machine_key({**hardware(), "accelerator": None})
    card = NetworkCase("tiny", "cuda", "fp32", "infer", "stock", 1, 1, data="none")
    plain = Conditions(Settings())
    assert placement.apply(plain, card, found) == placement.apply(plain, card, None)


@needs_two_cores
def test_a_model_that_leaves_its_cores_is_detected(run: Callable[..., tuple[Launch, dict[str, Any]]]) -> None:
    """It was placed correctly when it was prepared, and took every core in its first step."""
    done, environment = run(f"cores={ALL[0]}", "mover")
    assert environment["placement"]["cores"] == [ALL[0]]
    assert not placed(done).ok
    assert placed(done).found == f"cores {bench_placement.ranges(ALL)}"


@pytest.mark.skipif(not HERE, reason="the kernel tells of no memory nodes")
def test_memory_comes_from_the_node_that_was_asked_for(run: Callable[..., tuple[Launch, dict[str, Any]]]) -> None:
    """The kernel's policy is read back."""
    done, environment = run("node=0")
    assert environment["placement"]["memory"] == "bind 0"
    assert placed(done).ok


def library(folder: Path, name: str, source: str) -> Path:
    """A shared library with the name of another."""
    path = folder / name
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(path)]
    subprocess.run(command, input=source, text=True, check=True, capture_output=True)
    return path


ALLOCATES = """
extern void *__libc_malloc(unsigned long); extern void __libc_free(void *);
extern void *__libc_calloc(unsigned long, unsigned long); extern void *__libc_realloc(void *, unsigned long);
void *malloc(unsigned long n) { return __libc_malloc(n); }
void free(void *p) { __libc_free(p); }
void *calloc(unsigned long a, unsigned long b) { return __libc_calloc(a, b); }
void *realloc(void *p, unsigned long n) { return __libc_realloc(p, n); }
"""


@needs_compiler
@pytest.mark.parametrize(
    ("source", "provider"),
    [(ALLOCATES, "libjemalloc.so.2"), ("int nothing_of_an_allocator;", "libc.so.6")],
)
def test_a_preloaded_allocator_is_proven_by_what_it_does(
    run: Callable[..., tuple[Launch, dict[str, Any]]],
    libraries: Path,
    source: str,
    provider: str,
) -> None:
    """A library is found by a versioned name. One that has only the name fails its check."""
    path = library(libraries, "libjemalloc.so.2", source)
    done, environment = run("allocator=jemalloc")
    assert environment["variables"]["LD_PRELOAD"] == str(path)
    assert environment["variables"]["MALLOC_CONF"] == placement.MALLOC_CONF
    assert (placed(done).ok, placed(done).found) == (source == ALLOCATES, f"allocator {provider}")


def test_the_heap_of_glibc_keeps_its_defaults_on_request(
    run: Callable[..., tuple[Launch, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise workers keep the memory that steps free. Each launch counts its page faults."""
    for name in [name for name in os.environ if heap.CHOICES.match(name)]:
        monkeypatch.delenv(name)
    done, environment = run(None)
    assert heap.KEEP.items() <= environment["variables"].items()
    assert done.metrics["page_faults"] >= 0
    done, environment = run("allocator=libc")
    assert heap.PLAIN.items() <= environment["variables"].items()
    assert not heap.KEEP.keys() & environment["variables"].keys()
    assert placed(done).ok
    assert placed(done).found == "allocator libc.so.6"


@needs_compiler
def test_intels_openmp_is_preloaded_with_its_settings(
    run: Callable[..., tuple[Launch, dict[str, Any]]], libraries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before other preloaded libraries, so that it answers the calls of OpenMP."""
    other = library(libraries, "libother.so", "int other;")
    monkeypatch.setenv("LD_PRELOAD", str(other))
    path = library(libraries, "libiomp5.so", "void GOMP_parallel(void) {}")
    done, environment = run("openmp=iomp5")
    told = environment["variables"]
    assert told["LD_PRELOAD"] == f"{path}:{other}"
    assert (told["KMP_AFFINITY"], told["KMP_BLOCKTIME"]) == ("granularity=fine,compact,1,0", "1")
    assert placed(done).ok
    assert "openmp libiomp5.so" in placed(done).found


def test_the_openmp_that_a_mode_requires_is_used(monkeypatch: pytest.MonkeyPatch, libraries: Path) -> None:
    """With and without cores in the option. A launcher chooses by itself."""
    (libraries / "libiomp5.so").touch()
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    for wish, cores in ((None, ALL), (read(f"cores={ALL[-1]}"), ALL[-1:])):
        found = placement.find(Options(placement=wish), "iomp5")
        assert found is not None
        assert found.variables["LD_PRELOAD"] == str(libraries / "libiomp5.so")
        assert (found.placement.openmp, found.placement.cores) == ("iomp5", cores)
    monkeypatch.setattr(
        placement, "_from_launcher", lambda launcher, *_: Placed(bench_placement.Placement(openmp=launcher))
    )
    asked = placement.find(Options(placement=read("launcher=xeon")), "iomp5")
    assert asked is not None
    assert asked.placement.openmp == "xeon"
    assert placement.find(Options(), "") is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("cores=4000-4001", r"no core 4000-4001 here: there are \d+, from 0 to \d+"),
        ("node=4000", "no memory node 4000 here"),
        ("openmp=iomp5", "libiomp5.so is not in .* or the system's folders: pip install intel-openmp"),
        ("allocator=jemalloc", "apt install libjemalloc2"),
        ("allocator=tcmalloc", "apt install libtcmalloc-minimal4"),
    ],
)
@pytest.mark.usefixtures("libraries")
def test_a_missing_core_node_or_library_is_refused(text: str, told: str) -> None:
    """One sentence before anything is measured, with how to install it if possible."""
    with pytest.raises(UsageError, match=told):
        find(text)


LAUNCHER = """
import os, subprocess, sys
os.sched_setaffinity(0, {core})
environment = {{**os.environ, "OMP_NUM_THREADS": "1", "KMP_BLOCKTIME": "1", "TORCHELASTIC_ERROR_FILE": ""}}
subprocess.run([sys.executable, *sys.argv[3:]], env=environment, check=True)
sys.exit(7)
"""


def test_workers_get_what_a_launcher_would_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever its exit status is."""
    (tmp_path / "a_launcher.py").write_text(LAUNCHER.format(core={ALL[-1]}))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.delenv("KMP_BLOCKTIME", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setitem(placement.LAUNCHERS, "xeon", ("a_launcher", "--ninstances", "1"))
    found = find("launcher=xeon")
    assert found.placement.cores == (ALL[-1],)
    assert found.placement.threads == 1
    assert found.variables == {"OMP_NUM_THREADS": "1", "KMP_BLOCKTIME": "1"}


def test_a_launcher_that_starts_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its last line."""
    monkeypatch.setitem(placement.LAUNCHERS, "ipexrun", ("a_launcher_that_nobody_has",))
    with pytest.raises(UsageError, match=r"ipexrun did not start a process: .*No module named"):
        find("launcher=ipexrun")


def checked(monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any], **found: Any) -> Check:
    """The checks of a process in which this is in effect."""
    effect = {"cores": [0], "threads_cores": [[0]], "threads": 1, "openmp": "", "allocator": "", "memory": "default"}
    monkeypatch.setattr(bench_placement, "effect", lambda: {**effect, **found})
    [check] = bench_placement.checks(asked)
    return check


def test_each_check_of_a_placement_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of threads, memory, and the cores of each thread."""
    for name in bench_placement.BINDING:
        monkeypatch.delenv(name, raising=False)
    assert checked(monkeypatch, {"threads": 1}).ok
    assert not checked(monkeypatch, {"threads": 1}, threads=2).ok
    assert not checked(monkeypatch, {"nodes": [0]}).ok
    assert checked(monkeypatch, {"nodes": [0]}, memory="bind 0").ok
    two = {"cores": [0, 1], "threads": 2}
    apart = {"cores": [0, 1], "threads_cores": [[0], [1]], "threads": 2}
    assert not checked(monkeypatch, two, **apart).ok, "threads that nobody told to bind themselves have"
    monkeypatch.setenv("GOMP_CPU_AFFINITY", "0-1")
    assert checked(monkeypatch, two, **apart).ok
    assert not checked(monkeypatch, two, **{**apart, "cores": [0], "threads_cores": [[0]]}).ok
    assert not checked(monkeypatch, two, **{**apart, "cores": [0, 1, 2], "threads_cores": [[0], [1], [2]]}).ok


BINDS = """
import os
from ipexperf.bench import loading
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
"""


@needs_two_cores
def test_openmp_that_binds_its_first_thread_hides_no_core_of_the_machine(tmp_path: Path) -> None:
    """`ipexrun` sets OMP_PROC_BIND, which binds the first thread once torch is imported. All cores stay recorded."""
    (tmp_path / "binds.py").write_text(BINDS)
    load = (*FAKES, str(tmp_path / "binds.py"))
    case = NetworkCase("tiny", "fake", "fp32", "spin", "plain", 1, 1, data="none")
    loading.load(FAKES)
    conditions = Conditions(Settings(load=load), timeout=60, samples=5, seconds=0.02)
    done, environment = conduct_play.launch(case, 0, conditions, accuracy=False)
    assert done.outcome == "ok"
    assert environment["hardware"]["affinity"] == list(ALL)
    assert environment["machine_key"] == machine_key({**hardware(), "accelerator": None})
