"""What the tests of evidence share: the fakes, and the networks that only evidence needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipexperf.bench import loading

FAKES = Path(__file__).parents[2] / "fakes"


@pytest.fixture(autouse=True)
def _fakes(registries: None) -> None:
    loading.load([str(FAKES / "fake.py"), str(FAKES / "movers.py")])
