"""A stranger's networks in real workers: IPEX does to them what it does to ours, and each training of one is proven."""

import importlib.util
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import conduct_play
import pytest

from ipexperf.bench import registry
from ipexperf.bench.cell import Settings
from ipexperf.bench.machine import facts
from ipexperf.bench.networks import own
from ipexperf.case import NetworkCase
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.server import Server, ServerSpec
from ipexperf.result import Launch

pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.torch]

FAKES = Path(__file__).parents[1] / "fakes"
NAMES = ("small", "tupled", "mapped", "packed", "pair", "normed", "normed_mapping")
FRESH = Conditions(Settings(threads=1), timeout=500, samples=3, seconds=0.02, memory=2**35)
IPEX = pytest.mark.skipif(importlib.util.find_spec("intel_extension_for_pytorch") is None, reason="needs IPEX")
COMPILER = pytest.mark.skipif(not facts.gather().compiler, reason="needs a C++ compiler")
CORES = pytest.mark.skipif(len(os.sched_getaffinity(0)) < len(("rank", "rank")), reason="needs a core for each rank")


@pytest.fixture(scope="module")
def ipex() -> Iterator[Conditions]:
    """Lets a worker start from a server, which imports IPEX once."""
    server = Server(ServerSpec("ipex", (), ("torch",), timeout=500))
    server.ready()
    yield replace(FRESH, settings=replace(FRESH.settings, forked=True), server=server)
    server.close()


def launched(target: str, mode: str, stack: str, conditions: Conditions, **settings: Any) -> Launch:
    """A launch that is well: every check of it holds."""
    model = registry.models.get(own.register(target))
    path, _ = registry.datasets.get(model.data).find(None)
    case = NetworkCase(model.name, "cpu", "fp32", mode, stack, 16, model.size, data=model.data)
    told = replace(conditions.settings, load=(target,), data_file=path, **settings)
    done, _ = conduct_play.launch(case, 0, replace(conditions, settings=told), accuracy=True)
    assert (done.outcome, done.reason) == ("ok", "")
    assert [check for check in (*done.proof, *done.accuracy) if not check.ok] == []
    return done


@IPEX
@pytest.mark.parametrize("mode", ["infer", "infer_jit"])
@pytest.mark.parametrize("name", NAMES)
def test_ipex_packs_weights_and_folds_norms_of_a_strangers_network(name: str, mode: str, ipex: Conditions) -> None:
    """Nothing of ours lies between IPEX and the network: torch.fx, by which it folds, would not see through."""
    done = launched(f"{FAKES / 'mynets.py'}:{name}", mode, "ipex", ipex)
    proven = {check.name: check.found for check in done.proof}
    assert proven["conv_bn_folding"] == "0 BatchNorm modules"
    assert proven["weights_prepack"] != "0 prepacked modules"


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
    mode: str, stack: str, name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Proven, with a fingerprint, a loss that falls, the curve of stock fp32, and a checkpoint that can be loaded."""
    conditions = request.getfixturevalue("ipex") if stack == "ipex" else FRESH
    asked = {"threads": None, "train_steps": 40, "checkpoint": str(tmp_path / "kept.pt")}
    done = launched(f"{FAKES / 'mytraining.py'}:{name}", mode, stack, conditions, **asked)
    assert {"loss", "loss_curve", "checkpoint"} == {check.name for check in done.accuracy}
    assert done.metrics["loss"] > 0
    assert done.fingerprint is not None
