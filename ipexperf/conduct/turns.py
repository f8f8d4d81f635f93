"""Two live workers take turns, step by step: what disturbs one disturbs its neighbour alike."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ipexperf.case import Case
from ipexperf.conduct.launch import Conditions, accurate, proven, record, to_samples
from ipexperf.conduct.watch import Watch
from ipexperf.conduct.worker import Worker
from ipexperf.errors import WorkerError
from ipexperf.judge.pairs import neighbour_ratio
from ipexperf.result import Launch, Sample

APART = "both arms do not fit beside one another, so each pair is four launches, A B B A"


@dataclass(frozen=True, slots=True)
class Arm:
    """One of the two things compared: a case under its own conditions. `name` is what its failures begin with."""

    case: Case
    conditions: Conditions
    name: str = ""


@dataclass(frozen=True, slots=True)
class Side:
    """What one arm's worker did in a pair."""

    turns: tuple[tuple[Sample, ...], ...]
    launch: Launch
    environment: Mapping[str, Any]

    @property
    def times(self) -> list[float]:
        """Seconds of each turn."""
        return [sum(sample.wall for sample in turn) for turn in self.turns]


@dataclass(frozen=True, slots=True)
class Turns:
    """A pair of processes: turn i of one stands beside turn i of the other."""

    a: Side
    b: Side
    apart: bool = False
    """Whether no two of them were alive together: then each side is two processes, one early and one late."""

    @property
    def log_ratio(self) -> float:
        """What the pair says: one number, above 0 where b is slower."""
        a, b = self.a.times, self.b.times
        if not self.apart:
            return neighbour_ratio(a, b)
        half = len(a) // 2
        # Once A came first, and once B: what drifts evenly adds to one half what it takes from the other.
        return (neighbour_ratio(a[:half], b[:half]) + neighbour_ratio(a[half:], b[half:])) / 2


@dataclass(slots=True)
class _Player:
    """A worker with its arm, and what it has told so far."""

    arm: Arm
    worker: Worker
    told: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    turns: list[tuple[Sample, ...]] = field(default_factory=list)

    def prepare(self) -> None:
        settings = asdict(self.arm.conditions.settings)
        self.told = self.worker.ask("prepare", case=self.arm.case.to_json(), settings=settings)
        self.environment = self.worker.ask("environment")

    def take(self, steps: int, block: int) -> None:
        self.turns.append(tuple(to_samples(self.worker.ask("sample", count=steps, block=block)["samples"])))

    def side(self, index: int, block: int, shares: Mapping[str, float], notes: Sequence[str], *, prove: bool) -> Side:
        """The record of what it did. Evidence and accuracy are asked of one pair: the same seed gives the same."""
        samples = [sample for turn in self.turns for sample in turn]
        told = {**self.told, **self.worker.ask("memory"), "block": block}
        launch = record(index, samples, told, shares, self.worker)
        launch = replace(launch, notes=(*self.arm.conditions.notes, *notes))
        launch = accurate(self.worker, proven(self.worker, launch)) if prove else launch
        return Side(tuple(self.turns), launch, self.environment)


@contextlib.contextmanager
def _blamed(arm: Arm) -> Iterator[None]:
    """Lets a failure say which arm's it is."""
    try:
        yield
    except WorkerError as error:
        reason = f"{arm.name}: {error.reason}" if arm.name else error.reason
        raise WorkerError(error.outcome, reason, error.log) from error


def take(
    a: Arm,
    b: Arm,
    turns: int,
    steps: int,
    chance: random.Random,
    say: Callable[[str], None],
    *,
    index: int = 0,
    prove: bool = False,
) -> Turns:
    """Starts both in random order, then steps them A B, B A, A B ... until each had its turns."""
    with contextlib.ExitStack() as stack:
        players: dict[str, _Player] = {}
        for name, arm in chance.sample([("a", a), ("b", b)], 2):
            with _blamed(arm):
                players[name] = _Player(arm, stack.enter_context(arm.conditions.worker()))
                for player in players.values():
                    player.worker.beside = [other.worker for other in players.values() if other is not player]
                players[name].prepare()
        watch = Watch(b.case, b.conditions, a.conditions)
        for player in players.values():
            with _blamed(player.arm):
                player.told.update(player.worker.ask("warm"))
        # Blocks are agreed on, so that turns are alike in length.
        block = max(int(player.told["block"]) for player in players.values())
        watch.begin(*(player.worker.pid for player in players.values()))
        for turn in range(turns):
            for name in ("a", "b") if turn % 2 == 0 else ("b", "a"):
                with _blamed(players[name].arm):
                    players[name].take(steps, block)
            if turn % 10 == 9:
                say(f"turn {turn + 1} of {turns}")
        samples = [sample for player in players.values() for turn in player.turns for sample in turn]
        seen, busy = watch.end(samples)
        notes = [f"took turns on a contended machine, as did the other arm: {busy}"] if busy else []
        sides = {}
        for name, player in players.items():
            with _blamed(player.arm):
                sides[name] = player.side(index, block, seen, notes, prove=prove)
    return Turns(sides["a"], sides["b"])


def apart(
    a: Arm,
    b: Arm,
    turns: int,
    steps: int,
    chance: random.Random,
    say: Callable[[str], None],
    *,
    index: int = 0,
    prove: bool = False,
) -> Turns:
    """A pair of which no two processes are alive together, A B B A or B A A B: for what holds one arm at a time."""
    order = chance.sample([("a", a), ("b", b)], 2)
    done: dict[str, list[tuple[Sample, ...]]] = {"a": [], "b": []}
    notes: dict[str, list[str]] = {"a": [APART], "b": [APART]}
    sides = {}
    block = 0
    for number, (name, arm) in enumerate((*order, *reversed(order))):
        say(f"launch {number + 1} of 4, {arm.name or arm.case.id}")
        with _blamed(arm), arm.conditions.worker() as worker:
            player = _Player(arm, worker, turns=done[name])
            player.prepare()
            watch = Watch(arm.case, arm.conditions)
            player.told.update(worker.ask("warm"))
            block = block or int(player.told["block"])
            watch.begin(worker.pid)
            begun = len(done[name])
            for _ in range((turns + 1) // 2):
                player.take(steps, block)
            seen, busy = watch.end([sample for turn in done[name][begun:] for sample in turn])
            notes[name] += [f"measured on a contended machine: {busy}"] if busy else []
            if begun:
                sides[name] = player.side(index, block, seen, notes[name], prove=prove)
    return Turns(sides["a"], sides["b"], apart=True)
