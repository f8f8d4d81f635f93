"""A history of nights in which each case did something else: for the tests of what people see of change points."""

import math
import random
from datetime import datetime, timedelta, timezone
from pathlib import Path

from ipexperf.case import NetworkCase
from ipexperf.history import History
from ipexperf.result import Launch, Measurement
from ipexperf.verdict import Verdict

NIGHTS = 100
MACHINE = "xeon-8480-2s"
FIRST = datetime(2026, 1, 1, 2, tzinfo=timezone.utc)
SLOWER, OLDER, BEGAN, ENDED, FASTER, WRONG = 90, 40, 50, 70, 30, 80
"""The nights with which levels begin."""
MODES = (9, 16, 22, 31, 38, 44, 52, 60, 66, 75, 81, 90)
"""The nights with which a case changes its mode."""


def level(model: str, night: int) -> float:
    """The step time of a case, without noise."""
    if model == "drifts":
        return 0.01 * math.exp(0.001 * night)
    if model == "switches":
        return 0.01 * (1 + 0.08 * (sum(night >= begin for begin in MODES) % 2))
    factors = {
        "slower": 1 + 0.1 * (night >= SLOWER),
        "older": 1 + 0.5 * (night >= OLDER),
        "mended": 1 + 0.2 * (BEGAN <= night < ENDED),
        "faster": 1 - 0.2 * (night >= FASTER),
    }
    return 0.01 * factors.get(model, 1.0)


def accuracy(model: str, night: int) -> float:
    return 0.0 if model == "wrong" and night >= WRONG else 0.9


def case(model: str) -> NetworkCase:
    return NetworkCase(model=model, device="cpu", dtype="bf16", mode="infer", stack="ipex", batch=16, size=224)


def started(night: int) -> str:
    return (FIRST + timedelta(days=night)).strftime("%Y-%m-%dT%H:%M:%SZ")


def day(night: int) -> str:
    return started(night)[:10]


def fill(path: Path, *models: str, nights: int = NIGHTS) -> Path:
    """Write a run a night with one case of each of these models."""
    # A noise of its own for each model: its numbers do not depend on which others there are.
    noise = {model: random.Random(model) for model in models}  # noqa: S311 - a simulation, no secret
    with History.open(path) as history:
        for night in range(nights):
            environment = {
                "machine_key": MACHINE,
                "software": {"torch": "2.8.0+cpu"},
                "git": {"commit": f"{night:08d}"},
            }
            uid = history.start_run(environment, {"started_at": started(night)})
            for model in models:
                step = level(model, night) * (1 + noise[model].gauss(0, 0.005))
                launch = Launch(0, "ok", metrics={"step_time": step, "accuracy": accuracy(model, night)})
                measured = Measurement(case(model), (launch,), environment, started(night), started(night))
                history.record(uid, measured, Verdict("ok", "within the noise"))
            history.finish_run(uid, "finished")
    return path
