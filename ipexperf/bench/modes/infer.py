"""Eager inference: the optimised model, called."""

from __future__ import annotations

from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.facts import Facts
from ipexperf.bench.kinds import Cell, Mode, Session, Workbench
from ipexperf.bench.modes._inference import InferenceSession
from ipexperf.result import Check


class EagerSession(InferenceSession):
    def build(self, network: Any, example: Any) -> Any:
        return self.bench.stack.for_inference(network, self.bench.case.dtype, example)

    def proof(self) -> list[Check]:
        return [*super().proof(), *self.bench.stack.proof_of_inference(self.network, self.bench.case.dtype)]


class Infer(Mode):
    name = "infer"

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        del cell, facts
        return None

    def open(self, bench: Workbench) -> Session:
        return EagerSession(bench)


registry.modes.add("infer", Infer())
