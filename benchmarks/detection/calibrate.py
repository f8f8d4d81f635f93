"""The levels of the sequential test: how far each look's alarm rate can be raised, as earlier looks cover part of it.

The alarm rate is spent by the power family: (n / 24)^1.5 of it after n of 24 pairs. On its own, a look could test at
the share spent there. But an alarm at this look and at an earlier one is one alarm, so later looks can test at a
higher level, depending on how strongly their statistics correlate with earlier ones. With few pairs the t statistics
do not correlate like normal ones, and with contaminated pairs Yuen's test is used, so the levels are simulated with
the judge's own choice between the two. For each shape of noise and each alarm rate, the level of a look is raised
until first alarms at that look reach their share. The policy uses the lowest level of each look: one row for alarms,
and one for the bounds of ok. Noise with two equally frequent modes is printed but not used: four pairs of it are too
few for any test that estimates a spread.

If a budget or `--max-pairs` ends the pairs, the last look spends the rest. That would be safe whatever earlier looks
saw, except that trimming makes some spreads too small: `caution` is the share of the rest that may be spent.

    python benchmarks/detection/calibrate.py > benchmarks/detection/levels.txt
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from ipexperf.judge import sequential
from ipexperf.judge.policy import PairPolicy

SEED = 20261121
PATHS = 3_200_000
CHUNK = 100_000
POLICY = PairPolicy()
OK_RATES, ALARM_RATES = (0.05,), (0.005, 0.001, 0.00025)
"""Rates for ok, and for alarms down to the share of one of 200 cases."""
ENDS = (10, 12, 15, 20)
"""Numbers of pairs at which a budget may end and some pairs are trimmed."""
SEEN = tuple(sorted({*POLICY.looks, *ENDS}))
Values = NDArray[np.float64]


def normal(chance: np.random.Generator, paths: int) -> Values:
    return chance.standard_normal((paths, POLICY.looks[-1]))


def contaminated(chance: np.random.Generator, paths: int) -> Values:
    """Return noise in which one pair in ten has five times the spread."""
    found = normal(chance, paths)
    return found * np.where(chance.random(found.shape) < 0.1, 5.0, 1.0)


def heavy(chance: np.random.Generator, paths: int) -> Values:
    """Return noise of Student's t with 3 degrees of freedom."""
    return chance.standard_t(3, (paths, POLICY.looks[-1]))


def bimodal(chance: np.random.Generator, paths: int) -> Values:
    """Return noise in which each process is in one of two equally frequent modes, four standard deviations apart."""
    modes = chance.integers(0, 2, (2, paths, POLICY.looks[-1]))
    return normal(chance, paths) + 4.0 * (modes[0] - modes[1])


SHAPES = {x.__name__: x for x in (normal, contaminated, heavy, bimodal)}
TAKEN = ("normal", "contaminated", "heavy")
"""Shapes of noise whose lowest levels the policy uses."""


def p_values(values: Values) -> tuple[Values, NDArray[np.bool_]]:
    """Return the one-sided p-value of each row against 0, as in `sequential.estimate`, and which rows were trimmed."""
    pairs = values.shape[1]
    ordered = np.sort(values, axis=1)
    found = _of_mean(ordered, 0)
    trimmed = np.zeros(len(values), dtype=bool)
    if pairs >= POLICY.trim_from:
        distances = np.abs(ordered - np.median(ordered, axis=1)[:, None])
        trimmed = distances.max(axis=1) > POLICY.outlier * sequential.MAD * np.median(distances, axis=1)
        found[trimmed] = _of_mean(ordered[trimmed], int(POLICY.trim * pairs))
    return found, trimmed


def _of_mean(ordered: Values, cut: int) -> Values:
    pairs = ordered.shape[1]
    kept = ordered[:, cut : pairs - cut]
    left = kept.shape[1]
    whole = np.clip(ordered, kept[:, :1], kept[:, -1:])
    scale = np.sqrt(whole.var(axis=1, ddof=1) * (pairs - 1) / (left - 1) / left)
    tails: Values = stdtr(left - 1, -kept.mean(axis=1) / scale)
    return tails


def check(values: Values) -> None:
    """Check that the fast p-values equal those of the judge."""
    for look in POLICY.looks:
        fast, _ = p_values(values[:, :look])
        for row, found in zip(values, fast, strict=True):
            assert math.isclose(sequential.estimate(list(row[:look]), POLICY)[0].chance(0.0), found, rel_tol=1e-6)


def simulated(shape: str) -> tuple[Values, list[float]]:
    """Return the p-values of all paths after each number of pairs, with both signs, and the share of trimmed paths."""
    chance = np.random.default_rng([SEED, sorted(SHAPES).index(shape)])
    check(SHAPES[shape](chance, 200))
    parts, shares = [], np.zeros(len(SEEN))
    for _ in range(PATHS // CHUNK):
        values = SHAPES[shape](chance, CHUNK)
        found = [p_values(values[:, :pairs]) for pairs in SEEN]
        parts.append(np.column_stack([p for p, _ in found]).astype(np.float32))
        shares += [trimmed.mean() * CHUNK / PATHS for _, trimmed in found]
    tails = np.concatenate(parts)
    # The noise is symmetric, so each path with the opposite sign is another path.
    return np.concatenate([tails, 1 - tails]), list(shares)


def levels(tails: Values, rate: float) -> list[float]:
    """Return the highest levels, relative to the rate, at which first alarms at each look keep to their share."""
    found, spent = [], 0.0
    alive = np.ones(len(tails), dtype=bool)
    for look in POLICY.looks:
        here = tails[:, SEEN.index(look)]
        share = (look / POLICY.looks[-1]) ** POLICY.rho
        allowed = round((share - spent) * rate * len(tails))
        level = float(np.partition(here[alive], allowed)[allowed])
        alive &= here >= level
        found.append(level / rate)
        spent = share
    return found


def alarms(tails: Values, shares: Sequence[float], rate: float, looks: Sequence[int]) -> NDArray[np.bool_]:
    """Return which paths raise an alarm at any of these looks, with these levels."""
    columns = [SEEN.index(look) for look in looks]
    found: NDArray[np.bool_] = (tails[:, columns] < np.array(shares[: len(looks)]) * rate).any(axis=1)
    return found


def caution(tails: Values, shares: Sequence[float], rate: float) -> float:
    """Return the highest share of the rest that the last look may spend, wherever the pairs end."""
    found = []
    for end in ENDS:
        early = alarms(tails, shares, rate, [look for look in POLICY.looks if look < end])
        allowed = round(rate * len(tails)) - int(early.sum())
        level = float(np.partition(tails[~early, SEEN.index(end)], allowed)[allowed])
        found.append(level / rate / (1 - POLICY.spent(end)))
    return min(found)


def main() -> None:
    print(f"seed {SEED}, {2 * PATHS:,} paths a shape, rho {POLICY.rho}, trimmed from {POLICY.trim_from} pairs and")
    print(f"{POLICY.outlier} robust standard deviations on")
    known = {shape: simulated(shape) for shape in SHAPES}
    rows: dict[str, list[list[float]]] = {}
    for kind, rates in (("ok", OK_RATES), ("alarm", ALARM_RATES)):
        print(f"{kind:<30} " + "".join(f"{look:>8}" for look in POLICY.looks))
        for shape, (tails, _) in known.items():
            for rate in rates:
                found = levels(tails, rate)
                rows.setdefault(kind, []).extend([found] if shape in TAKEN else [])
                print(f"{shape:<13}{'rate':>9}{rate:>8g} " + "".join(f"{share:>8.4f}" for share in found))
    lowest = {
        kind: [math.floor(1000 * min(x)) / 1000 for x in zip(*found, strict=True)] for kind, found in rows.items()
    }
    for kind, found in lowest.items():
        print(f"lowest {kind:<23} " + "".join(f"{share:>8.3f}" for share in found))
    least = min(
        caution(known[shape][0], lowest[kind], rate)
        for shape in TAKEN
        for kind, rates in (("ok", OK_RATES), ("alarm", ALARM_RATES))
        for rate in rates
    )
    print(f"caution {math.floor(100 * least) / 100:.2f}")
    print("trimmed paths")
    print(f"{'':<30} " + "".join(f"{pairs:>8}" for pairs in SEEN))
    for shape, (_, trimmed) in known.items():
        print(f"{shape:<30} " + "".join(f"{share:>8.3f}" for share in trimmed))
    print("alarms with the lowest levels, as a share of the rate")
    for shape, (tails, _) in known.items():
        for kind, rates in (("ok", OK_RATES), ("alarm", ALARM_RATES)):
            for rate in rates:
                share = alarms(tails, lowest[kind], rate, POLICY.looks).mean() / rate
                print(f"{shape:<13}{kind:<6}rate{rate:>8g} {share:>8.3f}")


if __name__ == "__main__":
    main()
