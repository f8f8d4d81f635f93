"""Evidence that requests were served as planned: none dropped, delayed, cut short or served alone. Pure functions."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from ipexperf.bench.modes._engine import Request, Served
from ipexperf.result import Check

LATE = 0.005
"""An idle engine begins with a request within so many seconds, at least once: other work can only delay it."""


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
