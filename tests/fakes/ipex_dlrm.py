"""DLRM with IPEX in one process: what it was given, what ran, what it learned, and who lies. Prints checks as JSON."""

import copy
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "bench"))

import bench_cases
import torch
from bench_cases import as_json

from ipexperf.bench import plain_outputs, registry
from ipexperf.bench.api import Workbench
from ipexperf.bench.artifacts import weights
from ipexperf.bench.cell import Cell, Settings
from ipexperf.bench.machine import facts
from ipexperf.bench.model import Dataset, Examples, Split
from ipexperf.case import NetworkCase
from ipexperf.proof import quantised
from ipexperf.zoo.models._dlrm import Dlrm

TABLES = (11, 13, 5)
LAYERS = 5
"""Linear layers: two below, three on top."""


class Made(Dataset):
    """Pairs that the first table decides."""

    name = "made"

    def find(self, folder: str | None) -> tuple[str | None, str | None]:
        return __file__, None

    def read(self, path: str, size: int) -> Split:
        generator = torch.Generator().manual_seed(0)
        sparse = torch.stack(
            [torch.randint(0, rows, (2048,), generator=generator) for rows in (*TABLES, TABLES[-1])], 1
        )
        likes = (sparse[:, 0] % 2).float()
        examples = Examples((torch.randn(2048, 2, generator=generator), sparse), (likes,))
        return Split(examples.part(slice(1536)), examples.part(slice(1536, None)))


def bench(mode: str, stack: str = "ipex", dtype: str = "fp32", **knobs: str) -> Workbench:
    """The shipped declaration over small tables, on random weights."""
    shipped = registry.models.get("dlrm")
    small = replace(shipped, build=lambda: Dlrm(TABLES, 2, 16), trained=False, data="made", train_steps=150)
    case = NetworkCase("dlrm", "cpu", dtype, mode, stack, 64, 16, 1, "made", tuple(sorted(knobs.items())))
    return bench_cases.workbench(small, case)


def whole(workbench: Workbench) -> dict[str, Any]:
    """All that a session proves, and its accuracy and notes."""
    session = workbench.mode.open(workbench)
    session.sample(lambda: None, 2, 2)
    checks = [*session.proof(), *session.accuracy()[1]]
    return {"checks": as_json(checks), "notes": session.notes()}


@contextmanager
def lying(module: Any, name: str, lie: Callable[..., Any]) -> Iterator[None]:
    honest = getattr(module, name)
    setattr(module, name, lie)
    try:
        yield
    finally:
        setattr(module, name, honest)


def caught(workbench: Workbench) -> list[str]:
    return sorted(name for name, (ok, _) in whole(workbench)["checks"].items() if not ok)


def same(mode: str) -> dict[str, Any]:
    """The tuned network against the untouched one: its answers, and the names of what it holds."""
    torch.manual_seed(0)
    plain = Dlrm(TABLES, 2, 16)
    torch.manual_seed(0)
    workbench = bench(mode)
    tuned = workbench.tuned(Dlrm(TABLES, 2, 16))
    split = registry.datasets.get("made").read("", 0)
    inputs = split.test.inputs
    with torch.no_grad():
        off = float((plain(*inputs) - tuned(*inputs)).abs().max())
    fresh = Dlrm(TABLES, 2, 16)
    fresh.load_state_dict(tuned.state_dict())
    return {"off": off, "names": sorted(tuned.state_dict()) == sorted(plain.state_dict())}


def in_bf16(**knobs: str) -> dict[str, Any]:
    """What a training in bf16 proves, and how its tables are kept: in which dtype, and whether bf16 would hold them."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "checkpoint.pt")
        trained = whole(replace(bench("train", dtype="bf16", **knobs), settings=Settings(checkpoint=path)))
        kept = weights.restore(path)["model"]
    tables = [value for name, value in kept.items() if name.startswith("bags.")]
    finer = [str(table.dtype) for table in tables if not table.equal(table.bfloat16().float())]
    return {**trained, "kept": finer}


def has_bf16() -> bool:
    """Whether IPEX trains in bf16 with packed weights on this processor."""
    return registry.stacks.get("ipex").why_not(Cell("dlrm", "cpu", "bf16", "train", "ipex"), facts.gather()) is None


def in_int8() -> dict[str, Any]:
    """The untouched network as each stack quantises it: how far off its answers are, and which layers IPEX froze."""
    torch.manual_seed(0)
    plain, inputs = Dlrm(TABLES, 2, 16).eval(), registry.datasets.get("made").read("", 0).train.inputs
    converted: dict[str, Any] = {}
    with torch.no_grad():
        known = plain(*inputs)
        for stack in ("stock", "ipex"):
            workbench = bench("infer_jit", stack, "int8")
            made = workbench.stack.quantise(copy.deepcopy(plain), inputs, [inputs], workbench).network
            script = torch.jit.freeze(plain_outputs.traced(made, inputs))
            for _ in range(3):
                outputs = script(*inputs)
            graph = quantised.graph(str(script.graph_for(*inputs)), LAYERS)
            converted[stack] = {"off": float((outputs - known).abs().max()), "graph": (graph.ok, graph.found)}
    return converted


if __name__ == "__main__":
    registry.datasets.add("made", Made())
    registry.stacks.get("ipex").start()
    from ipexperf.zoo.models import _dlrm_ipex

    def still(tables: Any, lr: float) -> Any:
        del lr
        return honest(tables, lr=0.0)

    def fast(tables: Any, lr: float) -> Any:
        return honest(tables, lr=lr * 30)

    merged = _dlrm_ipex.MergedEmbeddingBagWithAdaGrad
    honest = merged.from_embeddingbag_list
    results = {
        **{mode: whole(bench(mode)) for mode in ("infer", "infer_jit", "train")},
        "sgd": whole(bench("train", optimizer="sgd")),
        "accumulate": whole(bench("train", accumulate="2")),
        "int8": in_int8(),
        "bf16": {optimizer: in_bf16(optimizer=optimizer) for optimizer in ("adagrad", "sgd")} if has_bf16() else {},
        "same": {mode: same(mode) for mode in ("infer", "train")},
    }
    with lying(_dlrm_ipex, "tune", lambda network: network):
        results["untuned"] = caught(bench("infer_jit"))
    with lying(merged, "from_embeddingbag_list", still):
        results["still"] = caught(bench("train"))
    with lying(merged, "from_embeddingbag_list", fast):
        results["fast"] = caught(bench("train"))
    json.dump(results, sys.stdout)
