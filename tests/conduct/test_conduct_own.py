"""A stranger's networks under IPEX: it does to them what it does to ours, in whatever container they answer."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import conduct_play
import pytest

from ipexperf.bench import registry
from ipexperf.bench.api import Settings
from ipexperf.bench.networks import own
from ipexperf.case import Case
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.server import Server, ServerSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.long, pytest.mark.process]

pytest.importorskip("torch")
if importlib.util.find_spec("intel_extension_for_pytorch") is None:
    pytest.skip("needs IPEX", allow_module_level=True)
NETS = Path(__file__).parents[1] / "fakes" / "mynets.py"
NAMES = ("small", "tupled", "mapped", "packed", "pair", "normed", "normed_mapping")
TARGETS = tuple(f"{NETS}:{name}" for name in NAMES)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    found = Server(ServerSpec("ipex", TARGETS, ("torch",), timeout=300))
    found.ready()
    yield found
    found.close()


@pytest.mark.parametrize("mode", ["infer", "infer_jit"])
@pytest.mark.parametrize("target", TARGETS, ids=NAMES)
def test_ipex_packs_weights_and_folds_norms_of_a_strangers_network(target: str, mode: str, server: Server) -> None:
    """Nothing of ours lies between IPEX and the network: torch.fx, by which it folds, would not see through."""
    model = registry.models.get(own.register(target))
    path, _ = registry.datasets.get(model.data).find(None)
    case = Case(model.name, "cpu", "fp32", mode, "ipex", 16, model.size, data=model.data)
    settings = Settings(load=TARGETS, data_file=path, threads=1, forked=True)
    done, _ = conduct_play.launch(
        case, 0, Conditions(settings, timeout=300, samples=3, seconds=0.02, server=server), accuracy=True
    )
    assert (done.outcome, done.reason) == ("ok", "")
    assert [check for check in (*done.proof, *done.accuracy) if not check.ok] == []
    proven = {check.name: check.found for check in done.proof}
    assert proven["conv_bn_folding"] == "0 BatchNorm modules"
    assert proven["weights_prepack"] != "0 prepacked modules"
