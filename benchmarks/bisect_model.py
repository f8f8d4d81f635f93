"""A model that is as slow as installed packages and a variable say, and a mode that runs it.

`--perf-load=tests/fakes/fake.py,benchmarks/bisect_model.py`: device and stack are those of the fakes. Needs no torch.
"""

import hashlib
import importlib
import os
from dataclasses import dataclass

from ipexperf.bench import registry
from ipexperf.bench.api import Mode, Session, Workbench
from ipexperf.bench.cell import Cell
from ipexperf.bench.machine.facts import Facts
from ipexperf.result import Check

PIECES = tuple(f"piece{number:02d}" for number in range(30))
VARIABLE = "PIECES_SHARE"
"""The environment variable that slows a step by a share of its time."""
BYTES = 6_000_000
"""What a step hashes: some milliseconds."""
CHUNK = 65_536
DATA = bytes(2 * BYTES)


@dataclass(frozen=True, slots=True)
class Work:
    """What one step does."""

    size: int

    def run(self) -> bytes:
        return hashlib.sha256(memoryview(DATA)[: self.size]).digest()

    @property
    def expected(self) -> bytes:
        """The result of a run, computed in pieces."""
        digest = hashlib.sha256()
        for begin in range(0, self.size, CHUNK):
            digest.update(DATA[begin : min(begin + CHUNK, self.size)])
        return digest.digest()


class WorkSession(Session):
    def __init__(self, bench: Workbench) -> None:
        self.work: Work = bench.model.build()

    def step(self) -> None:
        self.work.run()

    def accuracy(self) -> tuple[dict[str, float], list[Check]]:
        found = self.work.run()
        right = found == self.work.expected
        return {"accuracy": float(right)}, [Check("accuracy", right, f"{found!r}", f"{self.work.expected!r}")]

    def proof(self) -> list[Check]:
        return [Check("dtype", True, "fp32", "fp32")]


class Working(Mode):
    name = "working"

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        del facts
        return None if cell.device == "fake" else "working is for the fake device"

    def open(self, bench: Workbench) -> Session:
        return WorkSession(bench)


registry.modes.add("working", Working())


@registry.model("pieces", size=1, batch_train=1, batch_infer=1, data="none", needs=(), trained=False)
def pieces() -> Work:
    """Each package has the share by which it slows a step."""
    modules = [importlib.import_module(name) for name in PIECES]
    share = sum(module.SHARE for module in modules) + float(os.environ.get(VARIABLE, "0"))
    return Work(round(BYTES * (1 + share)))
