"""The scripts that modes and stacks write for people do what they say, where torch is installed."""

from typing import Any

import pytest

from ipexperf.bench import registry
from ipexperf.bench.cell import Cell

torch = pytest.importorskip("torch")


def names(**more: Any) -> dict[str, Any]:
    """What a user's script has when these lines begin: a network, its inputs, and what trains it."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).eval()
    inputs = (torch.randn(3, 4),)
    batches = [(inputs, torch.tensor([0, 1, 1]))] * 5
    return {
        "torch": torch,
        "model": model,
        "inputs": inputs,
        "calibration": [inputs],
        "batches": batches,
        "loss_of": torch.nn.functional.cross_entropy,
        **more,
    }


def run(mode: str, dtype: str = "fp32", **knobs: str) -> dict[str, Any]:
    """Run the script of a mode on stock PyTorch. Return its names."""
    cell = Cell("resnet18", "cpu", dtype, mode, "stock", tuple(sorted(knobs.items())))
    lines = registry.modes.get(mode).script(cell, registry.stacks.get("stock"))
    scope = names()
    exec("\n".join(lines), scope)  # noqa: S102 - the script is what is tested
    return scope


@pytest.mark.parametrize("mode", ["infer", "infer_jit"])
@pytest.mark.parametrize(("dtype", "tolerance"), [("fp32", 1e-6), ("bf16", 0.05)])
def test_a_script_of_inference_gives_the_outputs_of_the_network(mode: str, dtype: str, tolerance: float) -> None:
    expected, scope = names()["model"](*names()["inputs"]), run(mode, dtype)
    assert torch.allclose(scope["outputs"].float(), expected, atol=tolerance)
    assert isinstance(scope["model"], torch.jit.ScriptModule) is (mode == "infer_jit")


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad", "adam", "adamw"])
def test_a_script_of_training_moves_the_weights(optimizer: str) -> None:
    """With the optimizer that the case names."""
    scope = run("train", optimizer=optimizer)
    assert type(scope["optimizer"]).__name__.lower() == optimizer
    before = names()["model"].state_dict()
    assert all(not torch.equal(before[name], value) for name, value in scope["model"].state_dict().items())
