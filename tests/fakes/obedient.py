"""A model whose process does what a file says from the moment that it is there. Loaded after fake.py."""

import os
import threading
import time
from pathlib import Path
from typing import Any

from ipexperf.bench import registry
from ipexperf.errors import UsageError

GROWN = 2**29
HELD: list[bytes] = []


def _told(sign: Path) -> str:
    return sign.read_text() if sign.exists() else ""


def _grow(sign: Path) -> None:
    """Takes memory as soon as it is told to: also while nobody asks the worker for anything."""
    while "grow" not in _told(sign):
        time.sleep(0.05)
    HELD.append(b"x" * GROWN)


@registry.model("obedient", size=1, batch_train=1, batch_infer=1, data="none", needs=(), trained=False)
def obedient() -> Any:
    sign = Path(os.environ["FAKE_SIGN"])
    threading.Thread(target=_grow, args=(sign,), daemon=True).start()

    def step() -> int:
        told = _told(sign)
        if told == "raise":
            raise UsageError("it had enough")
        if told.startswith("hang"):
            time.sleep(1000)
        return sum(number * number for number in range(2_000))

    return step
