"""Changes that once passed, green: each made again in the project, timed outside ipexperf, and judged by `pytest`.

    python benchmarks/main_road/seen.py

Prints a table in Markdown, and ends with 1 if one of them is not judged as it must be.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import truth
from changes import BLOCKS, DATA, MODEL, Change
from road import HERE, PYTEST, build, reason

STALL = (
    (MODEL, "        self.steps += 1\n", "        self.steps += 1\n        self.training and wait(self.steps)\n"),
    (MODEL, "WIDTH = 32", "WIDTH = 32\n\n\ndef wait(step):\n    if step % 10 == 0:\n        time.sleep(0.2)\n"),
    (MODEL, "import torch\nfrom torch import nn\n", "import time\n\nimport torch\nfrom torch import nn\n"),
)
EDITS = {
    "a layer computed twice more": ((BLOCKS, "self.first(x)", "self.first(self.first(self.first(x)))"),),
    "one block twice": ((MODEL, "        x = self.trunk(x)", "        x = self.trunk[0](self.trunk(x))"),),
    "the trunk doubled": ((MODEL, "        x = self.trunk(x)", "        x = self.trunk(self.trunk(x))"),),
    "a stall of 200 ms every tenth training step": STALL,
    "another constant in `forward`": ((DATA, "SHIFT = 0.1", "SHIFT = 0.4"),),
}


def run(folder: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = [f"{name}={value}" for name, value in variables.items()]
    return subprocess.run(("env", *environment, *command), cwd=folder, capture_output=True, text=True, check=False)


def ipexperf(folder: Path, *words: str) -> str:
    done = run(folder, sys.executable, "-m", "ipexperf.cli", *words)
    if done.returncode:
        raise SystemExit(f"ipexperf {' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


def ratios(folder: Path, *runs: str) -> list[float | None]:
    found = json.loads(ipexperf(folder, "compare", "--ratios", *runs, "--over", "stack", "--json"))
    return [row["speedup"] for row in found]


def main() -> int:
    more = sys.argv[1:]
    print("| what changed | truth | exit | what `pytest` said |", "|---|---|---|---|", sep="\n", flush=True)
    wrong = 0

    def tell(name: str, ratio: str, code: int, said: str, *, right: bool) -> None:
        nonlocal wrong
        wrong += not right
        print(f"| {name} | {ratio} | {code}{'' if right else ' **WRONG**'} | {said} |", flush=True)

    with tempfile.TemporaryDirectory() as place:
        base = Path(place) / "base"
        shutil.copytree(HERE / "project", base, ignore=shutil.ignore_patterns("__pycache__"))
        build(base)
        first = run(base, *PYTEST, *more)
        if first.returncode:
            raise SystemExit(first.stdout)
        ipexperf(base, "baseline", "accept", "last", "--reason", "first")

        def tried(edit: Callable[[Path], None], *before: str) -> tuple[Path, subprocess.CompletedProcess[str]]:
            folder = Path(tempfile.mkdtemp(dir=place)) / "project"
            shutil.copytree(base, folder, symlinks=True)
            edit(folder)
            return folder, run(folder, *before, *PYTEST, *more)

        for name, edits in EDITS.items():
            change = Change(name, 0, "", edits)
            folder, done = tried(change.apply)
            mode = "train" if "training" in name else "infer"
            ratio = f"{100 * (truth.ratio(base, folder, mode) - 1):+.1f} %"
            tell(name, ratio, done.returncode, reason(done.stdout), right=done.returncode == 1)
        _, done = tried(lambda _: None, "taskset", "-c", "0")
        tell("`taskset -c 0`", "", done.returncode, reason(done.stdout), right=done.returncode == 1)
        _, done = tried(lambda _: None)
        tell("nothing at all", "0", done.returncode, reason(done.stdout), right=done.returncode == 0)
        folder, _ = tried(lambda _: None)
        both = ("--perf-stack=stock,ipex", "--perf-mode=infer_jit")
        run(folder, *PYTEST, *more, *both)
        before = ratios(folder, "last")
        run(folder, *PYTEST, *more, *both[1:], ONEDNN_MAX_CPU_ISA="SSE41")
        after = [ratio for ratio in ratios(folder, "last~1", "last") if ratio is not None]
        said = f"`ipexperf compare --ratios`: {before}, and then {after}"
        tell("the newest run under `ONEDNN_MAX_CPU_ISA=SSE41`", "", 0, said, right=all(x in before for x in after))
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
