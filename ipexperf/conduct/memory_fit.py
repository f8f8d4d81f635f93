"""Refuse cases that cannot fit into memory before they run, if they are larger than their model's default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace

from ipexperf.bench import registry
from ipexperf.bench.artifacts.footprint import Footprint
from ipexperf.case import NetworkCase
from ipexperf.conduct.conditions import Conditions
from ipexperf.dtypes import DTYPES, PLAIN
from ipexperf.errors import WorkerError
from ipexperf.plan import sizes

COPIES = 3
"""Least number of copies of the weights in memory. Training also holds gradients and optimizer state; the accuracy
pass of inference holds the weights in fp32 and in float64, which is twice as wide."""


class Footprints:
    """The footprints of a run's networks. A worker determines each once, for all cases that have it."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._known: dict[tuple[str, int, str, bool], Footprint] = {}

    def refuse_larger(self, case: NetworkCase, conditions: Conditions) -> None:
        """Raise WorkerError if the case is larger than its model's default, which fits, and too large to fit here."""
        if not registry.devices.get(case.device).hosted or not larger(case):
            return
        try:
            footprint = self._footprint(case, conditions)
        except WorkerError as error:
            if error.outcome == "out_of_memory":
                raise
            self._say(f"{case.id}: its memory could not be estimated beforehand: {error.reason}")
            return
        processes = max(1, len(conditions.instances), registry.modes.get(case.mode).processes(case))
        refuse(case, footprint, conditions.memory, processes)

    def _footprint(self, case: NetworkCase, conditions: Conditions) -> Footprint:
        key = (case.model, case.size, case.data, registry.modes.get(case.mode).trains)
        if key not in self._known:
            plain = replace(case, stack="stock", dtype="fp32", knobs=())
            with conditions.worker() as worker:
                reply = worker.ask("footprint", case=plain.to_json(), settings=asdict(conditions.settings))
            self._known[key] = Footprint.parse(reply)
        return self._known[key]


def larger(case: NetworkCase) -> bool:
    """Whether the case is larger than its model's default, which was chosen to fit."""
    model, mode = registry.models.get(case.model), registry.modes.get(case.mode)
    return case.size > model.size or case.batch > mode.batch_of(model)


def refuse(case: NetworkCase, footprint: Footprint, limit: int, processes: int = 1) -> None:
    """Raise WorkerError if the case needs more memory than its workers may use, by a lower bound."""
    narrower = DTYPES[case.dtype].width / DTYPES[PLAIN].width
    activations = (footprint.kept if registry.modes.get(case.mode).trains else footprint.passing) * narrower
    needed = processes * (footprint.examples + COPIES * footprint.weights + case.batch * activations)
    if needed > limit:
        size = sizes.text(registry.models.get(case.model), case.size)
        parts = f"examples {_gib(footprint.examples)}, weights {COPIES} x {_gib(footprint.weights)}"
        sum_of = f"{parts}, a batch {case.batch} x {_gib(activations)}" + (f", {processes} times" * (processes > 1))
        raise WorkerError(
            "out_of_memory",
            f"{size} in batches of {case.batch} needs at least {_gib(needed)} ({sum_of}), and there are {_gib(limit)}",
        )


def _gib(count: float) -> str:
    return f"{count / 2**30:.2f} GiB"
