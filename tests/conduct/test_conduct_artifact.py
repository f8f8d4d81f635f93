"""Quantised networks: made once from the weights, stored with their recipe, and made again if damaged."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conduct_play import StandIn

from ipexperf.bench import loading, registry
from ipexperf.bench.artifacts import artifact
from ipexperf.case import NetworkCase
from ipexperf.conduct import artifact_cache
from ipexperf.conduct.conductor import Conductor
from ipexperf.conduct.worker import Worker
from ipexperf.errors import WorkerError
from ipexperf.plan.options import Options

SMALL = NetworkCase("small", "fake", "int8", "spin", "plain", 1, 1, data="none")


class Maker(StandIn):
    """Stands where workers would train and quantise: writes what it is asked for, and remembers what that was."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.weights = b"weights"
        self.fails = ""
        self.python: str | None = None

    def ask(self, do: str, *, path: str, settings: dict[str, Any], **_: Any) -> None:
        self.asked.append(do)
        if do == "weights":
            Path(path).write_bytes(self.weights)
            return
        assert Path(settings["weights"]).read_bytes() == self.weights
        for side in artifact.SIDES:
            Path(f"{path}{side}").write_text("{}")
        if self.fails:
            raise WorkerError("error", self.fails)
        Path(path).write_bytes(b"int8 " + self.weights)


@pytest.fixture
def maker() -> Maker:
    return Maker()


@pytest.fixture
def ready(maker: Maker, fake: str, tmp_path: Path) -> Callable[..., Path]:
    """Where the quantised network of a case is, made by the maker where it must be."""
    loading.load([fake])
    declaration = {"size": 1, "batch_train": 1, "batch_infer": 1, "data": "none", "needs": ()}
    registry.model("small", **declaration)(lambda: int)

    def ready(case: NetworkCase = SMALL, say: Callable[[str], None] = print, python: str | None = None) -> Path:
        def start(python: str | None, *_: Any, **__: Any) -> Worker:
            maker.python = python
            return maker.start()

        conditions = Conductor(Options(load=(fake,)), tmp_path, say, start=start).ready(case, python)
        assert conditions.python is None  # the arm's own interpreter is the arm's business
        path = conditions.settings.artifact
        assert path is not None
        return Path(path)

    return ready


def test_a_network_is_quantised_once_and_stored_with_its_recipe(ready: Callable[..., Path], maker: Maker) -> None:
    """A second run finds both files with their checksums, prints nothing and makes nothing."""
    said: list[str] = []
    path = ready(say=said.append)
    assert ready(say=said.append) == path
    assert (maker.asked, said) == (["weights", "quantise"], [])
    assert path.parent.name == "quantised"
    files = {path.name, *(f"{path.name}{side}" for side in artifact.SIDES)}
    assert {x.name for x in path.parent.iterdir()} == {*files, *(f"{x}.sha256" for x in files), f"{path.name}.lock"}
    assert all(artifact_cache.flaw(path.parent / name) == "" for name in files)


def test_other_weights_are_another_artifact(ready: Callable[..., Path], maker: Maker) -> None:
    """Weights that were trained again with another result need their own quantised network."""
    first = ready()
    for file in (first.parents[1] / "weights").glob("*.sha256"):
        file.unlink()
    maker.weights = b"other weights"
    second = ready()
    assert second != first
    assert maker.asked == ["weights", "quantise"] * 2
    assert second.read_bytes() == b"int8 other weights"


@pytest.mark.process
def test_the_interpreter_of_an_arm_quantises_its_own_network(ready: Callable[..., Path], maker: Maker) -> None:
    """Even if its versions are those of the other arm."""
    ready(python=sys.executable)
    assert maker.asked == ["weights", "quantise"]
    assert maker.python == sys.executable
