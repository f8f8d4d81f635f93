"""Find out whether the network itself is at fault: call it untouched, with the inputs of the case."""

from __future__ import annotations

from ipexperf.bench import outcome
from ipexperf.bench.api import Workbench, tensors
from ipexperf.bench.artifacts import weights
from ipexperf.bench.lazy import torch
from ipexperf.errors import IpexperfError


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
