"""Serving with continuous batching: requests join and leave between any two passes through the network.

Before each pass the engine reads the prompts of requests that have arrived, as long as there are free rows in the
key-value cache. Then all running requests get their next token in one pass. This file needs no torch: a `Network` reads
and decodes.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ipexperf.bench.clocks import perf_counter

SHORTEST, LONGEST = 8, 2
"""A prompt has from an eighth to half of the case's size in tokens, and so has the text that is generated behind it."""
FEWEST = 2
"""Tokens that every request generates at least: the time between tokens needs two."""


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt of a text, and how many tokens to generate behind it."""

    text: int
    """The number of the request, and so of its text."""
    arrival: float
    """Seconds after the beginning of a replay at which it arrives."""
    prompt: int
    tokens: int


def planned(count: int, rate: float, size: int, seed: int) -> list[Request]:
    """Return as many requests, which arrive as a Poisson process of this rate. Equal seeds give equal requests.

    Given that exactly `count` requests of such a process arrive in `count / rate` seconds, their moments are random
    numbers in order. So the rate is the stated one, not one that the seed happened to draw.
    """
    # Only `random()` gives the same numbers in every version of Python.
    draw = random.Random(seed).random  # noqa: S311 - a plan, no secret
    arrivals = sorted(draw() * count / rate for _ in range(count))
    least, most = max(FEWEST, size // SHORTEST), size // LONGEST

    def length() -> int:
        return least + int(draw() * (most - least + 1))

    return [Request(text, arrival, length(), length()) for text, arrival in enumerate(arrivals)]


@dataclass(slots=True)
class Served:
    """A request with the moments at which it was served, in seconds after the beginning of the replay."""

    request: Request
    arrived: float
    """The moment from which its latency counts."""
    admitted: float
    """When the engine began to read its prompt."""
    moments: list[float] = field(default_factory=list)
    """When each of its tokens was known."""

    @property
    def done(self) -> bool:
        return len(self.moments) >= self.request.tokens

    @property
    def cached(self) -> int:
        """Tokens in the cache: the prompt, and all generated ones but the last."""
        return self.request.prompt + len(self.moments) - 1

    @property
    def first_token(self) -> float:
        """Seconds from its arrival to its first token."""
        return self.moments[0] - self.arrived

    @property
    def between_tokens(self) -> float:
        """Mean seconds between two of its tokens."""
        return (self.moments[-1] - self.moments[0]) / (len(self.moments) - 1)

    @property
    def per_token(self) -> float:
        """Seconds from its arrival to its last token, for each token."""
        return (self.moments[-1] - self.arrived) / len(self.moments)


class Network(Protocol):
    """A network that reads and decodes for an engine, with a row of a key-value cache for each running request."""

    def read(self, request: Request, row: int) -> None:
        """Read a prompt into a row, and generate its first token. Return when it is known."""

    def decode(self, running: Sequence[Served]) -> None:
        """Generate the next token of each of these requests, which are in the first rows, in this order."""

    def move(self, source: int, target: int, tokens: int) -> None:
        """Copy cached tokens from one row to another."""


def serve(
    requests: Sequence[Request],
    rows: int,
    network: Network,
    clock: Callable[[], float] = perf_counter,
    sleep: Callable[[float], None] = time.sleep,
) -> list[Served]:
    """Serve requests, each from its planned arrival on, and return them in the order in which they ended.

    A latency counts from the planned moment, even if the engine was busy then and looked at the request later.
    """
    begin = clock()
    waiting = deque(requests)
    running: list[Served] = []
    ended: list[Served] = []
    while waiting or running:
        while not running and (idle := waiting[0].arrival - (clock() - begin)) > 0:
            sleep(idle)
        while waiting and len(running) < rows and waiting[0].arrival <= (now := clock() - begin):
            request = waiting.popleft()
            network.read(request, len(running))
            running.append(Served(request, request.arrival, now, [clock() - begin]))
        network.decode(running)
        now = clock() - begin
        for served in running:
            served.moments.append(now)
        ended += _leave(running, network)
    return ended


def _leave(running: list[Served], network: Network) -> list[Served]:
    """Remove the requests that are done. The last one takes the row of each, so that the first rows are in use."""
    ended = []
    for row in reversed(range(len(running))):
        if running[row].done:
            ended.append(running[row])
            last = running.pop()
            if row < len(running):
                network.move(len(running), row, last.cached)
                running[row] = last
    return ended
