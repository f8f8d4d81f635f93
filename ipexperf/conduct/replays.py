"""The figures of requests that came at planned moments: tokens a second, and how long each waited for its tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ipexperf.conduct import instances
from ipexperf.conduct.launch import percentiles
from ipexperf.result import Launch

WAITS = ("first_token", "between_tokens")
"""The seconds that a reply has of each request: from its arrival to its first token, and from one token to the next."""


def recorded(launch: Launch, replies: Sequence[Mapping[str, Any]]) -> Launch:
    """The launch with the figures of all requests of these replays."""
    metrics = {"token_rate": sum(reply["tokens"] for reply in replies) / sum(reply["seconds"] for reply in replies)}
    for name in WAITS:
        seconds = [value for reply in replies for value in reply[name]]
        metrics |= {f"{name}_{share}": value for share, value in percentiles(seconds, 1).items()}
    return replace(
        launch,
        samples=tuple(instances.thinned(launch.samples)),
        metrics={**launch.metrics, **metrics},
        notes=(*launch.notes, *instances.requests_noted(len(launch.samples))),
    )
