"""What was updated in training: every timed step must be an update, also of parameters without an optimizer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ipexperf.bench import optimizers
from ipexperf.result import Check

SKIPPED = 20
"""A gradient scaler may skip one in so many steps."""


@dataclass(frozen=True, slots=True)
class UpdateCounts:
    """Counts at one moment: steps, batches, and updates that the optimizer counted."""

    steps: int
    batches: int
    updates: int | None


class Ledger:
    """Counts the updates of sampled steps. Inside the timed part it only increments counters."""

    def __init__(self, optimizer: Any, scaler: Any, accumulate: int) -> None:
        self._optimizer = optimizer
        self._scaler = scaler
        self._accumulate = accumulate
        self._applied: list[int] = []
        self._asked = self._made = self._taken = 0
        self.steps = 0
        self.batches = 0
        if scaler.is_enabled():
            # The scaler calls the optimizer only if the gradients are finite.
            optimizer.register_step_post_hook(self._called)

    def _called(self, *_: Any) -> None:
        self._applied.append(self.steps)

    def skipped(self, steps: int) -> list[int]:
        """Return which of the first steps, counted from 0, the gradient scaler skipped."""
        return sorted({*range(min(steps, self.steps))} - {*self._applied}) if self._scaler.is_enabled() else []

    def read(self) -> UpdateCounts:
        counted = len(self._applied) if self._scaler.is_enabled() else optimizers.updates(self._optimizer)
        return UpdateCounts(self.steps, self.batches, counted)

    def enter(self, before: UpdateCounts, after: UpdateCounts, steps: int) -> None:
        """Record the requested steps, and what was done for them."""
        updates = after.steps - before.steps
        if after.updates is not None:
            updates = min(updates, after.updates - (before.updates or 0))
        self._asked += steps
        self._made += updates
        self._taken += after.batches - before.batches

    @property
    def _lost(self) -> int:
        """Return how many of the sampled steps a gradient scaler may skip.

        It does when it tries a larger scale after many good steps, and when gradients grow while a network learns. It
        saves an update, about a fifth of a step, so the mean of 20 steps is still within one per cent.
        """
        if not self._scaler.is_enabled():
            return 0
        return self.steps // int(self._scaler.get_growth_interval()) + self._asked // SKIPPED

    def proof(self, effective: int, looked_at: int) -> list[Check]:
        """Check that each sampled step was an update with an effect, of the right number of batches."""
        batches = self._asked * self._accumulate
        ok = self._made >= self._asked - self._lost and self._taken == batches and effective == looked_at
        lost = f" but {self._lost} that the scaler may lose" if self._lost else ""
        checks = [
            Check(
                "steps",
                ok,
                f"{self._made} updates over {self._taken} batches, {effective} of {looked_at} more moved the weights",
                f"{self._asked} updates{lost} over {batches} batches, and all {looked_at} more",
            )
        ]
        if self._scaler.is_enabled():
            scale = float(self._scaler.get_scale())
            checks.append(Check("loss_scale", math.isfinite(scale) and scale > 0, f"{scale:g}", "finite and over 0"))
        return checks


def modules_apart(network: Any) -> list[Any]:
    """Return the modules that declare that they update their parameters in their own backward, without an optimizer."""
    return [module for module in network.modules() if getattr(module, "updated_by", "")]


def parameters_apart(network: Any) -> list[Any]:
    """Return the parameters that such modules update."""
    return [value for module in modules_apart(network) for value in module.parameters()]


def optimised_parameters(network: Any) -> list[Any]:
    """Return the parameters for the optimizer."""
    apart = {id(value) for value in parameters_apart(network)}
    return [value for value in network.parameters() if id(value) not in apart]


def apart(network: Any, optimizer: Any, before: Sequence[Any]) -> list[Check]:
    """Check that the optimizer has none of them, and that they have no gradient and changed. No check without any.

    `before` are their values when training began.
    """
    apart = parameters_apart(network)
    if not apart:
        return []
    optimised = {id(value) for group in optimizer.param_groups for value in group["params"]}
    both = sum(id(value) in optimised or value.grad is not None for value in apart)
    moved = sum(not value.detach().equal(was) for value, was in zip(apart, before, strict=True))
    text = f"{moved} of {len(apart)} moved, {both} of them known to the optimizer or with a gradient"
    return [Check("updated_apart", moved == len(apart) and not both, text, f"all {len(apart)}, and none")]


def notes_apart(network: Any) -> list[str]:
    """Return a note on the parameters that the optimizer does not update."""
    kinds = sorted({module.updated_by for module in modules_apart(network)})
    if not kinds:
        return []
    count = len(parameters_apart(network))
    return [f"{count} parameters are updated in the backward of {', '.join(kinds)}, by no optimizer"]
