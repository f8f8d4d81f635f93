"""Run arms that are all alive at once and take turns, so that a disturbance hits all of them alike."""

from __future__ import annotations

import contextlib
import math
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ipexperf.compare import alike, order
from ipexperf.compare.arm import Arm
from ipexperf.compare.players import CountedTurns, Player, Turn, guarded, new_player
from ipexperf.compare.round import ArmResult, Effort, Round, ended_launch
from ipexperf.conduct import memory_limit
from ipexperf.conduct.conductor import now
from ipexperf.conduct.watch import MachineLoad, Watch, averaged
from ipexperf.errors import WorkerError
from ipexperf.judge import rounds as judge
from ipexperf.steps import Step

PATIENCE = 12
"""A round ends after this many times the seconds asked for, with the samples that it has."""
PROBES = 3
"""Before the turns, each arm steps after every other this often, to see how many steps it needs to be warm again."""
SPEAK_SECONDS = 10.0
"""Longest silence before progress is reported."""
BUILDS = 5
"""An arm whose build is judged is built this often besides, in turns. The quickest counts: disturbances only add."""
LEAST = 3
"""Every arm gets this many turns, however long they take. Precision is not estimated from fewer."""


@dataclass(slots=True)
class Rotations:
    """Rotations (one turn of each arm), sorted into those that count and those taken on a busy machine."""

    counted: list[dict[int, Turn]] = field(default_factory=list)
    dropped: list[dict[int, Turn]] = field(default_factory=list)
    pending: list[dict[int, Turn]] = field(default_factory=list)
    calm: list[MachineLoad] = field(default_factory=list)
    busy: list[MachineLoad] = field(default_factory=list)
    keep: bool = False
    """Whether those on a busy machine count too."""

    def judge(self, watch: Watch) -> None:
        """Keep all rotations since the last call, or drop them all if the machine was busy: never a single turn."""
        samples = [sample for rotation in self.pending for turn in rotation.values() for sample in turn.samples]
        stretch = watch.stretch(samples)
        (self.busy if stretch.busy else self.calm).append(stretch)
        (self.dropped if stretch.busy and not self.keep else self.counted).extend(self.pending)
        self.pending = []


@dataclass(frozen=True, slots=True)
class Together:
    """The schedule of arms that are alive at once."""

    effort: Effort

    def play(
        self, rounds: Sequence[Sequence[Arm]], chance: random.Random, say: Callable[[str], None]
    ) -> Iterator[Round]:
        for arms in rounds:
            yield play(arms, self.effort, chance, say)


def play(arms: Sequence[Arm], effort: Effort, chance: random.Random, say: Callable[[str], None]) -> Round:
    """Make a round of these arms. The failure of one arm ends up in its result; it is never raised."""
    began, started = time.monotonic(), now()
    with contextlib.ExitStack() as stack:
        players = [new_player(arm, stack) for arm in arms]
        _start(players, chance)
        alive = _alive(players)
        workers = [worker for player in alive for worker in player.workers[:1]]
        errors = alike.unlike([player.arm for player in alive], workers, say)
        for player, error in zip(alive, errors, strict=False):
            with guarded(player):
                if error is not None:
                    raise error
        started_in = time.monotonic() - began if effort.keep else 0.0
        played = take_turns(players, replace(effort, worth=started_in), chance, say)
    return replace(played, started_at=started, seconds=time.monotonic() - began)


def take_turns(players: Sequence[Player], effort: Effort, chance: random.Random, say: Callable[[str], None]) -> Round:
    """The turns of players that have started."""
    began, started = time.monotonic(), now()
    watch = Watch([player.arm.conditions for player in _alive(players)])
    _warm(players, effort)
    if min((player.step for player in _alive(players)), default=0.0) >= effort.slow:
        effort = replace(effort, turns=2, most=2)
    watch.begin(*(worker.pid for player in players for worker in player.workers if not worker.killed))
    rotations = _rotate(players, effort, watch, chance, say)
    busy = _mostly_busy(rotations, effort)
    results = _results(players, rotations, busy=busy)
    turns, dropped = len(rotations.counted), len(rotations.dropped)
    return Round(tuple(results), "together", started, turns, dropped, time.monotonic() - began, busy)


def _alive(players: Sequence[Player]) -> list[Player]:
    return [player for player in players if player.failure is None]


def _each(players: Sequence[Player], ask: Callable[[Player], None]) -> None:
    """Ask each player that has not failed."""
    for player in _alive(players):
        with guarded(player):
            ask(player)


def _turns(rotations: Sequence[dict[int, Turn]], arm: int) -> list[Turn]:
    """The turns of one arm."""
    return [rotation[arm] for rotation in rotations if arm in rotation]


def _start(players: Sequence[Player], chance: random.Random) -> None:
    """Start the players in random order: they import as many at a time as there are cores, then build one at a time.

    A build uses all cores. Two at once take more than twice as long, and their times say nothing.
    """
    starting = chance.sample(list(players), len(players))
    importing: list[Player] = []
    cores = len(os.sched_getaffinity(0))
    for player in starting:
        if len(importing) >= cores:
            _each([importing.pop(0)], lambda player: player.started())
        with guarded(player):
            player.start()
            _share_memory(players)
        importing.append(player)
    _each(importing, lambda player: player.started())
    for number in range(BUILDS):
        _each(starting[:: -1 if number % 2 else 1], lambda player: player.rehearse())
    for player in _alive(starting):
        with guarded(player):
            player.prepare()
        _share_memory(players)


def _share_memory(players: Sequence[Player]) -> None:
    """Count each worker's memory together with that of all others: together they must fit."""
    workers = [worker for player in players for worker in player.workers if not worker.killed]
    for worker in workers:
        worker.beside = [other for other in workers if other is not worker]


def _warm(players: Sequence[Player], effort: Effort) -> None:
    """Warm up the players one by one, measure how many untimed steps a turn needs, and set the shape of each turn.

    Every other round begins with the last one: who is first gets the memory that others left, often in pieces, which
    are slower.
    """
    begun: list[Player] = []
    for player in _alive(players[:: -1 if players[0].arm.index % 2 else 1]):
        with guarded(player):
            player.warm()
            begun.append(player)
            if len(_alive(players)) > 1:
                _refuse_full_card(_alive(begun))
    warm_known = all(player.arm.warm is not None for player in _alive(players))
    for _ in range(PROBES if len(_alive(players)) > 1 and not warm_known else 0):
        _each(players, lambda player: player.probe())
    alive = _alive(players)
    agreed = order.shapes([player.step for player in alive], [player.block for player in alive], effort.seconds)
    for player, shape in zip(alive, agreed, strict=True):
        alone = order.TurnShape(1, 1) if player.cold else shape
        warm = 0 if len(players) == 1 else player.warm_steps() if player.arm.warm is None else player.arm.warm
        player.shape = replace(alone, warm=warm)


def _refuse_full_card(warm: Sequence[Player]) -> None:
    """Fail the last of these players if the card is full: some drivers then move memory to the host, and are slow.

    Without a right that few have, Intel's drivers say that all of a card is free. So what the players have counts too.
    """
    replies = [player.reply for player in warm]
    room = min(
        [
            1 - sum(reply.get("taken", 0.0) for reply in replies),
            *(reply["room"] for reply in replies[-1:] if "room" in reply),
        ]
    )
    if room < 1 - memory_limit.SHARE:
        name, others = warm[-1].arm.case.device, "beside the other arms of its round"
        raise WorkerError("out_of_memory", f"{100 * room:.0f} % of the memory of the {name} device is left {others}")


def _rotate(
    players: Sequence[Player], effort: Effort, watch: Watch, chance: random.Random, say: Callable[[str], None]
) -> Rotations:
    """Take rotations until every arm has what was asked for and the ratios are precise, or until patience runs out."""
    rotations = Rotations(keep=effort.keep)
    orders = order.orders(len(players), chance)
    seconds = sum(player.arm.conditions.seconds for player in players)
    began = spoken = time.monotonic()
    until = began + PATIENCE * seconds
    # Only the first step of a process is a cold start.
    cold = any(player.cold for player in players)
    while _alive(players):
        rotation: dict[int, Turn] = {}
        for place in next(orders):
            player = players[place]
            if player.failure is None:
                with guarded(player):
                    rotation[place] = player.turn()
        rotations.pending.append(rotation)
        count = len(rotations.counted) + len(rotations.dropped) + len(rotations.pending)
        late = time.monotonic() > until and count >= LEAST
        if time.monotonic() - spoken > SPEAK_SECONDS:
            spoken = time.monotonic()
            say(Step(f"turn {len(rotations.counted) + len(rotations.pending)}, {len(rotations.dropped)} dropped"))
        waits = time.monotonic() - began < effort.worth
        if watch.due or late or _enough(players, effort, [*rotations.counted, *rotations.pending], waits=waits):
            rotations.judge(watch)
        busy = count >= 2 * effort.most and len(rotations.dropped) > len(rotations.counted)
        if late or busy or cold or _enough(players, effort, rotations.counted, waits=waits):
            break
    if rotations.pending:
        rotations.judge(watch)
    return rotations


def _enough(players: Sequence[Player], effort: Effort, rotations: Sequence[dict[int, Turn]], *, waits: bool) -> bool:
    """Whether each arm has the turns, samples and seconds that were asked for, and the ratios are precise enough.

    `waits`: more turns than `effort.most` are worth it.
    """
    turns = [_turns(rotations, place) for place in range(len(players))]
    live = [place for place, player in enumerate(players) if player.failure is None]
    if not live:
        return True
    if effort.turns == effort.most <= len(rotations):
        return True
    least = effort.turns if len(players) > 1 else 1
    if not all(len(turns[place]) >= least and players[place].enough(turns[place]) for place in live):
        return False
    if len(rotations) < LEAST or (len(rotations) >= effort.most and not waits):
        return True
    times = [[turn.step for turn in turns[place]] for place in live]
    return all(judge.precision(times[0], other) <= effort.precise for other in times[1:])


def _results(players: Sequence[Player], rotations: Rotations, *, busy: bool) -> list[ArmResult]:
    """Record each arm: its samples and proof, and its accuracy if that was asked for."""
    results = []
    for place, player in enumerate(players):
        counted = _counted(player, place, rotations, float(len(players)), busy=busy)
        times: tuple[tuple[float, ...], ...] = ()
        if player.failure is None:
            with guarded(player):
                launch = player.accuracy(player.launch(counted))
                player.dismiss()
                times = (counted.times,)
        if player.failure is not None:
            launch = ended_launch(player.arm.index, player.failure, accelerator=player.arm.conditions.accelerator)
        results.append(ArmResult(player.arm, launch, player.environment, times, player.failure))
    return results


def _mostly_busy(rotations: Rotations, effort: Effort) -> bool:
    """Whether the machine was busy for most of the round, so that too few turns count."""
    return len(rotations.counted) < min(len(rotations.dropped), max(1, effort.turns // 2))


def _counted(player: Player, place: int, rotations: Rotations, arms: float, *, busy: bool) -> CountedTurns:
    """The turns of one of so many arms that count. If too few do, all of them, marked as contended."""
    turns, contended = _turns(rotations.counted, place), ""
    stretches = [*rotations.calm, *rotations.busy] if rotations.keep else rotations.calm
    if rotations.keep and len(rotations.busy) > len(rotations.calm):
        contended = rotations.busy[-1].busy
    if busy:
        turns = [*turns, *_turns(rotations.dropped, place)]
        stretches = [*stretches, *rotations.busy]
        contended = rotations.busy[-1].busy
    shares = averaged(stretches)
    shares |= {"turns": float(len(rotations.counted)), "turns_dropped": float(len(rotations.dropped)), "arms": arms}
    notes = []
    if rotations.dropped and not contended:
        share = f"{len(rotations.dropped)} of {len(rotations.dropped) + len(rotations.counted)} turns"
        notes.append(f"dropped {share}, as did its neighbours: {rotations.busy[-1].busy}")
    if player.failure is None and not all(math.isfinite(turn.step) for turn in turns):
        notes.append("a turn has no valid time")
    return CountedTurns(tuple(turns), shares, contended, tuple(notes))
