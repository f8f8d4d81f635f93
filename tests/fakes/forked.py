"""A model that tells what it draws by chance, in a file that may leave a thread behind or end its interpreter.

Loaded beside fake.py: `--perf-load=tests/fakes/fake.py,tests/fakes/forked.py`.
"""

import json
import os
import random
import secrets
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ipexperf.bench import registry

np.random.random()
next(tempfile._get_candidate_names())  # type: ignore[attr-defined]

if "FAKE_THREAD" in os.environ:
    threading.Thread(target=time.sleep, args=(1000,), daemon=True, name="left behind").start()
if "FAKE_END" in os.environ:
    os.write(2, b"the last words\n")
    os._exit(3)


@registry.model("draws", size=1, batch_train=1, batch_infer=1, data="none", needs=(), trained=False)
def draws() -> Callable[[], int]:
    told = {
        "random": random.random(),  # noqa: S311 - what a model may draw by chance
        "numpy": np.random.random(),
        "tempfile": next(tempfile._get_candidate_names()),  # type: ignore[attr-defined]
        "uuid": uuid.uuid4().hex,
        "secrets": secrets.token_hex(),
    }
    with Path(os.environ["FAKE_DRAWS"]).open("a") as file:
        file.write(json.dumps(told) + "\n")
    return lambda: 0
