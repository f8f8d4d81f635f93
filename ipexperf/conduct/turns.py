"""Two live workers take turns, step by step: what disturbs one disturbs its neighbour alike."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass

from ipexperf.bench import registry
from ipexperf.case import Case
from ipexperf.conduct.launch import Conditions, to_samples
from ipexperf.conduct.worker import Worker
from ipexperf.errors import WorkerError
from ipexperf.result import Check, Sample


@dataclass(frozen=True, slots=True)
class Arm:
    """One of the two things compared: a case under its own conditions."""

    case: Case
    conditions: Conditions


@dataclass(frozen=True, slots=True)
class Turns:
    """A pair of processes: turn i of one stands beside turn i of the other."""

    a: tuple[tuple[Sample, ...], ...]
    b: tuple[tuple[Sample, ...], ...]


def _prove(worker: Worker, case: Case) -> None:
    """Ends the comparison where an arm is not what its label says, or is wrong: a fast and wrong arm is no winner."""
    worker.ask("warm")
    checks = worker.ask("proof")["checks"]
    if not registry.modes.get(case.mode).trains:
        checks = checks + worker.ask("accuracy")["checks"]
    for check in (Check(**told) for told in checks):
        if not check.ok:
            raise WorkerError("error", f"{case.id}: {check}", worker.log())


def take(
    a: Arm, b: Arm, turns: int, steps: int, chance: random.Random, say: Callable[[str], None], *, prove: bool = False
) -> Turns:
    """Starts both in random order, then steps them A B, B A, A B ... until each had its turns."""
    arms = {"a": a, "b": b}
    told: dict[str, list[tuple[Sample, ...]]] = {"a": [], "b": []}
    with contextlib.ExitStack() as stack:
        order = ["a", "b"]
        chance.shuffle(order)
        workers = {}
        for name in order:
            arm = arms[name]
            workers[name] = stack.enter_context(arm.conditions.worker())
            settings = asdict(arm.conditions.settings)
            workers[name].ask("prepare", case=arm.case.to_json(), settings=settings)
            if prove:
                _prove(workers[name], arm.case)
        # Blocks are agreed on, so that turns are alike in length.
        block = max(int(workers[name].ask("warm")["block"]) for name in order)
        for turn in range(turns):
            for name in ("a", "b") if turn % 2 == 0 else ("b", "a"):
                reply = workers[name].ask("sample", count=steps, block=block)
                told[name].append(tuple(to_samples(reply["samples"])))
            if turn % 10 == 9:
                say(f"turn {turn + 1} of {turns}")
    return Turns(tuple(told["a"]), tuple(told["b"]))
