"""Why a network failed, where it is the network: it is called once more, untouched, with what the case gives it."""

from __future__ import annotations

from ipexperf.bench import outcome, weights
from ipexperf.bench.lazy import torch
from ipexperf.bench.subjects import tensors
from ipexperf.bench.workbench import Workbench
from ipexperf.errors import IpexperfError


def flaw(bench: Workbench) -> str:
    """A sentence, or an empty text where the untouched network answers: then it is not to blame."""
    try:
        given = weights.read(bench).test.part(slice(bench.case.batch)).inputs
        network = bench.built().eval()
    except IpexperfError as error:
        return str(error)
    except Exception:  # noqa: BLE001 - then it is the data, or the building, and what failed first says so
        return ""
    shapes = " and ".join(f"{'x'.join(map(str, value.shape))} {str(value.dtype)[6:]}" for value in given)
    try:
        with torch.no_grad():
            tensors(network(*given))
    except IpexperfError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what is asked for
        return f"{bench.model.name} does not take its inputs, {shapes}: {outcome.sentence(error)}"
    return ""
