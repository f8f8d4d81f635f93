"""Training, as it is written: zero the gradients, forward under autocast, loss, backward, optimizer step."""

from __future__ import annotations

from typing import Any

from ipexperf.bench import accuracy, proof, registry, weights
from ipexperf.bench.facts import Facts
from ipexperf.bench.kinds import Cell, Mode, Session, Workbench
from ipexperf.bench.lazy import torch
from ipexperf.bench.precision import autocast
from ipexperf.result import Check

MOMENTUM = 0.9


class TrainSession(Session):
    """The timed steps are the training: what they learned is what accuracy looks at."""

    def __init__(self, bench: Workbench) -> None:
        case = bench.case
        self.bench = bench
        self.split = weights.read(bench)
        self.format = torch.channels_last if bench.model.channels_last else torch.contiguous_format
        torch.manual_seed(bench.settings.seed)
        network = bench.model.build().train().to(memory_format=self.format)
        network = bench.device.put(network)
        optimizer = torch.optim.SGD(network.parameters(), lr=bench.model.learning_rate, momentum=MOMENTUM)
        self.loss = torch.nn.CrossEntropyLoss()
        self.network, self.optimizer = bench.stack.for_training(network, optimizer, case.dtype)
        self.scaler = torch.amp.GradScaler(case.device, enabled=case.dtype == "fp16")
        self.feed = weights.batches(self.split, case.batch, bench.settings.seed)
        self.losses: list[Any] = []
        # What the optimizer holds, not network.parameters(): IPEX leaves unpacked twins there that nobody trains.
        self.trained = [value for group in self.optimizer.param_groups for value in group["params"]]
        self.start = [value.detach().clone() for value in self.trained]

    def step(self) -> None:
        put = self.bench.device.put
        images, labels = next(self.feed)
        images, labels = put(images.to(memory_format=self.format)), put(labels)
        self.optimizer.zero_grad(set_to_none=True)
        with autocast(self.bench.case.device, self.bench.case.dtype):
            loss = self.loss(self.network(images), labels)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.losses.append(loss.detach())

    def accuracy(self) -> tuple[dict[str, float], list[Check]]:
        """Trains on to the agreed number of steps, then looks at images that training never saw."""
        target = self.bench.settings.train_steps
        while len(self.losses) < target:
            if len(self.losses) % 20 == 0:
                self.bench.say(f"training on to step {target}, at {len(self.losses)}")
            self.step()
        self.network.eval()
        put = self.bench.device.put

        def forward(images: Any) -> Any:
            with torch.no_grad(), autocast(self.bench.case.device, self.bench.case.dtype):
                return self.network(images)

        outputs = accuracy.predict(
            forward,
            self.split.test_images,
            self.bench.case.batch,
            lambda images: put(images.to(memory_format=self.format)),
        )
        reached = accuracy.right(outputs, self.split.test_labels)
        return accuracy.learned(reached, [float(loss) for loss in self.losses], self.bench.dataset)

    def proof(self) -> list[Check]:
        case = self.bench.case
        checks = [
            proof.device_of(self.trained[0], case.device),
            proof.dtype_of_kernels(self.bench.stack.kernel_dtypes(self.step, case.device), case.dtype),
            *self.bench.stack.proof_of_training(self.network, self.optimizer, case.dtype),
        ]
        pairs = zip(self.start, self.trained, strict=True)
        moved = sum(1 for before, after in pairs if not torch.equal(before, after.detach()))
        total = len(self.start)
        return [*checks, Check("weights_move", moved == total, f"{moved} of {total} parameters", f"all {total}")]


class Train(Mode):
    name = "train"
    trains = True

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        del facts
        return "int8 is for inference: there is no int8 training" if cell.dtype == "int8" else None

    def open(self, bench: Workbench) -> Session:
        return TrainSession(bench)


registry.modes.add("train", Train())
