"""Is it right? Fidelity against a float64 reference captured before anything was optimised, and the task itself."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ipexperf.bench.kinds import Dataset
from ipexperf.bench.lazy import torch
from ipexperf.bench.precision import BOUNDS
from ipexperf.result import Check

HELD_OUT = 256
"""Held-out images that fidelity looks at: enough for agreement to half a per cent, few enough for float64."""
FLIPS = 2
"""So many other answers among HELD_OUT are luck, where stock PyTorch happens to have fewer."""
LEAST_ERROR = 5e-6
"""An error below this is rounding in any dtype: fp32 kernels differ by more than stock's own error from each other."""
FAR_OVER_CHANCE = 4.0
DROP = 0.02


@dataclass(frozen=True, slots=True)
class Reference:
    """What the untouched model says in float64, on the CPU."""

    outputs: Any
    accuracy: float


def reference(network: Any, images: Any, labels: Any) -> Reference:
    """Runs a float64 copy of the model. Must be called before `ipex.optimize`, which may work in place."""
    double = copy.deepcopy(network).double().eval()
    with torch.no_grad():
        outputs = torch.cat([double(part.double()) for part in images[:HELD_OUT].split(64)])
    return Reference(outputs, right(outputs, labels[: len(outputs)]))


def right(outputs: Any, labels: Any) -> float:
    """The share of examples whose largest output is their label's."""
    return float((outputs.argmax(1) == labels).double().mean())


def predict(forward: Callable[[Any], Any], images: Any, batch: int, put: Callable[[Any], Any]) -> Any:
    """Runs all images in batches of exactly the case's shape; the last one is filled up and cut again."""
    outputs = []
    for begin in range(0, len(images), batch):
        indices = [index % len(images) for index in range(begin, begin + batch)]
        result = forward(put(images[indices])).cpu().double()  # there: not every card has float64
        outputs.append(result[: len(images) - begin])
    return torch.cat(outputs)


def distance(outputs: Any, known: Reference) -> float:
    """The relative RMSE of outputs against the reference."""
    return float((outputs - known.outputs).pow(2).mean().sqrt() / known.outputs.pow(2).mean().sqrt())


def fidelity(
    outputs: Any,
    known: Reference,
    labels: Any,
    dtype: str,
    rounding: float | None = None,
    agreed: float | None = None,
) -> tuple[dict[str, float], list[Check]]:
    """Relative RMSE, top-1 agreement and task accuracy, each with the bound that it must keep.

    `rounding` is what stock PyTorch's eager error is in the same dtype, and `agreed` its agreement, where that was
    looked at: no stack may be several times worse.
    """
    bounds = BOUNDS[dtype]
    error = distance(outputs, known)
    most = bounds.fidelity if rounding is None else min(bounds.fidelity, max(bounds.roundings * rounding, LEAST_ERROR))
    least = bounds.agreement
    if agreed is not None:
        least = max(least, 1 - bounds.roundings * max(1 - agreed, FLIPS / HELD_OUT))
    agreement = right(outputs, known.outputs.argmax(1))
    accuracy = right(outputs, labels[: len(outputs)])
    finite = math.isfinite(error)
    checks = [
        Check("fidelity", finite and error <= most, f"{error:.2e}", _told(most, rounding)),
        Check("agreement", agreement >= least, f"{agreement:.4f}", _told_least(least, agreed)),
        Check(
            "accuracy",
            accuracy >= known.accuracy - DROP,
            f"{accuracy:.4f}",
            f"at least {known.accuracy - DROP:.4f} (float64: {known.accuracy:.4f})",
        ),
    ]
    metrics = {"agreement": agreement, "accuracy": accuracy}
    return ({**metrics, "fidelity": error} if finite else metrics), checks


def _told_least(least: float, agreed: float | None) -> str:
    return f"at least {least:.4g}" + ("" if agreed is None else f" (stock, eager, same dtype: {agreed:.4f})")


def _told(most: float, rounding: float | None) -> str:
    return f"at most {most:.1e}" + ("" if rounding is None else f" (stock, eager, same dtype: {rounding:.1e})")


def learned(accuracy: float, losses: list[float], dataset: Dataset) -> tuple[dict[str, float], list[Check]]:
    """Did training train? The loss fell, and held-out accuracy is far over chance."""
    tenth = max(1, len(losses) // 10)
    first, last = sum(losses[:tenth]) / tenth, sum(losses[-tenth:]) / tenth
    floor = FAR_OVER_CHANCE * dataset.chance
    checks = [
        Check("loss", last < first, f"{first:.3f} -> {last:.3f}", "falling"),
        Check("accuracy", accuracy >= floor, f"{accuracy:.4f}", f"at least {floor:.2f} (chance {dataset.chance:.2f})"),
    ]
    metrics = {"accuracy": accuracy}
    return ({**metrics, "loss": last} if math.isfinite(last) else metrics), checks
