"""How often `ipexperf compare --hosts` is right, for two to ten hosts, with and without an odd one among them.

Each host measures the old software in one run and the new in a later one, each with five launches. The noise is that of
`simulate.py`: each launch has a level of its own, and each run a state of the machine that its launches share. The
launches of a run do not show that state, only the other hosts do.

    python benchmarks/detection/several_hosts.py > benchmarks/detection/hosts.md
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from simulate import World, spread

from ipexperf.judge import several_hosts
from ipexperf.judge.policy import HostsPolicy
from ipexperf.judge.several_hosts import Combined, HostRatio

SEED = 20261125
LAUNCHES = 5
HOSTS = (2, 3, 5, 10)
EFFECTS = (0.0, 0.02, 0.03, 0.05, 0.10)
ODD = 0.10
"""How much slower the change is on the odd host."""
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
    "shipped: spread shrunk to 2 %, worth 3 hosts": POLICY,
    "the same, worth 1 host": replace(POLICY, trust=1.0),
    "shrunk to 1 %, worth 3": replace(POLICY, spread=0.01),
    "shrunk to 4 %, worth 3": replace(POLICY, spread=0.04),
    "Hartung-Knapp, no assumption": replace(POLICY, trust=0.0),
    "fixed effect: launches alone": replace(POLICY, trust=1e9, spread=0.0),
}
"""Rules that were tried. The one of a fixed effect believes that hosts differ by the noise of launches alone."""


def fleets(
    world: World, chance: np.random.Generator, hosts: int, effect: float, odd: float
) -> Iterator[list[HostRatio]]:
    """Fleets without end: what each host says. The change is slower by `odd` on the first one."""
    while True:
        size = (2, hosts, LAUNCHES)
        levels = world.levels(chance, 2 * hosts, LAUNCHES).reshape(size)
        levels += chance.normal(0, world.state, (2, hosts, 1))
        levels[1] += math.log1p(effect)
        levels[1, 0] += math.log1p(odd)
        runs = np.exp(levels).tolist()
        made = (several_hosts.of_runs(f"h{host}", [runs[0][host]], [runs[1][host]]) for host in range(hosts))
        yield [one for one in made if one is not None]


def judged(
    world: World, hosts: int, effect: float, trials: int, odd: float = 0.0, policy: HostsPolicy = POLICY
) -> list[Combined]:
    # The same fleets for every rule and effect.
    names = (world.name, hosts, odd)
    chance = np.random.default_rng([SEED, *(sum(map(ord, str(name))) for name in names)])
    fleet = fleets(world, chance, hosts, effect, odd)
    return [several_hosts.judge(next(fleet), policy) for _ in range(trials)]


def share(verdicts: Sequence[Combined], outcome: str) -> str:
    return f"{100 * Counter(one.outcome for one in verdicts)[outcome] / len(verdicts):.1f}"


def table(*heads: str) -> None:
    sys.stdout.write(f"\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n")


def row(*cells: object) -> None:
    sys.stdout.write(f"| {' | '.join(map(str, cells))} |\n")
    sys.stdout.flush()


def alike(trials: int) -> None:
    """Hosts that are alike."""
    shown = (f"regressed at {effect:.0%}" for effect in EFFECTS)
    table("noise", "hosts", *shown, "ok at 0 %", "ok at 5 %", "undecided at 5 %", "half-width", "a host named")
    for world in WORLDS:
        for hosts in HOSTS:
            found = {effect: judged(world, hosts, effect, trials) for effect in EFFECTS}
            ends = (share(found[0.0], "ok"), share(found[0.05], "ok"), share(found[0.05], "inconclusive"))
            wide = float(np.median([math.log(one.hi / one.lo) / 2 for one in found[0.0]]))
            named = sum(bool(one.odd) for one in found[0.0]) / trials
            alarms = (share(found[effect], "regressed") for effect in EFFECTS)
            row(world.name, hosts, *alarms, *ends, f"{wide:.1%}", f"{100 * named:.1f}")


def one_odd(trials: int) -> None:
    """One host among them on which the change is 10 % slower, whatever it does on the others."""
    heads = ("regressed at 0 %", "ok at 0 %", "regressed at 5 %", "ok at 5 %", "regressed at 10 %")
    table("noise", "hosts", *heads, "odd host named", "said to disagree", "another one named")
    for world in WORLDS:
        for hosts in HOSTS[1:]:
            found = {effect: judged(world, hosts, effect, trials, ODD) for effect in (0.0, 0.05, 0.10)}
            every = [one for verdicts in found.values() for one in verdicts]
            named = sum("h0" in one.odd for one in every) / len(every)
            disagree = sum("h0" not in one.odd and one.disagree for one in every) / len(every)
            wrong = sum(bool({*one.odd} - {"h0"}) for one in every) / len(every)
            outcomes = ((0.0, "regressed"), (0.0, "ok"), (0.05, "regressed"), (0.05, "ok"), (0.10, "regressed"))
            cells = (share(found[effect], outcome) for effect, outcome in outcomes)
            row(world.name, hosts, *cells, *(f"{100 * part:.1f}" for part in (named, disagree, wrong)))


def rules(trials: int) -> None:
    """Rules that were tried, on the same fleets."""
    table("noise", "hosts", "rule", "regressed at 0 %", "at 2 %", "at 5 %", "at 10 %", "ok at 0 %", "ok at 5 %")
    for world in (WORLDS[1], WORLDS[3], WORLDS[4]):
        for hosts in HOSTS:
            for name, policy in RULES.items():
                effects = (0.0, 0.02, 0.05, 0.10)
                found = {effect: judged(world, hosts, effect, trials, policy=policy) for effect in effects}
                alarms = (share(found[effect], "regressed") for effect in effects)
                row(world.name, hosts, name, *alarms, share(found[0.0], "ok"), share(found[0.05], "ok"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1000)
    arguments = parser.parse_args()
    sys.stdout.write(f"{arguments.trials} fleets for each row and slowdown. Numbers are per hundred.\n")
    for part in (alike, one_odd, rules):
        part(arguments.trials)


if __name__ == "__main__":
    main()
