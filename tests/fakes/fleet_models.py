"""A model for hosts of a fleet, which waits. Loaded behind `fake.py`."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from ipexperf.bench import registry

PATIENCE = 60.0


@registry.model("patient", size=1, batch_train=1, batch_infer=1, version=1, data="none", needs=(), trained=False)
def patient() -> Callable[[], int]:
    """Says who measures it, and waits while there is a file `wait` in the host's folder."""
    Path("mark").write_text(str(os.getppid()))
    until = time.monotonic() + PATIENCE
    while Path("wait").exists() and time.monotonic() < until:
        time.sleep(0.05)
    return lambda: sum(number * number for number in range(2_000))
