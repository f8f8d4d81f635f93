"""The placement of a worker: applied before torch is imported, and read back from the system."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ipexperf.bench.lazy import torch
from ipexperf.bench.machine import libraries
from ipexperf.errors import WorkerError
from ipexperf.result import Check

OPENMP = {"iomp5": r"libiomp5\b", "gomp": r"libgomp\b"}
ALLOCATORS = {"jemalloc": r"libjemalloc\b", "tcmalloc": r"libtcmalloc", "libc": r"libc\b"}
"""The file names of each library."""
PRELOADED = ("jemalloc", "tcmalloc")
"""Allocators that replace the C library's only if they are preloaded."""
BINDING = ("KMP_AFFINITY", "GOMP_CPU_AFFINITY", "OMP_PROC_BIND", "OMP_PLACES")
"""Variables that make OpenMP bind each of its threads to a part of the cores."""
OWN_CORES = frozenset({"jemalloc_bg_thd"})
"""Threads that set their own affinity and do no arithmetic of the case."""
_CALLS = {"x86_64": (238, 239), "aarch64": (237, 236)}
"""System call numbers of set_mempolicy and get_mempolicy, for which the C library has no functions."""
_POLICIES = ("default", "preferred", "bind", "interleave", "local", "preferred_many", "weighted_interleave")
_BIND = 2
_NODES = 1024
_WORD = 8 * ctypes.sizeof(ctypes.c_ulong)

_before = tuple(sorted(os.sched_getaffinity(0)))
"""The cores that this process could use at its start. OpenMP may later bind this thread to one of them."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The requested placement of a worker, sent as JSON. `checks` proves it. None leaves a setting alone."""

    cores: tuple[int, ...] | None = None
    nodes: tuple[int, ...] | None = None
    openmp: str | None = None
    allocator: str | None = None
    threads: int | None = None

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Placement:
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in document.items()
        }
        return cls(**values)


def ranges(numbers: Iterable[int]) -> str:
    """Format numbers in the kernel's list format: `0-3,8`."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][-1] == number - 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def allowed() -> list[int]:
    """Return the cores that this process could use before it was placed."""
    return list(_before)


def apply(document: Mapping[str, Any] | None) -> None:
    """Apply the requested cores and memory nodes. Call it while the process has one thread."""
    if document is None:
        return
    requested = Placement.of(document)
    if requested.cores is not None:
        try:
            os.sched_setaffinity(0, requested.cores)
        except OSError as error:
            raise _untaken(f"cores {ranges(requested.cores)}", error) from None
        if (current := os.sched_getaffinity(0)) != set(requested.cores):
            raise _untaken(f"cores {ranges(requested.cores)}", f"the kernel gave {ranges(current)}")
    if requested.nodes is not None:
        _bind_memory(requested.nodes)
        if (policy := memory()) != f"bind {ranges(requested.nodes)}":
            raise _untaken(f"memory of node {ranges(requested.nodes)}", f"the kernel gave {policy}")


@contextlib.contextmanager
def on(core: int | None) -> Iterator[None]:
    """Keep this thread, and what it starts, on one of its cores meanwhile, if one is given."""
    if core is None or core not in (before := os.sched_getaffinity(0)):
        yield
        return
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _untaken(setting: str, cause: object) -> WorkerError:
    text = cause.strerror if isinstance(cause, OSError) else cause
    return WorkerError("error", f"the placement did not take: {setting}: {text}")


def _call(index: int, *arguments: Any) -> None:
    call = _CALLS.get(platform.machine())
    if call is None:
        raise OSError(0, f"memory nodes are not built for {platform.machine()}")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(call[index], *arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _bind_memory(nodes: Iterable[int]) -> None:
    """Bind memory to these nodes, for this thread and all threads that it starts."""
    mask = (ctypes.c_ulong * (_NODES // _WORD))()
    for node in nodes:
        mask[node // _WORD] |= 1 << node % _WORD
    try:
        _call(0, ctypes.c_int(_BIND), mask, ctypes.c_ulong(_NODES + 1))
    except OSError as error:
        raise _untaken(f"memory of node {ranges(nodes)}", error) from None


def memory() -> str:
    """Return this thread's memory policy, such as `default` or `bind 0`, or `unknown`."""
    mode, mask = ctypes.c_int(), (ctypes.c_ulong * (_NODES // _WORD))()
    try:
        _call(1, ctypes.byref(mode), mask, ctypes.c_ulong(_NODES + 1), None, ctypes.c_ulong(0))
    except OSError:
        return "unknown"
    nodes = [word * _WORD + bit for word, value in enumerate(mask) for bit in range(_WORD) if value >> bit & 1]
    return f"{_POLICIES[mode.value & 0xFF]} {ranges(nodes)}".strip()


class _Symbol(ctypes.Structure):
    """The dynamic loader's information on an address (Dl_info)."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def provider(function: str) -> str | None:
    """Return the name of the file that provides a function in this process: a preloaded library or libc."""
    program = ctypes.CDLL(None)
    try:
        address = ctypes.cast(getattr(program, function), ctypes.c_void_p)
    except AttributeError:
        return None
    symbol = _Symbol()
    if not program.dladdr(address, ctypes.byref(symbol)) or not symbol.file:
        return None
    return Path(os.fsdecode(symbol.file)).name


def effect() -> dict[str, Any]:
    """Return the placement in effect, as reported by the kernel, the loader and torch."""
    masks = []
    for thread in os.listdir("/proc/self/task"):  # noqa: PTH208 - numbers, not paths
        with contextlib.suppress(OSError):  # it ended while we looked
            if Path(f"/proc/self/task/{thread}/comm").read_text().strip() not in OWN_CORES:
                masks.append(sorted(os.sched_getaffinity(int(thread))))
    return {
        "cores": sorted({core for mask in masks for core in mask}),
        "threads_cores": [list(mask) for mask in sorted({tuple(mask) for mask in masks})],
        "threads": torch.get_num_threads() if "torch" in sys.modules else None,
        "openmp": provider("GOMP_parallel") or ", ".join(libraries.loaded()["openmp"]),
        "allocator": provider("malloc"),
        "memory": memory(),
    }


def checks(document: Mapping[str, Any] | None) -> list[Check]:
    """Check the placement in effect against the requested one. No checks if none was requested."""
    if document is None:
        return []
    requested, actual = Placement.of(document), effect()
    rows: list[tuple[bool, str, str]] = []
    if requested.cores is not None:
        cores, masks = list(requested.cores), actual["threads_cores"]
        if any(name in os.environ for name in BINDING):
            # OpenMP gave each thread a part of the cores: together they must be the requested cores.
            complete = (requested.threads or 0) < len(cores) or actual["cores"] == cores
            ok = complete and set(actual["cores"]) <= set(cores)
        else:
            ok = masks == [cores]
        rows.append((ok, "cores " + " and ".join(map(ranges, masks)), f"cores {ranges(cores)}"))
    if requested.threads is not None and actual["threads"] is not None:
        rows.append(
            (actual["threads"] == requested.threads, f"{actual['threads']} threads", f"{requested.threads} threads")
        )
    if requested.nodes is not None:
        policy = f"bind {ranges(requested.nodes)}"
        rows.append((actual["memory"] == policy, f"memory {actual['memory']}", f"memory {policy}"))
    for kind, files in (("openmp", OPENMP), ("allocator", ALLOCATORS)):
        name = getattr(requested, kind)
        # libgomp is not preloaded, it comes with torch.
        if name is not None and (name != "gomp" or "torch" in sys.modules):
            file = actual[kind] or "none"
            rows.append((re.match(files[name], file) is not None, f"{kind} {file}", f"{kind} {name}"))
    if not rows:
        return []
    passed, actual_texts, requested_texts = zip(*rows, strict=True)
    return [Check("placement", all(passed), ", ".join(actual_texts), ", ".join(requested_texts))]


def main() -> None:
    """Write the placement that a launcher gave this process to a file."""
    document = {"cores": sorted(os.sched_getaffinity(0)), "memory": memory(), "variables": dict(os.environ)}
    Path(sys.argv[1]).write_text(json.dumps(document))


if __name__ == "__main__":
    main()
