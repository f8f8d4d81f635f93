"""The summary at the end of a run: a table as wide as the terminal, and lines below it."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ipexperf.case import AGAINST, Case, NetworkCase
from ipexperf.judge.rounds import OddProcess, Pools, odd
from ipexperf.judge.sentence import BEYOND_DOUBT, details, of_time, sentence
from ipexperf.outcomes import OUTCOMES, is_fine, place, title
from ipexperf.plan.groups import groups
from ipexperf.proof import roof_lines
from ipexperf.report import functions
from ipexperf.report.advice import UNSOUND, advice
from ipexperf.report.lines import BUSY, WIDEST, Page, broken, by_meaning, labelled, listed, named, shortened, wrapped
from ipexperf.report.speeds import FACTORS
from ipexperf.report.summary import Judged, Summary
from ipexperf.report.words import labels
from ipexperf.result import METRICS, PRIMARY, Column, Measurement, Metric, RoundRecord
from ipexperf.units import accuracy, amount, digits, plural
from ipexperf.verdict import Structure, Verdict

GAP = "  "
VS_BASELINE, OTHER_ARM = "time vs baseline", "time vs other arm"
OF_ROOF = "of_roof"
LEFT = ("case", "accuracy", *FACTORS, VS_BASELINE, OTHER_ARM, "verdict")
"""Columns with text, aligned to the left. Columns of numbers are aligned to the right."""
TWIN = "  the same again (A/A twin)"
MOST_SAID = 3
"""Most sentences below a case. `ipexperf show RUN CASE` has all."""
SHARES = "what each ablated knob is worth:"


@dataclass(frozen=True, slots=True)
class RowBelow:
    """A row with a name, and an entry in the column of ratios."""

    name: str
    entry: str


def _columns() -> list[tuple[Metric, Column]]:
    """The metrics with a column of their own."""
    return [(metric, metric.column) for metric in METRICS.values() if metric.column is not None]


def _forms(*, narrow: bool) -> list[tuple[str, tuple[str, ...]]]:
    """How a table may look, the best first: the form of its ratios, and the columns that it does without."""
    if not narrow:
        return [("cell", ()), ("brief", ()), ("times", ())]
    spare = [column.title for _, column in _columns() if not column.always]
    return [("cell", ()), ("times", ()), ("times", ("batch",)), ("times", ("batch", *spare))]


Row = dict[str, str] | RowBelow | str
"""A row of cells by their columns, a row below a case, or the heading of a group."""


def summary_lines(summary: Summary) -> list[str]:
    """The whole summary."""
    networks = list(summary.networks.values())
    lines = [*_whole(summary), *_all_wrapped(summary.notes)]
    lines += listed("NOT IN THIS RUN", "a baseline was accepted for them here", summary.missing)
    if networks:
        lines += _all_wrapped(advice(summary))
        lines += ["", *_cases(summary)]
    elif not summary.functions:
        lines.append("no case was measured")
    lines += functions.lines(summary.functions)
    lines += [*_dropped(summary.rounds), *_odd(summary.rounds, summary.speeds.pools)]
    lines += _all_wrapped(_shares(summary))
    lines += _loud(networks)
    lines += _structures(networks)
    if summary.left_out:
        total = sum(summary.left_out.values())
        lines.append(f"left out: {plural(total, 'cell')} of the matrix")
        for reason, count in sorted(summary.left_out.items(), key=lambda item: (-item[1], item[0])):
            lines += broken(reason, Page.width - 8, f"{count:>6}  ", " " * 8)
    if summary.commands:
        lines.append("where to look next:")
    for command, meaning in summary.commands:  # never cut, because people copy them
        line = f"  {command}    {meaning}"
        lines += [line] if len(line) <= Page.width else [f"  {meaning}:", f"    {command}"]
    return lines


def brief_lines(summary: Summary) -> list[str]:
    """The result alone: the verdict on the run, if there is one, and how many cases are what."""
    judged = [*summary.networks.values(), *summary.functions]
    counts = Counter(verdict.kind for _, verdict in judged)
    counted = ", ".join(f"{counts[name]} {title(name)}" for name in sorted(counts, key=place))
    return [*_whole(summary), f"ipexperf: {plural(len(judged), 'case')}{counted and f': {counted}'}"]


def swallowed_lines(failing: Sequence[str]) -> list[str]:
    """The lines for cases that failed although pytest reports no test as failed."""
    why = (
        "their tests failed, but something (xfail, a try around perf(), a hook in a conftest.py) reports none as failed"
    )
    return listed("THE RUN FAILS", why, failing)


def _all_wrapped(texts: Iterable[str]) -> list[str]:
    return [line for text in texts for line in wrapped(text)]


def _whole(summary: Summary) -> Iterator[str]:
    """The verdict on the run as a whole."""
    yield from wrapped(f"{summary.line}: {named(summary.slower)}" if summary.slower else summary.line)
    if summary.unseen:
        why = "no test failed, but half of the stable cases or more became slower together"
        yield from labelled("THE RUN FAILS", why)


def _cases(summary: Summary) -> list[str]:
    """The table by group, and what its columns mean."""
    name, factors = summary.speeds.column()
    narrow = Page.width < WIDEST
    for form, without in _forms(narrow=narrow):
        rows = _rows(summary, name, {case: getattr(factor, form) for case, factor in factors.items()})
        widths = _widths(rows, without)
        if _width(widths) - (widths["case"] if narrow else 0) <= Page.width:
            break
    lines = _table(widths, rows)
    if factors:
        brief = "; +-: its 95 % interval" if form == "brief" else ""
        lines += labelled(name, f"{FACTORS[name]}{brief}")
    if any(isinstance(row, RowBelow) for row in rows):
        lines += labelled("A/A twin", "the case above, measured a second time in the same rounds: 1 is right")
    if (roof := METRICS[OF_ROOF].column) is not None and roof.title in widths:
        lines += labelled(roof.title, roof_lines.meaning(judged.measurement for judged in summary.networks.values()))
    return lines


def _rows(summary: Summary, name: str, factors: Mapping[NetworkCase, str]) -> list[Row]:
    """The cases of each group, the worst first, and a twin below its case. Cases measured in pairs have no baseline."""

    def urgency(case: NetworkCase) -> int:
        return place(summary.networks[case].verdict.outcome)

    by_group = sorted(groups(summary.networks), key=lambda group: min(map(urgency, group.cases)))
    names = labels(by_group)
    versus = OTHER_ARM if any(AGAINST in dict(case.knobs) for case in summary.networks) else VS_BASELINE
    rows: list[Row] = []
    for group in by_group:
        rows += [names[group.name]] if len(by_group) > 1 else []
        plainest = group.reference
        for case in sorted(group.cases, key=lambda case: (urgency(case), case != plainest)):
            judged = summary.networks[case]
            rows.append(_row(case, judged, {name: factors.get(case, "-"), versus: of_time(judged.verdict)}))
            rows += _said(judged.verdict)
            if (twin := summary.speeds.twin(case)) is not None:
                differs = " DIFFERS" if twin.distrusted else ""
                rows.append(RowBelow(TWIN, f"{twin.ratio(inverted=True).precise}{differs}"))
    return rows


def _row(case: NetworkCase, judged: Judged, ratios: Mapping[str, str]) -> dict[str, str]:
    measurement = judged.measurement
    measured = {column.title: _value(measurement, metric, column) for metric, column in _columns()}
    values = {**measured, "accuracy": _accuracy(measurement), **ratios}
    if measurement.failure:
        # If any launch failed, the case has no number, even if other launches ended well.
        values = dict.fromkeys(values, "-")
    return {"case": case.id, "batch": str(case.batch), **values, "verdict": judged.verdict.outcome}


def _value(measurement: Measurement, metric: Metric, column: Column) -> str:
    value = measurement.median(metric.name)
    if value is None:
        return "-"
    if column.form:
        return column.form(value)
    return digits(value) if column.title == metric.unit else amount(value, metric.unit)


def _accuracy(measurement: Measurement) -> str:
    """The metric of accuracy that says most, of those that were measured."""
    for metric in METRICS.values():
        if metric.accuracy is not None and (value := measurement.median(metric.name)) is not None:
            return f"{metric.accuracy.brief} {accuracy(value, metric.unit)}"
    return "-"


def _table(widths: dict[str, int], rows: Sequence[Row]) -> list[str]:
    """Align the columns. An id that does not fit gets a line of its own: people copy it, so it is never cut."""
    widths = {**widths, "case": max(widths["case"] - max(_width(widths) - Page.width, 0), 0)}
    begin = sum(widths[name] + len(GAP) for name in itertools.takewhile(lambda name: name not in FACTORS, widths))
    lines = [*_cells({name: name for name in widths}, widths), GAP.join("-" * width for width in widths.values())]
    for row in rows:
        if isinstance(row, str):
            lines += wrapped(row)
        elif isinstance(row, RowBelow):
            lines.append(row.name.ljust(min(begin, Page.width - len(row.entry))) + row.entry)
        else:
            lines += _cells(row, widths)
    return lines


def _widths(rows: Sequence[Row], without: Sequence[str]) -> dict[str, int]:
    """The width of each column of the table: of none that is empty, and of none that it does without."""
    cells = [row for row in rows if isinstance(row, dict)]
    optional = {VS_BASELINE, OTHER_ARM, *(column.title for _, column in _columns() if not column.always)}
    filled = [name for name in cells[0] if name not in optional or any(row[name] != "-" for row in cells)]
    return {name: max(len(name), *(len(row[name]) for row in cells)) for name in filled if name not in without}


def _width(widths: Mapping[str, int]) -> int:
    return sum(widths.values()) + len(GAP) * (len(widths) - 1)


def _cells(row: Mapping[str, str], widths: Mapping[str, int]) -> list[str]:
    fits = len(row["case"]) <= widths["case"]
    texts = row if fits else {**row, "case": ""}
    cells = [texts[name].ljust(size) if name in LEFT else texts[name].rjust(size) for name, size in widths.items()]
    return [*([] if fits else [row["case"]]), GAP.join(cells).rstrip()]


def _dropped(rounds: Sequence[RoundRecord]) -> list[str]:
    """How many turns were taken on a busy machine, if any."""
    dropped = sum(record.dropped for record in rounds)
    total = dropped + sum(record.turns for record in rounds)
    text = f"{dropped} of {plural(total, 'turn')} were taken beside other work, and count where too few others do"
    return wrapped(text) if dropped else []


def _odd(rounds: Sequence[RoundRecord], pools: Pools) -> list[str]:
    """Processes that were much slower or faster than the others of their case."""
    processes = odd([record for record in rounds if record.schedule == "together"], pools.together)
    if not processes:
        return []
    meaning = "how many times as long one process took as the others of its case; ratios discount it"
    return labelled("ODD PROCESS", f"{meaning}: {named([_named_odd(record) for record in processes])}")


def _named_odd(process: OddProcess) -> str:
    twin = " (twin)" if process.seat.role == "twin" else ""
    return f"{process.seat.case.id}{twin}: {process.factor:.3g} times in round {process.number}"


def _shares(summary: Summary) -> list[str]:
    """The gain of each ablated knob: a heading and a line for each case that was ablated, or nothing."""
    lines: dict[Case, list[str]] = {}
    for case in summary.networks:
        for name, value in case.knobs:
            whole = case.without(name)
            if name in summary.ablated and whole in summary.networks:
                words = f"without {name}" if value == "off" else f"with {name}={value}"
                ratio = summary.speeds.compare(whole, case, PRIMARY)
                share = f"not told: {UNSOUND}"
                if ratio is not None:
                    share = ratio.sentence("times the step time", "no share seen")
                lines.setdefault(whole, []).append(f"{words} {share}")
    return [SHARES, *(f"  {case.id}: {'; '.join(parts)}" for case, parts in lines.items())] if lines else []


def _loud(cases: Sequence[Judged]) -> Iterator[str]:
    """A line for each thing that is not as it should be, with its cases. The others are only counted."""
    # Cases that never began are inconclusive too, and contended ones invalid: both have lines of their own.
    began = [judged for judged in cases if not judged.measurement.never_began]
    for outcome, row in OUTCOMES.items():
        if not row.fine:
            ids = [judged.case.id for judged in began if judged.verdict.kind == outcome]
            yield from listed(title(outcome).upper(), row.meaning, ids)
    yield from listed("CONTENDED", BUSY, [judged.case.id for judged in began if judged.verdict.contended])
    cut = [measurement for measurement, _ in cases if measurement.cut]
    yield from by_meaning("NOT MEASURED", ((short.cut, short.case.id) for short in cut if short.never_began))
    begun = [short for short in cut if not short.never_began]
    yield from by_meaning("CUT SHORT", ((f"fewer launches than planned, {x.cut}", x.case.id) for x in begun))
    launches = [(measurement.case, launch) for measurement, _ in cases for launch in measurement.counted]
    emulated = dict.fromkeys(case for case, launch in launches if launch.emulated)
    meaning = "this CPU has no instructions for the dtype, so the speed is not that of the dtype"
    yield from listed("EMULATED", meaning, [case.id for case in emulated])
    fewer = [(case, launch.fewer) for case, launch in launches if launch.fewer]
    if fewer:
        first = dict(reversed(fewer))  # of each case
        texts = [f"{detail} ({case.id})" for case, detail in reversed(first.items())]
        count = plural(len(fewer), "launch", "launches")
        yield from labelled("FEWER SAMPLES", f"{count} ended with fewer samples than asked: {named(texts)}")
    settings = {case.id: launch.settings for case, launch in launches if launch.settings}
    meaning = "their launches ran under unlike settings, so their median is of neither"
    yield from listed("SETTINGS CHANGED", meaning, [f"{name} ({change})" for name, change in settings.items()])
    meaning = "in every launch, so the step time depends on how long was measured"
    yield from listed("SLOWER AND SLOWER", meaning, functions.slowing(cases))
    counts = Counter(judged.verdict.outcome for judged in began)
    fine = [f"{counts[name]} {name}" for name in sorted(counts, key=place, reverse=True) if is_fine(name)]
    if fine:
        yield f"{', '.join(fine)} of {plural(len(cases), 'case')}"


def _said(verdict: Verdict) -> list[str]:
    """The verdict in a sentence, and what else is known, below the row of a case that failed or changed."""
    lost = verdict.structure is not None and verdict.structure.losses
    loud = verdict.fails or verdict.outcome in BEYOND_DOUBT or verdict.moved or lost
    texts = [sentence(verdict), *details(verdict)][:MOST_SAID] if loud else []
    return [f"    {shortened(text)}" for text in texts]


def _structures(cases: Sequence[Judged]) -> Iterator[str]:
    """Lines for cases whose kernels differ from those of their baseline, and for unstable ones."""
    structures = [(judged.case.id, judged.verdict.structure or Structure("same")) for judged in cases]
    pairs = any(AGAINST in dict(judged.case.knobs) for judged in cases)
    whose = "the other arm does" if pairs else "their baseline did"
    lost = [name for name, structure in structures if structure.losses and not pairs]
    yield from listed("OPTIMISATIONS LOST", "these run what can only cost time", lost)
    changed = [name for name, structure in structures if structure.outcome == "changed" and name not in lost]
    yield from listed("STRUCTURE CHANGED", f"these run different kernels than {whose}", changed)
    unstable = [name for name, structure in structures if structure.outcome == "unstable"]
    yield from listed("STRUCTURE UNSTABLE", "the kernels differ from step to step", unstable)
