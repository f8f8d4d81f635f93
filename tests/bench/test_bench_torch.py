"""What bench says of real tensors: proofs, fidelity, data and weights. Needs torch."""

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench_cases import alone

from ipexperf.bench import precision, registry
from ipexperf.bench.artifacts import weights
from ipexperf.bench.model import Examples, Split, tensors
from ipexperf.dtypes import DTYPES
from ipexperf.errors import WorkerError
from ipexperf.proof import accuracy, label
from ipexperf.zoo.datasets.digits import Digits

torch = pytest.importorskip("torch")

TASK = registry.tasks.get("classification")


@pytest.fixture
def linear() -> Callable[[str], Callable[[], Any]]:
    """A step of a small network, under autocast where the dtype is not fp32."""
    network, images = torch.nn.Linear(16, 8), torch.randn(4, 16)

    def of(dtype: str) -> Callable[[], Any]:
        def step() -> Any:
            with torch.no_grad(), precision.autocast("cpu", dtype):
                return network(images)

        return step

    return of


@pytest.mark.parametrize(("ran", "name", "other"), [("fp32", "float32", "bf16"), ("bf16", "bfloat16", "fp32")])
def test_the_profiler_tells_the_dtype_that_arithmetic_ran_in(
    linear: Callable[[str], Callable[[], Any]], ran: str, name: str, other: str
) -> None:
    """A step in the dtype of its label is proven, with the kernels' own dtype as what was found, and no other."""
    kernels = label.profiled(linear(ran))
    check = label.dtype_of_kernels(kernels, ran)
    assert check.ok
    assert (check.found, check.expected) == (f"{name} x1", f"{name} in all")
    assert not label.dtype_of_kernels(kernels, other).ok


def products() -> dict[str, Callable[[], Any]]:
    """Matrix products in fp32, each through another operator of torch."""
    pages, columns = torch.ones(2, 3, 4), torch.ones(2, 4, 5)
    matrix, vector, text = pages[0], torch.ones(4), torch.nn.LSTM(4, 5)
    return {
        "baddbmm": lambda: torch.baddbmm(torch.zeros(2, 3, 5), pages, columns),
        "addbmm": lambda: torch.addbmm(torch.zeros(3, 5), pages, columns),
        "mv": lambda: torch.mv(matrix, vector),
        "addmv": lambda: torch.addmv(torch.zeros(3), matrix, vector),
        "activation": lambda: torch._addmm_activation(torch.zeros(5), matrix, columns[0]),
        "lstm": lambda: text(pages),
    }


@pytest.mark.parametrize("name", ["baddbmm", "addbmm", "mv", "addmv", "activation", "lstm"])
def test_a_product_in_another_dtype_is_caught_whatever_operator_it_is(
    name: str, linear: Callable[[str], Callable[[], Any]]
) -> None:
    """A part that leaves autocast must not hide behind a layer that does not."""
    product = products()[name]

    def step() -> None:
        linear("bf16")()
        with torch.no_grad():
            product()

    check = label.dtype_of_kernels(label.profiled(step), "bf16")
    assert not check.ok
    assert {"bfloat16 x1", "float32 x1"} == set(check.found.split(", "))


def test_a_step_without_arithmetic_proves_nothing() -> None:
    """No kernel is no evidence: the check fails."""
    check = label.dtype_of_kernels(label.profiled(lambda: None), "fp32")
    assert not check.ok
    assert check.found == "no operator that does arithmetic"


@pytest.fixture
def known() -> tuple[Any, Examples, Any]:
    """A network, images with the labels that it gives them, and its float64 reference."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 10)).eval()
    images = torch.randn(200, 3, 2, 2)
    with torch.no_grad():
        labels = network(images).argmax(1)
    held_out = Examples((images,), (labels,))
    return network, held_out, accuracy.reference(network, held_out, TASK)


def test_a_right_answer_keeps_its_bounds(known: tuple[Any, Examples, Any]) -> None:
    """What fp32 computes is within fp32's bounds of the reference."""
    network, held_out, reference = known
    outputs = accuracy.predict(lambda inputs: network(*inputs), held_out.inputs, 64)
    metrics, checks = accuracy.fidelity(outputs, reference, held_out.targets, DTYPES["fp32"].bounds, TASK)
    assert all(check.ok for check in checks)
    assert metrics["fidelity"] < 1e-5
    assert (metrics["agreement"], metrics["accuracy"]) == (1.0, 1.0)


def test_a_wrong_answer_is_caught(known: tuple[Any, Examples, Any]) -> None:
    """Outputs that belong to other images fail fidelity, agreement and accuracy."""
    _, held_out, reference = known
    other = (reference.outputs[0].roll(1, 0),)
    _, checks = accuracy.fidelity(other, reference, held_out.targets, DTYPES["bf16"].bounds, TASK)
    assert {check.name for check in checks if not check.ok} == {"fidelity", "agreement", "accuracy"}


def test_a_slightly_wrong_answer_is_caught_in_fp32_and_allowed_in_bf16(known: tuple[Any, Examples, Any]) -> None:
    """One per cent off is no rounding of fp32; bf16 may be as far away."""
    _, held_out, reference = known
    outputs = (reference.outputs[0] * 1.01,)
    failed = {
        dtype: {
            check.name
            for check in accuracy.fidelity(outputs, reference, held_out.targets, DTYPES[dtype].bounds, TASK)[1]
            if not check.ok
        }
        for dtype in ("fp32", "bf16")
    }
    assert failed == {"fp32": {"fidelity"}, "bf16": set()}


def test_a_stack_may_not_be_much_worse_than_stock_in_the_same_dtype(known: tuple[Any, Examples, Any]) -> None:
    """One per cent off is allowed in bf16 only where stock's own bf16 is off in the same order."""
    _, held_out, reference = known
    outputs = (reference.outputs[0] * 1.01,)
    checks = {
        rounding: accuracy.fidelity(outputs, reference, held_out.targets, DTYPES["bf16"].bounds, TASK, rounding)[1][0]
        for rounding in (3e-3, 1e-3)
    }
    assert checks[3e-3].ok
    assert not checks[1e-3].ok
    assert checks[1e-3].expected == "at most 5.0e-03 (stock, eager, same dtype: 1.0e-03)"
    worse = accuracy.fidelity(
        (reference.outputs[0] * 1.3,), reference, held_out.targets, DTYPES["bf16"].bounds, TASK, 1.0
    )[1][0]
    assert not worse.ok, "a stock that is wrong itself excuses nobody"


@pytest.mark.parametrize(
    ("off", "dtype", "rounding", "ok"),
    [(1.13, "bf16", 0.08, True), (1.17, "bf16", 0.08, False), (1.05, "bf16", 0.02, False), (1.13, "fp32", 0.08, False)],
)
def test_a_network_that_rounding_moves_far_may_be_twice_as_far_off(
    known: tuple[Any, Examples, Any], off: float, dtype: str, rounding: float, ok: object
) -> None:
    """As MobileNet v2 is in bf16, on either stack; fp32 has no such excuse."""
    _, held_out, reference = known
    outputs = (reference.outputs[0] * off,)
    assert accuracy.fidelity(outputs, reference, held_out.targets, DTYPES[dtype].bounds, TASK, rounding)[1][0].ok is ok


def test_a_nan_is_caught_and_is_no_metric(known: tuple[Any, Examples, Any]) -> None:
    """One NaN among the outputs fails fidelity, and no NaN goes into the record."""
    _, held_out, reference = known
    outputs = reference.outputs[0].clone()
    outputs[3, 4] = math.nan
    metrics, checks = accuracy.fidelity((outputs,), reference, held_out.targets, DTYPES["bf16"].bounds, TASK)
    assert not next(check for check in checks if check.name == "fidelity").ok
    assert "fidelity" not in metrics
    assert all(math.isfinite(value) for value in metrics.values())


def test_prediction_keeps_the_shape_of_the_case(known: tuple[Any, Examples, Any]) -> None:
    """Every forward sees exactly the case's batch, and the filling of the last one is cut off again."""
    _, held_out, _ = known
    (images,) = held_out.inputs
    seen = []

    def forward(inputs: Any) -> Any:
        (part,) = inputs
        seen.append(len(part))
        return part.flatten(1)

    (outputs,) = accuracy.predict(forward, held_out.inputs, 64)
    assert seen == [64] * 4
    assert (outputs == images.flatten(1).double()).all()


def test_whatever_holds_tensors_is_an_answer() -> None:
    """A tensor, a tuple, a mapping and a dataclass of them are the same; nothing, and a text, are no answer."""
    first, second = torch.zeros(2), torch.ones(2)

    @dataclasses.dataclass
    class Answer:
        logits: object
        note: str
        more: object

    for raw in ((first, second), [first, [second]], {"a": first, "b": second}, Answer(first, "x", (second,))):
        flat = tensors(raw)
        assert [value is known for value, known in zip(flat, (first, second), strict=True)] == [True, True]
    with pytest.raises(WorkerError, match="answers with nothing, and a tensor was expected"):
        tensors(None)
    with pytest.raises(WorkerError, match="a str that holds no tensor"):
        tensors("yes")


def test_the_trivial_answer_is_the_class_that_most_examples_have() -> None:
    """What training has most of is said to everything, and judged on the held-out examples."""
    images = torch.zeros(4, 1)
    split = Split(
        Examples((images,), (torch.tensor([2, 2, 2, 0]),)), Examples((images,), (torch.tensor([2, 0, 0, 0]),))
    )
    assert TASK.trivial(split) == 0.25
    assert TASK.floor(0.25) == pytest.approx(0.5)


def test_training_that_learns_nothing_is_caught() -> None:
    """A loss that doesn't fall, an accuracy near the trivial answer's, or a NaN loss each fail their check."""
    task = (TASK, 0.1)
    falling = [2.3 - 0.02 * step for step in range(100)]
    assert all(check.ok for check in accuracy.learned(0.9, falling, *task)[1])
    assert [check.ok for check in accuracy.learned(0.9, falling[::-1], *task)[1]] == [False, True]
    assert [check.ok for check in accuracy.learned(0.1, falling, *task)[1]] == [True, False]
    metrics, checks = accuracy.learned(0.9, [2.3, math.nan], *task)
    assert not checks[0].ok
    assert "loss" not in metrics


def digits_path() -> str:
    path, why_not = Digits().find(None)
    assert why_not is None
    assert path is not None
    return path


def test_the_digits_are_all_there_and_the_held_out_ones_are_not_trained_on() -> None:
    """1,797 digits of ten classes; training and held-out images share not one."""
    split = Digits().read(digits_path(), 8)
    assert len(split.train) + len(split.test) == 1797
    assert len(split.test) == len(split.test.targets[0]) == 360
    assert split.train.inputs[0].shape[1:] == (3, 8, 8)
    assert set(split.train.targets[0].tolist()) == set(split.test.targets[0].tolist()) == set(range(10))
    train, test = (
        {image.numpy().tobytes() for image in part} for part in (split.train.inputs[0], split.test.inputs[0])
    )
    assert not train & test
    assert float(split.train.inputs[0].min()) >= -1
    assert float(split.train.inputs[0].max()) <= 1


def test_a_checkpoint_comes_back(tmp_path: Path) -> None:
    """Weights that were saved are the weights that are loaded; those of another network are refused."""
    saved, loaded = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    torch.save(saved.state_dict(), tmp_path / "good.pt")
    weights.load(loaded, str(tmp_path / "good.pt"))
    assert torch.equal(saved.weight, loaded.weight)
    with pytest.raises(WorkerError, match=r"good\.pt holds the weights of another network: delete it"):
        weights.load(torch.nn.Linear(3, 2), str(tmp_path / "good.pt"))
    torch.save(torch.ones(3), tmp_path / "one.pt")
    with pytest.raises(WorkerError, match="the weights of another network"):
        weights.load(torch.nn.Linear(2, 2), str(tmp_path / "one.pt"))


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_checkpoint_that_is_cut_short_is_one_sentence(tmp_path: Path, share: float) -> None:
    """Wherever it ends, the file is named with what to do, and not what a reader of zip files says of it."""
    network, path = torch.nn.Linear(64, 64), tmp_path / "cut.pt"
    torch.save(network.state_dict(), path)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(WorkerError, match=r"cut\.pt is truncated or holds something other than tensors: delete it"):
        weights.load(network, str(path))


def test_a_full_memory_says_nothing_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays what it is: its outcome is out_of_memory, and nobody is told to delete a good file."""

    def full(*_: Any, **__: Any) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes")

    monkeypatch.setattr(weights.torch, "load", full)
    with pytest.raises(RuntimeError, match="can't allocate"):
        weights.restore(str(tmp_path / "good.pt"))


def test_the_address_of_weights_is_what_they_are_made_of(tmp_path: Path) -> None:
    """Other data, another size or version of the model, or a longer training, make another checkpoint."""
    model = registry.models.get("resnet18")
    data = tmp_path / "data.bin"
    data.write_bytes(b"one")
    first = weights.address(model, "digits", str(data), 8)
    assert weights.address(model, "digits", str(data), 8) == first
    assert weights.address(model, "digits", str(data), 16) != first
    assert weights.address(dataclasses.replace(model, version=2), "digits", str(data), 8) != first
    assert weights.address(dataclasses.replace(model, recipe_steps=67), "digits", str(data), 8) != first
    assert weights.address(dataclasses.replace(model, settles=2), "digits", str(data), 8) != first
    data.write_bytes(b"two")
    assert weights.address(model, "digits", str(data), 8) != first


def test_the_peak_of_a_case_on_the_cpu_is_what_it_took_and_not_the_libraries() -> None:
    """64 MiB that are taken and given back are the peak; what was resident before is a figure of its own."""
    sizes = alone("takes_memory.py")
    assert sizes["before"] > sizes["kept"]
    assert sizes["idle"] < 16 * 2**20
    assert 48 * 2**20 < sizes["peak"] < 80 * 2**20
    assert sizes["after"] == sizes["before"]
    assert sizes["still"] <= sizes["held"] < sizes["still"] + 2**20


CHANNELS = 4


def frozen() -> tuple[Any, Any]:
    """A convolution whose channels are then shuffled, as ShuffleNet does it: halves of a size are computed."""

    class Shuffled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convolution = torch.nn.Conv2d(3, CHANNELS, 3)

        def forward(self, images: Any) -> Any:
            features = self.convolution(images)
            count, channels, height, width = features.size()
            turned = features.view(count, 2, channels // 2, height, width).transpose(1, 2).contiguous()
            return turned.view(count, channels, height, width)

    images = torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        return torch.jit.freeze(torch.jit.trace(Shuffled().eval(), images)), images


def test_a_network_that_computes_with_its_sizes_is_placed() -> None:
    """Weight and bias are its constants; the twos by which sizes are divided lie nowhere."""
    network, images = frozen()
    with torch.no_grad():
        check = label.placed(network, [images], network(images), "cpu")
    assert check.ok
    assert all(isinstance(value, torch.Tensor) for _, value in label._constants(network))
    assert {CHANNELS} <= {value.shape[0] for _, value in label._constants(network) if value.dim()}


def test_a_weight_that_lies_elsewhere_is_still_seen() -> None:
    """The same graph is not on a card that it was never put on."""
    network, images = frozen()
    with torch.no_grad():
        check = label.placed(network, [images], network(images), "xpu")
    assert not check.ok
    assert "constants on cpu" in check.found
