"""Arms, scripted rounds and scripted players for the tests of comparisons."""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from free_machine import FREE

from ipexperf.bench.cell import Settings
from ipexperf.case import NetworkCase
from ipexperf.compare import together
from ipexperf.compare.arm import Arm
from ipexperf.compare.players import CountedTurns, Player, Turn
from ipexperf.compare.round import ArmResult, Effort, Round
from ipexperf.conduct.conditions import Conditions
from ipexperf.errors import WorkerError
from ipexperf.result import Check, Launch, Sample

CASE = NetworkCase("tiny", "fake", "fp32", "spin", "plain", 1, 1, data="none")
A = Arm(CASE, Conditions(Settings()), "arm a")
B = replace(A, case=replace(CASE, dtype="bf16"), name="arm b")
BUSY = "other processes took 50 % (limit 25 %)"
NOW = "2026-11-22T12:00:00.000+00:00"
QUICK = Effort(turns=4, most=6, seconds=0.01)


def case(model: str = "tiny", dtype: str = "fp32", **more: Any) -> NetworkCase:
    return replace(CASE, model=model, dtype=dtype, **more)


def chance() -> random.Random:
    return random.Random(1)  # noqa: S311 - a start order, no secret


def quick(*load: str, **more: Any) -> Conditions:
    """Conditions under which a turn or two are enough, on a machine that is ours alone."""
    return Conditions(Settings(load=load), **{"timeout": 30.0, "samples": 4, "seconds": 0.05, "gate": FREE, **more})


def play(*arms: Arm, effort: Effort = QUICK, say: Callable[[str], None] = lambda _: None) -> Round:
    return together.play(arms, effort, chance(), say)


def side(time: float, *checks: Check, arm: Arm = A, error: WorkerError | None = None, **more: float) -> ArmResult:
    """What an arm did whose turns all took so long; one with an error did nothing."""
    if error is not None:
        return ArmResult(arm, Launch(0, error.outcome, error.reason), {}, (), error)  # type: ignore[arg-type]
    samples = (Sample(time, time, 0.0),) * 3
    done = Launch(0, "ok", samples=samples, metrics={"step_time": time, **more}, proof=checks)
    return ArmResult(arm, done, {"software": {}}, ((time,) * 3,))


def pair(a: ArmResult | float, b: ArmResult | float, **more: Any) -> Round:
    sides = [one if isinstance(one, ArmResult) else side(one) for one in (a, b)]
    return Round(tuple(sides), **{"schedule": "together", "started_at": NOW, **more})


def failed(error: WorkerError) -> Round:
    """A round whose second arm ended with this."""
    return pair(1.0, side(0.0, error=error))


def slower(spread: float, shift: float = 1.0) -> Iterator[Round]:
    """Rounds of pairs, in which the second arm is so many times slower, give or take."""
    noise = random.Random(7)  # noqa: S311 - a simulation, no secret
    while True:
        yield pair(1.0, shift * math.exp(noise.gauss(0, spread)))


class ScriptedRounds:
    """Rounds that start no process: a function says what the arms of a round did."""

    def __init__(self, script: Callable[[Sequence[Arm]], Round]) -> None:
        self.asked: list[list[Arm]] = []
        """The arms of every round."""
        self._script = script

    def play(self, arms: Sequence[Arm], effort: Effort, chance: random.Random, say: Callable[[str], None]) -> Round:
        """Return the round that the script has for these arms, with a side for each of them."""
        del effort, chance, say
        self.asked.append(list(arms))
        found = self._script(arms)
        return replace(
            found, results=tuple(replace(one, arm=arm) for one, arm in zip(found.results, arms, strict=True))
        )


def use(rounds: ScriptedRounds | None) -> None:
    """Have these rounds played until the end of the test."""
    if rounds is not None:
        together.play = rounds.play  # type: ignore[assignment]  # `honest` puts it back


def finish(run: Any) -> None:
    """Make all rounds of a group or of comparisons."""
    for _ in run.play():
        """Nobody looks at what there is so far."""


def scripted(rounds: Iterator[Round]) -> ScriptedRounds:
    """Play these rounds. Arms of several comparisons get the sides of as many rounds as they need."""

    def script(arms: Sequence[Arm]) -> Round:
        found = next(rounds)
        sides = list(found.results)
        while len(sides) < len(arms):
            sides += next(rounds).results
        return replace(found, results=tuple(sides))

    return ScriptedRounds(script)


class Scripted(Player):
    """A player that is no process: what its turns take is told beforehand."""

    def __init__(self, arm: Arm, times: Callable[[int], float]) -> None:
        super().__init__(arm, ExitStack())
        self._times = times
        self.taken = 0

    def start(self) -> None: ...
    def started(self) -> None: ...
    def prepare(self) -> None: ...
    def warm(self) -> None: ...

    def turn(self) -> Turn:
        time = self._times(self.taken)
        self.taken += 1
        return Turn.of([Sample(time, time, 0.0)], 1)

    def enough(self, turns: Sequence[Turn]) -> bool:
        return bool(turns)

    def launch(self, counted: CountedTurns) -> Launch:
        samples = tuple(sample for turn in counted.turns for sample in turn.samples)
        shares, contended, notes = counted.shares, counted.contended, counted.notes
        return Launch(self.arm.index, "ok", samples=samples, gate=shares, contended=contended, notes=notes)

    def accuracy(self, launch: Launch) -> Launch:
        return launch


@dataclass
class Sent:
    """The requests of all workers in their order, and who is told of each before it is sent."""

    requests: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    """The dtype of the case that each process was asked to prepare."""
    before: Callable[[str, str, int, int], None] = lambda *_: None
    """Is told the dtype, the request, how many of that kind there were before, and the process."""

    def of(self, do: str) -> list[str]:
        """The dtypes of those that were sent such a request."""
        return [self.names.get(pid, "") for pid, sent, _ in self.requests if sent == do]
