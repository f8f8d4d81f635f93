"""Every set of data that is shipped states its licence, and says which package is missing. Needs no torch."""

from __future__ import annotations

import importlib.util

import pytest

from ipexperf.bench import registry
from ipexperf.bench.api import Dataset


def test_every_set_of_data_states_its_licence() -> None:
    """Those that other tests registered are not meant."""
    found = {name: registry.datasets.get(name) for name in registry.datasets.names()}
    shipped = {name: one for name, one in found.items() if type(one).__module__.startswith("ipexperf.zoo.datasets.")}
    assert len(shipped) >= 10
    assert [name for name, one in shipped.items() if one.licence == Dataset.licence] == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("movielens", "MovieLens comes with recbole, which is not installed: see make data"),
        ("photographs", "the photographs come with scikit-image, which is not installed: pip install 'ipexperf[data]'"),
        ("plates", "the plates are drawn with Pillow, which is not installed: pip install pillow"),
        ("roads", "the roads come with solaris, which is not installed: see make data"),
    ],
)
def test_a_package_that_is_not_installed_is_named(name: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly one of path and reason is told, without an import of the package."""
    data = registry.datasets.get(name)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert data.find(None) == (None, reason)
