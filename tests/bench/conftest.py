"""Makes the fakes importable here, and puts a fake card into the machine."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ipexperf.bench.cell import Settings
from ipexperf.bench.devices._telemetry import Telemetry
from ipexperf.bench.devices.xpu import Xpu
from ipexperf.conduct.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from quantiser import Quantiser

sys.path.append(str(Path(__file__).parents[1] / "fakes"))


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """Let torch compute with one thread: those of small networks wait for one another, and keep the cores busy."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


@pytest.fixture
def compiler() -> Iterator[None]:
    """Nothing is compiled yet, and what a test configures of torch's compiler is forgotten."""
    import torch._inductor.config

    torch._dynamo.reset()
    with torch._inductor.config.patch(freezing=False, fallback_random=False):
        yield
    torch._dynamo.reset()


@pytest.fixture(scope="module")
def quantisers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Quantiser]]:
    """Start a worker that quantises networks with a stack and runs them. It imports torch."""
    from quantiser import PATIENCE, Quantiser

    with contextlib.ExitStack() as workers:
        yield lambda stack: Quantiser(
            workers.enter_context(Worker(timeout=PATIENCE)), tmp_path_factory.mktemp(stack), stack
        )


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An Arc A770 that is not there."""
    monkeypatch.setenv("ZE_AFFINITY_MASK", "0")
    pytest.importorskip("torch")
    import fake_card
    import fake_xpu

    made = fake_xpu.install(monkeypatch)
    with fake_card.Ways(made):
        yield made


@pytest.fixture
def device(card: Any, tmp_path: Path) -> Xpu:
    """Our device on it, started."""
    made = Xpu()
    made.telemetry = Telemetry(tmp_path, lambda _: None)
    made.start(Settings())
    return made


@pytest.fixture
def step(device: Xpu) -> Callable[[], Any]:
    """Inference of a small network that lies on the card."""
    import torch
    from bench_cases import SIZE, network

    placed = device.put(network().eval())
    images = device.put(torch.randn(4, 3, SIZE, SIZE))

    def step() -> Any:
        with torch.no_grad():
            return placed(images)

    return step
