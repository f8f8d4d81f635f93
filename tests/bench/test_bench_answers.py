"""A sketch of answers tells how far they are from others, whatever differs, and is the same in every process."""

import base64
import math
import struct
from pathlib import Path
from typing import Any

import pytest

from ipexperf.proof.answers import difference
from ipexperf.proof.sketches import described, numbers, sketch

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


FIXED = [(17, 1.0), (22, -1.0), (30, 1.0), (11, -1.0)]


def part(values: Any, bound: float = 1e-4) -> dict[str, Any]:
    return {"at": "result", **numbers(values, values.shape, described(values), bound)}


def told(before: Any, now: Any, bound: float = 1e-4) -> str:
    return difference(*({"parts": [part(values, bound)], "weights": ""} for values in (before, now))).text


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
        assert told(values, changed, true / 1.5)
        assert ("a few numbers" in told(values, changed, 1.5 * true)) == (change == "one number")


def test_the_same_answers_have_the_same_sketch_in_any_shape_and_for_ever() -> None:
    """Sums are in files of baselines: another version of torch must make them too."""
    values = random(0, 2, 3000)
    assert part(values)["is"] == "2x3000 float64"
    assert part(values)["sums"] == part(values.reshape(6000))["sums"]
    found = []
    for place in range(1, 5):
        alone = torch.zeros(64, dtype=torch.float64)
        alone[place] = 1.0
        sums = struct.unpack("<66d", base64.b64decode(part(alone)["sums"]))[2:34]
        found += [(index, value) for index, value in enumerate(sums) if value]
    assert found == FIXED


def test_each_output_is_compared_by_its_own_size_and_whole_numbers_exactly() -> None:
    image, score, label = 100 * random(1, 8, 32), random(2, 8), torch.arange(8)
    before = sketch((image, score, label), (image, score), 1e-4)
    for outputs, text in [
        ((image, 2 * score, label), "its answers changed: result[1]["),
        ((image, score, label + 1), "its answers changed: result[2]: 8 int64 "),
    ]:
        assert difference(before, sketch(outputs, outputs[:2], 1e-4)).text.startswith(text)
    assert not difference(before, sketch((image, score, label + 1), image, 1e-4)).fails  # its task leaves labels out


def test_where_numbers_are_not_finite_is_compared() -> None:
    for size in (4, 1000):
        values = torch.ones(size, dtype=torch.float64)
        odd = [values.clone() for _ in range(4)]
        odd[0][0], odd[1][0], odd[2][0], odd[3][1] = math.inf, -math.inf, math.nan, math.inf
        for place, one in enumerate(odd):
            assert [bool(told(one, other)) for other in odd] == [place != other for other in range(4)]


def test_a_sketch_knows_the_file_of_its_weights(tmp_path: Path) -> None:
    names = []
    for content in (b"some", b"others"):
        (tmp_path / "weights").write_bytes(content)
        names.append(sketch((torch.ones(3),), torch.ones(3), 1e-4, str(tmp_path / "weights"))["weights"])
    assert len({*names, ""}) == 3
