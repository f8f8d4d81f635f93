"""The conclusions of a run: each model's best configuration, the gain of each stack and dtype, what got slower."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ipexperf.case import AGAINST, NetworkCase
from ipexperf.dtypes import DTYPES, PLAIN
from ipexperf.judge.policy import Policy
from ipexperf.outcomes import is_fine
from ipexperf.plan.groups import STOCK, Group, groups, reference
from ipexperf.ratio import APART, SINGLE
from ipexperf.report.lines import named
from ipexperf.report.speeds import Speeds
from ipexperf.report.summary import Judged, Summary
from ipexperf.report.words import Words, labels
from ipexperf.result import METRICS, accuracies
from ipexperf.units import in_percent, plural

TURNS = "ratios compare cases that took turns in the same rounds"
NO_TURNS = f"those with {APART} compare launches that did not, and are less exact"
BRACKETS = "in brackets the 95 % interval of each ratio by itself"
NOTHING = "no difference seen"
UNSOUND = "one of the two has no numbers that count"
TIES = 2
"""Most cases to name that are not known to be slower than the best."""


def advice(summary: Summary) -> list[str]:
    """A sentence for each model and kind of step, lines with the gain of each choice, and what got slower."""
    by_group = groups(summary.networks)
    short_names = labels(by_group)
    lines = [line for group in by_group for line in _of_group(group, short_names[group.name], summary)]
    if not lines:
        return []
    compared = any(sum(case in summary.speeds.counted for case in group.cases) > 1 for group in by_group)
    apart = any(APART in line for line in lines)
    lines.append(_slower(summary.networks))
    return [*lines, "; ".join([TURNS, *([NO_TURNS] if apart else []), BRACKETS])] if compared else lines


def _of_group(group: Group[NetworkCase], label: str, summary: Summary) -> Iterator[str]:
    words, speeds = Words.of(group.cases), summary.speeds
    counted = [case for case in group.cases if case in speeds.counted]
    for twin in filter(None, map(speeds.twin, counted)):
        if twin.distrusted:
            yield (
                f"DO NOT TRUST THE RATIOS of {label}: the same case a second time (its A/A twin) ran "
                f"{twin.ratio(inverted=True).precise} times as fast, where 1 is right: "
                "`ipexperf doctor` looks for what is wrong with this machine"
            )
    lost = Counter(_why(summary.networks[case]) for case in group.cases if case not in counted)
    rest = f" ({', '.join(f'{count} {why}' for why, count in sorted(lost.items()))})" if lost else ""
    if len(counted) > 1:
        yield f"{label}: {_best(counted, words, speeds)}"
        yield from _worth(group.cases, words, speeds)
    elif counted:
        (only,) = counted
        score = _score(only, only, speeds)
        others = f"no other case counts{rest}" if lost else "there is no other case"
        yield f"{label}: {words.subject(only)} has nothing to compare with: {others}{score}"
    else:
        yield f"{label}: no case counts{rest}"


def _why(judged: Judged) -> str:
    """Why the numbers of a case do not count, in a word or two."""
    if judged.measurement.never_began:
        return "not measured"
    if judged.measurement.failure:
        return "failed"
    return "contended" if judged.measurement.contended or judged.verdict.contended else "invalid"


def _best(counted: Sequence[NetworkCase], words: Words, speeds: Speeds) -> str:
    """The fastest of several cases."""
    base = reference(counted)
    ratios_of = {
        case: compared for case in counted if case != base and (compared := speeds.compare(base, case)) is not None
    }
    if not ratios_of:
        return "no two cases can be compared"
    best = max(ratios_of, key=lambda case: ratios_of[case].value)
    compared = ratios_of[best]
    if compared.value <= 1:
        best = base
    subject, score = words.subject(best), _score(best, base, speeds)
    gain = "" if best == base else f": {compared.times} times {words.base(base)}"
    if any(ratio.lo is None for ratio in ratios_of.values()):
        return f"{subject} was fastest{gain}, and {SINGLE}{score}"
    ties = [case for case in counted if case != best and _alike(case, best, speeds)]
    if base in ties or (best == base and ties):
        rival = best if best != base else max(ties, key=lambda case: ratios_of[case].value)
        text = f"{words.subject(rival)} is {ratios_of[rival].sentence('times as fast', NOTHING)}"
        return f"nothing is seen to be faster than {words.base(base)}: {text}"
    bounds = f" ({compared.bounds})" if gain else ""
    if ties:
        rivals = named([words.base(case) for case in ties], TIES)
        return f"{subject} is among the fastest{gain}{bounds}; {NOTHING} between it and {rivals}{score}"
    return f"{subject} is fastest{gain}{bounds}{score}"


def _alike(case: NetworkCase, best: NetworkCase, speeds: Speeds) -> bool:
    """Whether a case does not differ significantly from the best."""
    compared = speeds.compare(best, case)
    return compared is not None and not compared.differs


def _score(best: NetworkCase, base: NetworkCase, speeds: Speeds) -> str:
    """The accuracy of the best, compared with stock fp32 if that was measured."""
    for name in accuracies():
        value = speeds.counted[best].median(name)
        if value is None or METRICS[name].unit != "fraction":
            continue
        text = f"; {name} {in_percent(value, 1)}"
        before = speeds.counted[base].median(name)
        if best == base or before is None or (base.stack, base.dtype) != (STOCK, PLAIN):
            return text
        if abs(value - before) <= Policy().accuracy_bound:
            return f"{text}, unchanged"
        way = "above" if value > before else "below"
        return f"{text}, {100 * abs(value - before):.1f} points {way} {STOCK} {PLAIN}"
    return ""


def _worth(cases: Sequence[NetworkCase], words: Words, speeds: Speeds) -> Iterator[str]:
    """The gain of each stack over stock and of each dtype over fp32, all else being equal."""
    order = sorted(cases, key=lambda case: (case.stack, len(case.knobs), len(case.mode), case.id))
    order.sort(key=lambda case: list(DTYPES).index(case.dtype))
    for axis, plain, values in (
        ("stack", STOCK, sorted({case.stack for case in cases})),
        ("dtype", PLAIN, [dtype for dtype in DTYPES if any(case.dtype == dtype for case in cases)]),
    ):
        for value in values:
            alike = [case for case in order if value != plain and getattr(case, axis) == value]
            if parts := _gains(alike, axis, plain, words, speeds):
                yield f"  {value} over {plain}: {'; '.join(parts)}"


def _gains(cases: Sequence[NetworkCase], axis: str, plain: str, words: Words, speeds: Speeds) -> list[str]:
    """How many times as fast each case is as the same case with the plain value on one axis."""
    parts, lost = [], []
    for case in cases:
        base = replace(case, stack=plain) if axis == "stack" else replace(case, dtype=plain)
        if base not in speeds.by_case:
            continue
        compared, configuration = speeds.compare(base, case), words.short(case, axis)
        if compared is None:
            lost.append(configuration)
        else:
            parts.append(f"{configuration} {compared.sentence('times', NOTHING)}")
    return [*parts, f"not known for {', '.join(lost)}: {UNSOUND}"] if lost else parts


def _slower(networks: Mapping[NetworkCase, Judged]) -> str:
    """Answer the question whether anything got slower, as far as the judge knows."""
    paired = any(name == AGAINST for case in networks for name, _ in case.knobs)
    question = f"slower than {'the other arm' if paired else 'the baseline'}"
    verdicts = {case: judged.verdict for case, judged in networks.items()}
    counts = Counter(verdict.alone.kind for verdict in verdicts.values())
    slower = [case.id for case, verdict in verdicts.items() if verdict.slower]
    if slower:
        return f"{question}: {len(slower)} of {plural(len(networks), 'case')}: {named(slower)}"
    fine = sum(counts[name] for name in counts if is_fine(name))
    if fine:
        parts = [f"{fine} of {plural(len(networks), 'case')}"]
        parts += [f"{counts[name]} {name}" for name in sorted(counts) if not is_fine(name)]
        return f"{question}: none of those that could be judged ({', '.join(parts)})"
    if counts["no_baseline"] == len(networks):
        return f"{question}: not known, for there is none yet"
    return f"{question}: not known ({', '.join(f'{counts[name]} {name}' for name in sorted(counts))})"
