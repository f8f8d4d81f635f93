"""Every option in one table: to add one, add its row to `Options`. `plan/reading.py` takes their values."""

# ruff: noqa: RUF009 - a row is a field, and its values never change

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from ipexperf import bench, variables
from ipexperf.dtypes import DTYPES
from ipexperf.outcomes import StructureGate
from ipexperf.plan import placement as places
from ipexperf.plan import sizes, values
from ipexperf.plan import start as starts
from ipexperf.plan.placement import PlacementWish
from ipexperf.plan.presets import PRESETS

PLAN, MEASURE, RUN, PYTEST = "plan", "measure", "run", "pytest"
SCOPES = {
    PLAN: "which cases, and where",
    MEASURE: "how they are measured, judged and recorded",
    RUN: "of a test run",
    PYTEST: "of pytest alone",
}
"""What options are for. Each command of `ipexperf` has those of some scopes."""
PAIRS, LAUNCHES = "pairs", "launches"
"""The ways to measure: beside another arm until the judge is sure, or as many launches as were asked for."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its field in Options, its parser, default and help text."""

    name: str
    default: Any
    scope: str
    """What it is for, and so which commands have it: a key of SCOPES."""
    metavar: str
    read: Callable[[str], Any]
    help: str
    repeat: bool = False
    in_ci: bool = False
    """True if an environment variable sets it too, because CI systems set such things for a machine."""
    common: bool = False
    """True if `pytest --help` shows it: a stranger's help has no room for all."""
    only: str = ""
    """PAIRS or LAUNCHES if it means something for that way to measure alone."""
    page: str = ""
    """Where the documentation says more, from the page of options."""
    short: str = ""
    """A second spelling without the prefix. pytest has it only in runs that opt in: other plugins use such names."""

    @property
    def flag(self) -> str:
        return f"--perf-{self.name.replace('_', '-')}"

    @property
    def dest(self) -> str:
        return f"ipexperf_{self.name}"

    @property
    def short_dest(self) -> str:
        """The name under which pytest stores the value of the short spelling, apart from that of the long one."""
        return f"ipexperf_short_{self.name}"

    @property
    def variable(self) -> str:
        """The environment variable that sets it, or an empty text."""
        return f"{variables.PREFIX}{self.name.upper()}" if self.in_ci else ""

    @property
    def switch(self) -> bool:
        return self.read is values.flag


WITHOUT = ("record", "roof")
"""What a run can do without."""
STORED = "stored"
"""The word in the place of an arm by which baselines are never measured again."""
Value = TypeVar("Value")
Default = TypeVar("Default")


def _row(
    scope: str, metavar: str, read: Callable[[str], Value], default: Default, *, text: str, **more: str | bool
) -> Value | Default:
    """A field of Options, with what Option says of it: `mypy` holds its parser and its default against its type."""
    row: Value | Default = field(
        default=default, metadata={"scope": scope, "metavar": metavar, "read": read, "help": text, **more}
    )
    return row


def _axis(name: str, names: str, **more: str | bool) -> tuple[str, ...] | None:
    """The row of an axis, with some of its names or all."""
    text = f"{names}, or all (A,B; repeatable)"
    return _row(PLAN, "NAMES", values.words, None, text=text, repeat=True, common=True, short=f"--{name}", **more)


def shipped(kind: str) -> str:
    """Return the names of the shipped devices, modes or stacks, read from file names: `--help` imports none of them."""
    folder = Path(bench.__file__).parent / f"{kind}s"
    return ", ".join(sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")))


@dataclass(frozen=True, slots=True)
class Options:
    """The value of every option. `sources` says where each that is not a default came from, such as `--perf-db`."""

    # A row each: how it is read and where it is shown, and below that what `--help` and the page of options say.
    # fmt: off
    model: tuple[str, ...] | None = _axis("model", "such as resnet18,resnet50",
        page="../how-to/measure-your-own.md")
    device: tuple[str, ...] | None = _axis("device", shipped("device"), in_ci=True, page="devices.md")
    dtype: tuple[str, ...] | None = _axis("dtype", ", ".join(DTYPES), page="accuracy.md")
    mode: tuple[str, ...] | None = _axis("mode", shipped("mode"))
    stack: tuple[str, ...] | None = _axis("stack", shipped("stack"))
    preset: str = _row(PLAN, "NAME", values.one_of(*PRESETS), "quick", in_ci=True, common=True, page="#presets",
        text="which part of the matrix: preflight, quick, nightly or full")
    db: str = _row(MEASURE, "DB", str, "ipexperf.db", in_ci=True, common=True, page="database.md",
        text="results: a SQLite file")
    baselines: Path = _row(MEASURE, "DIR", Path, Path("baselines"), in_ci=True, common=True, page="live-baselines.md",
        text="folder of the accepted baselines")
    report: Path | None = _row(RUN, "DIR", Path, None, common=True, page="report.md",
        text="write an HTML report to this folder at the end of the run")
    explain: Path | None = _row(RUN, "DIR", Path, None, page="dossiers.md",
        text="write a dossier of each case that failed beside another arm into this folder, for at most five minutes")
    launches: int | None = _row(RUN, "N", values.positive, None, only=LAUNCHES, common=True, page="rounds.md",
        text="processes per case (default: the preset's)")
    batch: int | None = _row(PLAN, "N", values.positive, None, common=True, page="models.md",
        text="batch size of every case (default: the preset's, or the model's)")
    size: str | int | None = _row(PLAN, "SIZE", sizes.read, None, page="models.md",
        text="size of inputs: small, normal or a number (default: the preset's)")
    knobs: tuple[tuple[str, str], ...] = _row(PLAN, "N=V", values.settings, (), repeat=True, common=True,
        page="knobs.md",
        text="settings to change, such as level=O0; each value makes a separate case")
    ablate: tuple[str, ...] = _row(PLAN, "KNOBS", values.words, (), repeat=True, page="knobs.md",
        text="measure each case also with each of these knobs off")
    samples: int = _row(RUN, "N", values.positive, 12, only=LAUNCHES,
        text="minimum number of samples per launch")
    seconds: float = _row(RUN, "S", values.seconds, 0.6, only=LAUNCHES,
        text="minimum sampling time per launch, in seconds; 12 times this is the most")
    budget: float | None = _row(MEASURE, "S", values.seconds, None, common=True, page="verdicts.md#outcomes",
        text="begin no round after this many seconds")
    against: str | None = _row(RUN, "ARM", str, None, common=True, page="verdicts.md#pairs",
        text="measure in pairs with this arm: baseline, git:COMMIT, PYTHON, KEY=VALUE, ...; stored: judge by numbers "
        "alone")
    build: str | None = _row(RUN, "COMMAND", str, None, page="../how-to/measure-functions.md#two-commits-two-versions",
        text="with git:COMMIT: what to run in the commit's tree, to build in place what git does not have")
    tolerance: float | None = _row(MEASURE, "F", values.fraction, None, only=PAIRS, page="verdicts.md#pairs",
        text="with pairs: ok excludes a slowdown of F, and one surely above 0.4 F fails (default: 5%%)")
    alpha: float | None = _row(MEASURE, "P", values.rate, None, only=PAIRS, page="verdicts.md#pairs",
        text="with pairs: false alarm rate of each case (default: 0.005)")
    max_pairs: int | None = _row(MEASURE, "N", values.positive, None, only=PAIRS, page="verdicts.md#pairs",
        text="with pairs: stop after this many (default: 24)")
    inconclusive: str = _row(RUN, "WORD", values.one_of("pass", "fail", "skip", "exit"), "pass",
        page="verdicts.md#could-not-tell",
        text="outcome of a test that could not be told: pass, fail or skip; or exit: pass, and pytest ends with 125 if "
        "more than half of the cases could not be told")
    gate: tuple[str, ...] | None = _row(MEASURE, "NAMES", values.words, None, repeat=True, common=True,
        page="verdicts.md#other-metrics-than-time",
        text="metrics that fail a case if they become worse, e.g. step_time,compile_time, or all (default: time and "
        "memory)")
    structure: StructureGate = _row(MEASURE, "WORD", values.one_of("loss", "fail", "warn"), "loss",
        page="fingerprint.md#losses",
        text="fail a test whose case runs different kernels than its baseline: loss (those that can only cost time), "
        "fail (any), or warn (none)")
    timeout: float = _row(MEASURE, "S", values.seconds, 600.0,
        text="time limit of one request to a worker, in seconds; training weights has six times this")
    placement: PlacementWish | None = _row(PLAN, "WORDS", places.read, None, page="placement.md",
        text="where workers run: threads=4,cores=0-3,node=0,openmp=iomp5 (default: one thread a core)")
    start: str = _row(MEASURE, "WORD", values.one_of(starts.AUTO, starts.FRESH), starts.AUTO, page="cold-start.md",
        text="how workers begin: auto (fresh in the first round, forked after the imports in the others) or fresh")
    lease: str = _row(MEASURE, "WORD", values.one_of("wait", "fail", "off"), "wait", in_ci=True, page="lease.md",
        text="if another process measures on the device: wait for it, fail, or measure all the same (off)")
    data: Path | None = _row(PLAN, "DIR", Path, None, in_ci=True, page="data.md",
        text="folder with real data: CIFAR-10, MovieLens-100K, road images (default: embedded or made ones)")
    cache: Path | None = _row(PLAN, "DIR", Path, None, in_ci=True,
        text="folder of trained weights, quantised networks and peak rates (default: .ipexperf in this folder)")
    python: str | None = _row(PLAN, "PYTHON", str, None, page="live-baselines.md#the-lock",
        text="interpreter of the workers, with torch, which needs no ipexperf (default: this one), or a lock, whose "
        "environment is made if it is missing: shipped:NAME, lock:FILE, baseline:NAME or run:RUN")
    load: tuple[str, ...] = _row(PLAN, "NAMES", values.words, (), repeat=True, in_ci=True, common=True,
        page="../how-to/add-a-model.md",
        text="modules or .py files that register models, modes, devices, or define networks")
    benchmark: bool = _row(PYTEST, "", values.flag, False, common=True, page="../how-to/measure-functions.md",
        text="measure a suite written for pytest-benchmark or pytest-codspeed as it stands: its `benchmark` is ours")
    without: tuple[str, ...] = _row(MEASURE, "WORDS", values.words_of(*WITHOUT), (), repeat=True,
        text="do without: record (write nothing to the database), roof (measure no peaks of the machine)")
    # fmt: on
    indices: Mapping[str, int] = field(default_factory=dict)
    """The index of each device that was asked for with one, as in `xpu:1`."""
    sources: Mapping[str, str] = field(default_factory=dict)
    explain_all: bool = False
    """Whether cases that did not fail have a dossier too: `ipexperf explain` asks for one."""

    @property
    def arm(self) -> str | None:
        """The arm that every case is compared with in pairs, or None."""
        return None if self.against == STORED else self.against

    @property
    def threads(self) -> int | None:
        """The number of threads that each worker is asked to have, or None."""
        return self.placement.threads if self.placement else None

    def index(self, device: str) -> int:
        """Which of several cards a device is, of those that the vendor's variable leaves."""
        return self.indices.get(device, 0)

    def axis(self, name: str) -> tuple[str, ...] | None:
        value: tuple[str, ...] | None = getattr(self, name)
        return value

    def source(self, name: str) -> str:
        """Where an option was set, for a message about it. A default is named by the flag that would change it."""
        return self.sources.get(name) or next(row.short or row.flag for row in OPTIONS if row.name == name)

    def flag(self, name: str) -> str:
        """The flag by which the command line sets an option. Empty if an ini file, a variable or nothing does."""
        source = self.sources.get(name, "")
        return source if source.startswith("--") else ""


OPTIONS: tuple[Option, ...] = tuple(
    Option(row.name, row.default, **row.metadata) for row in fields(Options) if row.metadata
)
