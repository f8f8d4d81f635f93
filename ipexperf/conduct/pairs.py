"""Pairs of fresh processes, measured until the judge is sure: what `ipexperf ab` and `--perf-against` both call."""

from __future__ import annotations

import os
import random
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ipexperf.bench.facts import Facts
from ipexperf.case import Case
from ipexperf.conduct import launch, placement, turns, worker
from ipexperf.conduct.turns import Arm, Turns
from ipexperf.errors import UsageError, WorkerError
from ipexperf.judge import sequential
from ipexperf.judge.environment import changed_case, differences
from ipexperf.judge.policy import PairPolicy
from ipexperf.judge.sequential import Decision
from ipexperf.plan import matrix
from ipexperf.plan.arms import ArmWords
from ipexperf.plan.options import Options
from ipexperf.result import Launch

if TYPE_CHECKING:
    from ipexperf.conduct.conductor import Conductor


@dataclass(frozen=True, slots=True)
class Effort:
    """How long a pair is, and what says that no further one may begin."""

    turns: int = 30
    steps: int = 2
    spent: Callable[[], bool] = lambda: False
    prove: bool = True
    """Whether the first pair must prove what its arms are: one that is spoilt on purpose cannot."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """All pairs of one comparison, what the judge said of them, and why there are no more."""

    taken: tuple[Turns, ...]
    decision: Decision
    stopped: str
    differences: tuple[str, ...]
    """What the arms differ in, one line each. None: they are the same."""
    error: WorkerError | None = field(default=None, compare=False)
    """What ended a worker, and with it the comparison."""

    @property
    def log_ratios(self) -> list[float]:
        return [pair.log_ratio for pair in self.taken]

    @property
    def apart(self) -> bool:
        """Whether both arms did not fit beside one another."""
        return any(pair.apart for pair in self.taken)

    @property
    def cut(self) -> bool:
        """Whether the budget ended them before the judge was sure."""
        return self.stopped.startswith(BUDGET) and self.decision.outcome == "inconclusive"


FLAG = "--perf-against"
BUDGET = "the budget (--perf-budget) was spent"
SAME = "A/A: both arms are the same"
"""What is said where nothing differs: whatever is found is noise."""


def facts(words: ArmWords, options: Options, source: str = FLAG) -> Facts:
    """What the interpreter of an arm has, under the arm's variables. `source` is what named the arm."""
    asked = matrix.accelerators(options, *(value for axis, value in words.axes.items() if axis == "device"))
    variables = {**matrix.variables(options, asked), **words.variables}
    python = words.python or options.python
    found = worker.ask_facts(python, asked, variables, matrix.packages(), source if words.python else "--perf-python")
    return placement.seen(found, placement.find(options))


def check_imports(cases: Iterable[Case], words: ArmWords, options: Options, source: str) -> None:
    """Ends with one sentence where the arm cannot import what its cases are made of, before anything is measured.

    Only an interpreter or variables of the arm's own make that doubtful.
    """
    if words.python is None and not words.variables:
        return
    for stack, device in dict.fromkeys((case.stack, case.device) for case in cases):
        variables = {**matrix.variables(options, (device,)), **words.variables}
        try:
            with worker.Worker(words.python or options.python, variables, options.timeout) as asked:
                asked.ask("imports", stack=stack, device=device, load=options.load)
        except WorkerError as error:
            raise UsageError(f"{source}: it cannot run {stack} on {device}: {error.reason}") from None


def arm(conductor: Conductor, case: Case, words: ArmWords, name: str = "") -> Arm:
    """A case under the conditions of its arm."""
    ready = conductor.ready(case, words.python)
    if words.threads is not None:
        placed = ready.settings.placement
        told = placed and {**placed, "threads": words.threads}  # as it is placed, but for these
        ready = ready.given(threads=words.threads, placement=told)
    # Whatever the shell says, the one that waits must not spin on in the other's turn; an arm may say otherwise.
    variables = {**ready.variables, **worker.quiet(words.variables), **words.variables}
    return Arm(case, replace(ready, python=words.python or ready.python, variables=variables), name)


def wrong(taken: Launch) -> str:
    """The first check of a launch that did not hold, or an empty text: a fast and wrong arm is no winner."""
    return next((str(check) for check in (*taken.proof, *taken.accuracy) if not check.ok), "")


def measure(
    a: Arm, b: Arm, policy: PairPolicy, effort: Effort, chance: random.Random, say: Callable[[str], None]
) -> Pairs:
    """Takes pairs until the judge is sure, there are as many as may be, or the budget is spent.

    At most the first pair is proven. Where one of its arms is wrong, it is the last. What does not fit beside the other
    arm is measured apart from then on.
    """
    taken: list[Turns] = []
    take = turns.take
    decision, stopped = sequential.decide([], policy), ""
    error: WorkerError | None = None
    while not stopped:
        if effort.spent():
            decision = _decided(taken, policy, last=True)
            stopped = f"{BUDGET} after {_pairs(taken)}" if taken else f"{BUDGET} before it began"
            break
        say(f"{b.case.id} against {a.name or a.case.id}: pair {len(taken) + 1} of at most {policy.max_pairs}")
        try:
            prove = effort.prove and not taken
            pair = take(a, b, effort.turns, effort.steps, chance, say, index=len(taken), prove=prove)
            taken.append(pair)
        except WorkerError as found:
            # A driver that ends the process itself says so in its last words.
            outcome, _ = launch.ended(found, a.conditions.accelerator or b.conditions.accelerator)
            if outcome == "out_of_memory" and take is not turns.apart:
                say(f"{found.reason}: {turns.APART}")
                take = turns.apart
            else:
                stopped, error = "an arm failed", found
        else:
            if wrong(taken[0].a.launch) or wrong(taken[0].b.launch):
                stopped = "an arm is not what its label says, or is wrong"
            elif sequential.due(len(taken), policy):
                decision = _decided(taken, policy, last=False)
                stopped = _why(decision, policy) if decision.done else ""
    return Pairs(tuple(taken), decision, stopped, tuple(differ(a, b, taken)), error)


def _decided(taken: list[Turns], policy: PairPolicy, *, last: bool) -> Decision:
    return sequential.decide([pair.log_ratio for pair in taken], policy, last=last)


def _why(decision: Decision, policy: PairPolicy) -> str:
    if decision.outcome == "inconclusive":
        return f"there were as many pairs as were allowed: {policy.max_pairs}"
    return f"it was decided after {decision.pairs} of at most {policy.max_pairs} pairs"


def _pairs(taken: list[Turns]) -> str:
    return f"{len(taken)} pair{'s' if len(taken) > 1 else ''}"


def differ(a: Arm, b: Arm, taken: list[Turns]) -> list[str]:
    """What the arms differ in: the case, what was asked of their processes, and what those found around them."""
    lines = changed_case(replace(a.case, knobs=()), replace(b.case, knobs=()))
    asked = [(dict(a.case.knobs), dict(b.case.knobs)), (_variables(a, b), _variables(b, a))]
    pythons = [side.conditions.python or sys.executable for side in (a, b)]
    if len({_interpreter(python) for python in pythons}) > 1:
        asked.append(({"interpreter": pythons[0]}, {"interpreter": pythons[1]}))
    lines += [line for old, new in asked for line in _changed(old, new)]
    if lines and taken:
        # Where the arms were asked for the same, what their processes found differs by chance, if at all.
        told = {_name(line) for line in lines}
        found = differences(taken[0].a.environment, taken[0].b.environment)
        lines += [line for line in found if _name(line) not in told]
    return list(dict.fromkeys(lines))


def _name(line: str) -> str:
    """What a line of differences is about."""
    return line.partition(": ")[0]


def _variables(side: Arm, other: Arm) -> dict[str, str]:
    """What an arm's processes get of the variables that either arm says: the shell may have said the same."""
    found = worker.environment_of(side.conditions.python, side.conditions.variables)
    asked = {*side.conditions.variables, *other.conditions.variables}
    return {name: value for name, value in found.items() if name in asked}


def _interpreter(path: str) -> tuple[str, str]:
    """One name for all spellings. Environments are told apart by their folder: they may share the file behind it."""
    found = shutil.which(path) or path
    return os.path.realpath(os.path.dirname(found)), os.path.realpath(found)  # noqa: PTH120 - as the system resolves it


def _changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    names = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    return [f"{name}: {old.get(name, 'as it is')} -> {new.get(name, 'as it is')}" for name in names]
