"""Parameters that their module updates in its own backward, without an optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ipexperf.result import Check


def modules(network: Any) -> list[Any]:
    """Return the modules that declare that they update themselves."""
    return [module for module in network.modules() if getattr(module, "updated_by", "")]


def parameters(network: Any) -> list[Any]:
    """Return the parameters that such modules update."""
    return [value for module in modules(network) for value in module.parameters()]


def rest(network: Any) -> list[Any]:
    """Return the parameters for the optimizer."""
    apart = {id(value) for value in parameters(network)}
    return [value for value in network.parameters() if id(value) not in apart]


def check(network: Any, optimizer: Any, before: Sequence[Any]) -> list[Check]:
    """Check that the optimizer has none of them, and that they have no gradient and changed. No check without any.

    `before` are their values when training began.
    """
    apart = parameters(network)
    if not apart:
        return []
    optimised = {id(value) for group in optimizer.param_groups for value in group["params"]}
    both = sum(id(value) in optimised or value.grad is not None for value in apart)
    moved = sum(not value.detach().equal(was) for value, was in zip(apart, before, strict=True))
    text = f"{moved} of {len(apart)} moved, {both} of them known to the optimizer or with a gradient"
    return [Check("updated_apart", moved == len(apart) and not both, text, f"all {len(apart)}, and none")]


def notes(network: Any) -> list[str]:
    """Return a note on the parameters that the optimizer does not update."""
    kinds = sorted({module.updated_by for module in modules(network)})
    if not kinds:
        return []
    return [f"{len(parameters(network))} parameters are updated in the backward of {', '.join(kinds)}, by no optimizer"]
