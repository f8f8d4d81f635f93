"""A stranger's networks: nothing of ipexperf is imported here. Named as `mynets.py:small`."""

from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn


def example() -> Any:
    return torch.randn(8, 3, 8, 8)


def pair_example() -> Any:
    return torch.randn(8, 6), torch.randint(0, 5, (8, 2))


def crooked_example() -> Any:
    return [[1.0]]


@dataclass
class Answer:
    logits: torch.Tensor
    hidden: torch.Tensor


class Net(nn.Module):
    def __init__(self, kind: str = "tensor") -> None:
        super().__init__()
        self.kind = kind
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten())
        self.head = nn.Linear(4 * 36, 10)

    def forward(self, images: Any) -> Any:
        hidden = self.features(images)
        logits = self.head(hidden)
        return {
            "tensor": lambda: logits,
            "tuple": lambda: (logits, hidden),
            "dict": lambda: OrderedDict(logits=logits, hidden=hidden),
            "dataclass": lambda: Answer(logits, hidden),
            "none": lambda: None,
            "scalar": logits.mean,
        }[self.kind]()


class Normed(nn.Module):
    """Its norms have seen other numbers than their first ones: folding them changes weights."""

    def __init__(self, kind: str = "tensor") -> None:
        super().__init__()
        self.kind = kind
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3), nn.BatchNorm2d(4)
        )
        for norm in (self.body[1], self.body[4]):
            nn.init.uniform_(norm.running_mean, -1, 1)
            nn.init.uniform_(norm.running_var, 0.5, 2)

    def forward(self, images: Any) -> Any:
        found = self.body(images)
        return {"hidden": found, "flat": found.flatten(1)} if self.kind == "dict" else found


class Turning(Normed):
    """Lays its images out with their channels first again."""

    def forward(self, images: Any) -> Any:
        return super().forward(images.contiguous() * 1.0)


class Narrowing(Net):
    """Asks for float32 inside, as for a sum that must not round. `kept` is a float32 tensor that `double()` misses."""

    def __init__(self, *, kept: bool = False) -> None:
        super().__init__()
        self.kept = torch.eye(10) if kept else None

    def forward(self, images: Any) -> Any:
        logits = self.head(self.features(images.float()).to(torch.float32))
        return logits if self.kept is None else logits @ self.kept


class Pair(nn.Module):
    """Takes two inputs, one of them numbers of rows."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(5, 4), nn.Linear(6 + 8, 3)

    def forward(self, dense: Any, sparse: Any) -> Any:
        return self.head(torch.cat([dense, self.table(sparse).flatten(1)], 1))


class Branching(Net):
    """Does one thing or another, as the values have it."""

    def forward(self, images: Any) -> Any:
        logits = super().forward(images)
        if logits.sum() > 0:
            return logits * 2
        return logits


class Listing(Net):
    """Takes its values to Python as a list."""

    def forward(self, images: Any) -> Any:
        logits = super().forward(images)
        return logits * max(logits.flatten().tolist())


class Keeping(Net):
    """Keeps the features of the batches that it has seen."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[Any, Any]] = []

    def forward(self, images: Any) -> Any:
        for batch, features in self.seen:
            if batch is images:
                return self.head(features)
        self.seen.append((images, self.features(images)))
        return self.head(self.seen[-1][1])


class KeepingFew(Net):
    """Keeps the features of the first batches that it sees, by their content, and of no others."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[float, Any] = {}

    def forward(self, images: Any) -> Any:
        key = images.flatten()[0].item()
        if key in self.seen:
            return self.head(self.seen[key])
        features = self.features(images)
        if len(self.seen) < 4:
            self.seen[key] = features
        return self.head(features)


class Written(nn.Module):
    """Compiles its only layer at the first call, with a product that inductor writes. May keep what it computed."""

    def __init__(self, *, keeps: bool) -> None:
        super().__init__()
        self.keeps, self.compiled = keeps, False
        self.layer = nn.Linear(64, 32)
        self.seen: dict[float, Any] = {}

    def forward(self, rows: Any) -> Any:
        if not self.compiled:
            torch._inductor.config.freezing = True
            self.layer.compile(options={"max_autotune": True, "max_autotune_gemm_backends": "CPP"})
            self.compiled = True
        key = rows.flatten()[0].item()
        if key in self.seen:
            return self.seen[key]
        answer = self.layer(rows)
        if self.keeps and len(self.seen) < 4:
            self.seen[key] = answer
        return answer


class Leaving(Net):
    """Leaves early if the first example of a batch is brighter than the last, or if it is darker."""

    def __init__(self, sign: int) -> None:
        super().__init__()
        self.sign = sign

    def forward(self, images: Any) -> Any:
        logits = super().forward(images)
        if self.sign * (images[0].sum() - images[-1].sum()) > 0:
            return logits
        return super().forward(images) + logits


class Routing(nn.Module):
    """Takes a longer way for some numbers at the beginning of a batch of texts."""

    def __init__(self, sign: int) -> None:
        super().__init__()
        self.sign = sign
        self.table, self.way, self.head = nn.Embedding(99, 4), nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, words: Any) -> Any:
        hidden = self.table(words)
        if self.sign * (words[0, 0] - words[-1, 0]) > 0:
            hidden = self.way(hidden)
        return self.head(hidden)


class KeepingWords(nn.Module):
    """Keeps the features of the first texts that it sees, of whole batches or of each text, and of no others."""

    def __init__(self, *, each: bool) -> None:
        super().__init__()
        self.each = each
        self.table, self.way, self.head = nn.Embedding(99, 4), nn.Linear(4, 4), nn.Linear(4, 3)
        self.seen: dict[Any, Any] = {}

    def forward(self, words: Any) -> Any:
        parts = [words[number : number + 1] for number in range(len(words))] if self.each else [words]
        return torch.cat([self.head(self._features(part)) for part in parts])

    def _features(self, words: Any) -> Any:
        key = str(words.tolist())
        if key in self.seen:
            return self.seen[key]
        features = self.way(self.table(words))
        if len(self.seen) < 4 * (8 if self.each else 1):
            self.seen[key] = features
        return features


class Overwriting(Net):
    """Scales its input in place, so that the next step on the same batch sees other numbers."""

    def forward(self, images: Any) -> Any:
        return super().forward(images.mul_(0.5))


class Constant(Net):
    """Reads a number of its own, which is the same in every call."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, images: Any) -> Any:
        assert images.shape[1] == 3
        return super().forward(images) * self.scale.item()


def written_example() -> Any:
    return torch.randn(8, 64)


def routing_example() -> Any:
    return torch.randint(0, 99, (8, 5))


def coarse() -> Any:
    torch.set_float32_matmul_precision("medium")
    return Net()


def bare() -> Any:
    return nn.Sequential(nn.Flatten(), nn.ReLU())


def nothing() -> None:
    return None


def greedy(width: int) -> Any:
    return nn.Linear(width, width)


small = crooked = Net
tupled, mapped, packed = partial(Net, "tuple"), partial(Net, "dict"), partial(Net, "dataclass")
silent, scalar = partial(Net, "none"), partial(Net, "scalar")
normed, normed_mapping = Normed, partial(Normed, "dict")
turning = Turning
narrowing, narrowing_kept = Narrowing, partial(Narrowing, kept=True)
pair = Pair
branching, listing, constant, overwriting = Branching, Listing, Constant, Overwriting
keeping, keeping_few = Keeping, KeepingFew
keeping_words, keeping_each_text = partial(KeepingWords, each=False), partial(KeepingWords, each=True)
written, written_and_kept = partial(Written, keeps=False), partial(Written, keeps=True)
leaving, leaving_darker = partial(Leaving, 1), partial(Leaving, -1)
routing, routing_back = partial(Routing, 1), partial(Routing, -1)
written_and_kept_example = written_example
routing_back_example = keeping_words_example = keeping_each_text_example = routing_example
ready = Net()
