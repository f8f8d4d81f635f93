"""The cases of recorded runs as a table for the docs, with proof, accuracy and throughput.

Ratios come from rounds in which both cases took turns, each with a 95 % interval of its own. A ratio with a `*` comes
from launches, because the two cases shared no round.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ipexperf.case import Case
from ipexperf.errors import IpexperfError
from ipexperf.history import History, Recorded
from ipexperf.history.rounds import Paired
from ipexperf.judge import ratios
from ipexperf.judge.policy import Policy
from ipexperf.judge.ratios import Ratio
from ipexperf.report.speeds import SpeedRatio
from ipexperf.report.units import digits
from ipexperf.result import PRIMARY

HEAD = ("mode", "dtype", "stack", "proof", "accuracy", "items/s", "over stock", "over stock fp32")
TRIVIAL = "one answer for all"
"""Score of a constant predictor, shown in tables of several models."""
MODES = (
    "infer",
    "infer_jit",
    "infer_compile",
    "infer_export",
    "multistream",
    "realtime",
    "prefill",
    "decode",
    "load",
    "train",
    "train_compile",
    "train_ddp",
)
DTYPES = ("fp32", "bf16", "fp16", "int8")
NARROW = 0.10
"""Intervals that reach less far either way are narrow."""
Rounds = Mapping[tuple[str, str], Paired]
"""Rounds by run and machine."""


def place(recorded: Recorded) -> tuple[str, int, int, str]:
    """Return the sort key of a case."""
    case = recorded.case
    known = MODES.index(case.mode) if case.mode in MODES else len(MODES)
    return case.model, known, DTYPES.index(case.dtype), case.stack


def proof(recorded: Recorded) -> str:
    """Return how many checks passed in all launches, or those that failed."""
    bad = next((launch for launch in recorded.counted if launch.outcome != "ok"), None)
    if bad is not None:
        return f"{bad.outcome}: {bad.reason}"
    checks = [check for launch in recorded.counted for check in launch.document["proof"]]
    missed = [f"{check['name']}: {check['found']}" for check in checks if not check["ok"]]
    names = {check["name"] for check in checks}
    return missed[0] if missed else f"{len(names)} of {len(names)}"


def accuracy(recorded: Recorded) -> str:
    """Return the accuracy of the first launch, or the bound that it missed."""
    checks = [check for launch in recorded.counted for check in launch.document["accuracy"]]
    missed = [f"{check['name']} {check['found']}, {check['expected']}" for check in checks if not check["ok"]]
    if missed:
        return missed[0]
    return hundredth(recorded, "accuracy")


def hundredth(recorded: Recorded, metric: str) -> str:
    """Format a share."""
    summary = recorded.metrics.get(metric)
    return "-" if summary is None or summary.median is None else f"{100 * summary.median:.1f} %"


def sound(recorded: Recorded) -> bool:
    """Whether the case's numbers count."""
    return bool(recorded.values.get(PRIMARY)) and recorded.outcome not in ("failed", "invalid")


def compare(recorded: Recorded, other: Recorded | None, rounds: Rounds) -> SpeedRatio | None:
    """Return the throughput relative to another case, if both count."""
    if other is None or other is recorded or not (sound(recorded) and sound(other)):
        return None
    key = recorded.run_uid, recorded.machine_key
    if key in rounds and key == (other.run_uid, other.machine_key):
        estimate = rounds[key].between(other.case, recorded.case)
        if estimate is not None:
            return SpeedRatio(estimate.ratio(inverted=True), paired=True)
    return SpeedRatio(ratios.compare(other.values["throughput"], recorded.values["throughput"], Policy()), paired=False)


def times(compared: SpeedRatio | None) -> str:
    """Format a ratio with its interval as a cell of the table."""
    return "-" if compared is None else f"{compared.value} ({compared.bounds})"


def pairs(cases: Sequence[Recorded], rounds: Rounds) -> dict[Case, tuple[SpeedRatio | None, SpeedRatio | None]]:
    """Yield each case over stock in the same dtype, and over stock in fp32."""
    known = {recorded.case: recorded for recorded in cases}
    return {
        case: (
            compare(recorded, known.get(replace(case, stack="stock")), rounds),
            compare(recorded, known.get(replace(case, stack="stock", dtype="fp32")), rounds),
        )
        for case, recorded in known.items()
    }


def widest(compared: Iterable[SpeedRatio | None]) -> str:
    """Return a sentence on how many ratios have a narrow interval."""
    all_of_them = [one for one in compared if one is not None]
    narrow = [one for one in all_of_them if is_narrow(one.ratio)]
    return f"{len(narrow)} of {len(all_of_them)} ratios have an interval of less than {NARROW:.0%} either way"


def is_narrow(ratio: Ratio) -> bool:
    """Whether both ends of the interval are less than NARROW away from the ratio."""
    if ratio.lo is None or ratio.hi is None:
        return False
    return ratio.hi / ratio.ratio < 1 + NARROW and ratio.ratio / ratio.lo < 1 + NARROW


def rows(cases: Sequence[Recorded], rounds: Rounds) -> Iterator[tuple[str, ...]]:
    """Yield one row per case, in the order of modes and dtypes."""
    ratios_of = pairs(cases, rounds)
    for recorded in sorted(cases, key=place):
        case = recorded.case
        throughput = recorded.metrics.get("throughput")
        value = throughput.median if throughput and sound(recorded) else None
        yield (
            f"`{case.mode}`",
            case.dtype,
            case.stack,
            proof(recorded),
            accuracy(recorded),
            recorded.outcome if value is None else digits(value),
            *map(times, ratios_of[case]),
        )


def table(cases: Sequence[Recorded], rounds: Rounds) -> list[str]:
    """Return the cases as a Markdown table. With several models, add columns for the model and its trivial score."""
    head, body = HEAD, list(rows(cases, rounds))
    if len({recorded.case.model for recorded in cases}) > 1:
        ordered = sorted(cases, key=place)
        head = ("model", *HEAD, TRIVIAL)
        body = [
            (f"`{recorded.case.model}`", *line, hundredth(recorded, "trivial_accuracy"))
            for recorded, line in zip(ordered, body, strict=True)
        ]
    lines = [head, ("---",) * len(head), *body]
    return [f"| {' | '.join(line)} |" for line in lines]


def latest(found: Iterable[Recorded]) -> list[Recorded]:
    """Return each case once: of the last run in which its numbers count, else of the last run."""
    kept: dict[Case, Recorded] = {}
    for recorded in found:
        if sound(recorded) or not (recorded.case in kept and sound(kept[recorded.case])):
            kept[recorded.case] = recorded
    return list(kept.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "runs", nargs="*", default=["last"], metavar="RUN", help="which runs of the history (default: the last)"
    )
    parser.add_argument("--db", default="ipexperf.db", help="history file (default: %(default)s)")
    parser.add_argument("--model", help="of this model alone")
    told = parser.parse_args()
    try:
        with History.open(told.db, create=False) as history:
            found = [recorded for run in told.runs for recorded in history.show(run).cases]
            rounds = history.paired(found)
    except IpexperfError as error:
        sys.exit(f"coverage.py: {error}")
    cases = latest(recorded for recorded in found if told.model in (None, recorded.case.model))
    if not cases:
        sys.exit(f"coverage.py: {', '.join(told.runs)}: no case" + (f" of {told.model}" if told.model else ""))
    print("\n".join(table(cases, rounds)))
    print(widest(one for both in pairs(cases, rounds).values() for one in both), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
