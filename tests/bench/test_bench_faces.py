"""Crops with and without a face, and the networks that tell them apart; where the packages are not, made ones."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from ipexperf.bench import registry
from ipexperf.bench.artifacts import weights
from ipexperf.errors import WorkerError
from ipexperf.zoo.datasets import faces
from ipexperf.zoo.datasets.faces import Faces
from ipexperf.zoo.models import mtcnn

torch = pytest.importorskip("torch")

NETWORKS = ("mtcnn_pnet", "mtcnn_rnet", "mtcnn_onet")
ANSWERS = {"mtcnn_pnet": (2, 4), "mtcnn_rnet": (2, 4), "mtcnn_onet": (2, 4, 10)}
FOUND = {"mtcnn_pnet": 0.9, "mtcnn_rnet": 0.98, "mtcnn_onet": 0.98}


def painted() -> dict[str, Any]:
    """Four black photographs; where there would be a face, it is white."""
    photographs = {name: torch.full((3, 300, 300), -1.0) for name in faces.PHOTOGRAPHS}
    for name, (left, top, right, bottom) in faces.FACES.items():
        photographs[name][:, top:bottom, left:right] = 1
    return photographs


def test_half_of_the_crops_have_a_face() -> None:
    """White is most of each that is labelled so, and nowhere in the others."""
    made = faces._crops(painted(), 40, 24, 0)
    white = (made.inputs[0] > 0).float().mean((1, 2, 3))
    assert made.inputs[0].shape == (40, 3, 24, 24)
    assert int(made.targets[0].sum()) == 20
    assert bool((white[made.targets[0] == 1] > 0.7).all())
    assert float(white[made.targets[0] == 0].max()) == 0.0


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_says_first_whether_there_is_a_face(name: str) -> None:
    """Two numbers, and then where the face is."""
    model = registry.models.get(name)
    with torch.no_grad():
        outputs = model.build().eval()(torch.rand(3, 3, model.size, model.size))
    assert tuple(value.shape[1] for value in outputs) == ANSWERS[name]


@pytest.mark.parametrize("name", NETWORKS)
def test_weights_are_taken_by_the_names_of_the_package(name: str, tmp_path: Path) -> None:
    """And those of another network are refused."""
    build = registry.models.get(name).build
    kept = build().state_dict()
    path = tmp_path / "net.pt"
    torch.save({key.removeprefix("layers."): value for key, value in kept.items()}, path)
    network = build()
    weights.load(network, str(path), mtcnn._renamed)
    assert all(torch.equal(value, kept[key]) for key, value in network.state_dict().items())
    other = NETWORKS[NETWORKS.index(name) - 1]
    with pytest.raises(WorkerError, match="holds the weights of another network"):
        weights.load(registry.models.get(other).build(), str(path), mtcnn._renamed)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_weights_of_the_package_find_the_faces(name: str) -> None:
    """On the real photographs, where both packages are installed; random weights do not."""
    model, (path, why_not) = registry.models.get(name), Faces().find(None)
    if path is None or importlib.util.find_spec("torchvision") is None:
        pytest.skip(why_not or "needs torchvision")
    assert model.pretrained is not None
    file, why_not = model.pretrained.find()
    if file is None:
        pytest.skip(why_not or "")
    model.pretrained.check(file)
    test, task = Faces().read(path, model.size).test, registry.tasks.get(model.task)
    network = model.build().eval()
    with torch.no_grad():
        assert task.score(network(*test.inputs), test.targets) < 0.85
        weights.load(network, file, model.pretrained.adapt)
        assert task.score(network(*test.inputs), test.targets) > FOUND[name]
