"""The table at the end of a run: plain text, at most 120 columns, with what was not said in it said below it."""

from __future__ import annotations

import statistics
import textwrap
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from ipexperf.case import AGAINST
from ipexperf.judge.ratios import sound
from ipexperf.plan import placement, start, yardstick
from ipexperf.report import roofs
from ipexperf.report.fingerprints import structure_lines
from ipexperf.report.shares import ratio_lines
from ipexperf.report.units import digits, interval, percent, plural, seconds
from ipexperf.result import EMULATED, FEWER, PRIMARY, Measurement, Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ipexperf.case import Case

WIDTH = 120
GAP = "  "
VS_BASELINE, OTHER_ARM = "time vs baseline", "time vs other arm"
ROOF = "roof"
HEADER = ("case", "batch", "step", "items/s", ROOF, "accuracy", "x fp32", VS_BASELINE, "verdict")
LEFT = ("case", "accuracy", VS_BASELINE, OTHER_ARM, "verdict")
"""The columns that hold words; numbers are set to the right."""
NAMED = 4
"""So many cases of an outcome are named; the rest are counted."""
ACCURACIES = (
    ("accuracy", "acc {:.1%}"),
    ("agreement", "agr {:.1%}"),
    ("fidelity", "rmse {:.1e}"),
    ("loss", "loss {:.3g}"),
)
LOUD: tuple[tuple[Outcome, str, str], ...] = (
    ("failed", "FAILED", "nothing was measured"),
    ("invalid", "INVALID", "measured, but the numbers count for nothing"),
    ("regressed", "REGRESSED", "slower than the baseline or the other arm, beyond doubt"),
    ("platform_shift", "PLATFORM SHIFT", "moved together with the whole run"),
    ("no_baseline", "NO BASELINE", "speed was measured, not judged"),
    ("not_comparable", "NOT COMPARABLE", "the baseline is of other hardware or other work"),
    ("inconclusive", "INCONCLUSIVE", "neither a slowdown nor its absence was shown"),
)


def summary_lines(
    measurements: Sequence[Measurement],
    verdicts: Mapping[str, Verdict],
    left_out: Mapping[str, int],
    where: Sequence[str],
    ablated: Sequence[str] = (),
) -> list[str]:
    """The whole summary. Verdicts are found by the uid of their case, for two batches share one id."""
    ordered = sorted(measurements, key=lambda x: (x.case.id, x.case.batch, x.case.size))
    lines = []
    if ordered:
        factors = speedups(ordered, verdicts)
        rows = [_row(x, verdicts.get(x.case.uid), factors.get(x.case.uid)) for x in ordered]
        header, rows = _shown(_header(ordered), rows)
        lines += _table(header, rows)
        if factors:
            lines += _wrapped("x fp32", "throughput over stock fp32: same model, batch, device and kind of mode")
        if ROOF in header:
            lines += _wrapped(ROOF, "share of what was measured to be possible here; bound by c: computing, m: memory")
    else:
        lines.append("no case was measured")
    lines += [part for line in ratio_lines(ordered, verdicts, ablated) for part in _told(line)]
    lines += _loud(ordered, verdicts)
    lines += [part for line in structure_lines(ordered, verdicts) for part in _told(line)]
    if left_out:
        total = sum(left_out.values())
        lines.append(f"left out: {plural(total, 'cell')} of the matrix")
        for reason, count in sorted(left_out.items(), key=lambda item: (-item[1], item[0])):
            lines += textwrap.wrap(reason, WIDTH - 8, initial_indent=f"{count:>6}  ", subsequent_indent=" " * 8)
    if where:
        lines.append("where to look next:")
        lines += [f"  {line}" for line in where]
    return lines


def run_lines(line: str, slower: Sequence[str], *, fails: bool) -> list[str]:
    """What the run says as a whole, which stands above the table: no row of it does."""
    lines = _told(f"{line}: {_named(slower)}" if slower else line)
    if fails:
        lines += _wrapped("THE RUN FAILS", "no test did, but half of the stable cases or more became slower together")
    return lines


def speedups(measurements: Sequence[Measurement], verdicts: Mapping[str, Verdict]) -> dict[str, float]:
    """Case uid -> times the throughput of its stock fp32 case; neither side counts if it is failed or invalid."""
    speeds = {}
    for measurement in measurements:
        values = measurement.values("throughput")
        if values and sound(measurement, verdicts.get(measurement.case.uid)):
            # The geometric mean, as every ratio has it.
            speeds[measurement.case] = statistics.geometric_mean(values)
    return {case.uid: speed / speeds[base] for case, speed in speeds.items() if (base := to_beat(case)) in speeds}


def to_beat(case: Case) -> Case:
    """The plain case that a case is to beat: stock, fp32, and the plain mode of its kind (infer_jit -> infer)."""
    conditions = tuple(knob for knob in case.knobs if knob[0] in (placement.KNOB, start.KNOB, yardstick.KNOB, AGAINST))
    return replace(case, dtype="fp32", stack="stock", mode=case.mode.split("_", 1)[0], knobs=conditions)


def _row(measurement: Measurement, verdict: Verdict | None, factor: float | None) -> tuple[str, ...]:
    case = measurement.case
    if measurement.failure:
        # A launch that did end well is no measurement of the case: no number at all.
        return (case.id, str(case.batch), *"------", "failed" if verdict is None else verdict.outcome)
    step, speed = measurement.median(PRIMARY), measurement.median("throughput")
    return (
        case.id,
        str(case.batch),
        "-" if step is None else seconds(step),
        "-" if speed is None else digits(speed),
        roofs.short(measurement),
        next((text.format(value) for name, text in ACCURACIES if (value := measurement.median(name)) is not None), "-"),
        "-" if factor is None else f"{factor:.2f}",
        _against(verdict),
        "not judged" if verdict is None else verdict.outcome,
    )


def _against(verdict: Verdict | None) -> str:
    if verdict is None or verdict.ratio is None:
        return "-"
    if verdict.lo is None or verdict.hi is None:
        return percent(verdict.ratio)
    return f"{percent(verdict.ratio)} {interval(verdict.lo, verdict.hi)}"


def _header(measurements: Sequence[Measurement]) -> tuple[str, ...]:
    """The names of the columns: cases that were measured in pairs have no baseline."""
    pairs = any(AGAINST in dict(x.case.knobs) for x in measurements)
    return tuple(OTHER_ARM if pairs and name == VS_BASELINE else name for name in HEADER)


def _shown(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Without the roof, where nothing was held against one."""
    at = header.index(ROOF)
    if any(row[at] != "-" for row in rows):
        return header, rows
    return header[:at] + header[at + 1 :], [row[:at] + row[at + 1 :] for row in rows]


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Aligned columns. An id that does not fit gets a line of its own: it is never cut, people copy it."""
    every = [header, *rows]
    widths = [max(len(row[column]) for row in every) for column in range(len(header))]
    widths[0] = min(widths[0], WIDTH - sum(widths[1:]) - len(GAP) * (len(header) - 1))
    lines = []
    for row in every:
        name = row[0]
        if len(name) > widths[0]:
            lines.append(name)
            name = ""
        cells = [
            cell.ljust(width) if column in LEFT else cell.rjust(width)
            for column, cell, width in zip(header, (name, *row[1:]), widths, strict=True)
        ]
        lines.append(GAP.join(cells).rstrip())
    lines.insert(1, GAP.join("-" * width for width in widths))
    return lines


def _loud(measurements: Sequence[Measurement], verdicts: Mapping[str, Verdict]) -> list[str]:
    # What never began is inconclusive for a reason of its own, and is told once.
    outcomes = {
        x.case.uid: verdicts[x.case.uid].outcome for x in measurements if x.case.uid in verdicts and not x.never_began
    }
    counts = Counter(outcomes.values())
    # So is what the machine's other work spoilt: nothing was shown to be wrong with the case.
    spoilt = {uid for uid in outcomes if verdicts[uid].contended}
    told = [
        (
            word,
            meaning,
            [x.case.id for x in measurements if (outcomes.get(x.case.uid), x.case.uid in spoilt) == (outcome, False)],
        )
        for outcome, word, meaning in LOUD
    ]
    contended = [x.case.id for x in measurements if x.case.uid in spoilt]
    told.append(("CONTENDED", "measured on a machine that was not ours, so the numbers count for nothing", contended))
    never = [x.case.id for x in measurements if x.never_began]
    told.append(("NOT MEASURED", "the budget (--perf-budget) was spent before they began", never))
    short = [x.case.id for x in measurements if x.cut and not x.never_began]
    told.append(("CUT SHORT", "fewer launches than planned, the budget (--perf-budget) was spent", short))
    lines = []
    for word, meaning, names in told:
        if names:
            lines += _wrapped(f"{word} ({len(names)})", f"{meaning}: {_named(names)}")
    lines += _emulated(measurements)
    lines += _fewer(measurements)
    fine = [f"{counts[name]} {name}" for name in ("ok", "improved") if counts[name]]
    return [*lines, *([f"{', '.join(fine)} of {plural(len(measurements), 'case')}"] if fine else [])]


def _emulated(measurements: Sequence[Measurement]) -> list[str]:
    """Cases in a dtype that the processor cannot compute in: slow for a reason that is none of the software's."""
    found = [
        x.case.id for x in measurements if any(note.startswith(EMULATED) for one in x.counted for note in one.notes)
    ]
    meaning = "this CPU has no instructions for the dtype, so the speed is not that of the dtype"
    return _wrapped(f"EMULATED ({len(found)})", f"{meaning}: {_named(found)}") if found else []


def _fewer(measurements: Sequence[Measurement]) -> list[str]:
    """Launches whose steps were too slow for what was asked: counted, and told once a case."""
    found = [
        (x.case, note.removeprefix(f"{FEWER}: "))
        for x in measurements
        for launch in x.counted
        for note in launch.notes
        if note.startswith(FEWER)
    ]
    if not found:
        return []
    cases = dict(reversed(found))  # the first of each case stays
    told = [f"{detail} ({case.id})" for case, detail in reversed(cases.items())]
    return _wrapped("FEWER SAMPLES", f"{plural(len(found), 'launch', 'launches')} {FEWER}: {_named(told)}")


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(dict.fromkeys(names[:NAMED])) + more


def _wrapped(label: str, text: str) -> list[str]:
    return _told(f"{label}: {text}")


def _told(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent="    ", break_on_hyphens=False)
