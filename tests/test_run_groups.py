"""The groups of a run whose cases other hosts measure: each is sent once, in linear time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ipexperf.bench import loading, registry
from ipexperf.bench.machine.facts import Facts
from ipexperf.case import Case
from ipexperf.compare.request import GroupRequest
from ipexperf.conduct.conductor import Conductor
from ipexperf.plan import groups
from ipexperf.plan.gates import AS_ALL
from ipexperf.plan.options import Options
from ipexperf.run import Run
from ipexperf.site import Running, Site


class Away(Site):
    """A site that measures by itself, and remembers what it was sent."""

    ahead = True

    def __init__(self) -> None:
        self.requests: list[GroupRequest] = []

    @property
    def conductor(self) -> Conductor:
        raise AssertionError("nothing is measured here")

    def facts(self, options: Options) -> Facts:
        del options
        return Facts("/usr/bin/python", {}, cores=2)

    def reserve(self, cases: Iterable[Case], seconds: float | None = None) -> None:
        """Nothing to take."""

    def running(self, request: GroupRequest) -> Running:
        self.requests.append(request)
        return None  # type: ignore[return-value]  # nobody asks it for anything here

    def against(self, options: Options, cases: Sequence[Case]) -> None:
        """There is no other arm."""

    def meta(self) -> dict[str, object]:
        return {}

    def close(self) -> None:
        """Nothing to close."""


def announced(fake: str, folder: Path, models: int, **options: Any) -> tuple[Run, Away]:
    """A run that expects two cases of each of so many models."""
    site = Away()
    names = tuple(f"dummy{models}_{number}" for number in range(models))
    loading.load((fake,))
    for name in names:
        registry.model(name, size=1, batch_train=1, batch_infer=1, version=1, data="none", needs=(), trained=False)(
            lambda: None
        )
    axes: dict[str, Any] = {"device": ("fake",), "dtype": ("fp32", "bf16"), "mode": ("spin",), "stack": ("plain",)}
    chosen = Options(**axes, model=names, load=(fake,), without=("record",), baselines=folder / "baselines", **options)
    run = Run(chosen, folder, lambda _: None, site)
    run.expect((case, AS_ALL) for case in run.plan.cases)
    return run, site


def test_each_group_is_sent_once_and_whole(fake: str, tmp_path: Path) -> None:
    run, site = announced(fake, tmp_path, 3)
    assert [request.group for request in site.requests] == groups.groups(run.plan.cases)
    assert [len(request.group.cases) for request in site.requests] == [2, 2, 2]
