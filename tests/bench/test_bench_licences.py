"""Every set of data that is shipped says under what its examples may be used. Needs no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipexperf.bench import registry
from ipexperf.bench.api import Dataset

if TYPE_CHECKING:
    import pytest


def unstated() -> list[str]:
    """The shipped sets of data that say nothing of their licence; what other tests registered is not meant."""
    found = {name: registry.datasets.get(name) for name in registry.datasets.names()}
    shipped = {name: one for name, one in found.items() if type(one).__module__.startswith("ipexperf.zoo.datasets.")}
    return [name for name, one in shipped.items() if one.licence == Dataset.licence]


def test_every_set_of_data_states_its_licence() -> None:
    assert unstated() == []


def test_one_that_states_none_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(type(registry.datasets.get("plates")), "licence")
    assert unstated() == ["plates"]
