"""How often `ipexperf compare --hosts` is right, for two to ten hosts, with and without an odd one among them.

Each host measures the old software in one run and the new in a later one, each with five launches. The noise is that of
`simulate.py`: each launch has a level of its own, and each run a state of the machine that its launches share. The
launches of a run do not show that state, only the other hosts do, and runs on more nights.

    python benchmarks/detection/several_hosts.py > benchmarks/detection/hosts.txt
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from simulate import World, spread

from ipexperf.judge import several_hosts
from ipexperf.judge.policy import HostsPolicy
from ipexperf.judge.several_hosts import Combined, HostRatio

SEED = 20261125
LAUNCHES, CASES = 5, 10
HOSTS = (2, 3, 5, 10)
EFFECTS = (0.0, 0.02, 0.03, 0.05, 0.10)
ODD = 0.10
"""How much slower the change is on the odd host."""
SHARED = 4
"""So many times more verdicts where the cases of a comparison share a state."""
POLICY = HostsPolicy()
WORLDS = (
    spread("spread 0.5 %", 0.005),
    spread("spread 1.5 %", 0.015),
    spread("spread 2 %", 0.02),
    spread("spread 4 %", 0.04),
    spread("spread 8 %", 0.08),
    spread("2 %, 10 % contaminated", 0.02, hit=0.1),
    spread("2 %, bimodal, 6 % apart", 0.02, modes=0.06),
    World("measured", 0.015 / math.sqrt(2), 0.17),
)
RULES = {
    "shipped: spread shrunk to 2 % or what the cases show, worth 3 hosts or less": POLICY,
    "shrunk to 2 %, worth 1 host": replace(POLICY, trust=1.0),
    "shrunk to 1 %, worth 3": replace(POLICY, spread=0.01),
    "shrunk to 4 %, worth 3": replace(POLICY, spread=0.04),
    "Hartung-Knapp, no assumption": replace(POLICY, trust=0.0),
    "fixed effect: launches alone": replace(POLICY, trust=1e9, spread=0.0),
}
"""Rules that were tried. The one of a fixed effect believes that hosts differ by the noise of launches alone."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """What is compared: how many cases on how many hosts, and on how many nights each software."""

    hosts: int
    cases: int = CASES
    nights: int = 1
    together: bool = False
    """Whether a machine's state is that of all of its cases. Otherwise each case has a state of its own."""


def comparisons(world: World, chance: np.random.Generator, fleet: Fleet) -> Iterator[np.ndarray]:
    """Comparisons without end: the log times by case, side, host, night and launch, without any change."""
    size = (fleet.cases, 2, fleet.hosts, fleet.nights)
    while True:
        levels = world.levels(chance, math.prod(size), LAUNCHES).reshape((*size, LAUNCHES))
        states = (1, *size[1:]) if fleet.together else size
        yield levels + chance.normal(0, world.state, states)[..., None]


def verdicts(
    world: World,
    fleet: Fleet,
    effect: float,
    trials: int,
    odd: float = 0.0,
    policy: HostsPolicy = POLICY,
    *,
    pool: bool = True,
) -> list[Combined]:
    """The verdicts of so many cases. The change is slower by `odd` on the first host, beside its effect."""
    # The same fleets for every rule and effect.
    parts = (*map(ord, world.name), fleet.hosts, fleet.cases, fleet.nights, fleet.together)
    chance = np.random.default_rng([SEED, *parts])
    made = comparisons(world, chance, fleet)
    judged: list[Combined] = []
    while len(judged) < trials:
        logs = next(made)
        logs[:, 1] += math.log1p(effect)
        logs[:, 1, 0] += math.log1p(odd)
        cases = [ratios(case) for case in np.exp(logs).tolist()]
        own = several_hosts.corrected(cases, policy) if pool else policy
        judged += [several_hosts.judge(case, own) for case in cases]
    return judged


def ratios(case: Sequence[Sequence[Sequence[Sequence[float]]]]) -> list[HostRatio]:
    """What each host says of a case."""
    made = (several_hosts.of_runs(f"h{host}", *sides) for host, sides in enumerate(zip(*case, strict=True)))
    return [one for one in made if one is not None]


def share(judged: Sequence[Combined], outcome: str) -> str:
    return f"{100 * Counter(one.outcome for one in judged)[outcome] / len(judged):.1f}"


def table(title: str, *heads: str) -> None:
    sys.stdout.write(f"\n{title}\n\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n")


def row(*cells: object) -> None:
    sys.stdout.write(f"| {' | '.join(map(str, cells))} |\n")
    sys.stdout.flush()


def alike(trials: int) -> None:
    """Hosts that are alike."""
    shown = (f"regressed at {effect:.0%}" for effect in EFFECTS)
    heads = ("ok at 0 %", "ok at 5 %", "undecided at 5 %", "half-width", "a host named")
    table(f"Hosts that are alike, {CASES} cases, each with a state of its own:", "noise", "hosts", *shown, *heads)
    for world in WORLDS:
        for hosts in HOSTS:
            results = {effect: verdicts(world, Fleet(hosts), effect, trials) for effect in EFFECTS}
            ends = (share(results[0.0], "ok"), share(results[0.05], "ok"), share(results[0.05], "inconclusive"))
            wide = float(np.median([math.log(one.hi / one.lo) / 2 for one in results[0.0]]))
            named = sum(bool(one.odd) for one in results[0.0]) / len(results[0.0])
            alarms = (share(results[effect], "regressed") for effect in EFFECTS)
            row(world.name, hosts, *alarms, *ends, f"{wide:.1%}", f"{100 * named:.1f}")


def size(trials: int) -> None:
    """What more cases and more nights are worth."""
    effects = (0.0, 0.02, 0.05, 0.10)
    shown = (f"regressed at {effect:.0%}" for effect in effects)
    title = "More cases and more nights:"
    table(title, "noise", "hosts", "measured", *shown, "ok at 0 %", "ok at 5 %")
    for world in (WORLDS[2], WORLDS[4], WORLDS[7]):
        for hosts in HOSTS[:3]:
            for name, fleet in (
                ("1 case", Fleet(hosts, 1)),
                (f"{CASES} cases", Fleet(hosts)),
                (f"{CASES} cases of one state", Fleet(hosts, together=True)),
                ("1 case, 3 nights", Fleet(hosts, 1, 3)),
                (f"{CASES} cases of one state, 3 nights", Fleet(hosts, nights=3, together=True)),
            ):
                # Cases of one state say the same: the comparisons count.
                count = trials * (SHARED if fleet.together else 1)
                results = {effect: verdicts(world, fleet, effect, count) for effect in effects}
                alarms = (share(results[effect], "regressed") for effect in effects)
                row(world.name, hosts, name, *alarms, share(results[0.0], "ok"), share(results[0.05], "ok"))


def one_odd(trials: int) -> None:
    """One host among them on which the change is 10 % slower, whatever it does on the others."""
    heads = ("regressed at 0 %", "ok at 0 %", "regressed at 5 %", "ok at 5 %", "regressed at 10 %")
    ends = ("odd host named", "said to disagree", "another one named")
    table(f"One host on which the change is {ODD:.0%} slower, in all {CASES} cases:", "noise", "hosts", *heads, *ends)
    for world in WORLDS:
        for hosts in HOSTS[1:]:
            results = {effect: verdicts(world, Fleet(hosts), effect, trials, ODD) for effect in (0.0, 0.05, 0.10)}
            every = [one for judged in results.values() for one in judged]
            named = sum("h0" in one.odd for one in every) / len(every)
            disagree = sum("h0" not in one.odd and one.disagree for one in every) / len(every)
            wrong = sum(bool({*one.odd} - {"h0"}) for one in every) / len(every)
            outcomes = ((0.0, "regressed"), (0.0, "ok"), (0.05, "regressed"), (0.05, "ok"), (0.10, "regressed"))
            cells = (share(results[effect], outcome) for effect, outcome in outcomes)
            row(world.name, hosts, *cells, *(f"{100 * part:.1f}" for part in (named, disagree, wrong)))


def rules(trials: int) -> None:
    """Rules that were tried, on the same fleets."""
    effects = (0.0, 0.02, 0.05, 0.10)
    shown = (f"regressed at {effect:.0%}" for effect in effects)
    table("Rules that were tried:", "noise", "hosts", "rule", *shown, "ok at 0 %", "ok at 5 %")
    tried = [(name, policy, name.startswith("shipped")) for name, policy in RULES.items()]
    tried.insert(1, ("shrunk to 2 %, worth 3, whatever the cases show", POLICY, False))
    for world in (WORLDS[2], WORLDS[4], WORLDS[7]):
        for hosts in HOSTS[:3]:
            for name, policy, pool in tried:
                results = {
                    effect: verdicts(world, Fleet(hosts), effect, trials, policy=policy, pool=pool)
                    for effect in effects
                }
                alarms = (share(results[effect], "regressed") for effect in effects)
                row(world.name, hosts, name, *alarms, share(results[0.0], "ok"), share(results[0.05], "ok"))


PARTS = {"alike": alike, "size": size, "odd": one_odd, "rules": rules}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1000, help="verdicts for each row and slowdown")
    parser.add_argument("--part", choices=PARTS, help="only this table")
    arguments = parser.parse_args()
    more = f"{SHARED} times as many for cases of one state"
    sys.stdout.write(f"{arguments.trials} verdicts for each row and slowdown, {more}. Numbers are per hundred.\n")
    for name, part in PARTS.items():
        if arguments.part in (None, name):
            part(arguments.trials)


if __name__ == "__main__":
    main()
