"""A sketch of answers tells how far they are from others, whatever differs, and is the same in every process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ipexperf.bench.evidence.answers import sketch
from ipexperf.judge.answers import distance

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

FIXED = (
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    "AAB9Ewq+AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAfROKPgAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAH0TCj8AAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAfROKPgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="
)


def sketched(values: Any, **more: Any) -> dict[str, Any]:
    found = sketch((values,), values, 1e-4, **more)
    assert found is not None
    return found


def random(seed: int, *shape: int) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CHANGES = {
    "noise": lambda values: values + 0.1 * random(1, *values.shape),
    "a factor": lambda values: values * 1.3,
    "an offset": lambda values: values + 0.5,
    "one number": lambda values: values + 20 * (torch.arange(values.numel()) == 77).reshape(values.shape),
    "one class": lambda values: values + 2.0 * (torch.arange(values.shape[1]) == 3),
    "rows in another order": lambda values: values.flip(0),
    "rounding": lambda values: values.bfloat16().double(),
    "float64's rounding": lambda values: values * (1 + 1e-13),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("shape", [(64, 10), (64, 1000)])
def test_the_distance_of_two_sketches_is_about_that_of_the_answers(change: str, shape: tuple[int, int]) -> None:
    for seed in range(5):
        values = random(seed, *shape)
        changed = CHANGES[change](values)
        true = float((changed - values).norm() / values.norm())
        assert distance(sketched(values), sketched(changed)) == pytest.approx(true, rel=0.4, abs=1e-6)


def test_the_same_answers_have_the_same_sketch_in_any_shape_and_for_ever() -> None:
    """These sums are in files of baselines: another version of torch must make them too."""
    values = torch.arange(6, dtype=torch.float64).reshape(2, 3)
    found = sketched(values)
    assert found["shapes"] == ["2x3"]
    assert found["sums"] == sketched(values.reshape(6))["sums"]
    assert found["sums"] == FIXED


def test_answers_that_are_not_finite_have_no_sketch() -> None:
    values = torch.tensor([1.0, float("nan")], dtype=torch.float64)
    assert sketch((values,), values, 1e-4) is None


def test_a_sketch_knows_the_file_of_its_weights(tmp_path: Path) -> None:
    names = []
    for content in (b"some", b"others"):
        (tmp_path / "weights").write_bytes(content)
        names.append(sketched(torch.ones(3), weights=str(tmp_path / "weights"))["weights"])
    assert len({*names, ""}) == 3
