"""Parse `--perf-placement` strictly, and write it in one canonical way."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from ipexperf.plan.values import index, one_of, positive

KNOB = "placement"
"""The name of the knob that holds the placement of a case."""
LAUNCHERS = {
    "ipexrun": ("intel_extension_for_pytorch.launcher", "cpu", "--ninstances", "1"),
    "xeon": ("torch.backends.xeon.run_cpu", "--ninstances", "1"),
}
"""The module of each launcher, with arguments that make it start one process on all its cores."""
MOST = 4096
"""More than the largest number of a core."""


@dataclass(frozen=True, slots=True)
class PlacementWish:
    """The requested placement of workers. None leaves a setting alone."""

    cores: tuple[int, ...] | None = None
    threads: int | None = None
    node: int | None = None
    openmp: str | None = None
    allocator: str | None = None
    launcher: str | None = None

    @property
    def places(self) -> bool:
        """Whether it asks for more than a number of threads, which a forked worker sets too."""
        return self != PlacementWish(threads=self.threads)

    def __str__(self) -> str:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.cores is not None:
            from ipexperf.bench.machine.placement import ranges

            values["cores"] = ranges(self.cores)
        return ",".join(f"{name}={value}" for name, value in values.items() if value is not None)


def _cores(text: str) -> tuple[int, ...]:
    """Parse a core list: `0-3,8`, or `0-3+8`."""
    cores: list[int] = []
    for part in re.split(r"[,+]", text):
        matched = re.fullmatch(r"(\d+)(?:-(\d+))?", part, re.ASCII)
        if matched is None:
            raise argparse.ArgumentTypeError(f"expected numbers and ranges such as 0-3,8, got '{part}'")
        first, last = int(matched[1]), int(matched[2] or matched[1])
        if last < first or last >= MOST:
            why = "it ends before it begins" if last < first else f"no core has a number above {MOST - 1}"
            raise argparse.ArgumentTypeError(f"'{part}' is not a range of cores: {why}")
        cores += range(first, last + 1)
    if len(set(cores)) != len(cores):
        raise argparse.ArgumentTypeError(f"'{text}' names a core twice")
    return tuple(sorted(cores))


def read(text: str) -> PlacementWish:
    """Parse a comma list of NAME=VALUE. A part without `=` continues the core list before it."""
    from ipexperf.bench.machine.placement import (  # now, not by every pytest run that declares the options
        ALLOCATORS,
        OPENMP,
    )

    parsers: dict[str, Callable[[str], Any]] = {
        "cores": _cores,
        "threads": positive,
        "node": index,
        "openmp": one_of(*OPENMP),
        "allocator": one_of(*ALLOCATORS),
        "launcher": one_of(*LAUNCHERS),
    }
    parts: dict[str, str] = {}
    last = ""
    for word in (word.strip() for word in text.split(",")):
        name, equals, value = (part.strip() for part in word.partition("="))
        if not equals and last == "cores":
            parts["cores"] += f",{word}"
            continue
        if not equals or name not in parsers:
            raise argparse.ArgumentTypeError(f"expected NAME=VALUE with one of {', '.join(parsers)}, got '{word}'")
        if name in parts:
            raise argparse.ArgumentTypeError(f"{name} is there twice")
        parts[name], last = value, name
    if "launcher" in parts and len(parts) > 1:
        raise argparse.ArgumentTypeError("launcher: the launcher decides everything: leave the others out")
    wish: dict[str, Any] = {}
    try:
        for name, value in parts.items():
            wish[name] = parsers[name](value)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{name}: {error}") from None
    return PlacementWish(**wish)
