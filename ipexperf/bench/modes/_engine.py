"""Serving with continuous batching: requests join and leave between any two passes through the network.

Before each pass the engine reads the prompts of requests that have arrived, as long as there are free rows in the
key-value cache. Then all running requests get their next token in one pass. This file needs no torch: a `Network` reads
and decodes. Behind the engine is the evidence that requests were served as planned: none dropped, delayed, cut short or
served alone.
"""

from __future__ import annotations

import itertools
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ipexperf.bench.clocks import perf_counter
from ipexperf.result import Check

SHORTEST, LONGEST = 8, 2
"""A prompt has from an eighth to half of the case's size in tokens, and so has the text that is generated behind it."""
FEWEST = 2
"""Tokens that every request generates at least: the time between tokens needs two."""
LATE = 0.005
"""An idle engine begins with a request within so many seconds, at least once: other work can only delay it."""


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


def arrivals(replays: Sequence[Sequence[Served]], plan: Sequence[Request], rate: float) -> Check:
    """Check that each request came at its planned moment, and that its latency counts from that moment.

    A generator that waits for answers, or drops requests while the engine is busy, hides the waiting of users.
    """
    planned = {request.text: request.arrival for request in plan}
    counted = sum(
        planned.get(served.request.text) == served.request.arrival == served.arrived <= served.admitted
        for replay in replays
        for served in replay
    )
    delays = [delay for replay in replays for delay in idle_delays(replay)]
    delay = min(delays, default=0.0)
    total = len(plan) * len(replays)
    text = f"{counted} of {total} requests counted from their planned moments, {rate:g} a second"
    text += f"; an idle engine began after {1000 * delay:.2f} ms at best" if delays else ""
    same = all(sorted(served.request.text for served in replay) == sorted(planned) for replay in replays)
    ok = same and 0 < counted == total and delay <= LATE
    return Check("arrivals", ok, text, f"all, and an idle engine within {1000 * LATE:g} ms at best")


def idle_delays(replay: Iterable[Served]) -> list[float]:
    """Return how long each request waited that came while no other one was there."""
    delays, busy = [], 0.0
    for served in sorted(replay, key=lambda served: served.arrived):
        if served.arrived >= busy:
            delays.append(served.admitted - served.arrived)
        busy = max(busy, served.moments[-1])
    return delays


def generated(replays: Sequence[Sequence[Served]], plan: Sequence[Request]) -> Check:
    """Check that every request got as many tokens as it wants, one after the other."""
    tokens = {request.text: request.tokens for request in plan}
    total, wanted = (
        sum(len(served.moments) for replay in replays for served in replay),
        sum(tokens.values()) * len(replays),
    )
    whole = all(
        len(served.moments) == tokens.get(served.request.text)
        and all(before < after for before, after in itertools.pairwise([served.admitted, *served.moments]))
        for replay in replays
        for served in replay
    )
    return Check("generated", whole and 0 < total == wanted, f"{total:,} tokens", f"{wanted:,}, each after the other")


def load_noted(rate: float, wanted: float, capacity: float) -> list[str]:
    """Return notes on the load, given the tokens a second that are wanted and that the software sustains."""
    if not capacity:
        return []
    load = f"{rate:g} requests a second wanted {wanted:.4g} tokens a second; with all at once it reached {capacity:.4g}"
    if wanted <= capacity:
        return [load]
    return [load, "could not sustain its load: requests wait longer the longer they come, so choose a lower rate"]


def passes(plan: Sequence[Request], rows: int) -> int:
    """Return in how many passes all requests get their tokens, prompts aside, if they come at once and share passes."""
    waiting, running, count = [request.tokens - 1 for request in plan], list[int](), 0
    while waiting or running:
        while waiting and len(running) < rows:
            running.append(waiting.pop(0))
        running = [left - 1 for left in running if left > 1]
        count += 1
    return count


def tokens_served(tokens: Sequence[Sequence[int]], plan: Sequence[Request]) -> Check:
    """Check that each linear layer read every prompt and every generated token once, given the tokens of its calls.

    The last token of a request is not read. Without a cache the prompts would be read again for every token.
    """
    wanted = sum(request.prompt + request.tokens - 1 for request in plan)
    numbers = sorted({sum(calls) for calls in tokens})
    text = f"{' or '.join(map(str, numbers)) or 'no'} tokens in each of {len(tokens)} linear layers"
    return Check("tokens_served", numbers == [wanted], text, f"{wanted} in each")


def batched(tokens: Sequence[Sequence[int]], plan: Sequence[Request], rows: int) -> Check:
    """Check that requests that come at once decode together, given the tokens of each linear layer's calls."""
    together = passes(plan, rows)
    wanted = len(plan) + together
    numbers = sorted({len(calls) for calls in tokens})
    text = f"{' or '.join(map(str, numbers)) or 'no'} passes"
    alone = len(plan) + sum(request.tokens - 1 for request in plan)
    expected = f"{wanted}: {len(plan)} prompts and {together} with up to {rows} requests (one by one: {alone})"
    return Check("batched", numbers == [wanted], text, expected)
