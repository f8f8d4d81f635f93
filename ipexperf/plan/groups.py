"""Groups of cases that can be compared and share rounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from ipexperf.bench import registry
from ipexperf.bench.api import GRAPHS, Mode
from ipexperf.case import Case, NetworkCase, networks
from ipexperf.dtypes import PLAIN

STOCK = "stock"
AnyCase = TypeVar("AnyCase", bound=Case)


@dataclass(frozen=True, slots=True)
class Group(Generic[AnyCase]):
    """Networks that do the same kind of step with the same model, data, batch and device; or functions of a device."""

    name: str
    cases: tuple[AnyCase, ...]

    @property
    def reference(self) -> NetworkCase:
        """The plainest case of networks, which the others are compared with."""
        return reference(self.cases)


class Unregistered(NamedTuple):
    """The mode of a recorded case that is not registered here: a kind of step by itself."""

    family: str
    plain: str = ""
    kind: str = ""
    label: str = ""
    trains: bool = False
    graph: str = "unknown"


def mode(case: NetworkCase) -> Mode | Unregistered:
    """Return the mode of a case, or what stands for it."""
    return registry.modes.get(case.mode) if case.mode in registry.modes.names() else Unregistered(case.mode)


def family(case: NetworkCase) -> str:
    """Return the kind of step that a case does: `Mode.family`, or else training or inference."""
    return mode(case).family or ("train" if mode(case).trains else "infer")


def plain_mode(case: NetworkCase) -> str:
    """Return the plain mode of this case's kind of step."""
    return mode(case).plain or case.mode


def name(case: Case) -> str:
    """Return the name of the group of a case: everything that comparable cases have in common.

    Functions have a group for all of them: each session goes through them together. So have a program's numbers.
    """
    if not isinstance(case, NetworkCase):
        return f"{case.noun}s on {case.device}"
    inputs = f"{case.batch}x{case.size}" + (f" {case.data}" if case.data else "")
    return f"{case.model} {case.device} {family(case)} {inputs}"


def groups(cases: Iterable[AnyCase]) -> list[Group[AnyCase]]:
    """Group these cases, in the order of each group's first case."""
    members: dict[str, list[AnyCase]] = {}
    for case in cases:
        members.setdefault(name(case), []).append(case)
    return [Group(shared, tuple(cases_of)) for shared, cases_of in members.items()]


def reference(cases: Sequence[Case]) -> NetworkCase:
    """Return the plainest case: stock PyTorch before other stacks, fp32 before other dtypes, no knobs, eager first."""
    return min(networks(cases), key=_plainness)


def _plainness(case: NetworkCase) -> tuple[Any, ...]:
    graph = mode(case).graph
    rank = [*GRAPHS, graph].index(graph)  # what is not known comes last
    return case.stack != STOCK, case.dtype != PLAIN, len(case.knobs), rank, case.mode, case.id, case.uid
