"""The commands that reproduce a case, and search why it is slower."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from ipexperf.bench import loading, registry
from ipexperf.case import AGAINST, Case, NetworkCase, ProgramCase
from ipexperf.plan import knobs
from ipexperf.plan.options import Options

ENDS = {
    "package or variable": "--good {arm} --bad ''",
    "nightly build of torch": "--good {arm} --package torch --versions {first}..{last}",
    "commit": "--commits {first}..{last}",
}
"""What can be searched, and the options that say between what."""


def command(
    chosen: str,
    launches: int,
    *,
    places: Sequence[str] = ("suites/",),
    against: str | None = None,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The command for the network that these options choose.

    `places` are the files and folders that pytest was given. `variables` are those of the shell that tune libraries:
    without them other kernels may run. A case measured in pairs has an arm instead of launches.
    """
    rest = f"--perf-launches {launches}" if against is None else f"--perf-against={shlex.quote(against)}"
    where = "".join(f"{shlex.quote(place)} " for place in places)
    return f"{assignments(variables)}pytest {where}{chosen} {rest}"


def of_function(
    test: str, arm: str | None, own: str, variables: Mapping[str, str], *, benchmark: bool, build: str | None = None
) -> str:
    """The command for a test that measures a function. `own` is its own arm, if `ab` was given one."""
    built = f"build={shlex.quote(build)}" if build else ""
    if own:
        arms = f"--a {shlex.quote(arm or '')} --b {shlex.quote(own)}{built and f' --{built}'}"
        return f"{assignments(variables)}ipexperf ab {arms} -- {shlex.quote(test)}"
    against = "" if arm is None else f" --perf-against={shlex.quote(arm)}{built and f' --perf-{built}'}"
    return f"{assignments(variables)}pytest {shlex.quote(test)}{' --perf-benchmark' if benchmark else ''}{against}"


def assignments(variables: Mapping[str, str]) -> str:
    """Variables before a command of the shell."""
    return "".join(f"{name}={shlex.quote(value)} " for name, value in sorted(variables.items()))


def options(
    case: NetworkCase, *, target: str = "", load: Sequence[str] = (), plain_size: int | None = None, index: int = 0
) -> str:
    """The options that choose a network alone. They have their long names, which work in every suite.

    `target` names a network of the user's own, whose case has a derived name. `load` are the files and modules that
    register leaves. The default size is left out, and so is the index of the first card.
    """
    device = shlex.quote(f"{case.device}:{index}") if index else case.device
    values = {**case.axes, "model": shlex.quote(target or case.model), "device": device}
    loaded = "".join(f"--perf-load {shlex.quote(name)} " for name in load)
    axes = " ".join(f"--perf-{axis} {value}" for axis, value in values.items())
    sized = "" if case.size == plain_size else f" --perf-size {case.size}"
    turned = "".join(f" {knobs.option(name, value)}" for name, value in case.knobs if name != AGAINST)
    return f"{loaded}{axes} --perf-batch {case.batch}{sized}{turned}"


def chosen(case: Case, asked: Options) -> str:
    """The words that choose the case alone: options for pytest and the commands, or a test for the commands."""
    if isinstance(case, ProgramCase):
        return f"--program {''.join(f'--{name} {shlex.quote(x)} ' for name, x in case.settings)}-- {case.program}"
    if not isinstance(case, NetworkCase):
        return f"-- {shlex.quote(here(case.name, Path.cwd()))}"
    size, index = registry.models.get(case.model).size, asked.index(case.device)
    target, load = _found_by(case, asked)
    return options(case, target=target, load=load, plain_size=size, index=index)


def explain(run: str, case: Case, asked: Options, against: str | None, stores: str) -> str:
    """The command that writes a page on why a case is slower. `stores` are the options that name where its run is."""
    target, load = _found_by(case, asked) if isinstance(case, NetworkCase) else ("", [])
    found = "".join(f" --perf-load {shlex.quote(name)}" for name in load)
    found += f" --perf-model {shlex.quote(target)}" if target else ""
    beside = "" if against is None else f" --against={shlex.quote(against)}"
    return f"ipexperf explain {run} {shlex.quote(case.id)}{found}{beside}{stores}"


def _found_by(case: NetworkCase, asked: Options) -> tuple[str, list[str]]:
    """What names a network of the user's own, and the files and modules that register leaves."""
    targets = {registry.models.get(name).target for name in registry.models.names()}
    load = [name for name in asked.load if name not in targets and not loading.of_package(name)]
    return registry.models.get(case.model).target or "", load


def here(test: str, folder: Path) -> str:
    """The id of a test as pytest takes it in this folder. It begins where pytest has its settings: there or above."""
    file, colons, rest = test.partition("::")
    root = next((above for above in (folder, *folder.parents) if (above / file).exists()), folder)
    return f"{os.path.relpath(root / file, folder)}{colons}{rest}"


@dataclass(frozen=True, slots=True)
class Search:
    """A search by `ipexperf bisect`, as data: what for, beside which arm, and between which two."""

    kind: str
    arm: str = ""
    first: str = ""
    last: str = ""

    def __post_init__(self) -> None:
        ends = self.first + self.last
        if not (self.kind in ENDS and re.fullmatch(r"([^-].*)?", self.arm) and re.fullmatch(r"[\w.+]*", ends)):
            raise ValueError(f"{self} is none of those of {', '.join(ENDS)}")

    def command(self, case: str) -> str:
        """The command. `case` has the words that choose one, as `options` gives them."""
        ends = ENDS[self.kind].format(arm=shlex.quote(self.arm), first=self.first, last=self.last)
        return f"ipexperf bisect {ends} {case}"
