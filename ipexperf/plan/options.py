"""Every option in one table. Values are parsed once, strictly: command line before variable, ini key and default."""

# ruff: noqa: RUF009 - `_option` returns a field, and its values never change

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipexperf import bench, variables
from ipexperf.dtypes import DTYPES
from ipexperf.errors import UsageError
from ipexperf.outcomes import StructureGate
from ipexperf.plan import placement as places
from ipexperf.plan import sizes, values
from ipexperf.plan import start as starts
from ipexperf.plan.presets import PRESETS

if TYPE_CHECKING:
    import pytest


PLAN, MEASURE, RUN, PYTEST = "plan", "measure", "run", "pytest"
SCOPES = {
    PLAN: "which cases, and where",
    MEASURE: "how they are measured, judged and recorded",
    RUN: "of a test run",
    PYTEST: "of pytest alone",
}
"""What options are for. Each command of `ipexperf` has those of some scopes."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its field in Options, its parser, default and help text."""

    name: str
    read: Callable[[str], Any]
    default: Any
    help: str
    metavar: str | None = None
    repeat: bool = False
    scope: str = PLAN
    """What it is for, and so which commands have it: a key of SCOPES."""
    in_ci: bool = False
    """True if an environment variable sets it too, because CI systems set such things for a machine."""
    common: bool = False
    """True if `pytest --help` shows it: a stranger's help has no room for all."""
    page: str = ""
    """Where the documentation says more, from the page of options."""
    short: str | None = None
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
INI = "ipexperf"
"""The key of pytest's ini file: options for each run, as on a command line."""


def shipped(kind: str) -> str:
    """Return the names of the shipped devices, modes or stacks, read from file names: `--help` imports none of them."""
    folder = Path(bench.__file__).parent / f"{kind}s"
    return ", ".join(sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")))


_AXIS_HELP = {
    "model": "models, e.g. resnet18,resnet50",
    "device": shipped("device"),
    "dtype": ", ".join(DTYPES),
    "mode": shipped("mode"),
    "stack": shipped("stack"),
}
_AXIS_PAGES = {"model": "../how-to/measure-your-own.md", "device": "devices.md", "dtype": "accuracy.md"}


def _option(
    read: Callable[[str], Any], default: Any, text: str, metavar: str | None = None, **more: str | bool | None
) -> Any:
    """A field of Options, with what else Option says of it."""
    return field(default=default, metadata={"read": read, "help": text, "metavar": metavar, **more})


def _axis(name: str) -> Any:
    """The field of an axis."""
    return _option(
        values.words,
        None,
        f"{_AXIS_HELP[name]}, or all (comma list, repeatable)",
        "NAMES",
        repeat=True,
        in_ci=name == "device",
        common=True,
        short=f"--{name}",
        page=_AXIS_PAGES.get(name, ""),
    )


@dataclass(frozen=True, slots=True)
class Options:
    """The value of every option. `sources` says where each that is not a default came from, such as `--perf-db`."""

    model: tuple[str, ...] | None = _axis("model")
    device: tuple[str, ...] | None = _axis("device")
    dtype: tuple[str, ...] | None = _axis("dtype")
    mode: tuple[str, ...] | None = _axis("mode")
    stack: tuple[str, ...] | None = _axis("stack")
    preset: str = _option(
        values.one_of(*PRESETS),
        "quick",
        "which part of the matrix: preflight, quick, nightly or full",
        "NAME",
        in_ci=True,
        common=True,
        page="#presets",
    )
    db: str = _option(
        str,
        "ipexperf.db",
        "results: a SQLite file",
        "DB",
        in_ci=True,
        common=True,
        scope=MEASURE,
        page="database.md",
    )
    baselines: Path = _option(
        Path,
        Path("baselines"),
        "folder of the accepted baselines",
        "DIR",
        in_ci=True,
        common=True,
        scope=MEASURE,
        page="live-baselines.md",
    )
    report: Path | None = _option(
        Path,
        None,
        "write an HTML report to this folder at the end of the run",
        "DIR",
        common=True,
        scope=RUN,
        page="report.md",
    )
    explain: Path | None = _option(
        Path,
        None,
        "write a dossier of each case that failed beside another arm into this folder, for at most five minutes",
        "DIR",
        scope=RUN,
        page="dossiers.md",
    )
    launches: int | None = _option(
        values.positive,
        None,
        "processes per case (default: the preset's)",
        "N",
        common=True,
        scope=RUN,
        page="rounds.md",
    )
    batch: int | None = _option(
        values.positive,
        None,
        "batch size of every case (default: the preset's, or the model's)",
        "N",
        common=True,
        page="models.md",
    )
    size: str | int | None = _option(
        sizes.read,
        None,
        "size of inputs: small, normal or a number (default: the preset's)",
        "SIZE",
        page="models.md",
    )
    knobs: tuple[tuple[str, str], ...] = _option(
        values.settings,
        (),
        "settings to change, such as level=O0; each value makes a separate case",
        "N=V",
        repeat=True,
        common=True,
        page="knobs.md",
    )
    ablate: tuple[str, ...] = _option(
        values.words,
        (),
        "measure each case also with each of these knobs off",
        "KNOBS",
        repeat=True,
        page="knobs.md",
    )
    samples: int = _option(values.positive, 12, "minimum number of samples per launch", "N", scope=RUN)
    seconds: float = _option(
        values.seconds,
        0.6,
        "minimum sampling time per launch, in seconds; 12 times this is the most",
        "S",
        scope=RUN,
    )
    budget: float | None = _option(
        values.seconds,
        None,
        "begin no round after this many seconds",
        "S",
        common=True,
        scope=MEASURE,
        page="verdicts.md#outcomes",
    )
    against: str | None = _option(
        str,
        None,
        "measure in pairs with this arm: baseline, git:COMMIT, PYTHON, KEY=VALUE, ...; stored: judge by numbers alone",
        "ARM",
        common=True,
        scope=RUN,
        page="verdicts.md#pairs",
    )
    build: str | None = _option(
        str,
        None,
        "with git:COMMIT: what to run in the commit's tree, to build in place what git does not have",
        "COMMAND",
        scope=RUN,
        page="../how-to/measure-functions.md#two-commits-two-versions",
    )
    tolerance: float | None = _option(
        values.fraction,
        None,
        "with pairs: ok excludes a slowdown of F, and one surely above 0.4 F fails (default: 5%%)",
        "F",
        scope=MEASURE,
        page="verdicts.md#pairs",
    )
    alpha: float | None = _option(
        values.rate,
        None,
        "with pairs: false alarm rate of each case (default: 0.005)",
        "P",
        scope=MEASURE,
        page="verdicts.md#pairs",
    )
    max_pairs: int | None = _option(
        values.positive,
        None,
        "with pairs: stop after this many (default: 24)",
        "N",
        scope=MEASURE,
        page="verdicts.md#pairs",
    )
    inconclusive: str = _option(
        values.one_of("pass", "fail", "skip", "exit"),
        "pass",
        "outcome of a test that could not be told: pass, fail or skip; or exit: pass, and pytest ends with 125 if more "
        "than half of the cases could not be told",
        "WORD",
        scope=RUN,
        page="verdicts.md#could-not-tell",
    )
    gate: tuple[str, ...] | None = _option(
        values.words,
        None,
        "metrics that fail a case if they become worse, e.g. step_time,compile_time, or all (default: time and memory)",
        "NAMES",
        repeat=True,
        common=True,
        scope=MEASURE,
        page="verdicts.md#other-metrics-than-time",
    )
    structure: StructureGate = _option(
        values.one_of("loss", "fail", "warn"),
        "loss",
        "fail a test whose case runs different kernels than its baseline: loss (those that can only cost time), fail "
        "(any), or warn (none)",
        "WORD",
        scope=MEASURE,
        page="fingerprint.md#losses",
    )
    timeout: float = _option(
        values.seconds,
        600.0,
        "time limit of one request to a worker, in seconds; training weights has six times this",
        "S",
        scope=MEASURE,
    )
    placement: places.PlacementWish | None = _option(
        places.read,
        None,
        "where workers run: threads=4,cores=0-3,node=0,openmp=iomp5 (default: one thread a core)",
        "WORDS",
        page="placement.md",
    )
    start: str = _option(
        values.one_of(starts.AUTO, starts.FRESH),
        starts.AUTO,
        "how workers begin: auto (fresh in the first round, forked after the imports in the others) or fresh",
        "WORD",
        scope=MEASURE,
        page="cold-start.md",
    )
    lease: str = _option(
        values.one_of("wait", "fail", "off"),
        "wait",
        "if another process measures on the device: wait for it, fail, or measure all the same (off)",
        "WORD",
        in_ci=True,
        scope=MEASURE,
        page="lease.md",
    )
    data: Path | None = _option(
        Path,
        None,
        "folder with real data: CIFAR-10, MovieLens-100K, road images (default: embedded or made ones)",
        "DIR",
        in_ci=True,
        page="data.md",
    )
    cache: Path | None = _option(
        Path,
        None,
        "folder of trained weights, quantised networks and peak rates (default: .ipexperf in this folder)",
        "DIR",
        in_ci=True,
    )
    python: str | None = _option(
        str,
        None,
        "interpreter of the workers, with torch, which needs no ipexperf (default: this one), or a lock, whose "
        "environment is made if it is missing: shipped:NAME, lock:FILE, baseline:NAME or run:RUN",
        "PYTHON",
        page="live-baselines.md#the-lock",
    )
    load: tuple[str, ...] = _option(
        values.words,
        (),
        "modules or .py files that register models, modes, devices, or define networks",
        "NAMES",
        repeat=True,
        in_ci=True,
        common=True,
        page="../how-to/add-a-model.md",
    )
    benchmark: bool = _option(
        values.flag,
        False,
        "measure a suite written for pytest-benchmark or pytest-codspeed as it stands: its `benchmark` is ours",
        common=True,
        scope=PYTEST,
        page="../how-to/measure-functions.md",
    )
    without: tuple[str, ...] = _option(
        values.words_of(*WITHOUT),
        (),
        "do without: record (write nothing to the database), roof (measure no peaks of the machine)",
        "WORDS",
        repeat=True,
        scope=MEASURE,
    )
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

    def flag(self, name: str) -> str:
        """The flag by which the command line sets an option. Empty if an ini file, a variable or nothing does."""
        source = self.sources.get(name, "")
        return source if source.startswith("--") else ""


OPTIONS: tuple[Option, ...] = tuple(
    Option(part.name, default=part.default, **part.metadata) for part in fields(Options) if part.metadata
)


def declarer(parser: pytest.Parser) -> Callable[..., None]:
    """Return a function that declares an option in our section of `pytest --help`.

    A wrong value is then one sentence. Without this, argparse prints pytest's usage above it.
    """
    import pytest

    group = parser.getgroup("ipexperf", "ipexperf: performance regressions. All options: ipexperf cases --help")

    def declare(flag: str, **settings: Any) -> None:
        if read := settings.get("type"):

            def read_or_refuse(text: str) -> Any:
                try:
                    return read(text)
                except argparse.ArgumentTypeError as error:
                    raise pytest.UsageError(f"{flag}: {error}") from None

            settings["type"] = read_or_refuse
        group.addoption(flag, **settings)

    return declare


def add_arguments(add: Callable[..., Any], chosen: Iterable[Option] = (), *, short: bool, brief: bool = False) -> None:
    """Declare these options, or all, through `add_argument` or pytest's `addoption`.

    If `short`, `--help` shows the short spellings instead of the long ones. Both work. If `brief`, it shows the common
    options alone.
    """
    for option in chosen or OPTIONS:
        text = f"{option.help} [env: {option.variable}]" if option.variable and not brief else option.help
        if brief and not option.common:
            text = argparse.SUPPRESS
        if short and option.short:
            _add(add, option, option.short, option.short_dest, text)
            text = argparse.SUPPRESS
        _add(add, option, option.flag, option.dest, text)


def add_short(add: Callable[..., Any], free: Callable[[str], bool]) -> None:
    """Declare the short spellings that are free."""
    for option in OPTIONS:
        if option.short and free(option.short):
            _add(add, option, option.short, option.short_dest, f"the same as {option.flag}")


def _add(add: Callable[..., Any], option: Option, flag: str, dest: str, text: str) -> None:
    if option.switch:
        add(flag, action="store_true", default=None, help=text, dest=dest)
    else:
        action = "append" if option.repeat else "store"
        add(flag, action=action, type=option.read, default=None, metavar=option.metavar, help=text, dest=dest)


def refuse_unknown(words: Iterable[str]) -> None:
    """Raise pytest.UsageError if one of these words, which pytest knows no option for, is nearly one of ours."""
    import pytest

    from ipexperf.bench.registry import nearest_option

    for word in words:
        if word.startswith("--perf-") and (hint := nearest_option([word], [option.flag for option in OPTIONS])):
            raise pytest.UsageError(f"there is no option {word.partition('=')[0]}{hint}")


def valued() -> tuple[Option, ...]:
    """The options that need a value."""
    return tuple(option for option in OPTIONS if not option.switch)


def short_flags(parser: pytest.Parser, words: Collection[str]) -> list[str]:
    """The short options among these words that are ours in this run and need a value."""
    import pytest

    flags = []
    for option in valued():
        if option.short and option.short in words:
            with contextlib.suppress(pytest.UsageError):  # somebody else's option of that name takes no such value
                parsed = parser.parse_known_and_unknown_args([f"{option.short}=x"])[0]
                flags += [option.short] if getattr(parsed, option.short_dest, None) else []
    return flags


def refuse_valueless(words: Iterable[str], flags: Collection[str]) -> None:
    """Raise pytest.UsageError for one of these flags without a value: argparse would print pytest's usage above it."""
    import pytest

    for word, following in itertools.pairwise([*words, None]):
        if word in flags and (following is None or re.match("--?[a-zA-Z]", following)):
            raise pytest.UsageError(f"{word}: expected a value")


def unknown_variables(environment: Mapping[str, str] = os.environ) -> str:
    """A sentence on variables of our prefix that nobody reads, with the nearest name, or an empty text."""
    from ipexperf.bench.registry import nearest

    prefix, names = variables.PREFIX, {option.variable for option in OPTIONS if option.in_ci} | set(variables.OTHERS)
    ends = {name.removeprefix(prefix) for name in names}  # the prefix would make any two of them similar
    texts = []
    for name in sorted(environment):
        if name.startswith(prefix) and name not in names and name not in variables.OF_THE_CHECKOUT:
            near = nearest(name.removeprefix(prefix), ends).removeprefix(": did you mean ")
            texts.append(f"{name} (did you mean {prefix}{near})" if near else name)
    return f"ignored: there is no variable {', '.join(texts)}" if texts else ""


def of_ini(words: Sequence[str]) -> Callable[[str], Any]:
    """Parse the words of the ini key. Return a function that gives the value of an option, or None."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False, allow_abbrev=False)
    add_arguments(parser.add_argument, short=True)
    try:
        parsed, unknown = parser.parse_known_args(words)
    except argparse.ArgumentError as error:
        raise UsageError(f"{INI}: {error.argument_name}: {error.message}") from None
    if unknown:
        from ipexperf.bench.registry import nearest_option

        hint = nearest_option(unknown, [option.flag for option in OPTIONS])
        raise UsageError(f"{INI}: there is no option {unknown[0].partition('=')[0]}{hint}")
    return vars(parsed).get


def resolve(
    command_line: Callable[[str], Any],
    ini: Sequence[str] = (),
    environment: Mapping[str, str] = os.environ,
) -> Options:
    """Take each option from the first place that sets it. `command_line` returns None for options that it lacks."""
    chosen: dict[str, Any] = {}
    sources: dict[str, str] = {}
    in_file = of_ini(ini) if ini else lambda _: None
    for option in OPTIONS:
        if (given := _given(option, command_line)) is not None:
            chosen[option.name], sources[option.name] = given
        elif text := environment.get(option.variable):
            try:
                chosen[option.name] = option.read(text)
            except argparse.ArgumentTypeError as error:
                raise UsageError(f"{option.variable}: {error}") from None
            sources[option.name] = option.variable
        elif (given := _given(option, in_file)) is not None:
            chosen[option.name], sources[option.name] = given[0], f"{INI}: {given[1]}"
        else:
            chosen[option.name] = option.default
    chosen["model"], chosen["load"] = adopted(chosen["model"], chosen["load"], sources)
    chosen["load"] = tuple(dict.fromkeys((*chosen["load"], *targets_of(chosen["against"] or ""))))
    chosen["device"], indices = indexed(chosen["device"], sources)
    return Options(**chosen, indices=indices, sources=sources)


def _given(option: Option, parsed: Callable[[str], Any]) -> tuple[Any, str] | None:
    """Return the value among parsed words and the spelling of its option there, or None."""
    value = parsed(option.dest)
    source = option.flag
    if option.short and (shortly := parsed(option.short_dest)) is not None:
        value, source = [*shortly, *(value or ())], option.short
    if value is None:
        return None
    if value == [] or (option.repeat and [] in value):
        # argparse of Python before 3.13 takes the value `--` for an empty list.
        raise UsageError(f"{source}: expected a value, got '--'")
    return (tuple(word for part in value for word in part) if option.repeat else value), source


def indexed(
    devices: tuple[str, ...] | None, sources: Mapping[str, str]
) -> tuple[tuple[str, ...] | None, dict[str, int]]:
    """Split devices such as `xpu:1` into names and indices. A name without an index is the first card."""
    if devices is None:
        return None, {}
    cards: dict[str, int] = {}
    indices: dict[str, int] = {}
    for device in devices:
        name, colon, text = device.partition(":")
        try:
            index = values.index(text) if colon else 0
        except argparse.ArgumentTypeError as error:
            raise UsageError(f"{sources['device']}: {device}: {error}") from None
        if cards.setdefault(name, index) != index:
            both = f"{name}:{cards[name]} and {name}:{index}"
            raise UsageError(f"{sources['device']}: {both}: a run measures on one card of a kind")
        if colon:
            indices[name] = index
    return tuple(cards), indices


def targets_of(arm: str) -> list[str]:
    """Return the networks of the user's own that an arm names as its model. Mistakes are for `arms.parse` to report."""
    try:
        words = shlex.split(arm)
    except ValueError:
        return []
    named = [word.removeprefix("model=") for word in words if word.startswith("model=")]
    if not named:
        return []
    from ipexperf.bench.networks import own_target

    return [name for name in named if own_target.is_target(name)]


def adopted(
    model: tuple[str, ...] | None, load: tuple[str, ...], sources: Mapping[str, str]
) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Replace targets such as `module:callable` by the model names of their cases, and load the targets."""
    if model is None or not any(":" in name for name in model):
        return model, load
    from ipexperf.bench.networks import own_target

    names, loaded = [], list(load)
    for text in model:
        if own_target.is_target(text):
            try:
                names.append(own_target.parse(text).name)
            except UsageError as error:
                raise UsageError(f"{sources['model']}: {error}") from None
            loaded.append(text)
        else:
            names.append(text)
    return tuple(dict.fromkeys(names)), tuple(dict.fromkeys(loaded))
