"""Where a step takes its batch from: the same batches whatever the input, and each input is what its name says."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from ipexperf.bench import registry
from ipexperf.bench.api import Workbench
from ipexperf.bench.artifacts import weights
from ipexperf.bench.cell import Settings
from ipexperf.bench.model import Model
from ipexperf.bench.modes import _input
from ipexperf.case import NetworkCase

torch = pytest.importorskip("torch")

from bench_cases import workbench

EXAMPLES, BATCH, SIZE = 10, 4, 8


def bench(mode: str = "train", batch: int = BATCH, **knobs: str) -> Workbench:
    """A case of a small network on the CPU."""

    def build() -> Any:
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * SIZE * SIZE, 10))

    model = Model("tiny", build, size=SIZE, batch_train=batch, batch_infer=batch, trained=False)
    case = NetworkCase("tiny", "cpu", "fp32", mode, "stock", batch, SIZE, 1, "digits", tuple(sorted(knobs.items())))
    return workbench(model, case, settings=Settings(train_steps=12))


def examples() -> tuple[Any, Any]:
    """Images that say in each pixel which of them they are, and labels that say it too."""
    numbers = torch.arange(EXAMPLES)
    return numbers.view(-1, 1, 1, 1).expand(-1, 3, SIZE, SIZE).float().contiguous(), numbers


@pytest.fixture
def opened() -> Iterator[Any]:
    """Opens feeds, and closes them."""
    feeds = []

    def open_(**knobs: str) -> _input.Feed:
        order = weights.order(EXAMPLES, BATCH, 0)
        feeds.append(_input.feed(bench(**knobs), examples(), order))
        return feeds[-1]

    yield open_
    for feed in feeds:
        feed.close()


def seen(feed: _input.Feed, batches: int) -> list[list[int]]:
    return [labels.tolist() for _, labels in itertools.islice(feed, batches)]


def test_every_input_brings_the_same_batches_in_the_same_order(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeded and shuffled alike, and after the last of the ring comes the first again."""
    monkeypatch.setattr(_input, "RING", 5)
    order = [part.tolist() for part in itertools.islice(weights.order(EXAMPLES, BATCH, 0), 5)]
    for kind in ("device", "host", "loader"):
        feed = opened(input=kind)
        assert seen(feed, 7) == [*order, *order[:2]], kind
        images, labels = next(feed)
        assert images[:, 0, 0, 0].tolist() == labels.tolist()
        assert images.is_contiguous(memory_format=torch.channels_last), "as the network wants them"
    assert _input.ring_of(examples(), weights.order(EXAMPLES, BATCH, 0))[4].tolist() == order[4]


def test_large_batches_make_a_short_ring() -> None:
    """The ring holds no more than its share of memory, and one batch at least."""
    size = BATCH * (3 * SIZE * SIZE * 4 + 8)
    limits = {2 * size: 2, 3 * size + 1: 3, 1: 1}
    for limit, batches in limits.items():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_input, "BYTES", limit)
            assert len(_input.ring_of(examples(), weights.order(EXAMPLES, BATCH, 0))) == batches


def test_an_input_that_is_not_what_it_says_is_caught(opened: Any) -> None:
    """A step that takes no batch, one that copies behind the label's back, and a loader without its processes."""
    loader = opened(input="loader", loader_workers="1")
    assert not loader.proof(lambda: None).ok
    assert loader.proof(lambda: next(loader)).found == "1 loader processes, 1 copied in a step"
    loader.workers = 2
    assert not loader.proof(lambda: next(loader)).ok
    resident = opened(input="device")
    assert not resident.proof(lambda: resident.put(next(resident))).ok
    resident.ring = [(torch.zeros(1, device="meta"),)] * len(resident.ring)
    assert not resident.proof(lambda: next(resident)).ok
    hosted = opened(input="host")
    assert not hosted.proof(lambda: next(hosted)).ok  # on the CPU nothing is pinned: the plan leaves such a case out


def test_a_loader_ends_with_its_feed(opened: Any) -> None:
    """Its processes are over when the session is closed."""
    feed = opened(input="loader")
    processes = feed._processes()
    assert [process.is_alive() for process in processes] == [True, True]
    feed.close()
    assert [process.is_alive() for process in processes] == [False, False]


def test_a_loader_leaves_the_trainings_chance_alone(opened: Any) -> None:
    """The random numbers of the training are the same with a loader and without."""
    torch.manual_seed(3)
    first = torch.rand(2)
    torch.manual_seed(3)
    opened(input="loader")
    assert torch.equal(torch.rand(2), first)


@pytest.mark.parametrize("mode", ["train", "infer"])
def test_the_wait_for_a_batch_is_a_metric_where_there_is_one(mode: str) -> None:
    """A loader's wait is told apart from the step; what lies on the device is not waited for."""
    session: Any = registry.modes.get(mode).open(bench(mode, 16, input="loader"))
    try:
        source = session.feed
        assert session.metrics()["input_time"] > 0
        assert session.feed is source
        assert [str(check) for check in session.proof() if check.name == "input" and not check.ok] == []
    finally:
        session.close()
    assert "input_time" not in registry.modes.get(mode).open(bench(mode, 16)).metrics()
