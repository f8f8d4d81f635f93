"""Groups: the cases of a run that can be compared, and are measured in rounds together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ipexperf.bench import registry
from ipexperf.case import Case


@dataclass(frozen=True, slots=True)
class Group:
    """Cases that do the same kind of step with the same model, data and batch on the same device."""

    name: str
    cases: tuple[Case, ...]

    @property
    def reference(self) -> Case:
        """The case that the others are held against: the plainest one."""
        return reference(self.cases)


def family(case: Case) -> str:
    """The kind of step that a case does."""
    mode = registry.modes.get(case.mode)
    return mode.family or ("train" if mode.trains else "infer")


def name(case: Case) -> str:
    """What a case has in common with all that it can be compared with."""
    inputs = f"{case.batch}x{case.size}" + (f" {case.data}" if case.data else "")
    return f"{case.model} {case.device} {family(case)} {inputs}"


def groups(cases: Iterable[Case]) -> list[Group]:
    """The groups of these cases, each where its first case stands."""
    members: dict[str, list[Case]] = {}
    for case in cases:
        members.setdefault(name(case), []).append(case)
    return [Group(shared, tuple(found)) for shared, found in members.items()]


def reference(cases: Sequence[Case]) -> Case:
    """Stock PyTorch before any other stack, fp32 before any other dtype, nothing turned, the shortest mode."""
    return min(
        cases, key=lambda x: (x.stack != "stock", x.dtype != "fp32", len(x.knobs), len(x.mode), x.mode, x.id, x.uid)
    )
