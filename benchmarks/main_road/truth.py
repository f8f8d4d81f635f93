"""How much slower an edited project is, timed outside ipexperf: pairs of processes take turns with plain loops."""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from ipexperf.bench.machine import heap

PAIRS = 3
"""Two processes of the same code may differ by ten per cent, by where their memory lies."""
CLEAR = 1.2
"""A ratio that needs no second pair to be a change of 5 %."""
TURNS = 4
SECONDS = 0.5
"""Length of a turn. A stall of every 12th step happens in each."""


def serve(mode: str) -> None:
    """Answer each line with the mean seconds of a step over one turn."""
    sys.path[:0] = [str(Path.cwd()), str(Path.cwd() / "lib")]
    import torch
    from net import model

    torch.manual_seed(0)
    network, (x, y) = model.network(), model.training_batch()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    network.train(mode == "train")
    # As ipexperf lays out images.
    network, x = network.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)

    def step() -> None:
        if mode == "train":
            optimizer.zero_grad()
            model.training_loss(network(x), y).backward()
            optimizer.step()
        else:
            with torch.no_grad():
                network(x)

    for _ in range(10):
        step()
    for _ in sys.stdin:
        begin, count = time.perf_counter(), 0
        while time.perf_counter() < begin + SECONDS or count % 12:
            step()
            count += 1
        print((time.perf_counter() - begin) / count, flush=True)


def ratio(before: Path, after: Path, mode: str) -> float:
    """The mean step of the project in `after` over that of the one in `before`: the median of some pairs."""
    ratios = [_of_pair(before, after, mode)]
    while ratios[0] < CLEAR and len(ratios) < PAIRS:
        ratios.append(_of_pair(before, after, mode))
    return statistics.median(ratios)


def _of_pair(before: Path, after: Path, mode: str) -> float:
    command = [sys.executable, str(Path(__file__)), mode]
    # The threads of the one that waits must not spin on the cores of the other. Page faults would be most of the noise.
    quiet = {**os.environ, **heap.KEEP, "OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "30000", "KMP_BLOCKTIME": "1"}
    sides = [
        subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=quiet)
        for folder in (before, after)
    ]

    def turn(side: subprocess.Popen[str]) -> float:
        assert side.stdin is not None
        assert side.stdout is not None
        side.stdin.write("\n")
        side.stdin.flush()
        return float(side.stdout.readline())

    ratios = []
    for number in range(TURNS):
        first, second = sides if number % 2 else sides[::-1]
        times = {first.pid: turn(first), second.pid: turn(second)}
        ratios.append(times[sides[1].pid] / times[sides[0].pid])
    for side in sides:
        side.communicate()
    return statistics.median(ratios)


if __name__ == "__main__":
    serve(sys.argv[1])
