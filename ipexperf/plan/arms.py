"""Parse the text of an arm: an interpreter, variables, axes, knobs. `ipexperf ab` takes two, `--perf-against` one."""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.cell import Cell
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.networks import own_target
from ipexperf.case import AGAINST, AXES, ITSELF, Case, NetworkCase
from ipexperf.errors import UsageError
from ipexperf.plan import drivers, knobs, matrix, placement
from ipexperf.plan.options import LAUNCHES, OPTIONS, PAIRS, Options
from ipexperf.plan.values import LOCKS, is_lock, is_requirement
from ipexperf.redaction import redacted_arm

GIT = "git:"
"""The prefix of a commit whose files are the source of an arm."""
_EXPECTED = "expected git:COMMIT, PACKAGE==VERSION, driver:FOLDER, KEY=VALUE, a folder, an interpreter or a lock, got "
THREADS = "OMP_NUM_THREADS"
"""We translate this variable into the worker's number of threads, because workers set that themselves."""


@dataclasses.dataclass(frozen=True, slots=True)
class ArmSpec:
    """A parsed arm: how it differs from the plan."""

    text: str = ""
    """The user's text, with a digest in place of each value that may be a secret."""
    python: str | None = None
    lock: str = ""
    """The name of the lock whose software it runs: `baseline`, one of LOCKS followed by a name or a file, or versions
    of packages, `NAME==VERSION` with commas between them."""
    source: str = ""
    """The tree of files that it runs in place of the user's: git:COMMIT, or a folder."""
    build: str = ""
    """The command that builds its source, if that is a commit."""
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict)
    axes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    knobs: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def more(self) -> bool:
        """True if it differs from the plan in more than its lock."""
        return bool(self.python or self.source or self.variables or self.axes or self.knobs)

    @property
    def series(self) -> str:
        """Its name in the series of what took turns with it, which is the same for all commits."""
        return self.text.replace(self.source, "git") if self.source.startswith(GIT) else self.text

    @property
    def threads(self) -> int | None:
        """The number of threads of its workers, or None if it does not set that, or takes away who does."""
        threads = self.variables.get(THREADS, "")
        return int(threads) if threads.isdigit() else None

    def case(self, planned: Case, facts: Facts) -> tuple[Case, str | None]:
        """Return the planned case as changed by this arm, and the reason why that cannot run or take turns, or None."""
        if not isinstance(planned, NetworkCase):
            named = ", ".join([*self.axes, *self.knobs])
            return planned, f"a function has no {named}" if named else None
        axes: dict[str, Any] = {**planned.axes, **self.axes}
        planned = _with_data_of(planned, axes["model"])
        placed = [knob for knob in planned.knobs if knob[0] == placement.KNOB]
        wanted_knobs = {name: value for name, value in planned.knobs if name != placement.KNOB} | dict(self.knobs)
        cell, unmet = knobs.turned(Cell(**axes), tuple(sorted(wanted_knobs.items())), facts)
        case = dataclasses.replace(planned, **axes, knobs=tuple(sorted([*cell.knobs, *placed])))
        mode = registry.modes.get(case.mode)
        unfit = mode.unfit(Cell(**axes, knobs=case.knobs), case.batch, self.threads) if self.threads else None
        return case, matrix.why_not(cell, facts) or unmet or unfit or no_turns(case)


def _with_data_of(planned: NetworkCase, name: str) -> NetworkCase:
    """The planned case with the data of this model, if it is or replaces a network of the user's own."""
    if name == planned.model:
        return planned
    model = registry.models.get(name)
    if not (model.target or registry.models.get(planned.model).target):
        return planned
    return dataclasses.replace(planned, data=model.data, size=model.size, version=model.version)


def parse(text: str, source: str) -> ArmSpec:
    """Parse the words of an arm: an interpreter's path, maybe after `python=`, or a lock; variables, axes and knobs."""
    parts: dict[str, dict[str, str]] = {"variables": {}, "axes": {}, "knobs": {}}
    software = []
    masked = redacted_arm(text)
    where = f"{source} '{masked}'"
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{where}: {str(error).lower()}") from None
    for word in [part for spelled in words for part in drivers.spelled_out(spelled, where)]:
        name, equals, value = word.partition("=")
        if not equals or word.startswith((*LOCKS, GIT)) or name == "python" or is_requirement(word):
            software.append(value if name == "python" else word)
            continue
        if name == "model" and own_target.is_target(value):
            value = own_target.parse(value).name
        if any(name in kind for kind in parts.values()):
            raise UsageError(f"{where}: {name} is there twice")
        parts[_kind(name, value, word, source, where)][name] = value
    trees = [word for word in software if _is_tree(word)]
    if len(trees) > 1:
        raise UsageError(f"{where}: an arm has only one source, not both '{trees[0]}' and '{trees[1]}'")
    python, lock = _software([word for word in software if word not in trees], where)
    return ArmSpec(masked, python, lock, "".join(trees), "", **parts)


def _is_tree(word: str) -> bool:
    """Return True if a word names a tree of files: a commit, or a folder that is no virtual environment."""
    return word.startswith(GIT) or (os.path.isdir(word) and not Path(word, "bin").is_dir())  # noqa: PTH112 - False for any text


def _kind(name: str, value: str, word: str, source: str, where: str) -> str:
    """Return what a word of the form name=value sets: variables, axes or knobs. Check its value."""
    knobs_by_name = knobs.everyone()
    if name in AXES:
        matrix.check(name, [value], source)
        return "axes"
    if name in knobs_by_name:
        return "knobs"
    if name.isidentifier() and name.islower():
        # A misspelled knob must not silently become an environment variable.
        hint = registry.nearest(name, [*AXES, *sorted(knobs_by_name)]) or (
            f": the version of a package is {name}=={value}"
            if value[:1].isdigit() and "." in value
            else f": choose from {', '.join(AXES)} or a knob"
        )
        raise UsageError(f"{where}: unknown axis or knob '{name}'{hint} (variables have capitals)")
    if name.replace("_", "").isalnum() and name[0].isalpha():
        if name == THREADS and not (value.isdecimal() and int(value)):
            raise UsageError(f"{where}: {name}: expected a whole number from 1 on, got '{value}'")
        return "variables"
    raise UsageError(f"{where}: {_EXPECTED}'{word}'")


def _software(words: Sequence[str], where: str) -> tuple[str | None, str]:
    """Return the interpreter and the lock that an arm names. Raise UsageError if it names more than one of them."""
    python, lock = None, ",".join(filter(is_requirement, words))
    for word in words:
        if is_requirement(word):
            continue
        if python or lock:
            raise UsageError(f"{where}: an arm has only one interpreter, not both '{python or lock}' and '{word}'")
        if is_lock(word):
            lock = word
        elif os.access(word, os.X_OK) and Path(word).is_file():
            python = word
        else:
            raise UsageError(f"{where}: {_why_no_interpreter(word)}")
    return python, lock


def _why_no_interpreter(word: str) -> str:
    # Not pathlib's, which raise for a word that is too long for a name.
    if os.path.isdir(word):  # noqa: PTH112
        return f"{word} is a folder: name the interpreter in it, such as {Path(word) / 'bin' / 'python'}"
    if os.path.isfile(word):  # noqa: PTH113
        return f"{word} is a file that may not be executed"
    return f"there is no file {word}" if "/" in word else f"{_EXPECTED}'{word}': is it git:{word}?"


def check(options: Options, measured_in: str = PAIRS) -> None:
    """Refuse flags of the other way to measure. Ini keys and variables are ignored, because they are for all runs."""
    why = {
        LAUNCHES: "pairs take turns until the judge is sure: say --perf-max-pairs",
        PAIRS: "only pairs have that: say --perf-against ARM too",
    }
    for option in OPTIONS:
        if option.only not in ("", measured_in) and (flag := options.flag(option.name)):
            raise UsageError(f"{flag}: {why[option.only]}")


def policy(options: Options) -> dict[str, Any]:
    """Return the options that set the judge's policy, by the policy's field names."""
    values = {option.name: getattr(options, option.name) for option in OPTIONS if option.only == PAIRS}
    return {name: value for name, value in values.items() if value is not None}


def no_turns(case: Case) -> str | None:
    """Return the reason why a worker of this case cannot take turns, or None."""
    if not isinstance(case, NetworkCase):
        return None
    mode = registry.modes.get(case.mode)
    if mode.batch is not None:
        return f"the workers of {case.mode} run at the same time, but those of a pair take turns"
    return f"{case.mode} is timed once per process, but the workers of a pair take many turns" if mode.cold else None


def measured(case: Case, words: ArmSpec) -> Case:
    """Return the case as recorded. Steps that took turns with another arm get a series of their own."""
    return case.with_knobs({**dict(case.knobs), AGAINST: words.series or ITSELF})
