"""Inference through torch.jit.script, registered for the suite by `--perf-load=infer_script.py`."""

from __future__ import annotations

from typing import Any

from ipexperf.ext import (
    INFERENCE_KNOBS,
    Cell,
    Check,
    Facts,
    InferenceSession,
    Mode,
    Session,
    Workbench,
    jitted,
    register,
    torch,
)

SCRIPTED = "RecursiveScriptModule"
"""What torch makes of a network's source; a traced one is a TopLevelTracedModule."""


class ScriptedSession(InferenceSession):
    """The shared inference session, with a network that was compiled from its source, not traced."""

    def build(self, network: Any, example: Any) -> Any:
        optimised = self.bench.stack.for_inference(network, example, self.bench)
        self._checks = self.bench.stack.proof_of_inference(optimised, self.bench)
        scripted = torch.jit.script(optimised)
        self._kind = type(scripted).__name__
        return torch.jit.freeze(scripted)

    def proof(self) -> list[Check]:
        return [
            *super().proof(),
            *self._checks,
            jitted(self.network),
            Check("scripted", self._kind == SCRIPTED, self._kind, SCRIPTED),
        ]


class InferScript(Mode):
    """The mode `infer_script`."""

    name = "infer_script"
    plain = "infer"
    graph = "traced"
    knobs = INFERENCE_KNOBS

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        del facts
        return None if cell.stack == "stock" else f"infer_script is written for the stack stock, not {cell.stack}"

    def open(self, bench: Workbench) -> Session:
        return ScriptedSession(bench)


register(InferScript())
