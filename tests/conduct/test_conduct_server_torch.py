"""With torch and IPEX: a forked worker has the results and the proof of a fresh one."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import conduct_play
import pytest

from ipexperf.bench import registry
from ipexperf.bench.cell import Settings
from ipexperf.case import NetworkCase
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.server import Server, ServerSpec
from ipexperf.conduct.worker import Worker
from ipexperf.result import Launch

pytestmark = [pytest.mark.long, pytest.mark.process]

pytest.importorskip("torch")
FAKES = Path(__file__).parents[1] / "fakes"
SMALL = str(FAKES / "smallnet.py")
IPEX = importlib.util.find_spec("intel_extension_for_pytorch") is not None
STACKS = ["stock", pytest.param("ipex", marks=pytest.mark.skipif(not IPEX, reason="needs IPEX"))]
TRAINS = "ipex" if IPEX else "stock"
"""The stack with more to go wrong in a fork: IPEX imports what stock PyTorch does, and more."""
MADE = ("accuracy", "agreement", "fidelity", "loss")
"""What does not depend on how fast the machine is."""


@pytest.fixture(scope="module", params=STACKS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    found = Server(ServerSpec(request.param, (SMALL,), ("torch",), timeout=300))
    found.ready()
    yield found
    found.close()


def launched(mode: str, stack: str, server: Server | None) -> Launch:
    case = NetworkCase("smallnet", "cpu", "fp32", mode, stack, 16, 8, data="digits")
    path, _ = registry.datasets.get("digits").find(None)
    settings = Settings(load=(SMALL,), data_file=path, train_steps=6, threads=2, forked=server is not None)
    conditions = Conditions(settings, timeout=300, samples=5, seconds=0.05, server=server)
    return conduct_play.launch(case, 0, conditions, accuracy=True)[0]


def test_a_forked_launch_computes_and_proves_what_a_fresh_one_does(
    server: Server, request: pytest.FixtureRequest
) -> None:
    """The same accuracy to the last digit, the same bounds, and the same checks with the same findings.

    Each stack with another mode: how a worker begins is the business of neither.
    """
    stack = request.node.callspec.params["server"]
    mode = {"stock": "infer", "ipex": "infer_jit"}[stack]
    fresh, forked = launched(mode, stack, None), launched(mode, stack, server)
    assert (fresh.outcome, fresh.reason) == (forked.outcome, forked.reason) == ("ok", "")
    computed = [{name: done.metrics[name] for name in MADE if name in done.metrics} for done in (fresh, forked)]
    assert computed[0]
    assert computed[0] == computed[1]
    assert fresh.accuracy == forked.accuracy
    assert [check for check in forked.proof if not check.ok] == []
    assert [check for check in forked.proof if check.name != "start"] == list(fresh.proof)


@pytest.mark.skipif(not IPEX, reason="needs IPEX, which imports torch's remote modules")
def test_a_killed_worker_leaves_no_folder_of_torch_behind(tmp_path: Path) -> None:
    """Torch makes it when IPEX or dynamo are imported, and removes it at the end of Python, which a worker lacks."""
    variables = {"TMPDIR": str(tmp_path)}
    with Worker(None, variables, 300) as worker:
        worker.ask("imports", device="cpu", stack="ipex", load=[])
        worker.kill()
    server = Server(ServerSpec("ipex", (), ("torch",), variables=tuple(variables.items()), timeout=300))
    server.ready()
    server.close()
    assert list(tmp_path.glob("tmp*")) == []  # inductor's cache stays: later launches use it


@pytest.mark.parametrize("server", [TRAINS], indirect=True)
def test_a_forked_training_has_the_curve_of_a_fresh_one(server: Server) -> None:
    """The same seed gives the same first losses; the last depend on how many steps there was time for."""
    fresh, forked = launched("train", TRAINS, None), launched("train", TRAINS, server)
    checks = [
        {check.name: check for check in (*done.proof, *done.accuracy) if check.name != "start"}
        for done in (fresh, forked)
    ]
    assert list(checks[0]) == list(checks[1])
    assert all(check.ok for found in checks for check in found.values())
    assert checks[0]["loss_curve"] == checks[1]["loss_curve"]
