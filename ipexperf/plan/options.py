"""Every option in one table: parsed once, strictly; command line > environment > ini > default."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ipexperf import bench
from ipexperf.case import AXES, DTYPES
from ipexperf.errors import UsageError
from ipexperf.plan import placement as places
from ipexperf.plan import sizes, start
from ipexperf.plan.values import flag, fraction, index, one_of, positive, rate, seconds, settings, window, words


def preset(text: str) -> str:
    """A preset's name."""
    from ipexperf.plan.matrix import PRESETS

    return one_of(*PRESETS)(text)


@dataclass(frozen=True, slots=True)
class Option:
    """One option: how it is spelled, read and explained."""

    flag: str
    read: Callable[[str], Any]
    default: Any
    help: str
    metavar: str | None = None
    repeat: bool = False
    knob: bool = False
    """A short way to say `--perf-knobs` for the knob of its name."""

    @property
    def name(self) -> str:
        """As a field of Options, and with `ipexperf_` before it as an ini key."""
        return self.flag.removeprefix("--").removeprefix("perf-").replace("-", "_")

    @property
    def ini(self) -> str:
        return f"ipexperf_{self.name}"

    @property
    def variable(self) -> str:
        return f"IPEXPERF_{self.name.upper()}"

    @property
    def switch(self) -> bool:
        return self.read is flag


def shipped(kind: str) -> str:
    """The leaves of a kind by their files' names: a help text is no reason to import them."""
    folder = Path(bench.__file__).parent / f"{kind}s"
    return ", ".join(sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")))


_AXIS_HELP = {
    "model": "models, e.g. resnet18,resnet50",
    "device": shipped("device"),
    "dtype": ", ".join(DTYPES),
    "mode": shipped("mode"),
    "stack": shipped("stack"),
}

OPTIONS: tuple[Option, ...] = (
    *(
        Option(f"--{axis}", words, None, f"{_AXIS_HELP[axis]}, or all (comma list, repeatable)", "NAMES", repeat=True)
        for axis in AXES
    ),
    Option("--perf-preset", preset, "quick", "which part of the matrix: quick, nightly or full", "NAME"),
    Option("--perf-db", str, "ipexperf.db", "results: a SQLite file or an SQLAlchemy URL", "DB"),
    Option("--perf-baselines", Path, Path("baselines"), "folder of the accepted baselines", "DIR"),
    Option(
        "--perf-baseline-from",
        one_of("files", "history"),
        "files",
        "what is judged against: accepted files, or history",
        "WORD",
    ),
    Option("--perf-window", window, 12, "with history: so many of the branch's last runs, 3 to 12", "N"),
    Option("--perf-report", Path, None, "write pages for a browser there when the run has ended", "DIR"),
    Option("--perf-launches", positive, None, "fresh processes a case (default: the preset's)", "N"),
    Option(
        "--perf-rounds",
        one_of("on", "off"),
        "on",
        "on: cases that can be compared take turns in rounds; off: each case alone",
        "WORD",
    ),
    Option(
        "--perf-twin",
        one_of("on", "off"),
        None,
        "in each round, the reference a second time: shows the noise (default: the preset's)",
        "WORD",
    ),
    Option("--perf-batch", positive, None, "batch size of every case (default: the preset's, or the model's)", "N"),
    Option(
        "--perf-size", sizes.read, None, "size of inputs: small, normal or a number (default: the preset's)", "SIZE"
    ),
    Option("--perf-knobs", settings, (), "settings to turn, each value a case: level=O0", "N=V", repeat=True),
    Option("--perf-optimizer", words, (), "optimizers of training, e.g. adam,adamw", "NAMES", repeat=True, knob=True),
    Option("--perf-input", words, (), "where batches come from: device, host, loader", "KINDS", repeat=True, knob=True),
    Option("--perf-ablate", words, (), "beside each case, one with each of these knobs off", "KNOBS", repeat=True),
    Option("--perf-samples", positive, 12, "least number of samples a launch", "N"),
    Option("--perf-seconds", seconds, 0.6, "least sampling time a launch, in seconds", "S"),
    Option("--perf-budget", seconds, None, "seconds for the run: no launch begins after them", "S"),
    Option("--perf-against", str, None, "measure in pairs with this arm: PYTHON, KEY=VALUE, stack=stock, ...", "ARM"),
    Option("--perf-tolerance", fraction, None, "with pairs: a slowdown that is nobody's business (default: 5%%)", "F"),
    Option("--perf-alpha", rate, None, "with pairs: rate of false alarms a case (default: 0.005)", "P"),
    Option("--perf-max-pairs", positive, None, "with pairs: how many at most (default: 24)", "N"),
    Option(
        "--perf-inconclusive",
        one_of("pass", "fail", "skip"),
        "pass",
        "what an inconclusive test does: pass, fail or skip",
        "WORD",
    ),
    Option(
        "--perf-structure",
        one_of("warn", "fail"),
        "warn",
        "what a changed structure of what ran does: warn, or fail",
        "WORD",
    ),
    Option(
        "--perf-yardstick", flag, False, "let each case take turns with the yardstick that `ipexperf yardstick` made"
    ),
    Option("--perf-timeout", seconds, 600.0, "seconds that one request to a worker may take", "S"),
    Option("--perf-threads", positive, None, "threads of a worker (default: the cores it may use)", "N"),
    Option("--perf-placement", places.read, None, "where workers run: cores=0-3,node=0,openmp=iomp5", "WORDS"),
    Option(
        "--perf-start",
        start.read,
        start.AUTO,
        "how workers begin: auto (fresh in the first round, forked after the imports in the others), fresh, or fork",
        "KIND",
    ),
    Option("--perf-device-index", index, 0, "which of several xpu or cuda devices", "N"),
    Option("--perf-data", Path, None, "folder with CIFAR-10 in its on-disk format (default: embedded digits)", "DIR"),
    Option("--perf-cache", Path, None, "folder of trained weights (default: .ipexperf in this folder)", "DIR"),
    Option("--perf-python", str, None, "interpreter of the workers (default: this one)", "PYTHON"),
    Option("--perf-load", words, (), "modules or .py files that register models, modes, devices", "NAMES", repeat=True),
    Option("--perf-no-record", flag, False, "write nothing to the database"),
    Option("--perf-no-pulse", flag, False, "do not time two fixed kernels before and after each launch"),
    Option("--perf-no-roof", flag, False, "do not measure what the machine can do: no share of its roof is told"),
)

SHORTHANDS = tuple(option.name for option in OPTIONS if option.knob)
"""The knobs that have an option of their own."""


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for. `named` holds the axes that the user spelled out, not those a preset filled in."""

    model: tuple[str, ...] | None = None
    device: tuple[str, ...] | None = None
    dtype: tuple[str, ...] | None = None
    mode: tuple[str, ...] | None = None
    stack: tuple[str, ...] | None = None
    preset: str = "quick"
    db: str = "ipexperf.db"
    baselines: Path = Path("baselines")
    baseline_from: str = "files"
    window: int = 12
    report: Path | None = None
    launches: int | None = None
    rounds: str = "on"
    twin: str | None = None
    batch: int | None = None
    size: str | int | None = None
    knobs: tuple[tuple[str, str], ...] = ()
    optimizer: tuple[str, ...] = ()
    input: tuple[str, ...] = ()
    ablate: tuple[str, ...] = ()
    samples: int = 12
    seconds: float = 0.6
    budget: float | None = None
    against: str | None = None
    tolerance: float | None = None
    alpha: float | None = None
    max_pairs: int | None = None
    inconclusive: str = "pass"
    timeout: float = 600.0
    structure: str = "warn"
    yardstick: bool = False
    threads: int | None = None
    placement: places.Wish | None = None
    start: str = start.AUTO
    device_index: int = 0
    data: Path | None = None
    cache: Path | None = None
    python: str | None = None
    load: tuple[str, ...] = ()
    no_record: bool = False
    no_pulse: bool = False
    no_roof: bool = False
    sources: Mapping[str, str] = field(default_factory=dict)

    def axis(self, name: str) -> tuple[str, ...] | None:
        value: tuple[str, ...] | None = getattr(self, name)
        return value


def add_arguments(add: Callable[..., Any]) -> None:
    """Declares every option through `add_argument` or pytest's `addoption`."""
    for option in OPTIONS:
        told = f"{option.help} [ini: {option.ini}, env: {option.variable}]"
        if option.switch:
            add(option.flag, action="store_true", default=None, help=told, dest=f"ipexperf_{option.name}")
        else:
            add(
                option.flag,
                action="append" if option.repeat else "store",
                type=option.read,
                default=None,
                metavar=option.metavar,
                help=told,
                dest=f"ipexperf_{option.name}",
            )


def resolve(
    command_line: Callable[[str], Any],
    ini: Callable[[str], str | None],
    environment: Mapping[str, str] = os.environ,
) -> Options:
    """Takes each option from the first place that has it."""
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for option in OPTIONS:
        given = command_line(f"ipexperf_{option.name}")
        if given is not None:
            flat = tuple(word for part in given for word in part) if option.repeat else given
            values[option.name], sources[option.name] = flat, option.flag
            continue
        for text, source in ((environment.get(option.variable), option.variable), (ini(option.ini), option.ini)):
            if text:
                try:
                    values[option.name] = option.read(text)
                except argparse.ArgumentTypeError as error:
                    raise UsageError(f"{source}: {error}") from None
                sources[option.name] = source
                break
        else:
            values[option.name] = option.default
    values["model"], values["load"] = _adopted(values["model"], values["load"], sources)
    assert set(values) | {"sources"} == {part.name for part in fields(Options)}  # noqa: S101 - two lists, one truth
    return Options(**values, sources=sources)


def _adopted(
    model: tuple[str, ...] | None, load: tuple[str, ...], sources: Mapping[str, str]
) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Models that are named by `module:callable`, `hf:NAME` or `timm:NAME` by the names that their cases have."""
    if model is None or not any(":" in name for name in model):
        return model, load
    from ipexperf.bench import own

    names, loaded = [], list(load)
    for text in model:
        if own.is_target(text):
            try:
                names.append(own.parse(text).name)
            except UsageError as error:
                raise UsageError(f"{sources['model']}: {error}") from None
            loaded.append(text)
        else:
            names.append(text)
    return tuple(dict.fromkeys(names)), tuple(dict.fromkeys(loaded))
