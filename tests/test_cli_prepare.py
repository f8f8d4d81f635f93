"""`ipexperf prepare` makes what cases load, says what was there, and leaves nothing half."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

import ipexperf.run  # noqa: F401 - a room that keeps ask_facts by name, before a test replaces anything
from ipexperf import cli
from ipexperf.bench import loading, registry
from ipexperf.bench.artifacts import artifact
from ipexperf.conduct.conditions import Conditions
from ipexperf.errors import WorkerError

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[1]
CELL = ("--device", "fake", "--mode", "spin", "--stack", "plain")
DECLARED = {"size": 1, "batch_train": 1, "batch_infer": 1, "data": "none", "needs": ()}
# With Ctrl-C as a shell's foreground jobs have it: those in the background are told to ignore it, and so would we.
HEARD = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
START = f"{HEARD}import sys; from ipexperf.cli import main; sys.exit(main())"
SLOW = """
import ipexperf
from ipexperf.bench.lazy import torch


@ipexperf.model("endless", size=8, batch_train=16, batch_infer=16, recipe_steps=10**9)
def endless():
    nn = torch.nn
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
"""


class Maker:
    """Stands where workers would train and quantise."""

    fails = ""
    tried: ClassVar[list[str]] = []
    """What it was asked for of the one that fails."""

    def __enter__(self) -> Maker:  # noqa: PYI034 - typing.Self is 3.11, and this runs on 3.10
        return self

    def __exit__(self, *_: object) -> None: ...

    def ask(self, do: str, *, path: str, case: dict[str, Any], **_: Any) -> None:
        if case["model"] == self.fails:
            self.tried.append(do)
            raise WorkerError("error", "it did not learn")
        Path(path).write_text(do)
        for side in artifact.SIDES if do == "quantise" else ():
            Path(f"{path}{side}").write_text("{}")


@pytest.fixture
def prepare(fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs the command on two models that are trained by the maker."""
    loading.load([fake])
    for name in ("first", "second"):
        registry.model(name, **DECLARED)(lambda: int)
    monkeypatch.setattr(Conditions, "worker", lambda _: Maker())
    monkeypatch.setattr(type(registry.modes.get("spin")), "artifact", "script")
    monkeypatch.chdir(tmp_path)
    return lambda *words: cli.main(["prepare", f"--perf-load={fake}", *CELL, *words])


def kept(folder: Path) -> list[str]:
    """Names of the files that are loaded, without what lies beside them."""
    return sorted(path.name.split("-")[0] for path in folder.rglob("*.pt"))


def test_what_is_made_is_told_and_found_again(
    prepare: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Weights that an int8 case shares with another are made once; the second time everything is there."""
    words = ("--model", "first,second", "--dtype", "fp32,int8")
    assert prepare(*words) == 0
    out, err = capsys.readouterr()
    assert out.count("made           weights/") == out.count("made           quantised/") == 2
    assert out.endswith("4 made, 0 there already, for 4 cases\n")
    assert "case 1 of 4: first-fake-fp32-spin-plain" in err
    assert kept(tmp_path / ".ipexperf") == ["first", "first", "second", "second"]
    assert prepare(*words) == 0
    out = capsys.readouterr().out
    assert out.count("there already  ") == 4
    assert out.endswith("0 made, 4 there already, for 4 cases\n")


def test_what_cannot_be_made_is_told_and_the_rest_is_made(
    prepare: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit status is 1, and nothing of the one that failed is kept."""
    monkeypatch.setattr(Maker, "fails", "first")
    assert prepare("--model", "first,second", "--dtype", "fp32") == 1
    out = capsys.readouterr().out
    assert "failed         first-fake-fp32-spin-plain: training weights: it did not learn\n" in out
    assert out.endswith("1 made, 0 there already, for 2 cases; 1 could not be made\n")
    assert kept(tmp_path / ".ipexperf") == ["second"]
    assert not list(tmp_path.rglob("*.part*"))


def test_what_did_not_learn_is_trained_once(
    prepare: Callable[..., int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the same seed it would not learn again, and that may take minutes: the next case is told at once."""
    monkeypatch.setattr(Maker, "fails", "first")
    monkeypatch.setattr(Maker, "tried", [])
    assert prepare("--model", "first", "--dtype", "fp32,int8") == 1
    assert capsys.readouterr().out.count("training weights: it did not learn\n") == 2
    assert Maker.tried == ["weights"]


@pytest.mark.process
@pytest.mark.torch
def test_ctrl_c_leaves_nothing_half(tmp_path: Path, gone: Callable[[int], bool]) -> None:
    """In the middle of a training: exit status 130, no worker, no weights, and no part of any."""
    (tmp_path / "slow.py").write_text(SLOW)
    words = [
        "--perf-load=slow.py",
        "--model",
        "endless",
        "--device",
        "cpu",
        "--dtype",
        "fp32",
        "--mode",
        "infer",
        "--stack",
        "stock",
    ]
    with subprocess.Popen(
        [sys.executable, "-c", START, "prepare", *words],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "training endless once: step 10 of" in line:
                break
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == cli.INTERRUPTED
    assert children
    assert all(gone(int(pid)) for pid in children)
    assert not [path for path in tmp_path.rglob("*") if path.suffix == ".pt" or ".part" in path.name]
