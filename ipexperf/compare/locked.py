"""The software of a lock as an arm."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ipexperf import lock as locks
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.machine.source import Replaced
from ipexperf.bench.process import environment as surroundings
from ipexperf.case import Case
from ipexperf.compare import arm
from ipexperf.compare.against import PairPlan
from ipexperf.conduct import process
from ipexperf.environments import make
from ipexperf.judge.policy import PairPolicy
from ipexperf.lock import Lock
from ipexperf.plan import arms, gates, matrix
from ipexperf.plan.arms import ArmSpec
from ipexperf.plan.options import Options
from ipexperf.plan.values import BASELINE

Say = Callable[[str], None]


def current_lock(options: Options) -> Lock:
    """The lock of what this run measures, as far as it is known before anything is measured."""
    return locks.make(
        make.take_inventory(options.python),
        software={},
        variables=process.tuned_by_user(os.environ),
        placement=str(options.placement or ""),
    )


def machine_key(device: str, facts: Facts, options: Options) -> str:
    """The machine_key that workers will report. A card is asked for its properties by a worker."""
    machine = {**surroundings.hardware(), "cores": facts.cores, "accelerator": None}
    if device != "cpu":
        from ipexperf.conduct.worker import Worker

        with Worker(options.python, matrix.variables(options, (device,)), options.timeout) as worker:
            machine["accelerator"] = worker.ask("machine", device=device, load=options.load)["accelerator"]
    return surroundings.machine_key(machine)


def with_lock(words: ArmSpec, lock: Lock, options: Options, cache: Path, say: Say) -> ArmSpec:
    """The arm with the interpreter and the variables of a lock.

    The interpreter is that of the run if it has exactly the packages of the lock. Else an environment is made.
    """
    make.check_possible(lock)
    if make.mismatches(lock, make.take_inventory(options.python)):
        python = make.make(cache, lock, say, leasing=options.lease).python
    else:
        python = options.python or sys.executable
    unset = dict.fromkeys(process.tuned_by_user(os.environ), process.UNSET)
    variables = {**unset, **dict(lock.variables), **words.variables}
    text = words.text.replace(BASELINE, f"{BASELINE}:{lock.digest}") if words.lock == BASELINE else words.text
    return dataclasses.replace(words, text=text, python=python, variables=variables)


def against(
    words: ArmSpec,
    lock: Lock,
    cases: Sequence[Case],
    source: str,
    policy: PairPolicy,
    options: Options,
    cache: Path,
    say: Say,
) -> tuple[PairPlan, dict[Case, str]]:
    """The software of a lock as what cases are compared with, and why some of them cannot be. May take minutes.

    `source` is the option that named it. Raises LockError if it cannot be made again, UsageError if it cannot import
    what the cases need.
    """
    replaced = Replaced.of(words.variables)
    words = with_lock(words, lock, options, cache, say)
    able, unable = _cases_of_arm(words, cases, arm.facts(words, options, source))
    made = PairPlan(
        words,
        source,
        able,
        policy,
        names=("its baseline", ""),
        lock=lock.digest,
        tree=Path(replaced.by).name if replaced else "",
        gate=options.structure,
        metrics=gates.gate(options),
    )
    made.check(options)
    return made, unable


def _cases_of_arm(words: ArmSpec, cases: Iterable[Case], facts: Facts) -> tuple[dict[Case, Case], dict[Case, str]]:
    """The case of the other arm for each that can be measured in pairs, and why the others cannot."""
    able, unable = {}, {}
    for case in cases:
        other, reason = words.case(case, facts)
        if reason := reason or arms.no_turns(case):
            unable[case] = reason
        else:
            able[case] = other
    return able, unable
