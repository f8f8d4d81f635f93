"""The figures of replays: tokens a second of all requests together, and the waiting of each."""

from __future__ import annotations

from typing import Any

import pytest

from ipexperf.conduct import replays
from ipexperf.result import METRICS, Launch, Sample


def reply(requests: int, seconds: float = 2.0) -> dict[str, Any]:
    """A replay in which request k waits k seconds for its first token, and k / 10 for each further one."""
    waits = [float(number) for number in range(1, requests + 1)]
    return {
        "samples": [[wait, 0.0, 0.0] for wait in waits],
        "first_token": waits,
        "between_tokens": [wait / 10 for wait in waits],
        "tokens": 10 * requests,
        "seconds": seconds,
    }


def launch(requests: int) -> Launch:
    return Launch(0, "ok", samples=(Sample(0.1, 0.0, 0.0),) * requests, metrics={"step_time": 0.1}, notes=("before",))


def test_a_launch_has_the_figures_of_all_its_replays() -> None:
    recorded = replays.recorded(launch(20), [reply(10), reply(10, seconds=3.0)])
    assert recorded.metrics["token_rate"] == 200 / 5.0
    assert recorded.metrics["first_token_p50"] == 5.0
    assert recorded.metrics["first_token_p90"] == 9.0
    assert recorded.metrics["between_tokens_p90"] == pytest.approx(0.9)
    assert recorded.metrics["step_time"] == 0.1
    assert set(recorded.metrics) <= set(METRICS)
