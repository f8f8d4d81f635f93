"""What many workers of a run would make alike is made once: by the first of them that needs it."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bench_cases
import pytest

from ipexperf.bench import registry, shared
from ipexperf.bench.api import Workbench
from ipexperf.bench.modes.infer import EagerSession
from ipexperf.proof import accuracy

torch = pytest.importorskip("torch")


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., Workbench]:
    """A workbench whose run has a folder for what its workers share."""

    def bench(mode: str = "infer", **changed: Any) -> Workbench:
        made = bench_cases.bench(bench_cases.network, mode, device=registry.devices.get("cpu"))
        path, _ = made.dataset.find(None)
        settings = {"shared": str(tmp_path), "data_file": path, **changed}
        return dataclasses.replace(made, settings=dataclasses.replace(made.settings, **settings))

    return bench


def asked(bench: Workbench, made_of: Any, value: Any) -> Any:
    return shared.once(bench, "number", [made_of], lambda: value)


def test_the_second_is_told_what_the_first_made(bench: Callable[..., Workbench]) -> None:
    """Tensors and numbers, bit by bit, and nothing is left beside them."""
    first = (torch.rand(3, dtype=torch.float64),), 0.1
    loaded = asked(bench(), 1, first)
    again = asked(bench(), 1, None)
    assert loaded is first
    assert torch.equal(again[0][0], first[0][0])
    assert again[1] == 0.1
    assert [path.suffix for path in Path(bench().settings.shared or "").iterdir()] == [".pt"]


@pytest.mark.parametrize(
    "other",
    [
        lambda bench: (bench(), 2),
        lambda bench: (bench(seed=1), 1),
        lambda bench: (bench(weights=__file__), 1),
        lambda bench: (bench().at(16), 1),
        lambda bench: (dataclasses.replace(bench(), model=dataclasses.replace(bench().model, version=2)), 1),
        lambda bench: (bench(shared=None), 1),
    ],
    ids=["asked", "seed", "weights", "size", "version", "nowhere"],
)
def test_what_is_made_of_something_else_is_made(bench: Callable[..., Workbench], other: Callable[..., Any]) -> None:
    """All that a reference depends on is part of its address; without a folder each worker makes its own."""
    asked(bench(), 1, "the first")
    workbench, made_of = other(bench)
    assert asked(workbench, made_of, "the second") == "the second"


def test_a_file_or_a_variable_that_changed_makes_another(
    bench: Callable[..., Workbench], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is known by its size and time beside its name; arms differ in variables."""
    weights = tmp_path / "weights"
    weights.write_text("one")
    asked(bench(weights=str(weights)), 1, "the first")
    weights.write_text("other")
    assert asked(bench(weights=str(weights)), 1, "the second") == "the second"
    monkeypatch.setattr(shared, "environment", lambda: ["ONEDNN_MAX_CPU_ISA=AVX2"])
    assert asked(bench(weights=str(weights)), 1, "the third") == "the third"


def test_variables_that_an_import_sets_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """IPEX sets one when it is imported: its workers would share nothing with those of stock PyTorch."""
    before = shared.environment()
    assert any(name.startswith("PATH=") for name in before)
    monkeypatch.setenv("SET_BY", "an import")
    assert shared.environment() == before


def test_without_room_every_worker_makes_its_own(bench: Callable[..., Workbench]) -> None:
    """Answers are held against what was made just now."""
    workbench = bench(shared="/nowhere/at/all")
    assert [asked(workbench, 1, value) for value in ("the first", "the second")] == ["the first", "the second"]


def test_inference_is_held_against_one_reference(
    bench: Callable[..., Workbench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second session answers the same checks, and runs no network in float64."""
    first = EagerSession(bench()).accuracy()
    monkeypatch.setattr(accuracy, "reference", lambda *_: pytest.fail("made again"))
    assert EagerSession(bench()).accuracy() == first
