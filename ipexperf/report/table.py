"""The summary at the end of a run: a table as wide as the terminal, and lines below it."""

from __future__ import annotations

import textwrap
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ipexperf.case import AGAINST
from ipexperf.dtypes import PLAIN
from ipexperf.judge import growth
from ipexperf.judge.ratios import Ratio
from ipexperf.judge.rounds import PRIORS, Odd, Pools, odd
from ipexperf.outcomes import OUTCOMES, is_fine, place, title
from ipexperf.plan.groups import groups, plain_mode
from ipexperf.report import functions, roofs
from ipexperf.report.advice import advice
from ipexperf.report.fingerprints import structure_lines
from ipexperf.report.lines import WIDEST, Page, labelled, listed, named, wrapped
from ipexperf.report.moved import moved_lines
from ipexperf.report.shares import ratio_lines
from ipexperf.report.speeds import SpeedRatio, Speeds
from ipexperf.report.units import digits, interval, percent, plural, seconds
from ipexperf.report.words import labels
from ipexperf.result import METRICS, PRIMARY, Measurement, RoundRecord, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ipexperf.case import Case

Forms = tuple[tuple[str, tuple[str, ...]], ...]

GAP = "  "
VS_BASELINE, OTHER_ARM = "time vs baseline", "time vs other arm"
ROOF = "roof"
FACTOR, OVER_FIRST = "x fp32", "x first"
FACTORS = {
    FACTOR: "throughput over stock fp32: same model, batch, device and kind of mode",
    OVER_FIRST: "throughput over the first case of its group",
}
"""Names of the column with ratios, and what each means."""
HEADER = ("case", "batch", "step", "items/s", ROOF, "accuracy", FACTOR, VS_BASELINE, "verdict")
OPTIONAL = (ROOF, VS_BASELINE, OTHER_ARM)
"""Columns that are left out if they are empty."""
WIDE: Forms = (("cell", ()), ("brief", ()), ("value", ()))
NARROW: Forms = (("cell", ()), ("value", ()), ("value", ("batch",)), ("value", ("batch", ROOF)))
"""How a table may look, the best first: the form of its ratios, and the columns that it does without."""
LEFT = ("case", "accuracy", *FACTORS, VS_BASELINE, OTHER_ARM, "verdict")
"""Columns with text, aligned to the left. Columns of numbers are aligned to the right."""
TWIN = "  the same again (A/A twin)"


@dataclass(frozen=True, slots=True)
class Below:
    """A row with a name, and an entry in the column of ratios."""

    name: str
    entry: str


Row = tuple[str, ...] | Below | str
"""A row of cells, a row below a case, or the heading of a group."""


def summary_lines(
    measurements: Sequence[Measurement],
    verdicts: Mapping[str, Verdict],
    left_out: Mapping[str, int],
    commands: Sequence[str],
    ablated: Sequence[str] = (),
    rounds: Sequence[RoundRecord] = (),
    prior: Pools = PRIORS,
) -> list[str]:
    """The whole summary. Verdicts are looked up by case uid, because two batches share one id."""
    everything = sorted(measurements, key=lambda x: (x.case.id, x.case.batch, x.case.size))
    ordered = [one for one in everything if not one.case.is_call]
    speeds = Speeds.of(ordered, verdicts, rounds, prior)
    lines = []
    if ordered:
        lines += [part for line in advice(speeds, verdicts) for part in wrapped(line)]
        lines += ["", *_cases(speeds, verdicts)]
    elif not everything:
        lines.append("no case was measured")
    lines += functions.lines([one for one in everything if one.case.is_call], verdicts)
    lines += [*_dropped(rounds), *_odd(rounds, speeds.pools)]
    lines += [part for line in ratio_lines(speeds, ablated) for part in wrapped(line)]
    lines += _loud(ordered, verdicts)
    lines += moved_lines(ordered, verdicts)
    lines += [part for line in structure_lines(ordered, verdicts) for part in wrapped(line)]
    if left_out:
        total = sum(left_out.values())
        lines.append(f"left out: {plural(total, 'cell')} of the matrix")
        for reason, count in sorted(left_out.items(), key=lambda item: (-item[1], item[0])):
            lines += textwrap.wrap(reason, Page.width - 8, initial_indent=f"{count:>6}  ", subsequent_indent=" " * 8)
    if commands:
        lines.append("where to look next:")
        lines += [f"  {line}" for line in commands]
    return lines


def _cases(speeds: Speeds, verdicts: Mapping[str, Verdict]) -> list[str]:
    """The table by group, and what its columns mean."""
    name, factors = ratio_column(speeds)
    narrow = Page.width < WIDEST
    for form, without in NARROW if narrow else WIDE:
        cells = {uid: getattr(factor, form) for uid, factor in factors.items()}
        header, rows = _rows(speeds, verdicts, name, cells, without)
        widths = _widths(header, rows)
        if _width(widths) - (widths[0] if narrow else 0) <= Page.width:
            break
    lines = _table(header, rows)
    if factors:
        brief = "; +-: its 95 % interval" if form == "brief" else ""
        lines += labelled(name, f"{FACTORS[name]}{brief}")
    if any(isinstance(row, Below) for row in rows):
        lines += labelled("A/A twin", "the case above, measured a second time in the same rounds: 1 is right")
    if ROOF in header:
        lines += labelled(ROOF, "share of what was measured to be possible here; bound by c: computing, m: memory")
    return lines


def _rows(
    speeds: Speeds, verdicts: Mapping[str, Verdict], name: str, factors: Mapping[str, str], without: tuple[str, ...]
) -> tuple[tuple[str, ...], list[Row]]:
    """The header, and the cases of each group: the plainest first, with its twin below it."""
    by_group = groups(speeds.by_case)
    names = labels(by_group)
    rows: list[Row] = []
    for group in by_group:
        rows += [names[group.name]] if len(by_group) > 1 else []
        plainest = group.reference
        for case in sorted(group.cases, key=lambda case: case != plainest):
            rows.append(_row(speeds.by_case[case], verdicts.get(case.uid), factors.get(case.uid, "-")))
            if (twin := speeds.twin(case)) is not None:
                rows.append(Below(TWIN, f"{twin.cell}{' DIFFERS' if twin.differs else ''}"))
    return _without_empty_columns(_header(speeds.by_case, name), rows, without)


def _dropped(rounds: Sequence[RoundRecord]) -> list[str]:
    """How many turns were dropped, if any."""
    dropped = sum(record.dropped for record in rounds)
    total = dropped + sum(record.turns for record in rounds)
    text = f"{dropped} of {plural(total, 'turn')} were dropped: the machine was busy with something else meanwhile"
    return wrapped(text) if dropped else []


def _odd(rounds: Sequence[RoundRecord], pools: Pools) -> list[str]:
    """Processes that were much slower or faster than the others of their case."""
    processes = odd([record for record in rounds if record.schedule == "together"], pools.together)
    if not processes:
        return []
    meaning = "how many times as long one process took as the others of its case; ratios discount it"
    return labelled("ODD PROCESS", f"{meaning}: {named([_named_odd(record) for record in processes])}")


def _named_odd(process: Odd) -> str:
    twin = " (twin)" if process.seat.role == "twin" else ""
    return f"{process.seat.case.id}{twin}: {process.factor:.3g} times in round {process.number}"


def run_lines(line: str, slower: Sequence[str], *, fails: bool, spoilt: bool = False) -> list[str]:
    """The verdict on the run as a whole, printed above the table."""
    lines = wrapped(f"{line}: {named(slower)}" if slower else line)
    if fails:
        lines += labelled(
            "THE RUN FAILS", "no test failed, but half of the stable cases or more became slower together"
        )
    if spoilt:
        lines += labelled("THE RUN FAILS", "more of its cases do not count than --perf-contended allows")
    return lines


def missing_lines(missing: Sequence[str]) -> list[str]:
    """The lines for cases that were accepted and that a run does not have."""
    return listed("NOT IN THIS RUN", "a baseline was accepted for them here", missing)


def swallowed_lines(failing: Sequence[str]) -> list[str]:
    """The lines for cases that failed although pytest reports no test as failed."""
    why = (
        "their tests failed, but something (xfail, a try around perf(), a hook in a conftest.py) reports none as failed"
    )
    return listed("THE RUN FAILS", why, failing)


def ratio_column(speeds: Speeds) -> tuple[str, dict[str, SpeedRatio]]:
    """The name of the column with ratios, and the ratios by case uid.

    They are to stock fp32. If the run has no case of it, they are to the first case of each group, such as bf16 beside
    packed weights.
    """
    if ratios_of := speedups(speeds):
        return FACTOR, ratios_of
    references = {case: group.reference for group in groups(speeds.by_case) for case in group.cases}
    others = {case: speeds.compare(references[case], case) for case in speeds.counted if case != references[case]}
    compared = {case.uid: factor for case, factor in others.items() if factor is not None}
    if not compared:
        return FACTOR, {}
    first = {base.uid: SpeedRatio(Ratio(1.0), paired=True) for base in references.values() if base in speeds.counted}
    return OVER_FIRST, {**first, **compared}


def speedups(speeds: Speeds) -> dict[str, SpeedRatio]:
    """The ratio to the throughput of stock fp32, by case uid. Failed and invalid cases have none."""
    ratios_of = {}
    for case in speeds.counted:
        base = to_beat(case)
        factor = SpeedRatio(Ratio(1.0), paired=True) if case == base else speeds.compare(base, case)
        if factor is not None:
            ratios_of[case.uid] = factor
    return ratios_of


def to_beat(case: Case) -> Case:
    """The plain case to compare with: stock, fp32, and the plain mode of its kind (infer_jit -> infer)."""
    return replace(case.without_settings(), dtype=PLAIN, stack="stock", mode=plain_mode(case))


def _row(measurement: Measurement, verdict: Verdict | None, factor: str) -> tuple[str, ...]:
    case = measurement.case
    if measurement.failure:
        # If any launch failed, the case has no number, even if other launches ended well.
        return (case.id, str(case.batch), *"------", "failed" if verdict is None else verdict.outcome)
    step, speed = measurement.median(PRIMARY), measurement.median("throughput")
    return (
        case.id,
        str(case.batch),
        "-" if step is None else seconds(step),
        "-" if speed is None else digits(speed),
        roofs.short(measurement),
        _accuracy(measurement),
        factor,
        against(verdict),
        "not judged" if verdict is None else verdict.outcome,
    )


def _accuracy(measurement: Measurement) -> str:
    """The metric of accuracy that says most, of those that were measured."""
    for metric in METRICS.values():
        if metric.accuracy is not None and (value := measurement.median(metric.name)) is not None:
            return metric.accuracy.brief.format(value)
    return "-"


def against(verdict: Verdict | None) -> str:
    """The ratio to the baseline or the other arm, with its interval."""
    if verdict is None or verdict.ratio is None:
        return "-"
    if verdict.lo is None or verdict.hi is None:
        return percent(verdict.ratio)
    return f"{percent(verdict.ratio)} {interval(verdict.lo, verdict.hi)}"


def _header(cases: Iterable[Case], ratios_name: str) -> tuple[str, ...]:
    """The names of the columns. Cases measured in pairs have no baseline."""
    pairs = any(AGAINST in dict(case.knobs) for case in cases)
    otherwise = {FACTOR: ratios_name, **({VS_BASELINE: OTHER_ARM} if pairs else {})}
    return tuple(otherwise.get(name, name) for name in HEADER)


def _without_empty_columns(
    header: tuple[str, ...], rows: Sequence[Row], without: tuple[str, ...]
) -> tuple[tuple[str, ...], list[Row]]:
    """Remove empty columns, and those that the table does without."""
    cells = [row for row in rows if isinstance(row, tuple)]
    filled = [name not in OPTIONAL or any(row[at] != "-" for row in cells) for at, name in enumerate(header)]
    columns = [at for at, name in enumerate(header) if filled[at] and name not in without]
    visible: list[Row] = [tuple(row[at] for at in columns) if isinstance(row, tuple) else row for row in rows]
    return tuple(header[at] for at in columns), visible


def _table(header: tuple[str, ...], rows: Sequence[Row]) -> list[str]:
    """Align the columns. An id that does not fit gets a line of its own: people copy it, so it is never cut."""
    factor = next(place for place, name in enumerate(header) if name in FACTORS)
    widths = _widths(header, rows)
    widths[0] = max(widths[0] - max(_width(widths) - Page.width, 0), 0)
    begin = sum(widths[:factor]) + len(GAP) * factor
    lines = [*_cells(header, header, widths), GAP.join("-" * width for width in widths)]
    for row in rows:
        if isinstance(row, str):
            lines += wrapped(row)
        elif isinstance(row, Below):
            lines.append(row.name.ljust(min(begin, Page.width - len(row.entry))) + row.entry)
        else:
            lines += _cells(header, row, widths)
    return lines


def _width(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _widths(header: tuple[str, ...], rows: Sequence[Row]) -> list[int]:
    cells = [header, *(row for row in rows if isinstance(row, tuple))]
    return [max(len(row[column]) for row in cells) for column in range(len(header))]


def _cells(header: tuple[str, ...], row: tuple[str, ...], widths: Sequence[int]) -> list[str]:
    fits = len(row[0]) <= widths[0]
    cells = [
        cell.ljust(width) if column in LEFT else cell.rjust(width)
        for column, cell, width in zip(header, (row[0] if fits else "", *row[1:]), widths, strict=True)
    ]
    return [*([] if fits else [row[0]]), GAP.join(cells).rstrip()]


def _loud(measurements: Sequence[Measurement], verdicts: Mapping[str, Verdict]) -> list[str]:
    # Cases that never began are inconclusive too, but have a line of their own.
    judged = [(x.case.id, verdicts.get(x.case.uid)) for x in measurements if not x.never_began]
    with_verdict = [(name, verdict) for name, verdict in judged if verdict is not None]
    counts = Counter(verdict.outcome for _, verdict in with_verdict)
    # So have contended cases, with which nothing is known to be wrong.
    kinds = [
        (
            title(outcome).upper(),
            row.meaning,
            [name for name, verdict in with_verdict if verdict.outcome == outcome and not verdict.contended],
        )
        for outcome, row in OUTCOMES.items()
        if not row.fine
    ]
    contended = [name for name, verdict in with_verdict if verdict.contended]
    kinds.append(("CONTENDED", "measured on a busy machine, so the numbers do not count", contended))
    kinds += _cut(measurements)
    lines = []
    for word, meaning, names in kinds:
        lines += listed(word, meaning, names)
    lines += _emulated(measurements)
    lines += _fewer(measurements)
    lines += _settings(measurements)
    lines += _slowing(measurements)
    fine = [f"{counts[name]} {name}" for name in sorted(counts, key=place, reverse=True) if is_fine(name)]
    return [*lines, *([f"{', '.join(fine)} of {plural(len(measurements), 'case')}"] if fine else [])]


def _cut(measurements: Sequence[Measurement]) -> list[tuple[str, str, list[str]]]:
    """The cases with fewer launches than planned, by reason."""
    never: dict[str, list[str]] = {}
    short: dict[str, list[str]] = {}
    for measurement in measurements:
        if measurement.cut:
            (never if measurement.never_began else short).setdefault(measurement.cut, []).append(measurement.case.id)
    return [
        *(("NOT MEASURED", reason, names) for reason, names in never.items()),
        *(("CUT SHORT", f"fewer launches than planned, {reason}", names) for reason, names in short.items()),
    ]


def _emulated(measurements: Sequence[Measurement]) -> list[str]:
    """Cases in a dtype that the processor emulates."""
    ids = [x.case.id for x in measurements if any(launch.emulated for launch in x.counted)]
    meaning = "this CPU has no instructions for the dtype, so the speed is not that of the dtype"
    return listed("EMULATED", meaning, ids)


def _fewer(measurements: Sequence[Measurement]) -> list[str]:
    """Launches with fewer samples than asked for, by case."""
    short = [(x.case, launch.fewer) for x in measurements for launch in x.counted if launch.fewer]
    if not short:
        return []
    cases = dict(reversed(short))  # keep the first of each case
    texts = [f"{detail} ({case.id})" for case, detail in reversed(cases.items())]
    return labelled(
        "FEWER SAMPLES",
        f"{plural(len(short), 'launch', 'launches')} ended with fewer samples than asked: {named(texts)}",
    )


def _settings(measurements: Sequence[Measurement]) -> list[str]:
    """Cases during which somebody changed a setting of the machine or of the run."""
    changed = {x.case.id: launch.settings for x in measurements for launch in x.counted if launch.settings}
    texts = [f"{name} ({settings})" for name, settings in changed.items()]
    meaning = "their launches ran under unlike settings, so their median is of neither"
    return listed("SETTINGS CHANGED", meaning, texts)


def _slowing(measurements: Sequence[Measurement]) -> list[str]:
    """Cases whose steps become slower and slower, such as those of a network that keeps what it has seen."""
    found = {x.case.id: times for x in measurements if (times := growth.slowdown(x.counted)) is not None}
    texts = [f"{name} ({digits(times)} times)" for name, times in found.items()]
    meaning = "in every launch, so the step time depends on how long was measured"
    return listed("SLOWER AND SLOWER", meaning, texts)
