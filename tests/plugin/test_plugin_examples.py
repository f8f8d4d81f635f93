"""The how-to pages' examples and a real data set's files, run as a user runs them. Needs torch."""

import importlib.util
import json
import shutil
from typing import Any

import numpy as np  # before pytester, which takes back what its test imports, and numpy bears no second import
import pytest
from plugin_suite import ROOT, SHORT, Suite

from ipexperf import cli
from ipexperf.bench import loading
from ipexperf.bench.machine.facts import Facts
from ipexperf.plan import matrix
from ipexperf.plan.options import Options

EXAMPLES = ROOT / "docs" / "how-to" / "examples"
CIFAR10 = ROOT / "tests" / "fakes" / "cifar10.py"
QUICK_PEAKS = ROOT / "tests" / "fakes" / "quick_peaks.py"
PATIENCE = 300
"""Workers that import torch, and one that compiles, may have to share their cores with other tests."""
STOCK = ("--device", "cpu", "--dtype", "fp32", "--stack", "stock", *SHORT)
NO_ROOF = "--perf-without=roof"
"""Only the test of the example model measures the peak rates of the machine, which takes longer than all else."""

needs_torch = pytest.mark.torch
needs_torchvision = pytest.mark.skipif(importlib.util.find_spec("torchvision") is None, reason="needs torchvision")


def tinynet(suite: Suite, *arguments: str) -> pytest.RunResult:
    """Runs the example's test on the example's network."""
    shutil.copy(EXAMPLES / "test_tinynet.py", suite.path / "test_suite.py")
    chosen = (f"--perf-load={EXAMPLES / 'tinynet.py'}", "--model", "tinynet", *STOCK, *arguments)
    return suite.raw(*chosen, patience=PATIENCE)


@needs_torch
def test_the_example_model_learns_and_infers(torch_suite: Suite) -> None:
    """The example network learns the digits, keeps its accuracy, and is proven, under the example's own test.

    Its speed is a share of what this machine can do, which is measured with small products here.
    """
    quick = f"--perf-load={QUICK_PEAKS}"
    tinynet(torch_suite, quick, "--mode", "infer").assert_outcomes(passed=1)
    assert torch_suite.launches() == [("tinynet", "ok")]
    assert torch_suite.query("SELECT count(*) FROM series WHERE metric = 'of_roof'") == [(1,)]


@needs_torch
def test_the_example_mode_scripts_and_is_proven(torch_suite: Suite) -> None:
    """Inference through torch.jit.script passes with its proof: a frozen graph of a network's source."""
    load = f"--perf-load={EXAMPLES / 'infer_script.py'}"
    tinynet(torch_suite, load, "--mode", "infer_script", NO_ROOF).assert_outcomes(passed=1)
    assert torch_suite.launches() == [("tinynet", "ok")]


@pytest.mark.process
@needs_torch
def test_the_example_device_is_refused_where_torch_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    """`ipexperf cases` with the example device asks torch for it, and ends with torch's answer."""
    assert cli.main(["cases", f"--perf-load={EXAMPLES / 'npu.py'}", "--device", "npu"]) == cli.USAGE_ERROR
    told = capsys.readouterr().err
    assert told.startswith("ipexperf: --device npu: npu cannot run here: torch ")
    assert told.count("\n") == 1


def test_the_example_device_is_planned_where_torch_sees_it() -> None:
    """Torch is asked for the example device, and its cells are cases where the answer is yes."""
    loading.load([str(EXAMPLES / "npu.py")])
    wish = Options(device=("npu",), model=("resnet18",), mode=("infer",), stack=("stock",), dtype=("fp32",))
    assert matrix.accelerators(wish) == {"npu": 0}
    packages = {"torch": "2.8.0", "torchvision": "0.23.0"}
    plan = matrix.make(wish, Facts("/env/bin/python", packages, frozenset(), {"npu": ""}))
    assert [case.id for case in plan.cases] == ["resnet18-npu-fp32-infer-stock"]


@needs_torch
@needs_torchvision
def test_cifar10_is_measured_out_of_its_folder(torch_suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --perf-data a network learns from the files of CIFAR-10; with a damaged one its test fails in a sentence."""
    spec = importlib.util.spec_from_file_location("fake_cifar10", CIFAR10)
    assert spec is not None
    assert spec.loader is not None
    files = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(files)
    random = np.random.default_rng(0)

    def batch(rows: int) -> tuple[Any, list[int]]:
        labels = random.integers(0, 10, rows)
        brightness = np.where(np.arange(3072) // 1024 == labels[:, None] % 3, labels[:, None] * 20 + 40, 20)
        return (brightness + random.integers(0, 16, (rows, 3072))).astype(np.uint8), labels.tolist()

    folder = files.write(torch_suite.path, {name: batch(200) for name in (*files.TRAIN, files.TEST)})
    monkeypatch.setenv("FAKE_CIFAR10", str(torch_suite.path))
    arguments = (f"--perf-load={CIFAR10}", f"--perf-data={torch_suite.path}", "--mode", "train", NO_ROOF)
    tinynet(torch_suite, *arguments).assert_outcomes(passed=1)
    [(params,)] = torch_suite.query('SELECT params FROM "case"')
    assert json.loads(params)["data"] == "cifar10"

    monkeypatch.delenv("FAKE_CIFAR10")
    result = tinynet(torch_suite, *arguments, "-rN")
    result.assert_outcomes(failed=1)
    # The block is wrapped, and a temporary folder's name may be long.
    assert f"{folder} is not CIFAR-10 as published" in " ".join(result.stdout.str().split())
    assert "Traceback" not in result.stdout.str()
