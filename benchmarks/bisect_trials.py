"""Real trials of `ipexperf bisect`: does it name what made a step slower, and nothing else?

Each trial makes two environments that differ in 30 small packages, chooses at random what slows a step, and runs the
command with its real clock in a folder of its own, which is removed afterwards. Needs no torch.

    python benchmarks/bisect_trials.py FOLDER --trials 10
    python benchmarks/bisect_trials.py FOLDER --trials 1 --kinds package
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from bisect_model import PIECES, VARIABLE
from small_wheel import wheel
from small_wheels import an_unpacked_environment

ROOT = Path(__file__).parents[1]
LOAD = "--perf-load=tests/fakes/fake.py,benchmarks/bisect_model.py"
CELL = ("--model=pieces", "--device=fake", "--dtype=fp32", "--mode=working", "--stack=plain")
KINDS = {
    "package": "one package",
    "variable": "a variable",
}


@dataclass(frozen=True, slots=True)
class Trial:
    """The end of one run of the command."""

    outcome: str
    named: frozenset[str]
    truth: str
    environments: int
    """Made for candidates, the bad end among them. The good end has one more."""
    seconds: float

    @property
    def worth(self) -> str:
        if self.outcome == "cannot tell":
            return "cannot tell"
        return "right" if self.named == {self.truth} else "wrong"


def say(text: str) -> None:
    sys.stderr.write(text + "\n")


def environment(folder: Path, version: str, shares: Mapping[str, float]) -> str:
    """An environment with all packages in one version. Returns its interpreter."""
    folder.mkdir()
    wheels = [wheel(folder, name, version, {"SHARE": shares.get(name, 0.0)}) for name in PIECES]
    return an_unpacked_environment(folder, *wheels)


def run_trial(folder: Path, kind: str, share: float, chance: random.Random, more: Collection[str]) -> Trial:
    """Choose what is slow, make both ends, and let the command search."""
    truth, slow, variables = chance.choice(PIECES), share, ""
    if kind == "variable":
        truth, slow, variables = VARIABLE, 0.0, f" {VARIABLE}={share}"
    good = environment(folder / "good", "1.0", {})
    bad = environment(folder / "bad", "2.0", {truth: slow})
    command = [sys.executable, "-m", "ipexperf.cli", "bisect", LOAD, *CELL, f"--good={good}", f"--bad={bad}{variables}"]
    command += [f"--perf-db={folder / 'trial.db'}", f"--perf-cache={folder / 'cache'}", "--json", *more]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("IPEXPERF_")}
    begin = time.monotonic()
    with (folder / "log.txt").open("w") as log:
        done = subprocess.run(
            command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=log, text=True, check=False
        )
    seconds = time.monotonic() - begin
    if done.returncode not in (0, 3):
        raise SystemExit(f"{' '.join(command)}\nended with {done.returncode}:\n{(folder / 'log.txt').read_text()}")
    finding = json.loads(done.stdout)
    named = frozenset(change["name"] for change in finding["culprits"])
    made = [*(folder / "cache" / "environments").glob("*/bin/python")]
    return Trial(finding["outcome"], named, truth, len(made) - 1, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("folder", type=Path, help="for environments, histories and logs")
    parser.add_argument("--trials", type=int, default=10, help="of each kind")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--share", type=float, default=0.08, help="by how much a step is slower")
    parser.add_argument("--seed", type=int, default=1, help="of what is slow")
    arguments, more = parser.parse_known_args()
    results: dict[str, list[Trial]] = {kind: [] for kind in arguments.kinds}
    for number in range(arguments.trials):
        for kind in arguments.kinds:
            name = f"{kind}-{arguments.seed}-{number}"
            folder = arguments.folder.absolute() / name
            if folder.exists():
                raise SystemExit(f"{folder} is there already: remove it, or choose another --seed")
            folder.mkdir(parents=True)
            chance = random.Random(name)  # noqa: S311 - what is slow, no secret
            trial = run_trial(folder, kind, arguments.share, chance, more)
            results[kind].append(trial)
            names = " with ".join(sorted(trial.named)) or "nobody"
            result = f"{trial.worth}: {trial.outcome}, named {names}, and it was {trial.truth}"
            say(f"{name}: {result}, {trial.environments} environments, {trial.seconds:.0f} s")
            shutil.copy(folder / "log.txt", folder.with_suffix(".log"))
            shutil.rmtree(folder)
    print("| slower | trials | named right | cannot tell | wrong | environments, median | most | seconds, median |")
    print("|---|---|---|---|---|---|---|---|")
    for kind, trials in results.items():
        worth = [[one.worth for one in trials].count(word) for word in ("right", "cannot tell", "wrong")]
        made = [one.environments for one in trials]
        middle = statistics.median(one.seconds for one in trials)
        cells = [KINDS[kind], len(trials), *worth, f"{statistics.median(made):g}", max(made), f"{middle:.0f}"]
        print(f"| {' | '.join(map(str, cells))} |")


if __name__ == "__main__":
    main()
