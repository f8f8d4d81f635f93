"""Ahead-of-time inference: torch.export, AOTInductor, and their package, loaded as in deployment."""

from __future__ import annotations

import importlib
import zipfile
from pathlib import Path
from typing import Any

from ipexperf.bench import outcome, registry
from ipexperf.bench.api import EXPORTED, Kernel, Mode, Session, Stack, Workbench
from ipexperf.bench.cell import Cell
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.model import Tensors
from ipexperf.bench.modes import _script
from ipexperf.bench.modes._inference import KNOBS, InferenceSession
from ipexperf.bench.precision import autocast, script_of_autocast
from ipexperf.errors import WorkerError
from ipexperf.proof import compilation, label
from ipexperf.result import Check

CONFIGURATION = {"freezing": True}
"""Makes weights constants of the code, which are folded and packed at compile time."""
FROZEN = "_frozen_param"
"""Prefix of the names of constants that freezing made."""
_MAPPED = Path("/proc/self/maps")


class ExportedSession(InferenceSession):
    def build(self, network: Any, example: Any) -> Any:
        whole = _cast(self.bench.stack.for_inference(network, example, self.bench), self.bench)
        with compilation.afresh() as folder, torch.no_grad():
            path = folder / "network.pt2"
            program = _exported(whole, example, self.bench.model.name)
            torch._inductor.aoti_compile_and_package(program, package_path=str(path), inductor_configs=CONFIGURATION)  # noqa: SLF001 - documented by torch
            self.libraries = [Path(name).name for name in zipfile.ZipFile(path).namelist() if name.endswith(".so")]
            return torch._inductor.aoti_load_package(str(path))  # noqa: SLF001 - documented by torch

    def forward(self, inputs: Tensors) -> Any:
        """Call without autocast: the package contains its casts."""
        with torch.no_grad():
            return self.network(*inputs)

    def kernels(self) -> list[Kernel]:
        """Return kernels from oneDNN's log and torch's profiler: the package calls some without the dispatcher."""
        verbose = torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON)
        return [*label.logged(self.step, verbose), *label.profiled(self.step)]

    def proof(self) -> list[Check]:
        return [
            *super().proof(),
            loaded(self.network, self.libraries),
            weighed(self.network),
            *self.bench.stack.proof_of_inference(self.network, self.bench),
        ]

    def close(self) -> None:
        super().close()
        self.network = None  # delete the folder into which torch unpacked the package


def _cast(network: Any, bench: Workbench) -> Any:
    """Return the network with its autocast as one module, because export only keeps what is inside."""

    class Cast(torch.nn.Module):  # type: ignore[misc] # torch is imported late, and has no types here
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, *inputs: Any) -> Any:
            with autocast(bench.case.device, bench.case.dtype, cache=False):
                return self.network(*inputs)

    return Cast().eval()


def _exported(network: Any, example: Any, name: str) -> Any:
    """Export the network as one graph. Raise WorkerError if that is impossible."""
    try:
        return torch.export.export(network, example)
    except MemoryError:
        raise
    except Exception as error:
        first: BaseException = error
        while first.__context__ is not None:
            first = first.__context__  # torch may fail again while it handles an error: the first one is the reason
        reason = next(iter(str(first).strip().splitlines()), type(first).__name__)
        named = outcome.indicated(str(first)) or "error"
        raise WorkerError(named, f"torch.export makes no graph of {name}: {reason}") from error


def loaded(network: Any, libraries: list[str]) -> Check:
    """Check that the package's code runs: one graph, as machine code that is mapped into this process."""
    package = importlib.import_module("torch._inductor.package").AOTICompiledModel
    mapped = {Path(line.split()[-1]).name for line in _MAPPED.read_text().splitlines() if line.endswith(".so")}
    mapped_libraries = [name for name in libraries if name in mapped]
    return Check(
        "package",
        isinstance(network, package) and len(mapped_libraries) == len(libraries) == 1,
        f"{type(network).__name__}, {len(mapped_libraries)} of the package's {len(libraries)} graphs loaded",
        f"{package.__name__}, 1 of the package's 1 graphs loaded",
    )


def weighed(network: Any) -> Check:
    """Check that the package contains the weights, and that freezing has made new constants of them."""
    names = list(getattr(network, "get_constant_fqns", list)())
    constants = sum(name.startswith(FROZEN) for name in names)
    return Check("freezing", constants > 0, f"{constants} of {len(names)} constants inside are frozen", "at least 1")


def _script_of_casts(cell: Cell) -> tuple[str, ...]:
    """Return the lines that put autocast into a module, as `_cast` does."""
    context = script_of_autocast(cell.device, cell.dtype, cache=False)
    if not context:
        return ()
    return (
        "class Cast(torch.nn.Module):",
        "    def __init__(self, model):",
        "        super().__init__()",
        "        self.model = model",
        "    def forward(self, *inputs):",
        f"        with {context}:",
        "            return self.model(*inputs)",
        "model = Cast(model).eval()",
    )


class InferExport(Mode):
    name = "infer_export"
    label = EXPORTED
    graph = EXPORTED
    plain = "infer"
    fresh = "torch.export and inductor keep processes and threads that were never tested under a fork"
    knobs = KNOBS

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        if cell.device != "cpu":
            return f"infer_export is built for cpu, not for {cell.device}"
        return facts.no_compiler()  # what it makes is loaded by torch, not by Python

    def script(self, cell: Cell, stack: Stack) -> tuple[str, ...]:
        return (
            *_script.optimised(cell, stack),
            *_script_of_casts(cell),
            "with torch.no_grad():",
            "    program = torch.export.export(model, inputs)",
            '    path = torch._inductor.aoti_compile_and_package(program, inductor_configs={"freezing": True})',
            "    model = torch._inductor.aoti_load_package(path)",
            "    outputs = model(*inputs)",
        )

    def open(self, bench: Workbench) -> Session:
        return ExportedSession(bench)


registry.modes.add("infer_export", InferExport())
