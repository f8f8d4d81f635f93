"""Tables of ratios for a terminal: two runs compared, and speed-ups of dtypes, stacks, devices and settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from ipexperf.history.drawing import SHORT, human, interval, moment, ratio, remarks, row, share, table
from ipexperf.judge.rounds import DISTRUST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.table import Table

    from ipexperf.history.comparison import ComparedCase, RunComparison
    from ipexperf.history.round_ratios import Twin
    from ipexperf.history.speedups import Speedup

OVER_LAUNCHES = (
    "Intervals are over launches, and hold together with 95 %. What a machine does from one session to the next is in "
    "none of them: `ipexperf ab` measures two stacks side by side."
)
OTHERS = "The others are over launches, and hold together with 95 %."
OVER_ROUNDS = (
    "{which} over rounds, in which both cases took turns: each holds with 95 % by itself. What another day, driver or "
    "reboot changes is in none of them."
)


def comparison_text(comparison: RunComparison) -> Text:
    """Describe the two runs, and the differences between their environments."""
    lines = []
    for name, run in (("first", comparison.first), ("second", comparison.second)):
        where = f"{(run.commit or '-')[:10]} on {run.branch or '-'}, torch {run.torch_version or '-'}"
        where += f", IPEX {run.ipex_version or '-'}, {run.machine_key}"
        lines.append(f"{name:8} {run.uid[:SHORT]}  {moment(run.started_at)} UTC, {where}")
    differences = comparison.differences or ("nothing that is recorded of the environment",)
    lines += [f"{'' if index else 'differs':8} {line}" for index, line in enumerate(differences)]
    return Text("\n".join(lines))


def compared_table(cases: Sequence[ComparedCase]) -> Table:
    names = ("case", "batch", "first", "second", "ratio", "interval", "change", "accuracy", "outcome")
    drawn = table(*names, spare=("batch", "accuracy", "outcome", "first, second", "change"))
    for case in cases:
        row(
            drawn,
            case.case_id,
            str(case.batch),
            human(case.first, case.unit),
            human(case.second, case.unit),
            ratio(case.ratio),
            interval(case.lo, case.hi),
            case.change or "-",
            _both(share(case.accuracy_metric or "", x) for x in (case.first_accuracy, case.second_accuracy)),
            _both(x or "-" for x in (case.first_outcome, case.second_outcome)),
        )
    return drawn


def differences_text(cases: Sequence[ComparedCase]) -> Text:
    """What is to be said of each case, and what differs in it."""
    return remarks(
        (case.case_id, f"batch {case.batch}", "; ".join(filter(None, (case.note, *case.differences)))) for case in cases
    )


def explanation(ratios: Sequence[Speedup]) -> str:
    """Explain the intervals: over rounds if the cases took turns, else over launches."""
    paired = [speedup.paired for speedup in ratios if speedup.speedup is not None]
    if not any(paired):
        return OVER_LAUNCHES
    if all(paired):
        return OVER_ROUNDS.format(which="Intervals are")
    return f"{OVER_ROUNDS.format(which='Where the note names rounds, intervals are')} {OTHERS}"


def twins_text(twins: Iterable[Twin]) -> Text:
    """Describe the ratios of twins, which show the noise."""
    return Text("\n".join(twin_text(twin) for twin in twins))


def twin_text(twin: Twin) -> str:
    """Describe one twin, and what it means if it differs significantly."""
    over = twin.estimate.ratio(inverted=True)
    name = f"{twin.case.id}, batch {twin.case.batch}, the same again"
    text = f"{name}: {over.ratio:.3f} ({interval(over.lo, over.hi)}), {counted(twin.estimate.rounds)}"
    if twin.estimate.p_value < DISTRUST:
        text += ": that is not noise: do not trust the ratios of its group"
    return text


def speedups_table(pairs: Sequence[Speedup]) -> Table:
    names = ("case", "batch", "over", "metric", "base", "value", "speedup", "interval", "accuracy")
    drawn = table(*names, spare=("batch", "accuracy", "base, value", "metric"))
    for speedup in pairs:
        row(
            drawn,
            speedup.case_id,
            str(speedup.batch),
            speedup.over,
            speedup.metric,
            human(speedup.base, speedup.unit),
            human(speedup.value, speedup.unit),
            "-" if speedup.speedup is None else f"{speedup.speedup:.2f}",
            interval(speedup.lo, speedup.hi),
            _both(share(speedup.accuracy_metric or "", x) for x in (speedup.base_accuracy, speedup.accuracy)),
        )
    return drawn


def notes_text(pairs: Sequence[Speedup]) -> Text:
    """How far each speed-up can be trusted, or why there is none."""
    return remarks((one.case_id, f"batch {one.batch}, {one.over}", "; ".join(_notes(one))) for one in pairs)


def counted(rounds: int) -> str:
    """A number of rounds, in words."""
    return "1 round" if rounds == 1 else f"{rounds} rounds"


def _notes(speedup: Speedup) -> Iterator[str]:
    if speedup.paired:
        yield counted(speedup.rounds)
    if speedup.note:
        yield speedup.note
    if speedup.speedup is not None and not speedup.seen:
        yield "no difference seen"


def _both(sides: Iterable[str]) -> str:
    first, second = sides
    return first if first == second else f"{first} -> {second}"
