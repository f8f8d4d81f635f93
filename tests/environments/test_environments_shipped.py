"""The locks that come with ipexperf are locks, and hold what the stacks of their names need."""

import pytest

from ipexperf.bench import registry
from ipexperf.bench.cell import Cell
from ipexperf.bench.machine.facts import Facts
from ipexperf.environments import shipped

FLAGS = frozenset({"avx2", "fma"})


@pytest.mark.parametrize("name", shipped.names())
def test_a_lock_holds_what_its_stack_needs(name: str) -> None:
    """A case of the stack can run in it; packages come from an index, whatever build that has."""
    lock = shipped.lock(name)
    assert lock.name == name
    facts = Facts("/env/bin/python", lock.versions, FLAGS)
    cell = Cell("resnet18", "cpu", "fp32", "infer", name)
    assert registry.stacks.get(cell.stack).why_not(cell, facts) is None
    assert registry.models.get("resnet18").why_not(cell, registry.modes.get("infer").traits, facts) is None
    assert not any(package.origin or package.content for package in lock.packages)
    assert not lock.variables
    # Its import alone would change stock PyTorch.
    assert ("intel-extension-for-pytorch" in lock.versions) == (name == "ipex")
