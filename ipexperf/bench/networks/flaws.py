"""What is wrong with a network itself: it fails on its inputs, or its Python code depends on their values.

A trace of such code would be valid for those values only.
"""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

from ipexperf.bench import outcome
from ipexperf.bench.api import Workbench
from ipexperf.bench.artifacts import weights
from ipexperf.bench.lazy import torch
from ipexperf.bench.model import Tensors, tensors
from ipexperf.errors import IpexperfError
from ipexperf.result import Check

SHOWN = 3
"""Places to name at most."""


def flaw(bench: Workbench) -> str:
    """Return the error of the untouched network, or an empty text if it works and so is not at fault."""
    try:
        examples = weights.read(bench).test.part(slice(bench.case.batch)).inputs
        network = bench.built().eval()
    except IpexperfError as error:
        return str(error) if bench.model.target else ""  # an extension's model may build something that is no module
    except (Exception, SystemExit):  # noqa: BLE001 - the data or the building failed, which the first error reports
        return ""
    shapes = " and ".join(f"{'x'.join(map(str, value.shape))} {str(value.dtype)[6:]}" for value in examples)
    try:
        with torch.no_grad():
            tensors(network(*examples))
    except IpexperfError as error:
        return str(error)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - any error is the answer
        return f"{bench.model.name} fails on its inputs, {shapes}: {outcome.sentence(error)}"
    return ""


def control_flow(network: Any, inputs: Tensors) -> Check:
    """Check that no line of Python depends on input values, so that the trace is valid for any input."""
    places = reads(network, inputs)
    listed = ", ".join(dict.fromkeys(places[:SHOWN]))
    text = (
        f"{len(places)} times it reads its inputs' values ({listed}): the trace is of another program"
        if places
        else "0"
    )
    return Check("control_flow", not places, text, "0 times it reads its inputs' values in Python")


def reads(network: Any, inputs: Tensors) -> list[str]:
    """Return the places where Python reads a value computed from the inputs, in one call of the network."""
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves
    from torch.utils.weak import WeakTensorKeyDictionary

    # Values computed from weights alone are the same in every call. Only those from inputs count.
    computed = WeakTensorKeyDictionary()
    places: list[str] = []
    operators = torch.ops.aten
    value_readers = (operators._local_scalar_dense.default, operators.equal.default, operators.is_nonzero.default)  # noqa: SLF001

    def leaves(value: Any) -> list[Any]:
        return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]

    class Operators(TorchDispatchMode):  # type: ignore[misc] # torch is imported late, and has no types here
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            from_inputs = any(leaf in computed for leaf in leaves((args, kwargs)))
            if from_inputs and func in value_readers:
                places.append(_place())
            result = func(*args, **kwargs)
            if from_inputs:
                for leaf in leaves(result):
                    computed[leaf] = True
            return result

    class Methods(TorchFunctionMode):  # type: ignore[misc]
        """Methods that convert whole tensors to Python bypass the operators."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func in (torch.Tensor.tolist, torch.Tensor.numpy) and args[0] in computed:
                places.append(_place())
            return func(*args, **(kwargs or {}))

    with torch.no_grad(), Methods(), Operators():
        for value in inputs:
            computed[value] = True
        network(*inputs)
    return places


def _place() -> str:
    """Return the innermost line of the stack that is neither from_inputs nor torch's."""
    skipped = (str(Path(torch.__file__).parent), __file__)
    frames = [frame for frame in traceback.extract_stack() if not frame.filename.startswith(skipped)]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}"
