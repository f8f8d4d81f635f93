"""The CPU as a device: how many threads its steps have."""

from collections.abc import Iterator

import pytest

from ipexperf.bench.cell import Settings
from ipexperf.bench.devices.cpu import Cpu
from ipexperf.result import Check

torch = pytest.importorskip("torch")


@pytest.fixture
def cpu() -> Iterator[Cpu]:
    before = torch.get_num_threads()
    device = Cpu()
    device.start(Settings(threads=2))
    yield device
    torch.set_num_threads(before)


def test_steps_that_leave_the_threads_alone_are_proven(cpu: Cpu) -> None:
    assert cpu.proof(lambda: None, 1) == [Check("threads", True, "2", "2")]


def test_a_network_that_sets_other_threads_is_not_what_its_label_says(cpu: Cpu) -> None:
    """The environment of its launch was read before, and says 2."""
    torch.set_num_threads(1)
    assert cpu.proof(lambda: None, 1) == [Check("threads", False, "1", "2")]


@pytest.mark.parametrize(("limit", "threads"), [("1", "1"), ("2", "2"), ("64", "2"), ("", "2")])
def test_openmp_that_may_start_fewer_threads_is_not_what_its_label_says(
    cpu: Cpu, monkeypatch: pytest.MonkeyPatch, limit: str, threads: str
) -> None:
    """Torch reports two threads all the same."""
    monkeypatch.setenv("OMP_THREAD_LIMIT", limit)
    assert cpu.proof(lambda: None, 1) == [Check("threads", threads == "2", threads, "2")]
