"""Every set of data that is shipped states its licence, and is there without another package. Needs no torch."""

from pathlib import Path

from ipexperf.bench import registry
from ipexperf.bench.model import Dataset

ZOO = "ipexperf.zoo."


def shipped() -> dict[str, Dataset]:
    """Those that other tests registered are not meant."""
    datasets = {name: registry.datasets.get(name) for name in registry.datasets.names()}
    ours = f"{ZOO}datasets."
    return {name: dataset for name, dataset in datasets.items() if type(dataset).__module__.startswith(ours)}


def test_every_set_of_data_states_its_licence() -> None:
    assert len(shipped()) >= 10
    assert [name for name, dataset in shipped().items() if dataset.licence == Dataset.licence] == []


def test_every_shipped_model_has_its_data() -> None:
    """In ipexperf itself; only the real data, which take another's place, need a folder."""
    models = map(registry.models.get, registry.models.names())
    used = {model.data for model in models if getattr(model.build, "func", model.build).__module__.startswith(ZOO)}
    real = {dataset.real for dataset in shipped().values() if dataset.real}
    assert used == set(shipped()) - real
    for name in used:
        path, why_not = shipped()[name].find(None)
        assert why_not is None
        assert path is not None
        assert Path(path).exists()
    assert [name for name in real if shipped()[name].find(None)[0]] == []
