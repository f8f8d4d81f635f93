"""A conftest's part that slows chosen tests down in one arm: `PLANTED` has their shares, `PLANT=1` turns them on."""

from __future__ import annotations

import json
import os
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


@pytest.fixture
def benchmark(benchmark: Any, request: pytest.FixtureRequest) -> Any:
    share = SHARES.get(request.node.nodeid)
    if share is not None:
        whole = benchmark._raw  # noqa: SLF001 - as ipexperf does
        benchmark._raw = lambda function, *args, **kwargs: whole(  # noqa: SLF001 - as above
            slowed(function, share), *args, **kwargs
        )
    return benchmark
