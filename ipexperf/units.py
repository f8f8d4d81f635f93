"""Numbers for people: three digits and a suitable unit."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
SIZES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
TWICE = 2.0
"""A change is told in percent below this ratio, and in times from it on."""
VAST = 1e15
"""A number from this on is written with an exponent."""


def digits(value: float) -> str:
    """Three significant digits, with an exponent only for very small and very large numbers; thousands in full."""
    if not math.isfinite(value):
        return str(value)
    if value and not 1e-3 <= abs(value) < VAST:
        return f"{value:.1e}"
    if abs(value) >= 999.5:
        return f"{value:,.0f}"
    decimals = 2 if not value else max(0, 2 - math.floor(math.log10(abs(float(f"{value:.3g}")))))
    return f"{value:.{min(decimals, 4)}f}"


def seconds(value: float) -> str:
    """A duration: '12.3 ms'; minutes and hours from two minutes on."""
    if not math.isfinite(value):
        return f"{value} s"
    if 120 <= value < VAST:
        minutes, rest = divmod(round(value), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"
    for size, unit in TIMES:
        # Numbers that round up to the next unit are shown in the next unit.
        if abs(value) >= size * 0.9995:
            return f"{digits(value / size)} {unit}"
    return f"{digits(value / 1e-9)} ns" if value else "0 s"


def within(values: Sequence[float], unit: str = "s") -> str:
    """The median of these values and their range, in one unit: '3.90 ms (3.15 to 5.74)'."""
    value, scale = statistics.median(values), 1.0
    if unit == "s":
        scale = next((size for size, _ in TIMES if value >= size * 0.9995), TIMES[-1][0])
    between = f" ({digits(min(values) / scale)} to {digits(max(values) / scale)})"
    return f"{amount(value, unit).strip()}{between if len(values) > 1 else ''}"


def seconds_between(least: float, most: float) -> str:
    """A duration of which the bounds are known: '12 s to 4 min 20 s'."""
    shown = [seconds(value) if value >= 120 else f"{value:.0f} s" for value in (least, most)]
    return " to ".join(dict.fromkeys(shown))


def size(value: float) -> str:
    """An amount of memory, in powers of 1024: '1.20 GiB'."""
    for factor, unit in SIZES:
        if abs(value) >= factor * 0.9995:
            return f"{digits(value / factor)} {unit}"
    return f"{value:.0f} B"


def scaled(value: float, unit: str) -> str:
    """A large number in powers of 1000: '84.1 GFLOP/s'."""
    scale, prefix = next((x for x in SCALES if abs(value) >= x[0] * 0.9995), (1.0, ""))
    return f"{digits(value / scale)} {prefix}{unit}"


def amount(value: float, unit: str) -> str:
    """A number with the unit of its metric."""
    if unit == "s":
        return seconds(value)
    if unit == "bytes":
        return size(value)
    if unit == "fraction":
        return in_percent(value, 1)
    if unit == "1":
        return f"{value:,.0f}" if value == round(value) else digits(value)
    return scaled(value, unit) if unit in ("FLOP/s", "FLOP", "Hz") else f"{digits(value)} {unit}".rstrip()


def in_percent(fraction: float, decimals: int = 0) -> str:
    """A fraction of a whole, with so many decimals: '91 %', '90.0 %'."""
    return f"{100 * fraction:.{decimals}f} %"


def accuracy(value: float, unit: str) -> str:
    """How good answers are: a share in percent, anything else with three digits."""
    return in_percent(value, 1) if unit == "fraction" else f"{value:.3g}"


def share(fraction: float, most: int = 4) -> str:
    """A fraction of a whole, with as many digits as it has, `most` at most: '2 %', '99.5 %'."""
    return f"{float(f'{100 * fraction:.{most}g}'):g} %"


def percent(ratio: float) -> str:
    """A ratio as a change: '+12.3 %', or '4.4 times' from two times on."""
    if not math.isfinite(ratio) or ratio >= TWICE:
        return f"{times(ratio)} times"
    return f"{round((ratio - 1) * 100, 1) + 0.0:+.1f} %"  # -0.0 becomes 0.0


def times(ratio: float) -> str:
    """A ratio in short: '0.82', '4.4', '17.5'."""
    return digits(ratio) if ratio >= 9.95 else f"{ratio:.{2 if ratio < 0.995 else 1}f}"


def change(ratio: float, more: str = "slower", less: str = "faster") -> str:
    """The same in words: '5.0 % slower', '4.4 times slower', '2.5 times faster'."""
    size = max(ratio, 1 / ratio)
    shown = f"{times(size)} times" if size >= TWICE else f"{100 * abs(ratio - 1):.1f} %"
    return f"{shown} {more if ratio >= 1 else less}"


def from_to(before: float, after: float, unit: str) -> str:
    """Two amounts: '4.27 -> 19.0 ms', '111 KiB -> 1.02 MiB'."""
    was, now = amount(before, unit), amount(after, unit)
    number, _, name = was.partition(" ")
    return f"{number if now.partition(' ')[2] == name else was} -> {now}"


def plural(count: int, noun: str, nouns: str = "") -> str:
    """'1 case', '2 cases'."""
    return f"{count} {noun if count == 1 else nouns or noun + 's'}"
