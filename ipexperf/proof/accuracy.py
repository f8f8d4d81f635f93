"""Accuracy: fidelity to a float64 reference captured before anything was optimised, and the score of the task."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from ipexperf.bench import outcome
from ipexperf.bench.lazy import torch
from ipexperf.bench.model import Examples, Task, Tensors, tensors
from ipexperf.dtypes import Bounds
from ipexperf.errors import WorkerError
from ipexperf.result import Check

FLIPS = 2
"""Number of differing answers that may be chance, when compared with stock PyTorch or with the correct ones."""
LEAST_ERROR = 5e-6
"""Errors below this are rounding in any dtype: fp32 kernels differ from each other by more than stock's own error."""
TWICE = 2.0
"""Factor for traced networks, which fuse and fold, and so round differently from eager code."""
DROP = 0.02
"""Share of the score that a dtype may cost, besides chance."""
PART = 64
"""Batch size wherever it is free."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Outputs and score of the untouched model in float64, on the CPU."""

    outputs: Tensors
    accuracy: float
    narrow: str = ""
    """Why it is in float32 after all, or an empty text."""


def reference(network: Any, held_out: Examples, task: Task) -> Reference:
    """Run a float64 copy of the model. Call it before `ipex.optimize`, which may work in place.

    A network that asks for float32 inside gets float64 there, too. If that is not enough, float32 is the reference.
    """
    double = copy.deepcopy(network).double().eval()

    def exact(inputs: Tensors) -> Any:
        return double(*map(_double, inputs))

    def widened(inputs: Tensors) -> Any:
        with widening():
            return exact(inputs)

    narrow = ""
    # No larger batch than there are examples: the rest would be padding, which takes minutes in a large network.
    some = min(PART, len(held_out))
    try:
        outputs = predict(exact, held_out.inputs, some)
    except RuntimeError as error:
        try:
            outputs = predict(widened, held_out.inputs, some)
        except RuntimeError:
            plain = copy.deepcopy(network).eval()
            outputs = predict(lambda inputs: plain(*inputs), held_out.inputs, some)
            narrow = outcome.sentence(error)
    return Reference(outputs, task.score(outputs, held_out.targets), narrow)


def widening() -> AbstractContextManager[Any]:
    """Return a context in which whoever asks torch for float32 gets float64."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Widening(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            asked = dict(kwargs or {})
            if asked.get("dtype") is torch.float32:
                asked["dtype"] = torch.float64
            return operator(*args, **asked)

    return Widening()


def _double(value: Any) -> Any:
    """Convert a floating-point tensor to float64. Others stay unchanged."""
    return value.double() if value.is_floating_point() else value


def predict(
    forward: Callable[[Tensors], Any], inputs: Tensors, batch: int, put: Callable[[Tensors], Tensors] = tuple
) -> Tensors:
    """Predict all examples in batches of exactly the case's shape. The last batch is padded."""
    count = len(inputs[0])
    parts = []
    for begin in range(0, count, batch):
        indices = [index % count for index in range(begin, begin + batch)]
        with torch.no_grad():
            outputs = tensors(forward(put(tuple(value[indices] for value in inputs))))
        for value in outputs:
            if not value.dim() or len(value) != batch:
                text = f"a tensor of shape {tuple(value.shape)}, whose first dimension is not the batch's {batch}"
                raise WorkerError("error", f"the network answers with {text}")
        # To the CPU first: some accelerators lack float64.
        parts.append(tuple(_double(value.cpu())[: count - begin] for value in outputs))
    return tuple(torch.cat(leaves) for leaves in zip(*parts, strict=True))


def distance(outputs: Tensors, reference_answer: Reference, task: Task) -> float:
    """Return the relative RMSE of outputs against the reference."""
    sides = (tensors(task.compared(side)) for side in (outputs, reference_answer.outputs))
    result, expected = (torch.cat([value.reshape(-1) for value in side]) for side in sides)
    return float((result - expected).pow(2).mean().sqrt() / expected.pow(2).mean().sqrt())


def fidelity(
    outputs: Tensors,
    reference_answer: Reference,
    targets: Tensors,
    bounds: Bounds,
    task: Task,
    rounding: float | None = None,
    agreed: float | None = None,
) -> tuple[dict[str, float], list[Check]]:
    """Return relative RMSE, agreement and, if correct answers are known, accuracy, with checks of their bounds.

    `rounding` is the error of eager stock PyTorch in the same dtype, and `agreed` its agreement, if known: a stack
    must not be several times worse.
    """
    error = distance(outputs, reference_answer, task)
    most = bounds.fidelity
    if rounding is not None:
        most = min(most, max(bounds.roundings * rounding, LEAST_ERROR))
        most = max(most, min(TWICE * rounding, bounds.sensitive))
    least = bounds.agreement
    if agreed is not None:
        least = max(least, 1 - bounds.roundings * max(1 - agreed, FLIPS / len(outputs[0])))
    agreement = task.agreement(outputs, reference_answer.outputs)
    finite = math.isfinite(error)
    metrics = {"agreement": agreement, **({"fidelity": error} if finite else {})}
    checks = [
        Check("fidelity", finite and error <= most, f"{error:.2e}", _at_most(most, rounding)),
        Check("agreement", agreement >= least, f"{agreement:.4f}", _at_least(least, agreed)),
    ]
    if task.scored:
        metrics["accuracy"] = accuracy = task.score(outputs, targets)
        floor = reference_answer.accuracy - DROP - min(DROP, FLIPS / len(outputs[0]))
        text = f"at least {floor:.4f} (float64: {reference_answer.accuracy:.4f})"
        checks.append(Check("accuracy", accuracy >= floor, f"{accuracy:.4f}", text))
    return {**metrics, **task.metrics(outputs, targets)}, checks


def _at_least(least: float, agreed: float | None) -> str:
    return f"at least {least:.4g}" + ("" if agreed is None else f" (stock, eager, same dtype: {agreed:.4f})")


def _at_most(most: float, rounding: float | None) -> str:
    return f"at most {most:.1e}" + ("" if rounding is None else f" (stock, eager, same dtype: {rounding:.1e})")


def learned(accuracy: float, losses: list[float], task: Task, trivial: float) -> tuple[dict[str, float], list[Check]]:
    """Check that training worked: the loss fell, and held-out accuracy is far above that of a constant answer.

    Without known answers there is no accuracy to check.
    """
    tenth = max(1, len(losses) // 10)
    first, last = sum(losses[:tenth]) / tenth, sum(losses[-tenth:]) / tenth
    checks = [Check("loss", last < first, f"{first:.3f} -> {last:.3f}", "falling")]
    metrics = {"loss": last, "first_loss": first} if math.isfinite(last) and math.isfinite(first) else {}
    if task.scored:
        floor = task.floor(trivial)
        expected = f"at least {floor:.2f} (trivial {trivial:.2f})"
        checks.append(Check("accuracy", accuracy >= floor, f"{accuracy:.4f}", expected))
        metrics = {"accuracy": accuracy, "trivial_accuracy": trivial, **metrics}
    return metrics, checks
