"""The ordinary path of accelerators on a second device of torch: a run of every mode, and what goes wrong on cards."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from ipexperf.history import History

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "tests" / "second_device"
LEAF, NETWORKS = str(ROOT / "docs/how-to/examples/late_leaf.py"), str(PLACE / "small_networks.py")

PLACES = ("arithmetic", "compiled_device")
"""The checks that say where the work was done."""

pytestmark = [
    pytest.mark.long,
    pytest.mark.torch,
    pytest.mark.skipif(shutil.which(os.environ.get("CXX") or "g++") is None, reason="needs a C++ compiler"),
    pytest.mark.skipif(not Path(sysconfig.get_path("include"), "Python.h").exists(), reason="needs Python's headers"),
]


@pytest.fixture(scope="session")
def late(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables with which any Python finds the device. It is built once for all processes of these tests."""
    pytest.importorskip("torch")
    sys.path.append(str(PLACE))
    import build

    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "late"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "late-1.0.dist-info" / "entry_points.txt").exists():
            build.build(folder)
    return build.variables(folder)


REFUSED = {
    "torch.ones(2, device='late').double()": "Required aspect fp64 is not supported on the device",
    "torch.ones(2, 2, device='late') @ torch.ones(2, 2)": "Expected all tensors to be on the same device",
    "torch.ones(2, device='late') + torch.ones(2)": "Expected all tensors to be on the same device",
    "torch.late.set_device(1)": "there is no card 1, but 1",
    "torch.ones(2**20, device='late')": "late out of memory",
}
TRIED = """
import json, sys, torch
said = {}
for code in sys.argv[1:]:
    try:
        exec(code)
    except Exception as error:
        said[code] = str(error)
print(json.dumps(said))
"""


def test_it_refuses_what_cards_refuse(late: dict[str, str]) -> None:
    variables = {**os.environ, **late, "LATE_MEMORY": "1000000"}
    done = subprocess.run(
        [sys.executable, "-c", TRIED, *REFUSED], env=variables, capture_output=True, text=True, check=True
    )
    said = json.loads(done.stdout)
    assert [code for code, error in REFUSED.items() if error not in said.get(code, "")] == []


def run(late: dict[str, str], folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run cases on the device, on a machine that other tests use too."""
    folder.joinpath("test_all.py").write_text(
        "import pytest\n\n\n@pytest.mark.perf\ndef test_all(perf):\n    perf()\n", encoding="utf-8"
    )
    command = [sys.executable, "-m", "pytest", "-p", "crowded", "-p", "no:cacheprovider", f"--rootdir={folder}"]
    command += ["--perf-device=late", f"--perf-load={LEAF}", f"--perf-load={NETWORKS}", "--perf-stack=stock"]
    command += [
        "--perf-launches=1",
        "--perf-samples=5",
        "--perf-seconds=0.05",
        "--perf-without=roof",
        "--perf-lease=off",
    ]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("IPEXPERF_", "PYTEST_"))}
    paths = os.pathsep.join((late["PYTHONPATH"], str(ROOT / "benchmarks" / "card"), str(ROOT)))
    environment = {**inherited, **late, "PYTHONPATH": paths, **variables}
    return subprocess.run([*command, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False)


def proofs(folder: Path) -> dict[str, dict[str, bool]]:
    """The checks of each case of the last run, by mode and dtype."""
    with History.open(folder / "ipexperf.db", create=False) as history:
        cases = history.measurements(history.find_run("last").uid)
    return {
        f"{one.case.axes['model']} {one.case.axes['mode']}": {
            check["name"]: check["ok"] for check in one.launches[-1].document["proof"]
        }
        for one in cases
    }


@pytest.mark.process
@pytest.mark.parametrize(
    ("model", "modes"),
    [
        ("small_images", "infer,infer_jit,infer_compile,load,train"),
        ("small_gpt", "prefill,decode_compile"),
        ("small_gpt", "train_compile"),
    ],
)
def test_what_the_nightly_of_cards_runs_is_green(late: dict[str, str], tmp_path: Path, model: str, modes: str) -> None:
    """Without float64, as on most cards: eager, traced, compiled, loaded, in training and decoding."""
    done = run(late, tmp_path, f"--perf-model={model}", f"--perf-mode={modes}", "--perf-dtype=bf16")
    assert done.returncode == 0, done.stdout
    found = proofs(tmp_path)
    assert set(found) == {f"{model} {mode}" for mode in modes.split(",")}
    assert all(all(checks.values()) for checks in found.values())
    assert all({"device", "arithmetic", "synchronised"} <= set(checks) for checks in found.values())


@pytest.mark.process
def test_a_device_that_does_not_wait_is_caught_in_every_kind_of_graph(late: dict[str, str], tmp_path: Path) -> None:
    words = ("--perf-model=small_images", "--perf-mode=infer,infer_jit,infer_compile,train", "--perf-dtype=fp32")
    done = run(late, tmp_path, *words, LATE_WAITS="0")
    assert done.returncode == 1, done.stdout
    found = proofs(tmp_path)
    assert len(found) == 4
    assert not any(checks["synchronised"] for checks in found.values())


@pytest.mark.process
def test_work_that_ran_on_the_host_is_caught_in_every_kind_of_graph(late: dict[str, str], tmp_path: Path) -> None:
    words = ("--perf-model=deserter", "--perf-mode=infer,infer_jit,infer_compile", "--perf-dtype=fp32")
    done = run(late, tmp_path, *words)
    assert done.returncode == 1, done.stdout
    found = proofs(tmp_path)
    assert len(found) == 3
    assert all(not all(checks[name] for name in PLACES if name in checks) for checks in found.values())


@pytest.mark.process
def test_an_operator_that_is_left_out_is_caught_in_every_kind_of_graph(late: dict[str, str], tmp_path: Path) -> None:
    words = ("--perf-model=small_images", "--perf-mode=infer,infer_jit,infer_compile", "--perf-dtype=fp32")
    done = run(late, tmp_path, *words, LATE_FORGETS="addmm")
    assert done.returncode == 1, done.stdout
    assert done.stdout.count("fidelity") >= 3


@pytest.mark.process
def test_training_on_two_cards_exchanges_gradients(late: dict[str, str], tmp_path: Path) -> None:
    words = ("--perf-model=small_images", "--perf-mode=train_ddp", "--perf-dtype=fp32")
    done = run(late, tmp_path, *words, LATE_CARDS="2")
    assert done.returncode == 0, done.stdout
    [checks] = proofs(tmp_path).values()
    assert {"backend", "own_batches", "weights_equal"} <= set(checks)
    assert all(checks.values())


def test_a_card_that_is_not_there_is_one_sentence(late: dict[str, str], tmp_path: Path) -> None:
    words = ("--perf-model=small_images", "--perf-mode=infer", "--perf-dtype=fp32")
    done = run(late, tmp_path, *words, LATE_VISIBLE_CARDS="7")
    assert done.returncode == 4
    assert "sees no LATE on this machine" in done.stderr + done.stdout
