"""Can the machine's memory hold a case? Asked before any of it is run, of one that is larger than its model's own."""

from __future__ import annotations

from collections.abc import Mapping

from ipexperf.bench import registry
from ipexperf.case import Case
from ipexperf.conduct import held
from ipexperf.errors import WorkerError

COPIES = 3
"""So many times the weights are there at least: training has their gradients and what its optimizer holds, and the
accuracy pass of inference has them in fp32 and in float64, which is twice as wide."""
WIDTHS = {"fp32": 1.0, "bf16": 1 / 2, "fp16": 1 / 2, "int8": 1 / 4}
"""What is on its way through the network, beside what it is in fp32."""


def larger(case: Case) -> bool:
    """Whether the case is larger than its model is on its own: that was chosen to fit."""
    model, mode = registry.models.get(case.model), registry.modes.get(case.mode)
    return case.size > model.size or case.batch > model.batch(mode)


def refuse(case: Case, told: Mapping[str, float], processes: int = 1) -> None:
    """Ends a case that needs more than a worker may take. What is counted is the least, never all."""
    on_its_way = told["kept" if registry.modes.get(case.mode).trains else "passing"] * WIDTHS[case.dtype]
    needed = processes * (told["examples"] + COPIES * told["weights"] + case.batch * on_its_way)
    limit = held.limit()
    if needed > limit:
        size = registry.models.get(case.model).told(case.size)
        parts = f"examples {_told(told['examples'])}, weights {COPIES} x {_told(told['weights'])}"
        sum_of = f"{parts}, a batch {case.batch} x {_told(on_its_way)}" + (f", {processes} times" * (processes > 1))
        raise WorkerError(
            "out_of_memory",
            f"{size} in batches of {case.batch} needs at least {_told(needed)} ({sum_of}), and {_told(limit)} are here",
        )


def _told(count: float) -> str:
    return f"{count / 2**30:.2f} GiB"
