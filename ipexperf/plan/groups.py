"""Groups of cases that can be compared and share rounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ipexperf.bench import registry
from ipexperf.bench.api import GRAPHS
from ipexperf.case import Case
from ipexperf.dtypes import PLAIN

STOCK = "stock"


@dataclass(frozen=True, slots=True)
class Group:
    """Cases that do the same kind of step with the same model, data, batch and device."""

    name: str
    cases: tuple[Case, ...]

    @property
    def reference(self) -> Case:
        """The plainest case, which the others are compared with."""
        return reference(self.cases)


def family(case: Case) -> str:
    """Return the kind of step that a case does: `Mode.family`, or else training or inference."""
    mode = registry.modes.get(case.mode)
    return mode.family or ("train" if mode.trains else "infer")


def plain_mode(case: Case) -> str:
    """Return the plain mode of this case's kind of step. A recorded mode that is no longer registered is its own."""
    registered = case.mode in registry.modes.names()
    return (registry.modes.get(case.mode).plain if registered else "") or case.mode


def name(case: Case) -> str:
    """Return the name of the group of a case: everything that comparable cases have in common.

    Functions have a group for all of them: each session goes through them together.
    """
    if case.is_call:
        return f"functions on {case.device}"
    inputs = f"{case.batch}x{case.size}" + (f" {case.data}" if case.data else "")
    return f"{case.model} {case.device} {family(case)} {inputs}"


def groups(cases: Iterable[Case]) -> list[Group]:
    """Group these cases, in the order of each group's first case."""
    members: dict[str, list[Case]] = {}
    for case in cases:
        members.setdefault(name(case), []).append(case)
    return [Group(shared, tuple(cases_of)) for shared, cases_of in members.items()]


def reference(cases: Sequence[Case]) -> Case:
    """Return the plainest case: stock PyTorch before other stacks, fp32 before other dtypes, no knobs, eager first."""
    return min(
        cases, key=lambda x: (x.stack != STOCK, x.dtype != PLAIN, len(x.knobs), _graph_rank(x), x.mode, x.id, x.uid)
    )


def _graph_rank(case: Case) -> int:
    """Return the place of the mode's graph in GRAPHS. A recorded mode that is no longer registered comes last."""
    registered = case.mode in registry.modes.names()
    return GRAPHS.index(registry.modes.get(case.mode).graph) if registered else len(GRAPHS)
