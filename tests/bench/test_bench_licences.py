"""Every set of data that is shipped states its licence, and is there without another package. Needs no torch."""

from __future__ import annotations

from pathlib import Path

from ipexperf.bench import registry
from ipexperf.bench.model import Dataset

ZOO = "ipexperf.zoo."


def shipped() -> dict[str, Dataset]:
    """Those that other tests registered are not meant."""
    found = {name: registry.datasets.get(name) for name in registry.datasets.names()}
    return {name: one for name, one in found.items() if type(one).__module__.startswith(f"{ZOO}datasets.")}


def test_every_set_of_data_states_its_licence() -> None:
    assert len(shipped()) >= 10
    assert [name for name, one in shipped().items() if one.licence == Dataset.licence] == []


def test_every_shipped_model_has_its_data() -> None:
    """In ipexperf itself; only the real data, which take another's place, need a folder."""
    models = map(registry.models.get, registry.models.names())
    used = {one.data for one in models if getattr(one.build, "func", one.build).__module__.startswith(ZOO)}
    real = {one.real for one in shipped().values() if one.real}
    assert used == set(shipped()) - real
    for name in used:
        path, why_not = shipped()[name].find(None)
        assert why_not is None
        assert path is not None
        assert Path(path).exists()
    assert [name for name in real if shipped()[name].find(None)[0]] == []
