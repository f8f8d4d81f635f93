"""Sizes and batches: what is asked for, what the preset has, and what a model cannot have."""

import argparse
from typing import Any

import plan_records
import pytest

from ipexperf.bench import registry
from ipexperf.errors import UsageError
from ipexperf.plan import matrix, sizes

PUBLISHED = {"fp32": 160, "bf16": 112}


@pytest.fixture(autouse=True)
def declared() -> None:
    """A model with two sizes and the vendor's batches, and one with a single size."""
    plain: dict[str, Any] = {"size": 32, "batch_train": 64, "batch_infer": 8}
    registry.model("grown", **plain, normal=224, published=PUBLISHED, least=32, most=512)(object)
    registry.model("plain", **plain)(object)


def plan(**wishes: Any) -> matrix.Plan:
    cell: dict[str, Any] = {"model": ("grown", "plain"), "dtype": ("fp32",), "mode": ("infer",), "stack": ("stock",)}
    return plan_records.plan({**cell, **wishes})


def found(**wishes: Any) -> list[tuple[str, int, int]]:
    return [(case.model, case.size, case.batch) for case in plan(**wishes).cases]


def test_a_size_is_a_word_or_a_number() -> None:
    assert [sizes.read(text) for text in ("small", "normal", "96")] == ["small", "normal", 96]


@pytest.mark.parametrize("text", ["large", "0", "1.5", ""])
def test_any_other_size_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="expected small, normal or a whole number of at least 1"):
        sizes.read(text)


def test_a_model_has_its_own_size_and_batch() -> None:
    """Where nothing is asked for, and `small` says the same."""
    assert found() == found(size="small") == [("grown", 32, 8), ("plain", 32, 8)]


def test_the_normal_size_is_that_of_the_models_that_have_one() -> None:
    """A model without one keeps the size that it has; batches stay as they are."""
    assert found(size="normal") == [("grown", 224, 8), ("plain", 32, 8)]


def test_a_number_is_everybodys_size() -> None:
    assert found(size=64) == [("grown", 64, 8), ("plain", 64, 8)]


def test_the_preset_full_is_at_the_normal_size_with_the_vendors_batches() -> None:
    """A model without such batches keeps its own; what is asked for is stronger than the preset."""
    assert found(preset="full") == [("grown", 224, 160), ("plain", 32, 8)]
    assert found(preset="full", dtype=("bf16",))[0] == ("grown", 224, 112)
    assert found(preset="full", size="small", batch=3) == [("grown", 32, 3), ("plain", 32, 3)]


@pytest.mark.parametrize(("mode", "batch"), [("train", 64), ("load", 8), ("infer_jit", 160)])
def test_the_vendors_batches_are_for_a_stream_of_them(mode: str, batch: int) -> None:
    """Training, a single image and a cold start have no batch of theirs."""
    assert found(preset="full", mode=(mode,))[0] == ("grown", 224, batch)


@pytest.mark.parametrize(
    ("size", "sentence"),
    [
        (16, "grown takes inputs of at least 32 x 32: 16 x 16 is too small"),
        (513, "grown takes inputs of at most 512 x 512: 513 x 513 is too large"),
    ],
)
def test_a_size_that_a_model_cannot_have_is_left_out_with_the_reason(size: int, sentence: str) -> None:
    """The others run; where it was the only model that was named, the wish is refused."""
    assert plan(model=("all",), size=size).reasons[sentence] == 1
    with pytest.raises(UsageError) as error:
        plan(model=("grown",), size=size)
    assert str(error.value).endswith(sentence)


def test_two_sizes_are_two_cases() -> None:
    """They have one name for people and never share a series."""
    small, normal = plan(size="small").cases[0], plan(size="normal").cases[0]
    assert small.id == normal.id
    assert small.uid != normal.uid


def test_every_shipped_model_can_have_both_its_sizes() -> None:
    for name in registry.models.names():
        model = registry.models.get(name)
        assert sizes.unfit(model, model.size) is None
        assert model.normal is None or (model.normal > model.size and sizes.unfit(model, model.normal) is None)
