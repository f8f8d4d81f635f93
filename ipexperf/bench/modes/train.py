"""Training: zero the gradients, forward under autocast, loss, backward, optimizer step."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from ipexperf.bench import optimizers, registry
from ipexperf.bench.api import Kernel, Look, Mode, Session, Stack, Workbench
from ipexperf.bench.artifacts import weights
from ipexperf.bench.cell import Cell
from ipexperf.bench.device import Device
from ipexperf.bench.knob import CHANNELS_LAST
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.model import Examples, Tensors
from ipexperf.bench.modes import _curve, _input
from ipexperf.bench.precision import autocast, script_of_autocast
from ipexperf.dtypes import CURVE_STEPS, DTYPES, needs_scaler
from ipexperf.proof import accuracy, fingerprint, float32, instructions, label, work
from ipexperf.proof.work import Work
from ipexperf.result import Check

PROVEN_STEPS = 3
"""Number of steps after the samples that are checked one by one: each must change the weights."""
SKIPPED = 20
"""A gradient scaler may skip one in so many steps."""


class TrainSession(Session):
    """The timed steps are part of the training whose result is scored."""

    def __init__(self, bench: Workbench) -> None:
        case = bench.case
        self.bench = bench
        self.split = weights.read(bench)
        torch.manual_seed(bench.settings.seed)
        network = bench.device.put(bench.laid_out(bench.tuned(bench.built().train())))
        optimizer = optimizers.make(bench.knob("optimizer"), optimised_parameters(network), bench.model)
        self.optimised, self.optimizer = bench.stack.for_training(network, optimizer, bench)
        self.network = self.for_steps(self.optimised)
        self.accumulate = int(bench.knob("accumulate"))
        self.scaler = torch.amp.GradScaler(case.device, enabled=needs_scaler(case.dtype))
        self.feed = _input.feed(bench, self.split.train.tensors, self.order())
        self.losses: list[Any] = []
        # The optimizer's parameters, not network.parameters(), where IPEX leaves unpacked copies that are not trained.
        self.trained = [
            value for group in self.optimizer.param_groups for value in group["params"] if value.requires_grad
        ]
        self.self_updated = self_updated_parameters(self.optimised)
        self.trained += self.self_updated
        self.start = [value.detach().clone() for value in self.trained]
        self.updates = UpdateCounter(self.optimizer, self.scaler, self.accumulate)

    def order(self) -> Iterator[Any]:
        """Yield the example indices of this process' batches: all batches if it trains alone."""
        return _curve.order(self.bench, self.split, 0, 1)

    def for_steps(self, network: Any) -> Any:
        """Return the network for steps. Overridden where it is not the optimised one itself."""
        return network

    def without_update(self) -> AbstractContextManager[Any]:
        """Context for a batch that no update follows, so that exchanging gradients can wait."""
        return nullcontext()

    def step(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        parts = []
        for _ in range(self.accumulate - 1):
            with self.without_update():
                parts.append(self._batch())
        parts.append(self._batch())
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.updates.steps += 1
        self.losses.append(parts[0] if len(parts) == 1 else torch.stack(parts).sum())

    def _batch(self) -> Any:
        """Run forward and backward of one batch. Return its share of the step's loss."""
        batch = next(self.feed)
        count = len(self.split.train.inputs)
        self.updates.batches += 1
        with autocast(self.bench.case.device, self.bench.case.dtype):
            loss, outputs = self.bench.task.learn(self.network, batch[:count], batch[count:])
        self.last = batch, tuple(value.detach() for value in outputs)
        if self.accumulate > 1:
            loss = loss / self.accumulate
        self.scaler.scale(loss).backward()
        return loss.detach()

    def batch(self) -> Examples | None:
        batch, count = next(self.feed), len(self.split.train.inputs)
        return Examples(batch[:count], batch[count:])

    def items(self, batch: int) -> int:
        return batch * self.accumulate

    def sample(self, synchronise: Callable[[], None], count: int, block: int) -> list[tuple[float, float, float]]:
        """Time blocks of steps, and count their updates outside the timed part."""
        with self.updates.sampling(count * block):
            return super().sample(synchronise, count, block)

    def metrics(self) -> dict[str, float]:
        return _input.waited(self)

    def notes(self) -> list[str]:
        stack = self.bench.stack
        notes = [*stack.notes(self.bench), *stack.notes_of_training(self.optimizer, self.bench)]
        notes += self.bench.task.notes(self.bench.case.device)
        return [*notes, *notes_of_self_updated(self.optimised), *instructions.notes(self.bench.case)]

    def close(self) -> None:
        self.feed.close()

    def accuracy(self) -> tuple[dict[str, float], list[Check]]:
        """Train on to the declared number of steps, then check the losses and the held-out examples."""
        self.train_on()
        metrics, checks = self.learned()
        curve = _curve.check(self.bench, self.split, [_curve.first_losses(self.losses)], self.skipped())
        return metrics, [*checks, curve]

    def skipped(self) -> list[int]:
        """Return which of the compared steps a gradient scaler skipped."""
        return self.updates.skipped(CURVE_STEPS)

    def train_on(self) -> None:
        """Train on to the declared number of steps."""
        target = self.bench.settings.train_steps or self.bench.model.train_steps
        while len(self.losses) < target:
            if len(self.losses) % 20 == 0:
                self.bench.say(f"training on to step {target}, at {len(self.losses)}")
            left = target - len(self.losses)
            optimizers.settle(self.optimizer, self.bench.knob("optimizer"), self.bench.model, left)
            self.step()

    def learned(self) -> tuple[dict[str, float], list[Check]]:
        """Check the result of training: falling losses, and correct answers for held-out examples if they are known."""
        self.optimised.eval()
        case, task, test = self.bench.case, self.bench.task, self.split.test

        def forward(inputs: Tensors) -> Any:
            with autocast(case.device, case.dtype):
                return self.optimised(*inputs)

        outputs = accuracy.predict(forward, test.inputs, case.batch, self.bench.put)
        reached = task.score(outputs, test.targets)
        losses = [float(loss) for loss in self.losses]
        metrics, checks = accuracy.learned(reached, losses, task, task.trivial(self.split))
        return metrics, [*checks, *self._checkpoint(outputs)]

    def _checkpoint(self, trained: Tensors) -> list[Check]:
        """Save a checkpoint, load it into an untouched fp32 network, and compare its score, or its agreement."""
        path = self.bench.settings.checkpoint
        if path is None:
            return []
        weights.save(self.optimised, self.optimizer, path)
        fresh = self.bench.built().eval()
        fresh.load_state_dict(weights.restore(path)["model"])
        task, test = self.bench.task, self.split.test
        outputs = accuracy.predict(lambda inputs: fresh(*inputs), test.inputs, accuracy.PART)
        graded = [
            task.score(answers, test.targets) if task.scored else task.agreement(answers, trained)
            for answers in (outputs, trained)
        ]
        score, reached = graded
        ok = abs(score - reached) <= accuracy.DROP
        return [Check("checkpoint", ok, f"{score:.4f} when loaded", f"{reached:.4f} within {accuracy.DROP}")]

    def looks(self, device: Device) -> Mapping[str, Look]:
        batch = self.bench.case.batch
        items, taught = self.items(batch), self.split.train.part(slice(batch)).tensors
        return {**fingerprint.of_step(self.step, device), "flops": lambda: fingerprint.flops(self.work, items, taught)}

    @functools.cached_property
    def work(self) -> Work:
        """The work of a step, counted on the host in the untouched network, without the update."""
        return work.counted_once(self.bench, "training", self.counted)

    def counted(self) -> Work:
        """Count the work of a step in this process."""
        network = self.bench.model.build().train()
        return work.count(lambda: self._plain(network), network)

    def _plain(self, network: Any) -> None:
        """Run the batches of a step, forward and backward, through the untouched network on the host."""
        input_count, batch = len(self.split.train.inputs), [value.cpu().contiguous() for value in self.last[0]]
        for _ in range(self.accumulate):
            loss, _ = self.bench.task.learn(network, tuple(batch[:input_count]), tuple(batch[input_count:]))
            loss.backward()

    def _plain_kernels(self) -> list[Kernel]:
        """Return the arithmetic kernels of the untouched network, in the case's memory layout."""
        network = self.bench.device.put(self.bench.laid_out(self.bench.model.build().train()))
        inputs = self.last[0][: len(self.split.train.inputs)]
        return label.profiled(lambda: network(*inputs))

    def kernels(self) -> list[Kernel]:
        """Return the arithmetic kernels that one step really ran."""
        return label.of_stack(self.step, self.bench)

    def proof(self) -> list[Check]:
        case = self.bench.case
        kernels = self.kernels()
        checks = [
            label.placed(self.optimised, [*self.last[0], *self.trained], self.last[1], case.device),
            self.feed.proof(self.step),
            label.dtype_of_kernels(kernels, case.dtype),
            *float32.proof(case.dtype, case.device),
            *label.layout_of_kernels(
                kernels,
                channels_last=self.bench.channels_last,
                plain=self._plain_kernels if self.bench.model.target else None,
            ),
            *instructions.proof(self.step, case),
            *label.operators(self.step, self.bench.operators),
            *self.bench.stack.proof_of_training(self.optimised, self.optimizer, self.bench),
            *check_self_updated(self.optimised, self.optimizer, self.start[len(self.start) - len(self.self_updated) :]),
        ]
        moved, total = self.moved(self.start), len(self.start)
        effective = sum(self._moves() for _ in range(PROVEN_STEPS))
        return [
            *checks,
            Check("weights_move", moved == total, f"{moved} of {total} parameters", f"all {total}"),
            *self.updates.proof(effective, PROVEN_STEPS),
        ]

    def moved(self, before: list[Any]) -> int:
        """Count the trained parameters that changed."""
        pairs = zip(before, self.trained, strict=True)
        return sum(not torch.equal(value, now.detach()) for value, now in pairs)

    def _moves(self) -> bool:
        """Whether another step changes the weights."""
        before = [value.detach().clone() for value in self.trained]
        self.step()
        return self.moved(before) > 0


def untrainable(cell: Cell) -> str | None:
    """Return why no stack can train this, or None."""
    if DTYPES[cell.dtype].curve is None:
        return f"{cell.dtype} is for inference: there is no {cell.dtype} training"
    if needs_scaler(cell.dtype) and cell.device == "cpu":
        return f"{cell.dtype} training on a CPU skips every step of its gradient scaler: use bf16"
    return None


class Train(Mode):
    name = "train"
    trains = True
    knobs = (CHANNELS_LAST, *optimizers.KNOBS, *_input.KNOBS)

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        return untrainable(cell)

    def script(self, cell: Cell, stack: Stack) -> tuple[str, ...]:
        model = registry.models.get(cell.model)
        context = script_of_autocast(cell.device, cell.dtype)
        loss = "    loss = loss_of(model(*inputs), targets)"
        return (
            *optimizers.script(cell.knob("optimizer") or model.optimizer, model),
            *self.prepared(cell, stack),
            "for inputs, targets in batches:",
            "    optimizer.zero_grad()",
            *((f"    with {context}:", f"    {loss}") if context else (loss,)),
            "    loss.backward()",
            "    optimizer.step()",
        )

    def prepared(self, cell: Cell, stack: Stack) -> tuple[str, ...]:
        """Return the lines of a user's script that make `model` what the steps run."""
        return stack.script("for_training", cell)

    def open(self, bench: Workbench) -> Session:
        return TrainSession(bench)


class UpdateCounter:
    """Counts the updates of sampled steps. Inside the timed part it only increments counters."""

    def __init__(self, optimizer: Any, scaler: Any, accumulate: int) -> None:
        self._optimizer = optimizer
        self._scaler = scaler
        self._accumulate = accumulate
        self._applied: list[int] = []
        self._asked = self._made = self._taken = 0
        self.steps = 0
        self.batches = 0
        if scaler.is_enabled():
            # The scaler calls the optimizer only if the gradients are finite.
            optimizer.register_step_post_hook(lambda *_: self._applied.append(self.steps))

    def skipped(self, steps: int) -> list[int]:
        """Return which of the first steps, counted from 0, the gradient scaler skipped."""
        return sorted({*range(min(steps, self.steps))} - {*self._applied}) if self._scaler.is_enabled() else []

    def _updates(self) -> int | None:
        """Return how often the optimizer was called, or as it counts itself. None: it does not count."""
        return len(self._applied) if self._scaler.is_enabled() else optimizers.updates(self._optimizer)

    @contextmanager
    def sampling(self, steps: int) -> Iterator[None]:
        """Record what is done in the block, in which this many steps are asked for."""
        steps_before, batches_before, updates_before = self.steps, self.batches, self._updates()
        yield
        made, updates = self.steps - steps_before, self._updates()
        if updates is not None:
            made = min(made, updates - (updates_before or 0))
        self._asked += steps
        self._made += made
        self._taken += self.batches - batches_before

    @property
    def _lost(self) -> int:
        """Return how many of the sampled steps a gradient scaler may skip.

        It does when it tries a larger scale after many good steps, and when gradients grow while a network learns. It
        saves an update, about a fifth of a step, so the mean of 20 steps is still within one per cent.
        """
        if not self._scaler.is_enabled():
            return 0
        return self.steps // int(self._scaler.get_growth_interval()) + self._asked // SKIPPED

    def proof(self, effective: int, looked_at: int) -> list[Check]:
        """Check that each sampled step was an update with an effect, of the right number of batches."""
        batches = self._asked * self._accumulate
        ok = self._made >= self._asked - self._lost and self._taken == batches and effective == looked_at
        lost = f" but {self._lost} that the scaler may lose" if self._lost else ""
        checks = [
            Check(
                "steps",
                ok,
                f"{self._made} updates over {self._taken} batches, {effective} of {looked_at} more moved the weights",
                f"{self._asked} updates{lost} over {batches} batches, and all {looked_at} more",
            )
        ]
        if self._scaler.is_enabled():
            scale = float(self._scaler.get_scale())
            checks.append(Check("loss_scale", math.isfinite(scale) and scale > 0, f"{scale:g}", "finite and over 0"))
        return checks


def self_updating_modules(network: Any) -> list[Any]:
    """Return the modules that declare that they update their parameters in their own backward, without an optimizer."""
    return [module for module in network.modules() if getattr(module, "updated_by", "")]


def self_updated_parameters(network: Any) -> list[Any]:
    """Return the parameters that such modules update."""
    return [value for module in self_updating_modules(network) for value in module.parameters()]


def optimised_parameters(network: Any) -> list[Any]:
    """Return the parameters for the optimizer."""
    self_updated = {id(value) for value in self_updated_parameters(network)}
    return [value for value in network.parameters() if id(value) not in self_updated]


def check_self_updated(network: Any, optimizer: Any, before: Sequence[Any]) -> list[Check]:
    """Check that the optimizer has none of them, and that they have no gradient and changed. No check without any.

    `before` are their values when training began.
    """
    self_updated = self_updated_parameters(network)
    if not self_updated:
        return []
    optimised = {id(value) for group in optimizer.param_groups for value in group["params"]}
    both = sum(id(value) in optimised or value.grad is not None for value in self_updated)
    moved = sum(not value.detach().equal(was) for value, was in zip(self_updated, before, strict=True))
    text = f"{moved} of {len(self_updated)} moved, {both} of them known to the optimizer or with a gradient"
    return [Check("updated_apart", moved == len(self_updated) and not both, text, f"all {len(self_updated)}, and none")]


def notes_of_self_updated(network: Any) -> list[str]:
    """Return a note on the parameters that the optimizer does not update."""
    kinds = sorted({module.updated_by for module in self_updating_modules(network)})
    if not kinds:
        return []
    count = len(self_updated_parameters(network))
    return [f"{count} parameters are updated in the backward of {', '.join(kinds)}, by no optimizer"]


registry.modes.add("train", Train())
