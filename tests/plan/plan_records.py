"""Plans of a few cells, on a machine whose facts are made up."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from ipexperf.bench.machine.facts import HEADERS, Facts
from ipexperf.errors import UsageError
from ipexperf.plan import matrix
from ipexperf.plan.options import Options

AVX2 = frozenset({"avx2", "fma"})
AVX512 = AVX2 | {"avx512f", "avx512bw", "avx512vl", "avx512dq"}
PACKAGES = {"torch": "2.8.0", "torchvision": "0.23.0", "intel-extension-for-pytorch": "2.8.0"}
FOR_CARDS = {"intel-extension-for-pytorch": "2.8.10+xpu"}
"""The build of IPEX for Intel's cards."""
CARDS = {"xpu": "", "cuda": ""}
"""Torch sees both kinds."""


def facts(packages: Mapping[str, str | None] | None = None, flags: frozenset[str] = AVX2, **more: Any) -> Facts:
    """The facts of a machine with torch and IPEX. `packages` replaces or adds some."""
    return Facts("/env/bin/python", {**PACKAGES, **(packages or {})}, flags, **{"headers": frozenset(HEADERS), **more})


def plan(wishes: Mapping[str, Any], here: Facts | None = None) -> matrix.Plan:
    """The plan of these options, whose names are checked as in a run."""
    options = Options(**wishes)
    matrix.check_names(options)
    return matrix.make(options, here or facts())


def refusal(plan: Callable[..., matrix.Plan], wishes: Mapping[str, Any]) -> str:
    """The sentence with which these options are refused."""
    with pytest.raises(UsageError) as refused:
        plan(**wishes)
    return str(refused.value)


def ids(found: matrix.Plan) -> list[str]:
    return [case.id for case in found.cases]
