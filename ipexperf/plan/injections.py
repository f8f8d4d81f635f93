"""The slow-downs that `ipexperf selftest` injects."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.api import TRACED
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.process import injections
from ipexperf.case import Case
from ipexperf.dtypes import quantised
from ipexperf.errors import UsageError
from ipexperf.plan import arms
from ipexperf.plan.arms import ArmWords
from ipexperf.plan.options import Options

AA = "A/A"
"""The trial without an injection."""
NONE = "none"
INSTRUCTIONS = (
    ("AVX512_CORE_BF16", "amx_tile"),
    ("AVX512_CORE", "avx512_bf16"),
    ("AVX2", "avx512bw"),
    ("AVX", "avx2"),
    ("SSE41", "avx"),
)
"""Instruction sets to limit oneDNN to, each with a CPU flag that shows that the CPU has more."""
BUSY = (3, 5, 10)
"""Busy time to add after each step, in per cent of the step."""


@dataclasses.dataclass(frozen=True, slots=True)
class Injection:
    """A slow-down to inject. `size` is its fraction, or None if it is not known beforehand."""

    name: str
    size: float | None = None
    arm: str = ""
    """The text of the slowed arm."""
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Settings for its workers."""

    @property
    def words(self) -> ArmWords:
        return arms.parse(self.arm, f"injection {self.name}")


def every(options: Options, facts: Facts) -> tuple[Injection, ...]:
    """Return all injections for this machine, those of known size first."""
    threads = (options.threads or facts.cores) - 1
    return (
        *(Injection(f"busy{size}", size / 100, settings=_injected(f"{injections.BUSY}={size / 100}")) for size in BUSY),
        *(Injection(name.lower(), arm=f"ONEDNN_MAX_CPU_ISA={name}") for name, _ in INSTRUCTIONS),
        Injection("channels_last", arm="channels_last=off"),
        Injection(injections.UNFROZEN, settings=_injected(injections.UNFROZEN)),
        Injection(injections.UNFUSED, settings=_injected(injections.UNFUSED)),
        Injection("threads", settings={"threads": threads}),
    )


def _injected(text: str) -> dict[str, Any]:
    return {"injected": text}


def chosen(names: tuple[str, ...] | None, options: Options, facts: Facts) -> tuple[Injection, ...]:
    """Return the injections with these names, or all if `names` is None."""
    by_name = {injection.name: injection for injection in every(options, facts)}
    if names is None:
        return tuple(by_name.values())
    if names == (NONE,):
        return ()
    for name in names:
        if name not in by_name:
            raise UsageError(f"--injections: {registry.unknown('injection', name, [*by_name, NONE])}")
    return tuple(by_name[name] for name in dict.fromkeys(names))


def slowed(injection: Injection, case: Case, facts: Facts) -> tuple[Case, str | None]:
    """Return the case changed by the slowed arm, and the reason why it cannot be slowed down like this, or None."""
    if reason := next((reason for why in _WHY_NOT if (reason := why(injection, case, facts))), None):
        return case, reason
    slowed_case, unmet = injection.words.case(case, facts)
    if unmet is None and injection.words.knobs and slowed_case == case:
        return case, f"{case.id} already has {injection.arm}"
    return slowed_case, arms.why_not(slowed_case, facts, unmet)


def _steps_elsewhere(injection: Injection, case: Case, facts: Facts) -> str | None:
    del facts
    if not injection.settings or registry.modes.get(case.mode).processes(case) == 1:
        return None
    return f"the steps of {case.mode} run in processes of their own"


def _instructions(injection: Injection, case: Case, facts: Facts) -> str | None:
    flags = {name.lower(): flag for name, flag in INSTRUCTIONS}
    if injection.name not in flags:
        return None
    if case.device != "cpu":
        return f"oneDNN's instructions are those of a CPU, not of {case.device}"
    flag = flags[injection.name]
    return None if flag in facts.cpu_flags else f"this CPU has no {flag}: {injection.name} would change nothing"


def _graph(injection: Injection, case: Case, facts: Facts) -> str | None:
    del facts
    if injection.name not in (injections.UNFROZEN, injections.UNFUSED):
        return None
    mode = registry.modes.get(case.mode)
    if mode.graph != TRACED or mode.cold or quantised(case.dtype):
        return f"{injection.name} is for a graph traced before the first step, not for {case.dtype} in {case.mode}"
    if injection.name == injections.UNFUSED and (case.stack, case.device) != ("ipex", "cpu"):
        return "only IPEX's fusion on the CPU can be switched off"
    return None


def _threads(injection: Injection, case: Case, facts: Facts) -> str | None:
    del facts
    if injection.name != "threads":
        return None
    if case.device != "cpu":
        return f"CPU threads do not compute on {case.device}"
    return None if injection.settings["threads"] >= 1 else "one thread cannot become fewer"


_WHY_NOT: tuple[Callable[[Injection, Case, Facts], str | None], ...] = (
    _steps_elsewhere,
    _instructions,
    _graph,
    _threads,
)
"""The reasons against an injection, checked in this order."""
