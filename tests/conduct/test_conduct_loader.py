"""The processes of a data loader end with their worker, however it ends."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ipexperf.bench.api import Settings
from ipexperf.bench.process import guard
from ipexperf.case import Case
from ipexperf.conduct.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.process

SMALLNET = Path(__file__).parents[1] / "fakes" / "smallnet.py"
needs_torch = pytest.mark.torch


def loaders(worker: Worker) -> list[int]:
    """The processes that the worker started, without its guard."""
    names = {pid: Path(f"/proc/{pid}/comm").read_text().strip() for pid in guard.members(worker.pid)}
    return [pid for pid, name in names.items() if pid != worker.pid and name != "ipexperf-guard"]


@needs_torch
@pytest.mark.parametrize("end", ["close", "kill"])
def test_no_loader_outlives_its_worker(gone: Callable[[int], bool], end: str) -> None:
    """Closed or killed, the worker leaves none of them behind."""
    knobs = (("input", "loader"), ("loader_workers", "3"))
    case = Case("smallnet", "cpu", "fp32", "train", "stock", 16, 8, 1, "digits", knobs)
    settings: dict[str, Any] = asdict(Settings(load=(str(SMALLNET),)))
    with Worker() as worker:
        worker.prepare(case.to_json(), settings)
        processes = loaders(worker)
        assert len(processes) == 3
        getattr(worker, end)()
        assert all(gone(pid) for pid in processes)
