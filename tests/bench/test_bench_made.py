"""Made data are the same from a seed, none is both learned and held out, and the smallest network learns from them."""

from typing import Any

import pytest

from ipexperf.bench import registry
from ipexperf.bench.artifacts import weights
from ipexperf.proof import accuracy

torch = pytest.importorskip("torch")

from ipexperf.zoo.datasets import ratings, roads, sentences
from ipexperf.zoo.models._bert import Bert
from ipexperf.zoo.models._bert import Shape as BertShape
from ipexperf.zoo.models._dlrm import Dlrm
from ipexperf.zoo.models._gpt import Gpt
from ipexperf.zoo.models._gpt import Shape as GptShape

TABLES = (*ratings.TABLES, ratings.GENRES + 1)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough to learn from, made in no time."""
    for module, name, value in (
        (sentences, "TRAIN_PIECES", 512),
        (ratings, "RATINGS", 20_000),
        (roads, "TRAIN", 32),
        (roads, "HELD_OUT", 16),
    ):
        monkeypatch.setattr(module, name, value)


def read(name: str, size: int) -> Any:
    data = registry.datasets.get(name)
    path, why_not = data.find(None)
    assert path is not None, why_not
    return data.read(path, size)


@pytest.mark.parametrize(("name", "size"), [("sentences", 32), ("text", 64), ("ratings", 32), ("roads", 64)])
def test_made_data_are_always_the_same(name: str, size: int) -> None:
    """And no held-out example is one that is trained on."""
    torch.manual_seed(1)
    first = read(name, size)
    torch.manual_seed(2)
    second = read(name, size)
    for part, again in ((first.train, second.train), (first.test, second.test)):
        assert all(torch.equal(value, like) for value, like in zip(part.tensors, again.tensors, strict=True))
    train, test = (
        {b"".join(value.numpy().tobytes() for value in row) for row in zip(*part.inputs, strict=True)}
        for part in (first.train, first.test)
    )
    assert not train & test


def test_a_sentence_has_a_begin_an_end_and_padding() -> None:
    split = read("sentences", 16)
    tokens, mask = split.test.inputs
    lengths = mask.sum(1)
    assert {int(length) for length in lengths} == set(range(sentences.SHORTEST + 2, 17))
    assert set(tokens[:, 0].tolist()) == {sentences.FIRST}
    assert torch.equal((tokens == sentences.LAST).nonzero()[:, 1], lengths - 1)
    assert torch.equal(tokens == sentences.PADDING, mask == 0)
    assert int(tokens.max()) < sentences.OFFSET + sentences.WORDS
    assert int(split.test.targets[0].sum()) == sentences.HELD_OUT // 2


def test_the_text_is_foretold_byte_by_byte() -> None:
    """Each target is the byte behind its input, across pieces too."""
    split = read("text", 7)
    together = (torch.cat(leaves) for leaves in zip(split.test.tensors, split.train.tensors, strict=True))
    pieces, following = (bytes(value.flatten().tolist()) for value in together)
    assert pieces[1:] == following[:-1]
    assert len(pieces) == 7 * (sentences.HELD_OUT_PIECES + 512)
    assert set(pieces) <= set(b" abcdefghijklmnopqrstuvwxyz")


def test_a_tile_of_roads_shows_as_much_at_half_its_size() -> None:
    """Each pixel is the mean of four, and road where two of them are. A larger tile shows more."""
    whole, half, wide = (read("roads", size).test for size in (128, 64, 256))
    assert torch.allclose(half.inputs[0], torch.nn.functional.avg_pool2d(whole.inputs[0], 2), atol=1e-6)
    pooled = torch.nn.functional.avg_pool2d(whole.targets[0], 2)
    assert torch.equal(half.targets[0], (pooled >= 0.5).float())
    assert wide.inputs[0].shape == (8, 3, 256, 256)


def pixels() -> Any:
    """A few layers that see the surroundings of each pixel."""
    nn = torch.nn
    body = [nn.Conv2d(3, 16, 5, padding=2), nn.ReLU(), nn.Conv2d(16, 16, 5, padding=4, dilation=2), nn.ReLU()]
    return nn.Sequential(*body, nn.Conv2d(16, 1, 1))


SMALLEST = {
    "sentences": ("text_classification", 32, 100, 1e-2, lambda: Bert(BertShape(layers=1, width=16, heads=2))),
    "text": ("language_modelling", 32, 100, 1e-2, lambda: Gpt(GptShape(layers=1, width=32, heads=2, positions=32))),
    "ratings": ("recommendation", 32, 150, 1e-2, lambda: Dlrm(TABLES, 2, 8)),
    "roads": ("segmentation", 64, 60, 1e-2, pixels),
}


@pytest.mark.parametrize("name", SMALLEST)
def test_the_smallest_network_learns_and_wrong_weights_show(name: str) -> None:
    """It gets past what counts as learned and never answers all rightly. With noise in its weights it answers worse."""
    task_name, size, steps, rate, build = SMALLEST[name]
    task, split = registry.tasks.get(task_name), read(name, size)
    torch.manual_seed(0)
    network = build()
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    batches = weights.order(len(split.train), 8 if name == "roads" else 64, 0)
    for _ in range(steps):
        part = split.train.part(next(batches))
        loss, _ = task.learn(network, part.inputs, part.targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def score() -> float:
        outputs = accuracy.predict(lambda inputs: network.eval()(*inputs), split.test.inputs, 64)
        return float(task.score(outputs, split.test.targets))

    learned = score()
    assert task.floor(task.trivial(split)) < learned < 0.99
    with torch.no_grad():
        for value in network.parameters():
            value.add_(torch.randn_like(value) * 2 * value.abs().mean())
    assert score() < learned - 0.02
