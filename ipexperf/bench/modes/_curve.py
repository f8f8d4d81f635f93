"""The loss curve that a training must follow: the same seed and batches in stock fp32, on the CPU."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from ipexperf.bench import weights
from ipexperf.bench.kinds import Split, Workbench
from ipexperf.bench.lazy import torch
from ipexperf.bench.modes import _input, _optimizers
from ipexperf.result import Check

STEPS = 12
"""So many steps are compared. Training amplifies the last digit of each step: later ones tell little."""
BOUNDS = {
    "fp32": {1: 1e-3, 4: 0.25, STEPS: 0.4},
    "bf16": {1: 0.2, 4: 0.35, STEPS: 0.6},
    "fp16": {1: 0.2, 4: 0.35, STEPS: 0.6},
}
"""How far a curve may be off over so many steps. Each is about twice the most that was seen of right code."""


def told(losses: Sequence[Any]) -> list[float]:
    """The losses that are compared, as plain numbers."""
    return [float(loss) for loss in losses[:STEPS]]


def order(bench: Workbench, split: Split, process: int, processes: int) -> Iterator[Any]:
    """The numbers of the examples in each batch of one of several processes: every so manieth batch is its own."""
    numbers = weights.order(len(split.train_images), bench.case.batch, bench.settings.seed)
    return itertools.islice(numbers, process, None, processes)


def reference(bench: Workbench, split: Split, processes: int, skipped: Collection[int]) -> list[float]:
    """The first losses of an untouched fp32 network, which has the batches of all processes for each of its updates.

    Steps that a gradient scaler skipped make no update here either: it skips a few until it has found its scale.
    Written apart from the step that is measured, and as plain as can be: what is wrong there must not be wrong here.
    """
    torch.manual_seed(bench.settings.seed)
    network = bench.model.build().train()
    optimizer = _optimizers.make(bench.knob("optimizer"), network.parameters(), bench.model)
    examples = (split.train_images, split.train_labels)
    feeds = [itertools.cycle(_input.turns(examples, order(bench, split, i, processes))) for i in range(processes)]
    accumulate = int(bench.knob("accumulate"))
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        parts = []
        for feed in feeds * accumulate:
            part = next(feed)
            images, labels = (value[part] for value in examples)
            loss = torch.nn.functional.cross_entropy(network(images), labels) / (processes * accumulate)
            loss.backward()
            parts.append(float(loss.detach()))
        if step not in skipped:
            optimizer.step()
        losses.append(sum(parts))
    return losses


def distance(losses: Sequence[float], known: Sequence[float]) -> float:
    """The root mean square of the differences, relative to that of the known curve."""
    squares = sum((found - expected) ** 2 for found, expected in zip(losses, known, strict=True))
    return math.sqrt(squares / sum(expected**2 for expected in known))


def check(bench: Workbench, split: Split, curves: Sequence[Sequence[float]], skipped: Collection[int] = ()) -> Check:
    """Trains the reference, and compares it with these curves, one a process: their mean is that of all batches."""
    bench.say(f"training the first {STEPS} steps in stock fp32")
    losses = [sum(parts) / len(parts) for parts in zip(*curves, strict=True)]
    return followed(losses, reference(bench, split, len(curves), skipped), bench.case.dtype)


def followed(losses: Sequence[float], known: Sequence[float], dtype: str) -> Check:
    """The curve stays with that of stock fp32, as near as the dtype allows."""
    bounds = BOUNDS[dtype]
    off = {steps: distance(losses[:steps], known[:steps]) for steps in bounds}
    ok = all(math.isfinite(off[steps]) and off[steps] <= most for steps, most in bounds.items())
    told = ", ".join(f"{value:.1e} over {steps}" for steps, value in off.items())
    return Check("loss_curve", ok, f"off stock fp32 by {told} steps", f"at most {_listed(bounds.values())}")


def _listed(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.1e}" for value in values)
