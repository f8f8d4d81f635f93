"""Kinds of change that people make in their own code, up to ten variants each, as edits of the project beside them."""

import base64
import hashlib
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MODEL, BLOCKS, DATA = "net/model.py", "net/blocks.py", "net/data.py"
Edits = tuple[tuple[str, str, str] | str, ...]
"""File, old text, new text. An empty old text makes a new file. A text alone is a command of the shell."""


def build(folder: Path) -> None:
    """Build the project's library, and have the file of 2 MiB that says how much it does in a step."""
    words = ("cc", "-O1", "-shared", "-fPIC", "-o", "net/libwork.so", "net/work.c")
    subprocess.run(words, cwd=folder, check=True)
    (table := folder / "net" / "table.txt").exists() or table.write_text(f"1{' ' * 2**21}")


def apply(edits: Edits, folder: Path) -> None:
    for edit in edits:
        if isinstance(edit, str):
            subprocess.run(edit, cwd=folder, shell=True, check=True)  # noqa: S602 - they are written below
            continue
        file, old, new = edit
        text = (folder / file).read_text() if old else ""
        if old and text.count(old) != 1:
            raise ValueError(f"{file} has {text.count(old)} times {old!r}")
        (folder / file).write_text(text.replace(old, new) if old else new)
    build(folder)


@dataclass(frozen=True)
class Kind:
    """Edits, and what a run must be red for: `slower`, `memory`, `answers`, `variable`, `host`, or nothing."""

    wanted: str
    edits: Callable[[int], Edits]
    variants: int = 10
    first: tuple[Edits, ...] = ()
    """Edits before those, each measured and accepted."""
    under: str = ""
    """What starts pytest in these runs."""


def extra_copy(n: int) -> tuple[tuple[str, str, str]]:
    copies = "\n".join(["        y = (y + 0.0).clone()"] * (n + 2))
    return ((BLOCKS, "        y = self.norm(self.second(y))", f"{copies}\n        y = self.norm(self.second(y))"),)


def lost_fusion(n: int) -> Edits:
    """The same function, written out in elementary operations."""
    gelu = "0.5 * x * (1 + torch.erf(x / 2**0.5))"
    written = [f"    y = {gelu}", *["    y = y * 1.0 + x * 0.0"] * n, "    return y"]
    return ((BLOCKS, "    return nn.functional.gelu(x)", "\n".join(written)),)


def more_layers(n: int) -> Edits:
    if n < 5:
        return ((MODEL, "DEPTH = 3", f"DEPTH = {4 + n}"),)
    return ((MODEL, "WIDTH = 32", f"WIDTH = {36 + 4 * (n - 5)}"),)


def stall(n: int) -> Edits:
    """Every 3rd to 12th step waits, by 15 % or more on average for steps of 60 ms."""
    every = 3 + n
    waits = f"        if self.steps % {every} == 0:\n            time.sleep({0.01 * every:.3f})\n"
    return (
        (MODEL, "        self.steps += 1\n", f"        self.steps += 1\n{waits}"),
        (MODEL, "import torch\nfrom torch import nn\n", "import time\n\nimport torch\nfrom torch import nn\n"),
    )


def slower_data(n: int) -> Edits:
    loop = f"""    for _ in range({20 * (n + 1)}):
        x = torch.stack([torch.from_numpy(image.numpy().copy()) for image in x.detach()])
    return x * 0.9 + SHIFT"""
    return ((DATA, "    return x * 0.9 + SHIFT", loop), (DATA, "SHIFT = 0.1", "import torch\n\nSHIFT = 0.1"))


def fewer_threads(n: int) -> Edits:
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


def kept_tensor(n: int) -> Edits:
    """A buffer that nobody needs stays in use: 8 to 80 MB."""
    megabytes = 8 * (n + 1)
    return (
        (
            MODEL,
            "        self.steps = 0",
            f"        self.steps = 0\n        self.kept = torch.ones({megabytes}, 2**18)",
        ),
    )


def other_answers(n: int) -> Edits:
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


def refactoring(n: int) -> Edits:
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


def rename(n: int) -> Edits:
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


def slower_library(n: int) -> Edits:
    return (("net/work.c", "EACH 500000", f"EACH {500_000 * (10 + 3 * n)}"),)


def more_data(n: int) -> Edits:
    return (("net/table.txt", "", f"{10 + 3 * n}{' ' * 2**21}"),)


def own_threads(n: int) -> Edits:
    """Every 9th to 21st step begins a thread of its own, beside which the next ones are slower."""
    sort = f"threading.Thread(target=lambda: sorted(map(hash, map(str, range({200_000 + 50_000 * n}))))).start()"
    start = f"        self.steps += 1\n        if self.steps % {9 + 3 * n} == 0:\n            {sort}"
    return ((MODEL, "        self.steps += 1", start), (MODEL, "import torch\n", "import threading\n\nimport torch\n"))


def in_conftest(n: int) -> Edits:
    names = ("ONEDNN_MAX_CPU_ISA=SSE41", "OMP_NUM_THREADS=1")
    return (("conftest.py", "", f"import os\n\nos.environ.update(x.split('=') for x in {names[n]!r}.split())\n"),)


def kept_each_step(n: int) -> Edits:
    stem, start = "        x = self.stem(prepare(x))\n", "        self.steps = 0\n"
    keep = f"        self.kept.append({('x.detach().mean(1)', 'x[:1, :4].detach().clone()')[n]})\n"
    return (MODEL, stem, stem + keep), (MODEL, start, f"{start}        self.kept = []\n")


WORK = "    LIBRARY.work(TIMES)\n"


def put_off(n: int) -> Edits:
    """To every eighth step, or to the loss."""
    if n:
        loss = "def training_loss(z, y):\n    LIBRARY.work(20)\n    return nn.functional.cross_entropy(z, y)"
        names = (MODEL, "from .data import prepare", "from .data import LIBRARY, prepare")
        return names, (MODEL, "training_loss = nn.functional.cross_entropy", loss)
    late = "    LATER.append(20)\n    if len(LATER) == 8:\n        LIBRARY.work(sum(LATER))\n        LATER.clear()\n"
    return (DATA, WORK, late + WORK), (DATA, "SHIFT = 0.1", "SHIFT = 0.1\nLATER = []")


def to_first_step(_: int) -> Edits:
    late = "    while LATER:\n        LIBRARY.work(LATER.pop())\n"
    return (DATA, WORK, late + WORK), (DATA, "SHIFT = 0.1", "SHIFT = 0.1\nLATER = [200]")


def once_green(n: int) -> Edits:
    trunk = "        x = self.trunk(x)"
    wait = "WIDTH = 32\n\n\ndef wait(step):\n    if step % 10 == 0:\n        time.sleep(0.2)\n"
    variants = (
        ((BLOCKS, "self.first(x)", "self.first(self.first(self.first(x)))"),),
        ((MODEL, trunk, "        x = self.trunk[0](self.trunk(x))"),),
        ((MODEL, trunk, "        x = self.trunk(self.trunk(x))"),),
        ((MODEL, "        self.steps += 1\n", "        self.steps += 1\n        self.training and wait(self.steps)\n"),
         (MODEL, "WIDTH = 32", wait), (MODEL, "import torch\n", "import time\n\nimport torch\n")),
    )  # fmt: skip
    return variants[n]


SLOWER = extra_copy(8)
FASTER = tuple((file, new, old) for file, old, new in SLOWER)
IGNORED = "printf '.*\\n__pycache__\\nipexperf.db*\\n*.so\\n' > .gitignore"
NAMED = "git config user.name me && git config user.email me@example.org"
GIT = f"{IGNORED} && git init -qb main && {NAMED} && git add . && git commit -qm one"


def on_dirty_tree(n: int) -> Edits:
    """Beside what was not committed when it was accepted, or after it was committed."""
    return ("git commit -qam two", *SLOWER) if n else SLOWER


def merged(_: int) -> Edits:
    """A branch with one slower commit, while `main` had another one."""
    page = "git checkout -q main && echo A network. > README.md && git add . && git commit -qm page"
    return "git checkout -qb slower", *SLOWER, "git commit -qam two", page, "git merge -q --no-ff -m three slower"


ABOUT = "METADATA", "RECORD", "direct_url.json"


def package(version: str, times: int) -> Edits:
    """A version of a package in the folder `lib`, as `pip install --target` leaves it."""
    code, about = f"def lag():\n    return sum(range({times}))\n", f"lib/lag-{version}.dist-info"
    digest = base64.urlsafe_b64encode(hashlib.sha256(code.encode()).digest()).decode().rstrip("=")
    installed = "".join(f"{about[4:]}/{name},,\n" for name in ABOUT)
    return (
        f"rm -rf lib; mkdir -p {about}",
        ("lib/lag.py", "", code),
        (f"{about}/METADATA", "", f"Metadata-Version: 2.1\nName: lag\nVersion: {version}\n"),
        (f"{about}/RECORD", "", f"lag.py,sha256={digest},{len(code)}\n{installed}"),
        (f"{about}/direct_url.json", "", '{"url": "file:///lag.whl", "archive_info": {}}'),
    )


IMPORTED = ((DATA, "import ctypes\n", "import ctypes\n\nfrom lag import lag\n"), (DATA, WORK, f"    lag()\n{WORK}"))
TIMED = (
    (BLOCKS, "import torch\n", "import time\n\nimport torch\n"),
    (BLOCKS, "def activation(x):\n    return nn.functional.gelu(x)\n", """TOOK = []
WAYS = nn.functional.gelu, lambda x: 0.5 * x * (1 + torch.erf(x / 2**0.5))


def activation(x):
    if len(TOOK) < 12:
        begin, y = time.perf_counter(), WAYS[len(TOOK) % 2](x)
        TOOK.append(time.perf_counter() - begin)
        return y
    return WAYS[min((0, 1), key=lambda way: sum(TOOK[2 + way :: 2]))](x)
"""),
)  # fmt: skip

KINDS = {
    "extra copy": Kind("slower", extra_copy),
    "lost fusion": Kind("slower", lost_fusion),
    "more layers": Kind("slower", more_layers),
    "a stall every n-th step": Kind("slower", stall),
    "a slower data path": Kind("slower", slower_data),
    "one thread less": Kind("slower", fewer_threads),
    "a kept tensor": Kind("memory", kept_tensor),
    "other answers": Kind("answers", other_answers),
    "a refactoring": Kind("", refactoring),
    "a rename": Kind("", rename),
    "a library built slower": Kind("slower", slower_library, 5),
    "a data file of 2 MiB": Kind("slower", more_data, 5),
    "threads of its own": Kind("slower", own_threads, 5),
    "a variable in conftest": Kind("variable", in_conftest, 1),
    "threads in conftest, which workers set": Kind("", lambda _: in_conftest(1), 1),
    "answers exchanged": Kind("answers", lambda _: ((MODEL, "dim=1))", "dim=1)).flip(1)"),), 1),
    "a test renamed": Kind("", lambda _: (("test_perf.py", "test_net", "test_network"),), 1),
    "a dirty tree": Kind("slower", on_dirty_tree, 2, ((GIT, *refactoring(3)),)),
    "a merge": Kind("slower", merged, 1, ((GIT,),)),
    "faster, then back": Kind("slower", lambda _: SLOWER, 1, (SLOWER, FASTER)),
    "a package exchanged": Kind(
        "slower", lambda _: package("1.1", 2_000_000), 1, ((*package("1.0", 9), *IMPORTED),), "env PYTHONPATH=lib"
    ),
    "the slower of two ways": Kind("slower", lambda _: ((BLOCKS, "min((", "max(("),), 1, (TIMED,)),
    "a tensor kept each step": Kind("memory", kept_each_step, 2),
    "work put off": Kind("slower", put_off, 2),
    "work put off to the first step": Kind("", to_first_step, 1),
    "what once was green": Kind("slower", once_green, 4),
    "one core": Kind("host", lambda _: (), 1, under="taskset -c 0"),
}


def every() -> list[tuple[str, int]]:
    """All changes, one variant of each kind after the other, so that a run which is cut has some of each."""
    return [(name, n) for n in range(10) for name, kind in KINDS.items() if n < kind.variants]
