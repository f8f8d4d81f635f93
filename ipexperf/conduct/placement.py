"""Turn `--perf-placement` into cores, variables and preloaded libraries for workers, or refuse it in one sentence.

A launcher is run once to see what it would set, and each worker is set up the same way. The launcher does not start
the workers, because launchers lose exit statuses and close the pipes that workers are asked through.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ipexperf import scratch, units
from ipexperf.bench import declaration, registry
from ipexperf.bench.api import Execution
from ipexperf.bench.machine import heap, kernel_files, libraries, placement
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.machine.placement import ALLOCATORS, OPENMP, PRELOADED, Placement, ranges
from ipexperf.case import Case
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.process import BOOT, variables_for
from ipexperf.errors import UsageError
from ipexperf.plan.options import Options
from ipexperf.plan.placement import LAUNCHERS, PlacementWish

SOURCE = "--perf-placement"
SYSTEM = Path("/sys/devices/system")
USUAL = "cases on the CPU run on one thread of each core of one memory node: {} (--perf-placement cores=...: others)"
HOW_TO_GET = {
    "iomp5": "pip install intel-openmp",
    "jemalloc": "apt install libjemalloc2",
    "tcmalloc": "apt install libtcmalloc-minimal4",
}
MALLOC_CONF = "oversize_threshold:1,background_thread:true,metadata_thp:auto"
IOMP5 = {"KMP_AFFINITY": "granularity=fine,compact,1,0", "KMP_BLOCKTIME": "1"}
"""The settings of both launchers for jemalloc and Intel's OpenMP."""
LAUNCHER_SECONDS = 120
SET_BY_LAUNCHERS = re.compile(r"OMP_|KMP_|GOMP_|MKL_|MALLOC_|LD_PRELOAD$", re.ASCII)
"""Variables that a launcher sets for speed. Others are its own bookkeeping."""
_PATHS = "import json, sys, sysconfig; print(json.dumps([sys.prefix, sys.base_prefix, sysconfig.get_path('purelib')]))"


@dataclass(frozen=True, slots=True)
class Placed:
    """The placement that a worker applies to itself, and the variables that must be set before it starts."""

    placement: Placement
    variables: Mapping[str, str] = field(default_factory=dict)
    usual: bool = False
    """Nobody asked for it: these are the usual cores. Work on a card has no use for them."""

    def share(self, cores: Sequence[int]) -> Placed:
        """A copy for one of several workers: on these cores only, with one thread for each."""
        variables = {"OMP_NUM_THREADS": str(len(cores))}
        if "GOMP_CPU_AFFINITY" in self.variables:
            variables["GOMP_CPU_AFFINITY"] = ranges(cores)
        return Placed(replace(self.placement, cores=tuple(cores), threads=len(cores)), {**self.variables, **variables})


def apply(conditions: Conditions, case: Case, placed: Placed | None) -> Conditions:
    """The conditions with this placement, and those of each instance if the case has several workers."""
    device, execution = registry.devices.get(case.device), registry.execution(case)
    if placed is not None and placed.usual and device.accelerator:
        placed = None
    cores = placed.placement.cores if placed and placed.placement.cores else tuple(placement.allowed())
    shares = declaration.answer(Execution, execution, "shares", case, cores)
    alone = placed or Placed(Placement())
    parts = tuple(_under(conditions, alone.share(share)) for share in shares)
    if placed is None:
        return replace(conditions, instances=parts)
    if device.accelerator:  # the number of torch's threads is not changed
        placed = replace(placed, placement=replace(placed.placement, threads=None))
    return replace(_under(conditions, placed), instances=parts)


def _under(conditions: Conditions, placed: Placed) -> Conditions:
    settings = replace(
        conditions.settings,
        placement=asdict(placed.placement),
        # Set explicitly: OpenMP may bind the first thread to one core, and torch would then see a single core.
        threads=placed.placement.threads or conditions.settings.threads,
    )
    return replace(conditions, settings=settings, variables={**conditions.variables, **placed.variables})


def find(options: Options, openmp: str = "") -> Placed | None:
    """The placement that these options ask for on this machine, or the usual cores, or None if those are all.

    `openmp` is a runtime that the mode requires. It is used even if the options ask for nothing.
    """
    wish, allowed = options.placement or PlacementWish(), tuple(placement.allowed())
    if (wish.threads or 0) > len(allowed):
        raise UsageError(f"{SOURCE}: threads={wish.threads}: this process may use {units.plural(len(allowed), 'core')}")
    if openmp and wish.launcher is None:
        wish = replace(wish, openmp=openmp)
    if wish.places:
        return _resolve(wish, options.python, allowed)
    cores = usual(allowed)
    if len(cores) == len(allowed) or (wish.threads or 0) > len(cores):
        return None
    return Placed(Placement(cores=cores, threads=wish.threads or len(cores)), usual=True)


def usual(allowed: Sequence[int], system: Path = SYSTEM) -> tuple[int, ...]:
    """The cores for work on the CPU, unless told otherwise: one thread of each core of one memory node.

    Threads of one core share its units, and the memory of another node is far: a step over all of them varies more.
    """
    texts = (kernel_files.text(path) for path in sorted(system.glob("node/node[0-9]*/cpulist")))
    nodes = [set(numbers(text)).intersection(allowed) for text in texts if text]
    node = max(nodes, key=len, default=set()) or set(allowed)

    def first(core: int) -> int:
        siblings = kernel_files.text(system / f"cpu/cpu{core}/topology/thread_siblings_list")
        return min(node.intersection(numbers(siblings))) if siblings else core

    return tuple(core for core in sorted(node) if core == first(core))


def facts_of(facts: Facts, placed: Placed | None) -> Facts:
    """The facts as placed workers see them: only the cores that they were given."""
    cores = placed.placement.cores if placed else None
    return replace(facts, cores=len(cores)) if cores else facts


@functools.lru_cache(maxsize=8)  # each launcher is asked once a run
def _resolve(wish: PlacementWish, python: str | None, allowed: tuple[int, ...]) -> Placed:
    if wish.launcher is not None:
        placed = _from_launcher(wish.launcher, python)
    else:
        placed = _new_placement(wish, python, allowed)
    if placed.placement.cores is not None:
        _refuse_cores(placed.placement.cores, allowed)
    return placed


def _refuse_cores(cores: Sequence[int], allowed: Sequence[int]) -> None:
    count = os.cpu_count() or 1
    if absent := [core for core in cores if core not in allowed and core >= count]:
        raise UsageError(f"{SOURCE}: no core {ranges(absent)} here: there are {count}, from 0 to {count - 1}")
    if outside := [core for core in cores if core not in allowed]:
        raise UsageError(f"{SOURCE}: core {ranges(outside)} is not ours: this process may use {ranges(allowed)}")


def _new_placement(wish: PlacementWish, python: str | None, allowed: tuple[int, ...]) -> Placed:
    if wish.node is not None:
        _refuse_node(wish.node)
    cores, threads = wish.cores or usual(allowed), wish.threads
    variables: dict[str, str] = {}
    preload = []
    if wish.openmp == "iomp5":
        preload.append(library("iomp5", OPENMP["iomp5"], python))
        variables.update(IOMP5)
    elif wish.openmp == "gomp":
        variables["GOMP_CPU_AFFINITY"] = ranges(cores)  # torch ships the library
    if wish.allocator == "libc":
        variables.update(heap.PLAIN)
    if wish.allocator in PRELOADED:
        preload.append(library(wish.allocator, ALLOCATORS[wish.allocator], python))
        if wish.allocator == "jemalloc":
            variables["MALLOC_CONF"] = MALLOC_CONF
    if preload:
        variables["LD_PRELOAD"] = ":".join([*preload, *filter(None, [os.environ.get("LD_PRELOAD")])])
    if wish.cores is not None or wish.openmp is not None:
        threads = threads or len(cores)
        variables["OMP_NUM_THREADS"] = str(threads)
    return Placed(
        Placement(
            cores=cores if wish.cores is not None or wish.openmp is not None else None,
            nodes=None if wish.node is None else (wish.node,),
            openmp=wish.openmp,
            allocator=wish.allocator,
            threads=threads,
        ),
        variables,
    )


def _refuse_node(node: int) -> None:
    nodes = sorted(int(path.name[4:]) for path in SYSTEM.glob("node/node[0-9]*"))
    if node not in nodes:
        text = f"there is {ranges(nodes)}" if nodes else "the kernel tells of none"
        raise UsageError(f"{SOURCE}: no memory node {node} here: {text}")


def library(name: str, pattern: str, python: str | None) -> str:
    """Find a library in the workers' environment or in the system's folders."""
    folders = list(_folders(python))
    if path := libraries.find(name, pattern, folders):
        return path
    raise UsageError(
        f"{SOURCE}: lib{name}.so is not in {', '.join(dict.fromkeys(folders[:2]))} or the system's folders: "
        f"{HOW_TO_GET[name]}"
    )


def _folders(python: str | None) -> Iterator[str]:
    prefixes = libraries.prefixes() if python is None else json.loads(_run([python, "-c", _PATHS], python).stdout)
    return libraries.folders(*prefixes)


def _run(command: list[str], python: str | None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=variables_for(python),
            timeout=LAUNCHER_SECONDS,
            check=False,
        )
    except OSError as error:
        raise UsageError(f"--perf-python={shlex.quote(str(python))}: {error.strerror or error}") from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"{SOURCE}: {command[0]} did not answer within {LAUNCHER_SECONDS} s") from None


def _from_launcher(launcher: str, python: str | None) -> Placed:
    """Let the launcher start a process that reports its placement. The launcher's exit status means nothing."""
    module, *arguments = LAUNCHERS[launcher]
    with scratch.folder("placement") as folder:
        answer = folder / "placement.json"
        program = [str(BOOT), "placement", str(answer)]
        output = _run([python or sys.executable, "-m", module, *arguments, *program], python)
        if not answer.exists():
            lines = (output.stderr + output.stdout).strip().splitlines() or ["it said nothing"]
            raise UsageError(f"{SOURCE}: {launcher} did not start a process: {lines[-1].strip()}")
        document: dict[str, Any] = json.loads(answer.read_text())
    set_by = {
        name: value
        for name, value in document["variables"].items()
        if SET_BY_LAUNCHERS.match(name) and os.environ.get(name) != value
    }
    preloaded = [Path(path).name for path in set_by.get("LD_PRELOAD", "").split(":")]
    bound = re.fullmatch(r"bind (.+)", document["memory"])
    return Placed(
        Placement(
            cores=tuple(document["cores"]),
            nodes=numbers(bound[1]) if bound else None,
            openmp=_first_match(OPENMP, preloaded),
            allocator=_first_match(ALLOCATORS, preloaded),
            threads=int(document["variables"].get("OMP_NUM_THREADS", len(document["cores"]))),
        ),
        set_by,
    )


def _first_match(patterns: Mapping[str, str], files: Sequence[str]) -> str | None:
    """The name of the first pattern that one of these files matches, or None."""
    return next((name for name, pattern in patterns.items() for file in files if re.match(pattern, file)), None)


def numbers(text: str) -> tuple[int, ...]:
    """Parse the kernel's list format, such as `0-3,8`."""
    ends = [[int(end) for end in part.split("-")] for part in text.split(",")]
    return tuple(number for end in ends for number in range(end[0], end[-1] + 1))
