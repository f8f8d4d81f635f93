"""The files that cases load, which a worker makes once: trained weights, and quantised networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from ipexperf.bench import registry
from ipexperf.bench.artifacts import artifact, weights
from ipexperf.case import NetworkCase
from ipexperf.conduct import artifact_cache
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.worker import ask_facts
from ipexperf.dtypes import quantised
from ipexperf.errors import WorkerError
from ipexperf.variables import SOURCE

MAKING = {
    "weights": ("training weights", "the weights are trained again"),
    "quantise": ("quantising", "the network is quantised again"),
}
"""For each request that makes a file: the words for doing so, and for doing it again if the file is damaged."""
PATIENCE = 6
"""A file may take so many times as long as any other request: training weights takes longest."""


class CaseFiles:
    """The files of a run's cases, in the cache."""

    def __init__(self, cache: Path, say: Callable[[str], None]) -> None:
        self._cache = cache
        self._say = say
        self._failed: dict[Path, WorkerError] = {}
        """Files that could not be made. The next case does not try again, because the seed is the same."""

    def made(self, case: NetworkCase, conditions: Conditions, python: str | None, source: str) -> Conditions:
        """The conditions of a case with the files that it loads. Makes those that are not in the cache.

        Inference loads trained weights, and int8 a network quantised by the interpreter that will run it: `python`, if
        it is not that of the run, with `source` as its value of `SOURCE`.
        """
        model, mode = registry.models.get(case.model), registry.modes.get(case.mode)
        if mode.trains or not (model.trained or quantised(case.dtype)):
            return conditions
        made_of = weights.address(model, case.data, conditions.settings.data_file or "", case.size)
        if model.trained:
            path = self._ensure("weights", self._cache / "weights" / made_of, case, conditions)
            conditions = conditions.with_settings(weights=str(path))
        if quantised(case.dtype):
            made_of += source + (artifact_cache.digest(path) if model.trained else "")
            variables = {**conditions.variables, **({SOURCE: source} if source else {})}
            quantiser = replace(conditions, python=python or conditions.python, variables=variables)
            name = artifact.address(case, made_of, ask_facts(quantiser.python, {}, quantiser.variables))
            path = self._ensure("quantise", self._cache / "quantised" / name, case, quantiser, artifact.SIDES)
            conditions = conditions.with_settings(artifact=str(path))
        return conditions

    def _ensure(
        self, do: str, path: Path, case: NetworkCase, conditions: Conditions, sides: Sequence[str] = ()
    ) -> Path:
        """A file that the case loads. A worker makes it if it is missing or damaged."""
        if path in self._failed:
            raise self._failed[path]
        doing, again = MAKING[do]
        maker = case
        if do == "weights":
            maker = replace(case, mode="train", stack="stock", dtype="fp32", knobs=())

        def make(part: Path) -> None:
            with conditions.worker() as worker:
                request = {"case": maker.to_json(), "settings": asdict(conditions.settings)}
                worker.ask(do, path=str(part), timeout=PATIENCE * conditions.timeout, **request)

        def damaged(flaw: str) -> None:
            self._say(f"{case.id}: {path.name} is not used, {flaw}: {again}")

        try:
            artifact_cache.make_once(path, make, damaged, sides)
        except WorkerError as error:
            blamed = WorkerError(error.outcome, f"{doing}: {error.reason}", error.log)
            if blamed.outcome == "error":
                self._failed[path] = blamed
            raise blamed from error
        return path
