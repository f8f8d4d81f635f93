"""An arm of a comparison: a case under its own conditions. Also builds arms from the user's ARM text."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ipexperf import scratch
from ipexperf import variables as ours
from ipexperf.bench.machine import source as users_files
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.machine.source import Replaced
from ipexperf.case import Case, networks
from ipexperf.conduct import placement, process, worker
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.conductor import Conductor
from ipexperf.environments import make, sources
from ipexperf.environments.sources import Say
from ipexperf.errors import UsageError, WorkerError
from ipexperf.judge.environment import SOURCE, changed_case, differences
from ipexperf.plan import arms, matrix
from ipexperf.plan.arms import ArmSpec
from ipexperf.plan.options import Options
from ipexperf.redaction import recorded

FLAG = "--perf-against"


@dataclass(frozen=True, slots=True)
class Arm:
    """A case under its own conditions, and what a round asks of its worker besides timed steps."""

    case: Case
    conditions: Conditions
    name: str = ""
    """Prefix of the reason if the arm fails, for arms that have the same case."""
    index: int = 0
    """The number of the launch that this round records."""
    prove: bool = True
    """Whether the worker must prove that it ran what its label says."""
    accuracy: bool = False
    """Whether the worker checks the accuracy of its results."""
    builds: Conditions | None = None
    """Conditions of forked workers that only build the case, several times. None: the arm's worker alone builds it."""
    warm: int | None = None
    """Untimed steps before each turn, as an earlier round measured them. None: this round measures them."""
    alone: bool = False
    """Whether its steps work in one thread, as earlier rounds saw."""
    trace: Path | None = None
    """The folder into which its worker writes what a step does, once its numbers are taken."""
    final: bool = True
    """Whether this is the last attempt: accuracy is then checked even if the launch is contended."""
    changed: tuple[str, ...] = ()
    """The files that differ from those of what it is compared with, as far as git knows."""

    def blamed(self, error: WorkerError) -> WorkerError:
        """The error, with this arm's name in its reason."""
        return WorkerError(error.outcome, error.reason, error.log, self.name)


def facts(words: ArmSpec, options: Options, source: str = FLAG) -> Facts:
    """Ask the arm's interpreter, under the arm's variables, what it has. `source` names the arm's option."""
    devices = matrix.accelerators(options, *(value for axis, value in words.axes.items() if axis == "device"))
    matrix.variables(options, devices)  # which says now if there is no such card, or a device of the user's is wrong
    python = words.python or options.python
    named = source if words.python else "--perf-python"
    facts_of_arm = worker.ask_facts(python, devices, words.variables, matrix.packages(), named)
    return placement.facts_of(facts_of_arm, placement.find(options))


def with_source(words: ArmSpec, options: Options, source: str, say: Say) -> ArmSpec:
    """The arm with the variables that make its workers run its own tree of files, if it names one."""
    if not words.source:
        return words
    text, named = words.text, words.source
    if words.source.startswith(arms.GIT):
        try:
            cache, name = scratch.cache(options.cache), words.source.removeprefix(arms.GIT)
            # It is built for an interpreter and its packages.
            build = options.build and f"{options.build} {make.take_inventory(options.python)}"
            replaced, sha = sources.tree_of_commit(name, cache, say, build or "")
        except UsageError as error:
            raise UsageError(f"{source} '{words.source}': {error}") from None
        named = f"{arms.GIT}{sha[: sources.DIGITS]}"
        text = text.replace(words.source, named)
    else:
        tree, named_tree = users_files.tree(), Path(words.source).resolve()
        here = named_tree == Path.cwd().resolve()  # `.` in a folder of the tree is the tree as it is
        replaced = Replaced(str(tree), str(tree if here else named_tree), users_files.roots())
    if replaced.by == replaced.tree:
        return words
    build = (options.build or "") if words.source.startswith(arms.GIT) else ""
    return replace(words, text=text, source=named, build=build, variables={**words.variables, **replaced.variables})


def check_imports(cases: Iterable[Case], words: ArmSpec, options: Options, source: str) -> None:
    """Raise UsageError if the arm cannot import what its cases need, before anything is measured.

    Only checks arms that have an interpreter or variables of their own, and need not be built first.
    """
    if words.build or (words.python is None and not words.variables):
        return
    for stack, device in dict.fromkeys((case.stack, case.device) for case in networks(cases)):
        variables = {**matrix.variables(options, (device,)), **words.variables}
        try:
            with worker.Worker(words.python or options.python, variables, options.timeout) as probe:
                probe.ask("imports", stack=stack, device=device, load=options.load)
        except WorkerError as error:
            raise UsageError(f"{source}: it cannot run {stack} on {device}: {error.reason}") from None


def arm(conductor: Conductor, case: Case, words: ArmSpec, name: str = "") -> Arm:
    """The case under the conditions that the user's words ask for."""
    ready = conductor.ready(case, words.python, words.variables.get(ours.SOURCE, ""))
    tree = Replaced.of(words.variables)
    if tree and words.build and (reason := sources.unbuilt(tree, words.build, ready.timeout, ready.say)):
        raise WorkerError("error", reason)
    if words.threads is not None:
        placed = ready.settings.placement
        threaded = placed and {**placed, "threads": words.threads}
        ready = ready.with_settings(threads=words.threads, placement=threaded)
    # The waiting arm's threads must not spin during the other's turn, whatever the shell says. An arm may override it.
    variables = {**process.quiet(words.variables), **words.variables}
    return Arm(case, _with_software(ready, words.python, variables), name)


def _with_software(conditions: Conditions, python: str | None, variables: Mapping[str, str]) -> Conditions:
    """The conditions with this interpreter and these variables, for every instance too."""
    return replace(
        conditions,
        python=python or conditions.python,
        variables={**conditions.variables, **variables},
        instances=tuple(_with_software(instance, python, variables) for instance in conditions.instances),
    )


def differ(
    a: Arm, b: Arm, environments: tuple[Mapping[str, Any], Mapping[str, Any]] | None, ran: Sequence[str] = ()
) -> list[str]:
    """List what differs between the arms: the case, their interpreter and variables, and the environment they saw.

    `ran` are the functions, as 'file: function', whose changed lines are to be shown first.
    """
    lines = [
        *_changed_files(a, b, environments, ran),
        *changed_case(a.case.with_knobs({}), b.case.with_knobs({})),
    ]
    settings: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = [
        (dict(a.case.knobs), dict(b.case.knobs)),
        (_variables(a, b), _variables(b, a)),
    ]
    pythons = [compared.conditions.python or sys.executable for compared in (a, b)]
    if len({_interpreter(python) for python in pythons}) > 1:
        settings.append(({"interpreter": pythons[0]}, {"interpreter": pythons[1]}))
    lines += [line for old, new in settings for line in _changed(old, new)]
    if lines and environments:
        # Arms that were asked for the same differ in their environment by chance, if at all.
        named = {_name(line) for line in lines}
        lines += [line for line in differences(*environments) if _name(line) not in named]
    return list(dict.fromkeys(lines))


def other_software(a: Arm, b: Arm) -> bool:
    """Whether the arms differ in their interpreter or in a variable."""
    pythons = {_interpreter(compared.conditions.python or sys.executable) for compared in (a, b)}
    return len(pythons) > 1 or _variables(a, b) != _variables(b, a)


def _changed_files(
    a: Arm, b: Arm, environments: tuple[Mapping[str, Any], Mapping[str, Any]] | None, ran: Sequence[str]
) -> list[str]:
    """What differs in the user's files that the arms ran, with a line that changed in each."""
    trees = [Replaced.of(compared.conditions.variables) for compared in (a, b)]
    if environments is None or trees[0] == trees[1]:
        return []
    names = (_name(line) for line in differences(*environments, (SOURCE,)))
    here = Replaced(str(users_files.tree()), str(users_files.tree()))
    return [
        sources.shown_change(name, *(users_files.place((tree or here).by, name) for tree in trees), ran=ran)
        for name in names
    ]


def _name(line: str) -> str:
    """The subject of a line of differences."""
    return re.split(r": |:\d+ ", line, maxsplit=1)[0]


def _variables(own: Arm, other: Arm) -> dict[str, str]:
    """The variables of either arm that this arm's processes see, also from the shell, with secrets masked."""
    environment = process.environment_of(own.conditions.python, own.conditions.variables)
    names = {*own.conditions.variables, *other.conditions.variables} - {ours.SOURCE}
    return {name: recorded(name, value) for name, value in environment.items() if name in names}


def _interpreter(path: str) -> tuple[str, str]:
    """Identify an interpreter whatever its spelling: by folder too, because virtual environments link to one file."""
    program = shutil.which(path) or path
    return os.path.realpath(os.path.dirname(program)), os.path.realpath(program)  # noqa: PTH120 - as the system resolves it


def _changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    names = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    return [f"{name}: {old.get(name, 'as it is')} -> {new.get(name, 'as it is')}" for name in names]
