"""The software of a lock as an arm, on the host where cases are measured."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf import lock as locks
from ipexperf.bench.machine.source import Replaced
from ipexperf.bench.process import environment as surroundings
from ipexperf.compare import arm
from ipexperf.compare.against import Against
from ipexperf.compare.request import ArmRequest, LockArm
from ipexperf.conduct import process
from ipexperf.environments import make
from ipexperf.lock import Lock
from ipexperf.plan import arms, gates, matrix
from ipexperf.plan.values import BASELINE

if TYPE_CHECKING:
    from ipexperf.bench.machine.facts import Facts
    from ipexperf.case import Case
    from ipexperf.environments.store import Store
    from ipexperf.plan.arms import ArmWords
    from ipexperf.plan.options import Options

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


def with_lock(
    words: ArmWords, lock: Lock, options: Options, cache: Path, say: Say, stores: Sequence[Store] = ()
) -> ArmWords:
    """The arm with the interpreter and the variables of a lock.

    The interpreter is that of the run if it has exactly the packages of the lock. Else an environment is made.
    `stores` have packages for it, beside that of the cache.
    """
    make.check_possible(lock)
    if make.mismatches(lock, make.take_inventory(options.python)):
        python = make.make(cache, lock, say, stores=stores, leasing=options.lease).python
    else:
        python = options.python or sys.executable
    unset = dict.fromkeys(process.tuned_by_user(os.environ), process.UNSET)
    variables = {**unset, **dict(lock.variables), **words.variables}
    text = words.text.replace(BASELINE, f"{BASELINE}:{lock.digest}") if words.lock == BASELINE else words.text
    return dataclasses.replace(words, text=text, python=python, variables=variables)


def prepare(request: ArmRequest, options: Options, cache: Path, say: Say, stores: Sequence[Store] = ()) -> LockArm:
    """Make the software of a lock an arm of these cases. Raises LockError if it cannot be made again."""
    words = with_lock(request.words, locks.parse(request.lock, "the lock of the arm"), options, cache, say, stores)
    pairs, reasons = _cases_of_arm(words, request.cases, arm.facts(words, options, request.source))
    return LockArm(words, pairs, reasons)


def against(request: ArmRequest, prepared: LockArm, options: Options) -> Against:
    """The arm as what cases are compared with."""
    replaced = Replaced.of(request.words.variables)
    return Against(
        prepared.words,
        request.source,
        dict(prepared.able),
        request.policy,
        names=("its baseline", ""),
        lock=locks.parse(request.lock, "the lock of the arm").digest,
        tree=Path(replaced.by).name if replaced else "",
        gate=options.structure,
        metrics=gates.gate(options),
    )


def _cases_of_arm(
    words: ArmWords, cases: Iterable[Case], facts: Facts
) -> tuple[tuple[tuple[Case, Case], ...], tuple[tuple[Case, str], ...]]:
    """The case of the other arm for each that can be measured in pairs, and why the others cannot."""
    pairs, reasons = [], []
    for case in cases:
        other, unmet = words.case(case, facts)
        reason = arms.why_not(other, facts, unmet, words.threads) or arms.no_turns(case)
        if reason:
            reasons.append((case, reason))
        else:
            pairs.append((case, other))
    return tuple(pairs), tuple(reasons)
