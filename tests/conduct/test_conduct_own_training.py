"""A stranger's network that says what it learns, in real workers: each way to train it, on both stacks."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.util
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import conduct_play
import pytest

from ipexperf.bench import registry
from ipexperf.bench.api import Settings
from ipexperf.bench.machine import facts
from ipexperf.bench.networks import own
from ipexperf.case import Case
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.server import Server, ServerSpec
from ipexperf.plan import start

pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.torch]

NETS = Path(__file__).parents[1] / "fakes" / "mytraining.py"
IPEX = pytest.mark.skipif(importlib.util.find_spec("intel_extension_for_pytorch") is None, reason="needs IPEX")
COMPILER = pytest.mark.skipif(not facts.gather().compiler, reason="needs a C++ compiler")
CORES = pytest.mark.skipif(len(os.sched_getaffinity(0)) < len(("rank", "rank")), reason="needs a core for each rank")


@pytest.fixture(scope="module")
def begin() -> Iterator[Callable[[Case, Conditions], Conditions]]:
    """Lets a case start from the server of its stack, which imports once, unless its mode must start fresh."""
    with contextlib.ExitStack() as running:

        @functools.cache
        def server(stack: str) -> Server:
            found = running.enter_context(contextlib.closing(Server(ServerSpec(stack, (), ("torch",), timeout=500))))
            found.ready()
            return found

        def begin(case: Case, conditions: Conditions) -> Conditions:
            if start.why_fresh(case, placed=False):
                return conditions
            settings = dataclasses.replace(conditions.settings, forked=True)
            return dataclasses.replace(conditions, settings=settings, server=server(case.stack))

        yield begin


@pytest.mark.parametrize(
    ("mode", "stack", "name"),
    [
        pytest.param("train", "ipex", "learner", marks=IPEX),
        pytest.param("train", "ipex", "frozen", marks=IPEX),
        pytest.param("train_compile", "stock", "learner", marks=COMPILER),
        pytest.param("train_ddp", "stock", "learner", marks=CORES),
    ],
)
def test_it_is_trained_like_a_network_of_ours(
    mode: str,
    stack: str,
    name: str,
    tmp_path: Path,
    begin: Callable[[Case, Conditions], Conditions],
) -> None:
    """Proven, with a fingerprint, a loss that falls, the curve of stock fp32, and a checkpoint that can be loaded."""
    target = f"{NETS}:{name}"
    model = registry.models.get(own.register(target))
    case = Case(model.name, "cpu", "fp32", mode, stack, 16, model.size, data=model.data)
    settings = Settings(load=(target,), train_steps=40, checkpoint=str(tmp_path / "kept.pt"))
    conditions = begin(case, Conditions(settings, timeout=500, samples=3, seconds=0.02, memory=2**35))
    done, _ = conduct_play.launch(case, 0, conditions, accuracy=True)
    assert (done.outcome, done.reason) == ("ok", "")
    assert [check for check in (*done.proof, *done.accuracy) if not check.ok] == []
    assert {"loss", "loss_curve", "checkpoint"} == {check.name for check in done.accuracy}
    assert done.metrics["loss"] > 0
    assert done.fingerprint is not None
