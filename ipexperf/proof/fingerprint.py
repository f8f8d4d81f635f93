"""Fingerprints: what a step ran, without noise, captured twice after all sampling, in a canonical form.

A fingerprint has a `structure`, which is equal for equal software and has a digest, and `times`, which vary.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import re
import sys
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ipexperf.bench.api import Captured, Look, Session
from ipexperf.bench.clocks import perf_counter
from ipexperf.bench.declaration import answer
from ipexperf.bench.device import Device
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine import source
from ipexperf.bench.model import Tensors
from ipexperf.proof import onednn, profiler
from ipexperf.proof.work import Work, content

VERSION = 1
"""Version of the canonical form. Fingerprints of different versions are not compared."""
SHOWN, LINE = 5, 300
"""Number and length of unparsed log lines to keep."""
ISA_VARIABLES = (*onednn.ISA_VARIABLES, "ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS")
"""Variables that limit the instruction sets which libraries use."""
_NODE = re.compile(r"= (\w+::\w+?)(?:_\d+)?(?:\[[^\n]*?\])?\(")
_CALL = re.compile(r"\b((?:torch\.ops|extern_kernels)\.[\w.]+(?=\()|cpp_\w+(?=\()|\w+(?=\.run\())")
"""What inductor's code calls: of torch, in C++, and in Triton, whose sources stand beside it with their own names."""
METRICS = {
    "step_flops": ("work", "step_flops"),
    "parameters": ("work", "parameters"),
    "step_memory": ("memory", "peak"),
    "step_allocations": ("memory", "allocations"),
    "step_operators": ("counts", "operators"),
    "step_kernels": ("counts", "kernels"),
    "step_python_calls": ("python", "calls"),
}
"""Where a fingerprint has the metrics of its step, beside its structure."""
UNRECORDED = "torch's profiler recorded no kernel, though operators ran"
_PLACE = re.compile(r"(?:/\S+/)?\S+\.py:\d+|0x[0-9a-f]+|\bline \d+")


def of(session: Session, device: Device) -> dict[str, Any] | None:
    """Return the fingerprint of a step of this session, or None if there is none. Called after all sampling."""
    if whole := answer(Session, session, "fingerprint", device):
        return dict(whole)
    looks = answer(Session, session, "looks", device)
    return capture(looks) if looks else None


def of_step(step: Callable[[], Any], device: Device, *, everywhere: bool = False) -> dict[str, Look]:
    """Return the looks that any steps allow: operators, primitives below them, and processor."""

    def whole() -> None:
        step()
        device.synchronise()

    looks: dict[str, Look] = {"operators": functools.partial(_profiled, whole, device, everywhere)}
    if device.name == "cpu":
        looks["primitives"] = lambda: primitives(onednn.recorded(whole, onednn.verbose()))
    looks["processor"] = processor  # last: oneDNN reports its instructions when its log is on
    return looks


def _profiled(step: Callable[[], Any], device: Device, everywhere: bool) -> dict[str, Captured | str]:  # noqa: FBT001 - partial
    kind = device.name if device.accelerator else "cpu"
    most, calls = profiler.most(lambda: python_calls(step))
    try:
        events = profiler.traced(
            step,
            everywhere=everywhere,
            device=kind,
            memory=True,
            most=None if everywhere else most,  # other threads cannot be left in between
        )
    except profiler.TooManyCallsError as error:
        return {"operators": str(error)}
    kernels = Captured(*profiler.kernels(events))
    rows, seconds = profiler.operators(events)
    # Some versions of torch record no kernels of some cards: that is no step without kernels.
    recorded = device.accelerator and bool(kernels.structure or not rows)
    beside = {
        "memory": profiler.memory(events, accelerator=device.accelerator),
        "counts": profiler.counts(events, kernels=recorded),
        "python": calls,
    }
    operators = Captured(rows, seconds, beside=beside)
    if not device.accelerator:
        return {"operators": operators}
    return {"operators": operators, "kernels": kernels if recorded else UNRECORDED}


def python_calls(step: Callable[[], Any]) -> dict[str, Any]:
    """Count the calls that Python makes in this thread for a step, and name the user's functions among them."""
    calls, codes = 0, set()

    def count(frame: Any, event: str, _: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")
        codes.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        step()
    finally:
        sys.setprofile(before)
    return {"calls": calls - 1, "functions": source.functions(codes)}  # without the call that ends the counting


Calls = Mapping[onednn.Primitive, tuple[int, float]]
"""Primitives without their seconds, each with its number of calls and the seconds of all of them."""


def primitives(log: onednn.OneDnnLog) -> dict[str, Captured]:
    """Return the primitives that oneDNN ran, grouped, and how often it created some."""
    created = Counter(
        f"{primitive.name} {primitive.moment}" for primitive in log.primitives if primitive.moment != "exec"
    )
    section = {"created": dict(sorted(created.items())), "unparsed": len(log.unparsed)}
    return {"primitives": executed(counted(log.executed), log.unparsed), "library": Captured(section)}


def counted(primitives: Iterable[onednn.Primitive]) -> Calls:
    calls: dict[onednn.Primitive, tuple[int, float]] = {}
    for primitive in primitives:
        same = dataclasses.replace(primitive, seconds=0.0)
        count, seconds = calls.get(same, (0, 0.0))
        calls[same] = count + 1, seconds + primitive.seconds
    return calls


def executed(calls: Calls, unparsed: tuple[str, ...] = ()) -> Captured:
    """Return primitives that ran, with those in one row that differ in their shapes alone."""
    alike: dict[str, list[onednn.Primitive]] = defaultdict(list)
    for primitive in calls:
        row = {
            "primitive": primitive.name,
            "direction": primitive.direction,
            "implementation": primitive.implementation,
            "types": " ".join(f"{operand.role}:{operand.dtype}" for operand in primitive.operands),
            "layouts": " ".join(f"{operand.role}:{operand.tag}" for operand in primitive.operands),
            "attributes": primitive.attributes,
            "fused": "+".join(onednn.fused(primitive)),
            "algorithm": primitive.algorithm,
        }
        alike[json.dumps(row)].append(primitive)
    rows, seconds = [], []
    for text, same in alike.items():
        shapes: Counter[str] = Counter()
        for primitive in same:
            shapes[primitive.problem] += calls[primitive][0]
        rows.append({**json.loads(text), "calls": shapes.total(), "shapes": profiler.folded(shapes)})
        seconds.append(sum(calls[primitive][1] for primitive in same))
    return Captured(*profiler.canonical(rows, seconds), unparsed)


def processor() -> dict[str, Captured]:
    """Return the number of threads, and the instruction sets that ATen and oneDNN report."""
    section = {
        "threads": torch.get_num_threads(),
        "aten": torch.backends.cpu.get_cpu_capability(),
        "onednn": onednn.isas(),
        "limits": {name: os.environ[name] for name in ISA_VARIABLES if name in os.environ},
    }
    return {"processor": Captured(section)}


def graph(text: str) -> dict[str, Captured]:
    """Return the nodes of a printed TorchScript graph by kind, with counts."""
    nodes = Counter(name for name in _NODE.findall(text) if name != "prim::Constant")
    rows: list[dict[str, Any]] = [{"node": name, "calls": count} for name, count in sorted(nodes.items())]
    return {"graph": Captured(rows)}


def compiled(graphs: int, frames: int, breaks: Mapping[str, int], code: Iterable[str]) -> dict[str, Captured]:
    """Return dynamo's counters, and the functions that inductor's code calls."""
    calls = Counter(name for source in code for name in _CALL.findall(bare(source)))
    # Remove places in files from reasons of breaks: they move with every line above them.
    reasons = Counter({" ".join(_PLACE.sub("#", why).split())[:LINE]: count for why, count in breaks.items()})
    section = {
        "graphs": graphs,
        "frames": frames,
        "breaks": dict(sorted(reasons.items())),
        "calls": dict(sorted(calls.items())[: profiler.ROWS]),
    }
    return {"compiled": Captured(section)}


def bare(code: str) -> str:
    """Remove the comment lines of Python code."""
    return "\n".join(line for line in code.splitlines() if not line.lstrip().startswith("#"))


def flops(work: Work, items: int, batch: Tensors) -> dict[str, Captured]:
    """Return the FLOPs of a step of the untouched network, with its items for the roofline, and a batch of its data."""
    beside = {"work": {"items": items, **work}, "batch": content(batch)}
    return {"flops": Captured(work["step_flops"], beside=beside)}


def capture(looks: Mapping[str, Look], *, once: bool = False) -> dict[str, Any]:
    """Run every look twice, or once. Return the fingerprint, with the sections that differed the second time."""
    begin = perf_counter()
    missing: dict[str, str] = {}
    first = _sections(looks, missing)
    second = first if once else _sections(looks, missing)
    structure = {name: section.structure for name, section in first.items()}
    again = {name: section.structure for name, section in second.items()}
    unstable = sorted(name for name in {*structure, *again} if structure.get(name) != again.get(name))
    seconds = {
        name: (section.seconds, section.seconds if name in unstable else second[name].seconds or section.seconds)
        for name, section in first.items()
        if section.seconds is not None
    }
    unparsed = [line[:LINE] for section in first.values() for line in section.unparsed]
    beside, later = ({name: value for section in look.values() for name, value in section.beside.items()}
                     for look in (first, second))  # fmt: skip
    ran, _ = (sides.get("python", {}).pop("functions", []) for sides in (beside, later))
    return {
        "version": VERSION,
        "digest": None if missing or unstable else digest(structure),
        "structure": structure,
        # Three digits: more are noise, and records stay small.
        "times": {name: [float(f"{value:.3g}") for value in map(min, *both)] for name, both in seconds.items()},
        "spread": {name: float(f"{abs(sum(before) - sum(after)):.3g}") for name, (before, after) in seconds.items()},
        "ran": ran,
        "beside": {name: value for name, value in beside.items() if later.get(name) == value},
        "unsteady": sorted(name for name, value in beside.items() if later.get(name) != value),
        "unstable": unstable,
        "missing": missing,
        "unparsed": unparsed[:SHOWN],
        "seconds": perf_counter() - begin,
    }


def metrics(fingerprint: Mapping[str, Any] | None) -> dict[str, float]:
    """Return the metrics of the captured step: its work, its counts, and the peak of torch's allocators."""
    beside = (fingerprint or {}).get("beside", {})
    values = {name: (beside.get(section) or {}).get(key) for name, (section, key) in METRICS.items()}
    return {name: float(value) for name, value in values.items() if value is not None}


def _sections(looks: Mapping[str, Look], missing: dict[str, str]) -> dict[str, Captured]:
    sections: dict[str, Captured] = {}
    for name, look in looks.items():
        try:
            for section, captured in look().items():
                if isinstance(captured, str):
                    missing[section] = captured
                else:
                    sections[section] = captured
        except Exception as error:  # noqa: BLE001, PERF203 - the measurement stays valid, and the missing look is recorded
            traceback.print_exc()
            missing[name] = f"{type(error).__name__}: {error}"[:LINE]
    return sections


def digest(structure: Mapping[str, Any]) -> str:
    document = json.dumps({"version": VERSION, "structure": structure}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(document.encode()).hexdigest()
