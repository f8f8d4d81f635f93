"""A conftest's part that slows chosen tests down in one arm: `PLANTED` has their shares, `PLANT=1` turns them on."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SHARES = json.loads(Path(os.environ["PLANTED"]).read_text())
ON = os.environ.get("PLANT") == "1"


def slowed(function: Callable[..., Any], share: float) -> Callable[..., Any]:
    """The function, called twice every so often: a block of many calls takes this share longer, whatever a call takes.

    Both arms have the frame, so it is no part of the share.
    """
    every, count = round(1 / share), 0

    def called(*given: Any, **named: Any) -> Any:
        nonlocal count
        count += 1
        if ON and count % every == 0:
            function(*given, **named)
        return function(*given, **named)

    return called


def lengthened(function: Callable[..., Any], share: float) -> Callable[..., Any]:
    """The function, and then this share of its time again: for calls that are timed one by one, as a `setup` asks."""

    def called(*given: Any, **named: Any) -> Any:
        begin = time.perf_counter()
        result = function(*given, **named)
        now = time.perf_counter()
        until = now + share * (now - begin) * ON
        while time.perf_counter() < until:
            pass
        return result

    return called


@pytest.fixture
def benchmark(benchmark: Any, request: pytest.FixtureRequest) -> Any:
    share = SHARES.get(request.node.nodeid)
    if share is not None:
        for name, slower in (("_raw", slowed), ("_raw_pedantic", lengthened)):
            setattr(benchmark, name, planted(getattr(benchmark, name), slower, share))  # as ipexperf does
    return benchmark


def planted(measure: Callable[..., Any], slower: Callable[..., Any], share: float) -> Callable[..., Any]:
    return lambda function, *args, **kwargs: measure(slower(function, share), *args, **kwargs)
