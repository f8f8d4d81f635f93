"""Ratios drawn for a terminal: two runs compared, and what a dtype, a stack or a device is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from ipexperf.history.drawing import SHORT, human, interval, moment, ratio, row, share, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.table import Table

    from ipexperf.history.comparison import Compared, Comparison
    from ipexperf.history.speedups import Speedup

OVER_LAUNCHES = (
    "Intervals are over launches, and hold together with 95 %. What a machine does from one session to the next is in "
    "none of them: `ipexperf ab` measures two stacks side by side."
)


def comparison_text(found: Comparison) -> Text:
    """Say which two runs these are, and what differs between their environments."""
    lines = []
    for name, run in (("first", found.first), ("second", found.second)):
        where = f"{(run.commit or '-')[:10]} on {run.branch or '-'}, torch {run.torch_version or '-'}"
        where += f", IPEX {run.ipex_version or '-'}, {run.machine_key}"
        lines.append(f"{name:8} {run.uid[:SHORT]}  {moment(run.started_at)} UTC, {where}")
    told = found.differences or ("nothing that is recorded of the environment",)
    lines += [f"{'' if index else 'differs':8} {line}" for index, line in enumerate(told)]
    return Text("\n".join(lines))


def compared_table(cases: Sequence[Compared]) -> Table:
    made = table("case", "batch", "first", "second", "ratio", "interval", "change", "accuracy", "outcome", "note")
    for case in cases:
        row(
            made,
            case.case_id,
            str(case.batch),
            human(case.first, case.unit),
            human(case.second, case.unit),
            ratio(case.ratio),
            interval(case.lo, case.hi),
            case.change or "-",
            _both(share(case.accuracy_metric or "", x) for x in (case.first_accuracy, case.second_accuracy)),
            _both(x or "-" for x in (case.first_outcome, case.second_outcome)),
            "; ".join([*((case.note,) if case.note else ()), *case.differences]),
        )
    return made


def speedups_table(found: Sequence[Speedup]) -> Table:
    made = table("case", "batch", "over", "metric", "base", "value", "speedup", "interval", "accuracy", "note")
    for one in found:
        row(
            made,
            one.case_id,
            str(one.batch),
            one.over,
            one.metric,
            human(one.base, one.unit),
            human(one.value, one.unit),
            f"{one.speedup:.2f}",
            interval(one.lo, one.hi),
            _both(share(one.accuracy_metric or "", x) for x in (one.base_accuracy, one.accuracy)),
            "; ".join([*((one.note,) if one.note else ()), *(() if one.seen else ("no difference seen",))]),
        )
    return made


def _both(sides: Iterable[str]) -> str:
    first, second = sides
    return first if first == second else f"{first} -> {second}"
