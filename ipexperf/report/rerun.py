"""The command that measures a case once more."""

from __future__ import annotations

import shlex

from ipexperf.case import AGAINST, AXES, ITSELF, Case
from ipexperf.plan import knobs


def command(
    case: Case, launches: int, *, target: str = "", plain_size: int | None = None, against: str | None = None
) -> str:
    """What to type. `target` names a network of the user's own, whose cases are called otherwise.

    A size that is the plain one need not be said. A case that was measured in pairs has an arm in place of launches.
    """
    named = {"model": shlex.quote(target or case.model)}
    axes = " ".join(f"--{axis} {named.get(axis, getattr(case, axis))}" for axis in AXES)
    turned = "".join(f" {knobs.option(name, value)}" for name, value in case.knobs if name != AGAINST)
    sized = "" if case.size == plain_size else f" --perf-size {case.size}"
    arm = _arm(case) if against is None else against
    rest = f"--perf-launches {launches}" if arm is None else f"--perf-against={shlex.quote(arm)}"
    return f"pytest suites/ {axes} --perf-batch {case.batch}{sized}{turned} {rest}"


def _arm(case: Case) -> str | None:
    """The text of the other arm, which is empty where a case was held against itself."""
    arm = dict(case.knobs).get(AGAINST)
    return "" if arm == ITSELF else arm
