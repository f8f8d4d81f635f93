"""What a fleet costs a measured host: two workers of one case that take turns, one started through Ray, one without it.

Ray's processes of a host run beside both. The median of neighbouring turns of a pair of fresh processes is one ratio,
and the interval is over pairs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ipexperf.judge import ratios
from ipexperf.tools.fleet import cluster, membership
from ipexperf.tools.fleet.agent import Agent

ROOT = Path(__file__).parents[2]
HALF = Path(__file__).with_name("half.py")
ANSWER_SECONDS = 600.0


def a_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def fleet(*words: str) -> str:
    """Run `ipexperf fleet`."""
    command = [sys.executable, "-m", "ipexperf.cli", "fleet", *words]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if ended.returncode:
        raise SystemExit(ended.stderr)
    return ended.stdout


class Starter(Agent):
    """Starts a half as an agent starts what measures: with the same variables and priority, and lines over pipes."""

    def half(self, words: list[str]) -> None:
        self._launch([sys.executable, "-u", str(HALF), *words], self._surroundings())

    def ask(self, requests: list[str]) -> str:
        """Pass the requests on, and return the next line."""
        self.send(requests)
        return next(iter(self.receive(ANSWER_SECONDS)), "nothing")


class Here:
    """A half that this process starts."""

    def __init__(self, words: list[str]) -> None:
        self._starter = Starter(str(ROOT), dict(os.environ))
        self._starter.half(words)

    def ask(self, requests: list[str]) -> str:
        return self._starter.ask(requests)

    def close(self) -> None:
        self._starter.close()


class ThroughRay:
    """A half that an actor of Ray starts, as the agent of a run does."""

    def __init__(self, words: list[str]) -> None:
        self._ray = cluster.ray()
        options = {"num_cpus": 0, "resources": {cluster.RESOURCE: 1}, "max_restarts": 0, "max_task_retries": 0}
        self._actor: Any = self._ray.remote(Starter).options(**options, max_concurrency=4).remote(str(ROOT))
        self._ray.get(self._actor.half.remote(words))

    def ask(self, requests: list[str]) -> str:
        return str(self._ray.get(self._actor.ask.remote(requests)))

    def close(self) -> None:
        self._ray.get(self._actor.close.remote())
        self._ray.kill(self._actor)


def answer(half: Here | ThroughRay, requests: list[str], name: str) -> Any:
    """The value of this name in a half's next line."""
    line = half.ask(requests)
    try:
        return json.loads(line)[name]
    except (ValueError, KeyError):
        raise SystemExit(f"{type(half).__name__}: expected {name}, got {line}") from None


def pair(words: list[str], turns: int, chance: random.Random) -> float:
    """The log ratio of one pair of fresh processes, through Ray over here."""
    kinds: list[type[Here | ThroughRay]] = chance.sample([Here, ThroughRay], 2)
    with contextlib.ExitStack() as stack:
        halves: dict[type[Here | ThroughRay], Here | ThroughRay] = {}
        for kind in kinds:  # one builds after the other
            halves[kind] = stack.enter_context(contextlib.closing(kind(words)))
            answer(halves[kind], [], "ready")
        times: dict[type[Here | ThroughRay], list[float]] = {kind: [] for kind in kinds}
        for turn in range(turns):
            for kind in kinds if turn % 2 else kinds[::-1]:
                times[kind].append(answer(halves[kind], ["go"], "seconds"))
    return ratios.neighbour_ratio(times[Here], times[ThroughRay])


@contextlib.contextmanager
def a_host() -> Iterator[int]:
    """A head that is a host, on this machine. Yields its port."""
    port = a_port()
    fleet("up", f"--port={port}", "--name=here")
    try:
        yield port
    finally:
        fleet("down")


def idle(seconds: float) -> dict[str, float]:
    """What Ray's processes of a host do while nothing is asked of them."""
    with a_host():
        time.sleep(30)
        before = used(membership.members())
        time.sleep(seconds)
        pids = membership.members()
        cpu = used(pids) - before
        memory = sum(resident(pid) for pid in pids)
    return {"processes": len(pids), "share_of_a_core": round(cpu / seconds, 4), "resident_mib": round(memory / 2**20)}


def used(pids: list[int]) -> float:
    """The CPU seconds that these processes have used."""
    fields = (Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split() for pid in pids)
    return sum(int(one[11]) + int(one[12]) for one in fields) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> int:
    """The memory that is a process's own."""
    pages = Path(f"/proc/{pid}/statm").read_text().split()
    return (int(pages[1]) - int(pages[2])) * os.sysconf("SC_PAGE_SIZE")


def say(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=30, help="pairs of fresh processes (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=40, help="turns of each process (default: %(default)s)")
    parser.add_argument("--samples", type=int, default=4, help="samples of a turn (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the order in which the two of a pair start")
    parser.add_argument("--idle", type=float, metavar="SECONDS", help="measure Ray's idle processes instead")
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--dtype", default="fp32")
    parser.add_argument("--mode", default="infer_jit")
    parser.add_argument("--stack", default="stock")
    arguments = parser.parse_args()
    if arguments.idle:
        say(idle(arguments.idle))
        return
    words = [f"--samples={arguments.samples}", "--perf-lease=off"]  # the two share the CPU, in turns
    words += [f"--{axis}={getattr(arguments, axis)}" for axis in ("model", "dtype", "mode", "stack")]
    chance = random.Random(arguments.seed)  # noqa: S311 - an order, no secret
    logs: list[float] = []
    with a_host() as port:
        cluster.RayCluster(f"127.0.0.1:{port}")
        for number in range(arguments.pairs):
            logs.append(pair(words, arguments.turns, chance))
            found = ratios.combine(logs)
            spread = statistics.stdev(logs) if number else None
            say({"pairs": number + 1, "ratio": found.ratio, "lo": found.lo, "hi": found.hi, "log_sd": spread})


if __name__ == "__main__":
    main()
