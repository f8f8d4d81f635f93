"""The loss curve that training must follow: the same seed and batches in stock fp32, on the CPU."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from ipexperf.bench import optimizers, shared
from ipexperf.bench.api import Workbench
from ipexperf.bench.artifacts import weights
from ipexperf.bench.lazy import torch
from ipexperf.bench.model import Split
from ipexperf.bench.modes import _input
from ipexperf.dtypes import CURVE_STEPS, DTYPES, Curve
from ipexperf.result import Check

TIMES = 10.0
"""If this noise moves the curve by a tenth of `Curve.most`, that is the bound. If by less, the bound is tighter."""


def first_losses(losses: Sequence[Any]) -> list[float]:
    """Return the losses to compare, as plain numbers."""
    return [float(loss) for loss in losses[:CURVE_STEPS]]


def order(bench: Workbench, split: Split, process: int, processes: int) -> Iterator[Any]:
    """Yield the example indices of the batches of one of several processes, which share the batches in turns."""
    numbers = weights.order(len(split.train), bench.case.batch, bench.settings.seed)
    return itertools.islice(numbers, process, None, processes)


def reference(
    bench: Workbench, split: Split, processes: int, skipped: Collection[int], noise: float = 0.0
) -> list[float]:
    """Return the first losses of an untouched fp32 network. Each update uses the batches of all processes.

    Steps that a gradient scaler skipped make no update here either: it skips a few until it has found its scale. The
    code is simple and independent of the measured step, so that it cannot share its errors.
    """
    lay: Callable[[Any], Any] = bench.laid_out if bench.channels_last and _draws(bench, split) else lambda value: value
    torch.manual_seed(bench.settings.seed)
    network = lay(bench.built().train())
    if noise:
        generator = torch.Generator().manual_seed(bench.settings.seed)
        with torch.no_grad():
            for value in network.parameters():
                value.mul_(1 + noise * (2 * torch.rand(value.shape, generator=generator) - 1))
    optimizer = optimizers.make(bench.knob("optimizer"), network.parameters(), bench.model)
    feeds = [
        itertools.cycle(_input.ring_of(split.train.tensors, order(bench, split, i, processes)))
        for i in range(processes)
    ]
    accumulate = int(bench.knob("accumulate"))
    losses = []
    states = [torch.get_rng_state()] * processes  # each process draws its own random numbers, from the same seed
    for step in range(CURVE_STEPS):
        optimizer.zero_grad()
        parts = []
        for process, feed in list(enumerate(feeds)) * accumulate:
            torch.set_rng_state(states[process])
            part = split.train.part(next(feed))
            inputs = tuple(map(lay, part.inputs))
            loss = bench.task.learn(network, inputs, part.targets)[0] / (processes * accumulate)
            loss.backward()
            parts.append(float(loss.detach()))
            states[process] = torch.get_rng_state()
        if step not in skipped:
            optimizer.step()
        losses.append(sum(parts))
    return losses


def _draws(bench: Workbench, split: Split) -> bool:
    """Whether the network draws random numbers, as dropout does: in the order of memory, so that its layout counts."""
    network, state = bench.built().train(), torch.get_rng_state()
    with torch.no_grad():
        network(*split.train.part([0, 1]).inputs)
    return not torch.equal(torch.get_rng_state(), state)


def check(bench: Workbench, split: Split, curves: Sequence[Sequence[float]], skipped: Collection[int] = ()) -> Check:
    """Train the references, and compare them with the mean of these curves, one per process."""
    bench.say(f"training the first {CURVE_STEPS} steps in stock fp32, twice")
    losses = [sum(parts) / len(parts) for parts in zip(*curves, strict=True)]
    curve: Any = DTYPES[bench.case.dtype].curve  # a dtype without one is for inference alone
    processes, knobs = len(curves), [bench.knob("optimizer"), bench.knob("accumulate")]

    def reference_of(noise: float) -> list[float]:
        """Train once per run for all workers that need the same."""
        made_of = [bench.case.batch, processes, sorted(skipped), noise, bench.channels_last, *knobs]
        return shared.once(bench, "curve", made_of, lambda: reference(bench, split, processes, skipped, noise))

    return followed(losses, reference_of(0.0), reference_of(curve.noise), curve)


def followed(losses: Sequence[float], reference_losses: Sequence[float], noisy: Sequence[float], curve: Curve) -> Check:
    """Check that the curve stays as close to that of stock fp32 as the dtype and this training allow."""
    # Over all steps: the effect of noise after a few is random.
    amplified = TIMES * distance(noisy, reference_losses) / curve.most[CURVE_STEPS]
    share = min(1.0, amplified) if math.isfinite(amplified) else 1.0
    distances = [distance(losses[:steps], reference_losses[:steps]) for steps in curve.most]
    allowed = [max(curve.least[steps], share * most) for steps, most in curve.most.items()]
    ok = all(math.isfinite(off) and off <= bound for off, bound in zip(distances, allowed, strict=True))
    text = f"{_listed(distances)} off stock fp32 over {', '.join(map(str, curve.most))} steps"
    return Check("loss_curve", ok, text, f"at most {_listed(allowed)}")


def distance(losses: Sequence[float], reference_losses: Sequence[float]) -> float:
    """Return the root mean square of the differences, relative to that of the known curve."""
    squares = sum((loss - expected) ** 2 for loss, expected in zip(losses, reference_losses, strict=True))
    return math.sqrt(squares / sum(expected**2 for expected in reference_losses))


def _listed(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.1e}" for value in values)
