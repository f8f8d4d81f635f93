"""Steps that become slower and slower: a note if all launches of a case have them, and hardly ever by chance."""

import math
import random

import pytest

from ipexperf.judge import growth
from ipexperf.result import Launch, Sample


def launch(walls: list[float], index: int = 0) -> Launch:
    return Launch(index, "ok", samples=tuple(Sample(wall, wall, 0.0) for wall in walls))


def growing(times: float, count: int = 20, noise: float = 0.03, seed: int = 1) -> list[float]:
    """Step times that grow by so many times from the first to the last, with independent noise."""
    chance = random.Random(seed)  # noqa: S311 - noise, no secret
    return [times ** (n / (count - 1)) * math.exp(chance.gauss(0, noise)) for n in range(count)]


def drifting(memory: float, noise: float, chance: random.Random, count: int = 20) -> list[float]:
    """Step times without a trend, whose noise remembers this share of itself. 1 is a random walk."""
    log, logs = 0.0 if memory == 1 else chance.gauss(0, noise / math.sqrt(1 - memory**2)), []
    for _ in range(count):
        log = memory * log + chance.gauss(0, noise)
        logs.append(math.exp(log))
    return logs


def notes(*launches: list[float]) -> list[tuple[str, ...]]:
    return [one.notes for one in growth.noted([launch(walls, at) for at, walls in enumerate(launches)])]


def test_steps_that_grow_slower_in_every_launch_have_a_note() -> None:
    """Each launch says by how much, and says it once if it is asked again."""
    found = growth.noted([launch(growing(1.5, seed=seed), seed) for seed in range(3)])
    assert all(len(one.notes) == 1 for one in found)
    assert all(one.notes[0].startswith("had slower and slower steps, 1.") for one in found)
    assert growth.noted(found) == found


def test_no_launch_has_a_note_unless_all_slow_down() -> None:
    """A machine that becomes slower does so during one launch. One that was contended does not count."""
    slower, even = growing(1.5), growing(1.0)
    assert notes(slower, slower, even) == [(), (), ()]
    assert notes(slower, slower) == [(), ()]
    contended = Launch(3, "contended", samples=launch(even).samples)
    *noted, last = growth.noted([launch(slower, at) for at in range(3)] + [contended])
    assert all(one.notes for one in noted)
    assert last.notes == ()


@pytest.mark.parametrize("walls", [[0.01] * 40, growing(1.5)[::-1], growing(1.5, count=7), [0.01]])
def test_even_quicker_and_few_steps_do_not_slow_down(walls: list[float]) -> None:
    assert growth.slowing(launch(walls)) is None


@pytest.mark.parametrize(("memory", "noise", "most"), [(0.0, 0.03, 0), (0.9, 0.02, 2), (0.99, 0.01, 2), (1.0, 0.01, 2)])
def test_noise_hardly_ever_has_a_note(memory: float, noise: float, most: int) -> None:
    """Of 3,000 cases of three launches, with noise that is independent, remembers itself, or wanders."""
    chance = random.Random(7)  # noqa: S311 - noise, no secret
    cases = ([launch(drifting(memory, noise, chance), at) for at in range(3)] for _ in range(3000))
    assert sum(bool(growth.noted(case)[0].notes) for case in cases) <= most
