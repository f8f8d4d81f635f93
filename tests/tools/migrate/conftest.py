"""What the tests of migrations share: the two fake stacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipexperf.bench import loading

FAKES = Path(__file__).parents[2] / "fakes"


@pytest.fixture(autouse=True)
def _movers(registries: None) -> None:
    loading.load([str(FAKES / "fake.py"), str(FAKES / "movers.py")])
