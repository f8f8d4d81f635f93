"""Simulate searches for culprits, and print how many questions they take and how often they are right.

PYTHONPATH=. python benchmarks/bisection.py
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from ipexperf.judge.bisection import Answer, Candidate, Change, OrderedSearch, Search, SearchResult

CHANGES = tuple(Change("package", f"p{number:02}", "1", "2") for number in range(30))
ENTRIES = tuple(Change("package", "p", str(number - 1), str(number)) for number in range(1, 1000))


@dataclass(frozen=True)
class Scenario:
    """Sets of changes that are enough to be slow, and how candidates are answered.

    `pinned` groups are known to belong together, `hidden` ones are not: candidates that separate them are skipped.
    """

    name: str
    sizes: tuple[int, ...] = (1,)
    pinned: tuple[int, ...] = ()
    hidden: tuple[int, ...] = ()
    unsure: float = 0.0
    wrong: float = 0.0


SCENARIOS = [
    Scenario("one culprit"),
    Scenario("a pair", sizes=(2,)),
    Scenario("two independent", sizes=(1, 1)),
    Scenario("one culprit, 3 pinned", pinned=(3,)),
    Scenario("one culprit, 15 and 5 pinned", pinned=(15, 5)),
    Scenario("one culprit, 2 start only together", hidden=(2,)),
    Scenario("one culprit, 3 and 2 start only together", hidden=(3, 2)),
    Scenario("a pair, 3 start only together", sizes=(2,), hidden=(3,)),
    Scenario("one culprit, 5 % unsure", unsure=0.05),
    Scenario("a pair, 5 % unsure", sizes=(2,), unsure=0.05),
    Scenario("two independent, 5 % unsure", sizes=(1, 1), unsure=0.05),
    Scenario("one culprit, 0.5 % wrong", wrong=0.005),
    Scenario("a pair, 0.5 % wrong", sizes=(2,), wrong=0.005),
    Scenario("two independent, 0.5 % wrong", sizes=(1, 1), wrong=0.005),
]


def groups(chance: random.Random, sizes: tuple[int, ...]) -> list[Candidate]:
    """Disjoint random sets of changes."""
    pool = chance.sample(CHANGES, sum(sizes))
    return [frozenset(pool.pop() for _ in range(size)) for size in sizes]


def whole(candidate: Candidate, sets: list[Candidate]) -> bool:
    return all(one <= candidate or not one & candidate for one in sets)


def disturbed(answer: Answer, chance: random.Random, unsure: float, wrong: float) -> Answer:
    draw = chance.random()
    if answer is Answer.SKIP or draw >= unsure + wrong:
        return answer
    if draw < unsure:
        return Answer.UNSURE
    return Answer.GOOD if answer is Answer.BAD else Answer.BAD


def verdict(finding: SearchResult, culprits: list[Candidate], inseparable: list[Candidate]) -> str:
    """What the finding is worth.

    A culprit that cannot be separated from others is to be named with them: the set is right if no smaller one could
    be measured.
    """
    if finding.outcome in ("alike", "cannot tell"):
        return finding.outcome
    expected = {culprit.union(*(one for one in inseparable if one & culprit)) for culprit in culprits}
    if set(finding.culprits) == expected:
        return "right"
    if finding.outcome != "inseparable":
        return "WRONG"
    union = frozenset().union(*finding.culprits)
    return "set too large" if all(culprit <= union for culprit in culprits) else "WRONG"


def simulate(scenario: Scenario, seed: int) -> tuple[int, str]:
    """The number of questions of one search, and what its finding is worth."""
    chance = random.Random(f"{scenario.name} {seed}")  # noqa: S311 - a simulation, no secret
    culprits = groups(chance, scenario.sizes)
    pinned, hidden = groups(chance, scenario.pinned), groups(chance, scenario.hidden)
    ties = {change: list(one) for one in pinned for change in one}
    course = Search(CHANGES, lambda candidate: whole(candidate, pinned), ties).run()
    try:
        candidate = next(course)
        while True:
            bad = any(culprit <= candidate for culprit in culprits)
            answer = Answer.BAD if bad else Answer.GOOD
            if not whole(candidate, hidden):
                answer = Answer.SKIP
            candidate = course.send(disturbed(answer, chance, scenario.unsure, scenario.wrong))
    except StopIteration as stop:
        finding: SearchResult = stop.value
    return finding.questions, verdict(finding, culprits, pinned + hidden)


def simulate_ordered(seed: int, wrong: float) -> tuple[int, str]:
    """A search among 1000 entries with groups of entries that cannot be measured."""
    chance = random.Random(seed)  # noqa: S311 - a simulation, no secret
    first = chance.randrange(1, 1000)
    broken = {entry for start in chance.sample(range(1, 999), 20) for entry in range(start, min(start + 5, 999))}
    course = OrderedSearch(ENTRIES).run()
    try:
        index = len(next(course))
        while True:
            answer = Answer.SKIP if index in broken else Answer.BAD if index >= first else Answer.GOOD
            index = len(course.send(disturbed(answer, chance, 0, wrong)))
    except StopIteration as stop:
        finding: SearchResult = stop.value
    if finding.outcome in ("alike", "cannot tell"):
        return finding.questions, finding.outcome
    return finding.questions, "right" if ENTRIES[first - 1] in finding.culprits[0] else "WRONG"


def print_row(name: str, simulated: Callable[[int], tuple[int, str]], searches: int) -> None:
    results = [simulated(seed) for seed in range(searches)]
    questions = [count for count, _ in results]
    worth = Counter(text for _, text in results)
    numbers = [statistics.median(questions), max(questions)]
    columns = ["right", "set too large", "cannot tell", "alike", "WRONG"]
    cells = [name, *(f"{number:g}" for number in numbers), *(str(worth[column]) for column in columns)]
    print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--searches", type=int, default=1000, help="for each row")
    searches = parser.parse_args().searches
    print("| among 30 changes | questions, median | most | right | set too large | cannot tell | alike | WRONG |")
    print("|---|---|---|---|---|---|---|---|")
    for scenario in SCENARIOS:
        print_row(scenario.name, lambda seed, scenario=scenario: simulate(scenario, seed), searches)
    for wrong in (0.0, 0.005):
        name = f"1000 entries in order, {wrong:.1%} wrong"
        print_row(name, lambda seed, wrong=wrong: simulate_ordered(seed, wrong), searches)


if __name__ == "__main__":
    main()
