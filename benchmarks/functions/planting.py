"""A conftest's part that slows chosen tests down in one arm: `PLANTED` has their shares, `PLANT=1` turns them on."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SHARES = json.loads(Path(os.environ["PLANTED"]).read_text())
ON = os.environ.get("PLANT") == "1"


def quickest(run: Callable[[], Any]) -> float:
    """The seconds of a call, the best of several blocks."""
    count = 1
    while True:
        times = []
        for _ in range(7):
            begin = time.perf_counter()
            for _ in range(count):
                run()
            times.append((time.perf_counter() - begin) / count)
        if min(times) * count > 0.002:
            return min(times)
        count *= 4


def spin(rounds: int) -> None:
    for _ in range(rounds):
        pass


def slowed(function: Callable[..., Any], share: float, args: Any, kwargs: Any) -> Callable[..., Any]:
    """The function with this share of its time added. Both arms have the frame, so it is no part of the share."""
    rounds = round(share * quickest(lambda: function(*args, **kwargs)) / quickest(lambda: spin(1000)) * 1000)

    def called(*given: Any, **named: Any) -> Any:
        spin(rounds if ON else 0)
        return function(*given, **named)

    return called


@pytest.fixture
def benchmark(benchmark: Any, request: pytest.FixtureRequest) -> Any:
    share = SHARES.get(request.node.nodeid)
    if share is not None:
        whole = benchmark._raw  # noqa: SLF001 - as ipexperf does
        benchmark._raw = lambda function, *args, **kwargs: whole(  # noqa: SLF001 - as above
            slowed(function, share, args, kwargs), *args, **kwargs
        )
    return benchmark
