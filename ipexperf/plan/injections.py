"""The slow-downs that `ipexperf selftest` injects."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
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
    if reason := _why_not(injection, case, facts):
        return case, reason
    slowed_case, unmet = injection.words.case(case, facts)
    if unmet is None and injection.words.knobs and slowed_case == case:
        return case, f"{case.id} already has {injection.arm}"
    return slowed_case, arms.why_not(slowed_case, facts, unmet)


def _why_not(injection: Injection, case: Case, facts: Facts) -> str | None:
    """Return the reason against an injection, whatever its arm, or None."""
    mode, flags = registry.modes.get(case.mode), {name.lower(): flag for name, flag in INSTRUCTIONS}
    if injection.settings and mode.processes(case) != 1:
        return f"the steps of {case.mode} run in processes of their own"
    if injection.name in flags:
        return _instructions(injection.name, flags[injection.name], case, facts)
    if injection.name in (injections.UNFROZEN, injections.UNFUSED):
        return _graph(injection.name, case)
    if injection.name != "threads":
        return None
    if case.device != "cpu":
        return f"CPU threads do not compute on {case.device}"
    return None if injection.settings["threads"] >= 1 else "one thread cannot become fewer"


def _instructions(name: str, flag: str, case: Case, facts: Facts) -> str | None:
    if case.device != "cpu":
        return f"oneDNN's instructions are those of a CPU, not of {case.device}"
    return None if flag in facts.cpu_flags else f"this CPU has no {flag}: {name} would change nothing"


def _graph(name: str, case: Case) -> str | None:
    mode = registry.modes.get(case.mode)
    if mode.graph != TRACED or mode.cold or quantised(case.dtype):
        return f"{name} is for a graph traced before the first step, not for {case.dtype} in {case.mode}"
    if name == injections.UNFUSED and (case.stack, case.device) != ("ipex", "cpu"):
        return "only IPEX's fusion on the CPU can be switched off"
    return None
