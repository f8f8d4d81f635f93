"""Torch's profiler: a step run under it, within bounds of memory, and tables of what it recorded.

It is started where it cannot record a card's kernels, and ended before its records fill the memory.
"""

from __future__ import annotations

import _thread
import contextlib
import hashlib
import itertools
import json
import re
import signal
import threading
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ipexperf import scratch
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine import heap, kernel_files

KEPT = 128 * 2**20
"""Most bytes of records while a step runs: of some 400,000 events. When they are written they take 2 GiB."""
TOO_MANY = "a step makes too many calls to list them"
_SECONDS = 0.05
_SIGNAL = signal.SIGRTMAX
"""It is not sent: only its handler is called, in the main thread."""
COMMUNICATION_SECONDS = 2.0
"""How long a profile waits at most for the threads of torch.distributed to finish."""
DTYPES = {
    "float": "float32",
    "c10::BFloat16": "bfloat16",
    "c10::Half": "float16",
    "double": "float64",
    "c10::quint8": "uint8",
    "c10::qint8": "int8",
    "unsigned char": "uint8",
    "signed char": "int8",
    "int": "int32",
    "long int": "int64",
}
"""Names of dtypes in torch's profiler."""
SHAPES = 3
"""Number of different shapes of an operator to list. More are replaced by a digest."""
ROWS = 400
"""Limit of rows in a section. The rest is folded into one row, so that records stay small."""
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
"""Categories of events on an accelerator."""
_OPERATOR = "cpu_op"
MEMORY = "[memory]"
OWN = ("profiler::", "autograd::engine::evaluate_function", "## ")
"""Events of the profiler and autograd themselves, which repeat the operators inside."""
_HASH = re.compile(r"[0-9a-f]{12,}|(?<=Region: )[\d/]+")

Section = tuple[list[dict[str, Any]], list[float]]
"""Rows of the structure, and the seconds of each."""


class TooManyCallsError(Exception):
    """A step made more calls than are kept."""


@contextlib.contextmanager
def running(device: str, **what: Any) -> Iterator[torch.autograd.profiler.profile]:
    """Run torch's profiler, with the kernels of this device if it can have them.

    Intel's library that records them (PTI) refuses some drivers and is not found in some environments. Then the first
    start raises, even one for operators alone, and the second one goes without the library. A build of torch that has
    no PTI refuses the device.
    """
    with contextlib.ExitStack() as stack:
        try:
            profile = stack.enter_context(_made(device, **what))
        except (AssertionError, RuntimeError):
            traceback.print_exc()
            profile = stack.enter_context(_made("cpu", **what))
        yield profile


def _made(device: str, **what: Any) -> torch.autograd.profiler.profile:
    # Not torch.profiler: that wrapper imports torch's compilers, which takes a second in each worker.
    used = None if device == "cpu" else device
    return torch.autograd.profiler.profile(use_kineto=True, use_device=used, record_shapes=True, **what)


def most(step: Callable[[], Any]) -> tuple[int, Any]:
    """Run a step. Return how much memory the process may have while its calls are recorded, and what it returned."""
    seen = [_taken()]
    with _watched(seen.append):
        returned = step()
    return max(seen) + KEPT, returned


@contextlib.contextmanager
def limited(profile: torch.autograd.profiler.profile, most: int) -> Iterator[None]:
    """End this profiler once the process has more memory than this, and raise TooManyCallsError after the block."""
    over, ended = threading.Event(), threading.Event()

    def end(*_: Any) -> None:
        # In a backward pass autograd puts back the state of this thread afterwards, and the profiler with it: later.
        if over.is_set() and not ended.is_set() and torch._C._current_graph_task_id() < 0:  # noqa: SLF001 - the only way
            ended.set()
            profile.__exit__(None, None, None)
            profile.enabled = False

    def look(taken: int) -> None:
        if taken > most:
            over.set()
            _thread.interrupt_main(_SIGNAL)

    before = signal.signal(_SIGNAL, end)
    try:
        with _watched(look):
            yield
    finally:
        signal.signal(_SIGNAL, before)
    if over.is_set():
        end()
        raise TooManyCallsError(TOO_MANY)


@contextlib.contextmanager
def _watched(tell: Callable[[int], None]) -> Iterator[None]:
    """Tell how much memory the process has, again and again, from a thread of its own."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_SECONDS):
            tell(_taken())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _taken() -> int:
    """The memory that is allocated, or that is resident where the allocator does not tell."""
    used = heap.in_use()
    return heap.resident() if used is None else used


def traced(
    step: Callable[[], Any],
    *,
    everywhere: bool = False,
    device: str = "cpu",
    memory: bool = False,
    most: int | None = None,
) -> list[dict[str, Any]]:
    """Run one step under torch's profiler, and return the events of its trace.

    The profiler sees the calling thread and those of autograd, or with `everywhere` all threads of the process. With
    the name of an accelerator it also records kernels there, with `memory` each allocation. Raises TooManyCallsError
    once its records bring the process above `most` bytes.
    """
    config = torch._C._profiler._ExperimentalConfig(profile_all_threads=everywhere)  # noqa: SLF001 - the only way
    with running(device, profile_memory=memory, experimental_config=config) as profile:
        with limited(profile, most) if most is not None else contextlib.nullcontext():
            step()
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            _wait_for_communication()
    with scratch.folder("trace") as folder:
        path = folder / "trace.json"
        profile.export_chrome_trace(str(path))
        events: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return events


def _wait_for_communication() -> None:
    """Wait until all other threads of this process sleep, at most COMMUNICATION_SECONDS.

    A thread of gloo hands over its result first and then writes the end of its operator into the profiler's record.
    Without this wait the profiler may have freed that record, and the process crashes: 1 of 4 ranks' fingerprints did.
    """
    me = str(threading.get_native_id())
    end = time.monotonic() + COMMUNICATION_SECONDS
    asleep = False
    while not asleep and time.monotonic() < end:
        time.sleep(0.01)
        states = []
        for task in Path("/proc/self/task").iterdir():
            with contextlib.suppress(OSError):  # it ended while we looked
                states.append(kernel_files.stat_fields(f"self/task/{task.name}")[0] if task.name != me else "S")
        asleep = "R" not in states


@dataclass(slots=True)
class _Operator:
    calls: int = 0
    seconds: float = 0.0
    types: Counter[str] = field(default_factory=Counter)
    shapes: Counter[str] = field(default_factory=Counter)
    inside: Counter[str] = field(default_factory=Counter)


def operators(events: Iterable[dict[str, Any]]) -> Section:
    """Return every operator with its number of calls, dtypes, shapes, callers and own time."""
    by_id: dict[str, _Operator] = defaultdict(_Operator)
    for event, caller, seconds in _nested(events):
        operator, arguments = by_id[_named(event)], event.get("args", {})
        operator.calls += 1
        operator.seconds += seconds
        operator.types[_types(arguments)] += 1
        operator.shapes["; ".join("x".join(map(str, dims)) for dims in arguments.get("Input Dims", ()) if dims)] += 1
        operator.inside[caller] += 1
    rows = [
        {
            "operator": name,
            "calls": operator.calls,
            "types": _sorted(operator.types),
            "shapes": folded(operator.shapes),
            "inside": _sorted(operator.inside),
        }
        for name, operator in by_id.items()
    ]
    return canonical(rows, [operator.seconds for operator in by_id.values()])


def kernels(events: Iterable[dict[str, Any]]) -> Section:
    """Return every kernel of an accelerator by name, without the parts of the name that differ between builds."""
    calls: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for event in events:
        if event.get("cat") in DEVICE:
            name = plain(str(event["name"]))
            calls[name] += 1
            seconds[name] += event.get("dur", 0) / 1e6
    rows = [{"kernel": name, "calls": count} for name, count in calls.items()]
    return canonical(rows, [seconds[name] for name in calls])


def counts(events: Iterable[dict[str, Any]], *, kernels: bool) -> dict[str, int]:
    """Return how many operators a step called, and how many kernels ran if they were recorded."""
    kinds = Counter(event.get("cat") for event in events if not str(event.get("name")).startswith(OWN))
    ran = {"kernels": sum(kinds[kind] for kind in DEVICE)} if kernels else {}
    return {"operators": kinds[_OPERATOR], **ran}


def memory(events: Iterable[dict[str, Any]], *, accelerator: bool) -> dict[str, int]:
    """Return the allocations of a step: number, total bytes, and peak above the level at its beginning.

    Nothing where an accelerator shows none: its allocator may not tell the profiler.
    """
    marks = [
        event for event in events if event.get("name") == MEMORY and bool(event["args"]["Device Type"]) == accelerator
    ]
    if accelerator and not marks:
        return {}
    changes = [
        int(mark["args"]["Bytes"]) for mark in sorted(marks, key=lambda event: (event["ts"], event["args"]["Ev Idx"]))
    ]
    allocations = [change for change in changes if change > 0]
    return {
        "allocations": len(allocations),
        "allocated": sum(allocations),
        "peak": max((0, *itertools.accumulate(changes))),
    }


def plain(kernel: str) -> str:
    """Remove return type, arguments, template arguments and hashes from a kernel's name."""
    kernel, depth, letters = kernel.replace("(anonymous namespace)", "anonymous").replace("->", ""), 0, []
    for letter in kernel:
        depth += letter in "<("
        if not depth:
            letters.append(letter)
        depth -= letter in ">)"
    words = "".join(letters).split()
    name = words[-1] if words and words[0] == "void" else " ".join(words)
    return _HASH.sub("#", name)


def _nested(events: Iterable[dict[str, Any]]) -> list[tuple[dict[str, Any], str, float]]:
    """Yield each operator with the name of its caller and its own seconds."""
    chosen = [event for event in events if event.get("cat") == _OPERATOR and not str(event.get("name")).startswith(OWN)]
    # At equal times the outer one is the longer one, or the one that was recorded first.
    chosen.sort(
        key=lambda event: (str(event.get("tid")), event["ts"], -event["dur"], event.get("args", {}).get("Ev Idx", 0))
    )
    callers, seconds = [""] * len(chosen), [event["dur"] / 1e6 for event in chosen]
    open_ones: list[int] = []
    for number, event in enumerate(chosen):
        while open_ones and not _within(event, chosen[open_ones[-1]]):
            open_ones.pop()
        if open_ones:
            callers[number] = _named(chosen[open_ones[-1]])
            seconds[open_ones[-1]] -= event["dur"] / 1e6
        open_ones.append(number)
    return [(event, callers[number], max(0.0, seconds[number])) for number, event in enumerate(chosen)]


def _within(event: dict[str, Any], outer: dict[str, Any]) -> bool:
    return event.get("tid") == outer.get("tid") and bool(event["ts"] < outer["ts"] + outer["dur"])


def _named(event: dict[str, Any]) -> str:
    return _HASH.sub("#", str(event["name"]))


def _types(arguments: dict[str, Any]) -> str:
    """Return the dtypes of an operator's tensor arguments, including those in lists."""
    names = [DTYPES.get(name, name) for name in map(str, arguments.get("Input type", ()))]
    return ", ".join(name for name in names if name and not name.startswith(("Scalar", "GenericList")))


def folded(shapes: Counter[str]) -> dict[str, int] | str:
    """List a few shapes, or return a digest of many, which is enough to compare them."""
    if len(shapes) <= SHAPES:
        return _sorted(shapes)
    text = "\n".join(f"{shape} {count}" for shape, count in sorted(shapes.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def canonical(rows: list[dict[str, Any]], seconds: list[float]) -> Section:
    """Return the rows in canonical order. All beyond the limit are folded into one."""
    order = sorted(range(len(rows)), key=lambda number: _text(rows[number]))
    listed, rest = order[:ROWS], order[ROWS:]
    others = [rows[number] for number in listed]
    times = [seconds[number] for number in listed]
    if rest:
        digest = hashlib.sha256("\n".join(_text(rows[number]) for number in rest).encode()).hexdigest()[:12]
        others.append({"rest": len(rest), "calls": sum(rows[number]["calls"] for number in rest), "digest": digest})
        times.append(sum(seconds[number] for number in rest))
    return others, times


def _text(row: dict[str, Any]) -> str:
    return repr(sorted(row.items(), key=lambda part: part[0]))


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))
