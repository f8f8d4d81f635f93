"""Is it right? Fidelity against a float64 reference captured before anything was optimised, and the task itself."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ipexperf.bench.lazy import torch
from ipexperf.bench.precision import BOUNDS
from ipexperf.bench.subjects import Examples, Task, Tensors, tensors
from ipexperf.errors import WorkerError
from ipexperf.result import Check

FLIPS = 2
"""So many other answers are luck: where stock PyTorch happens to have fewer, or the right ones are counted."""
LEAST_ERROR = 5e-6
"""An error below this is rounding in any dtype: fp32 kernels differ by more than stock's own error from each other."""
TWICE = 2.0
"""A trace fuses and folds, and rounds elsewhere than eager code."""
DROP = 0.02
"""So much of the task's score may a dtype cost, beside luck."""
PART = 64
"""So many examples at a time where the batch is ours to choose."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What the untouched model says in float64, on the CPU."""

    outputs: Tensors
    accuracy: float


def reference(network: Any, held_out: Examples, task: Task) -> Reference:
    """Runs a float64 copy of the model. Must be called before `ipex.optimize`, which may work in place."""
    double = copy.deepcopy(network).double().eval()
    outputs = predict(lambda inputs: double(*map(_double, inputs)), held_out.inputs, PART)
    return Reference(outputs, task.score(outputs, held_out.targets))


def _double(value: Any) -> Any:
    """A tensor of floating-point numbers in float64; whole numbers and truths as they are."""
    return value.double() if value.is_floating_point() else value


def predict(
    forward: Callable[[Tensors], Any], inputs: Tensors, batch: int, put: Callable[[Tensors], Tensors] = tuple
) -> Tensors:
    """Answers all examples in batches of exactly the case's shape; the last one is filled up and cut again."""
    count = len(inputs[0])
    parts = []
    for begin in range(0, count, batch):
        indices = [index % count for index in range(begin, begin + batch)]
        with torch.no_grad():
            outputs = tensors(forward(put(tuple(value[indices] for value in inputs))))
        for value in outputs:
            if not value.dim() or len(value) != batch:
                told = f"a tensor of shape {tuple(value.shape)}, whose first dimension is not the batch's {batch}"
                raise WorkerError("error", f"the network answers with {told}")
        # To the CPU first: not every card has float64.
        parts.append(tuple(_double(value.cpu())[: count - begin] for value in outputs))
    return tuple(torch.cat(leaves) for leaves in zip(*parts, strict=True))


def distance(outputs: Tensors, known: Reference, task: Task) -> float:
    """The relative RMSE of outputs against the reference."""
    found, expected = task.compared(outputs), task.compared(known.outputs)
    return float((found - expected).pow(2).mean().sqrt() / expected.pow(2).mean().sqrt())


def fidelity(
    outputs: Tensors,
    known: Reference,
    targets: Tensors,
    dtype: str,
    task: Task,
    rounding: float | None = None,
    agreed: float | None = None,
) -> tuple[dict[str, float], list[Check]]:
    """Relative RMSE, agreement and, where what is right is known, accuracy, each with the bound that it must keep.

    `rounding` is what stock PyTorch's eager error is in the same dtype, and `agreed` its agreement, where that was
    looked at: no stack may be several times worse.
    """
    bounds = BOUNDS[dtype]
    error = distance(outputs, known, task)
    most = bounds.fidelity
    if rounding is not None:
        most = min(most, max(bounds.roundings * rounding, LEAST_ERROR))
        most = max(most, min(TWICE * rounding, bounds.sensitive))
    least = bounds.agreement
    if agreed is not None:
        least = max(least, 1 - bounds.roundings * max(1 - agreed, FLIPS / len(outputs[0])))
    agreement = task.agreement(outputs, known.outputs)
    finite = math.isfinite(error)
    metrics = {"agreement": agreement, **({"fidelity": error} if finite else {})}
    checks = [
        Check("fidelity", finite and error <= most, f"{error:.2e}", _told(most, rounding)),
        Check("agreement", agreement >= least, f"{agreement:.4f}", _told_least(least, agreed)),
    ]
    if task.scored:
        metrics["accuracy"] = accuracy = task.score(outputs, targets)
        floor = known.accuracy - DROP - min(DROP, FLIPS / len(outputs[0]))
        told = f"at least {floor:.4f} (float64: {known.accuracy:.4f})"
        checks.append(Check("accuracy", accuracy >= floor, f"{accuracy:.4f}", told))
    return {**metrics, **task.metrics(outputs, targets)}, checks


def _told_least(least: float, agreed: float | None) -> str:
    return f"at least {least:.4g}" + ("" if agreed is None else f" (stock, eager, same dtype: {agreed:.4f})")


def _told(most: float, rounding: float | None) -> str:
    return f"at most {most:.1e}" + ("" if rounding is None else f" (stock, eager, same dtype: {rounding:.1e})")


def learned(accuracy: float, losses: list[float], task: Task, trivial: float) -> tuple[dict[str, float], list[Check]]:
    """Did training train? The loss fell, and held-out accuracy is far over that of one answer for everything."""
    tenth = max(1, len(losses) // 10)
    first, last = sum(losses[:tenth]) / tenth, sum(losses[-tenth:]) / tenth
    floor = task.floor(trivial)
    checks = [
        Check("loss", last < first, f"{first:.3f} -> {last:.3f}", "falling"),
        Check("accuracy", accuracy >= floor, f"{accuracy:.4f}", f"at least {floor:.2f} (trivial {trivial:.2f})"),
    ]
    metrics = {"accuracy": accuracy, "trivial_accuracy": trivial}
    return ({**metrics, "loss": last} if math.isfinite(last) else metrics), checks
