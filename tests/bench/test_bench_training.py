"""Training: each optimizer learns, every timed step is an update, and the losses are those of stock fp32."""

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from bench_cases import failed, named

from ipexperf.bench import optimizers
from ipexperf.bench.api import Workbench
from ipexperf.bench.artifacts import weights
from ipexperf.bench.cell import Settings
from ipexperf.bench.modes import _curve
from ipexperf.bench.modes.train import TrainSession, UpdateCounter
from ipexperf.bench.process.worker import workbench
from ipexperf.case import NetworkCase
from ipexperf.dtypes import CURVE_STEPS, DTYPES
from ipexperf.zoo.datasets.digits import Digits

pytestmark = [
    pytest.mark.torch,
    # The profiler's, where a machine has a part of a driver.
    pytest.mark.filterwarnings("ignore::UserWarning:torch"),
]

SMALL = Path(__file__).parents[1] / "fakes" / "small_training.py"
STOCK = [name for name in optimizers.RATES if name != "lamb"]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """A worker sets the threads of its process; this process is to keep its own."""
    import torch

    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def bench(dtype: str = "fp32", **knobs: str) -> Workbench:
    """The workbench of a small training in this process."""
    path, _ = Digits().find(None)
    settings = Settings(load=(str(SMALL),), threads=1, data_file=path, train_steps=100)
    case = NetworkCase("small", "cpu", dtype, "train", "stock", 16, 8, 1, "digits", tuple(sorted(knobs.items())))
    return workbench({"case": case.to_json(), "settings": asdict(settings)}, lambda _: None)


def sampled(session: TrainSession, steps: int = 4) -> TrainSession:
    """The session, after a worker has sampled it."""
    session.sample(lambda: None, steps // 2, 2)
    return session


@pytest.mark.parametrize("name", STOCK)
def test_each_optimizer_learns_and_is_proven(name: str) -> None:
    """Every optimizer of stock PyTorch keeps all proofs, learns the digits, and follows the curve of stock fp32."""
    session = sampled(TrainSession(bench(optimizer=name)))
    assert type(session.optimizer).__name__.lower() == name
    assert failed(session.proof()) == set()
    assert failed(session.accuracy()[1]) == set()


def test_bf16_follows_the_fp32_curve_from_afar() -> None:
    """Under autocast in bf16 the losses are other ones, and near enough."""
    session = sampled(TrainSession(bench("bf16")))
    assert failed(session.proof()) == set()
    _, checks = session.accuracy()
    assert failed(checks) == set()
    plain = _curve.reference(session.bench, session.split, 1, ())
    assert 0 < _curve.distance(_curve.first_losses(session.losses), plain) < 0.1


def test_accumulated_batches_are_one_step() -> None:
    """Three batches a step: the items count all, the updates do not, and the curve is that of their mean gradient."""
    session = sampled(TrainSession(bench(accumulate="3")))
    assert session.items(16) == 48
    proof = session.proof()
    assert failed(proof) == set()
    assert named(proof, "steps").found == "4 updates over 12 batches, 3 of 3 more moved the weights"
    assert failed(session.accuracy()[1]) == set()


@pytest.mark.parametrize(("settles", "ends"), [(0, 0.05), (50, 0.05 / 50)])
def test_a_model_that_settles_ends_with_the_smallest_of_steps(settles: int, ends: float) -> None:
    """Its learning rate falls to nothing over its last steps; that of any other model stays what it was."""
    made = bench()
    made = dataclasses.replace(made, model=dataclasses.replace(made.model, settles=settles))
    session = sampled(TrainSession(made))
    assert session.optimizer.param_groups[0]["lr"] == 0.05
    session.train_on()
    assert session.optimizer.param_groups[0]["lr"] == pytest.approx(ends)


def test_weights_settle_as_training_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever infers has weights of the same end."""
    rates = []
    step = torch_sgd().step

    def watched(self: Any, *arguments: Any) -> Any:
        rates.append(self.param_groups[0]["lr"])
        return step(self, *arguments)

    monkeypatch.setattr(torch_sgd(), "step", watched)
    made = bench()
    made = dataclasses.replace(made, model=dataclasses.replace(made.model, settles=2, recipe_steps=4))
    weights.steps(made, weights.read(made), made.built())
    assert rates == pytest.approx([0.05, 0.05, 0.05, 0.025])


def torch_sgd() -> Any:
    import torch

    return torch.optim.SGD


class Lazy(TrainSession):
    """Updates the weights in every other step only."""

    def step(self) -> None:
        update = self.optimizer.step
        if self.updates.steps % 2:
            self.optimizer.step = lambda: None
        super().step()
        self.optimizer.step = update


class Frozen(TrainSession):
    """Goes through all the motions with a learning rate of nothing."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench)
        for group in self.optimizer.param_groups:
            group["lr"] = 0.0


class Idle(TrainSession):
    """Skips whole steps once it is warm, as if they had been made."""

    def step(self) -> None:
        if self.updates.steps < 3:
            super().step()


class Short(TrainSession):
    """Takes one batch where it should take several."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench)
        self.accumulate = 1


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_an_update_that_is_left_out_now_and_then_is_caught(name: str) -> None:
    """Whether the optimizer counts its updates (Adam) or not (SGD), half of them missing fails the proof."""
    proof = sampled(Lazy(bench(optimizer=name))).proof()
    assert failed(proof) == {"steps"}


def test_a_training_that_moves_no_weight_is_caught() -> None:
    """A learning rate of nothing: optimizer steps happen, and no weight moves."""
    assert failed(sampled(Frozen(bench())).proof()) == {"weights_move", "steps"}


def test_steps_that_were_only_counted_are_caught() -> None:
    """Eight steps were sampled and three were made."""
    session = sampled(Idle(bench()), 8)
    assert session.updates.steps == 3
    (check,) = session.updates.proof(3, 3)
    assert not check.ok
    assert check.found.startswith("3 updates over 3 batches")
    assert check.expected.startswith("8 updates over 8 batches")


def test_a_step_over_fewer_batches_than_its_label_says_is_caught() -> None:
    """A step of four batches that takes one would be four times as fast."""
    session = Short(bench(accumulate="4"))
    assert "steps" in failed(sampled(session).proof())


def test_gradients_that_are_not_scaled_are_caught_by_the_curve() -> None:
    """The sum of four batches' gradients, where their mean is meant, trains: another training than stock's."""
    session = TrainSession(bench(accumulate="4"))
    for weight in session.trained:
        weight.register_hook(lambda gradient: 4 * gradient)
    session.train_on()
    assert not _curve.check(session.bench, session.split, [_curve.first_losses(session.losses)]).ok


def test_training_that_only_says_bf16_is_caught() -> None:
    """A network that switches autocast off runs in fp32 under the label bf16."""
    import torch

    session = TrainSession(bench("bf16"))
    network = session.network

    def wide(images: Any) -> Any:
        with torch.amp.autocast("cpu", enabled=False):
            return network(images)

    session.network = wide
    # A processor with instructions for bf16 did not use them either.
    assert {"dtype"} <= failed(sampled(session).proof()) <= {"dtype", "instructions"}


KNOWN = [2.3 - 0.1 * step for step in range(CURVE_STEPS)]


def followed(dtype: str, noise: float = 0.0, **changed: float) -> bool:
    """Whether a curve that differs in these steps, `at3=1.7`, is near enough to one that noise changes so much."""
    losses = [changed.get(f"at{step}", loss) for step, loss in enumerate(KNOWN)]
    noisy = [loss * (1 + noise) for loss in KNOWN]
    return _curve.followed(losses, KNOWN, noisy, DTYPES[dtype].curve).ok


def test_the_curve_is_held_as_closely_as_the_dtype_allows() -> None:
    """Half a per cent off in the first step is no rounding of fp32, and is one of bf16. NaN is never allowed."""
    assert followed("fp32")
    assert not followed("fp32", at0=KNOWN[0] * 1.005)
    assert followed("bf16", at0=KNOWN[0] * 1.005)
    assert not followed("fp32", at3=KNOWN[3] * 1.05)
    assert followed("bf16", at3=KNOWN[3] * 1.05)
    assert not followed("bf16", at9=math.nan)


def test_a_training_that_amplifies_noise_is_held_less_closely_but_never_loosely() -> None:
    """What noise does to stock's own curve is no fault of a stack's; beyond a bound nothing is excused by it."""
    assert followed("fp32", noise=0.02, at3=KNOWN[3] * 1.05)
    assert not followed("fp32", noise=0.02, at0=KNOWN[0] * 1.005)
    assert not followed("fp32", noise=0.02, at3=KNOWN[3] * 1.5)
    assert followed("fp32", noise=9.0, at3=KNOWN[3] * 1.3)
    assert not followed("fp32", noise=9.0, at9=KNOWN[9] * 4)
    assert not followed("fp32", noise=math.nan, at9=KNOWN[9] * 4)


def scaled(scale: float) -> tuple[Any, Any, Any, UpdateCounter]:
    """A parameter, its optimizer, a gradient scaler that begins at this scale, and the counter of the three."""
    import torch

    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=5)
    return weight, optimizer, scaler, UpdateCounter(optimizer, scaler, 1)


def scaled_steps(parts: tuple[Any, Any, Any, UpdateCounter], losses: list[float]) -> None:
    """Steps as a training makes them; a loss that is no number overflows the gradients."""
    weight, optimizer, scaler, counter = parts
    with counter.sampling(len(losses)):
        for loss in losses:
            optimizer.zero_grad()
            scaler.scale(weight.sum() * loss).backward()
            scaler.step(optimizer)
            scaler.update()
            counter.steps += 1
            counter.batches += 1


def test_a_step_that_the_gradient_scaler_skipped_is_caught() -> None:
    """The scaler says nothing when it skips: the optimizer was not called as often as steps were sampled."""
    parts = scaled(8.0)
    scaled_steps(parts, [1.0, math.inf, 1.0])
    checks = parts[-1].proof(3, 3)
    assert failed(checks) == {"steps"}
    assert named(checks, "steps").found.startswith("2 updates over 3 batches")
    assert named(checks, "loss_scale").found == "4"
    assert parts[-1].skipped(12) == [1]


@pytest.mark.parametrize(
    ("grows_after", "losses"), [(5, [1.0] * 5 + [math.inf]), (2000, [1.0] * 30 + [math.inf] + [1.0] * 9 + [math.inf])]
)
def test_a_scaler_may_lose_a_step_in_many(grows_after: int, losses: list[float]) -> None:
    """It tries a larger scale after many good steps, and gradients grow: one step in twenty may be lost."""
    parts = scaled(8.0)
    parts[2].set_growth_interval(grows_after)
    scaled_steps(parts, losses)
    assert failed(parts[-1].proof(3, 3)) == set()
    scaled_steps(parts, [math.inf])
    assert failed(parts[-1].proof(3, 3)) == {"steps"}


def test_a_scale_that_is_used_up_is_caught() -> None:
    """A training whose every gradient overflows halves its scale down to nothing."""
    parts = scaled(2.0**-140)
    scaled_steps(parts, [math.inf] * 20)
    assert failed(parts[-1].proof(0, 3)) == {"steps", "loss_scale"}


def test_the_reference_skips_what_the_scaler_skipped() -> None:
    """A step without an update leaves the next loss where the weights of the step before put it."""
    session = TrainSession(bench())
    all_made = _curve.reference(session.bench, session.split, 1, ())
    second_skipped = _curve.reference(session.bench, session.split, 1, [1])
    assert second_skipped[:2] == all_made[:2]
    assert second_skipped[2] != all_made[2]


def test_several_processes_share_the_batches_of_one() -> None:
    """Two processes have every other batch each, and their reference is one process that has all of them."""
    split, workbench = TrainSession(bench()).split, bench()
    first, second, both = (_curve.order(workbench, split, *shares) for shares in ((0, 2), (1, 2), (0, 1)))
    for _ in range(3):
        assert [next(first).tolist(), next(second).tolist()] == [next(both).tolist(), next(both).tolist()]
    accumulated = bench(accumulate="2")
    assert _curve.reference(workbench, split, 2, ()) == pytest.approx(_curve.reference(accumulated, split, 1, ()))
