"""Kinds of change that people make in their own code, up to ten variants each, as edits of the project beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from road import build

MODEL, BLOCKS, DATA = "net/model.py", "net/blocks.py", "net/data.py"


@dataclass(frozen=True)
class Change:
    """An edit, and what a run must say of it: `slower`, `memory`, `answers`, or nothing."""

    kind: str
    variant: int
    wanted: str
    edits: tuple[tuple[str, str, str], ...]
    """File, old text, new text. An empty old text makes a new file."""

    def apply(self, folder: Path) -> None:
        for file, old, new in self.edits:
            path = folder / file
            text = path.read_text() if old else ""
            if old and text.count(old) != 1:
                raise ValueError(f"{self.kind} {self.variant}: {file} has {text.count(old)} times {old!r}")
            path.write_text(text.replace(old, new) if old else new)
        build(folder)


def extra_copy(n: int) -> tuple[tuple[str, str, str], ...]:
    copies = "\n".join(["        y = (y + 0.0).clone()"] * (n + 2))
    return ((BLOCKS, "        y = self.norm(self.second(y))", f"{copies}\n        y = self.norm(self.second(y))"),)


def lost_fusion(n: int) -> tuple[tuple[str, str, str], ...]:
    """The same function, written out in elementary operations."""
    gelu = "0.5 * x * (1 + torch.erf(x / 2**0.5))"
    written = [f"    y = {gelu}", *["    y = y * 1.0 + x * 0.0"] * n, "    return y"]
    return ((BLOCKS, "    return nn.functional.gelu(x)", "\n".join(written)),)


def more_layers(n: int) -> tuple[tuple[str, str, str], ...]:
    if n < 5:
        return ((MODEL, "DEPTH = 3", f"DEPTH = {4 + n}"),)
    return ((MODEL, "WIDTH = 32", f"WIDTH = {36 + 4 * (n - 5)}"),)


def stall(n: int) -> tuple[tuple[str, str, str], ...]:
    """Every 3rd to 12th step waits, by 15 % or more on average for steps of 60 ms."""
    every = 3 + n
    waits = f"        if self.steps % {every} == 0:\n            time.sleep({0.01 * every:.3f})\n"
    return (
        (MODEL, "        self.steps += 1\n", f"        self.steps += 1\n{waits}"),
        (MODEL, "import torch\nfrom torch import nn\n", "import time\n\nimport torch\nfrom torch import nn\n"),
    )


def slower_data(n: int) -> tuple[tuple[str, str, str], ...]:
    loop = f"""    for _ in range({20 * (n + 1)}):
        x = torch.stack([torch.from_numpy(image.numpy().copy()) for image in x.detach()])
    return x * 0.9 + SHIFT"""
    return ((DATA, "    return x * 0.9 + SHIFT", loop), (DATA, "SHIFT = 0.1", "import torch\n\nSHIFT = 0.1"))


def fewer_threads(n: int) -> tuple[tuple[str, str, str], ...]:
    call = "torch.set_num_threads(1)"
    places = (
        ((MODEL, "WIDTH = 32", f"{call}\nWIDTH = 32"),),
        ((MODEL, "        super().__init__()", f"        {call}\n        super().__init__()"),),
        ((MODEL, "        self.steps += 1", f"        self.steps += 1\n        {call}"),),
        ((BLOCKS, "        super().__init__()", f"        super().__init__()\n        {call}"),),
        ((BLOCKS, "def activation(x):", f"{call}\n\n\ndef activation(x):"),),
    )
    later = f"        self.steps += 1\n        if self.steps > {n}:\n            {call}"
    return places[n] if n < len(places) else ((MODEL, "        self.steps += 1", later),)


def kept_tensor(n: int) -> tuple[tuple[str, str, str], ...]:
    """A buffer that nobody needs stays in use: 8 to 80 MB."""
    megabytes = 8 * (n + 1)
    return (
        (
            MODEL,
            "        self.steps = 0",
            f"        self.steps = 0\n        self.kept = torch.ones({megabytes}, 2**18)",
        ),
    )


def other_answers(n: int) -> tuple[tuple[str, str, str], ...]:
    variants = (
        ((DATA, "SHIFT = 0.1", "SHIFT = 0.3"),),
        ((DATA, "0.9", "1.1"),),
        ((DATA, "0.9", "0.5"),),
        ((BLOCKS, "nn.functional.gelu(x)", "nn.functional.silu(x)"),),
        ((BLOCKS, "nn.functional.gelu(x)", "nn.functional.relu(x)"),),
        ((BLOCKS, "torch.relu(x + y)", "torch.relu(x - y)"),),
        ((BLOCKS, "torch.relu(x + y)", "torch.relu(x + 2 * y)"),),
        ((MODEL, "left.mean((2, 3))", "left.amax((2, 3))"),),
        ((MODEL, "[left.mean((2, 3)), right.mean((2, 3))]", "[right.mean((2, 3)), left.mean((2, 3))]"),),
        ((BLOCKS, "nn.functional.gelu(x)", 'nn.functional.gelu(x, approximate="tanh") * 1.2'),),
    )
    return variants[n]


def refactoring(n: int) -> tuple[tuple[str, str, str], ...]:
    variants = (
        ((MODEL, "        x = self.trunk(x)\n", "        for block in self.trunk:\n            x = block(x)\n"),),
        ((BLOCKS, "def activation(x):", "def activation(x: torch.Tensor) -> torch.Tensor:"),),
        ((MODEL, "class Net(nn.Module):", 'class Net(nn.Module):\n    """The network."""\n'),),
        ((DATA, "    return x * 0.9 + SHIFT", "    scaled = x * 0.9\n    return scaled + SHIFT"),),
        ((BLOCKS, "        y = activation(self.first(x))\n        y = self.norm(self.second(y))\n",
          "        y = self.norm(self.second(activation(self.first(x))))\n"),),
        ((DATA, "SHIFT = 0.1", "SCALE, SHIFT = 0.9, 0.1"), (DATA, "x * 0.9", "x * SCALE")),
        ((MODEL, "def network():\n    return Net()", "def network() -> nn.Module:\n    net = Net()\n    return net"),),
        (("net/settings.py", "", "WIDTH = 32\nDEPTH = 3\n"),
         (MODEL, "WIDTH = 32\nDEPTH = 3\n", ""),
         (MODEL, "from .data import prepare\n", "from .data import prepare\nfrom .settings import DEPTH, WIDTH\n")),
        ((MODEL, "DEPTH = 3", "DEPTH = 3  # as published"),),
        ((MODEL, "        left, right = x.chunk(2, dim=3)\n", "        halves = x.chunk(2, dim=3)\n"),
         (MODEL, "[left.mean((2, 3)), right.mean((2, 3))]", "[half.mean((2, 3)) for half in halves]")),
    )  # fmt: skip
    return variants[n]


def rename(n: int) -> tuple[tuple[str, str, str], ...]:
    block = "class Block(nn.Module):"
    names = ("Residual", "Unit", "Cell", "Pair", "Stage")
    if n < 5:
        new = names[n]
        return (
            (BLOCKS, block, f"class {new}(nn.Module):"),
            (MODEL, "from .blocks import Block", f"from .blocks import {new}"),
            (MODEL, "[Block(WIDTH)", f"[{new}(WIDTH)"),
        )
    if n < 8:
        new = ("relu6", "nonlinear", "act")[n - 5]
        return (
            (BLOCKS, "def activation(x):", f"def {new}(x):"),
            (BLOCKS, "        y = activation(", f"        y = {new}("),
        )
    new = ("ready", "normalise")[n - 8]
    return (
        (DATA, "def prepare(x):", f"def {new}(x):"),
        (MODEL, "from .data import prepare", f"from .data import {new}"),
        (MODEL, "self.stem(prepare(x))", f"self.stem({new}(x))"),
    )


def slower_library(n: int) -> tuple[tuple[str, str, str], ...]:
    return (("net/work.c", "EACH 500000", f"EACH {500_000 * (10 + 3 * n)}"),) if n < 5 else ()


def more_data(n: int) -> tuple[tuple[str, str, str], ...]:
    return (("net/table.txt", "", f"{10 + 3 * n}{' ' * 2**21}"),) if n < 5 else ()


def own_threads(n: int) -> tuple[tuple[str, str, str], ...]:
    """Every 9th to 21st step begins a thread of its own, beside which the next ones are slower."""
    sort = f"threading.Thread(target=lambda: sorted(map(hash, map(str, range({200_000 + 50_000 * n}))))).start()"
    start = f"        self.steps += 1\n        if self.steps % {9 + 3 * n} == 0:\n            {sort}"
    edits = ((MODEL, "        self.steps += 1", start), (MODEL, "import torch\n", "import threading\n\nimport torch\n"))
    return edits if n < 5 else ()


def in_conftest(n: int) -> tuple[tuple[str, str, str], ...]:
    names = ("OMP_NUM_THREADS=1", "ONEDNN_MAX_CPU_ISA=SSE41", "MKL_NUM_THREADS=1 OMP_NUM_THREADS=1")
    return (("conftest.py", "", f"import os\n\nos.environ.update(x.split('=') for x in {names[n]!r}.split())\n"),)


KINDS: dict[str, tuple[str, Callable[[int], tuple[tuple[str, str, str], ...]]]] = {
    "extra copy": ("slower", extra_copy),
    "lost fusion": ("slower", lost_fusion),
    "more layers": ("slower", more_layers),
    "a stall every n-th step": ("slower", stall),
    "a slower data path": ("slower", slower_data),
    "one thread less": ("slower", fewer_threads),
    "a kept tensor": ("memory", kept_tensor),
    "other answers": ("answers", other_answers),
    "a refactoring": ("", refactoring),
    "a rename": ("", rename),
    "a library built slower": ("slower", slower_library),
    "a data file of 2 MiB": ("slower", more_data),
    "threads of its own": ("slower", own_threads),
    "a variable in conftest": ("variable", lambda n: in_conftest(n) if n < 3 else ()),
    "answers exchanged": ("answers", lambda n: ((MODEL, "dim=1))", "dim=1)).flip(1)"),) if n < 1 else ()),
    "a test renamed": ("", lambda n: (("test_perf.py", "test_net", "test_network"),) if n < 1 else ()),
}


def every() -> list[Change]:
    """All changes, one variant of each kind after the other, so that a run which is cut has some of each."""
    made = [(kind, n, wanted, make(n)) for n in range(10) for kind, (wanted, make) in KINDS.items()]
    return [Change(*change) for change in made if change[-1]]
