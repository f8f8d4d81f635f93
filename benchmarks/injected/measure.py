"""The slowdown by each injected loss: two workers take turns, one unchanged and one with the loss.

Rounds go over all losses, with a pair of fresh processes each, until the time is used up. Rows without an injection
show the noise.
"""

import argparse
import math
import random
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

from ipexperf import run
from ipexperf.commands import planning
from ipexperf.compare import arm, together
from ipexperf.compare.arm import Arm
from ipexperf.compare.round import Effort
from ipexperf.conduct.conductor import Conductor
from ipexperf.judge.ratios import combine
from ipexperf.plan import arms
from ipexperf.plan.matrix import Plan
from ipexperf.plan.options import Options
from ipexperf.units import percent

LOSSES = Path(__file__).with_name("losses.py")


@dataclass(frozen=True)
class Row:
    """One line of the table: the injection, its case, and the arm that has it."""

    injected: str
    stack: str
    mode: str
    arm: str
    dtype: str = "fp32"


ROWS = (
    Row("nothing", "stock", "infer", ""),
    Row("nothing", "ipex", "infer", ""),
    Row("ONEDNN_MAX_CPU_ISA=SSE41", "stock", "infer", "ONEDNN_MAX_CPU_ISA=SSE41"),
    Row("ONEDNN_MAX_CPU_ISA=AVX", "stock", "infer", "ONEDNN_MAX_CPU_ISA=AVX"),
    Row("weights_prepack=off", "ipex", "infer", "weights_prepack=off"),
    Row("level=O0", "ipex", "infer", "level=O0"),
    Row("conv_bn_folding=off", "ipex", "infer", "conv_bn_folding=off"),
    Row("channels_last=off", "ipex", "infer", "channels_last=off"),
    Row("channels_last=off", "stock", "infer", "channels_last=off"),
    Row("not frozen", "stock", "infer_jit", "INJECTED=not_frozen"),
    Row("not frozen", "ipex", "infer_jit", "INJECTED=not_frozen"),
    Row("fusion off", "ipex", "infer_jit", "INJECTED=fusion_off"),
    Row("a copy to another layout and back", "stock", "infer", "INJECTED=copy"),
    Row("a cast to bf16 and back", "stock", "infer", "INJECTED=cast"),
    Row("an observer left in", "stock", "infer", "INJECTED=observer"),
    Row("weights loaded in each step", "stock", "infer", "INJECTED=reloading"),
    Row("autocast off", "stock", "infer", "INJECTED=autocast_off", "bf16"),
)


def sides(conductor: Conductor, options: Options, plan: Plan, row: Row) -> tuple[Arm, Arm] | None:
    """Return the two arms of a row, or None if its case cannot run here."""
    wanted = (row.stack, row.mode, row.dtype)
    case = next((x for x in plan.cases if (x.stack, x.mode, x.dtype) == wanted), None)
    if case is None:
        return None
    words = arms.parse(row.arm, row.injected)
    other, unmet = words.case(case, arm.facts(words, options))
    if unmet:
        return None
    # A case that is slowed on purpose would fail its proof.
    both = arm.arm(conductor, case, arms.ArmSpec()), arm.arm(conductor, other, words)
    return replace(both[0], prove=False), replace(both[1], prove=False)


def taken(pair: tuple[Arm, Arm], effort: Effort, chance: random.Random) -> float:
    """Return the log ratio of the second arm to the first, of one pair of fresh processes."""
    played = together.play(pair, effort, chance, lambda _: None)
    for side in played.results:
        if side.error is not None:
            raise side.error
    return played.log_ratio(0, 1)


def line(row: Row, logs: list[float]) -> str:
    """Format a row in Markdown: the slowdown, its interval if there is one, and every pair."""
    found = combine(logs)
    bounds = f"{percent(found.lo)} to {percent(found.hi)}" if found.lo is not None and found.hi is not None else "-"
    each = ", ".join(percent(math.exp(log)) for log in logs)
    return f"| {row.injected} | {row.stack}, {row.mode}, {row.dtype} | {percent(found.value)} | {bounds} | {each} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--for", dest="seconds", type=float, default=600.0, help="seconds (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=20, help="turns of each worker a pair (default: %(default)s)")
    parser.add_argument("--only", default="", help="rows whose name, stack or mode has this text")
    parser.add_argument("--seed", type=int, default=None, help="of the random start order")
    planning.add_options(parser)
    told = parser.parse_args()
    chance = random.Random(told.seed)  # noqa: S311 - a start order, no secret
    found: dict[Row, list[float]] = defaultdict(list)
    begin, longest = time.monotonic(), 0.0
    options = planning.resolve(told)
    options = replace(options, load=(*options.load, str(LOSSES)), mode=("infer", "infer_jit"), stack=("all",))
    options = replace(options, model=options.model or ("resnet18",), dtype=("fp32", "bf16"))
    plan = run.plan(options)
    conductor = Conductor(options, Path.cwd(), lambda text: print(f"  {text}", file=sys.stderr))
    rows = [row for row in ROWS if told.only in f"{row.injected} {row.stack} {row.mode}"]
    ready = {row: both for row in rows if (both := sides(conductor, options, plan, row)) is not None}
    left_out = [row for row in rows if row not in ready]
    while ready and time.monotonic() - begin + longest < told.seconds:
        for row, pair in ready.items():
            started = time.monotonic()
            if started - begin + longest > told.seconds:
                break
            found[row].append(taken(pair, Effort(turns=told.turns, most=told.turns), chance))
            longest = max(longest, time.monotonic() - started)
            print(line(row, found[row]), file=sys.stderr)
    print("| injected | into | slower by | 95 % interval | pairs |\n|---|---|---|---|---|")
    print("\n".join(line(row, found[row]) for row in rows if found[row]))
    for row in left_out:
        print(f"left out: {row.injected} ({row.stack}, {row.mode}, {row.dtype}): it cannot run here")
    return 0


if __name__ == "__main__":
    sys.exit(main())
