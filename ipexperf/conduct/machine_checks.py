"""The checks of `ipexperf doctor`: kernel settings, packages and variables that make measurements worse."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from ipexperf.bench import registry
from ipexperf.bench.device import Device
from ipexperf.bench.machine import cards, control_groups, diagnosis, kernel_files, libraries, placement
from ipexperf.bench.machine.facts import Facts
from ipexperf.conduct.placement import usual
from ipexperf.conduct.process import WAITING
from ipexperf.proof.fingerprint import ISA_VARIABLES

CPUS = "sys/devices/system/cpu"
WANTED = ("torchvision", "intel-extension-for-pytorch")
OF_CARDS = {
    "kernel_driver": "kernel driver {}",
    "kernel_driver_version": "version {}",
    "power_limit_watts": "at most {} W",
    "clock_limit_mhz": "at most {} MHz",
    "pci_lanes": "{} PCIe lanes",
}
"""What the kernel tells of a card, and how it is said."""
BUSY = 0.25
"""Load average per core above which the machine counts as busy."""


@dataclasses.dataclass(frozen=True, slots=True)
class MachineFinding:
    """The result of one check. `wrong` makes measurements worse than they could be; `note` is worth knowing."""

    name: str
    state: Literal["ok", "note", "wrong"]
    found: str
    advice: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class CheckedMachine:
    """What to check: the root of the file system, the workers' cores and interpreter, and the variables."""

    root: Path
    cores: tuple[int, ...]
    facts: Facts
    variables: Mapping[str, str]

    def read(self, path: str) -> str | None:
        """The text of a file of the kernel, or None if it cannot be read."""
        return kernel_files.text(self.root / path)

    def accelerators(self) -> list[Device]:
        """The accelerators that were asked for and can be used."""
        return [registry.devices.get(name) for name, reason in self.facts.accelerators.items() if not reason]

    def of_cores(self, path: str) -> dict[int, str]:
        """The text of a file for each core that has it."""
        values = {core: self.read(f"{CPUS}/cpu{core}/{path}") for core in self.cores}
        return {core: text for core, text in values.items() if text is not None}


def run_checks(machine: CheckedMachine) -> list[MachineFinding]:
    """Run all checks in a fixed order."""
    return [finding for check in CHECKS for finding in check(machine)]


def governor(machine: CheckedMachine) -> Iterator[MachineFinding]:
    governors = sorted(set(machine.of_cores("cpufreq/scaling_governor").values()))
    if not governors:
        text = "cannot be read, as in most virtual machines: the host decides"
        yield MachineFinding("governor", "note", text)
    elif governors == ["performance"]:
        yield MachineFinding("governor", "ok", "performance")
    else:
        text = "the clock follows the load: cpupower frequency-set -g performance"
        yield MachineFinding("governor", "wrong", ", ".join(governors), text)


def turbo(machine: CheckedMachine) -> Iterator[MachineFinding]:
    off = machine.read(f"{CPUS}/intel_pstate/no_turbo")
    boost = machine.read(f"{CPUS}/cpufreq/boost")
    enabled = off == "0" if off is not None else boost == "1"
    if off is None and boost is None:
        yield MachineFinding("turbo", "note", "cannot be read")
    elif enabled:
        path = f"/{CPUS}/intel_pstate/no_turbo" if off is not None else f"/{CPUS}/cpufreq/boost"
        value = "1" if off is not None else "0"
        text = f"the clock depends on heat and on other cores: echo {value} > {path}"
        yield MachineFinding("turbo", "wrong", "on", text)
    else:
        yield MachineFinding("turbo", "ok", "off")


def cores(machine: CheckedMachine) -> Iterator[MachineFinding]:
    """Hyperthreads of one core slow each other down, and another node's memory is far: cases leave both alone."""
    used = usual(machine.cores, machine.root / "sys/devices/system")
    rest = "" if len(used) == len(machine.cores) else f" of {len(machine.cores)}: one thread of each core of one node"
    yield MachineFinding("cores", "ok", f"{placement.ranges(used)}{rest}")


def huge_pages(machine: CheckedMachine) -> Iterator[MachineFinding]:
    text = machine.read("sys/kernel/mm/transparent_hugepage/enabled")
    chosen = re.search(r"\[(\w+)\]", text or "")
    if chosen is None:
        yield MachineFinding("huge pages", "note", "cannot be read")
    elif chosen[1] == "never":
        advice = "large networks wait for page tables: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
        yield MachineFinding("huge pages", "wrong", "never", advice)
    else:
        yield MachineFinding("huge pages", "ok", chosen[1])


def container(machine: CheckedMachine) -> Iterator[MachineFinding]:
    """A CPU quota stops all threads at once for the rest of each period."""
    quota = control_groups.cores(control_groups.cpu_limit(lambda path: machine.read(path.removeprefix("/"))))
    if quota == math.inf:
        yield MachineFinding("CPU limit", "ok", "none")
        return
    throttled = re.search(r"^nr_throttled (\d+)", machine.read("sys/fs/cgroup/cpu.stat") or "", re.MULTILINE)
    text = f"{quota:g} CPUs of time for {len(machine.cores)} cores"
    text += f", throttled {throttled[1]} times so far" if throttled else ""
    if quota >= len(machine.cores):
        yield MachineFinding("CPU limit", "ok", text)
    else:
        share = f"--perf-placement threads={max(1, int(quota))}"
        advice = f"threads are stopped in the middle of a step: {share}, or lift the limit"
        yield MachineFinding("CPU limit", "wrong", text, advice)


def busy(machine: CheckedMachine) -> Iterator[MachineFinding]:
    load = float((machine.read("proc/loadavg") or "0").split()[0])
    text = f"a load of {load:g} on {len(machine.cores)} cores"
    if load > BUSY * len(machine.cores):
        yield MachineFinding(
            "other work", "wrong", text, "wait until the machine is free: contended launches do not count"
        )
    else:
        yield MachineFinding("other work", "ok", text)
    if "hypervisor" in machine.facts.cpu_flags:
        advice = "neighbours take time unseen: compare in pairs (--perf-against, ipexperf ab)"
        yield MachineFinding("virtual machine", "note", "yes", advice)


def allocator(machine: CheckedMachine) -> Iterator[MachineFinding]:
    places = [str(machine.root / folder.lstrip("/")) for folder in libraries.folders(*libraries.prefixes())]
    for name in placement.PRELOADED:
        if libraries.find(name, placement.ALLOCATORS[name], places):
            yield MachineFinding("allocator", "ok", f"{name} is installed: --perf-placement allocator={name}")
            return
    yield MachineFinding(
        "allocator",
        "note",
        "only the C library's, which workers configure to keep memory",
        "the vendor's guide recommends jemalloc or tcmalloc",
    )


def packages(machine: CheckedMachine) -> Iterator[MachineFinding]:
    from ipexperf.bench.stacks import ipex

    facts = machine.facts
    if absent := facts.missing("torch"):
        yield MachineFinding("torch", "wrong", absent, "only the fakes of the tests can be measured")
        return
    yield MachineFinding("torch", "ok", str(facts.packages["torch"]))
    missing = [name for name in WANTED if facts.packages.get(name) is None]
    if missing:
        yield MachineFinding(
            "packages",
            "note",
            f"not installed: {', '.join(missing)}",
            "`ipexperf cases --why` shows which cases need them",
        )
    ipex_version = facts.packages.get(ipex.PACKAGE)
    if ipex_version is not None:
        mismatch = ipex.version_mismatch(str(facts.packages["torch"]), ipex_version)
        advice = "install the torch that this IPEX was built for" if mismatch else ""
        yield MachineFinding("IPEX", "wrong" if mismatch else "ok", mismatch or ipex_version, advice)
    for name, reason in (("OpenMP", facts.without("iomp5")), ("compiler", facts.uncompiled())):
        if reason:
            yield MachineFinding(name, "note", reason)


def instructions(machine: CheckedMachine) -> Iterator[MachineFinding]:
    flags = machine.facts.cpu_flags
    masks = [f"{name}={machine.variables[name]}" for name in ISA_VARIABLES if machine.variables.get(name)]
    if masks:
        advice = "unset it: the libraries use fewer instructions than this CPU has"
        yield MachineFinding("instructions", "wrong", f"masked by {', '.join(masks)}", advice)
    if {"asimd", "bf16"} <= flags:
        yield MachineFinding("Arm BF16", "ok", "there")
    elif "asimd" in flags:
        yield MachineFinding("Arm BF16", "note", "not there: bf16 is emulated, and slower than fp32")
    elif "amx_tile" in flags:
        yield MachineFinding("AMX", "wrong" if masks else "ok", "masked" if masks else "there")
    elif "avx512_bf16" in flags:
        yield MachineFinding("AMX", "note", "not there: bf16 runs on AVX-512")
    else:
        yield MachineFinding("AMX", "note", "not there, nor AVX-512 BF16: bf16 is emulated, and slower than fp32")


def waiting(machine: CheckedMachine) -> Iterator[MachineFinding]:
    """Idle threads that spin take the core of the worker whose turn it is."""
    policy, block = machine.variables.get("OMP_WAIT_POLICY", ""), machine.variables.get("KMP_BLOCKTIME", "0")
    if policy.upper() == "ACTIVE" or block not in ("", "0", WAITING["KMP_BLOCKTIME"]):
        text = f"OMP_WAIT_POLICY={policy or 'unset'}, KMP_BLOCKTIME={block}"
        yield MachineFinding(
            "waiting threads", "wrong", text, "unset both: workers that wait for their turn must not spin"
        )
    threads = machine.variables.get("OMP_NUM_THREADS", "")
    if threads.isdigit() and int(threads) != len(machine.cores):
        text = f"OMP_NUM_THREADS={threads} on {len(machine.cores)} cores"
        yield MachineFinding(
            "threads", "note", text, "workers ignore it and use one thread per core, or --perf-placement threads=N"
        )


def accelerators(machine: CheckedMachine) -> Iterator[MachineFinding]:
    """What each accelerator that was asked for is, or the first thing that is missing, with its cure."""
    for name, reason in machine.facts.accelerators.items():
        if reason:
            yield MachineFinding(name, "wrong", reason)
    for device in machine.accelerators():
        for number, card in enumerate(machine.facts.cards.get(device.name, ())):
            driver = f", driver {card['driver']}" if card["driver"] else ""
            lacks = "" if card["float64"] else ", no float64: fp16 training is left out"
            text = f"{card['name']}, {card['memory'] / 2**30:.1f} GiB{driver}{lacks}"
            yield MachineFinding(f"{device.name} {number}", "ok", text)
        for address in diagnosis.Machine(machine.root).cards(device.vendor):
            facts = cards.described(address, machine.root)
            text = ", ".join(words.format(facts[key]) for key, words in OF_CARDS.items() if key in facts)
            yield MachineFinding(address, "ok", text or "the kernel tells nothing of it")
            yield from _floating(address, machine.root)
        unable = device.uncompiled(machine.facts)
        compiling = f"compiling for {device.name}"
        yield MachineFinding(compiling, "note" if unable else "ok", unable or machine.facts.compiler)


def _floating(address: str, root: Path) -> Iterator[MachineFinding]:
    """Whether the clocks of a card follow load and heat, and the command that fixes them until the next boot."""
    bounds = cards.clocks(root / cards.DEVICES / address)
    floating = [(path, low, high) for path, low, high in bounds if low < high]
    if floating:
        text = "; ".join(f"from {low} to {high} MHz" for low, high in dict.fromkeys(bound[1:] for bound in floating))
        fix = "; ".join(f"echo {high} | sudo tee {path}" for path, _, high in floating)
        yield MachineFinding(
            f"clock of {address}",
            "note",
            f"it floats {text}",
            f"fix it before runs are compared with one another: {fix}",
        )
    elif bounds:
        text = ", ".join(f"{clock} MHz" for clock in dict.fromkeys(low for _, low, _ in bounds))
        yield MachineFinding(f"clock of {address}", "ok", f"fixed at {text}")


CHECKS: tuple[Callable[[CheckedMachine], Iterable[MachineFinding]], ...] = (
    governor,
    turbo,
    cores,
    huge_pages,
    container,
    busy,
    allocator,
    packages,
    instructions,
    waiting,
    accelerators,
)
"""All checks, in the order of their output."""
