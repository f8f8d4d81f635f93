"""Reading a text in an image: CTC loss, greedy decoding, accuracy of whole plates."""

from __future__ import annotations

from typing import Any

from ipexperf.ext import Split, Task, Tensors, register, torch

BLANK = 0
"""The blank of CTC, also used as padding after a text."""
RACES = "xpu", ("2.6.", "2.7.", "2.8.", "2.9.")
"""The device and the versions of torch whose CTC loss has a race, and is wrong: torch-xpu-ops #1737, #2074."""


class Plates(Task):
    """Outputs have the shape examples x characters x steps."""

    name = "plates"
    metric = "share of plates read without a mistake"
    unit = "24 x {0}"

    def loss(self, outputs: Tensors, targets: Tensors) -> Any:
        steps, texts = outputs[0].float().log_softmax(1).permute(2, 0, 1), targets[0]
        if _races(steps.device.type):
            steps, texts = steps.cpu(), texts.cpu()
        count, length = texts.shape
        lengths = [len(steps)] * count, [length] * count
        summed = torch.nn.functional.ctc_loss(steps, texts, *lengths, blank=BLANK, reduction="sum")
        return (summed / (count * length)).to(outputs[0].device)

    def notes(self, device: str) -> list[str]:
        fault = f"torch {torch.__version__}'s CTC loss is wrong on {device} (torch-xpu-ops #1737): the CPU computed it"
        return [f"{fault}, and torch 2.10 has it right"] if _races(device) else []

    def agreement(self, outputs: Tensors, reference: Tensors) -> float:
        """Return the share of plates that are read alike, correctly or not."""
        return _alike(decoded(outputs[0]), decoded(reference[0]))

    def score(self, outputs: Tensors, targets: Tensors) -> float:
        texts = decoded(outputs[0])
        missing = texts.shape[1] - targets[0].shape[1]
        return _alike(texts, torch.nn.functional.pad(targets[0], (0, missing), value=BLANK))

    def trivial(self, split: Split) -> float:
        """Return the score of the most frequent plate in training: 0 if all plates differ."""
        plates, counts = split.train.targets[0].unique(dim=0, return_counts=True)
        return _alike(split.test.targets[0], plates[counts.argmax()].expand_as(split.test.targets[0]))


def _races(device: str) -> bool:
    return device == RACES[0] and torch.__version__.startswith(RACES[1])


def decoded(logits: Any) -> Any:
    """Decode greedily: the best character of each step, without repeats and blanks, padded with blanks."""
    best = logits.argmax(1)
    changed = torch.ones_like(best, dtype=torch.bool)
    changed[:, 1:] = best[:, 1:] != best[:, :-1]
    spoken = changed & (best != BLANK)
    first = (~spoken).byte().argsort(dim=1, stable=True)
    return best.masked_fill(~spoken, BLANK).gather(1, first)


def _alike(texts: Any, reference: Any) -> float:
    return float((texts == reference).all(1).double().mean())


register(Plates())
