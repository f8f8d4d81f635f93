"""A dtype, three modes, two metrics and an outcome that the program has never heard of. Loaded after fake.py."""

from ipexperf.bench import registry
from ipexperf.bench.machine.facts import Facts
from ipexperf.dtypes import DTYPES, Bounds, Dtype
from ipexperf.ext import Accuracy, Cell, Check, Metric, Mode, Session, Workbench, register
from ipexperf.outcomes import OUTCOMES, OutcomeRow

DTYPES["fp8"] = Dtype(width=1, operands=frozenset({"float8_e4m3fn"}), bounds=Bounds(fidelity=0.2, agreement=0.9))
OUTCOMES["throttled"] = OutcomeRow("🥵", "♨", "bad", "the device was too hot", fails=True, numbers=False)  # type: ignore[index]
register(Metric("joules", "J", higher_is_better=False))
register(Metric("bleu", "points", None, Accuracy("bleu", "difference")))


class WobbleSession(Session):
    """The model's step, with metrics of its own."""

    def __init__(self, bench: Workbench) -> None:
        self.bench = bench
        self.answer = bench.model.build()

    def step(self) -> None:
        self.answer()

    def metrics(self) -> dict[str, float]:
        return {**super().metrics(), "joules": 41.5}

    def accuracy(self) -> tuple[dict[str, float], list[Check]]:
        return {"bleu": 27.25}, [Check("bleu", True, "27.25", "27.25")]

    def proof(self) -> list[Check]:
        return [Check("dtype", self.bench.case.dtype == "fp8", self.bench.case.dtype, "fp8")]


class Wobble(Mode):
    name = "wobble"
    label = "wobbling"
    plain = "spin"

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        return None if cell.device == "fake" else "wobbling is for the fake device"

    def open(self, bench: Workbench) -> Session:
        return WobbleSession(bench)


class Distil(Wobble):
    """A training."""

    name = "distil"
    trains = True
    kind = "distillation"


class Fuse(Wobble):
    """Inference in a graph that torch.compile captures."""

    name = "fuse"
    graph = "compiled"


for mode in (Wobble(), Distil(), Fuse()):
    registry.modes.add(mode.name, mode)
