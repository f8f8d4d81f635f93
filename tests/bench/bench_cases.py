"""A small network, and cases of it on the digits."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from ipexperf.bench import registry
from ipexperf.bench.api import Workbench
from ipexperf.bench.cell import Settings
from ipexperf.bench.model import Examples, Model
from ipexperf.bench.networks import own
from ipexperf.case import NetworkCase
from ipexperf.result import Check
from ipexperf.zoo.datasets.random_data import RandomData

torch = pytest.importorskip("torch")

from ipexperf.zoo.models import _decoder, decoders

SIZE = 8
NO_SETTINGS = Settings()
needs_ipex = pytest.mark.skipif(
    importlib.util.find_spec("intel_extension_for_pytorch") is None, reason="needs IPEX, in a process of its own"
)
HEAVY_STEP = 2
"""Operators of the network that do arithmetic."""


def network() -> Any:
    """Two operators that do arithmetic: a convolution and a linear layer."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(4 * 36, 10),
    )


def flat() -> Any:
    """Without a bias inductor has no kernel of its own to write: nothing waits for the C++ compiler."""
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * SIZE * SIZE, 10, bias=False))


def named(checks: list[Check], name: str) -> Check:
    [check] = [check for check in checks if check.name == name]
    return check


def failed(checks: Iterable[Check]) -> set[str]:
    return {check.name for check in checks if not check.ok}


def as_json(checks: Iterable[Check]) -> dict[str, tuple[bool, str]]:
    """What a process with IPEX tells of its checks, as JSON can have it."""
    return {check.name: (check.ok, check.found) for check in checks}


def workbench(
    model: Model, case: NetworkCase, *, device: Any = None, dataset: Any = None, settings: Settings = NO_SETTINGS
) -> Workbench:
    """The workbench of a model, and perhaps a device and examples, that no registry knows."""
    leaves = (registry.modes.get(case.mode), registry.stacks.get(case.stack))
    examples = dataset or registry.datasets.get(case.data)
    task = registry.tasks.get(model.task)
    return Workbench(
        case, model, device or registry.devices.get(case.device), *leaves, examples, task, settings, lambda _: None
    )


def bench(
    build: Callable[[], Any], mode: str = "infer", device: Any = None, stack: str = "stock", **knobs: str
) -> Workbench:
    """A case of a small network on the digits, with random weights."""
    model = Model("tiny", build, size=SIZE, batch_train=16, batch_infer=16, trained=False, channels_last=False)
    case = NetworkCase("tiny", device.name, "fp32", mode, stack, 16, SIZE, 1, "digits", tuple(sorted(knobs.items())))
    return workbench(model, case, device=device, settings=Settings(train_steps=12))


def opened(build: Callable[[], Any], mode: str, **knobs: str) -> Any:
    """A session of such a case on the CPU."""
    case = bench(build, mode, registry.devices.get("cpu"), **knobs)
    return case.mode.open(case)


def of_target(text: str, mode: str = "infer", batch: int = 16, settings: Settings = NO_SETTINGS) -> Workbench:
    """A case of a network of the user's own, as a worker has it."""
    model = registry.models.get(own.register(text))
    case = NetworkCase(model.name, "cpu", "fp32", mode, "stock", batch, model.size, 1, model.data)
    return registry.workbench(case, settings, lambda _: None)


TOKENS = 64
"""Number of different tokens of the small decoders."""


class FewTokens(RandomData):
    """Texts of few different tokens, so that the heads of decoders are small."""

    name = "few_tokens"
    examples = 4

    def draw(self, count: int, size: int, generator: Any) -> Examples:
        tokens = torch.randint(TOKENS, (count, size + 1), generator=generator)
        return Examples((tokens[:, :-1].contiguous(),), (tokens[:, 1:].contiguous(),))


def with_weights(network: Any) -> Any:
    """The network with weights large enough for each token to matter."""
    torch.manual_seed(0)
    for value in network.parameters():
        torch.nn.init.normal_(value, std=0.3)
    return network.eval()


def decoder(shape: _decoder.Shape) -> Any:
    return with_weights(_decoder.Decoder(shape))


def generation(shape: _decoder.Shape, size: int, mode: str, dtype: str, stack: str, **knobs: str) -> Any:
    """A session of a small decoder that reads or decodes two texts."""
    declared = {**decoders.SHAPED, "size": size, "batch_infer": 2}
    model = Model("small", lambda: decoder(shape), **declared)
    case = NetworkCase("small", "cpu", dtype, mode, stack, 2, size, 1, "few_tokens", tuple(knobs.items()))
    bench = workbench(model, case, dataset=FewTokens())
    bench.stack.start()
    return bench.mode.open(bench)


def failures(checks: dict[str, tuple[bool, str]]) -> dict[str, str]:
    """The failed ones of such checks, with what was found."""
    return {name: text for name, (ok, text) in checks.items() if not ok}


def liar(network: Any, honest: Any) -> Any:
    """A network that lies, with the weights of the honest one."""
    network.load_state_dict(honest.state_dict())
    return network


def alone(fake: str, *, arguments: tuple[str, ...] = (), **variables: str) -> dict[str, Any]:
    """What a script of tests/fakes told of itself in a process of its own: IPEX changes the one that imports it."""
    root = Path(__file__).parents[2]
    path = f"{root / 'tests' / 'fakes' / 'no_transformers'}{os.pathsep}{root}"
    done = subprocess.run(
        [sys.executable, str(root / "tests" / "fakes" / fake), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        # More threads would spend most of their time waiting for one another.
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **variables},
    )
    assert done.returncode == 0, done.stderr
    printed: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return printed
