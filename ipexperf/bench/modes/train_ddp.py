"""Data-parallel training: one process per rank, each with its own batches, and equal weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ipexperf.bench import optimizers, registry
from ipexperf.bench.api import Mode, Session, Workbench
from ipexperf.bench.artifacts import weights
from ipexperf.bench.cell import Cell
from ipexperf.bench.device import Device
from ipexperf.bench.knob import CHANNELS_LAST, Knob, Number
from ipexperf.bench.machine import placement
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.modes import _curve, _input
from ipexperf.bench.modes._ranks import MEETING_SECONDS, Ranks, RankSession
from ipexperf.bench.modes.train import untrainable
from ipexperf.case import Case
from ipexperf.errors import WorkerError
from ipexperf.result import Check

CCL = "oneccl_bind_pt"
RANKS = "2"


@dataclass(frozen=True)
class RanksKnob(Number):
    def why_not(self, cell: Cell, value: str, facts: Facts) -> str | None:
        return too_many(int(value), cell.device, facts) or super().why_not(cell, value, facts)


@dataclass(frozen=True)
class BackendKnob(Knob):
    def why_not(self, cell: Cell, value: str, facts: Facts) -> str | None:
        if value == "ccl":
            if not registry.devices.get(cell.device).oneccl:
                able = [name for name in registry.devices.names() if registry.devices.get(name).oneccl]
                return f"oneCCL is for {' and '.join(able)}, not for {cell.device}"
            return facts.missing(CCL) or super().why_not(cell, value, facts)
        return super().why_not(cell, value, facts)


def too_many(ranks: int, device: str, facts: Facts) -> str | None:
    """Return why this many ranks cannot each have a core and an equal card, or None."""
    if ranks > facts.cores:
        return f"{ranks} ranks need as many cores, but only {facts.cores} may be used here"
    if device not in facts.cards:
        return None
    cards = [str(card["name"]) for card in facts.cards[device]]
    if ranks > len(cards):
        there = "is" if len(cards) == 1 else "are"
        return f"{ranks} ranks need as many {device} devices, and there {there} {len(cards)}"
    kinds = dict.fromkeys(cards[:ranks])
    return f"ranks need equal {device} devices, and these are {' and '.join(kinds)}" if len(kinds) > 1 else None


class DdpSession(Session):
    """Runs its steps in the ranks, and compares their evidence."""

    elsewhere = True

    def __init__(self, bench: Workbench) -> None:
        self.bench = bench
        self.count = int(bench.knob("ranks"))
        chosen = bench.knob("backend")
        self.backend = bench.device.collective if chosen == "native" else chosen
        placed = (bench.settings.placement or {}).get("cores")
        cores = sorted(placed) if placed else placement.allowed()
        self.cores = len(cores)
        if self.count > self.cores:
            raise WorkerError("error", f"{self.count} ranks need as many cores, and the worker may use {self.cores}")
        self._block = 1
        self.ranks = Ranks(bench, self.count, self.backend, cores)
        try:
            self.ranks.meet()
        except TimeoutError:
            advice = f": {bench.device.unreachable}" if bench.device.unreachable else ""
            text = f"the ranks did not reach one another through {self.backend} in {MEETING_SECONDS} s{advice}"
            raise WorkerError("error", text) from None
        self.ranks.ask("build")

    def step(self) -> None:
        self.ranks.ask("step")

    def sample(self, synchronise: Callable[[], None], count: int, block: int) -> list[tuple[float, float, float]]:
        """Time from the first rank's begin to the last rank's end, on their common clock, without requests."""
        self._block, samples = block, []
        by_rank = self.ranks.ask("sample", count=count, block=block)
        for spans in zip(*by_rank, strict=True):
            begins, ends, cpus, delays = zip(*spans, strict=True)
            samples.append(((max(ends) - min(begins)) / block, sum(cpus) / block, sum(delays) / block))
        return samples

    def items(self, batch: int) -> int:
        return batch * int(self.bench.knob("accumulate")) * self.count

    def memory(self, device: Device) -> dict[str, float]:
        """Return the sum over all ranks, without the worker, which runs no steps."""
        by_rank = self.ranks.ask("memory")
        return {name: sum(of_rank[name] for of_rank in by_rank) for name in by_rank[0]}

    def metrics(self) -> dict[str, float]:
        """Return the largest value of all ranks, because the others wait for it."""
        metrics = self.ranks.ask("metrics")
        return {name: max(of_rank[name] for of_rank in metrics) for name in metrics[0]}

    def notes(self) -> list[str]:
        notes = dict.fromkeys(note for of_rank in self.ranks.ask("notes") for note in of_rank)
        if idle := self.cores % self.count:
            notes[f"{idle} of {self.cores} cores idle: {self.count} ranks have {self.cores // self.count} each"] = None
        return list(notes)

    def proof(self) -> list[Check]:
        replies = self.ranks.ask("proof", block=self._block)
        by_rank = [reply["checks"] for reply in replies]
        return [*(Check.of_all(checks, "rank") for checks in zip(*by_rank, strict=True)), *self.together(replies)]

    def together(self, replies: list[dict[str, Any]]) -> list[Check]:
        """Return checks that compare ranks."""
        ranks = sorted(reply["rank"] for reply in replies)
        sizes = sorted({reply["ranks"] for reply in replies})
        pids = {reply["pid"] for reply in replies}
        weights_found = {reply["weights"] for reply in replies}
        losses = {reply["loss"] for reply in replies}
        backends = sorted({reply["backend"] for reply in replies})
        all_cores = [core for reply in replies for core in reply["cores"]]
        each = {(len(reply["cores"]), reply["threads"]) for reply in replies}
        pinned = len(all_cores) == len(set(all_cores)) and {size for size, _ in each} == {self.cores // self.count}
        shares = ", ".join(f"{size} with {threads} threads" for size, threads in sorted(each))
        count = self.count
        return [
            Check(
                "ranks",
                ranks == list(range(count)) and sizes == [count] and len(pids) == count,
                f"ranks {ranks} of {sizes} in {len(pids)} processes",
                f"{count} of {count} in {count}",
            ),
            Check("backend", backends == [self.backend], ", ".join(backends), self.backend),
            Check(
                "rank_cores", pinned, f"{len(set(all_cores))} cores: {shares}", f"{self.cores // count} for each alone"
            ),
            Check("own_batches", len(losses) == count, f"{len(losses)} different first losses", str(count)),
            Check("weights_equal", len(weights_found) == 1, f"{len(weights_found)} sets of weights", "1 on all ranks"),
        ]

    def fingerprint(self, device: Device) -> dict[str, Any] | None:
        """Return the first rank's fingerprint. All ranks capture one, because none can step alone."""
        fingerprint: dict[str, Any] | None = self.ranks.ask("fingerprint")[0]
        return fingerprint

    def accuracy(self) -> tuple[dict[str, float], list[Check]]:
        """Return the first rank's accuracy. The losses of all ranks form one curve."""
        replies = self.ranks.ask("accuracy")
        losses = [reply["losses"] for reply in replies]
        curve = _curve.check(self.bench, weights.read(self.bench), losses, replies[0]["skipped"])
        return replies[0]["metrics"], [*replies[0]["checks"], curve]

    def close(self) -> None:
        self.ranks.close()


class TrainDdp(Mode):
    name = "train_ddp"
    family = "train_ddp"
    kind = "training on several ranks"
    plain = "train"
    fresh = "its ranks are spawned, and each imports everything itself"
    trains = True
    data_parallel = True
    knobs = (
        CHANNELS_LAST,
        *optimizers.KNOBS,
        *_input.KNOBS,
        RanksKnob("ranks", "processes that train together, each with its share of the cores", (RANKS,)),
        BackendKnob(
            "backend", "what carries gradients; native: gloo on cpu, nccl on cuda, xccl on xpu", ("native", "ccl")
        ),
    )

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        return untrainable(cell) or too_many(int(cell.knob("ranks") or RANKS), cell.device, facts)

    def processes(self, case: Case | Cell) -> int:
        return int(dict(case.knobs).get("ranks", RANKS))

    def open(self, bench: Workbench) -> Session:
        return DdpSession(bench)

    def rank(self, bench: Workbench, rank: int, ranks: int) -> RankSession:
        """Open the session of one rank in its process."""
        return RankSession(bench, rank, ranks)


registry.modes.add("train_ddp", TrainDdp())
